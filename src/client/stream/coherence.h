/*
 * When memory that this process and the device have a copy of each (memory/pages.h) is made the
 * same on both sides: what the host has written is on the device before work enters the ring, and
 * what the device has written is seen by whoever has waited for it. Release and acquire, as in
 * distributed shared memory.
 *
 * Both counts are 0 in programs without such memory.
 */
#ifndef GMUX_CLIENT_STREAM_COHERENCE_H
#define GMUX_CLIENT_STREAM_COHERENCE_H

#include <stdatomic.h>

#include "base/attr.h"
#include "client/entry/hooks.h"

/* Pieces that are here, so that the device may not have what is in them. */
extern atomic_uint rt_pages_here;
/* Of these, the ones that the device may have written since. */
extern atomic_uint rt_pages_stale;

/* Work that waited for the program is about to go on; no lock held. CUresult. Work that enters the
 * ring does so, too (rt_queue_begin). */
static inline int rt_coherence_release(void)
{
    return GM_LIKELY(!atomic_load_explicit(&rt_pages_here, memory_order_relaxed))
               ? CUDA_SUCCESS
               : rt_hooks.pages_release();
}

/* The program knows of work that it is done; no lock held. */
static inline void rt_coherence_acquire(void)
{
    if (GM_UNLIKELY(atomic_load_explicit(&rt_pages_stale, memory_order_relaxed)))
        (void)rt_hooks.pages_release();
}

#endif
