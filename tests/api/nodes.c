#include "nodes.h"

CUstream stream;

uint32_t read_word(CUdeviceptr p)
{
    uint32_t word = 0;
    OK(cuMemcpyDtoH(&word, p, 4));
    return word;
}

CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction f, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS) { .func = f,
                                       .gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = params };
}

CUDA_KERNEL_NODE_PARAMS add_to_params(void **params)
{
    return one_thread(tap_function("add_to"), params);
}

CUgraphNode add_kernel(CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p, uint32_t by)
{
    CUgraphNode node;
    void *params[] = { &p, &by };
    CUDA_KERNEL_NODE_PARAMS k = add_to_params(params);
    OK(cuGraphAddKernelNode(&node, g, after, n, &k));
    return node;
}

CUgraphNode add_fill(CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p, uint32_t value,
                     size_t width)
{
    CUgraphNode node;
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    CUDA_MEMSET_NODE_PARAMS f = {
        .dst = p, .value = value, .elementSize = 4, .width = width, .height = 1
    };
    OK(cuGraphAddMemsetNode(&node, g, after, n, &f, c));
    return node;
}

CUDA_MEMCPY3D copy_params(CUdeviceptr dst, void *dst_host, CUdeviceptr src, const void *src_host,
                          size_t size)
{
    return (CUDA_MEMCPY3D) { .srcMemoryType = src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                             .srcHost = src_host,
                             .srcDevice = src,
                             .srcPitch = size,
                             .srcHeight = 1,
                             .dstMemoryType = dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                             .dstHost = dst_host,
                             .dstDevice = dst,
                             .dstPitch = size,
                             .dstHeight = 1,
                             .WidthInBytes = size,
                             .Height = 1,
                             .Depth = 1 };
}

CUgraphNode add_copy(CUgraph g, const CUgraphNode *after, size_t n, const CUDA_MEMCPY3D *m)
{
    CUgraphNode node;
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    OK(cuGraphAddMemcpyNode(&node, g, after, n, m, c));
    return node;
}

CUgraphExec make(CUgraph g)
{
    CUgraphExec e;
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    return e;
}

void run(CUgraphExec e)
{
    OK(cuGraphLaunch(e, stream));
    OK(cuStreamSynchronize(stream));
}

int nodes_main(const struct tap_test *tests, unsigned count)
{
    CUcontext c;
    if (cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS &&
        cuCtxSetCurrent(c) == CUDA_SUCCESS)
        (void)cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    return tap_main(tests, count);
}
