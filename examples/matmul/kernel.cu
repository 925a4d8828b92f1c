// C = A * B, row-major, n a multiple of the tile; one thread per element of C, tiles through shared memory.
#include "../common/device.cuh"

#define TILE 32

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[TILE][TILE];
    __shared__ float tb[TILE][TILE];
    int tx = threadIdx_x, ty = threadIdx_y;
    int row = blockIdx_y * TILE + ty, col = blockIdx_x * TILE + tx;
    float sum = 0;
    for (int t = 0; t < n; t += TILE) {
        ta[ty][tx] = a[row * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + col];
        syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum += ta[ty][k] * tb[k][tx];
        syncthreads();
    }
    c[row * n + col] = sum;
}
