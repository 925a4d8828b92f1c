/* Variables of a program: constant, device, arrays, by copy and by address, across a reset of the device. */
#include "check.cuh"

#define N 1024

__constant__ int factors[16];
__device__ int counter = 5;
__device__ int table[N];
__device__ int (*chosen)(int);

__device__ int twice(int x)
{
    return 2 * x;
}

__global__ void choose()
{
    chosen = twice;
}

__global__ void use(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = chosen(table[i]) * factors[i % 16];
    atomicAdd(&counter, 1);
}

static void once(void)
{
    int host[N], out[N], f[16], count = -1, wrong = 0;
    int *device;
    void *address;
    size_t size = 0;

    for (int i = 0; i < N; i++)
        host[i] = (int)(scrambled(i) % 1000);
    for (int i = 0; i < 16; i++)
        f[i] = i + 1;
    SAY(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
    CHECK(count == 5);
    MUST(cudaMalloc(&device, sizeof(out)));
    SAY(cudaMemcpyToSymbol(factors, f, sizeof(f)));
    SAY(cudaMemcpyToSymbol(table, host, sizeof(host) / 2));
    SAY(cudaMemcpyToSymbol(table, host + N / 2, sizeof(host) / 2, sizeof(host) / 2));
    choose<<<1, 1>>>();
    use<<<N / 128, 128>>>(device);
    SAY(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        wrong += out[i] != 2 * host[i] * f[i % 16];
    CHECK(wrong == 0);
    SAY(cudaGetSymbolAddress(&address, counter));
    SAY(cudaGetSymbolSize(&size, table));
    CHECK(size == sizeof(host));
    SAY(cudaMemcpy(&count, address, sizeof(count), cudaMemcpyDeviceToHost));
    CHECK(count == 5 + N);
    SAY(cudaMemcpyToSymbol(factors, f, sizeof(f), 4));
    SAY(cudaMemcpyToSymbol(host, f, sizeof(f)));
    SAY(cudaGetLastError());
}

int main()
{
    once();
    SAY(cudaDeviceReset()); /* variables have their first values again */
    once();
    return verdict();
}
