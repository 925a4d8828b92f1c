// Kernels as programs have them, each beside a loop in C that computes the same (kernel_set_loops.c).
#include "../examples/common/device.cuh"

#define TILE 16

extern "C" {

__global__ void reduction(const float *in, float *out, int n)
{
    __shared__ float s[256];
    int t = threadIdx_x;
    float sum = 0;
    for (int i = blockIdx_x * blockDim_x + t; i < n; i += gridDim_x * blockDim_x)
        sum += in[i];
    s[t] = sum;
    syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d)
            s[t] += s[t + d];
        syncthreads();
    }
    if (t == 0)
        out[blockIdx_x] = s[0];
}

__global__ void sgemm(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int tx = threadIdx_x, ty = threadIdx_y, row = blockIdx_y * TILE + ty, col = blockIdx_x * TILE + tx;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        as[ty][tx] = a[row * n + k + tx];
        bs[ty][tx] = b[(k + ty) * n + col];
        syncthreads();
#pragma unroll
        for (int j = 0; j < TILE; j++)
            sum += as[ty][j] * bs[j][tx];
        syncthreads();
    }
    c[row * n + col] = sum;
}

__global__ void convolution(const float *in, const float *w, float *out, int n)
{
    int x = blockIdx_x * TILE + threadIdx_x, y = blockIdx_y * TILE + threadIdx_y;
    if (x < 2 || y < 2 || x >= n - 2 || y >= n - 2)
        return;
    float sum = 0;
#pragma unroll
    for (int j = -2; j <= 2; j++)
#pragma unroll
        for (int i = -2; i <= 2; i++)
            sum += in[(y + j) * n + x + i] * w[(j + 2) * 5 + i + 2];
    out[y * n + x] = sum;
}

__global__ void histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned h[256];
    int t = threadIdx_x;
    h[t] = 0;
    syncthreads();
    for (int i = blockIdx_x * blockDim_x + t; i < n; i += gridDim_x * blockDim_x)
        __nvvm_atom_add_gen_i((int *)&h[in[i]], 1);
    syncthreads();
    __nvvm_atom_add_gen_i((int *)&out[t], (int)h[t]);
}

__global__ void spmv(const int *row, const int *column, const float *value, const float *x, float *y, int n)
{
    int r = blockIdx_x * blockDim_x + threadIdx_x;
    if (r >= n)
        return;
    float sum = 0;
    for (int k = row[r]; k < row[r + 1]; k++)
        sum += value[k] * x[column[k]];
    y[r] = sum;
}

__global__ void triad(const float *a, const float *b, float *c, float s, int n)
{
    int i = blockIdx_x * blockDim_x + threadIdx_x;
    if (i < n)
        c[i] = a[i] + s * b[i];
}

__global__ void jacobi(const float *in, float *out, int n)
{
    int x = blockIdx_x * blockDim_x + threadIdx_x, y = blockIdx_y * blockDim_y + threadIdx_y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
        out[y * n + x] =
            0.25f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x]);
}

__global__ void scan(const float *in, float *out, int n)
{
    __shared__ float s[256];
    int t = threadIdx_x, i = blockIdx_x * blockDim_x + t;
    s[t] = i < n ? in[i] : 0.0f;
    syncthreads();
    for (int d = 1; d < 256; d <<= 1) {
        float v = t >= d ? s[t - d] : 0.0f;
        syncthreads();
        s[t] += v;
        syncthreads();
    }
    if (i < n)
        out[i] = s[t];
}
}
