/*
 * Allocations of other processes' memory pools: ranges of kind RT_MEMORY_IMPORTED_BLOCK in the
 * address map. Each lies in a view of the segment it is from, which stays mapped until nothing here
 * uses it.
 *
 * Any thread. CUresult values as int.
 */
#ifndef GMUX_CLIENT_MEMORY_POOL_IPC_H
#define GMUX_CLIENT_MEMORY_POOL_IPC_H

#include "client/memory/pool.h"

struct rt_pool_view;

/* What processes know a pool by that is made to be shared; 0: no randomness to be had. */
uint64_t rt_pool_new_name(void);

/* The program frees an imported allocation, once for each import; NULL if there is none at the
 * address. What is returned goes to rt_pool_view_close() when nothing of this process uses the
 * memory any more. */
struct rt_pool_view *rt_pool_view_leave(uint64_t address);
int rt_pool_view_close(struct rt_pool_view *v);
/* Both, for a range that is no longer in the map, and however often it was imported. */
void rt_pool_forget_imported(uint64_t address);
/* The pool it was imported into; NULL: none, or destroyed. */
CUmemoryPool rt_pool_of_imported(uint64_t address);

#endif
