/* A kernel that writes where it may not: this client's error, sticky, and no crash. Its own
 * program: nothing works afterwards, as CUDA has it. */
#include "tap.h"

static void illegal_address(void)
{
    CUdeviceptr nowhere = 0x10, p;
    void *params[] = { &nowhere };
    CUmemoryPool pool;
    if (!tap_computes())
        tap_skip("needs a device that computes");
    CUfunction f = tap_function("poke");
    CUgraphExec before;
    CUgraph empty;
    OK(cuMemAlloc(&p, 64));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuGraphCreate(&empty, 0));
    OK(cuGraphInstantiateWithFlags(&before, empty, 0));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuMemAlloc(&p, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    int n = 0;
    OK(cuDeviceGetCount(&n)); /* what asks nothing of the device still works */
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    uint64_t value = 0;
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    OK(cuMemPoolTrimTo(pool, 0));
    OK(cuDeviceGetMemPool(&pool, 0));
    IS(cuMemAddressFree(0, 2 << 20), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(before));
    IS(cuFuncLoad(f), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_NONE), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUgraph g;
    CUgraphNode node;
    CUgraphExec e;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEmptyNode(&node, g, NULL, 0));
    IS(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuGraphDestroyNode(node));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(empty));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(illegal_address) };
    return tap_main(tests, COUNT(tests));
}
