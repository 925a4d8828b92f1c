/* Occupancy. */
#include "tap.h"

static void active_blocks(void)
{
    CUfunction f = tap_function("nothing");
    int n = -1, per_sm, blocks;
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
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&one, f, 1, 128));
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&four, f, 4, 128));
    TRUE(one >= four && one > 0);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(active_blocks), TEST(best_block), TEST(shared_memory) };
    return tap_main(tests, COUNT(tests));
}
