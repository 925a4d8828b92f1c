/*
 * Memory of graphs: what memory allocation nodes allocate. Its address is fixed when the node is
 * made, and so the memory is there from then on, for as long as a node names it or the program has
 * not freed what a launch gave it.
 *
 * All under the graph lock, unless it says otherwise.
 */
#ifndef GMUX_CLIENT_GRAPH_MEMORY_H
#define GMUX_CLIENT_GRAPH_MEMORY_H

#include "client/stream/context.h"

struct rt_graph;
struct rt_graph_memory;

/* Memory of a device with one reference, in the map of memory as RT_MEMORY_GRAPH. CUresult; where
 * there is no room the call that needs it lets go of the lock, makes some (rt_memory_reap()) and
 * tries again. */
int rt_graph_memory_create(struct rt_context *c, int device, uint64_t size,
                           struct rt_graph_memory **out);
/* Memory that a node of these dependencies can have again, because nodes before it have freed what
 * they allocated; no reference. NULL: there is none. */
struct rt_graph_memory *rt_graph_memory_reuse(const struct rt_graph *g,
                                              const CUgraphNode *dependencies, size_t count,
                                              int device, uint64_t size);
void rt_graph_memory_ref(struct rt_graph_memory *m);
/* The last one gives it back, in its time. */
void rt_graph_memory_unref(struct rt_graph_memory *m);
/* NULL if none begins there. */
struct rt_graph_memory *rt_graph_memory_find(CUdeviceptr address);
uint64_t rt_graph_memory_address(const struct rt_graph_memory *m);

/* A launch that has its node ends at `seq` of queue `number`. */
void rt_graph_memory_use(struct rt_graph_memory *m, uint32_t number, uint64_t seq);
/* Allocated: a launch's node has run, or will, and nobody has freed it since. */
bool rt_graph_memory_live(const struct rt_graph_memory *m);
void rt_graph_memory_set_live(struct rt_graph_memory *m, bool live);

/* It has gone with its context: nodes may still name it. */
bool rt_graph_memory_lost(const struct rt_graph_memory *m);

/* --- for rt_hooks; they take the lock --------------------------------------------------------- */

/* CUDA_ERROR_INVALID_VALUE: it is not allocated. */
int rt_graph_memory_free(uint64_t address, uint32_t number, uint64_t seq);
void rt_graph_memory_lose(uint64_t address);

#endif
