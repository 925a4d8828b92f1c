/*
 * Memory pools: device memory that is allocated by the server once and handed out again and again,
 * in the order of streams. A pool has segments, each of them one allocation of the server, and a
 * segment is cut into blocks. A block that was freed in a stream can at once be used again by later
 * work of that stream, and by others once the stream has come to that point. Neither needs a
 * message.
 *
 * Any thread. Functions return CUresult values as int.
 */
#ifndef GMUX_CLIENT_MEMORY_POOL_H
#define GMUX_CLIENT_MEMORY_POOL_H

#include "client/stream/context.h"

struct rt_pool;
struct rt_block; /* memory that was handed out */

/* A device's default pool, and the pool that cuMemAllocAsync uses. NULL: no memory. */
struct rt_pool *rt_pool_default(int device);
struct rt_pool *rt_pool_current(int device);
/* Makes `p` the current pool of its device. */
void rt_pool_set_current(struct rt_pool *p);
/* The device whose memory the pool has. */
int rt_pool_device(const struct rt_pool *p);
/* Whether another device may access the pool's memory: sets it, and tells it. */
int rt_pool_let(struct rt_pool *p, int device, bool may);
bool rt_pool_lets(const struct rt_pool *p, int device);
/* The pool that cuMemAlloc cuts allocations of up to RT_CUT_MAX from, so that most need no message.
 * The program knows nothing of it. NULL: no memory. */
struct rt_pool *rt_pool_private(int device);
/* Finds a pool; NULL: the handle is not a pool's. */
struct rt_pool *rt_pool_find(CUmemoryPool handle);
CUmemoryPool rt_pool_handle(const struct rt_pool *p);
/* The handle of a block's pool; NULL: the pool was destroyed meanwhile, or is not the program's. */
CUmemoryPool rt_block_pool(const struct rt_block *b);
/* A block's pool, even if it was destroyed; and the allocation of the server that contains the
 * block. */
const struct rt_pool *rt_block_source(const struct rt_block *b);
uint64_t rt_block_segment(const struct rt_block *b);
/* Other processes may open the segment from now on: what is freed in it is not used again, and the
 * server keeps it until they have closed it. */
void rt_block_share(struct rt_block *b);

/* Makes an empty pool of a device's memory, with at most `max` bytes (0: no bound). `name`: the
 * name by which other processes know it (pool_ipc.h); 0: none. An imported pool allocates nothing
 * itself. */
int rt_pool_create(int device, uint64_t max, uint64_t name, bool imported, struct rt_pool **out);
uint64_t rt_pool_name(const struct rt_pool *p);
bool rt_pool_is_imported(const struct rt_pool *p);
/* Destroys a pool. Its handle is no longer valid; blocks stay until they are freed. */
void rt_pool_destroy(struct rt_pool *p);
/* Sets an attribute. CUDA_ERROR_INVALID_VALUE: it does not exist, or cannot be set so. */
int rt_pool_set(struct rt_pool *p, CUmemPool_attribute attribute, const void *value);
int rt_pool_get(struct rt_pool *p, CUmemPool_attribute attribute, void *value);
/* Gives back unused memory, as long as more than `keep` bytes remain. */
void rt_pool_trim(struct rt_pool *p, uint64_t keep);

#define RT_CUT_MAX      (16u << 20) /* the largest block of rt_pool_private() */
#define RT_SEGMENT_UNIT (2u << 20)  /* sizes of segments are multiples of it */

/* The size of the segment for so many bytes; `size` itself if no number is large enough. */
static inline uint64_t rt_segment_size(uint64_t size)
{
    uint64_t whole;
    return gm_align_up(size, RT_SEGMENT_UNIT, &whole) ? whole : size;
}

/* Allocates a block for later operations of `st`; NULL: for any. */
int rt_pool_alloc(struct rt_pool *p, struct rt_stream *st, uint64_t size, uint64_t *address,
                  struct rt_block **out);
/* Waits at most a millisecond until a block for any stream is clear. False: it was not, and has
 * been freed. */
bool rt_pool_settle(struct rt_block *b);
/* Frees a block: others may use it when queue `number` has completed `seq`. */
void rt_pool_free(struct rt_block *b, uint32_t number, uint64_t seq);

/* Called when a stream, event or context was waited for: gives back what is above the pools'
 * release thresholds. */
void rt_pools_synchronized(void);
/* Gives back all unused memory; with `all`, also what a threshold would keep. True: something was
 * given back. */
bool rt_pools_trim(bool all);

#endif
