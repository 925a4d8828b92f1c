/*
 * A connection belongs to the daemon from when it is accepted until its client has been handed to a
 * server, or its UI has left. The first message says what the peer is. A peer that says nothing, or
 * something malformed or unexpected, is dropped with a line in the log.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/caller.h"
#include "control/conn.h"
#include "control/log.h"
#include "transport/foreign.h"

#define SWEEP_MS     1000
#define ACCEPT_BURST 32

void ctl_conn_close(struct ctl_conn *c)
{
    if (c->phase == CTL_CONN_UI)
        ctl_log_ui(c, "UI closed");
    if (c->request)
        ctl_hooks.request_left(c->request);
    ctl_channel_close(c->channel);
    gm_list_remove(&c->link);
    gm_list_remove(&c->waiting);
    c->daemon->conns_count--;
    ctl_caller_put(c->daemon, c->caller);
    free(c);
}

void ctl_conn_drop(struct ctl_conn *c, const char *reason)
{
    ctl_log_stranger(c->daemon, "Dropping connection of process %d, user %u: %s", (int)c->peer.pid,
                     (unsigned)c->peer.uid, reason);
    ctl_conn_close(c);
}

void ctl_conn_refuse(struct ctl_conn *c, int result, const char *reason)
{
    uint8_t buffer[1024];
    struct wire_enc e;
    char text[513];
    ctl_log_stranger(c->daemon, "Refusing client %d from user %u: %s (error %d)", (int)c->peer.pid,
                     (unsigned)c->peer.uid, reason, result);
    snprintf(text, sizeof(text), "%s", reason);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_refused(&e, 0, &(struct wire_refused) { .result = result, .reason = text });
    int r = ctl_channel_send(c->channel, &e, -1);
    (void)r; /* the peer has left and need not be told */
    ctl_conn_close(c);
}

int ctl_conn_hand_over(struct ctl_conn *c, struct ctl_channel *link, const struct wire_enc *e)
{
    int r = ctl_channel_hand_over(link, e, c->channel);
    if (r == 0) {
        c->channel = NULL;
        ctl_conn_close(c);
    }
    return r;
}

static void hello(struct ctl_conn *c, struct tp_packet *p)
{
    struct wire_hello m;
    wire_get_hello(&p->body, &m);
    if (!wire_dec_finish(&p->body) || p->fds_count) {
        ctl_conn_drop(c, "malformed hello");
        return;
    }
    if (!(m.share_pct >= 0 && m.share_pct <= 100) || m.priority < -1 || m.priority > 1) {
        ctl_conn_drop(c, "impossible limits in hello");
        return;
    }
    c->phase = CTL_CONN_WAITING;
    c->wish.share_pct = m.share_pct;
    c->wish.priority = m.priority;
    snprintf(c->wish.memory, sizeof(c->wish.memory), "%s", m.memory_limits);
    snprintf(c->command, sizeof(c->command), "%s", m.command);
    gm_text_clean(c->command);
    if (m.protocol_min > WIRE_VERSION || m.version < WIRE_VERSION) {
        char text[128];
        snprintf(text, sizeof(text),
                 "it speaks protocol version %u, this daemon %u: update the older one", m.version,
                 (unsigned)WIRE_VERSION);
        ctl_conn_refuse(c, GM_CUDA_SYSTEM_DRIVER_MISMATCH, text);
        return;
    }
    if (*c->wish.group && !ctl_group_is_name(c->wish.group)) {
        ctl_conn_refuse(c, GM_CUDA_INVALID_VALUE,
                        "GMUX_GROUP is no name: letters, digits, '.', '_' and '-'");
        return;
    }
    ctl_caller_admit(c);
}

/* Takes what a client asks for beside its hello. The hello comes after it and gets the answer: a
 * client that is refused while it still sends would see a broken connection instead of the
 * reason. */
static void join(struct ctl_conn *c, struct tp_packet *p)
{
    struct wire_join m;
    wire_get_join(&p->body, &m);
    if (!wire_dec_finish(&p->body) || p->fds_count ||
        !(m.guarantee_pct >= 0 && m.guarantee_pct <= 100)) {
        ctl_conn_drop(c, "malformed join");
        return;
    }
    snprintf(c->wish.group, sizeof(c->wish.group), "%s", m.group);
    c->wish.guarantee_pct = m.guarantee_pct;
    if (m.guarantee_pct > 0 && c->daemon->options.multiuser && !c->trusted) {
        ctl_log_stranger(c->daemon,
                         "Client %d from user %u asks for a guarantee, which is root's to give",
                         (int)c->peer.pid, (unsigned)c->peer.uid);
        c->wish.guarantee_pct = 0;
    }
}

static void partition(struct ctl_conn *c, struct tp_packet *p)
{
    struct wire_partition m;
    wire_get_partition(&p->body, &m);
    if (!wire_dec_finish(&p->body) || p->fds_count) {
        ctl_conn_drop(c, "malformed partition");
        return;
    }
    snprintf(c->partition, sizeof(c->partition), "%s", m.name);
}

static void ui_command(struct ctl_conn *c, struct tp_packet *p)
{
    struct wire_ui_command m;
    wire_get_ui_command(&p->body, &m);
    if (!wire_dec_finish(&p->body) || p->fds_count) {
        ctl_conn_drop(c, "malformed command");
        return;
    }
    if (c->request) {
        ctl_conn_drop(c, "command before the answer to the last one");
        return;
    }
    if (c->phase == CTL_CONN_NEW) {
        c->phase = CTL_CONN_UI;
        ctl_log_ui(c, "NEW UI");
    }
    ctl_hooks.command(c, m.line);
}

/* Takes back a server that an earlier daemon started. */
static void server_returned(struct ctl_conn *c, struct tp_packet *p)
{
    struct wire_link_return m;
    const char *why = "malformed return of a server";
    wire_get_link_return(&p->body, &m);
    if (wire_dec_finish(&p->body) && !p->fds_count)
        why = ctl_hooks.server_returned(c, &m);
    if (why)
        ctl_conn_drop(c, why);
}

/* The messages that a connection may send in each phase. Any other ends the connection. */
static const struct {
    enum ctl_conn_phase phase;
    unsigned type;
    bool unprivileged_only;
    void (*handle)(struct ctl_conn *c, struct tp_packet *p);
} allowed[] = {
    { CTL_CONN_NEW, WIRE_JOIN, true, join },
    { CTL_CONN_NEW, WIRE_PARTITION, true, partition },
    { CTL_CONN_NEW, WIRE_HELLO, true, hello },
    { CTL_CONN_NEW, WIRE_LINK_RETURN, true, server_returned },
    { CTL_CONN_NEW, WIRE_UI_COMMAND, false, ui_command },
    { CTL_CONN_UI, WIRE_UI_COMMAND, false, ui_command },
};

static void on_packet(void *owner, struct tp_packet *p)
{
    struct ctl_conn *c = owner;
    for (size_t i = 0; i < GM_ARRAY_LEN(allowed); i++) {
        if (allowed[i].phase != c->phase || allowed[i].type != p->header.type ||
            (allowed[i].unprivileged_only && c->privileged))
            continue;
        allowed[i].handle(c, p);
        return;
    }
    const struct wire_message_info *info = wire_message_info(p->header.type);
    char text[96];
    snprintf(text, sizeof(text), "unexpected message %u (%s)", p->header.type,
             info ? info->name : "unknown");
    ctl_conn_drop(c, text);
}

static void on_gone(void *owner, int error)
{
    struct ctl_conn *c = owner;
    if (error == -EBADMSG) {
        ctl_conn_drop(c, "malformed message");
    } else if (c->phase == CTL_CONN_NEW) {
        /* The peer connected and left without a word, to see whether the daemon lives. The line is
         * NVIDIA's. */
        ctl_log_stranger(c->daemon, "User did not send valid credentials");
        ctl_conn_close(c);
    } else if (c->phase == CTL_CONN_WAITING) {
        ctl_log_stranger(c->daemon, "Client %d from user %u left while it waited for its server",
                         (int)c->peer.pid, (unsigned)c->peer.uid);
        ctl_conn_close(c);
    } else {
        ctl_conn_close(c);
    }
}

static const struct ctl_channel_ops conn_ops = { .packet = on_packet, .gone = on_gone };

size_t ctl_conn_unread(const struct ctl_daemon *d, uid_t uid)
{
    size_t n = 0;
    gm_list_for_each (c, &d->conns, struct ctl_conn, link)
        if (c->peer.uid == uid)
            n += ctl_channel_unread(c->channel);
    return n;
}

/* Whether a user may have another connection. A quarter of all connections is kept for the
 * privileged socket and root. Of the others a user may take as many as are left for everybody else:
 * the first user half of them, the second half of the rest, and so on. So no two users can lock a
 * third one out. */
static bool may_connect(const struct ctl_daemon *d, uid_t uid, bool privileged)
{
    const unsigned open_to_all = d->conns_max - d->conns_max / 4;
    if (privileged)
        return d->conns_count < d->conns_max;
    unsigned own = ctl_caller_conns(d, uid);
    return own < CTL_CONNS_PER_USER &&
           d->conns_count + (uid ? own : 0) < (uid ? open_to_all : d->conns_max);
}

static void accepted(struct ctl_daemon *d, const struct ctl_listener *l, int fd)
{
    const bool privileged = l == &d->listeners[1];
    struct tp_peer peer;
    ctl_log_accept(d);
    if (tp_peer(fd, &peer) < 0) {
        ctl_log_stranger(d, "User did not send valid credentials");
        tp_hang_up(fd);
        return;
    }
    if (!may_connect(d, peer.uid, privileged)) {
        ctl_log_stranger(d, "Dropping connection of process %d, user %u: too many connections",
                         (int)peer.pid, (unsigned)peer.uid);
        tp_hang_up(fd);
        return;
    }
    struct ctl_conn *c = calloc(1, sizeof(*c));
    if (!c) {
        tp_hang_up(fd);
        return;
    }
    c->daemon = d;
    c->privileged = privileged;
    c->space = l->space;
    c->peer = peer;
    c->trusted = peer.uid == 0 || peer.uid == d->uid;
    c->deadline_ns = gm_now_ns() + CTL_HELLO_MS * GM_NS_PER_MS;
    gm_list_init(&c->waiting);
    c->caller = ctl_caller_get(d, peer.uid);
    c->channel = c->caller ? ctl_channel_create(&d->loop, fd, &conn_ops, c) : NULL;
    if (!c->channel) {
        if (c->caller)
            ctl_caller_put(d, c->caller);
        else
            tp_hang_up(fd);
        free(c);
        return;
    }
    gm_list_append(&d->conns, &c->link);
    if (d->conns_count++ == 0)
        ctl_timer_start(d->sweep, SWEEP_MS);
}

static void accept_all(struct ctl_daemon *d, const struct ctl_listener *l)
{
    for (int i = 0; i < ACCEPT_BURST; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            accepted(d, l, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN) {
            ctl_log_stranger(d, "Cannot accept a connection: %s", strerror(errno));
            /* A loop that kept listening would spin. The sweep listens again. */
            ctl_conn_listen(d, false);
            ctl_timer_start(d->sweep, SWEEP_MS);
        }
        return;
    }
}

static void on_listener(uv_poll_t *poll, int status, int events)
{
    struct ctl_daemon *d = poll->data;
    const struct ctl_listener *l = GM_CONTAINER_OF(poll, struct ctl_listener, poll);
    (void)events;
    if (status == 0)
        accept_all(d, l);
}

static void watch_listener(uv_poll_t *poll, bool on)
{
    if (!on)
        uv_poll_stop(poll);
    else if (!uv_is_active((uv_handle_t *)poll))
        uv_poll_start(poll, UV_READABLE, on_listener);
}

void ctl_conn_listen(struct ctl_daemon *d, bool on)
{
    if (d->finished)
        return;
    for (size_t i = 0; i < GM_ARRAY_LEN(d->listeners); i++)
        watch_listener(&d->listeners[i].poll, on);
    gm_list_for_each (l, &d->doors, struct ctl_listener, link)
        watch_listener(&l->poll, on);
}

/* Tells the client that it is waiting: it gives up on a daemon that is silent for too long
 * (GMUX_ANSWER_TIMEOUT). */
static void say_waiting(struct ctl_conn *c)
{
    uint8_t buffer[64];
    struct wire_enc e;
    if (ctl_channel_unread(c->channel))
        return; /* the client has not read the messages before this one */
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_waiting(&e, 0, &(struct wire_waiting) { 0 });
    int r = ctl_channel_send(c->channel, &e, -1);
    (void)r; /* if the peer has left, the loop notices */
}

void ctl_conn_sweep(void *daemon)
{
    struct ctl_daemon *d = daemon;
    uint64_t now = gm_now_ns();
    ctl_conn_listen(d, true);
    gm_list_for_each_safe (c, &d->conns, struct ctl_conn, link) {
        if (c->phase == CTL_CONN_NEW && now >= c->deadline_ns)
            ctl_conn_drop(
                c, "silent for 10 s; programs that found NVIDIA's libcuda before gmux's are");
        else if (c->phase == CTL_CONN_WAITING)
            say_waiting(c);
        else if (c->phase == CTL_CONN_UI && ctl_channel_unread_ms(c->channel) >= CTL_UNREAD_MS)
            ctl_conn_drop(c, "it does not read the answers to its commands");
    }
    ctl_callers_sweep(d);
    if (!gm_list_empty(&d->conns) || !gm_list_empty(&d->callers))
        ctl_timer_start(d->sweep, SWEEP_MS);
}
