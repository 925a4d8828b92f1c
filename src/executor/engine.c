/*
 * The server's orders, each answered with its serial; when and by which thread they are carried out is order.c's. The server is trusted; what it passes on
 * from clients (images) is not, and goes to the device as it is.
 */
#include "executor/order.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static int send_done(struct exe_engine *e, uint64_t serial, int result)
{
    struct wire_enc enc;
    const struct wire_engine_done m = { .result = result };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_done(&enc, serial, &m);
    return tp_send(e->server, &enc, NULL, 0);
}

/* --- orders of a client; the main thread, or a worker ---------------------------------------------------------------- */

/* CUresult each; what has been removed meanwhile is an invalid handle. */

static int do_add(struct exe_order *o)
{
    struct wire_engine_client_add m;
    wire_get_engine_client_add(&o->body, &m);
    if (!o->client)
        return GM_CUDA_INVALID_HANDLE;
    int result = exe_client_open(o->client, &m, o->fds);
    /* Under a second executor the ring is left alone until modules and memory are back; engine_client_set comes
     * last. */
    if (result != 0 || m.resumed)
        return result;
    result = exe_client_start(o->client);
    if (result != 0)
        o->leaves = !exe_client_end(o->client);
    return result;
}

static int do_set(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_client_set m;
    uint32_t multiprocessors[DEV_DEVICES];
    wire_get_engine_client_set(&o->body, &m);
    if (!o->client)
        return GM_CUDA_INVALID_HANDLE;
    exe_multiprocessors(&m.multiprocessors, multiprocessors);
    e->ops->client_set_share(o->client->dev, m.share_pct, multiprocessors, m.priority);
    return exe_client_start(o->client);
}

static int do_device(struct exe_order *o)
{
    struct wire_engine_client_device m;
    wire_get_engine_client_device(&o->body, &m);
    return o->client ? exe_client_device(o->client, m.device) : GM_CUDA_INVALID_HANDLE;
}

static int do_peer(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_client_peer m;
    wire_get_engine_client_peer(&o->body, &m);
    if (!o->client || m.device >= e->devices || m.peer >= e->devices)
        return GM_CUDA_INVALID_HANDLE;
    return e->ops->client_peer ? e->ops->client_peer(o->client->dev, m.device, m.peer, m.enabled != 0) : 0;
}

/* Removing what is not there succeeds, here and below: the server repeats orders that an earlier executor may or may
 * not have carried out. */
static int do_remove(struct exe_order *o)
{
    if (o->client)
        o->leaves = !exe_client_end(o->client);
    return 0;
}

/* One that was stopped gets no memory any more, and nothing is written to what it had. */
static bool has_memory(const struct exe_client *c)
{
    return c && !c->stopped;
}

static int do_map(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_map m;
    wire_get_engine_map(&o->body, &m);
    if (!has_memory(o->client))
        return GM_CUDA_INVALID_HANDLE;
    if (o->fds_count == 0)
        return e->ops->memory_map(o->client->dev, m.address, m.size);
    if (e->ops->memory_attach && m.device < e->devices)
        return e->ops->memory_attach(o->client->dev, m.address, m.size, o->fds[0], 0, m.device, 0);
    return GM_CUDA_INVALID_HANDLE;
}

static int do_attach(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_attach m;
    wire_get_engine_attach(&o->body, &m);
    if (!has_memory(o->client) || !e->ops->memory_attach || m.device >= e->devices)
        return GM_CUDA_INVALID_HANDLE;
    return e->ops->memory_attach(o->client->dev, m.address, m.size, o->fds[0], m.offset, m.device, m.access);
}

static int do_unmap(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_unmap m;
    wire_get_engine_unmap(&o->body, &m);
    if (o->client)
        e->ops->memory_unmap(o->client->dev, m.address, m.size);
    return 0;
}

static int do_array_memory(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_array_memory m;
    wire_get_engine_array_memory(&o->body, &m);
    if (!o->client || !exe_client_uses(o->client, m.device))
        return GM_CUDA_INVALID_HANDLE;
    return e->ops->array_memory ? e->ops->array_memory(o->client->dev, m.device, m.bytes) : GM_CUDA_NOT_SUPPORTED;
}

static int do_trim(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_trim m;
    wire_get_engine_trim(&o->body, &m);
    if (o->client && o->client->dev && e->ops->memory_trim)
        e->ops->memory_trim(o->client->dev, m.device);
    return 0;
}

static struct exe_module *find_module(struct exe_client *c, uint32_t id)
{
    pthread_mutex_lock(&c->modules_lock);
    struct exe_module *m = exe_client_module(c, id);
    pthread_mutex_unlock(&c->modules_lock);
    return m;
}

/* Loads the image; on success the module is in the client's table and `info` describes it. */
static int load(struct exe_engine *e, struct exe_client *c, const struct wire_engine_module_load *m, int fd,
                struct dev_module_info *info)
{
    if (!c || find_module(c, m->module))
        return GM_CUDA_INVALID_HANDLE;
    int result = exe_client_device(c, m->device);
    if (result != 0)
        return result;
    if (m->size == 0 || tp_memfd_check(fd, m->size, true) < 0)
        return GM_CUDA_INVALID_IMAGE;
    GM_AUTO_FREE struct exe_module *module = calloc(1, sizeof(*module));
    void *image = tp_memfd_map(fd, m->size, false);
    if (!image || !module) {
        if (image)
            munmap(image, m->size);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    module->id = m->module;
    module->device = m->device;
    result = e->ops->module_load(c->dev, m->device, image, m->size, m->kind, &module->dev, info);
    munmap(image, m->size);
    if (result != 0)
        return result;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules[module->id % EXE_MODULE_BUCKETS], &module->link);
    pthread_mutex_unlock(&c->modules_lock);
    module = NULL;
    return 0;
}

/* False while the device answers the client: it may be about that module. */
static bool unload(struct exe_client *c, uint32_t id)
{
    pthread_mutex_lock(&c->modules_lock);
    bool now = !atomic_load_explicit(&c->asking, memory_order_relaxed);
    c->awaited |= !now;
    struct exe_module *m = now ? exe_client_module(c, id) : NULL;
    if (m)
        gm_list_remove(&m->link);
    pthread_mutex_unlock(&c->modules_lock);
    if (m)
        c->engine->ops->module_unload(m->dev);
    free(m);
    return now;
}

static int do_load(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_module_load m;
    wire_get_engine_module_load(&o->body, &m);
    int result = load(e, o->client, &m, o->fds[0], &o->info);
    if (result != 0)
        return result;
    o->info_fd = tp_memfd_from_bytes("gmux-module-info", o->info.info.data, o->info.info.size);
    if (o->info_fd >= 0)
        return 0;
    gm_error(&topic, "module information: %s", strerror(-o->info_fd));
    (void)unload(o->client, m.module); /* or it goes with the client */
    return GM_CUDA_OUT_OF_MEMORY;
}

static int do_place(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_module_place m;
    wire_get_engine_module_place(&o->body, &m);
    struct exe_module *module = has_memory(o->client) ? find_module(o->client, m.module) : NULL;
    return module ? e->ops->module_place(module->dev, m.globals_address, m.initialise != 0) : GM_CUDA_INVALID_HANDLE;
}

static int do_unload(struct exe_order *o)
{
    struct wire_engine_module_unload m;
    wire_get_engine_module_unload(&o->body, &m);
    o->again = o->client && !unload(o->client, m.module);
    return 0;
}

static int carry_out(struct exe_engine *e, struct exe_order *o)
{
    switch (o->type) {
    case 0:
    case WIRE_ENGINE_CLIENT_STOP:
        if (o->client)
            exe_client_stop(o->client);
        return 0;
    case WIRE_ENGINE_CLIENT_ADD:
        return do_add(o);
    case WIRE_ENGINE_CLIENT_SET:
        return do_set(e, o);
    case WIRE_ENGINE_CLIENT_DEVICE:
        return do_device(o);
    case WIRE_ENGINE_CLIENT_PEER:
        return do_peer(e, o);
    case WIRE_ENGINE_CLIENT_REMOVE:
        return do_remove(o);
    case WIRE_ENGINE_MAP:
        return do_map(e, o);
    case WIRE_ENGINE_ATTACH:
        return do_attach(e, o);
    case WIRE_ENGINE_UNMAP:
        return do_unmap(e, o);
    case WIRE_ENGINE_ARRAY_MEMORY:
        return do_array_memory(e, o);
    case WIRE_ENGINE_TRIM:
        return do_trim(e, o);
    case WIRE_ENGINE_MODULE_LOAD:
        return do_load(e, o);
    case WIRE_ENGINE_MODULE_PLACE:
        return do_place(e, o);
    default:
        return do_unload(o);
    }
}

void exe_order_work(struct exe_engine *e, struct exe_order *o)
{
    const struct wire_dec body = o->body;
    o->again = false;
    o->info_fd = -1;
    o->result = carry_out(e, o);
    o->body = body;
}

static int answer_load(struct exe_engine *e, struct exe_order *o)
{
    struct wire_enc enc;
    GM_AUTO_FREE char *log = o->info.log;
    GM_AUTO_FD int info_fd = o->info_fd;
    if (log && strlen(log) > 16384)
        log[16384] = '\0';
    const struct wire_engine_module_loaded answer = {
        .result = o->result, .globals_size = o->info.globals_size, .globals_align = o->info.globals_align, .log = log
    };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_module_loaded(&enc, o->serial, &answer);
    return tp_send(e->server, &enc, &info_fd, o->result == 0 ? 1 : 0);
}

int exe_order_answer(struct exe_engine *e, struct exe_order *o)
{
    return o->type == WIRE_ENGINE_MODULE_LOAD ? answer_load(e, o) : send_done(e, o->serial, o->result);
}

/* --- the main thread ---------------------------------------------------------------------------------------------------- */

/* All of them begin with its number. */
static int on_order(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_dec body = p->body;
    struct exe_order o = { .client = find_client(e, wire_get_u32(&body)),
                           .serial = p->header.serial,
                           .type = p->header.type,
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
    return result == 0 ? on_order(e, p) : send_done(e, p->header.serial, result);
}

/* 0 or -errno. */
static int handle(struct exe_engine *e, struct tp_packet *p)
{
    const struct wire_message_info *info = wire_message_info(p->header.type);
    struct wire_dec body = p->body;

    if (!info || info->receiver != WIRE_EXECUTOR || p->fds_count < info->fds_min || p->fds_count > info->fds ||
        !info->check(&body)) {
        gm_error(&topic, "the server sent a message that is none (type %u)", p->header.type);
        return -EBADMSG;
    }
    switch (p->header.type) {
    case WIRE_ENGINE_CLIENT_ADD:
        return on_client_add(e, p);
    case WIRE_ENGINE_CLIENT_SET:
    case WIRE_ENGINE_CLIENT_DEVICE:
    case WIRE_ENGINE_CLIENT_PEER:
    case WIRE_ENGINE_CLIENT_STOP:
    case WIRE_ENGINE_CLIENT_REMOVE:
    case WIRE_ENGINE_MAP:
    case WIRE_ENGINE_ATTACH:
    case WIRE_ENGINE_UNMAP:
    case WIRE_ENGINE_ARRAY_MEMORY:
    case WIRE_ENGINE_TRIM:
    case WIRE_ENGINE_MODULE_LOAD:
    case WIRE_ENGINE_MODULE_PLACE:
    case WIRE_ENGINE_MODULE_UNLOAD:
        return on_order(e, p);
    default:
        return -EBADMSG;
    }
}

void exe_engine_device_fault(void *arg, struct dev_client *dev, int result, uint64_t address, const char *text)
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

/* A client has failed, a worker is done, or what an order waited for is over. */
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
    struct pollfd polled[] = { { .fd = e->server, .events = POLLIN }, { .fd = e->failures, .events = POLLIN } };
    int r = send_ready(e);

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
            return 0; /* the server is gone, and with it the reason to be */
        if (r == 1) {
            r = handle(e, &packet_in);
            tp_packet_finish(&packet_in);
        }
    }
    gm_error(&topic, "server socket: %s", strerror(-r));
    return 1;
}
