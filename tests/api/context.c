/* Primary and created contexts, the stack, what contexts own. */
#include "tap.h"

#include <pthread.h>

static void primary(void)
{
    CUcontext a, b, current;
    unsigned flags;
    int active;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EQ(active, 1);
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuDevicePrimaryCtxRetain(&b, 0));
    TRUE(a == b);
    OK(cuCtxGetCurrent(&current));
    TRUE(a == current);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EQ(active, 1);
    IS(cuDevicePrimaryCtxRetain(&a, 99), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDevicePrimaryCtxRetain(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
}

static void create_and_stack(void)
{
    CUcontext primary_context, a, b, c;
    CUdevice d = -1;
    OK(cuCtxGetCurrent(&primary_context));
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxGetCurrent(&c));
    TRUE(c == a);
    OK(cuCtxCreate_v2(&b, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    OK(cuCtxPopCurrent(&c));
    TRUE(c == b);
    OK(cuCtxGetCurrent(&c));
    TRUE(c == a);
    OK(cuCtxPushCurrent(b));
    OK(cuCtxGetDevice(&d));
    EQ(d, 0);
    OK(cuCtxDestroy(b)); /* current: popped as well */
    OK(cuCtxGetCurrent(&c));
    TRUE(c == a);
    OK(cuCtxDestroy(a));
    OK(cuCtxGetCurrent(&c));
    TRUE(c == primary_context);
    OK(cuCtxSynchronize());
}

static void bad_creation(void)
{
    CUcontext c;
    IS(cuCtxCreate_v2(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxCreate_v2(&c, 0, 99), CUDA_ERROR_INVALID_DEVICE);
    IS(cuCtxCreate_v2(&c, 0x80000000u, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxCreate_v2(&c, 0x80000000u, 99), CUDA_ERROR_INVALID_DEVICE);
    IS(cuCtxPushCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
    if (!tap_genuine()) /* which follows what it is given */
        IS(cuCtxSetCurrent((CUcontext)(uintptr_t)0x1234560), CUDA_ERROR_INVALID_CONTEXT);
}

static void stale_handle(void)
{
    CUcontext a;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxDestroy(a));
    IS(cuCtxSetCurrent(a), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
}

static void questions(void)
{
    CUcontext a;
    unsigned flags = 99, version = 0;
    unsigned long long id1 = 0, id2 = 0;
    size_t value = 0;
    int least = 9, greatest = 9;
    CUfunc_cache cache;
    OK(cuCtxCreate_v2(&a, CU_CTX_SCHED_SPIN, 0));
    OK(cuCtxGetFlags(&flags));
    EQ(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_SPIN);
    OK(cuCtxGetId(a, &id1));
    OK(cuCtxGetApiVersion(a, &version));
    TRUE(version >= 3020);
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    TRUE(value >= 1024);
    OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20));
    OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    EQ(value, 2 << 20);
    IS(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxGetLimit(&value, (CUlimit)4711), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxSetLimit((CUlimit)4711, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED));
    EQ(value, 0);
    IS(cuCtxSetLimit(CU_LIMIT_CIG_ENABLED, 0), CUDA_ERROR_NOT_PERMITTED);
    IS(cuCtxGetLimit(&value, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED), CUDA_ERROR_UNSUPPORTED_LIMIT);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    EQ(least, 0);
    TRUE(greatest < 0);
    OK(cuCtxGetStreamPriorityRange(NULL, NULL));
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK(cuCtxGetCacheConfig(&cache));
    OK(cuCtxDestroy(a));
    OK(cuCtxGetId(NULL, &id2));
    TRUE(id1 != id2);
}

static size_t limit_after(CUlimit limit, size_t value)
{
    size_t now = 0;
    OK(cuCtxSetLimit(limit, value));
    OK(cuCtxGetLimit(&now, limit));
    return now;
}

/* What the driver makes of values (580.159.04, H200). */
static void limits(void)
{
    CUcontext a;
    size_t value = 0;
    int most = 0, cache = 0;
    OK(cuCtxCreate_v2(&a, 0, 0));
    EQ(limit_after(CU_LIMIT_STACK_SIZE, 1000), 1008);
    EQ(limit_after(CU_LIMIT_PRINTF_FIFO_SIZE, 0), 512 << 10);
    EQ(limit_after(CU_LIMIT_PRINTF_FIFO_SIZE, 1000001), 1000192);
    EQ(limit_after(CU_LIMIT_MALLOC_HEAP_SIZE, 1), 4 << 20);
    EQ(limit_after(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1), 32);
    EQ(limit_after(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 33), 33);
    IS(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
    OK(cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0));
    OK(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
    IS(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most + 1),
       CUDA_ERROR_INVALID_VALUE);
    if (most)
        EQ(limit_after(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1), (size_t)cache / 16);
    EQ(limit_after(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0), 0);
    OK(cuCtxDestroy(a));
}

/* A function that calls itself `n` times, and then writes n. */
static const char calls_itself[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".func (.param .b32 r) f(.param .b32 n)\n{\n"
    " .reg .b32 %a<4>; .reg .pred %p; .param .b32 p; .param .b32 q;\n"
    " ld.param.u32 %a1, [n]; mov.u32 %a3, 0; setp.eq.u32 %p, %a1, 0; @%p bra done;\n"
    " sub.u32 %a2, %a1, 1; st.param.b32 [p], %a2; call.uni (q), f, (p); ld.param.u32 %a3, [q]; "
    "add.u32 %a3, %a3, 1;\n"
    "done: st.param.b32 [r], %a3; ret;\n}\n"
    ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n"
    " .reg .b64 %d; .reg .b32 %a; .param .b32 p; .param .b32 q;\n"
    " ld.param.u32 %a, [n]; st.param.b32 [p], %a; call.uni (q), f, (p); ld.param.u32 %a, [q];\n"
    " ld.param.u64 %d, [out]; st.global.u32 [%d], %a; ret;\n}\n";

static void stack(void)
{
    CUmodule m;
    CUfunction k;
    CUdeviceptr out;
    unsigned n = 400, written = 0;
    int local = -1;
    size_t before;
    void *params[] = { &out, &n };
    if (!tap_computes())
        tap_skip("needs a device that computes");
    OK(cuCtxGetLimit(&before, CU_LIMIT_STACK_SIZE));
    OK(cuModuleLoadData(&m, calls_itself));
    OK(cuModuleGetFunction(&k, m, "k"));
    OK(cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k));
    TRUE(local < 1024); /* what is not known before the kernel runs does not count */
    OK(cuMemAlloc(&out, 4));
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE,
                     32 << 10)); /* under gmux a GPU gives stacks an eighth of its memory */
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&written, out, 4));
    EQ(written, n);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, before));
    OK(cuMemFree(out));
    OK(cuModuleUnload(m));
}

static unsigned flags_now(void)
{
    unsigned flags = 99;
    OK(cuCtxGetFlags(&flags));
    return flags;
}

static unsigned primary_flags(void)
{
    unsigned flags = 99;
    int active;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    return flags;
}

/* A primary context maps host memory whether it was asked for or not, and one cannot ask. */
static void flags_of_the_primary(void)
{
    unsigned before = primary_flags();
    IS(cuDevicePrimaryCtxSetFlags(0, CU_CTX_MAP_HOST), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
    EQ(primary_flags(), CU_CTX_SCHED_SPIN);
    EQ(flags_now(), CU_CTX_SCHED_SPIN | CU_CTX_MAP_HOST);
    OK(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
    EQ(flags_now(), CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST);
    EQ(primary_flags(), CU_CTX_SCHED_SPIN);
    OK(cuCtxSetFlags(CU_CTX_SCHED_YIELD | CU_CTX_COREDUMP_ENABLE)); /* only when it is made */
    EQ(flags_now(), CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST);
    OK(cuCtxSetFlags(CU_CTX_SYNC_MEMOPS)); /* which the primary context has, too */
    EQ(primary_flags(), CU_CTX_SCHED_SPIN | CU_CTX_SYNC_MEMOPS);
    IS(cuDevicePrimaryCtxSetFlags(-1, 0x8), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDevicePrimaryCtxSetFlags(0, before));
    EQ(primary_flags(), before);
}

static void *other_thread(void *arg)
{
    CUcontext c = (CUcontext)arg;
    CUdeviceptr p;
    return (void *)(uintptr_t)(cuCtxGetCurrent(&c) == CUDA_SUCCESS && c == NULL &&
                               cuMemAlloc(&p, 1) == CUDA_ERROR_INVALID_CONTEXT &&
                               cuCtxSetCurrent((CUcontext)arg) == CUDA_SUCCESS &&
                               cuMemAlloc(&p, 1) == CUDA_SUCCESS && cuMemFree(p) == CUDA_SUCCESS);
}

static void per_thread(void)
{
    CUcontext c;
    pthread_t t;
    void *good;
    OK(cuCtxGetCurrent(&c));
    EQ(pthread_create(&t, NULL, other_thread, c), 0);
    EQ(pthread_join(t, &good), 0);
    TRUE(good != NULL);
}

/* What a context owned is gone with it. */
static void ownership(void)
{
    CUcontext a;
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    size_t before, after, total;
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAlloc(&p, 16 << 20));
    OK(cuStreamCreate(&s, 0));
    OK(cuEventCreate(&e, 0));
    OK(cuCtxDestroy(a));
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuMemGetInfo(&after, &total));
    if (!tap_genuine()) {
        TRUE(after > before - (8 << 20) || !tap_alone()); /* streams may have cost a little */
        IS(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
        IS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
        IS(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
    }
    OK(cuCtxDestroy(a));
}

/* What is named by a handle needs no current context. */
static void none_current(void)
{
    CUcontext a, popped;
    CUstream s;
    CUevent e;
    CUdeviceptr p;
    CUfunction f, g = tap_function("nothing");
    OK(cuStreamCreate(&s, 0));
    OK(cuEventCreate(&e, 0));
    OK(cuMemAlloc(&p, 16));
    OK(cuCtxPopCurrent(&a));
    OK(cuCtxGetCurrent(&popped));
    TRUE(popped == NULL);
    OK(cuStreamQuery(s));
    OK(cuEventQuery(e));
    OK(cuStreamSynchronize(s));
    OK(cuModuleGetFunction(&f, tap_module(), "nothing"));
    OK(cuMemFree(p));
    OK(cuStreamDestroy(s));
    IS(cuMemAlloc(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPushCurrent(a));
    OK(cuEventDestroy(e));
}

/* Last: afterwards the primary context is a new one. */
static void reset(void)
{
    CUcontext c;
    CUdeviceptr p;
    unsigned flags;
    int active = 7;
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EQ(active, 0);
    EQ(flags, 0);
    OK(cuDevicePrimaryCtxRelease(0)); /* who has retained it still releases it */
    IS(cuMemAlloc(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    IS(cuCtxSynchronize_v2(c), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    IS(cuCtxRecordEvent(c, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    IS(cuCtxWaitEvent(c, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuCtxGetFlags(&flags));
    EQ(flags, 0);
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    OK(cuMemAlloc(&p, 16));
    OK(cuMemFree(p));
}

/* Which of two mistakes is answered, and mistakes that are easily overlooked. */
static void mistakes(void)
{
    CUcontext c, current;
    CUstream s;
    CUmodule m = tap_module();
    CUfunction f = tap_function("nothing");
    CUdeviceptr p;
    size_t size = 0;
    int blocks;
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *none = NULL;
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY };
    CUlaunchConfig config = { 1, 1, 1, 1, 1, 1, 0, NULL, &a, 1 };
    OK(cuCtxGetCurrent(&current));
    IS(cuCtxCreate(&c, NULL, 0x200, 99), CUDA_ERROR_INVALID_DEVICE);
    OK(cuStreamCreate(&s, 0));
    IS(cuStreamWaitEvent(s, NULL, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamUpdateCaptureDependencies_v2(s, NULL, NULL, 0, 9), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuStreamDestroy(s));
    IS(cuFuncGetParamInfo(NULL, 0, &size, &size), CUDA_ERROR_INVALID_VALUE);
    IS(cuModuleGetGlobal(&p, &size, m, ""), CUDA_ERROR_INVALID_VALUE);
    IS(cuModuleLoadDataEx(&m, tap_ptx, 1, &option, &none), CUDA_ERROR_INVALID_VALUE);
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, NULL, 32, 0, 2),
       CUDA_ERROR_INVALID_VALUE);
    a.value.syncPolicy = CU_SYNC_POLICY_SPIN;
    IS(cuLaunchKernelEx(&config, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    a.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    a.value.memSyncDomain = (CUlaunchMemSyncDomain)7;
    IS(cuLaunchKernelEx(&config, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    a.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    a.value.memSyncDomainMap = (CUlaunchMemSyncDomainMap) { .default_ = 77 };
    IS(cuLaunchKernelEx(&config, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    IS(cuMemFreeAsync(p, NULL), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuMemFree(p));
    OK(cuMemGetAddressRange(NULL, NULL, 0));
    IS(cuDevicePrimaryCtxSetFlags(99, 0x200), CUDA_ERROR_INVALID_DEVICE);
    OK(cuCtxSetCurrent(NULL));
    IS(cuEventRecord(NULL, NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuStreamCreate(&s, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSetCurrent(current));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(mistakes),     TEST(primary),      TEST(create_and_stack),
        TEST(bad_creation), TEST(stale_handle), TEST(questions),
        TEST(limits),       TEST(stack),        TEST(flags_of_the_primary),
        TEST(per_thread),   TEST(ownership),    TEST(none_current),
        TEST(reset),
    };
    return tap_main(tests, COUNT(tests));
}
