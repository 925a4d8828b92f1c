/* Launches: shapes, shared memory, parameters, attributes. */
#include "answers.h"

static CUresult shape(const char *name, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared)
{
    return cuLaunchKernel(answers_function_of(name), gx, gy, gz, bx, by, bz, shared, NULL, NULL,
                          NULL);
}

static void shapes(void)
{
    CALL(shape("nothing", 1, 1, 1, 1, 1, 1, 0));
    CALL(shape("nothing", 0, 1, 1, 1, 1, 1, 0));
    CALL(shape("nothing", 1, 0, 1, 1, 1, 1, 0));
    CALL(shape("nothing", 1, 1, 1, 0, 1, 1, 0));
    CALL(shape("nothing", 1, 1, 1, 1, 1, 0, 0));
    CALL(shape("nothing", 1, 1, 1, 1024, 1, 1, 0));
    CALL(shape("nothing", 1, 1, 1, 1025, 1, 1, 0));
    CALL(shape("nothing", 1, 1, 1, 32, 32, 1, 0));
    CALL(shape("nothing", 1, 1, 1, 32, 32, 2, 0));
    CALL(shape("nothing", 1, 1, 1, 1, 1, 64, 0));
    CALL(shape("nothing", 1, 1, 1, 1, 1, 65, 0));
    CALL(shape("nothing", 1, 65535, 1, 1, 1, 1, 0));
    CALL(shape("nothing", 1, 65536, 1, 1, 1, 1, 0));
    CALL(shape("nothing", 1, 1, 65536, 1, 1, 1, 0));
    CALL(shape("nothing", 0x80000000u, 1, 1, 1, 1, 1, 0));
    CALL(shape("nothing", 1, 1, 1, 1, 1, 1, 48 << 10));
    CALL(shape("nothing", 1, 1, 1, 1, 1, 1, (48 << 10) + 1));
    CALL(shape("nothing", 1, 1, 1, 1, 1, 1, 1 << 30));
    CALL(shape("bounded", 1, 1, 1, 64, 1, 1, 0));
    CALL(shape("bounded", 1, 1, 1, 65, 1, 1, 0));
    CALL(shape("bounded", 1, 1, 1, 8, 8, 1, 0));
    CALL(shape("required", 1, 1, 1, 32, 2, 1, 0));
    CALL(shape("required", 1, 1, 1, 64, 1, 1, 0));
    CALL(shape("required", 1, 1, 1, 32, 1, 1, 0));
    CALL(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuCtxSynchronize());
}

static void shared_memory(void)
{
    CUdeviceptr out;
    unsigned bytes = 20000;
    void *one[] = { &out }, *two[] = { &out, &bytes };
    int most = 0;
    CUfunction s = answers_function_of("shared_static"), d = answers_function_of("shared_dynamic");
    cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
    CALL(cuMemAlloc(&out, 64));
    CALL(cuLaunchKernel(s, 1, 1, 1, 32, 1, 1, 0, NULL, one, NULL));
    NUM(answers_word(out));
    CALL(cuLaunchKernel(s, 1, 1, 1, 32, 1, 1, (48 << 10) - 4096, NULL, one, NULL));
    CALL(cuLaunchKernel(s, 1, 1, 1, 32, 1, 1, (48 << 10) - 4095, NULL, one, NULL));
    CALL(cuLaunchKernel(d, 1, 1, 1, 1, 1, 1, bytes, NULL, two, NULL));
    NUM(answers_word(out));
    bytes = 49156;
    CALL(cuLaunchKernel(d, 1, 1, 1, 1, 1, 1, bytes, NULL, two, NULL));
    CALL(cuFuncSetAttribute(d, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    CALL(cuMemsetD8(out, 0, 64));
    CALL(cuLaunchKernel(d, 1, 1, 1, 1, 1, 1, bytes, NULL, two, NULL));
    NUM(answers_word(out));
    bytes = (unsigned)most;
    CALL(cuLaunchKernel(d, 1, 1, 1, 1, 1, 1, bytes, NULL, two, NULL));
    CALL(cuLaunchKernel(d, 1, 1, 1, 1, 1, 1, bytes + 1, NULL, two, NULL));
    CALL(cuCtxSynchronize());
}

static void packed_parameters(void)
{
    CUdeviceptr out;
    CUfunction f = answers_function_of("add_to");
    struct {
        CUdeviceptr out;
        unsigned by;
    } args;
    size_t size = 12;
    CALL(cuMemAlloc(&out, 64));
    CALL(cuMemsetD8(out, 0, 64));
    args.out = out;
    args.by = 5;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    void *params[] = { &args.out, &args.by };
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    NUM(answers_word(out));
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    NUM(answers_word(out));
    size = 16;
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    CALL(cuCtxSynchronize());
}

static void old_calls(void)
{
    CUdeviceptr out;
    CUfunction f = answers_function_of("add_to");
    unsigned by = 6;
    CALL(cuMemAlloc(&out, 64));
    CALL(cuMemsetD8(out, 0, 64));
    CALL(cuFuncSetBlockShape(f, 1, 1, 1));
    CALL(cuParamSetSize(f, 12));
    CALL(cuParamSetv(f, 0, &out, 8));
    CALL(cuParamSeti(f, 8, by));
    CALL(cuLaunch(f));
    CALL(cuLaunchGrid(f, 2, 1));
    CALL(cuLaunchGridAsync(f, 1, 1, NULL));
    CALL(cuCtxSynchronize());
    NUM(answers_word(out) > 0);
    CALL(cuFuncSetBlockShape(f, 0, 1, 1));
    CALL(cuFuncSetSharedSize(f, 100));
    CALL(cuParamSetv(f, 5000, &out, 8));
}

static void extended(void)
{
    CUdeviceptr out;
    unsigned by = 3;
    void *params[] = { &out, &by };
    CUfunction f = answers_function_of("add_to");
    CUstream s;
    CUlaunchAttribute a[2] = { 0 };
    CUlaunchConfig c = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1
    };
    CALL(cuStreamCreate(&s, 0));
    CALL(cuMemAlloc(&out, 64));
    CALL(cuMemsetD8(out, 0, 64));
    CALL(cuCtxSynchronize());
    c.hStream = s;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    CALL(cuLaunchKernelEx(NULL, f, params, NULL));
    c.attrs = a;
    c.numAttrs = 1;
    a[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    a[0].value.priority = -1;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a[0].value.clusterDim.x = 1;
    a[0].value.clusterDim.y = 1;
    a[0].value.clusterDim.z = 1;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    a[0].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    memset(&a[0].value, 0, sizeof(a[0].value));
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a[0].value.programmaticStreamSerializationAllowed = 1;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    a[0].value.sharedMemCarveout = 50;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    a[0].id = (CUlaunchAttributeID)99;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    c.attrs = NULL;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    CALL(cuStreamSynchronize(s));
    NUM(answers_word(out));
}

static void launch_events(void)
{
    CUdeviceptr out;
    unsigned by = 3;
    void *params[] = { &out, &by };
    CUfunction f = answers_function_of("add_to");
    CUstream s;
    CUevent e;
    CUlaunchAttribute a = { 0 };
    CUlaunchConfig c = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1
    };
    CALL(cuStreamCreate(&s, 0));
    CALL(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CALL(cuMemAlloc(&out, 64));
    CALL(cuMemsetD8(out, 0, 64));
    CALL(cuCtxSynchronize());
    c.hStream = s;
    c.attrs = &a;
    c.numAttrs = 1;
    a.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    a.value.launchCompletionEvent.event = e;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    CALL(cuEventSynchronize(e));
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    a.value.programmaticEvent.event = e;
    CALL(cuLaunchKernelEx(&c, f, params, NULL));
    CALL(cuEventSynchronize(e));
    CALL(cuStreamSynchronize(s));
    NUM(answers_word(out));
}

static void local_memory(void)
{
    CUdeviceptr out;
    unsigned at = 777;
    void *params[] = { &out, &at };
    CALL(cuMemAlloc(&out, 64));
    CALL(cuLaunchKernel(answers_function_of("local_words"), 1, 1, 1, 32, 1, 1, 0, NULL, params,
                        NULL));
    NUM(answers_word(out));
}

/* malloc and free in kernels, within the heap and beyond it. */
static void device_heap(void)
{
    CUdeviceptr out;
    uint64_t bytes = 100;
    void *params[] = { &out, &bytes };
    CUfunction f = answers_function_of("heap");
    uint32_t words[64];
    CALL(cuMemAlloc(&out, sizeof(words)));
    for (unsigned round = 0; round < 3; round++) {
        unsigned sum = 0;
        CALL(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
        CALL(cuMemcpyDtoH(words, out, sizeof(words)));
        for (unsigned i = 0; i < 64; i++)
            sum += words[i];
        NUM(sum);
    }
    bytes = 64 << 20;
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    NUM(answers_word(out));
    bytes = 4 << 20;
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    NUM(answers_word(out));
    bytes = 0;
    CALL(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CALL(cuCtxSynchronize());
    CALL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20));
}

const struct answers_case answers_launch[] = {
    CASE(shapes),       CASE(shared_memory), CASE(packed_parameters),
    CASE(old_calls),    CASE(extended),      CASE(launch_events),
    CASE(local_memory), CASE(device_heap),   END,
};
