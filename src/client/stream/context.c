/*
 * Contexts. The handles of primary ones, of which each device has one, and created ones. How
 * contexts end is in context_end.c; the calls of programs for primary contexts are in primary.c.
 */
#include "client/stream/context.h"

#include <stdlib.h>
#include <string.h>

#include "client/session/attach.h"
#include "client/session/companion.h"
#include "client/session/connect.h"
#include "client/stream/part.h"

int rt_context_primary(CUdevice dev, struct rt_context **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken inside rt_context_lock */
    static struct rt_context *primaries[RT_DEVICES];
    int r = rt_ready();
    if (r)
        return r;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!primaries[dev])
        r = rt_context_create(dev, CU_CTX_SCHED_AUTO, true, &primaries[dev]);
    if (r == CUDA_SUCCESS && !atomic_load_explicit(&primaries[dev]->alias, memory_order_relaxed))
        atomic_store_explicit(&primaries[dev]->alias, rt_companion_primary(dev),
                              memory_order_relaxed);
    *out = primaries[dev];
    pthread_mutex_unlock(&lock);
    return r;
}

/* Finds a primary context by the genuine library's handle, which NVIDIA's runtime uses. */
static struct rt_context *primary_by_alias(CUcontext handle)
{
    struct rt_context *c;
    int device = rt_companion_device(handle);
    return device >= 0 && rt_context_primary(device, &c) == CUDA_SUCCESS ? c : NULL;
}

struct rt_context *rt_context_find(CUcontext handle, bool active)
{
    struct rt_context *c = rt_object_find(&rt_contexts, handle);
    if (GM_UNLIKELY(!c))
        c = primary_by_alias(handle);
    return c && (!active || atomic_load_explicit(&c->active, memory_order_acquire)) ? c : NULL;
}

int rt_context_find_to_work(CUcontext handle, struct rt_context **out)
{
    *out = rt_context_find(handle, false);
    if (!*out)
        return CUDA_ERROR_INVALID_CONTEXT;
    return atomic_load_explicit(&(*out)->active, memory_order_acquire)
               ? CUDA_SUCCESS
               : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool rt_context_flags_ok(unsigned flags)
{
    const unsigned known = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                           CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE |
                           CU_CTX_SYNC_MEMOPS;
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~known) && (schedule & (schedule - 1)) == 0;
}

void rt_context_set_flags(struct rt_context *c, unsigned flags)
{
    atomic_store_explicit(&c->flags, flags, memory_order_relaxed);
    c->wait = rt_session->patient;
    switch (flags & CU_CTX_SCHED_MASK) {
    case CU_CTX_SCHED_SPIN:
        c->wait.spin_ns = RT_SPIN_NS;
        break;
    case CU_CTX_SCHED_YIELD:
        c->wait.spin_ns = 0;
        break;
    case CU_CTX_SCHED_BLOCKING_SYNC:
        c->wait.spin_ns = c->wait.yield_ns = 0;
        break;
    default:
        break;
    }
}

static uint64_t next_id(void)
{
    static _Atomic uint64_t ids = 1;
    return atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
}

/* Says that the devices are partitioned, and this program has no partition on this one. */
static void say_homeless(int device)
{
    const char *partition = secure_getenv("CUDA_MPS_SM_PARTITION");
    if (partition && *partition)
        rt_attach_say("CUDA_MPS_SM_PARTITION=%.200s is no partition of device %d", partition,
                      device);
    else
        rt_attach_say("devices are partitioned, and CUDA_MPS_SM_PARTITION is not set");
}

int rt_context_activate(struct rt_context *c)
{
    c->id = next_id();
    c->number = (uint32_t)c->id;
    memcpy(c->limits, rt_session->devices[c->device].limits, sizeof(c->limits));
    /* The server hears of a fault from the executor, a little later than this process may. */
    int r = rt_session_error(rt_session);
    r = r ? r : rt_request_context_open(rt_session, c->number, c->device);
    if (r == CUDA_SUCCESS)
        atomic_store_explicit(&c->active, true, memory_order_release);
    else if (r == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        say_homeless(c->device);
    return r;
}

static int create(CUdevice device, unsigned flags, bool primary, uint32_t part,
                  uint32_t multiprocessors, struct rt_context **out)
{
    struct rt_context *c = rt_object_take(&rt_contexts);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->primary = primary;
    c->device = device;
    c->part = part ? part : rt_part_all();
    c->multiprocessors = multiprocessors;
    c->api_version = 3020;
    rt_context_set_flags(c, flags);
    /* A primary context is only a handle at first. */
    int r = primary ? CUDA_SUCCESS : rt_context_activate(c);
    if (r != CUDA_SUCCESS) {
        rt_object_release(&rt_contexts, &c->object);
        return r;
    }
    rt_object_publish(&c->object);
    *out = c;
    return CUDA_SUCCESS;
}

int rt_context_create(CUdevice device, unsigned flags, bool primary, struct rt_context **out)
{
    return create(device, flags, primary, 0, 0, out);
}

int rt_context_create_limited(CUdevice device, unsigned flags, uint32_t part,
                              uint32_t multiprocessors, struct rt_context **out)
{
    return create(device, flags, false, part, multiprocessors, out);
}

/* The server knows only the root of a green context. */
int rt_context_make_green(struct rt_context *root, uint32_t part, uint32_t multiprocessors,
                          struct rt_context **out)
{
    struct rt_context *c = rt_object_take(&rt_contexts);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->device = root->device;
    c->root = root;
    c->part = part;
    c->multiprocessors = multiprocessors;
    c->api_version = root->api_version;
    c->id = next_id();
    c->number = root->number;
    memcpy(c->limits, root->limits, sizeof(c->limits));
    rt_context_set_flags(c, atomic_load(&root->flags));
    atomic_store_explicit(&c->active, true, memory_order_release);
    atomic_fetch_add_explicit(&root->greens, 1, memory_order_relaxed);
    rt_object_publish(&c->object);
    *out = c;
    return CUDA_SUCCESS;
}
