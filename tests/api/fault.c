/* A kernel that writes where it may not: this client's error, sticky, and no crash. Its own
 * program: nothing works afterwards, as CUDA has it. */
#include "tap.h"

static void illegal_address(void)
{
    CUdeviceptr nowhere = 0x10, p;
    void *params[] = { &nowhere };
    if (!tap_computes())
        tap_skip("needs a device that computes");
    CUfunction f = tap_function("poke");
    OK(cuMemAlloc(&p, 64));
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
    CUgraph g;
    CUgraphNode node;
    CUgraphExec e;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEmptyNode(&node, g, NULL, 0));
    IS(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuGraphDestroyNode(node));
    OK(cuGraphDestroy(g));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(illegal_address) };
    return tap_main(tests, COUNT(tests));
}
