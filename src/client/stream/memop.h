/*
 * Operations on words in memory, as streams and graphs have them.
 */
#ifndef GMUX_CLIENT_STREAM_MEMOP_H
#define GMUX_CLIENT_STREAM_MEMOP_H

#include "client/stream/context.h"

#define RT_MEMOPS_MAX 255u /* in one call */

struct rt_memop {
    bool waits; /* it waits for a value; else it stores one */
    bool wide;  /* 64 bits */
    unsigned compare;
    uint64_t window; /* the word's address for the device */
    uint64_t value;
    /* The word is managed memory or a pool's, which NVIDIA's library takes as a node only. */
    bool in_graphs_only;
};

/* Reads what the program asked for. `out` has room for all; *used is the number of operations in
 * it. CUresult. */
int rt_memops_read(const CUstreamBatchMemOpParams *params, unsigned count, unsigned flags,
                   struct rt_memop *out, unsigned *used);
/* Puts an operation into the ring. Called between rt_queue_begin() and rt_queue_end(). CUresult. */
int rt_memop_put(struct rt_stream *st, const struct rt_memop *op);

#endif
