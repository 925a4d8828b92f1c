/* What a device, a context and a kernel say of themselves: all attributes, limits, priorities, flags. */
#include "check.cuh"

#ifndef LAST_ATTRIBUTE
#define LAST_ATTRIBUTE 119 /* of 11.2, the oldest runtime tried; 13.0 has more */
#endif

__global__ void __launch_bounds__(256) bounded(int *p)
{
    __shared__ int s[64];
    s[threadIdx.x % 64] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}

static void limits(void)
{
    static const struct {
        const char *name;
        cudaLimit limit;
        size_t set;
    } all[] = {
        { "stack", cudaLimitStackSize, 4096 },
        { "printf buffer", cudaLimitPrintfFifoSize, 4u << 20 },
        { "heap", cudaLimitMallocHeapSize, 32u << 20 },
        { "pending launches", cudaLimitDevRuntimePendingLaunchCount, 3000 },
        { "fetch granularity", cudaLimitMaxL2FetchGranularity, 32 },
        { "persisting cache", cudaLimitPersistingL2CacheSize, 1u << 20 },
        { "none such", (cudaLimit)4711, 1 },
        { "depth", cudaLimitDevRuntimeSyncDepth, 3 },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t before = 12345, after = 12345;
        int r = cudaDeviceGetLimit(&before, all[i].limit);
        int s = cudaDeviceSetLimit(all[i].limit, all[i].set);
        int t = cudaDeviceGetLimit(&after, all[i].limit);
        printf("limit %s: %d %zu, set %d, then %d %zu\n", all[i].name, r, before, s, t, after);
    }
    cudaGetLastError();
}

static void priorities(void)
{
    int least = 99, greatest = 99;
    SAY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    printf("priorities %d to %d\n", least, greatest);
    for (int wanted = 2; wanted >= -8; wanted--) {
        cudaStream_t s = NULL;
        int got = 99;
        int r = cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, wanted);
        int q = cudaStreamGetPriority(s, &got);
        printf("priority %d: %d, %d %d\n", wanted, r, q, got);
        cudaStreamDestroy(s);
    }
}

static void kernel(void)
{
    cudaFuncAttributes a;
    SAY(cudaFuncGetAttributes(&a, bounded));
    printf("threads %d, static %zu, constant %zu, local %zu, dynamic %d, carveout %d, binary %d, ptx %d\n",
           a.maxThreadsPerBlock, a.sharedSizeBytes, a.constSizeBytes, a.localSizeBytes, a.maxDynamicSharedSizeBytes,
           a.preferredShmemCarveout, a.binaryVersion, a.ptxVersion);
    CHECK(a.sharedSizeBytes == 256);
    SAY(cudaFuncSetAttribute(bounded, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    SAY(cudaFuncSetCacheConfig(bounded, cudaFuncCachePreferL1));
    SAY(cudaFuncGetAttributes(&a, bounded));
    printf("carveout %d\n", a.preferredShmemCarveout);
    int grid = 0, block = 0;
    SAY(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
    printf("best: %d blocks of %d\n", grid, block);
}

int main()
{
    int count = -1, version = 0, device = -1;
    cudaDeviceProp p;
    unsigned flags = 99;
    SAY(cudaGetDeviceCount(&count));
    SAY(cudaDriverGetVersion(&version));
    printf("devices %d, driver %d\n", count, version);
    SAY(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    MUST(cudaSetDevice(0));
    SAY(cudaGetDevice(&device));
    CHECK(device == 0);
    SAY(cudaGetDeviceFlags(&flags));
    printf("flags %u\n", flags);
    SAY(cudaGetDeviceProperties(&p, 0));
    printf("%s, %d.%d, %d multiprocessors, %zu shared, %zu bytes, bus %d:%d.%d\n", p.name, p.major, p.minor,
           p.multiProcessorCount, p.sharedMemPerMultiprocessor, p.totalGlobalMem, p.pciDomainID, p.pciBusID,
           p.pciDeviceID);
    for (int i = 0; i <= LAST_ATTRIBUTE; i++) {
        int value = 0, r = cudaDeviceGetAttribute(&value, (cudaDeviceAttr)i, 0);
        if (r == 0)
            printf("attribute %d: %d\n", i, value);
        else
            printf("attribute %d: error %d\n", i, r);
    }
    cudaGetLastError();
    SAY(cudaSetDevice(count));
    cudaGetLastError();
    SAY(cudaFree(0));
    priorities();
    limits();
    kernel();
    size_t left = 0, total = 0;
    SAY(cudaMemGetInfo(&left, &total));
    CHECK(left <= total && total <= p.totalGlobalMem && left > total / 4);
    cudaSharedMemConfig bank;
#if CUDART_VERSION < 13000
    SAY(cudaDeviceGetSharedMemConfig(&bank));
#else
    (void)bank;
#endif
    cudaFuncCache cache;
    SAY(cudaDeviceGetCacheConfig(&cache));
    printf("cache %d\n", (int)cache);
    return verdict();
}
