/*
 * What every program does: memory, launches, variables, events, printf, atomics. Each result is computed again on the host.
 */
#include <stdio.h>
#include <vector>

#include "check.h"

__constant__ float scale;
__device__ unsigned int counter;
__device__ int table[4] = { 2, 3, 5, 7 };

__global__ void vecadd(const float *a, const float *b, float *c, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        c[i] = scale * a[i] + b[i];
}

template <typename T>
__global__ void sum(const T *in, T *out, int n)
{
    extern __shared__ unsigned char raw[];
    T *part = (T *)raw;
    T mine = 0;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
        mine += in[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(out, part[0]);
}

__global__ void count(int *old_table)
{
    atomicInc(&counter, 0xffffffffu);
    if (threadIdx.x < 4 && blockIdx.x == 0)
        old_table[threadIdx.x] = atomicExch(&table[threadIdx.x], (int)threadIdx.x);
    if (threadIdx.x == 0 && blockIdx.x == 1)
        printf("block %d of %d\n", (int)blockIdx.x, (int)gridDim.x);
}

__global__ void warps(int *out)
{
    int lane = (int)threadIdx.x % 32, v = lane;
    for (int step = 16; step; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    unsigned even = __ballot_sync(0xffffffffu, lane % 2 == 0);
    out[threadIdx.x] = v + (even == 0x55555555u ? 1000 : 0) + (__popc(__match_any_sync(0xffffffffu, lane / 4)) == 4 ? 10000 : 0);
}

struct place {
    unsigned int n;
    __device__ place(uint3 v) : n(v.x + 10 * v.y)
    {
    }
};

template <class T> __device__ unsigned int volume(T v)
{
    return v.x * v.y * v.z;
}

/* Built-in variables are values of uint3 and dim3: they can be copied, passed and converted. */
__global__ void positions(unsigned int *out)
{
    auto thread = threadIdx;
    const auto &blocks = gridDim;
    const uint3 block = blockDim;
    dim3 threads(blockDim), where = dim3(blockIdx), all[] = { gridDim, blockDim };
    place here(blockIdx);
    threads.y = all[0].x;
    auto sum = [=] { return thread.x + block.y; };
    out[thread.x] = here.n + 100 * volume(blockDim) + 1000 * threads.y + 10000 * volume(blocks) +
                    100000 * where.y + 1000000 * sum();
}

static void additions()
{
    const int n = 100003;
    std::vector<float> a(n), b(n), c(n);
    for (int i = 0; i < n; i++) {
        a[i] = (float)(i % 1000);
        b[i] = 0.5f * (float)(i % 77);
    }
    float *da, *db, *dc, two = 2;
    OK(cudaMalloc(&da, n * sizeof(float)));
    OK(cudaMalloc((void **)&db, n * sizeof(float)));
    OK(cudaMallocManaged(&dc, n * sizeof(float)));
    OK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyDefault));
    OK(cudaMemcpyToSymbol(scale, &two, sizeof(two)));
    vecadd<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    OK(cudaGetLastError());
    OK(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += c[i] != 2 * a[i] + b[i] || dc[i] != c[i];
    CHECK(wrong == 0);
    float *total;
    OK(cudaMalloc(&total, sizeof(float)));
    OK(cudaMemset(total, 0, sizeof(float)));
    cudaStream_t s;
    cudaEvent_t start, end;
    OK(cudaStreamCreate(&s));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, s));
    sum<float><<<8, 128, 128 * sizeof(float), s>>>(db, total, 77 * 77);
    OK(cudaEventRecord(end, s));
    OK(cudaEventSynchronize(end));
    float ms = -1, got;
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 0);
    OK(cudaMemcpy(&got, total, sizeof(got), cudaMemcpyDeviceToHost));
    CHECK(got == 77 * 0.5f * 76 * 77 / 2); /* every number here is a multiple of 1/2 below 2^23: exact in any order */
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(s));
    OK(cudaFree(da));
    OK(cudaFree(db));
    OK(cudaFree(dc));
    OK(cudaFree(total));
}

static void variables()
{
    int *old_table, host[4], now[4];
    unsigned int n = 40;
    size_t size = 0;
    OK(cudaMalloc(&old_table, sizeof(host)));
    OK(cudaMemcpyToSymbol(counter, &n, sizeof(n)));
    count<<<3, 32>>>(old_table);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpyFromSymbol(&n, counter, sizeof(n)));
    CHECK(n == 40 + 96);
    OK(cudaMemcpy(host, old_table, sizeof(host), cudaMemcpyDeviceToHost));
    CHECK(host[0] == 2 && host[1] == 3 && host[2] == 5 && host[3] == 7);
    OK(cudaMemcpyFromSymbol(now, table, 2 * sizeof(int), 2 * sizeof(int)));
    CHECK(now[0] == 2 && now[1] == 3);
    OK(cudaGetSymbolSize(&size, table));
    CHECK(size == sizeof(host));
    CHECK(cudaMemcpyFromSymbol(now, table, sizeof(now), 4) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    OK(cudaFree(old_table));
}

static void lanes()
{
    int *out, host[64], wrong = 0;
    OK(cudaMalloc(&out, sizeof(host)));
    warps<<<1, 64>>>(out);
    OK(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++)
        wrong += host[i] != 31 * 32 / 2 + 11000;
    CHECK(wrong == 0);
    OK(cudaFree(out));
}

int main()
{
    cudaDeviceProp p;
    int blocks = 0, grid = 0, block = 0;
    OK(cudaGetDeviceProperties(&p, 0));
    CHECK(p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.totalGlobalMem > 0 && p.name[0]);
    additions();
    variables();
    lanes();
    unsigned int *out;
    OK(cudaMallocManaged(&out, 4 * sizeof(*out)));
    for (unsigned int n = 0; n < 4; n++)
        out[n] = 0;
    positions<<<dim3(1, 2), dim3(4, 1)>>>(out);
    OK(cudaDeviceSynchronize());
    /* Either of the two blocks may be the last one that writes. */
    for (unsigned int n = 0; n < 4; n++)
        CHECK(out[n] == 1021400 + 1000000 * n || out[n] == 1121410 + 1000000 * n);
    OK(cudaFree(out));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, vecadd, 256, 0));
    CHECK(blocks > 0);
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, vecadd));
    CHECK(cudaOccupancyMaxPotentialBlockSize(nullptr, &block, vecadd) == cudaErrorInvalidValue);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, nullptr, vecadd) == cudaErrorInvalidValue);
    CHECK(grid > 0 && block > 0 && block <= 1024);
    auto none = [](int) { return 0; };
    int other = 0;
    OK(cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(&grid, &other, vecadd, none, 0, 0));
    CHECK(other == block);
    vecadd<<<1, 2048>>>(NULL, NULL, NULL, 0);
    const cudaError_t wrong = CUDART_VERSION < 13000 ? cudaErrorInvalidConfiguration : cudaErrorInvalidValue;
    CHECK(cudaPeekAtLastError() == wrong);
    CHECK(cudaGetLastError() == wrong);
    OK(cudaDeviceReset());
    int first[4] = { 0 };
    OK(cudaMemcpyFromSymbol(first, table, sizeof(first)));
    CHECK(first[0] == 2 && first[3] == 7);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
