/*
 * Nodes of graphs: reads them, changes them, and changes them in executable graphs. The driver does
 * the work.
 */
#include <stdint.h>

#include "cudart/copy.h"

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "");

/* --- copies ----------------------------------------------------------------------------------- */

static CUresult change_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *c)
{
    CUcontext context;
    if (!exec)
        return cuGraphMemcpyNodeSetParams(node, c);
    CUresult r = cuCtxGetCurrent(&context);
    return r ? r : cuGraphExecMemcpyNodeSetParams(exec, node, c, context);
}

/* Without `exec` it changes the node itself. */
static cudaError_t set_copy(cudaGraphExec_t exec, cudaGraphNode_t node,
                            const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    cudaError_t r = crt_copy3d(params, &c);
    return r ? r : crt_of(change_copy(exec, node, &c));
}

static cudaError_t set_row(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src,
                           size_t size, enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms p = crt_row(dst, src, size, kind);
    return set_copy(exec, node, &p);
}

static cudaError_t set_to_symbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                 const void *src, size_t size, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    void *dst;
    if (!goes_to_variable(kind))
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = crt_part(symbol, size, offset, &dst);
    return r ? r : set_row(exec, node, dst, src, size, kind);
}

static cudaError_t set_from_symbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
                                   const void *symbol, size_t size, size_t offset,
                                   enum cudaMemcpyKind kind)
{
    void *src;
    if (!comes_from_variable(kind))
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = crt_part(symbol, size, offset, &src);
    return r ? r : set_row(exec, node, dst, src, size, kind);
}

/* Size of an array's element in bytes; 1 without an array. */
static CUresult element_of(CUarray array, size_t *size)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    *size = 1;
    CUresult r = array ? cuArray3DGetDescriptor(&d, array) : CUDA_SUCCESS;
    if (!r && array)
        *size = d.NumChannels * crt_format_size(d.Format);
    return r;
}

static struct cudaPitchedPtr pitched(CUmemorytype type, const void *host, CUdeviceptr device,
                                     size_t pitch, size_t height)
{
    void *p = (void *)(uintptr_t)(type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device);
    if (type == CU_MEMORYTYPE_ARRAY)
        return (struct cudaPitchedPtr) { 0 };
    return (struct cudaPitchedPtr) { p, pitch, pitch, height };
}

static enum cudaMemcpyKind kind_of(const CUDA_MEMCPY3D *c)
{
    bool from = c->srcMemoryType == CU_MEMORYTYPE_HOST, to = c->dstMemoryType == CU_MEMORYTYPE_HOST;
    if (c->srcMemoryType == CU_MEMORYTYPE_UNIFIED || c->dstMemoryType == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (from)
        return to ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t crt_cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    size_t from = 1, to = 1;
    if (!params)
        return cudaErrorInvalidValue;
    CUresult r = cuGraphMemcpyNodeGetParams(node, &c);
    if (r)
        return crt_of(r);
    CUarray source = c.srcMemoryType == CU_MEMORYTYPE_ARRAY ? c.srcArray : NULL;
    CUarray target = c.dstMemoryType == CU_MEMORYTYPE_ARRAY ? c.dstArray : NULL;
    r = element_of(source, &from);
    if (!r)
        r = element_of(target, &to);
    if (!r)
        *params = (struct cudaMemcpy3DParms) {
            .srcArray = (cudaArray_t)source,
            .srcPos = { c.srcXInBytes / from, c.srcY, c.srcZ },
            .srcPtr = pitched(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcPitch, c.srcHeight),
            .dstArray = (cudaArray_t)target,
            .dstPos = { c.dstXInBytes / to, c.dstY, c.dstZ },
            .dstPtr = pitched(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstPitch, c.dstHeight),
            .extent = { c.WidthInBytes / (source ? from : to), c.Height, c.Depth },
            .kind = kind_of(&c)
        };
    return crt_of(r);
}

cudaError_t crt_cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *params)
{
    return set_copy(NULL, node, params);
}

cudaError_t crt_cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                                               size_t size, enum cudaMemcpyKind kind)
{
    return set_row(NULL, node, dst, src, size, kind);
}

cudaError_t crt_cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                     const void *src, size_t size, size_t offset,
                                                     enum cudaMemcpyKind kind)
{
    return set_to_symbol(NULL, node, symbol, src, size, offset, kind);
}

cudaError_t crt_cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                                       const void *symbol, size_t size,
                                                       size_t offset, enum cudaMemcpyKind kind)
{
    return set_from_symbol(NULL, node, dst, symbol, size, offset, kind);
}

cudaError_t crt_cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                               const cudaGraphNode_t *after, size_t count,
                                               const void *symbol, const void *src, size_t size,
                                               size_t offset, enum cudaMemcpyKind kind)
{
    void *dst;
    if (!goes_to_variable(kind))
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = crt_part(symbol, size, offset, &dst);
    return r ? r : crt_cudaGraphAddMemcpyNode1D(node, graph, after, count, dst, src, size, kind);
}

cudaError_t crt_cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                 const cudaGraphNode_t *after, size_t count,
                                                 void *dst, const void *symbol, size_t size,
                                                 size_t offset, enum cudaMemcpyKind kind)
{
    void *src;
    if (!comes_from_variable(kind))
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = crt_part(symbol, size, offset, &src);
    return r ? r : crt_cudaGraphAddMemcpyNode1D(node, graph, after, count, dst, src, size, kind);
}

cudaError_t crt_cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 struct cudaMemcpy3DParms *params)
{
    return exec ? set_copy(exec, node, params) : cudaErrorInvalidValue;
}

cudaError_t crt_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                   void *dst, const void *src, size_t size,
                                                   enum cudaMemcpyKind kind)
{
    return exec ? set_row(exec, node, dst, src, size, kind) : cudaErrorInvalidValue;
}

cudaError_t crt_cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                         const void *symbol, const void *src,
                                                         size_t size, size_t offset,
                                                         enum cudaMemcpyKind kind)
{
    return exec ? set_to_symbol(exec, node, symbol, src, size, offset, kind)
                : cudaErrorInvalidValue;
}

cudaError_t crt_cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec,
                                                           cudaGraphNode_t node, void *dst,
                                                           const void *symbol, size_t size,
                                                           size_t offset, enum cudaMemcpyKind kind)
{
    return exec ? set_from_symbol(exec, node, dst, symbol, size, offset, kind)
                : cudaErrorInvalidValue;
}

/* --- fills, host functions, graphs in graphs -------------------------------------------------- */

static CUDA_MEMSET_NODE_PARAMS fill_params(const struct cudaMemsetParams *p)
{
    return (CUDA_MEMSET_NODE_PARAMS) { .dst = (CUdeviceptr)(uintptr_t)p->dst,
                                       .pitch = p->pitch,
                                       .value = p->value,
                                       .elementSize = p->elementSize,
                                       .width = p->width,
                                       .height = p->height };
}

cudaError_t crt_cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
    CUDA_MEMSET_NODE_PARAMS p;
    if (!params)
        return cudaErrorInvalidValue;
    CUresult r = cuGraphMemsetNodeGetParams(node, &p);
    if (!r)
        *params = (struct cudaMemsetParams) { .dst = (void *)(uintptr_t)p.dst,
                                              .pitch = p.pitch,
                                              .value = p.value,
                                              .elementSize = p.elementSize,
                                              .width = p.width,
                                              .height = p.height };
    return crt_of(r);
}

cudaError_t crt_cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                             const struct cudaMemsetParams *params)
{
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS p = fill_params(params);
    return crt_of(cuGraphMemsetNodeSetParams(node, &p));
}

cudaError_t crt_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 const struct cudaMemsetParams *params)
{
    CUcontext context;
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS p = fill_params(params);
    CUresult r = cuCtxGetCurrent(&context);
    return crt_of(r ? r : cuGraphExecMemsetNodeSetParams(exec, node, &p, context));
}

cudaError_t crt_cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
    CUDA_HOST_NODE_PARAMS p;
    if (!params)
        return cudaErrorInvalidValue;
    CUresult r = cuGraphHostNodeGetParams(node, &p);
    if (!r)
        *params = (struct cudaHostNodeParams) { .fn = p.fn, .userData = p.userData };
    return crt_of(r);
}

cudaError_t crt_cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *params)
{
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_HOST_NODE_PARAMS p = { .fn = params->fn, .userData = params->userData };
    return crt_of(cuGraphHostNodeSetParams(node, &p));
}

cudaError_t crt_cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               const struct cudaHostNodeParams *params)
{
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_HOST_NODE_PARAMS p = { .fn = params->fn, .userData = params->userData };
    return crt_of(cuGraphExecHostNodeSetParams(exec, node, &p));
}

cudaError_t crt_cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    return crt_of(cuGraphChildGraphNodeGetGraph(node, graph));
}

cudaError_t crt_cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     cudaGraph_t child)
{
    return crt_of(cuGraphExecChildGraphNodeSetParams(exec, node, child));
}

/* --- memory ----------------------------------------------------------------------------------- */

cudaError_t crt_cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                         const cudaGraphNode_t *after, size_t count,
                                         struct cudaMemAllocNodeParams *params)
{
    return crt_of(
        cuGraphAddMemAllocNode(node, graph, after, count, (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
}

cudaError_t crt_cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                               struct cudaMemAllocNodeParams *params)
{
    return crt_of(cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
}

cudaError_t crt_cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *after, size_t count, void *p)
{
    return crt_of(cuGraphAddMemFreeNode(node, graph, after, count, (CUdeviceptr)(uintptr_t)p));
}

cudaError_t crt_cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out)
{
    return crt_of(cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)out));
}

cudaError_t crt_cudaDeviceGraphMemTrim(int device)
{
    return crt_of(cuDeviceGraphMemTrim(device));
}

cudaError_t crt_cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                               void *value)
{
    return crt_of(cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value));
}

cudaError_t crt_cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                               void *value)
{
    return crt_of(cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value));
}
