/*
 * Contexts: primary ones, counted per device, and created ones. What a context owns is found by
 * looking through the tables for objects that name it, at its end; nothing on the way there has to
 * keep lists.
 */
#include "client/stream/context.h"

#include <stdlib.h>
#include <string.h>

#include "client/entry/hooks.h"
#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/session/companion.h"
#include "client/session/connect.h"
#include "client/stream/event.h"
#include "client/stream/local.h"
#include "client/stream/peer.h"

struct rt_table rt_contexts = RT_TABLE(RT_KIND_CONTEXT, struct rt_context);
pthread_mutex_t rt_context_lock = PTHREAD_MUTEX_INITIALIZER;

int rt_context_primary(CUdevice dev, struct rt_context **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* inside rt_context_lock */
    static struct rt_context *primaries[RT_DEVICES];
    int r = rt_ready();
    if (r)
        return r;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!primaries[dev])
        r = rt_context_create(dev, CU_CTX_SCHED_AUTO, true, &primaries[dev]);
    if (r == CUDA_SUCCESS && !primaries[dev]->alias)
        primaries[dev]->alias = rt_companion_primary(dev);
    *out = primaries[dev];
    pthread_mutex_unlock(&lock);
    return r;
}

/* NVIDIA's runtime names primary contexts as the genuine library does. */
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

/* The daemon's devices are partitioned, and it knows of no partition of ours there. */
static void say_homeless(int device)
{
    const char *partition = secure_getenv("CUDA_MPS_SM_PARTITION");
    if (partition && *partition)
        rt_attach_say("CUDA_MPS_SM_PARTITION=%.200s is no partition of device %d", partition,
                      device);
    else
        rt_attach_say("devices are partitioned, and CUDA_MPS_SM_PARTITION is not set");
}

static int activate(struct rt_context *c)
{
    c->id = next_id();
    c->number = (uint32_t)c->id;
    memcpy(c->limits, rt_session->devices[c->device].limits, sizeof(c->limits));
    int r = rt_request_context_open(rt_session, c->number, c->device);
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
    int r = primary ? CUDA_SUCCESS : activate(c); /* a primary context is a handle first */
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

static int wait_own(struct rt_context *c)
{
    struct rt_session *s = rt_session;
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&s->queues[i].context, memory_order_relaxed) != c->id)
            continue;
        int r = rt_session_wait(s, i, rt_queue_issued(s, i), &c->wait);
        if (r)
            return r;
    }
    return rt_session_error(s);
}

struct waiting {
    struct rt_context *root;
    int result;
};

static void wait_green(struct rt_object *o, void *arg)
{
    struct rt_context *c = (struct rt_context *)(void *)o;
    struct waiting *w = arg;
    if (c->root == w->root && w->result == CUDA_SUCCESS)
        w->result = wait_own(c);
}

/* Of a primary context: those green ones that it is the root of, too. */
int rt_context_wait(struct rt_context *c)
{
    struct waiting w = { c, wait_own(c) };
    if (GM_UNLIKELY(atomic_load_explicit(&c->greens, memory_order_relaxed) != 0))
        rt_table_each(&rt_contexts, wait_green, &w);
    return w.result;
}

static void end_stream(struct rt_object *o, void *arg)
{
    struct rt_stream *st = (struct rt_stream *)(void *)o;
    if (st->context == arg)
        rt_stream_destroy(st);
}

static void end_streams(struct rt_context *c)
{
    (void)rt_context_wait(c); /* an error ends the waiting as well */
    atomic_store_explicit(&c->active, false, memory_order_release);
    atomic_store_explicit(&c->legacy, NULL, memory_order_release);
    rt_local_destroy_all(c);
    rt_peer_forget(c);
    rt_table_each(&rt_streams, end_stream, c);
}

static void end_green(struct rt_object *o, void *arg)
{
    struct rt_context *c = (struct rt_context *)(void *)o;
    if (c->root != arg)
        return;
    end_streams(c);
    atomic_fetch_sub_explicit(&c->root->greens, 1, memory_order_relaxed);
    rt_object_release(&rt_contexts, &c->object);
}

void rt_context_destroy(struct rt_context *c)
{
    if (GM_UNLIKELY(atomic_load_explicit(&c->greens, memory_order_relaxed) != 0))
        rt_table_each(&rt_contexts, end_green, c);
    end_streams(c);
    rt_event_destroy_all(c);
    rt_hooks.context_ends(c);
    (void)rt_request_context_close(rt_session, c->number);
    if (!c->primary)
        rt_object_release(&rt_contexts, &c->object);
}

/* --- primary contexts ------------------------------------------------------------------------- */

CUresult rt_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct rt_context *c;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && !atomic_load(&c->active)) {
        rt_context_set_flags(c, c->wanted | CU_CTX_MAP_HOST);
        r = activate(c);
    }
    if (r == CUDA_SUCCESS) {
        c->references++;
        *pctx = rt_context_handle(c);
    }
    pthread_mutex_unlock(&rt_context_lock);
    if (r == CUDA_SUCCESS)
        rt_hooks.primary_retained(c);
    return r;
}

/* Lock held. The next one begins with the flags that it is given from now on. */
static void primary_end(struct rt_context *c)
{
    rt_context_destroy(c);
    c->wanted = 0;
}

CUresult rt_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct rt_context *c;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && c->references == 0)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (r == CUDA_SUCCESS && --c->references == 0 && atomic_load(&c->active))
        primary_end(c);
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return rt_cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult rt_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct rt_context *c;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && atomic_load(&c->active))
        rt_context_destroy(c); /* threads that have retained it still release it */
    if (r == CUDA_SUCCESS)
        c->wanted = 0;
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuDevicePrimaryCtxReset(CUdevice dev)
{
    return rt_cuDevicePrimaryCtxReset_v2(dev);
}

CUresult rt_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    struct rt_context *c;
    if (!rt_context_flags_ok(flags) || (flags & CU_CTX_MAP_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS) {
        c->wanted = flags;
        rt_context_set_flags(c, flags | CU_CTX_MAP_HOST);
    }
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return rt_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult rt_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct rt_context *c;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS) {
        *flags = c->wanted;
        *active = atomic_load(&c->active);
    }
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

/* --- green contexts --------------------------------------------------------------------------- */

/* The server knows of its root alone. rt_context_lock held. */
static int make_green(struct rt_context *root, uint32_t part, uint32_t multiprocessors,
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

int rt_context_create_green(CUdevice device, uint32_t part, uint32_t multiprocessors,
                            struct rt_context **out)
{
    CUcontext primary;
    int r = rt_cuDevicePrimaryCtxRetain(&primary, device);
    if (r)
        return r;
    pthread_mutex_lock(&rt_context_lock);
    struct rt_context *root = rt_context_find(primary, true);
    r = root ? make_green(root, part, multiprocessors, out) : CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_unlock(&rt_context_lock);
    if (r)
        (void)rt_cuDevicePrimaryCtxRelease_v2(device);
    return r;
}

int rt_context_destroy_green(CUcontext handle)
{
    pthread_mutex_lock(&rt_context_lock);
    struct rt_context *c = rt_context_find(handle, true);
    struct rt_context *root = c ? c->root : NULL;
    if (root)
        end_green(&c->object, root);
    pthread_mutex_unlock(&rt_context_lock);
    return root ? (int)rt_cuDevicePrimaryCtxRelease_v2(root->device) : CUDA_ERROR_INVALID_CONTEXT;
}
