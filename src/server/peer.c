/*
 * One packet buffer serves all peers: the loop has one thread, and each packet is finished before
 * the next one is received.
 */
#include "server/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "transport/foreign.h"

/* how many packets of one peer are handled, and for how long, before others get their turn */
#define TURN    16u
#define TURN_NS 500000u

struct queued {
    struct gm_list link;
    int fds[TP_FDS_MAX];
    unsigned fds_count;
    size_t size;
    uint8_t data[];
};

static struct tp_packet packet_in;

static void on_poll(uv_poll_t *handle, int status, int events);

static void queued_free(struct queued *q)
{
    gm_list_remove(&q->link);
    for (unsigned i = 0; i < q->fds_count; i++)
        gm_close(q->fds[i]);
    free(q);
}

bool srv_peer_is_open(const struct srv_peer *p)
{
    return p->fd >= 0;
}

static void update_events(struct srv_peer *p)
{
    int events = UV_DISCONNECT;
    if (!p->paused || p->gone)
        events |= UV_READABLE;
    if (!gm_list_empty(&p->queue))
        events |= UV_WRITABLE;
    uv_poll_start(&p->poll, events, on_poll);
}

int srv_peer_open(struct srv_peer *p, uv_loop_t *loop, int fd, const struct srv_peer_ops *ops)
{
    memset(p, 0, sizeof(*p));
    p->ops = ops;
    p->fd = -1;
    gm_list_init(&p->queue);
    int r = uv_poll_init(loop, &p->poll, fd); /* makes it non-blocking */
    if (r < 0) {
        tp_hang_up(fd);
        return r;
    }
    p->fd = fd;
    update_events(p);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct srv_peer *p = GM_CONTAINER_OF((uv_poll_t *)(void *)handle, struct srv_peer, poll);
    p->ops->closed(p);
}

void srv_peer_close(struct srv_peer *p)
{
    if (!srv_peer_is_open(p))
        return;
    uv_poll_stop(&p->poll);
    uv_close((uv_handle_t *)&p->poll, on_closed);
    p->fd = tp_hang_up(p->fd);
    gm_list_for_each_safe (q, &p->queue, struct queued, link)
        queued_free(q);
}

static void drop(struct srv_peer *p, bool broke, const char *why)
{
    p->ops->gone(p, broke, why);
}

/* Sends what the socket takes. 0 when the queue is empty, -EAGAIN, or an error. */
static int flush(struct srv_peer *p)
{
    while (!gm_list_empty(&p->queue)) {
        struct queued *q = gm_list_entry(p->queue.next, struct queued, link);
        const struct wire_enc e = { .data = q->data, .size = q->size, .capacity = q->size };
        int r = tp_send(p->fd, &e, q->fds, q->fds_count);
        if (r < 0)
            return r;
        p->queue_bytes -= q->size + sizeof(*q);
        queued_free(q);
    }
    return 0;
}

/* Gives one packet to the owner, with or (`bare`) without its descriptors. False: the peer is not
 * to be read any more. */
static bool deliver(struct srv_peer *p, struct tp_packet *packet, bool bare)
{
    const struct wire_message_info *info = wire_message_info(packet->header.type);
    struct wire_dec body = packet->body;
    const char *why = NULL;

    if (!info || info->sender != p->ops->sender || info->receiver != WIRE_SERVER)
        why = "a message that is not for this socket";
    else if (!bare && (packet->fds_count < info->fds_min || packet->fds_count > info->fds))
        why = "a message with the wrong number of descriptors";
    else if (!info->check(&body))
        why = "a malformed message";
    else
        why = bare ? p->ops->bare_packet(p, packet) : p->ops->packet(p, packet);
    tp_packet_discard(packet);
    if (why && srv_peer_is_open(p))
        drop(p, true, why);
    return srv_peer_is_open(p) && !p->paused && !p->gone;
}

static void receive(struct srv_peer *p)
{
    uint64_t end = gm_now_ns() + TURN_NS / (p->sharers ? GM_MAX(*p->sharers, 1u) : 1u);
    for (unsigned i = 0; i < TURN && (i == 0 || gm_now_ns() < end); i++) {
        int r = tp_recv(p->fd, &packet_in);
        if (r == -EAGAIN)
            return;
        if (r == 0 || r == -ECONNRESET) {
            drop(p, false, "the connection was closed");
            return;
        }
        bool bare = r == -EMFILE && p->ops->bare_packet;
        if (r < 0 && !bare) {
            drop(p, true, r == -EBADMSG ? "a malformed packet" : strerror(-r));
            return;
        }
        if (bare)
            tp_recv_skip(p->fd);
        if (!deliver(p, &packet_in, bare))
            return;
    }
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct srv_peer *p = GM_CONTAINER_OF(handle, struct srv_peer, poll);
    if (p->gone) {
        drop(p, p->slow, p->slow ? "it does not take its answers" : "the connection was closed");
        return;
    }
    if (status < 0) {
        drop(p, false, uv_strerror(status));
        return;
    }
    if (events & UV_WRITABLE) {
        int r = flush(p);
        if (r < 0 && r != -EAGAIN) {
            drop(p, false, strerror(-r));
            return;
        }
        update_events(p);
        if (r == 0 && p->ops->drained)
            p->ops->drained(p);
        if (!srv_peer_is_open(p))
            return;
    }
    if (!p->paused && (events & (UV_READABLE | UV_DISCONNECT)))
        receive(p);
    else if (events & UV_DISCONNECT)
        drop(p, false, "the connection was closed");
}

/* The owner may be in the middle of something. So this hangs up, and the loop then tells the
 * owner. */
static void give_up(struct srv_peer *p, bool slow)
{
    p->gone = true;
    p->slow = slow;
    shutdown(p->fd, SHUT_RDWR);
    update_events(p);
}

static void enqueue(struct srv_peer *p, const struct wire_enc *e, const int *fds,
                    unsigned fds_count)
{
    struct queued *q = NULL;
    if (p->queue_bytes + e->size + sizeof(*q) <= p->ops->queue_bytes_max)
        q = calloc(1, sizeof(*q) + e->size);
    if (q) {
        gm_list_init(&q->link);
        q->size = e->size;
        memcpy(q->data, e->data, e->size);
        for (unsigned i = 0; i < fds_count; i++) {
            int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
            if (copy < 0) {
                queued_free(q);
                q = NULL;
                break;
            }
            q->fds[q->fds_count++] = copy;
        }
    }
    if (q) {
        gm_list_append(&p->queue, &q->link);
        p->queue_bytes += q->size + sizeof(*q);
        update_events(p);
    } else {
        give_up(p, true);
    }
}

bool srv_peer_is_behind(const struct srv_peer *p)
{
    return srv_peer_is_open(p) && !gm_list_empty(&p->queue);
}

void srv_peer_send(struct srv_peer *p, const struct wire_enc *e, const int *fds, unsigned fds_count)
{
    if (!srv_peer_is_open(p) || p->gone)
        return;
    if (gm_list_empty(&p->queue)) {
        int r = tp_send(p->fd, e, fds, fds_count);
        if (r == 0)
            return;
        if (r != -EAGAIN) {
            /* A program may end without waiting for its last answers. */
            give_up(p, false);
            return;
        }
    }
    enqueue(p, e, fds, fds_count);
}

void srv_peer_pause(struct srv_peer *p, bool pause)
{
    if (!srv_peer_is_open(p) || p->paused == pause)
        return;
    p->paused = pause;
    update_events(p);
}
