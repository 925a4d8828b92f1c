/*
 * Memory pools: device memory that was asked of the server once and is handed out again and again,
 * in the order of streams. A pool has segments, each one allocation of the server's; a segment is
 * cut into blocks. A block that was freed in a stream may at once be used again by what follows in
 * that stream, and by others once the stream has come so far. Neither costs a word with anybody.
 *
 * Any thread. CUresult values as int.
 */
#ifndef GMUX_CLIENT_MEMORY_POOL_H
#define GMUX_CLIENT_MEMORY_POOL_H

#include "client/stream/context.h"

struct rt_pool;
struct rt_block; /* what was handed out */

/* A device's default pool, and the one that cuMemAllocAsync takes from. NULL: out of memory. */
struct rt_pool *rt_pool_default(int device);
struct rt_pool *rt_pool_current(int device);
/* Makes `p` its device's current one. */
void rt_pool_set_current(struct rt_pool *p);
/* Whose memory it has. */
int rt_pool_device(const struct rt_pool *p);
/* Lets another device touch it, or no longer; and whether one may. */
int rt_pool_let(struct rt_pool *p, int device, bool may);
bool rt_pool_lets(const struct rt_pool *p, int device);
/* NULL if the handle is not a pool's. */
struct rt_pool *rt_pool_find(CUmemoryPool handle);
CUmemoryPool rt_pool_handle(const struct rt_pool *p);
/* The handle of the pool that a block is from; NULL if that was destroyed meanwhile. */
CUmemoryPool rt_block_pool(const struct rt_block *b);
/* That pool, even so; and the allocation of the server's that the block lies in. */
const struct rt_pool *rt_block_source(const struct rt_block *b);
uint64_t rt_block_segment(const struct rt_block *b);

/* An empty pool of a device's memory; `max` bytes at most, 0: no bound. `name`: what other
 * processes know it by (pool_ipc.h), 0: they do not. One that is imported has nothing to allocate.
 */
int rt_pool_create(int device, uint64_t max, uint64_t name, bool imported, struct rt_pool **out);
uint64_t rt_pool_name(const struct rt_pool *p);
bool rt_pool_is_imported(const struct rt_pool *p);
/* Its handle is good no longer; what was handed out stays until it is freed. */
void rt_pool_destroy(struct rt_pool *p);
/* CUDA_ERROR_INVALID_VALUE for one that there is not, or that cannot be set so. */
int rt_pool_set(struct rt_pool *p, CUmemPool_attribute attribute, const void *value);
int rt_pool_get(struct rt_pool *p, CUmemPool_attribute attribute, void *value);
/* Gives back what is not in use as long as more than `keep` bytes stay. */
void rt_pool_trim(struct rt_pool *p, uint64_t keep);

/* Memory that operations of `st` from now on may use. */
int rt_pool_alloc(struct rt_pool *p, struct rt_stream *st, uint64_t size, uint64_t *address,
                  struct rt_block **out);
/* Others may have it when queue `number` has completed `seq`. */
void rt_pool_free(struct rt_block *b, uint32_t number, uint64_t seq);

/* A stream, event or context was waited for: what is above the pools' release thresholds goes back.
 */
void rt_pools_synchronized(void);
/* Gives back all that is not in use; with `all`, also what a threshold would keep. True if that was
 * anything. */
bool rt_pools_trim(bool all);

#endif
