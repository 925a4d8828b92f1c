/*
 * What the calls on single nodes share. Any thread; CUresult values as int.
 */
#ifndef GMUX_CLIENT_GRAPH_NODE_H
#define GMUX_CLIENT_GRAPH_NODE_H

#include "client/graph/graph.h"

/* Such a call begins with it. CUDA_ERROR_INVALID_VALUE if `needed` is NULL, or why there is no
 * current context. */
int rt_node_enter(const void *needed);
/* Adds a node to `graph`. `r` is what reading the parameters came to: if that failed nothing is
 * added. Takes over `p`. */
int rt_node_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                struct rt_params *p, int r);
/* As above, with the graph lock held; `edges`: NULL, or one for each dependency. */
int rt_node_add_locked(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                       const CUgraphEdgeData *edges, size_t count, struct rt_params *p);
/* `p` replaces what a node of the same kind does; a kernel's attributes stay. `r` as above. Takes
 * over `p`. */
int rt_node_set(CUgraphNode node, struct rt_params *p, int r);
/* Calls `get` with the node's parameters if it is of that kind. */
int rt_node_read(CUgraphNode node, CUgraphNodeType type, void *out,
                 void (*get)(const struct rt_params *p, void *out));

#endif
