/* What a kernel's fault leaves of a context. */
#include "answers.h"

static CUresult store(CUdeviceptr at)
{
    unsigned value = 1;
    void *params[] = { &at, &value };
    return cuLaunchKernel(answers_function_of("store"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static void after(void)
{
    CUdeviceptr p;
    CUstream s;
    CUcontext c;
    CUevent e;
    size_t n;
    int count;
    unsigned flags;
    CALL(cuStreamQuery(NULL));
    CALL(cuStreamSynchronize(NULL));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuMemGetInfo(&n, &n));
    CALL(cuStreamCreate(&s, 0));
    CALL(cuEventCreate(&e, 0));
    CALL(cuLaunchKernel(answers_function_of("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuDeviceGetCount(&count));
    CALL(cuCtxGetCurrent(&c));
    CALL(cuCtxGetFlags(&flags));
    CALL(cuCtxGetLimit(&n, CU_LIMIT_STACK_SIZE));
    CALL(cuDevicePrimaryCtxReset(0));
    CALL(cuDevicePrimaryCtxRetain(&c, 0));
    CALL(cuCtxSetCurrent(c));
    CALL(cuMemAlloc(&p, 64));
}

static void fault_address(void)
{
    answers_image();
    CALL(store(0x10));
    CALL(cuCtxSynchronize());
    after();
}

static void fault_misaligned(void)
{
    CUdeviceptr p;
    CALL(cuMemAlloc(&p, 64));
    CALL(store(p + 2));
    CALL(cuCtxSynchronize());
    after();
}

static void fault_trap(void)
{
    CALL(cuLaunchKernel(answers_function_of("traps"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuCtxSynchronize());
    after();
}

/* An own context of the same process is not the one that failed. */
static void fault_in_own_context(void)
{
    CUcontext base, own;
    CUmodule m;
    CUfunction f;
    CUdeviceptr at = 0x10, p;
    unsigned value = 1;
    void *params[] = { &at, &value };
    cuCtxGetCurrent(&base);
    CALL(cuCtxCreate(&own, NULL, 0, 0));
    CALL(cuModuleLoadData(&m, answers_ptx));
    CALL(cuModuleGetFunction(&f, m, "store"));
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CALL(cuCtxSynchronize());
    CALL(cuMemAlloc(&p, 64));
    CALL(cuCtxDestroy(own));
    CALL(cuCtxGetCurrent(&own));
    NUM(own == base);
    CALL(cuMemAlloc(&p, 64));
}

static void fault_of_host_pointer(void)
{
    static uint32_t ours;
    answers_image();
    CALL(store((CUdeviceptr)(uintptr_t)&ours));
    CALL(cuCtxSynchronize());
}

const struct answers_case answers_fault[] = {
    CASE(fault_address),        CASE(fault_misaligned),      CASE(fault_trap),
    CASE(fault_in_own_context), CASE(fault_of_host_pointer), END,
};
