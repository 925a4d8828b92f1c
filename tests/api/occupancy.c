/* Occupancy. */
#include "heavy.h"
#include "tap.h"

#include <stdlib.h>

static void active_blocks(void)
{
    CUfunction f = tap_function("nothing");
    int n = -1, per_sm, blocks, usual;
    OK(cuFuncGetAttribute(&usual, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    OK(cuDeviceGetAttribute(&per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    OK(cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 256, 0));
    TRUE(n >= 1 && n <= per_sm / 256);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 0));
    TRUE(n >= 1 && n <= blocks);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 256, 0, CU_OCCUPANCY_DEFAULT));
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, f, 32, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, 32, 0), CUDA_ERROR_INVALID_HANDLE);
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, NULL, 32, 0, 2),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 1000));
    TRUE(n >= 1);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, usual));
}

static void best_block(void)
{
    CUfunction f = tap_function("nothing");
    int grid = 0, block = 0;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
    TRUE(grid >= 1 && block >= 32 && block <= 1024);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 128));
    TRUE(block >= 1 && block <= 128);
}

static void shared_memory(void)
{
    CUfunction f = tap_function("nothing");
    size_t one = 0, four = 0;
    int usual;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&one, f, 1, 128));
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&four, f, 4, 128));
    TRUE(one >= four && one > 0);
    OK(cuFuncGetAttribute(&usual, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    EQ(one, usual); /* a launch could have no more */
}

static CUresult clusters(int *out, CUresult (*ask)(int *, CUfunction, const CUlaunchConfig *),
                         unsigned x)
{
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                            .value.clusterDim = { x, 1, 1 } };
    const CUlaunchConfig config = { 64, 1, 1, 128, 1, 1, 0, NULL, &a, x != 0 };
    return ask(out, tap_function("nothing"), &config);
}

static void need_clusters(void)
{
    int has = 0, n;
    OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    if (has)
        return;
    TRUE(clusters(&n, cuOccupancyMaxActiveClusters, 2) != CUDA_SUCCESS);
    TRUE(clusters(&n, cuOccupancyMaxPotentialClusterSize, 0) != CUDA_SUCCESS);
    tap_skip("this device has no clusters");
}

static void active_clusters(void)
{
    int two = 0, eight = 0, multiprocessors;
    need_clusters();
    OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(clusters(&two, cuOccupancyMaxActiveClusters, 2));
    OK(clusters(&eight, cuOccupancyMaxActiveClusters, 8));
    printf("# %d clusters of two, %d of eight\n", two, eight);
    TRUE(eight >= 1 && two > eight && two <= multiprocessors * 16);
    IS(clusters(NULL, cuOccupancyMaxActiveClusters, 2), CUDA_ERROR_INVALID_VALUE);
}

static void largest_cluster(void)
{
    int size = 0;
    need_clusters();
    OK(clusters(&size, cuOccupancyMaxPotentialClusterSize, 0));
    EQ(size, 8); /* what every GPU with clusters takes, without permission for more */
}

static void clusters_too_large(void)
{
    int n = 0;
    need_clusters();
    IS(clusters(&n, cuOccupancyMaxActiveClusters, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static size_t CUDA_CB as_many_bytes(int threads)
{
    return (size_t)threads * 64;
}

static void best_block_with_memory(void)
{
    CUfunction f = tap_function("nothing");
    int grid = 0, block = 0, most = 0;
    OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0));
    OK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, as_many_bytes, 0, 0,
                                                 CU_OCCUPANCY_DEFAULT));
    TRUE(block >= 1 && block * 64 <= most && grid >= 1);
    IS(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, as_many_bytes, 0, 0, 0x80),
       CUDA_ERROR_INVALID_VALUE);
}

/* A kernel that would like 100 registers, with bounds. */
static CUmodule load_bounded(int threads, int blocks)
{
    char bounds[64];
    CUmodule m;
    snprintf(bounds, sizeof(bounds), ".maxntid %d, 1, 1\n.minnctapersm %d\n", threads, blocks);
    char *ptx = heavy_text(bounds, 100);
    OK(cuModuleLoadData(&m, ptx));
    free(ptx);
    return m;
}

/* Blocks of the size for which a kernel was compiled find enough registers, as many blocks at once
 * as it was compiled for. */
static void bounded_blocks(void)
{
    static const struct {
        int threads, blocks;
    } bounds[] = { { 576, 1 }, { 608, 1 }, { 704, 1 }, { 768, 1 }, { 256, 4 }, { 96, 9 } };
    int multiprocessors, cooperative, n = 0;
    CUdeviceptr p;
    OK(cuDeviceGetAttribute(&cooperative, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuMemAlloc(&p, 4));
    void *params[] = { &p };
    for (size_t i = 0; i < COUNT(bounds); i++) {
        CUmodule m = load_bounded(bounds[i].threads, bounds[i].blocks);
        CUfunction f;
        OK(cuModuleGetFunction(&f, m, "heavy"));
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, bounds[i].threads, 0));
        TRUE(n >= bounds[i].blocks);
        if (cooperative)
            OK(cuLaunchCooperativeKernel(f, (unsigned)(multiprocessors * bounds[i].blocks), 1, 1,
                                         (unsigned)bounds[i].threads, 1, 1, 0, NULL, params));
        OK(cuCtxSynchronize());
        OK(cuModuleUnload(m));
    }
    OK(cuMemFree(p));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(active_blocks),          TEST(best_block),      TEST(shared_memory),
        TEST(active_clusters),        TEST(largest_cluster), TEST(clusters_too_large),
        TEST(best_block_with_memory), TEST(bounded_blocks),
    };
    return tap_main(tests, COUNT(tests));
}
