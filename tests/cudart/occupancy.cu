// Occupancy computed from numbers by cuda_occupancy.h: for devices of other kinds what NVIDIA's header of CUDA 13.0
// answers, and for this device what the runtime answers.
#include <cstdio>
#include <cuda_occupancy.h>
#include "check.h"

__global__ void small(int *p)
{
    p[threadIdx.x] = 1;
}

__global__ void with_shared(int *p)
{
    __shared__ int s[3000];
    for (int k = threadIdx.x; k < 3000; k += blockDim.x)
        s[k] = k;
    __syncthreads();
    p[threadIdx.x] = s[2999 - threadIdx.x];
}

struct answer {
    int capability, threads_of_all, shared_of_all, optin, reserved; // the device
    int most, registers, own; // the kernel
    cudaOccFuncShmemConfig optin_counts;
    int dynamic_most;
    int threads, dynamic;
    int blocks, limits, by_registers, by_shared, by_warps, by_blocks; // answers
    int grid, best;
};

static const answer answers[] = {
    {60, 2048, 65536, 49152, 0, 1024, 105, 0, FUNC_SHMEM_LIMIT_OPTIN, 27430, 699, 0, 0, 2, 0, INT_MAX, 2, 32, 20, 288},
    {61, 2048, 98304, 49152, 0, 1024, 145, 1263, FUNC_SHMEM_LIMIT_DEFAULT, 49152, 128, 5923, 3, 2, 3, 13, 16, 32, 10, 384},
    {75, 1024, 65536, 65536, 0, 1024, 6, 8514, FUNC_SHMEM_LIMIT_OPTIN, 57346, 192, 56609, 1, 4, 42, 1, 5, 16, 10, 1024},
    {86, 1536, 102400, 101376, 1024, 1024, 194, 20073, FUNC_SHMEM_LIMIT_OPTIN, 49283, 196, 38891, 1, 6, 1, 1, 6, 16, 10, 256},
    {86, 1536, 102400, 101376, 1024, 1024, 206, 24141, FUNC_SHMEM_LIMIT_OPTIN, 49152, 203, 54511, 0, 4, 1, 0, 6, 16, 0, 0},
    {89, 1536, 102400, 101376, 1024, 1024, 133, 5363, FUNC_SHMEM_LIMIT_OPTIN, 49152, 101, 0, 3, 2, 3, 16, 12, 24, 10, 384},
    {90, 2048, 233472, 232448, 1024, 1024, 3, 11744, FUNC_SHMEM_LIMIT_OPTIN, 206432, 622, 0, 3, 1, 12, 18, 3, 32, 20, 1024},
};

static void devices_of_other_kinds()
{
    for (const answer &w : answers) {
        cudaOccDeviceProp p;
        p.computeMajor = w.capability / 10, p.computeMinor = w.capability % 10;
        p.maxThreadsPerBlock = 1024, p.maxThreadsPerMultiprocessor = w.threads_of_all;
        p.regsPerBlock = p.regsPerMultiprocessor = 65536, p.warpSize = 32, p.numSms = 10;
        p.sharedMemPerBlock = 49152, p.sharedMemPerBlockOptin = w.optin;
        p.sharedMemPerMultiprocessor = w.shared_of_all, p.reservedSharedMemPerBlock = w.reserved;
        cudaOccFuncAttributes a;
        a.maxThreadsPerBlock = w.most, a.numRegs = w.registers, a.sharedSizeBytes = w.own;
        a.shmemLimitConfig = w.optin_counts, a.maxDynamicSharedSizeBytes = w.dynamic_most;
        cudaOccDeviceState s;
        cudaOccResult r;
        CHECK(cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, w.threads, w.dynamic) == CUDA_OCC_SUCCESS);
        CHECK(r.activeBlocksPerMultiprocessor == w.blocks && (int)r.limitingFactors == w.limits);
        CHECK(r.blockLimitRegs == w.by_registers && r.blockLimitSharedMem == w.by_shared);
        CHECK(r.blockLimitWarps == w.by_warps && r.blockLimitBlocks == w.by_blocks);
        int grid = -1, best = -1;
        CHECK(cudaOccMaxPotentialOccupancyBlockSize(&grid, &best, &p, &a, &s, w.dynamic) == CUDA_OCC_SUCCESS);
        CHECK(grid == w.grid && best == w.best);
        size_t constant = w.dynamic;
        CHECK(cudaOccMaxPotentialOccupancyBlockSizeVariableSMem(&grid, &best, &p, &a, &s, [=](int) { return constant; }) ==
              CUDA_OCC_SUCCESS);
        CHECK(grid == w.grid && best == w.best);
        p.computeMajor = 4;
        CHECK(cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, w.threads, 0) == CUDA_OCC_ERROR_UNKNOWN_DEVICE);
        p.numSms = 0;
        CHECK(cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, w.threads, 0) == CUDA_OCC_ERROR_INVALID_INPUT);
    }
}

template <typename K> static void this_device(K *kernel)
{
    cudaDeviceProp prop;
    cudaFuncAttributes attributes;
    OK(cudaGetDeviceProperties(&prop, 0));
    OK(cudaFuncGetAttributes(&attributes, kernel));
    cudaOccDeviceProp p = prop;
    cudaOccFuncAttributes a = attributes;
    cudaOccDeviceState s;
    for (int threads : {1, 32, 64, 96, 128, 256, 512, 1024})
        for (int dynamic : {0, 1024, 8192, 32768}) {
            cudaOccResult r;
            int n = -1;
            CHECK(cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, threads, dynamic) == CUDA_OCC_SUCCESS);
            OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, threads, dynamic));
            CHECK(r.activeBlocksPerMultiprocessor == n);
        }
    size_t bytes = 0;
    cudaOccResult r;
    CHECK(cudaOccAvailableDynamicSMemPerBlock(&bytes, &p, &a, &s, 3, 128) == CUDA_OCC_SUCCESS && bytes > 0);
    CHECK(cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, 128, bytes) == CUDA_OCC_SUCCESS);
    CHECK(r.activeBlocksPerMultiprocessor >= 3);
    CHECK(cudaOccAvailableDynamicSMemPerBlock(&bytes, &p, &a, &s, 99, 128) == CUDA_OCC_ERROR_INVALID_INPUT && bytes == 0);
}

int main()
{
    devices_of_other_kinds();
    this_device(small);
    this_device(with_shared);
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
