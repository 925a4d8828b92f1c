/*
 * Messages of the control daemon: it hands over clients and limits, and asks what clients use. It
 * is trusted; but a message that makes no sense ends the connection, and with it the server, rather
 * than being guessed at. report.c has what the daemon is told.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/result.h"
#include "server/server.h"

#define USAGE_BYTES         32768 /* of one answer */
#define USAGE_ELEMENT_BYTES 64    /* at most */

static struct gm_log_topic topic = GM_LOG_TOPIC("link");

static void set_limits(struct srv_server *s, double share_pct, int priority, const char *memory)
{
    s->limits.share_pct = share_pct > 0 && share_pct <= 100 ? share_pct : 100;
    s->limits.priority = priority == 1;
    snprintf(s->limits.memory_text, sizeof(s->limits.memory_text), "%s", memory);
    srv_server_limit_memory(s);
}

static const char *on_setup(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_setup m;
    wire_get_link_setup(&p->body, &m);
    if (s->executor.state != SRV_EXECUTOR_NONE)
        return "a second set-up";
    set_limits(s, m.share_pct, m.priority, m.memory_limits);
    s->multiuser = m.multiuser != 0;
    snprintf(s->pipe_directory, sizeof(s->pipe_directory), "%s", m.pipe_directory);
    srv_say(s, "Startup");
    srv_say(s, "Connecting to control daemon on socket: %s/control", m.pipe_directory);
    srv_say(s, "Initializing server process");
    srv_executor_start(&s->executor);
    return NULL;
}

static void on_client(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_client m;
    wire_get_link_client(&p->body, &m);
    const struct srv_client client = {
        .pid = m.pid,
        .uid = m.uid,
        .gid = m.gid,
        .share_pct = m.share_pct,
        .priority = m.priority,
        .memory_limits = m.memory_limits,
        .command = m.command,
    };
    srv_session_create(s, tp_packet_take_fd(p, 0), &client);
}

static void on_limits(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_limits m;
    wire_get_link_limits(&p->body, &m);
    double share = s->limits.share_pct;
    int priority = s->limits.priority;
    set_limits(s, m.share_pct, m.priority, m.memory_limits);
    if (s->limits.share_pct < share || s->limits.share_pct > share)
        srv_say(s, "Active Threads Percentage set to %.1f", s->limits.share_pct);
    if (s->limits.priority != priority)
        srv_say(s, "Server Priority set to %d", s->limits.priority);
    if (m.running)
        gm_list_for_each (c, &s->sessions, struct srv_session, link)
            srv_session_limit(c);
}

static void on_client_limits(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_client_limits m;
    wire_get_link_client_limits(&p->body, &m);
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->pid == m.pid && c->phase != SRV_DRAINING)
            srv_session_wish(c, m.share_pct, m.priority, m.memory_limits, m.memory_ceiling);
}

static void on_client_group(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_client_group m;
    wire_get_link_client_group(&p->body, &m);
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->pid == m.pid && c->phase != SRV_DRAINING)
            srv_session_place(c, &m);
}

static void on_client_space(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_client_space m;
    wire_get_link_client_space(&p->body, &m);
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->pid == m.pid && c->phase != SRV_DRAINING)
            srv_session_set_space(c, &m);
}

/* --- what clients use ------------------------------------------------------------------------- */

struct usage_page {
    struct srv_server *server;
    uint64_t serial; /* of the question */
    struct wire_enc list;
    uint8_t encoded[USAGE_BYTES];
};

static void send_usage(struct usage_page *u, bool last)
{
    const struct wire_link_usage m = { .clients = { u->encoded, (uint32_t)u->list.size },
                                       .last = last };
    struct wire_enc e = srv_encoder(u->server);
    wire_pack_link_usage(&e, u->serial, &m);
    srv_link_send(u->server, &e);
    wire_enc_init(&u->list, u->encoded, sizeof(u->encoded));
}

static void add_usage(struct usage_page *u, const struct srv_session *c, uint32_t device)
{
    bool real = device < TP_DEVICES;
    struct wire_client_usage m = {
        .pid = c->pid,
        .device = device,
        .memory_limit = UINT64_MAX,
        .share_pct = c->granted_pct,
        .priority = c->granted_priority,
        .failed = c->failed,
    };
    if (real) {
        m.memory_used = c->account.used[srv_device_bytes(device)];
        m.memory_limit = c->account.limit[srv_device_bytes(device)];
    }
    if (u->list.size + USAGE_ELEMENT_BYTES > sizeof(u->encoded))
        send_usage(u, false);
    wire_put_client_usage(&u->list, &m);
}

static void on_usage_ask(struct srv_server *s, uint64_t serial)
{
    struct usage_page u = { .server = s, .serial = serial };
    wire_enc_init(&u.list, u.encoded, sizeof(u.encoded));
    gm_list_for_each (c, &s->sessions, struct srv_session, link) {
        unsigned listed = 0;
        if (c->phase == SRV_DRAINING)
            continue;
        for (uint32_t d = 0; d < s->devices_count; d++)
            if ((c->devices_used >> d & 1) || c->account.used[srv_device_bytes(d)]) {
                add_usage(&u, c, d);
                listed++;
            }
        if (!listed)
            add_usage(&u, c, UINT32_MAX);
    }
    send_usage(&u, true);
}

static void on_terminate(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_terminate m;
    int result = GM_CUDA_NOT_FOUND;
    wire_get_link_terminate(&p->body, &m);
    gm_list_for_each_safe (c, &s->sessions, struct srv_session, link) {
        if (c->pid != m.pid || c->phase == SRV_DRAINING)
            continue;
        result = 0;
        if (c->shared.control)
            srv_session_fail(c, GM_CUDA_MPS_CLIENT_TERMINATED, 0, "terminated by command");
        else
            srv_session_refuse(c, GM_CUDA_MPS_CLIENT_TERMINATED, "terminated by command");
    }
    if (result == 0)
        srv_say(s, "Client termination succeeded.");
    const struct wire_link_terminated answer = { m.pid, result };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_terminated(&e, p->header.serial, &answer);
    srv_link_send(s, &e);
}

static const char *on_packet(struct srv_peer *peer, struct tp_packet *p)
{
    struct srv_server *s = GM_CONTAINER_OF(peer, struct srv_server, link);
    struct wire_link_shutdown shutdown;
    bool set_up = s->executor.state != SRV_EXECUTOR_NONE;

    if (!set_up && p->header.type != WIRE_LINK_SETUP)
        return "a message before the set-up";
    switch (p->header.type) {
    case WIRE_LINK_SETUP:
        return on_setup(s, p);
    case WIRE_LINK_CLIENT:
        on_client(s, p);
        return NULL;
    case WIRE_LINK_CLIENT_PARTITION:
        srv_partition_announce(s, p);
        return NULL;
    case WIRE_LINK_PARTS_ASK:
        srv_partition_describe(s);
        return NULL;
    case WIRE_LINK_LIMITS:
        on_limits(s, p);
        return NULL;
    case WIRE_LINK_CLIENT_LIMITS:
        on_client_limits(s, p);
        return NULL;
    case WIRE_LINK_CLIENT_GROUP:
        on_client_group(s, p);
        return NULL;
    case WIRE_LINK_CLIENT_SPACE:
        on_client_space(s, p);
        return NULL;
    case WIRE_LINK_USAGE_ASK:
        on_usage_ask(s, p->header.serial);
        return NULL;
    case WIRE_LINK_TERMINATE:
        on_terminate(s, p);
        return NULL;
    case WIRE_LINK_SHUTDOWN:
        wire_get_link_shutdown(&p->body, &shutdown);
        srv_say(s, "Server has been notified to shutdown");
        srv_server_stop(s, shutdown.force != 0);
        return NULL;
    default:
        return "a message out of place";
    }
}

/* A client came whose descriptor could not be received. Everybody needs the link, so it stays. */
static const char *on_bare_packet(struct srv_peer *peer, struct tp_packet *p)
{
    struct wire_link_client m;
    if (p->header.type != WIRE_LINK_CLIENT)
        return "descriptors that nobody wants";
    wire_get_link_client(&p->body, &m);
    srv_link_client_gone(GM_CONTAINER_OF(peer, struct srv_server, link), m.pid,
                         "too many descriptors are open");
    return NULL;
}

static void go_on_telling(struct srv_server *s)
{
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->unheard) {
            c->unheard = false;
            srv_session_pace(c);
        }
}

static void on_drained(struct srv_peer *peer)
{
    go_on_telling(GM_CONTAINER_OF(peer, struct srv_server, link));
}

static void on_gone(struct srv_peer *peer, bool broke, const char *why)
{
    struct srv_server *s = GM_CONTAINER_OF(peer, struct srv_server, link);
    if (broke)
        gm_error(&topic, "the control daemon: %s", why);
    s->has_link = false;
    srv_peer_close(peer);
    go_on_telling(s);
    /* No new clients can come; those that are here may finish. */
    if (broke || !s->announced)
        srv_server_stop(s, false);
    else
        srv_relink_begin(s);
}

static void on_closed(struct srv_peer *peer)
{
    srv_relink_closed(GM_CONTAINER_OF(peer, struct srv_server, link));
}

const struct srv_peer_ops srv_link_ops = {
    .sender = WIRE_CONTROL,
    .queue_bytes_max = 8u << 20,
    .packet = on_packet,
    .bare_packet = on_bare_packet,
    .gone = on_gone,
    .closed = on_closed,
    .drained = on_drained,
};
