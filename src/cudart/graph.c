/*
 * Graphs and captures: passed on to the driver. A program names kernels by its own addresses.
 */
#include <stdint.h>

#include "cudart/cudart.h"

cudaError_t crt_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return crt_of(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

cudaError_t crt_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return crt_of(cuStreamEndCapture(stream, graph));
}

cudaError_t crt_cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    CUstreamCaptureStatus s;
    if (!status)
        return cudaErrorInvalidValue;
    CUresult r = cuStreamIsCapturing(stream, &s);
    if (!r)
        *status = (enum cudaStreamCaptureStatus)s;
    return crt_of(r);
}

cudaError_t crt_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    cudaError_t d = crt_driver();
    if (d || !mode)
        return d ? d : cudaErrorInvalidValue;
    CUstreamCaptureMode m = (CUstreamCaptureMode)*mode;
    CUresult r = cuThreadExchangeStreamCaptureMode(&m);
    if (!r)
        *mode = (enum cudaStreamCaptureMode)m;
    return crt_of(r);
}

cudaError_t crt_cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    return crt_of(cuGraphCreate(graph, flags));
}

cudaError_t crt_cudaGraphDestroy(cudaGraph_t graph)
{
    return crt_of(cuGraphDestroy(graph));
}

cudaError_t crt_cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    return crt_of(cuGraphClone(clone, graph));
}

cudaError_t crt_kernel_node(const struct cudaKernelNodeParams *in, CUDA_KERNEL_NODE_PARAMS *out)
{
    CUfunction f;
    cudaError_t r = in ? crt_function(in->func, &f) : cudaErrorInvalidValue;
    if (!r)
        *out = (CUDA_KERNEL_NODE_PARAMS) { .func = f,
                                           .gridDimX = in->gridDim.x,
                                           .gridDimY = in->gridDim.y,
                                           .gridDimZ = in->gridDim.z,
                                           .blockDimX = in->blockDim.x,
                                           .blockDimY = in->blockDim.y,
                                           .blockDimZ = in->blockDim.z,
                                           .sharedMemBytes = in->sharedMemBytes,
                                           .kernelParams = in->kernelParams,
                                           .extra = in->extra };
    return r;
}

cudaError_t crt_cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *after, size_t count,
                                       const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS p;
    cudaError_t r = crt_kernel_node(params, &p);
    return r ? r : crt_of(cuGraphAddKernelNode(node, graph, after, count, &p));
}

static CUresult current(CUcontext *context)
{
    return cuCtxGetCurrent(context);
}

cudaError_t crt_cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *after, size_t count,
                                       const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    CUcontext context;
    cudaError_t r = crt_copy3d(params, &c);
    if (!r)
        r = crt_of(current(&context));
    return r ? r : crt_of(cuGraphAddMemcpyNode(node, graph, after, count, &c, context));
}

struct cudaMemcpy3DParms crt_row(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
    return (struct cudaMemcpy3DParms) { .srcPtr = { (void *)(uintptr_t)src, size, size, 1 },
                                        .dstPtr = { dst, size, size, 1 },
                                        .extent = { size, 1, 1 },
                                        .kind = kind };
}

cudaError_t crt_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                         const cudaGraphNode_t *after, size_t count, void *dst,
                                         const void *src, size_t size, enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms p = crt_row(dst, src, size, kind);
    return crt_cudaGraphAddMemcpyNode(node, graph, after, count, &p);
}

cudaError_t crt_cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *after, size_t count,
                                       const struct cudaMemsetParams *params)
{
    CUcontext context;
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS p = { .dst = (CUdeviceptr)(uintptr_t)params->dst,
                                  .pitch = params->pitch,
                                  .value = params->value,
                                  .elementSize = params->elementSize,
                                  .width = params->width,
                                  .height = params->height };
    CUresult r = current(&context);
    return crt_of(r ? r : cuGraphAddMemsetNode(node, graph, after, count, &p, context));
}

cudaError_t crt_cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *after, size_t count,
                                     const struct cudaHostNodeParams *params)
{
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_HOST_NODE_PARAMS p = { .fn = params->fn, .userData = params->userData };
    return crt_of(cuGraphAddHostNode(node, graph, after, count, &p));
}

cudaError_t crt_cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *after, size_t count)
{
    return crt_of(cuGraphAddEmptyNode(node, graph, after, count));
}

cudaError_t crt_cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *after, size_t count,
                                           cudaGraph_t child)
{
    return crt_of(cuGraphAddChildGraphNode(node, graph, after, count, child));
}

cudaError_t crt_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return crt_of(cuGraphGetNodes(graph, nodes, count));
}

cudaError_t crt_cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return crt_of(cuGraphGetRootNodes(graph, nodes, count));
}

cudaError_t crt_cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    CUgraphNodeType t;
    if (!type)
        return cudaErrorInvalidValue;
    CUresult r = cuGraphNodeGetType(node, &t);
    if (!r)
        *type = (enum cudaGraphNodeType)t;
    return crt_of(r);
}

cudaError_t crt_cudaGraphDestroyNode(cudaGraphNode_t node)
{
    return crt_of(cuGraphDestroyNode(node));
}

cudaError_t crt_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                     unsigned long long flags)
{
    return crt_of(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t crt_cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                              unsigned long long flags)
{
    return crt_of(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t crt_cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return crt_of(cuGraphExecDestroy(exec));
}

cudaError_t crt_cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                    cudaGraphExecUpdateResultInfo *info)
{
    CUgraphExecUpdateResultInfo i = { 0 };
    CUresult r = cuGraphExecUpdate(exec, graph, &i);
    if (info && (r == CUDA_SUCCESS || r == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE))
        *info = (cudaGraphExecUpdateResultInfo) { (enum cudaGraphExecUpdateResult)i.result,
                                                  i.errorNode, i.errorFromNode };
    return crt_of(r);
}

cudaError_t crt_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS p;
    cudaError_t r = crt_kernel_node(params, &p);
    return r ? r : crt_of(cuGraphExecKernelNodeSetParams(exec, node, &p));
}

cudaError_t crt_cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS p;
    cudaError_t r = crt_kernel_node(params, &p);
    return r ? r : crt_of(cuGraphKernelNodeSetParams(node, &p));
}

cudaError_t crt_cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                             struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS p;
    if (!params)
        return cudaErrorInvalidValue;
    CUresult r = cuGraphKernelNodeGetParams(node, &p);
    if (!r)
        *params =
            (struct cudaKernelNodeParams) { .func = crt_host(p.func, p.kern),
                                            .gridDim = { p.gridDimX, p.gridDimY, p.gridDimZ },
                                            .blockDim = { p.blockDimX, p.blockDimY, p.blockDimZ },
                                            .sharedMemBytes = p.sharedMemBytes,
                                            .kernelParams = p.kernelParams,
                                            .extra = p.extra };
    return crt_of(r);
}

cudaError_t crt_cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    return crt_of(cuGraphUpload(exec, stream));
}

cudaError_t crt_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return crt_of(cuGraphLaunch(exec, stream));
}
