/*
 * Allocations of other processes' memory pools: ranges of kind RT_MEMORY_IMPORTED_BLOCK in the map.
 * Each lies in a view of the segment that it belongs to, which stays mapped until nothing here uses
 * it.
 *
 * Any thread. Functions return CUresult values as int.
 */
#ifndef GMUX_CLIENT_MEMORY_POOL_IPC_H
#define GMUX_CLIENT_MEMORY_POOL_IPC_H

#include "client/memory/pool.h"

struct rt_pool_view;

/* A name for a pool that is to be shared; 0: there is no randomness. */
uint64_t rt_pool_new_name(void);

/* The program frees an imported allocation, once for each import. NULL: there is none at the
 * address. The result is given to rt_pool_view_close() when nothing of this process uses the memory
 * any more. */
struct rt_pool_view *rt_pool_view_leave(uint64_t address);
int rt_pool_view_close(struct rt_pool_view *v);
/* Frees and closes a range that is not in the map any more, however often it was imported. */
void rt_pool_forget_imported(uint64_t address);
/* The pool that it was imported into; NULL: none, or it was destroyed. */
CUmemoryPool rt_pool_of_imported(uint64_t address);

#endif
