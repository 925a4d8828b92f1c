/*
 * The door's socket and its visitors; and the other side, adopting an object that another server
 * has given.
 */
#include "server/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "server/object.h"
#include "server/serve.h"
#include "server/server.h"
#include "transport/foreign.h"

#define VISITORS_MAX 512u

struct srv_visitor {
    struct gm_list link;
    struct srv_server *server;
    struct srv_peer peer;
    struct srv_object *object; /* NULL: the visitor has not asked yet */
};

/* --- visitors --------------------------------------------------------------------------------- */

static void visitor_end(struct srv_visitor *v)
{
    gm_list_remove(&v->link);
    gm_list_init(&v->link);
    v->server->door.visitors_count--;
    if (v->object)
        srv_object_close(v->object);
    v->object = NULL;
    srv_peer_close(&v->peer);
}

static void on_gone(struct srv_peer *p, bool broke GM_UNUSED, const char *why GM_UNUSED)
{
    visitor_end(GM_CONTAINER_OF(p, struct srv_visitor, peer));
}

static void on_closed(struct srv_peer *p)
{
    free(GM_CONTAINER_OF(p, struct srv_visitor, peer));
}

static const char *on_packet(struct srv_peer *p, struct tp_packet *packet)
{
    struct srv_visitor *v = GM_CONTAINER_OF(p, struct srv_visitor, peer);
    struct wire_object_fetch m;
    if (packet->header.type != WIRE_OBJECT_FETCH || v->object)
        return "a message that no visitor sends";
    wire_get_object_fetch(&packet->body, &m);
    struct srv_object *o = srv_object_for_visitor(v->server, m.token.data, m.token.size);
    struct wire_object_fetched answer = { .result = GM_CUDA_INVALID_VALUE };
    if (o) {
        v->object = srv_object_open(o);
        answer = (struct wire_object_fetched) { .host = o->host,
                                                .device = o->device,
                                                .offset = o->offset,
                                                .size = o->size,
                                                .skip = o->skip,
                                                .length = o->length };
    }
    struct wire_enc e = srv_encoder(v->server);
    wire_pack_object_fetched(&e, packet->header.serial, &answer);
    srv_peer_send(p, &e, o ? &o->fd : NULL, o ? 1 : 0);
    return NULL;
}

static const struct srv_peer_ops visitor_ops = {
    .sender = WIRE_SERVER,
    .queue_bytes_max = 8192,
    .packet = on_packet,
    .gone = on_gone,
    .closed = on_closed,
};

static void let_in(struct srv_server *s, int fd)
{
    struct tp_peer peer;
    struct srv_visitor *v = NULL;
    if (tp_peer(fd, &peer) == 0 && peer.uid == geteuid() && s->door.visitors_count < VISITORS_MAX)
        v = calloc(1, sizeof(*v));
    if (!v) {
        tp_hang_up(fd);
        return;
    }
    v->server = s;
    if (srv_peer_open(&v->peer, &s->loop, fd, &visitor_ops) < 0) {
        free(v);
        return;
    }
    gm_list_append(&s->door.visitors, &v->link);
    s->door.visitors_count++;
}

/* --- the door --------------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events GM_UNUSED)
{
    struct srv_server *s = GM_CONTAINER_OF(poll, struct srv_server, door.poll);
    int fd = status == 0 ? accept4(s->door.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    if (fd >= 0)
        let_in(s, fd);
    /* Else the loop would be told of the connection again and again. */
    else if (status < 0 || errno == EMFILE || errno == ENFILE)
        uv_poll_stop(poll);
}

void srv_door_init(struct srv_door *d)
{
    d->fd = -1;
    gm_list_init(&d->visitors);
}

int srv_door_open(struct srv_server *s, uint8_t *token)
{
    struct srv_door *d = &s->door;
    if (d->fd < 0) {
        if (getrandom(d->name, sizeof(d->name), 0) != (ssize_t)sizeof(d->name))
            return GM_CUDA_OPERATING_SYSTEM;
        GM_AUTO_FD int fd = tp_door_listen(d->name);
        if (fd < 0 || uv_poll_init(&s->loop, &d->poll, fd) < 0)
            return GM_CUDA_OPERATING_SYSTEM;
        uv_poll_start(&d->poll, UV_READABLE, on_poll);
        uv_unref((uv_handle_t *)&d->poll);
        d->fd = gm_take_fd(&fd);
    }
    memcpy(token, d->name, sizeof(d->name));
    return GM_CUDA_SUCCESS;
}

static void on_door_closed(uv_handle_t *handle)
{
    struct srv_door *d = GM_CONTAINER_OF((uv_poll_t *)(void *)handle, struct srv_door, poll);
    d->fd = gm_close(d->fd);
}

void srv_door_close(struct srv_server *s)
{
    gm_list_for_each_safe (v, &s->door.visitors, struct srv_visitor, link)
        visitor_end(v);
    if (s->door.fd < 0)
        return;
    uv_poll_stop(&s->door.poll);
    uv_close((uv_handle_t *)&s->door.poll, on_door_closed);
}

/* --- the other side --------------------------------------------------------------------------- */

/* Reads what another server has answered. NULL: there is nothing, or it is not to be believed. */
static struct srv_object *read_fetched(struct srv_session *c, const struct wire_object_adopt *m,
                                       struct tp_packet *p, int *result)
{
    struct wire_dec body = p->body;
    struct wire_object_fetched f;
    const struct wire_message_info *info = wire_message_info(WIRE_OBJECT_FETCHED);
    *result = GM_CUDA_INVALID_VALUE;
    if (p->header.type != WIRE_OBJECT_FETCHED || !info->check(&body))
        return NULL;
    wire_get_object_fetched(&p->body, &f);
    if (f.result != 0 || p->fds_count != 1)
        return NULL;
    return srv_object_adopt(c, &f, m->token.data, tp_packet_take_fd(p, 0), result);
}

const char *srv_on_object_adopt(struct srv_session *c, const struct wire_object_adopt *m,
                                struct tp_packet *p, uint64_t serial)
{
    static struct tp_packet answer;
    struct srv_server *s = c->server;
    struct tp_peer peer;
    struct srv_object *o = NULL;
    int r = c->failed ? c->failed : GM_CUDA_INVALID_VALUE;
    int fd = tp_packet_take_fd(p, 0);
    bool good = !c->failed && s->private_mode && !s->memory_apart &&
                m->token.size == SRV_TOKEN_BYTES && tp_peer(fd, &peer) == 0 &&
                peer.uid == geteuid() && tp_make_nonblocking(fd) == 0;
    if (good && tp_recv(fd, &answer) == 1) {
        o = read_fetched(c, m, &answer, &r);
        tp_packet_discard(&answer);
    }
    if (o)
        o->door = fd;
    else
        tp_hang_up(fd);
    srv_object_answer_adopted(c, serial, o, r);
    return NULL;
}
