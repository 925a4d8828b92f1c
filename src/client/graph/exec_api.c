/*
 * cuGraphInstantiate*, cuGraphLaunch, cuGraphExec*.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/graph/capture.h"
#include "client/graph/exec.h"

#define FLAGS_KNOWN                                                                                \
    ((uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                                   \
     CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |              \
     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

/* Whether the graph allocates memory. There is only one copy of that. */
static bool allocates(const struct rt_graph *g)
{
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return true;
    return false;
}

/* Called with the graph lock held. */
static int make(struct rt_graph *g, uint64_t flags, CUgraphExec *out)
{
    struct rt_exec *e;
    if (!g || g->body || g->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_graph_has_idle_condition(g))
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_exec_find(g->instance) && (allocates(g) || rt_graph_has_conditions(g)))
        return CUDA_ERROR_NOT_SUPPORTED;
    int r = rt_exec_create(g, flags, &e);
    if (r == CUDA_SUCCESS)
        *out = g->instance = (CUgraphExec)rt_object_handle(&rt_execs, &e->object);
    return r;
}

static int instantiate(CUgraphExec *out, CUgraph graph, uint64_t flags)
{
    static atomic_bool said;
    struct rt_context *c;
    if (!out || (flags & ~FLAGS_KNOWN))
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_enter(&c);
    if (r == CUDA_SUCCESS && !(flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
        r = rt_capture_unsafe();
    if (r)
        return r;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return rt_not_supported("a graph that kernels launch", &said);
    rt_graph_lock();
    r = make(rt_graph_find(graph), flags, out);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                        unsigned long long flags)
{
    return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE
                                                      : instantiate(phGraphExec, hGraph, flags);
}

CUresult rt_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                  CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = '\0';
    return instantiate(phGraphExec, hGraph, 0);
}

CUresult rt_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                               char *logBuffer, size_t bufferSize)
{
    return rt_cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult rt_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS *p = instantiateParams;
    struct rt_stream *st;
    struct rt_context *c;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    int r = p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
                ? rt_enter_stream(p->hUploadStream, &c, &st)
                : CUDA_SUCCESS;
    r = r ? r : instantiate(phGraphExec, hGraph, p->flags);
    p->hErrNode_out = NULL;
    p->result_out =
        r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return r;
}

CUresult rt_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_exec *e = rt_exec_find(hGraphExec);
    if (e)
        rt_exec_destroy(e);
    rt_graph_unlock();
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_exec *e = rt_exec_find(hGraphExec);
    if (e)
        *flags = e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    rt_graph_unlock();
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    rt_graph_lock(); /* a capture needs this lock to begin */
    struct rt_exec *e = rt_exec_find(hGraph);
    if (GM_UNLIKELY(rt_stream_captures(st)))
        r = rt_capture_refuse_locked(st);
    else
        r = e ? rt_exec_launch(e, st) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

/* All that an upload could do was done when the graph was made. */
CUresult rt_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_capture_refuse(st);
    rt_graph_lock();
    r = rt_exec_find(hGraph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

/* --- changes to single nodes ------------------------------------------------------------------ */

/* Finds a graph that is to change, at this node or, if it is NULL, anywhere, with the graph lock
 * held: waits, without it, until that may be. NULL: there is none, or the session has failed. */
static struct rt_exec *find_changeable(CUgraphExec exec, CUgraphNode node)
{
    for (;;) {
        struct rt_exec *e = rt_exec_find(exec);
        const struct rt_node *n = e && node ? rt_exec_node(e, node) : NULL;
        if (!e || (node && !n) || rt_exec_may_change(e, n))
            return e;
        const uint32_t number = e->body->last_number;
        const uint64_t seq = e->body->last_seq;
        rt_graph_unlock();
        int r = rt_session_wait(rt_session, number, seq, &rt_session->patient);
        rt_graph_lock();
        if (r)
            return NULL;
    }
}

static struct rt_node *find_changed(CUgraphExec exec, CUgraphNode node)
{
    struct rt_exec *e = node ? find_changeable(exec, node) : NULL;
    return e ? rt_exec_node(e, node) : NULL;
}

/* Sets a node's parameters. `r` is the result of reading them. */
static int set(CUgraphExec exec, CUgraphNode node, struct rt_params *p, int r)
{
    if (r)
        return r;
    rt_graph_lock();
    struct rt_node *n = find_changed(exec, node);
    if (n) {
        r = rt_exec_set(n, p);
    } else {
        rt_params_finish(p);
        r = CUDA_ERROR_INVALID_VALUE;
    }
    rt_graph_unlock();
    return r;
}

static int enter(const void *needed)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return r || needed ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hGraphExec, hNode, &p, r ? r : rt_params_kernel(&p, nodeParams));
}

CUresult rt_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS k = { 0 };
    if (!nodeParams)
        return rt_cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, NULL);
    memcpy(&k, nodeParams, sizeof(*nodeParams));
    return rt_cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &k);
}

CUresult rt_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    struct rt_params p;
    int r = enter(copyParams);
    if (r == CUDA_SUCCESS && (copyParams->WidthInBytes == 0 || copyParams->Height != 1 ||
                              copyParams->Depth != 1)) /* one row, as documented */
        r = CUDA_ERROR_INVALID_VALUE;
    return set(hGraphExec, hNode, &p, r ? r : rt_params_copy(&p, copyParams, ctx));
}

CUresult rt_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                           CUcontext ctx)
{
    struct rt_params p;
    int r = enter(memsetParams);
    return set(hGraphExec, hNode, &p, r ? r : rt_params_fill(&p, memsetParams, ctx));
}

CUresult rt_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                         const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hGraphExec, hNode, &p, r ? r : rt_params_host(&p, nodeParams));
}

CUresult rt_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    return set(hGraphExec, hNode, &p, r ? r : rt_params_memops(&p, nodeParams));
}

static int set_event(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    struct rt_params p;
    int r = rt_enter_any();
    return set(exec, node, &p, r ? r : rt_params_event(&p, type, event));
}

CUresult rt_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               CUevent event)
{
    return set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult rt_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                             CUevent event)
{
    return set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult rt_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               CUgraph childGraph)
{
    int r = rt_enter_any();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_node *n = find_changed(hGraphExec, hNode);
    const struct rt_graph *child = rt_graph_find(childGraph);
    r = n && child && !child->capturing ? rt_exec_set_child(n, child) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                     CUgraphNodeParams *nodeParams)
{
    struct rt_params p;
    int r = enter(nodeParams);
    if (r == CUDA_SUCCESS && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return rt_cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
    if (r == CUDA_SUCCESS && (nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                              nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_FREE))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        r = CUDA_ERROR_NOT_SUPPORTED;
    return set(hGraphExec, hNode, &p, r ? r : rt_params_generic(&p, NULL, nodeParams));
}

/* --- nodes off and on ------------------------------------------------------------------------- */

/* The node, if it can be switched off; else NULL. */
static struct rt_node *switched(struct rt_node *n)
{
    return n && (n->params.type == CU_GRAPH_NODE_TYPE_KERNEL ||
                 n->params.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                 n->params.type == CU_GRAPH_NODE_TYPE_MEMSET)
               ? n
               : NULL;
}

CUresult rt_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    rt_graph_lock();
    struct rt_node *n = switched(find_changed(hGraphExec, hNode));
    r = n ? rt_exec_enable(n, isEnabled != 0) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  unsigned int *isEnabled)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!isEnabled)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_exec *e = rt_exec_find(hGraphExec);
    const struct rt_node *n = switched(e ? rt_exec_node(e, hNode) : NULL);
    if (n)
        *isEnabled = !n->disabled;
    rt_graph_unlock();
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- update ----------------------------------------------------------------------------------- */

CUresult rt_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                 CUgraphExecUpdateResultInfo *resultInfo)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    CUgraphExecUpdateResultInfo unasked;
    if (!resultInfo)
        resultInfo = &unasked;
    *resultInfo = (CUgraphExecUpdateResultInfo) { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    rt_graph_lock();
    struct rt_exec *e = find_changeable(hGraphExec, NULL);
    const struct rt_graph *g = rt_graph_find(hGraph);
    r = e && g && !g->capturing ? rt_exec_update(e, g, resultInfo) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                              CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    int r = rt_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
    if (hErrorNode_out)
        *hErrorNode_out = info.errorNode;
    if (updateResult_out)
        *updateResult_out = info.result;
    return r;
}
