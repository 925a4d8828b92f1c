/*
 * Nodes of each kind: cuGraphAdd*Node, cuGraph*NodeGetParams and -SetParams. The file params.c
 * reads their parameters.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/graph/node.h"
#include "client/memory/memory.h"

/* --- kernels ---------------------------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS kernel_from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS k = { 0 };
    memcpy(&k, p, sizeof(*p)); /* the later structure begins with the earlier one */
    return k;
}
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
               "layout");

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

CUresult rt_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : rt_params_kernel(&p, nodeParams);
    return rt_node_add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    if (!nodeParams)
        return rt_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, NULL);
    CUDA_KERNEL_NODE_PARAMS k = kernel_from_v1(nodeParams);
    return rt_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &k);
}

CUresult rt_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, get_kernel);
}

CUresult rt_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, get_kernel_v1);
}

CUresult rt_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                          const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(nodeParams);
    return rt_node_set(hNode, &p, r ? r : rt_params_kernel(&p, nodeParams));
}

CUresult rt_cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    if (!nodeParams)
        return rt_cuGraphKernelNodeSetParams_v2(hNode, NULL);
    CUDA_KERNEL_NODE_PARAMS k = kernel_from_v1(nodeParams);
    return rt_cuGraphKernelNodeSetParams_v2(hNode, &k);
}

/* Called with the graph lock held. */
static struct rt_kernel *find_kernel(CUgraphNode node)
{
    struct rt_node *n = rt_node_find(node);
    return n && n->params.type == CU_GRAPH_NODE_TYPE_KERNEL ? &n->params.kernel : NULL;
}

CUresult rt_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    int r = rt_enter_plain();
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
    int r = rt_enter_plain();
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
    int r = rt_enter_plain();
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

/* --- copies and fills ------------------------------------------------------------------------- */

static void get_copy(const struct rt_params *p, void *out)
{
    memcpy(out, &p->copy.described, sizeof(p->copy.described));
}

static void get_fill(const struct rt_params *p, void *out)
{
    memcpy(out, &p->fill.described, sizeof(p->fill.described));
}

/* Reads a copy's parameters. A node that copies nothing is refused, although a capture accepts such
 * a copy. */
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

CUresult rt_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    struct rt_params p;
    int r = rt_node_enter(phGraphNode ? copyParams : NULL);
    r = r ? r : params_copy(&p, copyParams, ctx);
    return rt_node_add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, get_copy);
}

CUresult rt_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(nodeParams);
    return rt_node_set(hNode, &p, r ? r : params_copy(&p, nodeParams, NULL));
}

CUresult rt_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    struct rt_params p;
    int r = rt_node_enter(phGraphNode ? memsetParams : NULL);
    r = r ? r : params_fill(&p, memsetParams, ctx);
    return rt_node_add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, get_fill);
}

CUresult rt_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(nodeParams);
    return rt_node_set(hNode, &p, r ? r : params_fill(&p, nodeParams, NULL));
}

/* --- host functions, events, nothing ---------------------------------------------------------- */

static void get_host(const struct rt_params *p, void *out)
{
    memcpy(out, &p->host, sizeof(p->host));
}

static void get_event(const struct rt_params *p, void *out)
{
    *(CUevent *)out = p->event;
}

CUresult rt_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                               const CUgraphNode *dependencies, size_t numDependencies,
                               const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter_plain(phGraphNode ? nodeParams : NULL);
    r = r ? r : rt_params_host(&p, nodeParams);
    return rt_node_add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, get_host);
}

CUresult rt_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter_plain(nodeParams);
    return rt_node_set(hNode, &p, r ? r : rt_params_host(&p, nodeParams));
}

CUresult rt_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies)
{
    struct rt_params p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    return rt_node_add(phGraphNode, hGraph, dependencies, numDependencies, &p,
                       rt_node_enter_plain(phGraphNode));
}

static int add_event(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                     CUgraphNodeType type, CUevent event)
{
    struct rt_params p;
    int r = rt_node_enter_plain(out);
    if (!r && !graph) /* whatever the event is */
        r = CUDA_ERROR_INVALID_VALUE;
    return rt_node_add(out, graph, dependencies, count, &p,
                       r ? r : rt_params_event(&p, type, event));
}

static int set_event(CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    struct rt_params p;
    int r = rt_enter_plain();
    return rt_node_set(node, &p, r ? r : rt_params_event(&p, type, event));
}

CUresult rt_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies,
                     CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult rt_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, get_event);
}

CUresult rt_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult rt_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies,
                     CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult rt_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, get_event);
}

CUresult rt_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* --- operations on words ---------------------------------------------------------------------- */

static void get_memops(const struct rt_params *p, void *out)
{
    memcpy(out, &p->memops.described, sizeof(p->memops.described));
}

CUresult rt_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : rt_params_memops(&p, nodeParams);
    return rt_node_add(phGraphNode, hGraph, dependencies, numDependencies, &p, r);
}

CUresult rt_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                           CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out, get_memops);
}

CUresult rt_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                           const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = rt_node_enter(nodeParams);
    return rt_node_set(hNode, &p, r ? r : rt_params_memops(&p, nodeParams));
}

/* --- memory ----------------------------------------------------------------------------------- */

static int add_alloc(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                     size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    rt_graph_lock();
    int r = rt_params_alloc(&p, nodeParams, rt_graph_find(hGraph), dependencies, numDependencies);
    if (r == CUDA_SUCCESS) {
        CUdeviceptr address = p.memory.described.dptr;
        r = rt_node_add_locked(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p);
        nodeParams->dptr = r ? 0 : address;
    }
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies, size_t numDependencies,
                                   CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    int r = rt_node_enter(phGraphNode ? nodeParams : NULL);
    r = r ? r : add_alloc(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = add_alloc(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
    return r;
}

CUresult rt_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  CUdeviceptr dptr)
{
    struct rt_params p;
    int r = rt_node_enter(phGraphNode);
    if (r)
        return r;
    rt_graph_lock();
    r = rt_graph_frees(rt_graph_find(hGraph), dptr) ? CUDA_ERROR_INVALID_VALUE
                                                    : rt_params_free(&p, dptr);
    r = r ? r : rt_node_add_locked(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p);
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
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out, get_alloc);
}

CUresult rt_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    return rt_node_read(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, get_free);
}
