/*
 * Graph nodes that are described by a struct whose first word is their kind, and handles of
 * conditional nodes. The driver does the work.
 */
#include <string.h>

#include "cudart/cudart.h"

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams), "");
_Static_assert(sizeof(struct cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
               "");
/* The new name has the old one's layout. */
_Static_assert(sizeof(struct cudaKernelNodeParamsV2) == sizeof(struct cudaKernelNodeParams), "");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(CUDA_KERNEL_NODE_PARAMS), "");
_Static_assert(sizeof(struct cudaConditionalNodeParams) <= sizeof(CUDA_CONDITIONAL_NODE_PARAMS),
               "");

static cudaError_t kernel(const struct cudaKernelNodeParamsV2 *in, CUDA_KERNEL_NODE_PARAMS_v3 *out)
{
    struct cudaKernelNodeParams params;
    CUDA_KERNEL_NODE_PARAMS p;
    memcpy(&params, in, sizeof(params));
    cudaError_t r = crt_kernel_node(&params, &p);
    if (!r)
        memcpy(out, &p, sizeof(p));
    return r;
}

/* Translates to the driver's struct, in the current context. Unknown kinds are passed on, so that
 * the driver refuses them. */
static cudaError_t translate(const struct cudaGraphNodeParams *in, CUgraphNodeParams *out)
{
    CUcontext context;
    if (!in)
        return cudaErrorInvalidValue;
    cudaError_t r = crt_of(cuCtxGetCurrent(&context));
    if (r)
        return r;
    *out = (CUgraphNodeParams) { .type = (CUgraphNodeType)in->type };
    switch (in->type) {
    case cudaGraphNodeTypeKernel:
        return kernel(&in->kernel, &out->kernel);
    case cudaGraphNodeTypeMemcpy:
        out->memcpy.flags = in->memcpy.flags;
        out->memcpy.copyCtx = context;
        return crt_copy3d(&in->memcpy.copyParams, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        out->memset = (CUDA_MEMSET_NODE_PARAMS_v2) { .dst = (CUdeviceptr)(uintptr_t)in->memset.dst,
                                                     .pitch = in->memset.pitch,
                                                     .value = in->memset.value,
                                                     .elementSize = in->memset.elementSize,
                                                     .width = in->memset.width,
                                                     .height = in->memset.height,
                                                     .ctx = context };
        return cudaSuccess;
    case cudaGraphNodeTypeHost:
        out->host = (CUDA_HOST_NODE_PARAMS_v2) { .fn = in->host.fn, .userData = in->host.userData };
        return cudaSuccess;
    case cudaGraphNodeTypeGraph:
        out->graph.graph = in->graph.graph;
        out->graph.ownership = (CUgraphChildGraphNodeOwnership)in->graph.ownership;
        return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        out->eventWait.event = in->eventWait.event;
        return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
        out->eventRecord.event = in->eventRecord.event;
        return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
        memcpy(&out->alloc, &in->alloc, sizeof(in->alloc));
        return cudaSuccess;
    case cudaGraphNodeTypeMemFree:
        out->free.dptr = (CUdeviceptr)(uintptr_t)in->free.dptr;
        return cudaSuccess;
    case cudaGraphNodeTypeConditional:
        out->conditional =
            (CUDA_CONDITIONAL_NODE_PARAMS) { .handle = in->conditional.handle,
                                             .type =
                                                 (CUgraphConditionalNodeType)in->conditional.type,
                                             .size = in->conditional.size,
                                             .ctx = context };
        return cudaSuccess;
    default:
        return cudaSuccess;
    }
}

static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                       const cudaGraphEdgeData *data, size_t count,
                       struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams p;
    cudaError_t r = translate(params, &p);
    if (!r)
        r = crt_of(cuGraphAddNode(node, graph, after, (const CUgraphEdgeData *)data, count, &p));
    if (!r && params->type == cudaGraphNodeTypeMemAlloc)
        params->alloc.dptr = (void *)(uintptr_t)p.alloc.dptr;
    if (!r && params->type == cudaGraphNodeTypeConditional)
        params->conditional.phGraph_out = p.conditional.phGraph_out;
    return r;
}

#if CUDART_VERSION < 13000
cudaError_t crt_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *after, size_t count,
                                 struct cudaGraphNodeParams *params)
{
    return add(node, graph, after, NULL, count, params);
}

cudaError_t crt_cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *after, const cudaGraphEdgeData *data,
                                    size_t count, struct cudaGraphNodeParams *params)
#else
cudaError_t crt_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *after, const cudaGraphEdgeData *data,
                                 size_t count, struct cudaGraphNodeParams *params)
#endif
{
    return add(node, graph, after, data, count, params);
}

cudaError_t crt_cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams p;
    cudaError_t r = translate(params, &p);
    return r ? r : crt_of(cuGraphNodeSetParams(node, &p));
}

cudaError_t crt_cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams p;
    cudaError_t r = translate(params, &p);
    return r ? r : crt_of(cuGraphExecNodeSetParams(exec, node, &p));
}

cudaError_t crt_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle,
                                                 cudaGraph_t graph, unsigned int value,
                                                 unsigned int flags)
{
    CUcontext context;
    CUgraphConditionalHandle h;
    if (!handle)
        return cudaErrorInvalidValue;
    cudaError_t r = crt_of(cuCtxGetCurrent(&context));
    if (!r)
        r = crt_of(cuGraphConditionalHandleCreate(&h, graph, context, value, flags));
    if (!r)
        *handle = h;
    return r;
}
