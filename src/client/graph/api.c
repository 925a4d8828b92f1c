/*
 * cuGraph*: making and copying graphs, asking for their nodes and edges, and changing edges.
 */
#include "client/gen/api.h"
#include "client/graph/graph.h"

/* Finds a graph that the program may change or destroy. */
static struct rt_graph *find_free(CUgraph handle)
{
    struct rt_graph *g = rt_graph_find(handle);
    return g && !g->body ? g : NULL;
}

CUresult rt_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    struct rt_graph *g;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    r = rt_graph_create(&g);
    if (r == CUDA_SUCCESS)
        *phGraph = rt_graph_handle(g);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphDestroy(CUgraph hGraph)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_graph *g = find_free(hGraph);
    r = g && !g->parent && !g->capturing ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        rt_graph_destroy(g);
    rt_graph_unlock();
    return r;
}

/* Whether nodes allocate or free. Such a graph is not cloned, because both graphs would have the
 * memory. */
static bool has_memory(const struct rt_graph *g)
{
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return true;
    return false;
}

CUresult rt_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    struct rt_graph *copy;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!phGraphClone)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_graph *g = find_free(originalGraph);
    r = !g || g->capturing                            ? CUDA_ERROR_INVALID_VALUE
        : has_memory(g) || rt_graph_has_conditions(g) ? CUDA_ERROR_NOT_SUPPORTED
                                                      : rt_graph_clone(g, &copy);
    if (r == CUDA_SUCCESS)
        *phGraphClone = rt_graph_handle(copy);
    rt_graph_unlock();
    return r;
}

static struct rt_node *find_copy(const struct rt_graph *g, CUgraphNode original)
{
    gm_list_for_each (n, &g->nodes, struct rt_node, link) {
        if (n->original == original)
            return n;
        struct rt_node *inside = n->params.type == CU_GRAPH_NODE_TYPE_GRAPH
                                     ? find_copy(n->params.child, original)
                                     : NULL;
        if (inside)
            return inside;
    }
    return NULL;
}

CUresult rt_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                   CUgraph hClonedGraph)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!phNode)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_graph *g = find_free(hClonedGraph);
    const struct rt_node *n = g && rt_node_find(hOriginalNode) ? find_copy(g, hOriginalNode) : NULL;
    if (n)
        *phNode = rt_node_handle(n);
    rt_graph_unlock();
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- lists: the rest of the caller's array becomes NULL; without an array, the length is returned
 * --- */

struct list {
    CUgraphNode *nodes;
    CUgraphNode *others; /* for edges: the nodes at their other ends */
    CUgraphEdgeData *data;
    bool plain; /* the caller has no room for data, which would be lost */
    size_t *count;
    size_t found;
    int result;
};

static void list_add(struct list *l, const struct rt_node *n, const struct rt_node *other,
                     const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData none;
    size_t i = l->found++;
    if (!l->nodes || i >= *l->count)
        return;
    l->nodes[i] = rt_node_handle(n);
    if (l->others)
        l->others[i] = rt_node_handle(other);
    if (l->data)
        l->data[i] = *data;
    else if (l->plain && !rt_edge_data_equal(data, &none))
        l->result = CUDA_ERROR_LOSSY_QUERY;
}

static int list_end(struct list *l)
{
    for (size_t i = l->found; l->nodes && i < *l->count; i++) {
        l->nodes[i] = NULL;
        if (l->others)
            l->others[i] = NULL;
    }
    if (!l->nodes || *l->count > l->found)
        *l->count = l->found;
    return l->result;
}

static int list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    struct list l = { .nodes = nodes, .count = count };
    rt_graph_lock();
    const struct rt_graph *g = find_free(handle);
    if (g)
        gm_list_for_each (n, &g->nodes, struct rt_node, link)
            if (!roots || n->in.count == 0)
                list_add(&l, n, NULL, NULL);
    r = g ? list_end(&l) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return list_nodes(hGraph, nodes, numNodes, false);
}

CUresult rt_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return list_nodes(hGraph, rootNodes, numRootNodes, true);
}

static int list_edges(CUgraph handle, struct list *l)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!l->count || !l->nodes != !l->others || (l->data && !l->nodes))
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_graph *g = find_free(handle);
    if (g)
        gm_list_for_each (n, &g->nodes, struct rt_node, link)
            for (uint32_t i = 0; i < n->out.count; i++)
                list_add(l, n, n->out.at[i].node, &n->out.at[i].data);
    r = g ? list_end(l) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return list_edges(
        hGraph, &(struct list) { .nodes = from, .others = to, .plain = true, .count = numEdges });
}

CUresult rt_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                               CUgraphEdgeData *edgeData, size_t *numEdges)
{
    return list_edges(
        hGraph,
        &(struct list) {
            .nodes = from, .others = to, .data = edgeData, .plain = true, .count = numEdges });
}

static int list_neighbours(CUgraphNode handle, struct list *l, bool incoming)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!l->count || (l->data && !l->nodes))
        return CUDA_ERROR_INVALID_VALUE;
    l->plain = true;
    rt_graph_lock();
    const struct rt_node *n = rt_node_find(handle);
    const struct rt_edges *edges = n ? (incoming ? &n->in : &n->out) : NULL;
    for (uint32_t i = 0; edges && i < edges->count; i++)
        list_add(l, edges->at[i].node, NULL, &edges->at[i].data);
    r = n ? list_end(l) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                       size_t *numDependencies)
{
    return list_neighbours(
        hNode, &(struct list) { .nodes = dependencies, .count = numDependencies }, true);
}

CUresult rt_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                          CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    return list_neighbours(
        hNode, &(struct list) { .nodes = dependencies, .data = edgeData, .count = numDependencies },
        true);
}

CUresult rt_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                         size_t *numDependentNodes)
{
    return list_neighbours(
        hNode, &(struct list) { .nodes = dependentNodes, .count = numDependentNodes }, false);
}

CUresult rt_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                            CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
    return list_neighbours(
        hNode,
        &(struct list) { .nodes = dependentNodes, .data = edgeData, .count = numDependentNodes },
        false);
}

/* --- edges ------------------------------------------------------------------------------------ */

static int change_edge(const struct rt_graph *g, CUgraphNode from, CUgraphNode to,
                       const CUgraphEdgeData *data, bool add)
{
    struct rt_node *a = rt_node_find(from), *b = rt_node_find(to);
    if (!a || !b || a->graph != g || b->graph != g)
        return CUDA_ERROR_INVALID_VALUE;
    return add ? rt_edge_add(a, b, data) : rt_edge_remove(a, b, data);
}

/* Changes all of the edges, or none if one cannot be changed. */
static int change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                        const CUgraphEdgeData *data, size_t count, bool add)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (count && (!from || !to))
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_graph *g = find_free(handle);
    size_t i = 0;
    r = g ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (; i < count && r == CUDA_SUCCESS; i++)
        r = change_edge(g, from[i], to[i], data ? &data[i] : NULL, add);
    if (r && i)
        for (i--; i-- > 0;)
            (void)change_edge(g, from[i], to[i], data ? &data[i] : NULL, !add);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t numDependencies)
{
    return change_edges(hGraph, from, to, NULL, numDependencies, true);
}

CUresult rt_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                      const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                      size_t numDependencies)
{
    return change_edges(hGraph, from, to, edgeData, numDependencies, true);
}

CUresult rt_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                      const CUgraphNode *to, size_t numDependencies)
{
    return change_edges(hGraph, from, to, NULL, numDependencies, false);
}

CUresult rt_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                         const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                         size_t numDependencies)
{
    return change_edges(hGraph, from, to, edgeData, numDependencies, false);
}
