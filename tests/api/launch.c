/* Launches: what they compute, both ways to pass parameters, what is refused at the call. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static void results(void)
{
    enum { N = 10000 };
    static uint32_t out[N];
    CUdeviceptr p;
    unsigned n = N;
    OK(cuMemAlloc(&p, sizeof(out)));
    OK(cuMemsetD8(p, 0xff, sizeof(out)));
    void *params[] = { &p, &n };
    OK(cuLaunchKernel(tap_function("store_index"), (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(out, p, sizeof(out)));
    if (tap_computes())
        for (uint32_t i = 0; i < N; i++)
            EQ(out[i], i);
    OK(cuMemFree(p));
}

static void mixed_parameters(void)
{
    uint8_t a = 200;
    uint64_t b = 1ull << 40, sum = 0;
    uint16_t c = 60000;
    uint32_t d = 4000000000u, e[3] = { 1, 2, 3 };
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 8));
    OK(cuMemsetD8(p, 0, 8));
    void *params[] = { &a, &b, &c, &d, e, &p };
    OK(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&sum, p, 8));
    if (tap_computes())
        EQ(sum, 200 + (1ull << 40) + 60000 + 4000000000ull + 6);

    /* The same, packed by the program. */
    uint8_t packed[48] = { 0 };
    size_t size = sizeof(packed);
    memcpy(packed + 0, &a, 1);
    memcpy(packed + 8, &b, 8);
    memcpy(packed + 16, &c, 2);
    memcpy(packed + 20, &d, 4);
    memcpy(packed + 24, e, 12);
    memcpy(packed + 40, &p, 8);
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    OK(cuMemsetD8(p, 0, 8));
    OK(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    sum = 0;
    OK(cuMemcpyDtoH(&sum, p, 8));
    if (tap_computes())
        EQ(sum, 200 + (1ull << 40) + 60000 + 4000000000ull + 6);
    IS(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
    size += 4;
    IS(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    OK(cuMemFree(p));
}

static void refused(void)
{
    CUfunction f = tap_function("nothing"), g = tap_function("store_index");
    IS(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 0, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 32, 32, 2, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel(f, 2, 3, 4, 8, 8, 8, 1024, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}

static void stale_stream(void)
{
    CUstream s;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamDestroy(s));
    IS(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x77, NULL, NULL),
       CUDA_ERROR_INVALID_HANDLE);
}

static void launch_bounds(void)
{
    CUfunction f = tap_function("bounded");
    int most = 0;
    OK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    if (!tap_computes())
        tap_skip("the null device reads no bounds");
    EQ(most, 64);
    OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    IS(cuLaunchKernel(f, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

static void extended(void)
{
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0 };
    CUlaunchConfig config = { .gridDimX = 1,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = 1,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .attrs = &attribute,
                              .numAttrs = 1 };
    OK(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL));
    config.numAttrs = 0;
    OK(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL));
    config.gridDimX = 0;
    IS(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

/* Many more launches than a ring has room for, in order. */
static void many(void)
{
    CUfunction f = tap_function("add_to");
    CUdeviceptr p;
    uint32_t by = 1, sum = 0;
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 0, 1));
    void *params[] = { &p, &by };
    for (int i = 0; i < 30000; i++)
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&sum, p, 4));
    if (tap_computes())
        EQ(sum, 30000);
    OK(cuMemFree(p));
}

static void globals_in_kernels(void)
{
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    uint32_t got[2] = { 0 };
    if (!tap_computes())
        tap_skip("needs a device that computes");
    OK(cuModuleLoadData(&m, tap_ptx));
    OK(cuModuleGetFunction(&f, m, "read_globals"));
    OK(cuMemAlloc(&p, 8));
    void *params[] = { &p };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(got, p, 8));
    EQ(got[0], 43);
    EQ(got[1], 30);
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

static void pinned_memory_in_kernels(void)
{
    CUdeviceptr d;
    uint32_t *h, n = 100;
    OK(cuMemHostAlloc((void **)&h, 400, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&d, h, 0));
    void *params[] = { &d, &n };
    OK(cuLaunchKernel(tap_function("store_index"), 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    if (tap_computes())
        EQ(h[99], 99);
    OK(cuMemFreeHost(h));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(results),      TEST(mixed_parameters),   TEST(refused),
        TEST(stale_stream), TEST(launch_bounds),      TEST(extended),
        TEST(many),         TEST(globals_in_kernels), TEST(pinned_memory_in_kernels),
    };
    return tap_main(tests, COUNT(tests));
}
