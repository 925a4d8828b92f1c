/*
 * How much of the GPU a kernel needs: the part of its threads, of its blocks, of its registers or
 * of its shared memory that the kernel would take if all its blocks ran at once, whichever is
 * largest. This is computed for each launch, so it is an estimate from four numbers and not the
 * driver's occupancy.
 */
#include "device/cuda/precedence.h"

#include "base/clock.h"
#include "device/cuda/module.h"

/* Kernels have precedence for so long after a large kernel was last seen. Without large kernels
 * everybody is served at once, and precedence would only keep launches from becoming rows
 * (chain.h).
 */
#define CROWDED_NS (100 * GM_NS_PER_MS)

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

bool cuda_has_precedence(struct dev_queue *q, const struct cuda_function *f,
                         const struct dev_launch *l)
{
    const uint32_t needs = need(q->gpu, f, l);
    const uint32_t fair = atomic_load_explicit(&q->gpu->fair_part, memory_order_relaxed);
    atomic_store_explicit(&q->needs, needs, memory_order_relaxed);
    return fair && needs <= fair;
}

/* Looks at one context. Queues in green contexts count as well, though their own kernels never have
 * precedence (submit.c). */
static void look_at(struct cuda_gpu *g, uint64_t now)
{
    uint32_t busy = 0, largest = 0;
    gm_list_for_each (q, &g->dev->active, struct dev_queue, active)
        if (q->gpu == g) {
            busy++;
            largest = GM_MAX(largest, atomic_load_explicit(&q->needs, memory_order_relaxed));
        }
    const uint32_t fair = busy ? CUDA_WHOLE / busy : CUDA_WHOLE;
    if (busy > 1 && largest > fair)
        g->crowded_at = now;
    const bool crowded = g->crowded_at && now - g->crowded_at < CROWDED_NS;
    atomic_store_explicit(&g->fair_part, crowded ? GM_MIN(fair, CUDA_WHOLE / 2) : 0,
                          memory_order_relaxed);
}

void cuda_precedence_look(struct dev *d, uint64_t now)
{
    for (uint32_t i = 0; i < d->count; i++) {
        look_at(&d->gpus[i], now);
        look_at(&d->fallbacks[i], now);
    }
}
