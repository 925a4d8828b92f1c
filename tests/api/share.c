/*
 * A client's part of the device: everything that is said of its multiprocessors agrees, and kernels
 * run on so many and no others. With a share (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE) that is the share;
 * the numbers are printed.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SMS_MAX 1024

static void numbers_agree(void)
{
    CUdevResource device, context, other;
    CUexecAffinityParam affinity;
    CUcontext current;
    CUgreenCtx green = (CUgreenCtx)&device;
    int count, supported = 9;
    OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceGetDevResource(0, &device, CU_DEV_RESOURCE_TYPE_SM));
    EQ(device.type, CU_DEV_RESOURCE_TYPE_SM);
    EQ(device.sm.smCount, count);
    OK(cuCtxGetCurrent(&current));
    IS(cuCtxGetDevResource(NULL, &context, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxGetDevResource(current, &context, CU_DEV_RESOURCE_TYPE_SM));
    EQ(context.sm.smCount, count);
    IS(cuDeviceGetDevResource(0, &other, CU_DEV_RESOURCE_TYPE_INVALID),
       CUDA_ERROR_INVALID_RESOURCE_TYPE);
    IS(cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetDevResource(99, &other, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_DEVICE);
    OK(cuStreamGetGreenCtx(NULL, &green));
    TRUE(green == NULL);
    OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    if (!tap_genuine()) { /* which knows of it under MPS only */
        OK(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
        EQ(affinity.param.smCount.val, count);
    }
    printf("# %d multiprocessors, in steps of %u\n", count, device.sm.minSmPartitionSize);
}

/* Fills the multiprocessors that there are, from three streams, with long kernels or many short
 * ones; how many that were. */
static int fill_device(CUfunction f, CUdeviceptr p, const CUstream streams[3], int count,
                       int launches)
{
    static unsigned seen[SMS_MAX];
    unsigned ns = 200000u / (unsigned)launches;
    void *params[] = { &p, &ns };
    int used = 0;
    OK(cuMemsetD8(p, 0, sizeof(seen)));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 3 * launches; i++)
        OK(cuLaunchKernel(f, (unsigned)count * 4, 1, 1, 1024, 1, 1, 0, streams[i % 3], params,
                          NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(seen, p, sizeof(seen)));
    for (int i = 0; i < SMS_MAX; i++)
        used += seen[i] != 0;
    printf("# %d:", used);
    for (int i = 0; i < SMS_MAX; i++)
        if (seen[i])
            printf(" %d", i);
    printf("\n");
    fflush(stdout);
    return used;
}

static int granted(void)
{
    int count;
    OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    return count;
}

/* SHARE_CHANGE: a command that changes the share of this program while it runs. */
static void change(CUfunction f, CUdeviceptr p, const CUstream streams[3])
{
    const char *command = getenv("SHARE_CHANGE");
    int before = granted();
    time_t end = time(NULL) + 10;
    if (!command)
        return;
    EQ(system(command), 0);
    while (granted() == before && time(NULL) < end)
        OK(cuCtxSynchronize());
    TRUE(granted() != before);
    while (fill_device(f, p, streams, granted(), 1) != granted())
        TRUE(time(NULL) < end);
    printf("# from %d to %d multiprocessors\n", before, granted());
}

static void kernels_stay_there(void)
{
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    CUstream streams[3] = { NULL };
    if (!tap_gpu())
        tap_skip("this device has no numbered multiprocessors");
    OK(cuModuleLoadData(&m, tap_where_ptx));
    OK(cuModuleGetFunction(&f, m, "where"));
    OK(cuMemAlloc(&p, SMS_MAX * sizeof(unsigned)));
    OK(cuStreamCreateWithPriority(&streams[1], CU_STREAM_NON_BLOCKING, 0));
    OK(cuStreamCreateWithPriority(&streams[2], CU_STREAM_NON_BLOCKING, -1000));
    EQ(fill_device(f, p, streams, granted(), 1), granted());
    EQ(fill_device(f, p, streams, granted(), 400), granted());
    change(f, p, streams);
    if (getenv("SHARE_HOLD")) { /* stays until a line comes */
        alarm(0);
        (void)getchar();
    }
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

/* --- contexts with fewer multiprocessors (under a daemon only) -------------------------------- */

static CUresult create(CUcontext *c, unsigned multiprocessors)
{
    CUexecAffinityParam p = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
                              .param.smCount.val = multiprocessors };
    CUctxCreateParams params = { .execAffinityParams = &p, .numExecAffinityParams = 1 };
    return cuCtxCreate_v4(c, &params, 0, 0);
}

/* In the current context, which may be the only one that has the kernel. */
static void run_something(void)
{
    CUmodule m;
    CUfunction f;
    OK(cuModuleLoadData(&m, tap_ptx));
    OK(cuModuleGetFunction(&f, m, "nothing"));
    OK(cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuModuleUnload(m));
}

static unsigned affinity_of_current(void)
{
    CUexecAffinityParam p = { .param.smCount.val = 0 };
    OK(cuCtxGetExecAffinity(&p, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    EQ(p.type, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
    return p.param.smCount.val;
}

static void need_limits(void)
{
    int supported = 9;
    CUcontext c;
    OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    if (supported)
        return;
    IS(create(&c, 1), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    tap_skip("contexts cannot have fewer multiprocessors here");
}

/* How many different ones a kernel runs on in the current context, from its default stream and one
 * of its own. */
static int seen_in_current(int count)
{
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    CUstream streams[3] = { NULL };
    OK(cuModuleLoadData(&m, tap_where_ptx));
    OK(cuModuleGetFunction(&f, m, "where"));
    OK(cuMemAlloc(&p, SMS_MAX * sizeof(unsigned)));
    OK(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&streams[2], CU_STREAM_DEFAULT));
    int seen = fill_device(f, p, streams, count, 1);
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
    return seen;
}

static void contexts_with_fewer(void)
{
    CUcontext c;
    CUdevResource resource;
    int count = granted(), inside = 0;
    need_limits();
    OK(create(&c, 1));
    unsigned least = affinity_of_current();
    TRUE(least >= 1 && least <= (unsigned)count);
    OK(cuDeviceGetAttribute(&inside, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    printf("# at least %u of %d, which a context with so many calls %d\n", least, count, inside);
    if (!tap_genuine()) {
        OK(cuCtxGetDevResource(c, &resource, CU_DEV_RESOURCE_TYPE_SM));
        EQ(resource.sm.smCount, least);
    }
    run_something();
    if (tap_gpu())
        EQ(seen_in_current((int)least), least);
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy(c));
    EQ(affinity_of_current(), count);
}

static void rounded_up(void)
{
    CUcontext c;
    int count = granted();
    need_limits();
    for (int i = 1; i <= count; i += 1 + count / 16) {
        OK(create(&c, (unsigned)i));
        unsigned n = affinity_of_current();
        TRUE(n >= (unsigned)i && n <= (unsigned)count);
        run_something();
        OK(cuCtxDestroy(c));
    }
    OK(create(&c, (unsigned)count));
    EQ(affinity_of_current(), count);
    OK(cuCtxDestroy(c));
}

static void the_last_parameter_counts(void)
{
    CUcontext c;
    unsigned count = (unsigned)granted();
    CUexecAffinityParam p[2] = { { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT, .param.smCount.val = 1 },
                                 { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
                                   .param.smCount.val = count } };
    need_limits();
    OK(cuCtxCreate_v3(&c, p, 2, 0, 0));
    EQ(affinity_of_current(), count);
    OK(cuCtxDestroy(c));
    p[1].type = CU_EXEC_AFFINITY_TYPE_MAX;
    IS(cuCtxCreate_v3(&c, p, 2, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    IS(cuCtxCreate_v3(&c, NULL, 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxCreate_v3(&c, NULL, 0, 0, 0));
    OK(cuCtxDestroy(c));
}

static void a_context_with_none(void)
{
    CUcontext c;
    need_limits();
    IS(create(&c, 0), CUDA_ERROR_INVALID_VALUE);
}

static void several_at_once(void)
{
    CUcontext c[3];
    need_limits();
    for (int i = 0; i < 3; i++)
        OK(create(&c[i], 1));
    for (int i = 0; i < 6; i++) {
        OK(cuCtxSetCurrent(c[i % 3]));
        run_something();
    }
    for (int i = 0; i < 3; i++)
        OK(cuCtxDestroy(c[i]));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(numbers_agree),   TEST(kernels_stay_there),        TEST(contexts_with_fewer),
        TEST(rounded_up),      TEST(the_last_parameter_counts), TEST(a_context_with_none),
        TEST(several_at_once),
    };
    return tap_main(tests, COUNT(tests));
}
