/*
 * graph/: work that is put together first and launched later. It owns graphs, their nodes and
 * memory, executable graphs, and the nodes that captures make. It calls module and what is below
 * that.
 *
 * Graphs. A graph is this process's object: nodes with their parameters, and edges. Neither server
 * nor executor hears of it before it is launched. An executable graph (graph/exec.h) is a copy of
 * one with its work put into order.
 *
 * One lock covers all graphs, nodes, executable graphs and captures; every function here wants it
 * held unless it says otherwise. It comes before the ring's lock.
 *
 * From the top down; each file calls only those below it:
 *
 *   api, exec_api, object_api, capture_api   what programs ask
 *   capture, node_kinds, node, dot           making nodes, and showing them
 *   exec, body                               executable graphs
 *   block, order, condition_run              what one is put together from
 *   any, graph                               nodes that have graphs, and graphs
 *   kernel, params, condition, memory        what nodes do
 *   lock, object                             state
 */
#ifndef GMUX_CLIENT_GRAPH_GRAPH_H
#define GMUX_CLIENT_GRAPH_GRAPH_H

#include "base/list.h"
#include "client/graph/params.h"

struct rt_user_object;

struct rt_edge {
    struct rt_node *node;
    CUgraphEdgeData data;
};

struct rt_edges {
    struct rt_edge *at;
    uint32_t count, capacity;
};

struct rt_node {
    struct rt_object object;
    struct rt_graph *graph;
    struct gm_list link; /* in its graph, oldest first */
    struct rt_edges in, out;
    struct rt_params params;
    CUgraphNode original; /* what it was copied from, NULL if it was not */
    uint64_t capture;     /* number of the capture that made it, 0 if none did */
    bool loose;           /* taken out of a capture's dependencies on purpose: need not be joined */

    /* executable graphs */
    bool disabled;
    size_t at, size;  /* its record in the block; size 0: it has none, or several */
    uint32_t waiting; /* while nodes are put into order */
};

/* A graph's references to a user object. */
struct rt_retained {
    struct rt_user_object *object;
    unsigned count;
};

struct rt_graph {
    struct rt_object object;
    struct gm_list nodes;
    uint32_t count;
    struct rt_node *parent; /* the node that it is the child graph of */
    bool inner;             /* an executable graph's: no program has its handle */
    bool capturing; /* a capture that began without a graph adds to it; the program's only when that
                       ends */
    CUgraph original;
    CUgraphExec instance; /* the last one made of it */
    struct rt_retained *retained;
    uint32_t retained_count;
};

extern struct rt_table rt_graphs;
extern struct rt_table rt_nodes;

void rt_graph_lock(void);
/* Then calls the destructors of user objects whose last reference went away meanwhile. */
void rt_graph_unlock(void);

static inline struct rt_graph *rt_graph_find(CUgraph handle)
{
    return (struct rt_graph *)rt_object_find(&rt_graphs, handle);
}
static inline struct rt_node *rt_node_find(CUgraphNode handle)
{
    return (struct rt_node *)rt_object_find(&rt_nodes, handle);
}
/* Of a child graph node, as opposed to a conditional one. */
static inline bool rt_graph_is_child(const struct rt_graph *g)
{
    return g->parent && g->parent->params.type == CU_GRAPH_NODE_TYPE_GRAPH;
}
static inline CUgraph rt_graph_handle(const struct rt_graph *g)
{
    return (CUgraph)rt_object_handle(&rt_graphs, &g->object);
}
static inline CUgraphNode rt_node_handle(const struct rt_node *n)
{
    return (CUgraphNode)rt_object_handle(&rt_nodes, &n->object);
}

/* CUresult. An empty graph, published. */
int rt_graph_create(struct rt_graph **out);
/* With all nodes and what they own. NULL is allowed. */
void rt_graph_destroy(struct rt_graph *g);
/* A copy with copies of nodes, in the same order, edges, child graphs and references to user
 * objects. CUresult. */
int rt_graph_clone(const struct rt_graph *g, struct rt_graph **out);

/* A node that takes over `params` (they are finished on failure, too), behind the nodes in
 * `dependencies`; `edges` is NULL or has their data. CUresult. */
int rt_node_create(struct rt_graph *g, struct rt_params *params, const CUgraphNode *dependencies,
                   const CUgraphEdgeData *edges, size_t count, struct rt_node **out);
void rt_node_destroy(struct rt_node *n);

/* CUDA_ERROR_INVALID_VALUE: nodes of different graphs, an edge to itself or that exists. */
int rt_edge_add(struct rt_node *from, struct rt_node *to, const CUgraphEdgeData *data);
/* CUDA_ERROR_INVALID_VALUE if there is none; `data` NULL: any. */
int rt_edge_remove(struct rt_node *from, struct rt_node *to, const CUgraphEdgeData *data);
bool rt_edge_data_ok(const CUgraphEdgeData *data);
static inline bool rt_edge_data_equal(const CUgraphEdgeData *a, const CUgraphEdgeData *b)
{
    return a->from_port == b->from_port && a->to_port == b->to_port && a->type == b->type;
}

/* The graph's own nodes (not those of child graphs) in an order that respects the edges, otherwise
 * in order of their making; `out` has room for all. False: there is a cycle. */
bool rt_graph_sort(const struct rt_graph *g, struct rt_node **out);

/* Graph lock. Every node that allocates this memory has one that frees it. */
bool rt_graph_frees(const struct rt_graph *g, CUdeviceptr address);

#endif
