// Sum of n floats: grid-stride loop, shuffle within the warp, shared memory between warps, one atomic per block.
#include "../common/device.cuh"

extern "C" __global__ void reduce_sum(const float *in, float *out, int n)
{
    __shared__ float partial[32];
    float sum = 0;
    for (int i = blockIdx_x * blockDim_x + threadIdx_x; i < n; i += gridDim_x * blockDim_x)
        sum += in[i];
    for (int d = 16; d > 0; d >>= 1)
        sum += shfl_down(sum, d);
    unsigned lane = threadIdx_x % 32, warp = threadIdx_x / 32;
    if (lane == 0)
        partial[warp] = sum;
    syncthreads();
    if (warp == 0) {
        sum = lane < (blockDim_x + 31) / 32 ? partial[lane] : 0.0f;
        for (int d = 16; d > 0; d >>= 1)
            sum += shfl_down(sum, d);
        if (lane == 0)
            __nvvm_atom_add_gen_f(out, sum);
    }
}
