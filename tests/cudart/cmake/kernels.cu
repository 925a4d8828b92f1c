#include "each.h"

__global__ void multiply(int *v, int n)
{
    EACH(i, n)
    v[i] *= v[i];
}

void square(int *v, int n)
{
    int *d;
    cudaMalloc(&d, n * sizeof(*d));
    cudaMemcpy(d, v, n * sizeof(*d), cudaMemcpyHostToDevice);
    multiply<<<1, 32>>>(d, n);
    cudaMemcpy(v, d, n * sizeof(*d), cudaMemcpyDeviceToHost);
    cudaFree(d);
}
