/* Contexts: primary and own ones, the stack, limits and settings. */
#include "answers.h"

static void primary(void)
{
    unsigned flags = 99;
    int active = 99;
    CUcontext a, b, before;
    cuCtxGetCurrent(&before);
    CALL(cuDevicePrimaryCtxGetState(0, &flags, &active));
    NUM(flags);
    NUM(active);
    CALL(cuDevicePrimaryCtxRetain(&a, 0));
    NUM(a == before);
    CALL(cuDevicePrimaryCtxRelease(0));
    CALL(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    CALL(cuDevicePrimaryCtxGetState(0, &flags, &active));
    NUM(flags);
    CALL(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_MASK));
    CALL(cuDevicePrimaryCtxSetFlags(0, 0x1000));
    CALL(cuDevicePrimaryCtxRelease(0));
    CALL(cuDevicePrimaryCtxGetState(0, &flags, &active));
    NUM(active);
    NUM(flags);
    CALL(cuDevicePrimaryCtxRelease(0));
    CALL(cuDevicePrimaryCtxRetain(&b, 0));
    CALL(cuDevicePrimaryCtxReset(0));
    CALL(cuDevicePrimaryCtxGetState(0, &flags, &active));
    NUM(active);
    CALL(cuDevicePrimaryCtxRetain(&a, 1000));
    CALL(cuDevicePrimaryCtxRetain(NULL, 0));
    CALL(cuDevicePrimaryCtxRelease(1000));
    CALL(cuDevicePrimaryCtxReset(1000));
    CALL(cuDevicePrimaryCtxGetState(1000, &flags, &active));
}

/* The primary context is gone while it is current. */
static void primary_released(void)
{
    CUcontext c;
    CUdeviceptr p;
    CUdevice d = 9;
    CALL(cuDevicePrimaryCtxRelease(0));
    CALL(cuCtxGetCurrent(&c));
    NUM(c != NULL);
    CALL(cuCtxGetDevice(&d));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuCtxSynchronize());
    CALL(cuDevicePrimaryCtxRetain(&c, 0));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuCtxSetCurrent(c));
    CALL(cuMemAlloc(&p, 64));
}

static void own(void)
{
    CUcontext a, b, c;
    CUdevice d = 99;
    unsigned flags = 99, version = 0;
    unsigned long long id = 0, id2 = 0;
    CALL(cuCtxCreate(&a, NULL, 0, 0));
    CALL(cuCtxGetCurrent(&c));
    NUM(c == a);
    CALL(cuCtxGetDevice(&d));
    NUM(d);
    CALL(cuCtxGetFlags(&flags));
    NUM(flags);
    CALL(cuCtxGetApiVersion(a, &version));
    NUM(version);
    CALL(cuCtxGetApiVersion(NULL, &version));
    NUM(version);
    CALL(cuCtxGetId(a, &id));
    CALL(cuCtxGetId(NULL, &id2));
    NUM(id == id2);
    CALL(cuCtxCreate(&b, NULL, CU_CTX_SCHED_SPIN | CU_CTX_MAP_HOST, 0));
    CALL(cuCtxGetFlags(&flags));
    NUM(flags);
    CALL(cuCtxGetId(b, &id2));
    NUM(id != id2);
    CALL(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
    CALL(cuCtxGetFlags(&flags));
    NUM(flags);
    CALL(cuCtxSetFlags(0x4000));
    CALL(cuCtxSetFlags(CU_CTX_SCHED_MASK));
    CALL(cuCtxDestroy(b));
    CALL(cuCtxGetCurrent(&c));
    NUM(c == a);
    CALL(cuCtxDestroy(a));
    CALL(cuCtxGetCurrent(&c));
    NUM(c != a);
    NUM(c != NULL);
    CALL(cuCtxCreate(&a, NULL, 0x4000, 0));
    CALL(cuCtxCreate(&a, NULL, 0, 1000));
    CALL(cuCtxCreate(NULL, NULL, 0, 0));
    CALL(cuCtxDestroy(NULL));
    CALL(cuCtxGetId(NULL, NULL));
    CALL(cuCtxGetFlags(NULL));
}

static void stack(void)
{
    CUcontext base, a, b, c = NULL;
    CUdevice d = 99;
    cuCtxGetCurrent(&base);
    CALL(cuCtxCreate(&a, NULL, 0, 0));
    CALL(cuCtxCreate(&b, NULL, 0, 0));
    CALL(cuCtxPopCurrent(&c));
    NUM(c == b);
    CALL(cuCtxPopCurrent(&c));
    NUM(c == a);
    CALL(cuCtxPopCurrent(&c));
    NUM(c == base);
    CALL(cuCtxGetCurrent(&c));
    NUM(c == NULL);
    CALL(cuCtxPopCurrent(&c));
    CALL(cuCtxGetDevice(&d));
    CALL(cuCtxPushCurrent(a));
    CALL(cuCtxPushCurrent(a));
    CALL(cuCtxPopCurrent(NULL));
    CALL(cuCtxGetCurrent(&c));
    NUM(c == a);
    CALL(cuCtxSetCurrent(b));
    CALL(cuCtxPopCurrent(&c));
    NUM(c == b);
    CALL(cuCtxGetCurrent(&c));
    NUM(c == NULL);
    CALL(cuCtxPushCurrent(NULL));
    CALL(cuCtxSetCurrent(NULL));
    CALL(cuCtxPushCurrent(a));
    CALL(cuCtxSetCurrent(NULL));
    CALL(cuCtxGetCurrent(&c));
    NUM(c == NULL);
    CALL(cuCtxDestroy(a));
    CALL(cuCtxDestroy(b));
    CALL(cuCtxGetCurrent(NULL));
}

/* Destroyed while it is on the stack, but not on top. */
static void destroyed_below(void)
{
    CUcontext a, b, c = NULL;
    CUdeviceptr p;
    CALL(cuCtxCreate(&a, NULL, 0, 0));
    CALL(cuCtxCreate(&b, NULL, 0, 0));
    CALL(cuCtxDestroy(a));
    CALL(cuCtxGetCurrent(&c));
    NUM(c == b);
    CALL(cuMemAlloc(&p, 64));
    CALL(cuCtxDestroy(b));
    CALL(cuMemAlloc(&p, 64));
}

static void without_context(void)
{
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    CUmodule m;
    CUgraph g;
    size_t n;
    void *host;
    int low, high;
    CUdevice d;
    CUfunc_cache cache;
    CALL(cuCtxSetCurrent(NULL));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuMemFree(0));
    CALL(cuMemAllocHost(&host, 64));
    CALL(cuMemHostAlloc(&host, 64, 0));
    CALL(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemGetInfo(&n, &n));
    CALL(cuStreamCreate(&s, 0));
    CALL(cuStreamSynchronize(NULL));
    CALL(cuStreamQuery(NULL));
    CALL(cuEventCreate(&e, 0));
    CALL(cuModuleLoadData(&m, answers_ptx));
    CALL(cuGraphCreate(&g, 0));
    CALL(cuCtxGetDevice(&d));
    CALL(cuCtxGetLimit(&n, CU_LIMIT_STACK_SIZE));
    CALL(cuCtxGetCacheConfig(&cache));
    CALL(cuCtxGetStreamPriorityRange(&low, &high));
    CALL(cuCtxSynchronize());
    CALL(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 1));
    CALL(cuDeviceGetDefaultMemPool((CUmemoryPool *)&host, 0));
}

static void limits(void)
{
    size_t value;
    CALL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 5001));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1u << 30));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 0));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    NUM(value);
    CALL(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    MACHINE(value);
    CALL(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    NUM(value);
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 100));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    NUM(value);
}

static void rare_limits(void)
{
    size_t value;
    CALL(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
    CALL(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 4));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4096));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
    NUM(value);
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MAX_L2_FETCH_GRANULARITY));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 32));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MAX_L2_FETCH_GRANULARITY));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MAX_L2_FETCH_GRANULARITY));
    NUM(value);
    CALL(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
    MACHINE(value);
    CALL(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_SHMEM_SIZE));
    MACHINE(value);
    CALL(cuCtxSetLimit(CU_LIMIT_SHMEM_SIZE, 1000));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED));
    NUM(value);
    CALL(cuCtxSetLimit(CU_LIMIT_CIG_ENABLED, 1));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_MAX));
    CALL(cuCtxSetLimit(CU_LIMIT_MAX, 1));
    CALL(cuCtxGetLimit(&value, (CUlimit)-1));
    CALL(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    CALL(cuCtxResetPersistingL2Cache());
}

static void settings(void)
{
    CUfunc_cache cache = 99;
    CUsharedconfig shared = 99;
    int low = 99, high = 99;
    CALL(cuCtxGetCacheConfig(&cache));
    NUM(cache);
    CALL(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    CALL(cuCtxGetCacheConfig(&cache));
    NUM(cache);
    CALL(cuCtxSetCacheConfig((CUfunc_cache)9));
    CALL(cuCtxGetCacheConfig(NULL));
    CALL(cuCtxGetSharedMemConfig(&shared));
    NUM(shared);
    CALL(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    CALL(cuCtxGetSharedMemConfig(&shared));
    NUM(shared);
    CALL(cuCtxSetSharedMemConfig((CUsharedconfig)9));
    CALL(cuCtxGetStreamPriorityRange(&low, &high));
    NUM(low);
    NUM(high);
    CALL(cuCtxGetStreamPriorityRange(NULL, NULL));
}

static void context_of_others(void)
{
    CUcontext base, a, of;
    CUdevice d;
    CUdeviceptr p;
    CUstream s;
    CUevent e, ours;
    cuCtxGetCurrent(&base);
    CALL(cuEventCreate(&ours, 0));
    CALL(cuCtxCreate(&a, NULL, 0, 0));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuStreamCreate(&s, 0));
    CALL(cuEventCreate(&e, 0));
    CALL(cuCtxSetCurrent(base));
    CALL(cuMemsetD8(p, 1, 64));
    CALL(cuStreamSynchronize(s));
    CALL(cuStreamGetCtx(s, &of));
    NUM(of == a);
    CALL(cuEventRecord(e, NULL));
    CALL(cuEventRecord(e, s));
    CALL(cuEventRecord(ours, s));
    CALL(cuStreamWaitEvent(s, ours, 0));
    CALL(cuEventSynchronize(e));
    CALL(cuCtxSynchronize_v2(a));
    CALL(cuCtxGetDevice_v2(&d, a));
    CALL(cuMemFree(p));
    CALL(cuStreamDestroy(s));
    CALL(cuEventDestroy(e));
    CALL(cuCtxDestroy(a));
    CALL(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
}

static void context_events(void)
{
    CUcontext c;
    CUevent e;
    cuCtxGetCurrent(&c);
    CALL(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CALL(cuCtxRecordEvent(c, e));
    CALL(cuCtxWaitEvent(c, e));
    CALL(cuCtxRecordEvent(c, NULL));
    CALL(cuCtxWaitEvent(c, NULL));
    CALL(cuEventSynchronize(e));
}

static void attach(void)
{
    CUcontext c, d;
    CALL(cuCtxAttach(&c, 0));
    CALL(cuCtxGetCurrent(&d));
    NUM(c == d);
    CALL(cuCtxDetach(c));
    CALL(cuCtxCreate(&d, NULL, 0, 0));
    CALL(cuCtxAttach(&c, 0));
    NUM(c == d);
    CALL(cuCtxAttach(&c, 1));
    CALL(cuCtxDetach(c));
    CALL(cuCtxDetach(c));
    CALL(cuCtxGetCurrent(&c));
    NUM(c != d);
}

static void affinity(void)
{
    CUexecAffinityParam p = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT };
    CALL(cuCtxGetExecAffinity(&p, (CUexecAffinityType)9));
    CALL(cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
}

static void green(void)
{
    CUdevResource all, part;
    CUdevResourceDesc desc;
    CUgreenCtx g;
    CUcontext c;
    CUstream s;
    unsigned one = 1;
    CALL(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    NUM(all.type);
    MACHINE(all.sm.smCount);
    CALL(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_INVALID));
    CALL(cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuDeviceGetDevResource(1000, &all, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuDevResourceGenerateDesc(&desc, &all, 1));
    CALL(cuGreenCtxCreate(&g, desc, 0, 0));
    CALL(cuGreenCtxCreate(&g, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CALL(cuCtxFromGreenCtx(&c, g));
    CALL(cuGreenCtxGetDevResource(g, &part, CU_DEV_RESOURCE_TYPE_SM));
    NUM(part.sm.smCount == all.sm.smCount);
    CALL(cuGreenCtxStreamCreate(&s, g, CU_STREAM_NON_BLOCKING, 0));
    CALL(cuGreenCtxStreamCreate(&s, g, 0, 0));
    CALL(cuGreenCtxDestroy(g));
    CALL(cuDevSmResourceSplitByCount(NULL, &one, &all, NULL, 0, 1));
    NUM(one > 0);
    CALL(cuCtxGetDevResource(NULL, &part, CU_DEV_RESOURCE_TYPE_SM));
}

const struct answers_case answers_context[] = {
    CASE(primary),
    CASE(primary_released),
    CASE(own),
    CASE(stack),
    CASE(destroyed_below),
    CASE(limits),
    CASE(without_context),
    CASE(rare_limits),
    CASE(settings),
    CASE(context_of_others),
    CASE(context_events),
    CASE(attach),
    CASE(affinity),
    CASE(green),
    END,
};
