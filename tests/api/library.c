/* Libraries and their kernels; and what the device and its context say that no other test asks. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUlibrary load(void)
{
    CUlibrary l = NULL;
    OK(cuLibraryLoadData(&l, tap_ptx, NULL, NULL, 0, NULL, NULL, 0));
    return l;
}

static void kernels(void)
{
    CUkernel *all, k;
    CUlibrary l = load(), of;
    const char *name = NULL;
    unsigned count = 0, found = 0;
    OK(cuLibraryGetKernelCount(&count, l));
    TRUE(count >= 9);
    all = calloc(count, sizeof(CUkernel));
    TRUE(all != NULL);
    OK(cuLibraryEnumerateKernels(all, count, l));
    IS(cuLibraryGetKernel(&k, NULL, "store_index"), CUDA_ERROR_INVALID_HANDLE);
    IS(cuLibraryGetKernel(&k, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLibraryGetManaged(NULL, NULL, NULL, ""), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryGetKernel(&k, l, "store_index"));
    for (unsigned i = 0; i < count; i++) {
        OK(cuKernelGetName(&name, all[i]));
        found += strcmp(name, "store_index") == 0;
        OK(cuKernelGetLibrary(&of, all[i]));
        TRUE(of == l);
    }
    EQ(found, 1);
    OK(cuKernelGetName(&name, k));
    EQ(strcmp(name, "store_index"), 0);
    IS(cuLibraryEnumerateKernels(NULL, count, l), CUDA_ERROR_INVALID_VALUE);
    free(all);
    OK(cuLibraryUnload(l));
}

static void parameters(void)
{
    CUlibrary l = load();
    CUkernel k;
    size_t offset = 77, size = 77;
    OK(cuLibraryGetKernel(&k, l, "store_index"));
    OK(cuKernelGetParamInfo(k, 0, &offset, &size));
    EQ(offset, 0);
    EQ(size, 8);
    OK(cuKernelGetParamInfo(k, 1, &offset, &size));
    EQ(offset, 8);
    EQ(size, 4);
    IS(cuKernelGetParamInfo(k, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    IS(cuKernelGetParamInfo(NULL, 0, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryUnload(l));
}

static void attributes(void)
{
    CUlibrary l = load();
    CUkernel k;
    int value = 0;
    OK(cuLibraryGetKernel(&k, l, "bounded"));
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
    if (tap_computes())
        EQ(value, 64);
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096, k, 0));
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
    EQ(value, 4096);
    OK(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 0));
    IS(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 99),
       CUDA_ERROR_INVALID_DEVICE);
    OK(cuLibraryUnload(l));
}

static void loading(void)
{
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
    CUmoduleLoadingMode mode = 0;
    CUfunction f = tap_function("add_to");
    OK(cuFuncLoad(f));
    OK(cuFuncIsLoaded(&state, f));
    EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
    OK(cuModuleGetLoadingMode(&mode));
    TRUE(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
}

static void from_a_file(void)
{
    char path[] = "/tmp/gmux-library-XXXXXX";
    size_t size = strlen(tap_ptx);
    CUlibrary l;
    CUkernel k;
    int fd = mkstemp(path);
    TRUE(fd >= 0);
    TRUE(write(fd, tap_ptx, size) == (ssize_t)size);
    close(fd);
    CUresult r = cuLibraryLoadFromFile(&l, path, NULL, NULL, 0, NULL, NULL, 0);
    unlink(path);
    OK(r);
    OK(cuLibraryGetKernel(&k, l, "nothing"));
    OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuLibraryUnload(l));
    IS(cuLibraryLoadFromFile(&l, path, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_FILE_NOT_FOUND);
}

static void the_device(void)
{
    CUdevprop p;
    CUstream s;
    CUdevice device = 77;
    int major = 0, minor = 0, value = 0;
    size_t width = 0;
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    EQ(major, value);
    OK(cuDeviceGetProperties(&p, 0));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    EQ(p.maxThreadsPerBlock, value);
    EQ(p.SIMDWidth, 32);
    CUresult r = cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 0);
    if (r != CUDA_ERROR_NOT_SUPPORTED || tap_genuine()) { /* a device without textures */
        OK(r);
        TRUE(width > 0);
    }
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamGetDevice(s, &device));
    EQ(device, 0);
    OK(cuStreamDestroy(s));
}

static void fills_of_rows(void)
{
    CUdeviceptr p;
    uint32_t words[3][4];
    OK(cuMemAlloc(&p, sizeof(words)));
    OK(cuMemsetD8(p, 0, sizeof(words)));
    OK(cuMemsetD2D8Async(p, 16, 0x11, 3, 3, NULL));
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    for (int y = 0; y < 3; y++) {
        EQ(words[y][0], 0x111111);
        EQ(words[y][1], 0);
    }
    OK(cuMemsetD2D16Async(p, 16, 0x2222, 3, 2, NULL));
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    EQ(words[1][0], 0x22222222);
    EQ(words[1][1], 0x2222);
    EQ(words[2][0], 0x111111);
    OK(cuMemsetD2D32(p, 16, 0x33333333, 2, 3));
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    EQ(words[2][1], 0x33333333);
    EQ(words[2][2], 0);
    OK(cuMemFree(p));
}

static void events_of_nodes(void)
{
    CUgraph g;
    CUgraphNode record, wait;
    CUevent a, b, is;
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEventRecordNode(&record, g, NULL, 0, a));
    OK(cuGraphAddEventWaitNode(&wait, g, NULL, 0, a));
    OK(cuGraphEventRecordNodeSetEvent(record, b));
    OK(cuGraphEventRecordNodeGetEvent(record, &is));
    TRUE(is == b);
    OK(cuGraphEventWaitNodeSetEvent(wait, b));
    OK(cuGraphEventWaitNodeGetEvent(wait, &is));
    TRUE(is == b);
    OK(cuGraphDestroy(g));
    OK(cuEventDestroy(a));
    OK(cuEventDestroy(b));
}

static void managed_ranges(void)
{
    CUdeviceptr p;
    int mostly = 9, preferred = 9;
    void *data[] = { &mostly, &preferred };
    size_t sizes[] = { sizeof(mostly), sizeof(preferred) };
    CUmem_range_attribute asked[] = { CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                      CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION };
    const CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    OK(cuMemAllocManaged(&p, 2 << 20, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAdvise(p, 2 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    OK(cuMemAdvise(p, 2 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
    OK(cuMemRangeGetAttributes(data, sizes, asked, 2, p, 2 << 20));
    EQ(mostly, 1);
    EQ(preferred, 0);
    OK(cuMemFree(p));
}

/* What is captured of a library's kernel names it as one, by which NVIDIA's runtime of 13.0 knows
 * it; a module's function has no kernel (driver 580.159.04). */
static void captured_kernels(void)
{
    CUlibrary l = load();
    CUkernel k;
    CUstream s;
    CUgraph g = NULL;
    CUgraphNode nodes[2];
    size_t count = 2;
    CUdeviceptr p;
    uint32_t offset = 0;
    void *params[] = { &p, &offset };
    CUDA_KERNEL_NODE_PARAMS of[2];
    OK(cuLibraryGetKernel(&k, l, "store_index"));
    OK(cuMemAlloc(&p, 64));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 2, 1, 1, 0, s, params, NULL));
    OK(cuLaunchKernel(tap_function("store_index"), 1, 1, 1, 2, 1, 1, 0, s, params, NULL));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, nodes, &count));
    EQ(count, 2);
    for (unsigned i = 0; i < 2; i++)
        OK(cuGraphKernelNodeGetParams(nodes[i], &of[i]));
    unsigned kernel = of[0].kern ? 0 : 1;
    TRUE(of[kernel].kern == k && of[kernel].func != NULL);
    TRUE(of[!kernel].kern == NULL && of[!kernel].func == tap_function("store_index"));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
    OK(cuLibraryUnload(l));
}

/* Handles outlive the primary context; the variables of the next one have their first values,
 * wherever they are. */
static void after_a_reset(void)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    CUlibrary l;
    CUkernel k;
    CUcontext before, c;
    CUdeviceptr counter, p;
    size_t size = 0;
    uint32_t value = 7, count = 2, words[2] = { 0 };
    void *params[] = { &p, &count };
    if (!tap_computes())
        tap_skip("nothing is computed");
    OK(cuCtxGetCurrent(&before));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    OK(cuLibraryLoadData(&l, tap_ptx, NULL, NULL, 0, &option, NULL, 1));
    OK(cuLibraryGetKernel(&k, l, "store_index"));
    for (int i = 0; i < 3; i++) {
        OK(cuLibraryGetGlobal(&counter, &size, l, "counter"));
        IS(cuLibraryGetGlobal(&p, NULL, l, ""), CUDA_ERROR_INVALID_VALUE);
        IS(cuLibraryGetGlobal(&p, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
        EQ(size, 4);
        OK(cuMemcpyDtoH(&value, counter, 4));
        EQ(value, 42);
        value = 1000 + (uint32_t)i;
        OK(cuMemcpyHtoD(counter, &value, 4));
        OK(cuMemAlloc(&p, 64));
        OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 2, 1, 1, 0, NULL, params, NULL));
        OK(cuMemcpyDtoH(words, p, sizeof(words)));
        EQ(words[1], 1);
        OK(cuDevicePrimaryCtxReset(0));
        OK(cuDevicePrimaryCtxRetain(&c, 0));
        OK(cuCtxSetCurrent(c));
    }
    OK(cuLibraryUnload(l));
    OK(cuCtxSetCurrent(before));
    (void)cuDevicePrimaryCtxRelease(0);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(kernels),        TEST(parameters),       TEST(attributes),    TEST(loading),
        TEST(from_a_file),    TEST(the_device),       TEST(fills_of_rows), TEST(events_of_nodes),
        TEST(managed_ranges), TEST(captured_kernels), TEST(after_a_reset),
    };
    return tap_main(tests, COUNT(tests));
}
