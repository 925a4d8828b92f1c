/*
 * memory/: the memory that programs compute with. This folder owns allocations of every kind,
 * pools, arrays and textures, copies and fills. It calls stream and what is below that.
 *
 * This header has what its files know of each other. The map of memory is client/session/map.h.
 */
#ifndef GMUX_CLIENT_MEMORY_MEMORY_H
#define GMUX_CLIENT_MEMORY_MEMORY_H

#include "client/memory/pool.h"
#include "client/session/map.h"
#include "client/stream/context.h"

/* Allocates memory of the server, and enters it into the map as that kind. CUresult. */
int rt_memory_allocate(struct rt_context *c, uint64_t size, enum rt_memory kind, unsigned flags,
                       uint64_t *out);

/* Allocates `room` bytes of memory `from` (WIRE_MEMORY_KIND_*), at a multiple of `align` (0: any).
 * The caller has set size, kind and flags of the range; the rest is filled in. CUresult. */
int rt_memory_allocate_range(struct rt_context *c, uint32_t from, uint64_t room, uint64_t align,
                             struct rt_range *range);

/* Enters a pool's block into the map. The caller has set size, kind and block of the range; if it
 * fails the block is given back. CUresult. */
int rt_memory_enter_block(struct rt_context *c, uint64_t address, struct rt_range *range);

/* True if the address is where an allocation of another process's pool starts. */
bool rt_memory_is_imported_block(uint64_t address);

/* Frees an allocation of the server, or closes a view, when queue `number` has completed `seq`. */
struct rt_pool_view;
void rt_memory_free_later(uint64_t address, struct rt_pool_view *view, uint32_t number,
                          uint64_t seq);
/* Frees what is due by now. With `all` it waits for what is not due yet (so no lock may be held),
 * and takes unused memory from the pools. True: something was freed. */
bool rt_memory_reap(bool all);

/* Ends a registration that is not in the map any more: gives the program private pages with the
 * same contents. */
int rt_register_undo(const struct rt_range *r);
/* Called around a fork, by one thread at a time: the map does not change. In the child, registered
 * pages become its own. */
void rt_memory_fork_prepare(void);
void rt_memory_fork_parent(void);
void rt_memory_fork_child(void);

/* The CUmemAllocationHandleType bits with which the memory was made. */
unsigned long long rt_physical_handle_types(const struct rt_physical *p);

/* Managed memory is about to be freed: drops its pages in this process, and the hints about it. */
void rt_managed_forget(uint64_t address, uint64_t size);

/* Closes memory that another process shared; it is not in the map any more. */
void rt_ipc_forget(const struct rt_range *r);

/* The context ends; nothing of it runs any more. */
void rt_memory_destroy_all(struct rt_context *c);

#endif
