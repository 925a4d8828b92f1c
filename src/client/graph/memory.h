/*
 * Memory of graphs: what memory allocation nodes allocate. Its address is fixed when the node is
 * made. So the memory exists from then on, as long as a node names it, or the program has not freed
 * what a launch gave it.
 *
 * Everything is under the graph lock, unless it says otherwise.
 */
#ifndef GMUX_CLIENT_GRAPH_MEMORY_H
#define GMUX_CLIENT_GRAPH_MEMORY_H

#include "client/stream/context.h"

struct rt_graph;
struct rt_graph_memory;

/* Allocates memory of a device, with one reference, in the map of memory as RT_MEMORY_GRAPH.
 * CUresult. If there is no room, the calling API function releases the lock, frees memory
 * (rt_memory_reap()) and tries again. */
int rt_graph_memory_create(struct rt_context *c, int device, uint64_t size,
                           struct rt_graph_memory **out);
/* Memory that a node with these dependencies can use again, because nodes before it have freed what
 * they allocated; takes no reference. NULL: there is none. */
struct rt_graph_memory *rt_graph_memory_reuse(const struct rt_graph *g,
                                              const CUgraphNode *dependencies, size_t count,
                                              int device, uint64_t size);
void rt_graph_memory_ref(struct rt_graph_memory *m);
/* Drops a reference. The last one frees the memory when nothing uses it any more. */
void rt_graph_memory_unref(struct rt_graph_memory *m);
/* The memory that begins at this address; NULL: there is none. */
struct rt_graph_memory *rt_graph_memory_find(CUdeviceptr address);
uint64_t rt_graph_memory_address(const struct rt_graph_memory *m);

/* Notes that a launch with its node ends at `seq` of queue `number`. */
void rt_graph_memory_use(struct rt_graph_memory *m, uint32_t number, uint64_t seq);
/* Whether it is allocated: the node of a launch has run, or will run, and the memory has not been
 * freed since. */
bool rt_graph_memory_live(const struct rt_graph_memory *m);
void rt_graph_memory_set_live(struct rt_graph_memory *m, bool live);

/* Whether it was lost with its context; nodes may still name it. */
bool rt_graph_memory_lost(const struct rt_graph_memory *m);

/* --- for rt_hooks; they take the lock --------------------------------------------------------- */

/* Frees the memory. CUDA_ERROR_INVALID_VALUE: it is not allocated. */
int rt_graph_memory_free(uint64_t address, uint32_t number, uint64_t seq);
void rt_graph_memory_lose(uint64_t address);

#endif
