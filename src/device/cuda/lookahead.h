/*
 * Lookahead: how much of a queue the driver has before the GPU comes to it, bounded in time.
 *
 * A safe point (admit.h) waits for all that is in flight. A program that hands over a thousand
 * kernels of 5 ms without waiting would have 5 s in flight, and a program that begins beside it
 * would have to go to the fallback context, where the GPU takes turns. So the driver gets only as
 * much of a queue as is likely to take CUDA_AHEAD_NS by the queue's pace, but always two
 * operations: one to run and one to follow. The rest is held back in the queue. Where operations
 * are so short that CUDA_DEPTH of them take less time than that, nothing is held back for this
 * reason.
 *
 * The pace says nothing of a kernel that the client has not launched yet, or not with so large a
 * grid. Until its first launch is done the driver gets two operations.
 */
#ifndef GMUX_DEVICE_CUDA_LOOKAHEAD_H
#define GMUX_DEVICE_CUDA_LOOKAHEAD_H

#include "base/clock.h"
#include "device/cuda/admit.h"

#define CUDA_AHEAD_NS (8 * GM_NS_PER_MS)

/* How many operations the driver may have of a queue that has no pace yet. */
#define CUDA_AHEAD_FIRST 32u

/* The driver may have so many while an operation whose time is not known has not ended. */
#define CUDA_AHEAD_UNKNOWN 2u

/* The queue's pace has changed. The watch, with dev->lock, or the thread that makes the queue. */
static inline void cuda_ahead_note(struct dev_queue *q)
{
    const uint64_t ahead_ns = q->client->dev->ahead_ns;
    uint64_t most = q->pace ? GM_MAX(ahead_ns / q->pace, (uint64_t)2) : CUDA_AHEAD_FIRST;
    if (most >= CUDA_DEPTH || ahead_ns == CUDA_NEVER)
        most = UINT32_MAX;
    atomic_store(&q->ahead_max, (uint32_t)most);
    if (q->seen < atomic_load(&q->unknown)) /* after the store: it may have come just now */
        atomic_store(&q->ahead_max, CUDA_AHEAD_UNKNOWN);
}

/* Nobody knows how long the client's next operation, `seq`, will take. The client's thread. */
static inline void cuda_ahead_unknown(struct dev_queue *q, uint64_t seq)
{
    if (q->client->dev->ahead_ns == CUDA_NEVER)
        return;
    atomic_store(&q->unknown, seq);
    atomic_store(&q->ahead_max, CUDA_AHEAD_UNKNOWN);
}

/* The watch, with dev->lock, when something is done. True: the client waits for room, and half of
 * the queue's room is free again. */
static inline bool cuda_ahead_ends(struct dev_queue *q)
{
    if (GM_LIKELY(!atomic_load_explicit(&q->waits_ahead, memory_order_seq_cst)) ||
        q->marked - q->seen > atomic_load_explicit(&q->ahead_max, memory_order_relaxed) / 2)
        return false;
    atomic_store_explicit(&q->waits_ahead, false, memory_order_relaxed);
    return true;
}

/* The rest is for the client's thread. */

/* The driver may have `more` of the queue's operations. A client that forges its completion words
 * has more in flight, and then those who wait for a safe point go to the fallback context. */
static inline bool cuda_may_have(const struct dev_queue *q, uint32_t more)
{
    const uint64_t most = atomic_load_explicit(&q->ahead_max, memory_order_relaxed);
    if (GM_LIKELY(most == UINT32_MAX))
        return true;
    const uint64_t done = atomic_load_explicit(&q->slot->completed.value, memory_order_seq_cst);
    return more + (q->last > done ? q->last - done : 0) <= most;
}

/* The driver may have one more; if not, the watch wakes the client's thread when there is room. */
static inline bool cuda_has_ahead(struct dev_queue *q)
{
    if (GM_LIKELY(cuda_may_have(q, 1)))
        return true;
    atomic_store_explicit(&q->waits_ahead, true,
                          memory_order_seq_cst); /* before it is looked again */
    return cuda_may_have(q, 1);
}

/* How many of the queue's operations one mark is for: there are several marks in what the driver
 * may have of it, so that the next operations come in time. */
static inline uint32_t cuda_ahead_marks(const struct dev_queue *q, uint32_t usual)
{
    return GM_MIN(usual, atomic_load_explicit(&q->ahead_max, memory_order_relaxed) / 4);
}

#endif
