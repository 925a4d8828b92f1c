/*
 * memory/: what programs compute with. It owns allocations of every kind, pools, arrays and
 * textures, copies and fills. It calls stream and what is below that.
 *
 * What the files of this folder know of each other. The map of memory itself is
 * client/session/map.h.
 */
#ifndef GMUX_CLIENT_MEMORY_MEMORY_H
#define GMUX_CLIENT_MEMORY_MEMORY_H

#include "client/memory/pool.h"
#include "client/session/map.h"
#include "client/stream/context.h"

/* Memory of the server's, in the map as that kind. CUresult. */
int rt_memory_allocate(struct rt_context *c, uint64_t size, enum rt_memory kind, unsigned flags,
                       uint64_t *out);

/* As above: `room` bytes of WIRE_MEMORY_KIND_* `from`, at a multiple of `align` (0: any). Size,
 * kind and flags of the range are the caller's; the rest is filled in. CUresult. */
int rt_memory_allocate_range(struct rt_context *c, uint32_t from, uint64_t room, uint64_t align,
                             struct rt_range *range);

/* True if the address is where an allocation of another process's pool starts. */
bool rt_memory_is_imported_block(uint64_t address);

/* Gives an allocation of the server's back, or closes a view, when queue `number` has completed
 * `seq`. */
struct rt_pool_view;
void rt_memory_free_later(uint64_t address, struct rt_pool_view *view, uint32_t number,
                          uint64_t seq);
/* Gives back what is due by now; with `all`, waits for what is not, so no lock may be held, and
 * takes from the pools what they hold unused. True if that was anything. */
bool rt_memory_reap(bool all);

/* Undoes a registration that is no longer in the map: gives the program private pages with the same
 * contents. */
int rt_register_undo(const struct rt_range *r);
/* Around a fork, of one thread at a time: the map stands still. In the child, registered pages are
 * its own. */
void rt_memory_fork_prepare(void);
void rt_memory_fork_parent(void);
void rt_memory_fork_child(void);

/* CUmemAllocationHandleType bits that the memory was made with. */
unsigned long long rt_physical_handle_types(const struct rt_physical *p);

/* Managed memory is about to be given back: its pages here go, and the hints about it. */
void rt_managed_forget(uint64_t address, uint64_t size);

/* Lets go of what another process shared; it is no longer in the map. */
void rt_ipc_forget(const struct rt_range *r);

/* The context ends; nothing of it runs any more. */
void rt_memory_destroy_all(struct rt_context *c);

#endif
