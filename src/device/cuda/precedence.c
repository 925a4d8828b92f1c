/*
 * How much of the GPU a kernel needs: the part of its threads, of its blocks, of its registers or
 * of its shared memory that the kernel would take if all its blocks ran at once, whichever is
 * largest. This is computed for each launch, so it is an estimate from four numbers and not the
 * driver's occupancy.
 */
#include "device/cuda/precedence.h"

#include "base/clock.h"
#include "device/cuda/module.h"

/* Kernels have precedence for so long after the GPU was last seen to be crowded. Otherwise
 * everybody is served at once, and precedence would only keep launches from becoming rows (chain.h)
 * and graphs (run.h). */
#define CROWDED_NS (100 * GM_NS_PER_MS)

/* Clients with more queues have no precedence: each launch looks at them all. */
#define QUEUES_MOST 64u

bool cuda_keeps_order(const struct dev_queue *q)
{
    uint32_t count = 0;
    gm_list_for_each (o, &q->client->queues, struct dev_queue, link) {
        const uint64_t done = atomic_load_explicit(&o->slot->completed.value, memory_order_relaxed);
        if (++count > QUEUES_MOST || (o != q && o->gpu == q->gpu && o->plain > done))
            return false;
    }
    return true;
}

/* `blocks` times `each` of what the GPU has `per` multiprocessor, in parts of CUDA_WHOLE. */
static uint64_t part(const struct cuda_gpu *g, uint64_t blocks, uint64_t each,
                     CUdevice_attribute per)
{
    const uint64_t there =
        (uint64_t)g->info.multiprocessors * (uint64_t)GM_MAX(g->info.attributes[per], 0);
    return there ? GM_MIN(blocks * each * CUDA_WHOLE / there, (uint64_t)CUDA_WHOLE) : 0;
}

static uint32_t need(const struct cuda_gpu *g, const struct cuda_function *f,
                     const struct dev_launch *l)
{
    const uint64_t threads = dev_product(l->block), blocks = dev_product(l->grid);
    if (blocks >= CUDA_WHOLE) /* of at most 64 Ki of something each: no overflow below */
        return CUDA_WHOLE;
    uint64_t most = part(g, blocks, 1, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    most =
        GM_MAX(most, part(g, blocks, threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
    most = GM_MAX(most, part(g, blocks, threads * f->registers,
                             CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
    most = GM_MAX(most, part(g, blocks, (uint64_t)f->shared_bytes + l->shared_bytes,
                             CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    return (uint32_t)most;
}

void cuda_precedence_need(struct dev_queue *q, const struct cuda_function *f,
                          const struct dev_launch *l)
{
    atomic_store_explicit(&q->needs, need(q->gpu, f, l), memory_order_relaxed);
}

/* Adds to what the client has had, within the bounds around the mean. Returns the sum. */
static int64_t add(const struct cuda_gpu *g, struct dev_client *c, uint64_t ns)
{
    const int64_t credit = (int64_t)g->dev->credit_ns;
    _Atomic int64_t *at = &c->seats[g->index].had;
    int64_t had = GM_MAX(atomic_load_explicit(at, memory_order_relaxed), g->mean - credit);
    had = GM_MIN(had + (int64_t)ns, g->mean + credit);
    atomic_store_explicit(at, had, memory_order_relaxed);
    return had;
}

void cuda_precedence_done(struct dev_queue *q, uint64_t now)
{
    struct cuda_gpu *g = q->gpu;
    const uint64_t before = GM_MAX(q->since, g->ended_at);
    const uint64_t took = q->since && before < now ? now - before : 0;
    const uint64_t part = atomic_load_explicit(&q->needs, memory_order_relaxed);
    (void)add(g, q->client, took * part / CUDA_WHOLE);
}

/* Looks at one context. Queues in green contexts count as well, though their own kernels never have
 * precedence (submit.c). */
static void look_at(struct cuda_gpu *g, uint64_t now)
{
    const struct dev_client *last = NULL;
    const int64_t slice = (int64_t)g->dev->slice_ns;
    int64_t sum = 0, queues = 0;
    uint64_t needs = 0;
    bool several = false;
    gm_list_for_each (q, &g->dev->active, struct dev_queue, active)
        if (q->gpu == g) {
            sum += add(g, q->client, 0) - g->mean;
            queues++;
            needs += atomic_load_explicit(&q->needs, memory_order_relaxed);
            several |= last && last != q->client;
            last = q->client;
        }
    if (queues)
        g->mean += sum / queues;
    if (several && needs >= CUDA_WHOLE)
        g->crowded_at = now;
    const bool crowded = g->crowded_at && now - g->crowded_at < CROWDED_NS;
    atomic_store_explicit(&g->fair, crowded ? (g->mean - slice) | 1 : 0, memory_order_relaxed);
}

void cuda_precedence_look(struct dev *d, uint64_t now)
{
    for (uint32_t i = 0; i < d->count; i++) {
        look_at(&d->gpus[i], now);
        look_at(&d->fallbacks[i], now);
    }
}
