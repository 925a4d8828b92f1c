// What globals.cubin was made of, by make.sh: variables that kernels change, and others.
__device__ int counter = 3;
__device__ int table[100] = {1, 2, 3};
__device__ int *inside = &table[3]; // one's value is the address of another
__device__ double unused = 1.5;     // and compilers do not know that
__constant__ float scale[4] = {1, 2, 3, 4};

extern "C" __global__ void count(float *out)
{
    atomicAdd(&counter, 1);
    *inside = table[threadIdx.x] + counter;
    out[threadIdx.x] *= scale[threadIdx.x % 4];
}
