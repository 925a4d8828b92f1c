#include "shared.cuh"

__managed__ int managed = 11;
static __device__ int own = 1000; /* also a name of the other's */

__device__ int twice(int x)
{
    return 2 * x * factor[0] + own;
}

__global__ void add(int x)
{
    total += x + counted(0);
    managed++;
}

int host_total()
{
    int v = -1;
    return cudaMemcpyFromSymbol(&v, total, sizeof(v)) ? -1 : v;
}
