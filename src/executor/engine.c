/*
 * The main thread takes the server's messages. Each is an order, which is answered with its serial.
 * work.c has what an order does; order.c decides when and by which thread it is carried out.
 */
#include "executor/order.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/result.h"
#include "transport/memfd.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("engine");

/* Main thread only. */
static struct tp_packet packet_in;
static uint8_t packet_out[32768];

static struct exe_client *find_client(struct exe_engine *e, uint32_t id)
{
    gm_list_for_each (c, &e->clients, struct exe_client, link)
        if (c->id == id)
            return c;
    return NULL;
}

/* All orders begin with the client's number. */
static int on_order(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_dec body = p->body;
    struct exe_order o = { .client = find_client(e, wire_get_u32(&body)),
                           .serial = p->header.serial,
                           .type = p->header.type,
                           .kind = exe_order_kind(p->header.type),
                           .body = p->body,
                           .fds_count = p->fds_count };
    memcpy(o.fds, p->fds, sizeof(o.fds));
    gm_list_init(&o.link);
    int r = exe_order_take(e, &o);
    p->fds_count = o.fds_count;
    return r;
}

static int on_client_add(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_dec body = p->body;
    struct wire_engine_client_add m;
    struct exe_client *c;
    wire_get_engine_client_add(&body, &m);
    int result = find_client(e, m.client) ? GM_CUDA_INVALID_VALUE : exe_client_create(e, &m, &c);
    return result == 0 ? on_order(e, p) : exe_order_done(e, p->header.serial, result);
}

/* 0 or -errno. */
static int handle(struct exe_engine *e, struct tp_packet *p)
{
    const struct wire_message_info *info = wire_message_info(p->header.type);
    struct wire_dec body = p->body;

    if (!info || info->receiver != WIRE_EXECUTOR || p->fds_count < info->fds_min ||
        p->fds_count > info->fds || !info->check(&body) || !exe_order_kind(p->header.type)) {
        gm_error(&topic, "the server sent a message that is none (type %u)", p->header.type);
        return -EBADMSG;
    }
    return p->header.type == WIRE_ENGINE_CLIENT_ADD ? on_client_add(e, p) : on_order(e, p);
}

void exe_engine_device_fault(void *arg, struct dev_client *dev, int result, uint64_t address,
                             const char *text)
{
    struct exe_engine *e = arg;
    pthread_mutex_lock(&e->clients_lock); /* keeps the client from being destroyed meanwhile */
    gm_list_for_each (c, &e->clients, struct exe_client, link)
        if (c->dev == dev) {
            exe_client_fail(c, result, address, text);
            break;
        }
    pthread_mutex_unlock(&e->clients_lock);
}

/* Somebody has woken the main thread (engine->failures). */
static int look_around(struct exe_engine *e)
{
    uint64_t count;
    if (read(e->failures, &count, sizeof(count)) != sizeof(count))
        return 0;
    gm_list_for_each (c, &e->clients, struct exe_client, link)
        if (atomic_load_explicit(&c->failed, memory_order_acquire))
            exe_order_stop(e, c);
    return exe_orders_go_on(e);
}

static void put_device(struct wire_enc *enc, const struct dev_info *i)
{
    const struct wire_device d = {
        .name = i->name,
        .uuid = { i->uuid, sizeof(i->uuid) },
        .pci_domain = i->pci_domain,
        .pci_bus = i->pci_bus,
        .pci_device = i->pci_device,
        .memory_total = i->memory_total,
        .multiprocessors = i->multiprocessors,
        .multiprocessors_granted = i->multiprocessors,
        .multiprocessors_step = i->multiprocessors_step,
        .multiprocessors_shared = i->multiprocessors_shared,
        .priorities = i->priorities,
        .attributes = { i->attributes, sizeof(i->attributes) },
        .limits = { i->limits, sizeof(i->limits) },
    };
    wire_put_device(enc, &d);
}

static int send_traits(struct exe_engine *e)
{
    struct wire_enc enc;
    const struct wire_engine_traits m = { .guarantees = e->ops->client_set_group != NULL };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_traits(&enc, 0, &m);
    return tp_send(e->server, &enc, NULL, 0);
}

static int send_ready(struct exe_engine *e)
{
    const struct dev_info *i = e->info;
    uint8_t encoded[24576];
    struct wire_enc enc;
    wire_enc_init(&enc, encoded, sizeof(encoded));
    for (uint32_t n = 0; n < e->devices; n++)
        put_device(&enc, e->ops->info(e->dev, n));
    if (enc.fatal)
        return -EMSGSIZE;
    const struct wire_engine_ready m = { .result = 0,
                                         .reason = NULL,
                                         .completes_always = i->completes_always,
                                         .memory_apart = i->memory_apart,
                                         .devices = { encoded, (uint32_t)enc.size } };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_ready(&enc, 0, &m);
    return tp_send(e->server, &enc, NULL, 0);
}

int exe_engine_run(struct exe_engine *e)
{
    struct pollfd polled[] = { { .fd = e->server, .events = POLLIN },
                               { .fd = e->failures, .events = POLLIN } };
    int r = send_traits(e);
    if (r >= 0)
        r = send_ready(e);

    while (r == 0) {
        polled[0].events = exe_orders_are_many(e) ? 0 : POLLIN;
        if (poll(polled, GM_ARRAY_LEN(polled), -1) < 0 && errno != EINTR)
            return 1;
        if (polled[1].revents)
            r = look_around(e);
        if (!polled[0].revents || r != 0)
            continue;
        r = tp_recv(e->server, &packet_in);
        if (r == 0)
            return 0; /* the server is gone: nobody needs this process any more */
        if (r == 1) {
            r = handle(e, &packet_in);
            tp_packet_finish(&packet_in);
        }
    }
    if (r == -EPIPE || r == -ECONNRESET)
        return 0; /* gone while it was being answered */
    gm_error(&topic, "server socket: %s", strerror(-r));
    return 1;
}
