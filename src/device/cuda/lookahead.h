/*
 * Lookahead: how much of a queue the driver has before the GPU comes to it, bounded in time.
 *
 * A safe point (admit.h) waits for all that is in flight. A program that hands over a thousand
 * kernels of 5 ms without waiting would have 5 s in flight, and a program that begins beside it
 * would have to go to the fallback context, where the GPU takes turns. So a queue has no more with
 * the driver than is likely to take CUDA_AHEAD_NS by its pace, and at least two operations, one to
 * run and one to follow; the rest is held in the queue. Queues whose operations are so short that
 * CUDA_DEPTH of them take less are not held, and nothing is different for them.
 */
#ifndef GMUX_DEVICE_CUDA_LOOKAHEAD_H
#define GMUX_DEVICE_CUDA_LOOKAHEAD_H

#include "base/clock.h"
#include "device/cuda/admit.h"

#define CUDA_AHEAD_NS (8 * GM_NS_PER_MS)

/* Of a queue that has no pace yet. */
#define CUDA_AHEAD_FIRST 32u

/* The watch, with dev->lock, or the thread that makes the queue: its pace has changed. */
static inline void cuda_ahead_note(struct dev_queue *q)
{
    const uint64_t ahead_ns = q->client->dev->ahead_ns;
    uint64_t most = q->pace ? GM_MAX(ahead_ns / q->pace, (uint64_t)2) : CUDA_AHEAD_FIRST;
    if (most >= CUDA_DEPTH || ahead_ns == CUDA_NEVER)
        most = UINT32_MAX;
    atomic_store_explicit(&q->ahead_max, (uint32_t)most, memory_order_relaxed);
}

/* The watch, with dev->lock: something is done. True: the client waits for room, and half of it is
 * free again. */
static inline bool cuda_ahead_ends(struct dev_queue *q)
{
    if (GM_LIKELY(!atomic_load_explicit(&q->waits_ahead, memory_order_seq_cst)) ||
        q->marked - q->seen > atomic_load_explicit(&q->ahead_max, memory_order_relaxed) / 2)
        return false;
    atomic_store_explicit(&q->waits_ahead, false, memory_order_relaxed);
    return true;
}

/* The rest is the client's thread's, or of who stands in for it. */

/* The driver may have so many more of the queue's operations. Completion words are the client's to
 * forge: then it has more in flight, and those who wait for a safe point go elsewhere. */
static inline bool cuda_may_have(const struct dev_queue *q, uint32_t more)
{
    const uint64_t most = atomic_load_explicit(&q->ahead_max, memory_order_relaxed);
    if (GM_LIKELY(most == UINT32_MAX))
        return true;
    const uint64_t done = atomic_load_explicit(&q->slot->completed.value, memory_order_seq_cst);
    return more + (q->last > done ? q->last - done : 0) <= most;
}

/* As above, for one; if not, the watch rings the ring's bell when there is room. */
static inline bool cuda_has_ahead(struct dev_queue *q)
{
    if (GM_LIKELY(cuda_may_have(q, 1)))
        return true;
    atomic_store_explicit(&q->waits_ahead, true,
                          memory_order_seq_cst); /* before it is looked again */
    return cuda_may_have(q, 1);
}

/* So many of its operations have one mark: the driver writes several while the queue has room. */
static inline uint32_t cuda_ahead_marks(const struct dev_queue *q, uint32_t usual)
{
    return GM_MIN(usual, atomic_load_explicit(&q->ahead_max, memory_order_relaxed) / 4);
}

#endif
