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
 *   block, order, condition_run, whole       what one is put together from
 *   any, graph                               nodes that have graphs, and graphs
 *   kernel, params, condition, memory        what nodes do
 *   lock, object                             state
 */
#ifndef GMUX_CLIENT_GRAPH_GRAPH_H
#define GMUX_CLIENT_GRAPH_GRAPH_H

#include "base/list.h"
#include "client/graph/params.h"

struct rt_exec_body;
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
    uint64_t capture;     /* number of the capture that made it; 0: none did */
    /* deliberately taken out of a capture's dependencies, so it need not be joined */
    bool loose;

    /* executable graphs */
    bool disabled;
    size_t at, size;  /* its record in the block; size 0: it has none, or several */
    uint32_t waiting; /* used while nodes are put into order */
};

/* The references that a graph has to a user object. */
struct rt_retained {
    struct rt_user_object *object;
    unsigned count;
};

struct rt_graph {
    struct rt_object object;
    struct gm_list nodes;
    uint32_t count;
    struct rt_node *parent; /* the node whose child graph this is */
    uint32_t handles;       /* of conditions (condition.h), given out by number */
    /* It is this part of an executable graph, and no program has its handle; NULL: it is none. */
    struct rt_exec_body *body;
    /* A capture that began without a graph adds to it; the program gets it when the capture
     * ends. */
    bool capturing;
    CUgraph original;
    CUgraphExec instance; /* the last executable graph made from it */
    struct rt_retained *retained;
    uint32_t retained_count;
};

extern struct rt_table rt_graphs;
extern struct rt_table rt_nodes;

void rt_graph_lock(void);
/* Releases the graph lock, then calls the destructors of user objects whose last reference was
 * dropped meanwhile. */
void rt_graph_unlock(void);

static inline struct rt_graph *rt_graph_find(CUgraph handle)
{
    return (struct rt_graph *)rt_object_find(&rt_graphs, handle);
}
static inline struct rt_node *rt_node_find(CUgraphNode handle)
{
    return (struct rt_node *)rt_object_find(&rt_nodes, handle);
}
/* Whether it is the graph of a child graph node, and not a body of a conditional node. */
static inline bool rt_graph_is_child(const struct rt_graph *g)
{
    return g->parent && g->parent->params.type == CU_GRAPH_NODE_TYPE_GRAPH;
}
/* The graph that it is in, or in which that one is, and so on; the graph itself if it is in none.
 */
static inline struct rt_graph *rt_graph_outermost(struct rt_graph *g)
{
    while (g->parent)
        g = g->parent->graph;
    return g;
}
static inline CUgraph rt_graph_handle(const struct rt_graph *g)
{
    return (CUgraph)rt_object_handle(&rt_graphs, &g->object);
}
static inline CUgraphNode rt_node_handle(const struct rt_node *n)
{
    return (CUgraphNode)rt_object_handle(&rt_nodes, &n->object);
}

/* Makes an empty graph, which is published. CUresult. */
int rt_graph_create(struct rt_graph **out);
/* Destroys a graph with all nodes and what they own. NULL is accepted. */
void rt_graph_destroy(struct rt_graph *g);
/* Copies a graph: nodes in the same order, edges, child graphs and references to user objects.
 * CUresult. */
int rt_graph_clone(const struct rt_graph *g, struct rt_graph **out);

/* Makes a node behind the nodes in `dependencies`; takes over `params` (finishes them on failure).
 * `edges`: NULL, or the data of each edge. CUresult. */
int rt_node_create(struct rt_graph *g, struct rt_params *params, const CUgraphNode *dependencies,
                   const CUgraphEdgeData *edges, size_t count, struct rt_node **out);
void rt_node_destroy(struct rt_node *n);

/* Adds an edge. CUDA_ERROR_INVALID_VALUE: the nodes are of different graphs or the same node, or
 * the edge exists. */
int rt_edge_add(struct rt_node *from, struct rt_node *to, const CUgraphEdgeData *data);
/* Removes an edge; `data` NULL: any. CUDA_ERROR_INVALID_VALUE: there is none. */
int rt_edge_remove(struct rt_node *from, struct rt_node *to, const CUgraphEdgeData *data);
bool rt_edge_data_ok(const CUgraphEdgeData *data);
static inline bool rt_edge_data_equal(const CUgraphEdgeData *a, const CUgraphEdgeData *b)
{
    return a->from_port == b->from_port && a->to_port == b->to_port && a->type == b->type;
}

/* Sorts the graph's own nodes (not those of child graphs) so that edges are respected, and
 * otherwise in the order in which they were made. `out` has room for all. False: there is a
 * cycle. */
bool rt_graph_sort(const struct rt_graph *g, struct rt_node **out);

/* Called with the graph lock held. Whether each node that allocates this memory has one that frees
 * it. */
bool rt_graph_frees(const struct rt_graph *g, CUdeviceptr address);

#endif
