/*
 * Relocatable device code: kernels, functions, variables and constants across two sources, on the
 * device and on the host; names of one's own twice; an inline function's variable once.
 */
#include "shared.cuh"
#include <cstdio>

#include "../check.h"

__device__ int total = 3;
__constant__ int factor[2];
static __device__ int own = 20;

__global__ void kernel(int *out)
{
    out[threadIdx.x] = twice((int)threadIdx.x) + own + factor[1];
    if (threadIdx.x == 0)
        out[32] = counted(0);
}

int main()
{
    int *out, f[2] = { 5, 6 };
    OK(cudaMallocManaged(&out, 33 * sizeof(int)));
    OK(cudaMemcpyToSymbol(factor, f, sizeof(f)));
    kernel<<<1, 32>>>(out);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++)
        CHECK(out[i] == 10 * i + 1026);
    CHECK(out[32] == 7 && managed == 11);
    add<<<1, 1>>>(100);
    OK(cudaDeviceSynchronize());
    CHECK(host_total() == 3 + 100 + 8 && managed == 12);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
