/*
 * Calls that a thread may not make while one of its streams captures, whatever their arguments:
 * each is refused, and spoils the capture. Others may be made.
 */
#include "tap.h"

#include <string.h>

static CUstream s;
static CUdeviceptr memory;
static void *host;
static CUmemoryPool pool;
static CUarray array;
static CUmodule module;
static CUlibrary library;

static CUresult texture(void)
{
    CUtexObject t;
    CUDA_RESOURCE_DESC r;
    CUDA_TEXTURE_DESC d;
    memset(&r, 0, sizeof(r));
    memset(&d, 0, sizeof(d));
    r.res.array.hArray = array;
    return cuTexObjectCreate(&t, &r, &d, NULL);
}

static CUresult texture_end(void)
{
    return cuTexObjectDestroy(0);
}

static CUresult surface(void)
{
    CUsurfObject t;
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof(r));
    r.res.array.hArray = array;
    return cuSurfObjectCreate(&t, &r);
}

static const CUDA_ARRAY3D_DESCRIPTOR shape = { .Width = 16,
                                               .Format = CU_AD_FORMAT_FLOAT,
                                               .NumChannels = 1 };

static CUresult array_1d(void)
{
    CUarray a;
    const CUDA_ARRAY_DESCRIPTOR d = { .Width = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
    return cuArrayCreate(&a, &d);
}

static CUresult array_3d(void)
{
    CUarray a;
    return cuArray3DCreate(&a, &shape);
}

static CUresult mipmap(void)
{
    CUmipmappedArray m;
    return cuMipmappedArrayCreate(&m, &shape, 1);
}

static CUresult pool_create(void)
{
    CUmemoryPool p;
    const CUmemPoolProps props = { 0 };
    return cuMemPoolCreate(&p, &props);
}

static CUresult pool_destroy(void)
{
    return cuMemPoolDestroy(pool);
}

static CUresult pool_trim(void)
{
    return cuMemPoolTrimTo(pool, 0);
}

static CUresult pool_set(void)
{
    uint64_t value = 0;
    return cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
}

static CUresult pool_get(void)
{
    uint64_t value = 0;
    return cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
}

static CUresult pool_set_access(void)
{
    const CUmemAccessDesc to = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
                                 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    return cuMemPoolSetAccess(pool, &to, 1);
}

static CUresult pool_get_access(void)
{
    CUmemAccess_flags flags;
    CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
    return cuMemPoolGetAccess(&flags, pool, &here);
}

static CUresult device_pool(void)
{
    return cuDeviceSetMemPool(0, pool);
}

static CUresult from_pool_elsewhere(void)
{
    CUdeviceptr p;
    return cuMemAllocFromPoolAsync(&p, 64, pool, CU_STREAM_PER_THREAD);
}

static CUresult pinned(void)
{
    void *p;
    return cuMemHostAlloc(&p, 64, 0xffffffff);
}

static CUresult pinned_end(void)
{
    return cuMemFreeHost(NULL);
}

static CUresult registered(void)
{
    return cuMemHostRegister(host, 4096, 0x20);
}

static CUresult unload(void)
{
    return cuModuleUnload(module);
}

static CUresult unregistered(void)
{
    return cuMemHostUnregister(host);
}

static CUresult array_end(void)
{
    return cuArrayDestroy(array);
}

static CUresult library_end(void)
{
    return cuLibraryUnload(library);
}

static CUresult alloc_elsewhere(void)
{
    CUdeviceptr p;
    return cuMemAllocAsync(&p, 64, CU_STREAM_PER_THREAD);
}

static CUresult free_elsewhere(void)
{
    return cuMemFreeAsync(memory + 1, CU_STREAM_PER_THREAD);
}

static CUresult profiler(void)
{
    return cuProfilerStart();
}

static CUresult peer(void)
{
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    return cuCtxDisablePeerAccess(c);
}

static void unsafe(void)
{
    static const struct {
        const char *name;
        CUresult (*call)(void);
    } calls[] = {
        { "cuTexObjectCreate", texture },
        { "cuTexObjectDestroy", texture_end },
        { "cuSurfObjectCreate", surface },
        { "cuArrayCreate", array_1d },
        { "cuArray3DCreate", array_3d },
        { "cuMipmappedArrayCreate", mipmap },
        { "cuMemPoolCreate", pool_create },
        { "cuMemPoolDestroy", pool_destroy },
        { "cuMemPoolTrimTo", pool_trim },
        { "cuMemPoolSetAttribute", pool_set },
        { "cuMemPoolGetAttribute", pool_get },
        { "cuMemPoolSetAccess", pool_set_access },
        { "cuMemPoolGetAccess", pool_get_access },
        { "cuDeviceSetMemPool", device_pool },
        { "cuMemAllocFromPoolAsync", from_pool_elsewhere },
        { "cuMemHostAlloc", pinned },
        { "cuMemFreeHost", pinned_end },
        { "cuMemHostRegister", registered },
        { "cuMemHostUnregister", unregistered },
        { "cuArrayDestroy", array_end },
        { "cuLibraryUnload", library_end },
        { "cuMemAllocAsync", alloc_elsewhere },
        { "cuMemFreeAsync", free_elsewhere },
        { "cuProfilerStart", profiler },
        { "cuModuleUnload", unload },
        { "cuCtxDisablePeerAccess", peer },
    };
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
    CUgraph g;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&memory, 64));
    OK(cuMemHostAlloc(&host, 4096, 0));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuArray3DCreate(&array, &shape));
    OK(cuModuleLoadData(&module, tap_ptx));
    OK(cuLibraryLoadData(&library, tap_ptx, NULL, NULL, 0, NULL, NULL, 0));
    for (size_t i = 0; i < COUNT(calls); i++) {
        OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
        tap_check_result(__FILE__, __LINE__, calls[i].name, calls[i].call(),
                         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    OK(cuModuleUnload(module));
    OK(cuLibraryUnload(library));
    OK(cuArrayDestroy(array));
    OK(cuMemPoolDestroy(pool));
    OK(cuMemFreeHost(host));
    OK(cuMemFree(memory));
    OK(cuStreamDestroy(s));
}

/* A stream that waits for an event of a spoilt capture. */
static void spoilt_event(void)
{
    CUstream t;
    CUevent e;
    CUgraph g;
    CUdeviceptr p;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(e, s));
    IS(cuMemAlloc(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamWaitEvent(t, e, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuMemAllocFromPoolAsync(&p, 64, NULL, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuMemFreeAsync(0, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamWriteValue32(s, 0, 1, 2), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(t));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(unsafe),
        TEST(spoilt_event),
    };
    return tap_main(tests, COUNT(tests));
}
