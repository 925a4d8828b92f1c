// What checking costs, kernel by kernel: the best of three times, in ms. Run it interpreted (GMUX_SOFT_JIT=0) and checked
// (GMUX_CHECK=memory,race,uninit), and compare.
#include <chrono>
#include <cuda_runtime.h>
#include <stdio.h>

#define N 128

__global__ void stream(const float *a, float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = 2 * a[i] + b[i];
}

__global__ void gather(const int *at, const float *a, float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[at[i]];
}

__global__ void bytes(const unsigned char *a, unsigned char *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[i] ^ 1;
}

__global__ void tiles(const float *a, const float *b, float *c)
{
    __shared__ float s[16][16], t[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < N; k += 16) {
        s[threadIdx.y][threadIdx.x] = a[y * N + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * N + x];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += s[threadIdx.y][i] * t[i][threadIdx.x];
        __syncthreads();
    }
    c[y * N + x] = sum;
}

__global__ void reduce(const float *a, float *out)
{
    __shared__ float s[256];
    s[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int n = 128; n > 0; n /= 2) {
        if (threadIdx.x < n)
            s[threadIdx.x] += s[threadIdx.x + n];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = s[0];
}

__global__ void histogram(const int *a, int *out)
{
    __shared__ int bins[64];
    if (threadIdx.x < 64)
        bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[a[blockIdx.x * 256 + threadIdx.x] % 64], 1);
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

__global__ void arithmetic(const float *a, float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = a[i];
    for (int k = 0; k < 100; k++)
        v = v * 0.5f + 1;
    b[i] = v;
}

template <typename F> static void time_of(const char *name, F launch)
{
    double best = 1e30;
    for (int i = 0; i < 4; i++) {
        auto from = std::chrono::steady_clock::now();
        launch();
        if (cudaDeviceSynchronize() != cudaSuccess)
            puts("failed");
        double ms = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count() * 1e3;
        best = ms < best ? ms : best;
    }
    printf("%-12s %9.2f ms\n", name, best);
}

int main()
{
    const int n = 1 << 18;
    float *a, *b, *c;
    int *at;
    cudaMalloc(&a, n * 4);
    cudaMalloc(&b, n * 4);
    cudaMalloc(&c, n * 4);
    cudaMalloc(&at, n * 4);
    cudaMemset(a, 0, n * 4);
    cudaMemset(b, 0, n * 4);
    cudaMemset(c, 0, n * 4);
    int *host = new int[n];
    for (int i = 0; i < n; i++)
        host[i] = (int)(i * 7919ll % n);
    cudaMemcpy(at, host, n * 4, cudaMemcpyHostToDevice);
    time_of("stream", [&] { stream<<<n / 256, 256>>>(a, b); });
    time_of("gather", [&] { gather<<<n / 256, 256>>>(at, a, b); });
    time_of("bytes", [&] { bytes<<<n / 256, 256>>>((unsigned char *)a, (unsigned char *)b); });
    time_of("tiles", [&] { tiles<<<dim3(N / 16, N / 16), dim3(16, 16)>>>(a, b, c); });
    time_of("reduce", [&] { reduce<<<n / 256, 256>>>(a, b); });
    time_of("histogram", [&] { histogram<<<n / 256, 256>>>(at, (int *)c); });
    time_of("arithmetic", [&] { arithmetic<<<n / 256, 256>>>(a, b); });
    delete[] host;
}
