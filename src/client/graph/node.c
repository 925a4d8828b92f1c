/*
 * Calls that work on nodes of any kind, and child graphs. The calls for each other kind are in
 * node_kinds.c.
 */
#include "client/graph/node.h"

#include "client/gen/api.h"
#include "client/memory/memory.h"

int rt_node_add_locked(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                       const CUgraphEdgeData *edges, size_t count, struct rt_params *p)
{
    struct rt_graph *g = rt_graph_find(graph);
    struct rt_node *n;
    if (!g || g->body) {
        rt_params_finish(p);
        return CUDA_ERROR_INVALID_VALUE;
    }
    int r = rt_node_create(g, p, dependencies, edges, count, &n);
    if (r == CUDA_SUCCESS)
        *out = rt_node_handle(n);
    return r;
}

int rt_node_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                struct rt_params *p, int r)
{
    if (r)
        return r;
    rt_graph_lock();
    r = rt_node_add_locked(out, graph, dependencies, NULL, count, p);
    rt_graph_unlock();
    return r;
}

int rt_node_set(CUgraphNode node, struct rt_params *p, int r)
{
    if (r)
        return r;
    rt_graph_lock();
    struct rt_node *n = rt_node_find(node);
    if (n && n->params.type == p->type && p->type != CU_GRAPH_NODE_TYPE_GRAPH) {
        if (p->type == CU_GRAPH_NODE_TYPE_KERNEL)
            r = rt_kernel_attributes_copy(&p->kernel, &n->params.kernel);
        if (r == CUDA_SUCCESS) {
            struct rt_params old = n->params;
            n->params = *p;
            *p = old;
        }
    } else {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    rt_params_finish(p);
    rt_graph_unlock();
    return r;
}

int rt_node_enter(const void *needed)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return r || needed ? r : CUDA_ERROR_INVALID_VALUE;
}

int rt_node_enter_plain(const void *needed)
{
    int r = rt_enter_plain();
    return r || needed ? r : CUDA_ERROR_INVALID_VALUE;
}

int rt_node_read(CUgraphNode node, CUgraphNodeType type, void *out,
                 void (*get)(const struct rt_params *p, void *out))
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_node *n = rt_node_find(node);
    r = n && n->params.type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        get(&n->params, out);
    rt_graph_unlock();
    return r;
}

/* --- child graphs ----------------------------------------------------------------------------- */

/* Finds a graph that may be put into another: it is not being captured, and is no child yet. Called
 * with the graph lock held. */
static struct rt_graph *find_child(CUgraph handle)
{
    struct rt_graph *g = rt_graph_find(handle);
    return g && !g->body && !g->capturing ? g : NULL;
}

CUresult rt_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     CUgraph childGraph)
{
    struct rt_params p;
    int r = rt_node_enter_plain(phGraphNode);
    if (r)
        return r;
    rt_graph_lock();
    const struct rt_graph *child = find_child(childGraph);
    r = child && childGraph != hGraph ? rt_params_child(&p, child) : CUDA_ERROR_INVALID_VALUE;
    r = r ? r : rt_node_add_locked(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p);
    rt_graph_unlock();
    return r;
}

static void get_child(const struct rt_params *p, void *out)
{
    *(CUgraph *)out = rt_graph_handle(p->child);
}

CUresult rt_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, get_child);
}

/* --- any kind --------------------------------------------------------------------------------- */

/* Returns CUDA_SUCCESS if `p` can become a child graph of `graph`: a copy of it, or the graph
 * itself. Called with the graph lock held. */
static int check_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *p, CUgraph graph)
{
    const struct rt_graph *child = find_child(p->graph);
    bool move = p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (!child || p->graph == graph ||
        (!move && p->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) || (move && child->parent))
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct rt_graph *up = rt_graph_find(graph); up;
         up = up->parent ? up->parent->graph : NULL)
        if (move && up == child)
            return CUDA_ERROR_INVALID_VALUE; /* the graph would contain itself */
    return CUDA_SUCCESS;
}

/* Makes the graph itself the new node's, instead of the copy that the node was made with. Called
 * with the graph lock held. */
static void move_child(CUgraphNode node, CUgraph graph)
{
    struct rt_node *n = rt_node_find(node);
    struct rt_graph *g = rt_graph_find(graph);
    if (!n || !g)
        return;
    rt_graph_destroy(n->params.child);
    n->params.child = g;
    g->parent = n;
}

static int add_any(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                   CUgraphNodeParams *nodeParams)
{
    struct rt_params p;
    int r = CUDA_SUCCESS;
    bool child = nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH;
    rt_graph_lock();
    if (child)
        r = check_child(&nodeParams->graph, hGraph);
    r = r ? r : rt_params_generic(&p, rt_graph_find(hGraph), nodeParams);
    CUdeviceptr address =
        r == CUDA_SUCCESS && p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? p.memory.described.dptr : 0;
    r = r ? r
          : rt_node_add_locked(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
                               &p);
    if (r == CUDA_SUCCESS && address)
        nodeParams->alloc.dptr = address;
    if (r == CUDA_SUCCESS && p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        nodeParams->conditional.phGraph_out = p.conditional.handles;
    if (r == CUDA_SUCCESS && child &&
        nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        move_child(*phGraphNode, nodeParams->graph.graph);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                              const CUgraphNode *dependencies,
                              const CUgraphEdgeData *dependencyData, size_t numDependencies,
                              CUgraphNodeParams *nodeParams)
{
    int r = rt_node_enter(phGraphNode ? nodeParams : NULL);
    r = r ? r
          : add_any(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = add_any(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
    return r;
}

CUresult rt_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                           const CUgraphNode *dependencies, size_t numDependencies,
                           CUgraphNodeParams *nodeParams)
{
    return rt_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                                nodeParams);
}

/* Whether the parameters can be set. A node keeps its child graph and its memory. */
static bool settable(CUgraphNodeType type)
{
    return type != CU_GRAPH_NODE_TYPE_GRAPH && type != CU_GRAPH_NODE_TYPE_CONDITIONAL &&
           type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult rt_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(nodeParams);
    if (r == CUDA_SUCCESS && !settable(nodeParams->type))
        r = nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_NOT_SUPPORTED
                                                               : CUDA_ERROR_INVALID_VALUE;
    return rt_node_set(hNode, &p, r ? r : rt_params_generic(&p, NULL, nodeParams));
}

CUresult rt_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!type)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_node *n = rt_node_find(hNode);
    if (n)
        *type = n->params.type;
    rt_graph_unlock();
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuGraphDestroyNode(CUgraphNode hNode)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_node *n = rt_node_find(hNode);
    if (n)
        rt_node_destroy(n);
    rt_graph_unlock();
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
