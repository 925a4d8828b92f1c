// A driver of a CUDA version before the runtime's: every call that needs one says so, and nothing crashes. The program
// stands in for such a driver with its own cuDriverGetVersion, which the runtime's calls reach first.
#include <stdio.h>

#include <cuda.h>

#include "check.h"

extern "C" CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    *version = CUDART_VERSION / 1000 * 1000 - 920;
    return CUDA_SUCCESS;
}

__device__ int variable;

__global__ void kernel()
{
    variable = 1;
}

int main()
{
    int count = -1, version = 0;
    void *p = nullptr;
    cudaStream_t stream;
    CHECK(cudaDriverGetVersion(&version) == cudaSuccess && version == CUDART_VERSION / 1000 * 1000 - 920);
    CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
    CHECK(cudaMalloc(&p, 16) == cudaErrorInsufficientDriver && !p);
    CHECK(cudaStreamCreate(&stream) == cudaErrorInsufficientDriver);
    CHECK(cudaGetSymbolAddress(&p, variable) == cudaErrorInsufficientDriver);
    (void)cudaGetLastError();
    kernel<<<1, 1>>>();
    CHECK(cudaGetLastError() == cudaErrorInsufficientDriver);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorInsufficientDriver);
    CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess && version == CUDART_VERSION);
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
