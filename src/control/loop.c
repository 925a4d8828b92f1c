/*
 * Packets, lines and timers on a libuv loop. See loop.h.
 */
#include "control/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/text.h"
#include "transport/foreign.h"

/* A peer does not read if this many bytes wait for it. */
#define CHANNEL_WAITING_MAX (4u << 20)
/* Packets that are read from a peer before it is the next one's turn. */
#define CHANNEL_BURST 32

struct waiting {
    struct gm_list link;
    int fd;
    size_t size;
    uint8_t data[];
};

struct ctl_channel {
    uv_poll_t poll;
    int fd;
    bool closed;
    bool writing;
    const struct ctl_channel_ops *ops;
    void *owner;
    struct gm_list waiting;
    size_t waiting_bytes;
    uint64_t moved_ns; /* when the peer last read something, or the first packet began to wait */
};

/* One packet at a time is in use, because no callback reads another one. */
static struct tp_packet packet;

static void free_channel(uv_handle_t *h)
{
    free(GM_CONTAINER_OF(h, struct ctl_channel, poll));
}

static void drop_waiting(struct ctl_channel *c, struct waiting *w)
{
    gm_list_remove(&w->link);
    c->waiting_bytes -= w->size;
    /* The socket is a client's, and the server that was to have it may be gone. */
    tp_close_foreign(w->fd);
    free(w);
}

static void on_channel(uv_poll_t *poll, int status, int events);

static void want(struct ctl_channel *c, bool writing)
{
    c->writing = writing;
    uv_poll_start(&c->poll, UV_READABLE | (writing ? UV_WRITABLE : 0), on_channel);
}

static void say_gone(struct ctl_channel *c, int error)
{
    uv_poll_stop(&c->poll);
    c->ops->gone(c->owner, error);
}

static void flush(struct ctl_channel *c)
{
    while (!gm_list_empty(&c->waiting)) {
        struct waiting *w = gm_list_entry(c->waiting.next, struct waiting, link);
        struct wire_enc e = { .data = w->data, .size = w->size, .capacity = w->size };
        int r = tp_send(c->fd, &e, &w->fd, w->fd >= 0);
        if (r == -EAGAIN)
            return;
        drop_waiting(c, w);
        c->moved_ns = gm_now_ns();
        if (r < 0) {
            say_gone(c, r);
            return;
        }
    }
    want(c, false);
}

void ctl_channel_drain(struct ctl_channel *c)
{
    for (int i = 0; i < CHANNEL_BURST && !c->closed; i++) {
        int r = tp_recv_plain(c->fd, &packet);
        if (r == -EAGAIN)
            return;
        if (r <= 0) {
            say_gone(c, r);
            return;
        }
        c->ops->packet(c->owner, &packet);
        tp_packet_discard(&packet);
    }
}

static void on_channel(uv_poll_t *poll, int status, int events)
{
    struct ctl_channel *c = GM_CONTAINER_OF(poll, struct ctl_channel, poll);
    /* The status tells of a state of the socket. Reading says which. */
    if (status < 0 || (events & UV_READABLE))
        ctl_channel_drain(c);
    if (!c->closed && c->writing && (events & UV_WRITABLE))
        flush(c);
}

struct ctl_channel *ctl_channel_create(uv_loop_t *loop, int fd, const struct ctl_channel_ops *ops,
                                       void *owner)
{
    struct ctl_channel *c = calloc(1, sizeof(*c));
    if (!c) {
        gm_close(fd);
        return NULL;
    }
    *c = (struct ctl_channel) { .fd = fd, .ops = ops, .owner = owner };
    gm_list_init(&c->waiting);
    int r = uv_poll_init(loop, &c->poll, fd); /* makes the descriptor non-blocking */
    if (r < 0) {
        gm_close(fd);
        free(c);
        errno = -r;
        return NULL;
    }
    want(c, false);
    return c;
}

void ctl_channel_give(struct ctl_channel *c, const struct ctl_channel_ops *ops, void *owner)
{
    c->ops = ops;
    c->owner = owner;
}

int ctl_channel_send(struct ctl_channel *c, const struct wire_enc *e, int fd)
{
    int r = -EAGAIN;
    if (gm_list_empty(&c->waiting))
        r = tp_send(c->fd, e, &fd, fd >= 0);
    if (r != -EAGAIN) {
        gm_close(fd);
        return r;
    }
    struct waiting *w = NULL;
    if (!e->fatal && c->waiting_bytes + e->size <= CHANNEL_WAITING_MAX)
        w = malloc(sizeof(*w) + e->size);
    if (!w) {
        gm_close(fd);
        return -ENOBUFS;
    }
    if (gm_list_empty(&c->waiting))
        c->moved_ns = gm_now_ns();
    w->fd = fd;
    w->size = e->size;
    memcpy(w->data, e->data, e->size);
    gm_list_append(&c->waiting, &w->link);
    c->waiting_bytes += w->size;
    want(c, true);
    return 0;
}

int ctl_channel_process(const struct ctl_channel *c)
{
    return tp_peer_process(c->fd);
}

size_t ctl_channel_unread(const struct ctl_channel *c)
{
    return c->waiting_bytes;
}

uint64_t ctl_channel_unread_ms(const struct ctl_channel *c)
{
    return c->waiting_bytes ? (gm_now_ns() - c->moved_ns) / GM_NS_PER_MS : 0;
}

static void set_blocking(int fd, bool blocking)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* Closes the channel; with `end` also the connection, which nobody else holds. */
static void close_channel(struct ctl_channel *c, bool end)
{
    /* This takes the socket out of epoll, before another thread may close it. Else the kernel would
     * watch the open file for as long as any process holds it. */
    uv_close((uv_handle_t *)&c->poll, free_channel);
    c->fd = end ? tp_hang_up(c->fd) : tp_close_foreign(c->fd);
    c->closed = true;
    gm_list_for_each_safe (w, &c->waiting, struct waiting, link)
        drop_waiting(c, w);
}

int ctl_channel_hand_over(struct ctl_channel *c, const struct wire_enc *e,
                          struct ctl_channel *given)
{
    int fd = fcntl(given->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* Blocking is a property of the open file, which both descriptors share. */
    set_blocking(given->fd, true);
    int r = ctl_channel_send(c, e, fd);
    if (r < 0)
        set_blocking(given->fd, false);
    else
        close_channel(given, false);
    return r;
}

void ctl_channel_close(struct ctl_channel *c)
{
    if (c && !c->closed)
        close_channel(c, true);
}

/* --- lines ------------------------------------------------------------------------------------ */

#define LINE_MAX_BYTES 1024

struct ctl_lines {
    uv_poll_t poll;
    int fd;
    bool closed;
    bool cutting; /* the rest of a line that was too long is being skipped */
    ctl_line_fn line;
    void *owner;
    size_t used;
    char text[LINE_MAX_BYTES + 1];
};

static void free_lines(uv_handle_t *h)
{
    free(GM_CONTAINER_OF(h, struct ctl_lines, poll));
}

static void finish_line(struct ctl_lines *l)
{
    if (!l->cutting && l->used) {
        l->text[l->used] = '\0';
        gm_text_clean(l->text);
        l->line(l->owner, l->text);
    }
    l->used = 0;
}

static void take_bytes(struct ctl_lines *l, const char *p, size_t n)
{
    for (size_t i = 0; i < n && !l->closed; i++) {
        if (p[i] == '\n') {
            finish_line(l);
            l->cutting = false;
            continue;
        }
        if (l->used == LINE_MAX_BYTES) {
            finish_line(l);
            l->cutting = true;
        }
        if (!l->cutting)
            l->text[l->used++] = p[i] ? p[i] : '?';
    }
}

/* Reads what waits in the pipe, but no more than a pipe can hold. */
void ctl_lines_drain(struct ctl_lines *l)
{
    char buffer[4096];
    for (int i = 0; i < 16 && l && !l->closed; i++) {
        ssize_t n = read(l->fd, buffer, sizeof(buffer));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            uv_poll_stop(&l->poll);
            finish_line(l);
            return;
        }
        take_bytes(l, buffer, (size_t)n);
    }
}

static void on_lines(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    ctl_lines_drain(GM_CONTAINER_OF(poll, struct ctl_lines, poll));
}

struct ctl_lines *ctl_lines_create(uv_loop_t *loop, int fd, ctl_line_fn line, void *owner)
{
    struct ctl_lines *l = calloc(1, sizeof(*l));
    if (!l) {
        gm_close(fd);
        return NULL;
    }
    l->fd = fd;
    l->line = line;
    l->owner = owner;
    int r = uv_poll_init(loop, &l->poll, fd);
    if (r < 0) {
        gm_close(fd);
        free(l);
        errno = -r;
        return NULL;
    }
    uv_poll_start(&l->poll, UV_READABLE, on_lines);
    return l;
}

void ctl_lines_close(struct ctl_lines *l)
{
    if (!l || l->closed)
        return;
    l->closed = true;
    uv_close((uv_handle_t *)&l->poll, free_lines);
    gm_close(l->fd);
}

/* --- timers ----------------------------------------------------------------------------------- */

struct ctl_timer {
    uv_timer_t timer;
    void (*fire)(void *owner);
    void *owner;
};

static void free_timer(uv_handle_t *h)
{
    free(GM_CONTAINER_OF(h, struct ctl_timer, timer));
}

static void on_timer(uv_timer_t *timer)
{
    struct ctl_timer *t = GM_CONTAINER_OF(timer, struct ctl_timer, timer);
    t->fire(t->owner);
}

struct ctl_timer *ctl_timer_create(uv_loop_t *loop, void (*fire)(void *owner), void *owner)
{
    struct ctl_timer *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    uv_timer_init(loop, &t->timer); /* cannot fail */
    t->fire = fire;
    t->owner = owner;
    return t;
}

void ctl_timer_start(struct ctl_timer *t, uint64_t ms)
{
    uv_update_time(t->timer.loop);
    uv_timer_start(&t->timer, on_timer, ms, 0);
}

void ctl_timer_stop(struct ctl_timer *t)
{
    uv_timer_stop(&t->timer);
}

void ctl_timer_close(struct ctl_timer *t)
{
    if (t && !uv_is_closing((uv_handle_t *)&t->timer))
        uv_close((uv_handle_t *)&t->timer, free_timer);
}
