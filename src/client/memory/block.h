/*
 * What a pool consists of: segments, each of them one allocation of the server, which are cut into
 * blocks. pool.c owns the pools and their lock, block.c what is in them.
 *
 * All functions are called with the pools' lock held. The locks of the ring and of requests are
 * taken inside it.
 */
#ifndef GMUX_CLIENT_MEMORY_BLOCK_H
#define GMUX_CLIENT_MEMORY_BLOCK_H

#include "client/memory/pool.h"

#define RT_BLOCK_BINS 48u
#define RT_KEEP       (32u << 20) /* unused bytes that a pool does not give back at once */

/* Small and large allocations have segments and bins of their own, so that a small one that lives
 * long does not hold a large segment. */
enum rt_size_class { RT_SMALL, RT_LARGE, RT_SIZE_CLASSES };

struct rt_segment {
    struct gm_list link; /* in pool->segments */
    struct rt_pool *pool;
    uint64_t address, size;
    enum rt_size_class class;
    bool shared;           /* other processes may have it open: what is freed is not used again */
    uint64_t written;      /* what is behind this address was never handed out, or is clear */
    struct gm_list blocks; /* in the order of addresses */
};

struct rt_block {
    struct gm_list link; /* in segment->blocks */
    struct gm_list bin;  /* while the block is free */
    struct rt_segment *segment;
    uint64_t address, size;
    bool free;
    /* free: queue and operation of its last use; in use: what clears it; seq 0: none */
    uint32_t number;
    uint64_t seq;
};

struct rt_pool {
    struct rt_object object;
    int device;
    uint32_t peers;    /* the other devices that may touch the memory */
    bool destroyed;    /* ends with its last block */
    bool private;      /* rt_pool_private(); never changes */
    bool synchronized; /* since the last free */
    bool follow_events, opportunistic, internal;
    bool imported; /* never changes; nor does the next */
    uint64_t name;
    uint64_t max, threshold;
    uint64_t reserved, reserved_high;
    uint64_t used, used_high;
    struct gm_list segments;
    struct gm_list bins[RT_SIZE_CLASSES][RT_BLOCK_BINS];
};

/* Takes `size` bytes (not 0) for later operations of `st` (NULL: of any stream) from a free block,
 * or from a segment of the server. NULL: there is no room. */
struct rt_block *rt_block_take(struct rt_pool *p, struct rt_stream *st, uint64_t size);
/* Gives a block back: others may use it when queue `number` has completed `seq`. A pool of
 * rt_pool_private() returns to the server what it has unused far beyond RT_KEEP. */
void rt_block_put(struct rt_block *b, uint32_t number, uint64_t seq);
/* Gives idle segments back to the server, as long as more than `keep` bytes remain. True: there was
 * one. */
bool rt_segments_trim(struct rt_pool *p, uint64_t keep);
/* Nothing of the segment that is free by now, or will be, is used again. */
void rt_segment_share(struct rt_segment *s);

#endif
