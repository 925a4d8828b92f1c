/*
 * Edges of graphs, events, user objects and switches: passed on to the driver.
 */
#include "cudart/cudart.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "");
_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "");
_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue), "");

cudaError_t crt_cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                            const cudaGraphNode_t *after, size_t count,
                                            cudaEvent_t event)
{
    return crt_of(cuGraphAddEventRecordNode(node, graph, after, count, event));
}

cudaError_t crt_cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    return crt_of(cuGraphEventRecordNodeGetEvent(node, event));
}

cudaError_t crt_cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return crt_of(cuGraphEventRecordNodeSetEvent(node, event));
}

cudaError_t crt_cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     cudaEvent_t event)
{
    return crt_of(cuGraphExecEventRecordNodeSetEvent(exec, node, event));
}

cudaError_t crt_cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                          const cudaGraphNode_t *after, size_t count,
                                          cudaEvent_t event)
{
    return crt_of(cuGraphAddEventWaitNode(node, graph, after, count, event));
}

cudaError_t crt_cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    return crt_of(cuGraphEventWaitNodeGetEvent(node, event));
}

cudaError_t crt_cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return crt_of(cuGraphEventWaitNodeSetEvent(node, event));
}

cudaError_t crt_cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                   cudaEvent_t event)
{
    return crt_of(cuGraphExecEventWaitNodeSetEvent(exec, node, event));
}

cudaError_t crt_cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t dst, cudaGraphNode_t src)
{
    return crt_of(cuGraphKernelNodeCopyAttributes(dst, src));
}

cudaError_t crt_cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node,
                                                enum cudaLaunchAttributeID attr,
                                                cudaLaunchAttributeValue *value)
{
    return crt_of(cuGraphKernelNodeGetAttribute(node, (CUlaunchAttributeID)attr,
                                                (CUlaunchAttributeValue *)value));
}

cudaError_t crt_cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node,
                                                enum cudaLaunchAttributeID attr,
                                                const cudaLaunchAttributeValue *value)
{
    return crt_of(cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)attr,
                                                (const CUlaunchAttributeValue *)value));
}

cudaError_t crt_cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t node,
                                         cudaGraph_t clone)
{
    return crt_of(cuGraphNodeFindInClone(found, node, clone));
}

cudaError_t crt_cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                        unsigned int enabled)
{
    return crt_of(cuGraphNodeSetEnabled(exec, node, enabled));
}

cudaError_t crt_cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                        unsigned int *enabled)
{
    return crt_of(cuGraphNodeGetEnabled(exec, node, enabled));
}

cudaError_t crt_cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    cuuint64_t f;
    if (!flags)
        return cudaErrorInvalidValue;
    CUresult r = cuGraphExecGetFlags(exec, &f);
    if (!r)
        *flags = f;
    return crt_of(r);
}

cudaError_t crt_cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               cudaGraphInstantiateParams *params)
{
    return crt_of(
        cuGraphInstantiateWithParams(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params));
}

/* The stream that uploads the graph: 0 is the thread's own. */
cudaError_t crt_cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                    cudaGraphInstantiateParams *params)
{
    if (!params || params->uploadStream)
        return crt_cudaGraphInstantiateWithParams(exec, graph, params);
    cudaGraphInstantiateParams own = *params;
    own.uploadStream = cudaStreamPerThread;
    cudaError_t r = crt_cudaGraphInstantiateWithParams(exec, graph, &own);
    params->errNode_out = own.errNode_out;
    params->result_out = own.result_out;
    return r;
}

cudaError_t crt_cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    return crt_of(cuGraphDebugDotPrint(graph, path, flags));
}

cudaError_t crt_cudaUserObjectCreate(cudaUserObject_t *object, void *p, cudaHostFn_t destroy,
                                     unsigned int count, unsigned int flags)
{
    return crt_of(cuUserObjectCreate(object, p, destroy, count, flags));
}

cudaError_t crt_cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    return crt_of(cuUserObjectRetain(object, count));
}

cudaError_t crt_cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    return crt_of(cuUserObjectRelease(object, count));
}

cudaError_t crt_cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                          unsigned int count, unsigned int flags)
{
    return crt_of(cuGraphRetainUserObject(graph, object, count, flags));
}

cudaError_t crt_cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                           unsigned int count)
{
    return crt_of(cuGraphReleaseUserObject(graph, object, count));
}

cudaError_t crt_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                              const cudaGraphNode_t *after,
                                              const cudaGraphEdgeData *data, size_t count,
                                              enum cudaStreamCaptureMode mode)
{
    return crt_of(cuStreamBeginCaptureToGraph(stream, graph, after, (const CUgraphEdgeData *)data,
                                              count, (CUstreamCaptureMode)mode));
}

/* --- edges ------------------------------------------------------------------------------------ */

/* Edges with the data that they carry. In version 12 there are also the functions without it. */
#if CUDART_VERSION < 13000
#define WITH_DATA(name) name##_v2
#define CAPTURE_INFO    crt_cudaStreamGetCaptureInfo_v3
#else
#define WITH_DATA(name) name
#define CAPTURE_INFO    crt_cudaStreamGetCaptureInfo
#endif

cudaError_t WITH_DATA(crt_cudaGraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t *from,
                                             cudaGraphNode_t *to, cudaGraphEdgeData *data,
                                             size_t *count)
{
    return crt_of(cuGraphGetEdges(graph, from, to, (CUgraphEdgeData *)data, count));
}

cudaError_t WITH_DATA(crt_cudaGraphNodeGetDependencies)(cudaGraphNode_t node,
                                                        cudaGraphNode_t *nodes,
                                                        cudaGraphEdgeData *data, size_t *count)
{
    return crt_of(cuGraphNodeGetDependencies(node, nodes, (CUgraphEdgeData *)data, count));
}

cudaError_t WITH_DATA(crt_cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node,
                                                          cudaGraphNode_t *nodes,
                                                          cudaGraphEdgeData *data, size_t *count)
{
    return crt_of(cuGraphNodeGetDependentNodes(node, nodes, (CUgraphEdgeData *)data, count));
}

cudaError_t WITH_DATA(crt_cudaGraphAddDependencies)(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                    const cudaGraphNode_t *to,
                                                    const cudaGraphEdgeData *data, size_t count)
{
    return crt_of(cuGraphAddDependencies(graph, from, to, (const CUgraphEdgeData *)data, count));
}

cudaError_t WITH_DATA(crt_cudaGraphRemoveDependencies)(cudaGraph_t graph,
                                                       const cudaGraphNode_t *from,
                                                       const cudaGraphNode_t *to,
                                                       const cudaGraphEdgeData *data, size_t count)
{
    return crt_of(cuGraphRemoveDependencies(graph, from, to, (const CUgraphEdgeData *)data, count));
}

cudaError_t WITH_DATA(crt_cudaStreamUpdateCaptureDependencies)(cudaStream_t stream,
                                                               cudaGraphNode_t *nodes,
                                                               const cudaGraphEdgeData *data,
                                                               size_t count, unsigned int flags)
{
    return crt_of(cuStreamUpdateCaptureDependencies(stream, nodes, (const CUgraphEdgeData *)data,
                                                    count, flags));
}

cudaError_t CAPTURE_INFO(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                         unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                         const cudaGraphEdgeData **data, size_t *count)
{
    CUstreamCaptureStatus s;
    cuuint64_t number = 0;
    if (!status)
        return cudaErrorInvalidValue;
    CUresult r = cuStreamGetCaptureInfo(stream, &s, &number, graph, nodes,
                                        (const CUgraphEdgeData **)data, count);
    if (r)
        return crt_of(r);
    *status = (enum cudaStreamCaptureStatus)s;
    if (id && s == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *id = number;
    return cudaSuccess;
}

#if CUDART_VERSION < 13000

cudaError_t crt_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                  size_t *count)
{
    return crt_of(cuGraphGetEdges(graph, from, to, NULL, count));
}

cudaError_t crt_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                             size_t *count)
{
    return crt_of(cuGraphNodeGetDependencies(node, nodes, NULL, count));
}

cudaError_t crt_cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                               size_t *count)
{
    return crt_of(cuGraphNodeGetDependentNodes(node, nodes, NULL, count));
}

cudaError_t crt_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                         const cudaGraphNode_t *to, size_t count)
{
    return crt_of(cuGraphAddDependencies(graph, from, to, NULL, count));
}

cudaError_t crt_cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                            const cudaGraphNode_t *to, size_t count)
{
    return crt_of(cuGraphRemoveDependencies(graph, from, to, NULL, count));
}

cudaError_t crt_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                    size_t count, unsigned int flags)
{
    return crt_of(cuStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags));
}

cudaError_t crt_cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                            enum cudaStreamCaptureStatus *status,
                                            unsigned long long *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **nodes, size_t *count)
{
    return CAPTURE_INFO(stream, status, id, graph, nodes, NULL, count);
}
#endif
