/*
 * What calls on single nodes share. Any thread; functions return CUresult values as int.
 */
#ifndef GMUX_CLIENT_GRAPH_NODE_H
#define GMUX_CLIENT_GRAPH_NODE_H

#include "client/graph/graph.h"

/* Every such call begins with one of these. CUDA_ERROR_INVALID_VALUE: `needed` is NULL; or why
 * there is no current context. A plain node's parameters have nothing to do with a context. */
int rt_node_enter(const void *needed);
int rt_node_enter_plain(const void *needed);
/* Adds a node to `graph`; takes over `p`. `r` is the result of reading the parameters: if that
 * failed, nothing is added. */
int rt_node_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                struct rt_params *p, int r);
/* Like rt_node_add(), with the graph lock held. `edges`: NULL, or one for each dependency. */
int rt_node_add_locked(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                       const CUgraphEdgeData *edges, size_t count, struct rt_params *p);
/* Replaces a node's parameters by `p`, of the same kind; a kernel's attributes stay. Takes over
 * `p`; `r` as in rt_node_add(). */
int rt_node_set(CUgraphNode node, struct rt_params *p, int r);
/* Calls `get` with the node's parameters, if the node is of that kind. */
int rt_node_read(CUgraphNode node, CUgraphNodeType type, void *out,
                 void (*get)(const struct rt_params *p, void *out));

#endif
