/*
 * A client's part of the device: everything that is said of its multiprocessors agrees, and kernels run on so many and
 * no others. With a share (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE) that is the share; the numbers are printed.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    IS(cuDeviceGetDevResource(0, &other, CU_DEV_RESOURCE_TYPE_INVALID), CUDA_ERROR_INVALID_RESOURCE_TYPE);
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

/* Fills the multiprocessors that there are, from three streams, with long kernels or many short ones; how many that were. */
static int fill_device(CUfunction f, CUdeviceptr p, const CUstream streams[3], int count, int launches)
{
    static unsigned seen[SMS_MAX];
    unsigned ns = 200000u / (unsigned)launches;
    void *params[] = { &p, &ns };
    int used = 0;
    OK(cuMemsetD8(p, 0, sizeof(seen)));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 3 * launches; i++)
        OK(cuLaunchKernel(f, (unsigned)count * 4, 1, 1, 1024, 1, 1, 0, streams[i % 3], params, NULL));
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
    char name[64] = "";
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    CUstream streams[3] = { NULL };
    OK(cuDeviceGetName(name, sizeof(name), 0));
    if (strncmp(name, "gmux", 4) == 0)
        tap_skip("this device has no numbered multiprocessors");
    OK(cuModuleLoadData(&m, tap_where_ptx));
    OK(cuModuleGetFunction(&f, m, "where"));
    OK(cuMemAlloc(&p, SMS_MAX * sizeof(unsigned)));
    OK(cuStreamCreateWithPriority(&streams[1], CU_STREAM_NON_BLOCKING, 0));
    OK(cuStreamCreateWithPriority(&streams[2], CU_STREAM_NON_BLOCKING, -1000));
    EQ(fill_device(f, p, streams, granted(), 1), granted());
    EQ(fill_device(f, p, streams, granted(), 400), granted());
    change(f, p, streams);
    if (getenv("SHARE_HOLD")) /* stays until its input ends */
        while (getchar() != EOF)
            ;
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(numbers_agree), TEST(kernels_stay_there) };
    return tap_main(tests, COUNT(tests));
}
