// What kernels.cubin was made of, by make.sh: one of each thing that a reader has to find.
__constant__ int scale[4] = {1, 2, 3, 4};
__device__ unsigned counter = 42;
__device__ int buffer[64];
__managed__ int managed_word = 3;

struct twelve {
    char c[12];
};

extern "C" __global__ void store(int *out, int n, char c, double d, twelve t, short s)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i * scale[i & 3] + c + (int)d + t.c[3] + s;
    if (i == 0)
        buffer[atomicAdd(&counter, 1) & 63] = n;
}

struct large {
    int words[1100];
};

extern "C" __global__ void many(large l, int *out)
{
    out[threadIdx.x] = l.words[threadIdx.x];
}
