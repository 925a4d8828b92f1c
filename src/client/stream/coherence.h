/*
 * When memory of which this process and the device each have a copy (memory/pages.h) is made equal:
 * what the host has written is on the device before work enters the ring, and what the device has
 * written is visible to a thread that has waited for it. This is release and acquire, as in
 * distributed shared memory.
 *
 * Both counts are 0 in programs without such memory.
 */
#ifndef GMUX_CLIENT_STREAM_COHERENCE_H
#define GMUX_CLIENT_STREAM_COHERENCE_H

#include <stdatomic.h>

#include "base/attr.h"
#include "client/entry/hooks.h"

/* How many pieces are in this process, so that the device may not have their contents. */
extern atomic_uint rt_pages_here;
/* How many of these the device may have written since. */
extern atomic_uint rt_pages_stale;

/* Work that waited for the program is about to go on. (Work that enters the ring calls this in
 * rt_queue_begin().) No lock held. CUresult. */
static inline int rt_coherence_release(void)
{
    return GM_LIKELY(!atomic_load_explicit(&rt_pages_here, memory_order_relaxed))
               ? CUDA_SUCCESS
               : rt_hooks.pages_release();
}

/* The program knows that some work is done. No lock held. */
static inline void rt_coherence_acquire(void)
{
    if (GM_UNLIKELY(atomic_load_explicit(&rt_pages_stale, memory_order_relaxed)))
        (void)rt_hooks.pages_release();
}

#endif
