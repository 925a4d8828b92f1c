/* A library with a runtime of its own, which programs of other runtimes load (mixed.cu). */
#include "check.cuh"

__global__ void more(int *p)
{
    p[threadIdx.x] += 10;
}

extern "C" int second(int *p, int n)
{
    int device = -1, *mine = NULL;
    SAY(cudaGetDevice(&device));
    SAY(cudaMalloc(&mine, 4096));
    more<<<1, n>>>(p);
    SAY(cudaGetLastError());
    SAY(cudaFree(mine));
    return (int)cudaDeviceSynchronize();
}
