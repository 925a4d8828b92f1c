/*
 * Local memory: how much each context has, who counts on it, and the limit of the stack, by which
 * the driver is told how much to keep.
 */
#include "device/cuda/local.h"

#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/library.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("capacity");

/* Local memory of a thread that stays when it is not needed any more: 4.4 GB on a GPU of 132
 * multiprocessors. */
#define LOCAL_KEPT (16u << 10)

/* --- a new context ---------------------------------------------------------------------------- */

#define HEAP_BYTES (256u << 20)

/* Notes the limits that a program's own context would have, before any of them is changed. */
static void read_limits(struct cuda_gpu *g)
{
    for (uint32_t i = 0; i < DEV_LIMITS && i < CU_LIMIT_MAX; i++) {
        size_t value = 0;
        if (g->dev->api.cuCtxGetLimit(&value, (CUlimit)i) == CUDA_SUCCESS)
            g->info.limits[i] = value;
    }
}

void cuda_local_open(struct cuda_gpu *g)
{
    const struct cuda_driver *api = &g->dev->api;
    size_t stack = 0;
    read_limits(g);
    CUresult r = api->cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP_BYTES);
    if (r == CUDA_SUCCESS)
        r = api->cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE);
    if (r != CUDA_SUCCESS)
        gm_warn(&topic, "limits of a context stay as they are: error %d", (int)r);
    atomic_store_explicit(&g->stack, stack, memory_order_relaxed);
    atomic_store_explicit(&g->local, (uint32_t)stack, memory_order_relaxed);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static void need(_Atomic uint32_t *most, uint32_t bytes)
{
    uint32_t now = atomic_load_explicit(most, memory_order_relaxed);
    while (now < bytes && !atomic_compare_exchange_weak_explicit(
                              most, &now, bytes, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* All graphs have to be made anew afterwards (local.h). */
static CUresult set_limit(struct cuda_gpu *g, uint64_t value)
{
    atomic_fetch_add_explicit(&g->resized, 1, memory_order_relaxed);
    return CUDA_CALL(g->dev, CUDA_GPU_BIT(g), cuCtxSetLimit, CU_LIMIT_STACK_SIZE, value);
}

/* g->stacks_lock held. The driver gives back local memory beyond the limit, and kernels may count
 * on that memory. So the limit is never below what they count on, unless the driver refuses that
 * much: some of it may belong to a launch that is still to come. */
static CUresult set_stack(struct cuda_gpu *g, uint64_t value)
{
    const uint32_t local = atomic_load_explicit(&g->local, memory_order_relaxed);
    CUresult r = set_limit(g, GM_MAX(value, local));
    return r != CUDA_SUCCESS && value < local ? set_limit(g, value) : r;
}

CUresult cuda_stack_raise(struct cuda_gpu *g, uint64_t value)
{
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&g->stacks_lock);
    if (value > atomic_load_explicit(&g->stack, memory_order_relaxed) &&
        (r = set_stack(g, value)) == CUDA_SUCCESS) {
        atomic_store_explicit(&g->stack, value, memory_order_relaxed);
        need(&g->local, (uint32_t)value);
    }
    pthread_mutex_unlock(&g->stacks_lock);
    return r;
}

static bool are_behind(const struct cuda_gpu *g, const struct cuda_gpu *other)
{
    return atomic_load_explicit(&other->stack, memory_order_relaxed) >
           atomic_load_explicit(&g->stack, memory_order_relaxed);
}

void cuda_stack_follow(struct cuda_gpu *g, const struct cuda_gpu *other)
{
    if (GM_LIKELY(!are_behind(g, other)))
        return;
    CUresult r = cuda_stack_raise(g, atomic_load_explicit(&other->stack, memory_order_relaxed));
    if (r != CUDA_SUCCESS)
        gm_warn(&topic, "stacks stay smaller than in the other context: error %d", (int)r);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static uint32_t local_of(const struct dev *d, CUfunction f)
{
    int bytes = 0;
    CUresult r = d->api.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f);
    return r == CUDA_SUCCESS && bytes > 0 ? (uint32_t)bytes : 0;
}

/* With the lock, so that nobody gives back what this client is about to count on. */
bool cuda_local_has(struct dev_client *c, struct cuda_gpu *g, const struct cuda_library *l,
                    CUfunction f)
{
    const uint32_t local = local_of(c->dev, f);
    if (l->traits.allocates && !atomic_load_explicit(&g->heap, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&c->dev->lock);
    bool has = local <= atomic_load_explicit(&g->local, memory_order_relaxed);
    if (has)
        need(&c->local[g->index], local);
    pthread_mutex_unlock(&c->dev->lock);
    return has;
}

void cuda_local_take(struct dev_client *c, struct cuda_gpu *g, const struct cuda_library *l,
                     CUfunction f)
{
    const uint32_t local = local_of(c->dev, f);
    need(&c->local[g->index], local);
    need(&g->local, local);
    if (l->traits.allocates)
        atomic_store_explicit(&g->heap, true, memory_order_relaxed);
}

/* dev->lock held: the most that the clients who are there may still need. */
static uint32_t local_wanted(const struct cuda_gpu *g)
{
    uint32_t wanted = (uint32_t)atomic_load_explicit(&g->stack, memory_order_relaxed);
    gm_list_for_each (c, &g->dev->clients, struct dev_client, link)
        wanted = GM_MAX(wanted, atomic_load_explicit(&c->local[g->index], memory_order_relaxed));
    return wanted;
}

void cuda_local_unsure(struct dev_client *c, struct cuda_gpu *g)
{
    pthread_mutex_lock(&c->dev->lock);
    atomic_store_explicit(&c->local[g->index], 0, memory_order_relaxed);
    uint32_t wanted = local_wanted(g);
    if (wanted < atomic_load_explicit(&g->local, memory_order_relaxed))
        atomic_store_explicit(&g->local, wanted, memory_order_relaxed);
    atomic_store_explicit(&g->heap, false, memory_order_relaxed);
    pthread_mutex_unlock(&c->dev->lock);
}

/* --- less ------------------------------------------------------------------------------------- */

/* With a smaller limit of the stack the driver gives back what it has for larger ones. */
static void shrink_stack(struct cuda_gpu *g)
{
    pthread_mutex_lock(&g->stacks_lock);
    CUresult r = set_stack(g, atomic_load_explicit(&g->stack, memory_order_relaxed));
    pthread_mutex_unlock(&g->stacks_lock);
    if (r != CUDA_SUCCESS)
        gm_warn(&topic, "local memory that nobody needs stays: error %d", (int)r);
}

static void shrink(struct cuda_gpu *g)
{
    struct dev *d = g->dev;
    pthread_mutex_lock(&d->lock);
    uint32_t had = atomic_load_explicit(&g->local, memory_order_relaxed), wanted = local_wanted(g);
    bool much = had > LOCAL_KEPT && wanted < had;
    if (much)
        atomic_store_explicit(&g->local, wanted, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    if (!much)
        return;
    cuda_enter(g);
    shrink_stack(g);
    gm_info(&topic, "device %u: local memory of %u bytes a thread was given back", g->index, had);
}

void cuda_local_shrink(struct dev *d)
{
    cuda_for_each_context (g, d, UINT32_MAX)
        if (g->is_fallback ? g->open : g->context != NULL)
            shrink(g);
}
