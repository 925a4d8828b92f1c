/* What this library does not do: it says so, once each, and the device's attributes do not promise
 * it. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/session/session.h"
#include "fake.h"

static struct fake fake;
static FILE *log_file;

static void setup(void)
{
    CUcontext c;
    setenv("GMUX_LOG", "warn", 1);
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    for (unsigned i = 1; i < RT_ATTRIBUTES; i++)
        rt_session->devices[0].attributes[i] = 1; /* a device that can do everything */
    log_file = tmpfile();
    cr_assert(log_file && dup2(fileno(log_file), STDERR_FILENO) == STDERR_FILENO);
}

TestSuite(refusal, .init = setup, .timeout = 30);

/* How often `text` has been said. */
static unsigned said(const char *text)
{
    static char all[8192];
    unsigned n = 0;
    ssize_t size = pread(fileno(log_file), all, sizeof(all) - 1, 0);
    cr_assert(size >= 0);
    all[size] = '\0';
    for (const char *p = all; (p = strstr(p, text)); p++)
        n++;
    return n;
}

#define REFUSED(call, text)                                                                        \
    do {                                                                                           \
        cr_assert_eq(said(text), 0, "%s", text);                                                   \
        for (int i_ = 0; i_ < 3; i_++)                                                             \
            cr_assert_eq(call, CUDA_ERROR_NOT_SUPPORTED, "%s", #call);                             \
        cr_assert_eq(said(text), 1, "%s", text);                                                   \
    } while (0)

Test(refusal, memory)
{
    CUmemGenericAllocationHandle h;
    CUmemoryPool pool;
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location.type = CU_MEM_LOCATION_TYPE_HOST };
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location.type = CU_MEM_LOCATION_TYPE_HOST };
    REFUSED(cuMemCreate(&h, 2 << 20, &prop, 0), "cuMemCreate of host memory");
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    REFUSED(cuMemCreate(&h, 2 << 20, &prop, 0), "cuMemCreate for another kind of handle");
    REFUSED(cuMemPoolCreate(&pool, &props), "a memory pool of host");
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    REFUSED(cuMemPoolCreate(&pool, &props), "a memory pool for another kind");
}

Test(refusal, launches_and_streams)
{
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    unsigned n = 1;
    void *params[] = { &p, &n };
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE };
    const CUlaunchConfig config = { 1, 1, 1, 1, 1, 1, 0, NULL, &a, 1 };
    CUstreamBatchMemOpParams op = { .operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES };
    cr_assert_eq(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
    cr_assert_eq(cuModuleLoadData(&m, ".version 8.0"), CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetFunction(&f, m, "k"), CUDA_SUCCESS);
    REFUSED(cuLaunchKernelEx(&config, f, params, NULL), "a launch of a node that kernels update");
    REFUSED(cuStreamBatchMemOp_v2(NULL, 1, &op, 0), "flushing other devices' writes");
    rt_session->devices[0].attributes[CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES] = 0;
    cr_assert_eq(cuStreamBatchMemOp_v2(NULL, 1, &op, 0), CUDA_ERROR_NOT_SUPPORTED,
                 "as on any such device");
}

Test(refusal, contexts)
{
    CUcontext c;
    CUctxCigParam cig = { 0 };
    CUctxCreateParams params = { .cigParams = &cig };
    REFUSED(cuCtxCreate_v4(&c, &params, 0, 0), "a context that shares with a graphics queue");
}

Test(refusal, attributes_of_the_device)
{
    static const CUdevice_attribute none[] = {
        CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
        CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
        CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH,
        CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    };
    int v = -1;
    for (size_t i = 0; i < GM_ARRAY_LEN(none); i++) {
        cr_assert_eq(cuDeviceGetAttribute(&v, none[i], 0), CUDA_SUCCESS);
        cr_assert_eq(v, 0, "attribute %d", (int)none[i]);
    }
    cr_assert_eq(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0), CUDA_SUCCESS);
    cr_assert_eq(v, 1, "what it does is not hidden");
}
