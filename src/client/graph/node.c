/*
 * Nodes as the program sees them: cuGraphAdd*Node, cuGraph*NodeGetParams and -SetParams. Each kind's parameters are read
 * by graph/params.c.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/graph/graph.h"
#include "client/memory/memory.h"

/* Graph lock. Takes over `p`. */
static int add_locked(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                      size_t count, struct rt_params *p)
{
    struct rt_graph *g = rt_graph_find(graph);
    struct rt_node *n;
    if (!g || g->inner) {
        rt_params_finish(p);
        return CUDA_ERROR_INVALID_VALUE;
    }
    int r = rt_node_create(g, p, dependencies, edges, count, &n);
    if (r == CUDA_SUCCESS)
        *out = rt_node_handle(n);
    return r;
}

/* `r` is what reading the parameters came to. */
static int add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, struct rt_params *p,
               int r)
{
    if (r)
        return r;
    rt_graph_lock();
    r = add_locked(out, graph, dependencies, NULL, count, p);
    rt_graph_unlock();
    return r;
}

/* `p` replaces what a node of the same kind does; a kernel's attributes stay. */
static int set(CUgraphNode node, struct rt_params *p, int r)
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

/* What the calls that use the current context begin with. */
static int enter(const void *needed)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return r || needed ? r : CUDA_ERROR_INVALID_VALUE;
}

/* Calls `get` with the node's parameters if it is of that kind. */
static int with_params(CUgraphNode node, CUgraphNodeType type, void *out,
                       void (*get)(const struct rt_params *p, void *out))
{
    int r = rt_enter_any();
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

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static CUDA_KERNEL_NODE_PARAMS kernel_from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS k = { 0 };
    memcpy(&k, p, sizeof(*p)); /* the later one goes on where the first ends */
    return k;
}
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1), "layout");

static void get_kernel(const struct rt_params *p, void *out)
{
    rt_params_kernel_describe(p, out);
}

static void get_kernel_v1(const struct rt_params *p, void *out)
{
    CUDA_KERNEL_NODE_PARAMS k;
    rt_params_kernel_describe(p, &k);
    if (!k.func)
        k.func = (CUfunction)(void *)k.kern;
    memcpy(out, &k, sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
}

CUresult rt_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : rt_params_kernel(&p, nodeParams);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    if (!nodeParams)
        return rt_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, NULL);
    CUDA_KERNEL_NODE_PARAMS k = kernel_from_v1(nodeParams);
    return rt_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &k);
}

CUresult rt_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, get_kernel);
}

CUresult rt_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, get_kernel_v1);
}

CUresult rt_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hNode, &p, r ? r : rt_params_kernel(&p, nodeParams));
}

CUresult rt_cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    if (!nodeParams)
        return rt_cuGraphKernelNodeSetParams_v2(hNode, NULL);
    CUDA_KERNEL_NODE_PARAMS k = kernel_from_v1(nodeParams);
    return rt_cuGraphKernelNodeSetParams_v2(hNode, &k);
}

/* Graph lock. */
static struct rt_kernel *find_kernel(CUgraphNode node)
{
    struct rt_node *n = rt_node_find(node);
    return n && n->params.type == CU_GRAPH_NODE_TYPE_KERNEL ? &n->params.kernel : NULL;
}

CUresult rt_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    int r = rt_enter_any();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_kernel *to = find_kernel(dst);
    const struct rt_kernel *from = find_kernel(src);
    r = to && from ? rt_kernel_attributes_copy(to, from) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          CUkernelNodeAttrValue *value_out)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!value_out)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_kernel *k = find_kernel(hNode);
    r = k ? rt_kernel_attribute_get(k, attr, value_out) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          const CUkernelNodeAttrValue *value)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_kernel *k = find_kernel(hNode);
    r = k ? rt_kernel_attribute_set(k, attr, value) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

/* --- copies and fills --------------------------------------------------------------------------------------------- */

static void get_copy(const struct rt_params *p, void *out)
{
    memcpy(out, &p->copy.described, sizeof(p->copy.described));
}

static void get_fill(const struct rt_params *p, void *out)
{
    memcpy(out, &p->fill.described, sizeof(p->fill.described));
}

/* A node that moves nothing, or fills what is no memory, is refused where a captured operation would be taken. */
static int params_copy(struct rt_params *p, const CUDA_MEMCPY3D *from, CUcontext ctx)
{
    int r = rt_params_copy(p, from, ctx);
    return r || (from->WidthInBytes && from->Height && from->Depth) ? r : CUDA_ERROR_INVALID_VALUE;
}

static int params_fill(struct rt_params *p, const CUDA_MEMSET_NODE_PARAMS *from, CUcontext ctx)
{
    int r = rt_params_fill(p, from, ctx);
    return r || (from->width && from->height && !p->fill.nowhere) ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    struct rt_params p;
    int r = enter(phGraphNode ? copyParams : NULL);
    r = r ? r : params_copy(&p, copyParams, ctx);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, get_copy);
}

CUresult rt_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hNode, &p, r ? r : params_copy(&p, nodeParams, NULL));
}

CUresult rt_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    struct rt_params p;
    int r = enter(phGraphNode ? memsetParams : NULL);
    r = r ? r : params_fill(&p, memsetParams, ctx);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, get_fill);
}

CUresult rt_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hNode, &p, r ? r : params_fill(&p, nodeParams, NULL));
}

/* --- host functions, events, nothing ------------------------------------------------------------------------------ */

static void get_host(const struct rt_params *p, void *out)
{
    memcpy(out, &p->host, sizeof(p->host));
}

static void get_event(const struct rt_params *p, void *out)
{
    *(CUevent *)out = p->event;
}

CUresult rt_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : rt_params_host(&p, nodeParams);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, get_host);
}

CUresult rt_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hNode, &p, r ? r : rt_params_host(&p, nodeParams));
}

CUresult rt_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies)
{
    struct rt_params p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p, enter(phGraphNode));
}

static int add_event(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                     CUgraphNodeType type, CUevent event)
{
    struct rt_params p;
    int r = enter(out);
    return add(out, graph, dependencies, count, &p, r ? r : rt_params_event(&p, type, event));
}

static int set_event(CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    struct rt_params p;
    int r = rt_enter_any();
    return set(node, &p, r ? r : rt_params_event(&p, type, event));
}

CUresult rt_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      size_t numDependencies, CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult rt_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, get_event);
}

CUresult rt_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult rt_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult rt_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, get_event);
}

CUresult rt_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* --- operations on words ------------------------------------------------------------------------------------------ */

static void get_memops(const struct rt_params *p, void *out)
{
    memcpy(out, &p->memops.described, sizeof(p->memops.described));
}

CUresult rt_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : rt_params_memops(&p, nodeParams);
    return add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out, get_memops);
}

CUresult rt_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hNode, &p, r ? r : rt_params_memops(&p, nodeParams));
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int add_alloc(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                     size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    rt_graph_lock();
    int r = rt_params_alloc(&p, nodeParams, rt_graph_find(hGraph), dependencies, numDependencies);
    if (r == CUDA_SUCCESS) {
        CUdeviceptr address = p.memory.described.dptr;
        r = add_locked(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p);
        nodeParams->dptr = r ? 0 : address;
    }
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    int r = enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : add_alloc(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = add_alloc(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
    return r;
}

CUresult rt_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, CUdeviceptr dptr)
{
    struct rt_params p;
    int r = enter(phGraphNode);
    if (r)
        return r;
    rt_graph_lock();
    r = rt_graph_frees(rt_graph_find(hGraph), dptr) ? CUDA_ERROR_INVALID_VALUE : rt_params_free(&p, dptr);
    r = r ? r : add_locked(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p);
    rt_graph_unlock();
    return r;
}

static void get_alloc(const struct rt_params *p, void *out)
{
    memcpy(out, &p->memory.described, sizeof(p->memory.described));
}

static void get_free(const struct rt_params *p, void *out)
{
    *(CUdeviceptr *)out = p->memory.described.dptr;
}

CUresult rt_cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out, get_alloc);
}

CUresult rt_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, get_free);
}

/* --- child graphs ------------------------------------------------------------------------------------------------- */

/* Graph lock. A graph that may be put into another: not one that is being captured or is a child already. */
static struct rt_graph *find_child(CUgraph handle)
{
    struct rt_graph *g = rt_graph_find(handle);
    return g && !g->inner && !g->capturing ? g : NULL;
}

CUresult rt_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, CUgraph childGraph)
{
    struct rt_params p;
    int r = enter(phGraphNode);
    if (r)
        return r;
    rt_graph_lock();
    const struct rt_graph *child = find_child(childGraph);
    r = child && childGraph != hGraph ? rt_params_child(&p, child) : CUDA_ERROR_INVALID_VALUE;
    r = r ? r : add_locked(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p);
    rt_graph_unlock();
    return r;
}

static void get_child(const struct rt_params *p, void *out)
{
    *(CUgraph *)out = rt_graph_handle(p->child);
}

CUresult rt_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    return with_params(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, get_child);
}

/* --- any kind ----------------------------------------------------------------------------------------------------- */

/* Graph lock. CUDA_SUCCESS if `p` can become a child graph of `graph`: a copy of it, or itself. */
static int check_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *p, CUgraph graph)
{
    const struct rt_graph *child = find_child(p->graph);
    bool move = p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (!child || p->graph == graph || (!move && p->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) ||
        (move && child->parent))
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct rt_graph *up = rt_graph_find(graph); up; up = up->parent ? up->parent->graph : NULL)
        if (move && up == child)
            return CUDA_ERROR_INVALID_VALUE; /* it would lie within itself */
    return CUDA_SUCCESS;
}

/* Graph lock. The graph itself becomes the new node's, instead of the copy that the node was made with. */
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
                   const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    struct rt_params p;
    int r = CUDA_SUCCESS;
    bool child = nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH;
    rt_graph_lock();
    if (child)
        r = check_child(&nodeParams->graph, hGraph);
    r = r ? r : rt_params_generic(&p, nodeParams);
    CUdeviceptr address = r == CUDA_SUCCESS && p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? p.memory.described.dptr : 0;
    r = r ? r : add_locked(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, &p);
    if (r == CUDA_SUCCESS && address)
        nodeParams->alloc.dptr = address;
    if (r == CUDA_SUCCESS && p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        nodeParams->conditional.phGraph_out = p.conditional.handles;
    if (r == CUDA_SUCCESS && child && nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        move_child(*phGraphNode, nodeParams->graph.graph);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              const CUgraphEdgeData *dependencyData, size_t numDependencies,
                              CUgraphNodeParams *nodeParams)
{
    int r = enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : add_any(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = add_any(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
    return r;
}

CUresult rt_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    return rt_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

/* What a node is made with and keeps: its child graph, its memory. */
static bool settable(CUgraphNodeType type)
{
    return type != CU_GRAPH_NODE_TYPE_GRAPH && type != CU_GRAPH_NODE_TYPE_CONDITIONAL &&
           type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult rt_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    if (r == CUDA_SUCCESS && !settable(nodeParams->type))
        r = CUDA_ERROR_INVALID_VALUE;
    return set(hNode, &p, r ? r : rt_params_generic(&p, nodeParams));
}

CUresult rt_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    int r = rt_enter_any();
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
    int r = rt_enter_any();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_node *n = rt_node_find(hNode);
    if (n)
        rt_node_destroy(n);
    rt_graph_unlock();
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
