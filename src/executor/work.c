/*
 * The kinds of orders: what each touches of its client, and how it is carried out. The server is
 * trusted. Images, which it passes on from clients, are not; the device gets them as they are.
 */
#include "executor/order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/result.h"
#include "transport/memfd.h"

/* To pin so much host memory takes longer than to hand the order to a worker: some 0.6 ms for 1 MiB
 * against 0.05. A slab of small allocations has more. */
#define LONG_HOST_BYTES (1u << 20)

static struct gm_log_topic topic = GM_LOG_TOPIC("engine");

/* --- what an order touches, if that depends on its message ------------------------------------ */

static void touch_module(struct exe_order *o, uint32_t module)
{
    o->module = module;
    o->modules = 1ull << module % 64;
}

/* If the client does not use the device yet, the device may have to be opened. */
static void touch_device(struct exe_order *o, uint32_t device)
{
    if (exe_client_uses(o->client, device))
        return;
    o->touches |= EXE_DEVICES;
    o->beside = true;
}

static void touch_memory(struct exe_order *o, uint64_t address, uint64_t size)
{
    o->beside |= address >= o->client->host_area && size >= LONG_HOST_BYTES;
}

/* Earlier orders of the client may wait for a GPU, and need not any more. */
static void plan_end(struct exe_order *o, struct wire_dec *body GM_UNUSED)
{
    atomic_store_explicit(&o->client->leaving, true, memory_order_release);
}

/* In a second executor this order starts the client's thread, when everything else is as it was. */
static void plan_set(struct exe_order *o, struct wire_dec *body GM_UNUSED)
{
    if (!o->client->started && o->client->resumed)
        o->touches = EXE_ALL;
}

static void plan_device(struct exe_order *o, struct wire_dec *body)
{
    struct wire_engine_client_device d;
    wire_get_engine_client_device(body, &d);
    touch_device(o, d.device);
}

static void plan_load(struct exe_order *o, struct wire_dec *body)
{
    struct wire_engine_module_load l;
    wire_get_engine_module_load(body, &l);
    touch_module(o, l.module);
    touch_device(o, l.device);
}

/* Messages about a module begin with client and module. */
static void plan_module(struct exe_order *o, struct wire_dec *body)
{
    (void)wire_get_u32(body);
    touch_module(o, wire_get_u32(body));
}

static void plan_map(struct exe_order *o, struct wire_dec *body)
{
    struct wire_engine_map m;
    wire_get_engine_map(body, &m);
    touch_memory(o, m.address, m.size);
}

static void plan_attach(struct exe_order *o, struct wire_dec *body)
{
    struct wire_engine_attach a;
    wire_get_engine_attach(body, &a);
    touch_memory(o, a.address, a.size);
}

static void plan_unmap(struct exe_order *o, struct wire_dec *body)
{
    const bool apart = o->client->engine->info->memory_apart;
    struct wire_engine_unmap u;
    wire_get_engine_unmap(body, &u);
    touch_memory(o, u.address, u.size);
    o->beside |= !apart && u.size >= LONG_HOST_BYTES; /* many touched pages are to be freed */
    if (!apart || u.address < o->client->host_area)
        return;
    /* Unpinning may wait for GPUs, and orders about other memory are not to wait for that. */
    o->touches = EXE_PINNED;
    o->needs = EXE_MEMORY;
    o->beside = true;
}

/* --- how orders are carried out, by the main thread or a worker ------------------------------- */

/* Each returns a CUresult; a client or module that was removed meanwhile is an invalid handle. */

static int do_stop(struct exe_engine *e GM_UNUSED, struct exe_order *o)
{
    if (o->client)
        exe_client_stop(o->client);
    return 0;
}

static int do_add(struct exe_engine *e GM_UNUSED, struct exe_order *o)
{
    struct wire_engine_client_add m;
    wire_get_engine_client_add(&o->body, &m);
    if (!o->client)
        return GM_CUDA_INVALID_HANDLE;
    int result = exe_client_open(o->client, &m, o->fds);
    /* In a second executor the ring is not read before modules and memory are back: the last order,
     * engine_client_set, starts that. */
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

static int do_device(struct exe_engine *e GM_UNUSED, struct exe_order *o)
{
    struct wire_engine_client_device m;
    wire_get_engine_client_device(&o->body, &m);
    return o->client ? exe_client_device(o->client, m.device) : GM_CUDA_INVALID_HANDLE;
}

static int do_group(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_client_group m;
    wire_get_engine_client_group(&o->body, &m);
    if (!o->client)
        return GM_CUDA_INVALID_HANDLE;
    const struct dev_group group = { m.group, m.group_share_pct, m.group_guarantee_pct };
    if (e->ops->client_set_group)
        e->ops->client_set_group(o->client->dev, m.guarantee_pct, &group);
    return 0;
}

static int do_peer(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_client_peer m;
    wire_get_engine_client_peer(&o->body, &m);
    if (!o->client || m.device >= e->devices || m.peer >= e->devices)
        return GM_CUDA_INVALID_HANDLE;
    return e->ops->client_peer
               ? e->ops->client_peer(o->client->dev, m.device, m.peer, m.enabled != 0)
               : 0;
}

/* Removing what is not there succeeds, here and below, because the server repeats orders that an
 * earlier executor may have carried out. */
static int do_remove(struct exe_engine *e GM_UNUSED, struct exe_order *o)
{
    if (o->client)
        o->leaves = !exe_client_end(o->client);
    return 0;
}

/* A client that was stopped gets no more memory, and nothing is written to what it had. */
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
    return e->ops->memory_attach(o->client->dev, m.address, m.size, o->fds[0], m.offset, m.device,
                                 m.access);
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
    return e->ops->array_memory ? e->ops->array_memory(o->client->dev, m.device, m.bytes)
                                : GM_CUDA_NOT_SUPPORTED;
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
static int load(struct exe_engine *e, struct exe_client *c, const struct wire_engine_module_load *m,
                int fd, struct dev_module_info *info)
{
    if (!c || find_module(c, m->module))
        return GM_CUDA_INVALID_HANDLE;
    int result = exe_client_device(c, m->device);
    if (result != 0)
        return result;
    if (m->size == 0 || tp_memfd_check_extent(fd, m->offset, m->size) < 0)
        return GM_CUDA_INVALID_IMAGE;
    GM_AUTO_FREE struct exe_module *module = calloc(1, sizeof(*module));
    void *image = tp_memfd_map_extent(fd, m->offset, m->size);
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

/* False: the device is answering the client, perhaps about this module, so it cannot be unloaded
 * now. */
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
    (void)unload(o->client, m.module); /* if not now, it is unloaded with the client */
    return GM_CUDA_OUT_OF_MEMORY;
}

static int do_place(struct exe_engine *e, struct exe_order *o)
{
    struct wire_engine_module_place m;
    wire_get_engine_module_place(&o->body, &m);
    struct exe_module *module = has_memory(o->client) ? find_module(o->client, m.module) : NULL;
    return module ? e->ops->module_place(module->dev, m.globals_address, m.initialise != 0)
                  : GM_CUDA_INVALID_HANDLE;
}

static int do_unload(struct exe_engine *e GM_UNUSED, struct exe_order *o)
{
    struct wire_engine_module_unload m;
    wire_get_engine_module_unload(&o->body, &m);
    o->again = o->client && !unload(o->client, m.module);
    return 0;
}

/* --- the kinds -------------------------------------------------------------------------------- */

/* What a stop touches. It does not touch modules, so that it does not wait for a load. */
#define WORK (EXE_THREAD | EXE_MEMORY | EXE_DEVICES | EXE_ARRAYS | EXE_VALUES)

static const struct exe_order_kind {
    uint32_t type; /* of the message; 0: the client has failed */
    uint32_t touches, needs;
    bool beside; /* it may take long */
    /* Adds what it touches besides; NULL: nothing. */
    void (*plan)(struct exe_order *o, struct wire_dec *body);
    int (*carry_out)(struct exe_engine *e, struct exe_order *o);
} kinds[] = {
    { 0, WORK, 0, true, plan_end, do_stop },
    { WIRE_ENGINE_CLIENT_STOP, WORK, 0, true, plan_end, do_stop },
    { WIRE_ENGINE_CLIENT_ADD, EXE_ALL, 0, true, NULL, do_add },
    { WIRE_ENGINE_CLIENT_REMOVE, EXE_ALL, 0, true, plan_end, do_remove },
    /* A share may have to wait for the GPU. */
    { WIRE_ENGINE_CLIENT_SET, EXE_THREAD | EXE_DEVICES, 0, true, plan_set, do_set },
    { WIRE_ENGINE_CLIENT_DEVICE, 0, 0, false, plan_device, do_device },
    { WIRE_ENGINE_CLIENT_GROUP, EXE_DEVICES, 0, false, NULL, do_group },
    { WIRE_ENGINE_CLIENT_PEER, EXE_MEMORY, 0, true, NULL, do_peer },
    { WIRE_ENGINE_MAP, EXE_MEMORY, 0, false, plan_map, do_map },
    { WIRE_ENGINE_ATTACH, EXE_MEMORY, 0, false, plan_attach, do_attach },
    { WIRE_ENGINE_UNMAP, EXE_MEMORY, 0, false, plan_unmap, do_unmap },
    { WIRE_ENGINE_ARRAY_MEMORY, EXE_ARRAYS | EXE_DEVICES, 0, false, NULL, do_array_memory },
    /* Only needs the client to be there. */
    { WIRE_ENGINE_TRIM, 0, EXE_VALUES, true, NULL, do_trim },
    { WIRE_ENGINE_MODULE_LOAD, EXE_MODULES, 0, true, plan_load, do_load },
    /* Needs the range for the variables, which stays until the client is stopped. May load the code
       again. */
    { WIRE_ENGINE_MODULE_PLACE, EXE_MODULES, EXE_MEMORY | EXE_VALUES, true, plan_module, do_place },
    { WIRE_ENGINE_MODULE_UNLOAD, EXE_MODULES, 0, true, plan_module, do_unload },
};

const struct exe_order_kind *exe_order_kind(uint32_t type)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(kinds); i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return NULL;
}

void exe_order_plan(struct exe_order *o)
{
    const struct exe_order_kind *k = o->kind;
    struct wire_dec body = o->body;
    if (!o->client)
        return;
    o->touches = k->touches;
    o->needs = k->needs;
    o->beside = k->beside;
    if (k->plan)
        k->plan(o, &body);
    if ((o->touches & EXE_MODULES) && !o->module)
        o->modules = UINT64_MAX;
}

void exe_order_work(struct exe_engine *e, struct exe_order *o)
{
    const struct wire_dec body = o->body;
    o->again = false;
    o->info_fd = -1;
    o->result = o->kind->carry_out(e, o);
    o->body = body;
}
