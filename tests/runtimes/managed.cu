/* Managed memory: allocated and declared, used by host and device in turns, advised and prefetched. */
#include "check.cuh"

#define N (1 << 18)

__managed__ unsigned declared[256];
__managed__ int sum;

__global__ void step(unsigned *p, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = p[i] * 5 + 1;
    if (i < 256)
        declared[i] += i;
    if (i < n)
        atomicAdd(&sum, 1);
}

static cudaError_t prefetch(const void *p, size_t bytes, int device)
{
#if CUDART_VERSION >= 13000
    cudaMemLocation where = { device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, device };
    return cudaMemPrefetchAsync(p, bytes, where, 0, 0);
#else
    return cudaMemPrefetchAsync(p, bytes, device, 0);
#endif
}

static cudaError_t advise(const void *p, size_t bytes, cudaMemoryAdvise advice, int device)
{
#if CUDART_VERSION >= 13000
    cudaMemLocation where = { device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, device };
    return cudaMemAdvise(p, bytes, advice, where);
#else
    return cudaMemAdvise(p, bytes, advice, device);
#endif
}

int main()
{
    unsigned *p;
    int wrong = 0;
    for (unsigned i = 0; i < 256; i++)
        declared[i] = 7;
    MUST(cudaMallocManaged(&p, N * sizeof(*p)));
    for (unsigned i = 0; i < N; i++)
        p[i] = scrambled(i);
    SAY(advise(p, N * sizeof(*p), cudaMemAdviseSetPreferredLocation, 0));
    SAY(prefetch(p, N * sizeof(*p), 0));
    step<<<N / 256, 256>>>(p, N);
    SAY(cudaDeviceSynchronize());
    for (unsigned i = 0; i < N; i++)
        p[i] += 2;
    SAY(prefetch(p, N * sizeof(*p), cudaCpuDeviceId));
    step<<<N / 256, 256>>>(p, N);
    SAY(cudaDeviceSynchronize());
    for (unsigned i = 0; i < N; i++)
        wrong += p[i] != (scrambled(i) * 5 + 3) * 5 + 1;
    CHECK(wrong == 0);
    for (unsigned i = 0; i < 256; i++)
        wrong += declared[i] != 7 + 2 * i;
    CHECK(wrong == 0);
    CHECK(sum == 2 * N);
    cudaPointerAttributes a;
    SAY(cudaPointerGetAttributes(&a, p));
    CHECK(a.type == cudaMemoryTypeManaged);
    CHECK(a.devicePointer == p && a.hostPointer == p);
    SAY(cudaMemset(p, 0, 64));
    SAY(cudaDeviceSynchronize());
    CHECK(p[0] == 0 && p[15] == 0 && p[16] != 0);
    SAY(cudaFree(p));
    return verdict();
}
