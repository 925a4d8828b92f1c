/*
 * The server's orders, one after the other, each answered with its serial. The server is trusted; what it passes on
 * from clients (images) is not, and goes to the device as it is.
 */
#include "executor/executor.h"

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

/* --- orders that wait --------------------------------------------------------------------------------------------- */

/* What a handler returns instead of an answer: not now. */
#define LATER 1

struct order {
    struct gm_list link; /* engine->later, oldest first */
    struct tp_packet packet;
};

/* A copy of `p`, which is emptied, waits from now on. 0 or -errno. */
static int put_off(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_enc enc;
    struct order *o = malloc(sizeof(*o));
    if (!o)
        return -ENOMEM;
    gm_list_init(&o->link);
    memcpy(&o->packet, p, sizeof(*p));
    p->fds_count = 0;
    gm_list_append(&e->later, &o->link);
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_later(&enc, o->packet.header.serial, &(struct wire_engine_later) { 0 });
    return tp_send(e->server, &enc, NULL, 0);
}

static int handle(struct exe_engine *e, struct tp_packet *p);

/* Those that still cannot be carried out stay. */
static int take_up(struct exe_engine *e)
{
    int r = 0;
    gm_list_for_each_safe (o, &e->later, struct order, link) {
        o->packet.header = wire_dec_begin(&o->packet.body, o->packet.data, o->packet.size);
        r = handle(e, &o->packet);
        if (r == LATER)
            continue;
        tp_packet_finish(&o->packet);
        gm_list_remove(&o->link);
        free(o);
        if (r < 0)
            return r;
    }
    return 0;
}

static int send_done(struct exe_engine *e, uint64_t serial, int result)
{
    struct wire_enc enc;
    const struct wire_engine_done m = { .result = result };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_done(&enc, serial, &m);
    return tp_send(e->server, &enc, NULL, 0);
}

static int on_client_add(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_client_add m;
    struct exe_client *c = NULL;
    wire_get_engine_client_add(&p->body, &m);
    int result = find_client(e, m.client) ? GM_CUDA_INVALID_VALUE : exe_client_create(e, &m, p, &c);
    /* Under a second executor the ring is left alone until modules and memory are back; engine_client_set comes
     * last. */
    if (result == 0 && !m.resumed) {
        result = exe_client_start(c);
        if (result != 0)
            exe_client_destroy(c);
    }
    return send_done(e, p->header.serial, result);
}

static int on_client_set(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_client_set m;
    wire_get_engine_client_set(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    int result = GM_CUDA_INVALID_HANDLE;
    if (c) {
        uint32_t multiprocessors[DEV_DEVICES];
        exe_multiprocessors(&m.multiprocessors, multiprocessors);
        e->ops->client_set_share(c->dev, m.share_pct, multiprocessors, m.priority);
        result = exe_client_start(c);
    }
    return send_done(e, p->header.serial, result);
}

static int on_client_device(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_client_device m;
    wire_get_engine_client_device(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    return send_done(e, p->header.serial, c ? exe_client_device(c, m.device) : GM_CUDA_INVALID_HANDLE);
}

static int on_client_peer(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_client_peer m;
    wire_get_engine_client_peer(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    int result = GM_CUDA_INVALID_HANDLE;
    if (c && m.device < e->devices && m.peer < e->devices)
        result = e->ops->client_peer ? e->ops->client_peer(c->dev, m.device, m.peer, m.enabled != 0) : 0;
    return send_done(e, p->header.serial, result);
}

/* Removing what is not there succeeds, here and below: the server repeats orders that an earlier executor may or may
 * not have carried out. */
static int on_client_remove(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_client_remove m;
    wire_get_engine_client_remove(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    if (c && !exe_client_stop(c))
        return LATER;
    exe_client_destroy(c);
    return send_done(e, p->header.serial, 0);
}

static int on_map(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_map m;
    wire_get_engine_map(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    int result = GM_CUDA_INVALID_HANDLE;
    if (c && p->fds_count == 0)
        result = e->ops->memory_map(c->dev, m.address, m.size);
    else if (c && e->ops->memory_attach && m.device < e->devices)
        result = e->ops->memory_attach(c->dev, m.address, m.size, p->fds[0], 0, m.device, 0);
    return send_done(e, p->header.serial, result);
}

static int on_attach(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_attach m;
    wire_get_engine_attach(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    int result = GM_CUDA_INVALID_HANDLE;
    if (c && e->ops->memory_attach && m.device < e->devices)
        result = e->ops->memory_attach(c->dev, m.address, m.size, p->fds[0], m.offset, m.device, m.access);
    return send_done(e, p->header.serial, result);
}

static int on_unmap(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_unmap m;
    wire_get_engine_unmap(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    if (c)
        e->ops->memory_unmap(c->dev, m.address, m.size);
    return send_done(e, p->header.serial, 0);
}

static int on_array_memory(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_array_memory m;
    wire_get_engine_array_memory(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    int result = GM_CUDA_INVALID_HANDLE;
    if (c && exe_client_uses(c, m.device))
        result = e->ops->array_memory ? e->ops->array_memory(c->dev, m.device, m.bytes) : GM_CUDA_NOT_SUPPORTED;
    return send_done(e, p->header.serial, result);
}

/* Loads the image; on success the module is in the client's table and `info` describes it. */
static int load(struct exe_engine *e, struct exe_client *c, const struct wire_engine_module_load *m, int fd,
                struct dev_module_info *info)
{
    if (!c || exe_client_module(c, m->module))
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
    c->awaited = atomic_load_explicit(&c->asking, memory_order_relaxed);
    bool now = !c->awaited;
    struct exe_module *m = now ? exe_client_module(c, id) : NULL;
    if (m) {
        gm_list_remove(&m->link);
        c->engine->ops->module_unload(m->dev);
    }
    pthread_mutex_unlock(&c->modules_lock);
    free(m);
    return now;
}

static int on_module_load(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_module_load m;
    struct dev_module_info info = { 0 };
    struct wire_enc enc;

    wire_get_engine_module_load(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    int result = load(e, c, &m, p->fds[0], &info);
    GM_AUTO_FREE char *log = info.log;
    GM_AUTO_FD int info_fd = -1;
    if (result == 0) {
        info_fd = tp_memfd_from_bytes("gmux-module-info", info.info.data, info.info.size);
        if (info_fd < 0) {
            gm_error(&topic, "module information: %s", strerror(-info_fd));
            (void)unload(c, m.module); /* or it goes with the client */
            result = GM_CUDA_OUT_OF_MEMORY;
        }
    }
    if (log && strlen(log) > 16384)
        log[16384] = '\0';
    const struct wire_engine_module_loaded answer = {
        .result = result, .globals_size = info.globals_size, .globals_align = info.globals_align, .log = log
    };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_module_loaded(&enc, p->header.serial, &answer);
    return tp_send(e->server, &enc, &info_fd, result == 0 ? 1 : 0);
}

static int on_module_place(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_module_place m;
    wire_get_engine_module_place(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    struct exe_module *module = c ? exe_client_module(c, m.module) : NULL;
    int result =
        module ? e->ops->module_place(module->dev, m.globals_address, m.initialise != 0) : GM_CUDA_INVALID_HANDLE;
    return send_done(e, p->header.serial, result);
}

static int on_module_unload(struct exe_engine *e, struct tp_packet *p)
{
    struct wire_engine_module_unload m;
    wire_get_engine_module_unload(&p->body, &m);
    struct exe_client *c = find_client(e, m.client);
    if (c && !unload(c, m.module))
        return LATER;
    return send_done(e, p->header.serial, 0);
}

/* 0, LATER or -errno. */
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
        return on_client_set(e, p);
    case WIRE_ENGINE_CLIENT_DEVICE:
        return on_client_device(e, p);
    case WIRE_ENGINE_CLIENT_PEER:
        return on_client_peer(e, p);
    case WIRE_ENGINE_CLIENT_REMOVE:
        return on_client_remove(e, p);
    case WIRE_ENGINE_MAP:
        return on_map(e, p);
    case WIRE_ENGINE_ATTACH:
        return on_attach(e, p);
    case WIRE_ENGINE_UNMAP:
        return on_unmap(e, p);
    case WIRE_ENGINE_ARRAY_MEMORY:
        return on_array_memory(e, p);
    case WIRE_ENGINE_MODULE_LOAD:
        return on_module_load(e, p);
    case WIRE_ENGINE_MODULE_PLACE:
        return on_module_place(e, p);
    case WIRE_ENGINE_MODULE_UNLOAD:
        return on_module_unload(e, p);
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

static void stop_failed_clients(struct exe_engine *e)
{
    uint64_t count;
    if (read(e->failures, &count, sizeof(count)) != sizeof(count))
        return;
    gm_list_for_each (c, &e->clients, struct exe_client, link)
        if (atomic_load_explicit(&c->failed, memory_order_acquire))
            (void)exe_client_stop(c); /* or when its thread has ended */
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
        .priorities_low = i->priorities_low,
        .attributes = { i->attributes, sizeof(i->attributes) },
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
        if (poll(polled, GM_ARRAY_LEN(polled), -1) < 0 && errno != EINTR)
            return 1;
        if (polled[1].revents) {
            stop_failed_clients(e);
            r = take_up(e);
        }
        if (!polled[0].revents || r != 0)
            continue;
        r = tp_recv(e->server, &packet_in);
        if (r == 0)
            return 0; /* the server is gone, and with it the reason to be */
        if (r == 1) {
            r = handle(e, &packet_in);
            if (r == LATER)
                r = put_off(e, &packet_in);
            tp_packet_finish(&packet_in);
        }
    }
    gm_error(&topic, "server socket: %s", strerror(-r));
    return 1;
}
