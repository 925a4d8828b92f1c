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

__global__ void sgemm32(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[32][32], bs[32][32];
    int tx = threadIdx_x, ty = threadIdx_y, row = blockIdx_y * 32 + ty, col = blockIdx_x * 32 + tx;
    float sum = 0;
    for (int k = 0; k < n; k += 32) {
        as[ty][tx] = a[row * n + k + tx];
        bs[ty][tx] = b[(k + ty) * n + col];
        syncthreads();
#pragma unroll
        for (int j = 0; j < 32; j++)
            sum += as[ty][j] * bs[j][tx];
        syncthreads();
    }
    c[row * n + col] = sum;
}

__global__ void transpose(const float *in, float *out, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx_x * 32 + threadIdx_x, y = blockIdx_y * 32 + threadIdx_y;
#pragma unroll
    for (int k = 0; k < 32; k += 8)
        tile[threadIdx_y + k][threadIdx_x] = in[(y + k) * n + x];
    syncthreads();
    x = blockIdx_y * 32 + threadIdx_x;
    y = blockIdx_x * 32 + threadIdx_y;
#pragma unroll
    for (int k = 0; k < 32; k += 8)
        out[(y + k) * n + x] = tile[threadIdx_x][threadIdx_y + k];
}

// Each block sorts 512 elements.
__global__ void bitonic(const float *in, float *out, int n)
{
    __shared__ float s[512];
    int t = threadIdx_x, base = blockIdx_x * 512;
    s[t] = in[base + t];
    s[t + 256] = in[base + t + 256];
    for (int size = 2; size <= 512; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            syncthreads();
            int i = 2 * t - (t & (stride - 1));
            float a = s[i], b = s[i + stride];
            bool up = (i & size) == 0;
            if ((a > b) == up) {
                s[i] = b;
                s[i + stride] = a;
            }
        }
    syncthreads();
    out[base + t] = s[t];
    out[base + t + 256] = s[t + 256];
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
