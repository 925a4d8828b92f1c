/* A sum with shared memory, shuffles and atomics, one with dynamic shared memory, and a cooperative one. */
#include <cooperative_groups.h>

#include "check.cuh"

__device__ unsigned long long total;

__global__ void with_shuffles(const unsigned *p, unsigned n, unsigned long long *out)
{
    __shared__ unsigned long long parts[32];
    unsigned long long sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += p[i];
    for (int d = 16; d; d /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i < blockDim.x / 32; i++)
            sum += parts[i];
        atomicAdd(out, sum);
    }
}

__global__ void with_dynamic(const unsigned *p, unsigned n, unsigned long long *out)
{
    extern __shared__ unsigned long long parts[];
    unsigned long long sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += p[i];
    parts[threadIdx.x] = sum;
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd(out, parts[0]);
}

__global__ void together(const unsigned *p, unsigned n, unsigned long long *parts)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned long long sum = 0;
    for (unsigned i = grid.thread_rank(); i < n; i += gridDim.x * blockDim.x)
        sum += p[i];
    parts[grid.thread_rank()] = sum;
    grid.sync();
    if (grid.thread_rank() == 0) {
        sum = 0;
        for (unsigned i = 0; i < gridDim.x * blockDim.x; i++)
            sum += parts[i];
        total = sum;
    }
}

int main()
{
    unsigned n = 1u << 20;
    block<unsigned> host(n);
    unsigned long long expected = 0, got[3] = {}, zero = 0;
    unsigned *p;
    unsigned long long *out;
    for (unsigned i = 0; i < n; i++)
        expected += host[i] = scrambled(i);
    MUST(cudaMalloc(&p, n * sizeof(*p)));
    MUST(cudaMalloc(&out, 4096 * sizeof(*out)));
    SAY(cudaMemcpy(p, host.data(), n * sizeof(*p), cudaMemcpyHostToDevice));

    SAY(cudaMemcpy(out, &zero, sizeof(zero), cudaMemcpyHostToDevice));
    with_shuffles<<<64, 256>>>(p, n, out);
    SAY(cudaMemcpy(&got[0], out, sizeof(zero), cudaMemcpyDeviceToHost));
    CHECK(got[0] == expected);

    /* More than 48 KiB, which has to be asked for. */
    SAY(cudaFuncSetAttribute(with_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    SAY(cudaMemcpy(out, &zero, sizeof(zero), cudaMemcpyHostToDevice));
    with_dynamic<<<64, 1024, 64 << 10>>>(p, n, out);
    SAY(cudaGetLastError());
    SAY(cudaMemcpy(&got[1], out, sizeof(zero), cudaMemcpyDeviceToHost));
    CHECK(got[1] == expected);

    void *args[] = { &p, &n, &out };
    SAY(cudaLaunchCooperativeKernel((const void *)together, dim3(8), dim3(128), args, 0, 0));
    SAY(cudaMemcpyFromSymbol(&got[2], total, sizeof(total)));
    CHECK(got[2] == expected);

    int blocks = -1;
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_dynamic, 1024, 64 << 10));
    printf("blocks on a multiprocessor: %d\n", blocks);
    cudaFuncAttributes a;
    SAY(cudaFuncGetAttributes(&a, with_dynamic));
    printf("dynamic shared memory %d, threads %d, static %zu\n", a.maxDynamicSharedSizeBytes, a.maxThreadsPerBlock,
           a.sharedSizeBytes);
    SAY(cudaFree(out));
    SAY(cudaFree(p));
    return verdict();
}
