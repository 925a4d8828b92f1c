/*
 * Forms of intrinsics that programs use less often: products of vectors of bytes, bits of 64-bit
 * numbers with a sign, shuffles and cached loads of pairs of small floats, sines of floats by the
 * names for double, constant parameters, and waits for a barrier with a time limit.
 */
#include <cmath>
#include <cstdlib>

#include <cuda_awbarrier_primitives.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "check.h"

struct numbers {
    char4 bytes;
    uchar4 unsigned_bytes;
    short2 halves;
    ushort2 unsigned_halves;
};

__global__ void products(numbers a, numbers b, int *s, unsigned *u)
{
    s[0] = __dp4a(a.bytes, b.bytes, -7);
    s[1] = __dp2a_lo(a.halves, b.bytes, 100);
    s[2] = __dp2a_hi(a.halves, b.bytes, -100);
    s[3] = __dp2a_lo(0x7fff8000, 0x05fb80ff, 1);
    u[0] = __dp4a(a.unsigned_bytes, b.unsigned_bytes, 7u);
    u[1] = __dp2a_lo(a.unsigned_halves, b.unsigned_bytes, 100u);
    u[2] = __dp2a_hi(a.unsigned_halves, b.unsigned_bytes, 1u);
    u[3] = __dp2a_hi(0xffff8000u, 0xff0180ffu, 0u);
}

__global__ void bits(long long *n)
{
    atomicAnd(&n[0], ~(1ll << threadIdx.x));
    atomicOr_block(&n[1], 1ll << (threadIdx.x + 32));
    atomicXor_system(&n[2], 3ll << (threadIdx.x + 31));
}

template <class V> __device__ V pair(float x, float y);
template <> __device__ half2 pair(float x, float y)
{
    return __floats2half2_rn(x, y);
}
template <> __device__ __nv_bfloat162 pair(float x, float y)
{
    return __floats2bfloat162_rn(x, y);
}

/* Before the kernel that reads it by __ldg(), which need not see what its own kernel writes. */
template <class V> __global__ void pairs(V *memory)
{
    memory[threadIdx.x] = pair<V>((float)threadIdx.x, -(float)threadIdx.x);
}

template <class V> __global__ void shuffles(float2 *out, V *memory)
{
    const int t = threadIdx.x;
    V own = pair<V>((float)t, (float)-t);
    V got[6] = { __shfl_sync(~0u, own, 5), __shfl_up_sync(~0u, own, 3), __shfl_down_sync(~0u, own, 4, 8),
                 __shfl_xor_sync(~0u, own, 9), __ldg(&memory[31 - t]), own };
    got[5].x = __ldg(&memory[t ^ 1].y);
    for (int i = 0; i < 6; i++)
        out[i * 32 + t] = make_float2((float)got[i].x, (float)got[i].y);
}

__global__ void sines(float x, float *out)
{
    sincos(x, &out[0], &out[1]);
    sincospi(x, &out[2], &out[3]);
}

__global__ void parameter(const __grid_constant__ int n, int *out)
{
    const int *where = &n;
    *out = *where;
}

__global__ void barrier(int *out)
{
#if __CUDA_ARCH__ >= 900
    __shared__ __mbarrier_t b;
    if (threadIdx.x == 0)
        __mbarrier_init(&b, 2);
    __syncthreads();
    if (threadIdx.x == 0) {
        __mbarrier_token_t first = __mbarrier_arrive(&b);
        out[0] = __mbarrier_try_wait(&b, first, 100);
        out[1] = __mbarrier_try_wait_parity(&b, false, 100);
        __mbarrier_arrive(&b);
        out[2] = __mbarrier_try_wait(&b, first, 100);
        out[3] = __mbarrier_try_wait_parity(&b, false, 100);
        __mbarrier_inval(&b);
    }
#else
    out[0] = out[1] = 0, out[2] = out[3] = 1;
#endif
}

template <class V> static void check_shuffles(void)
{
    float2 *f;
    V *memory;
    OK(cudaMallocManaged(&f, 6 * 32 * sizeof(*f)));
    OK(cudaMallocManaged(&memory, 32 * sizeof(*memory)));
    pairs<<<1, 32>>>(memory);
    shuffles<<<1, 32>>>(f, memory);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 32; t++) {
        const int from[5] = { 5, t < 3 ? t : t - 3, t % 8 < 4 ? t + 4 : t, t ^ 9, 31 - t };
        for (int i = 0; i < 5; i++)
            CHECK(f[i * 32 + t].x == from[i] && f[i * 32 + t].y == -from[i]);
        CHECK(f[5 * 32 + t].x == -(t ^ 1));
    }
    OK(cudaFree(f));
    OK(cudaFree(memory));
}

int main()
{
    int *s;
    unsigned *u;
    long long *n;
    float *f;
    OK(cudaMallocManaged(&s, 64));
    OK(cudaMallocManaged(&u, 64));
    OK(cudaMallocManaged(&n, 64));
    OK(cudaMallocManaged(&f, 64));
    const numbers a = { { 1, -2, 127, -128 }, { 1, 200, 255, 4 }, { -30000, 321 }, { 60000, 7 } };
    const numbers b = { { -5, 6, -7, 8 }, { 255, 254, 3, 200 }, { 0, 0 }, { 0, 0 } };
    products<<<1, 1>>>(a, b, s, u);
    OK(cudaDeviceSynchronize());
    CHECK(s[0] == -5 - 12 - 127 * 7 - 128 * 8 - 7);
    CHECK(s[1] == 30000 * 5 + 321 * 6 + 100 && s[2] == 30000 * 7 + 321 * 8 - 100);
    CHECK(s[3] == 32768 - 32767 * 128 + 1);
    CHECK(u[0] == 255 + 200 * 254 + 255 * 3 + 4 * 200 + 7);
    CHECK(u[1] == 60000u * 255 + 7 * 254 + 100 && u[2] == 60000u * 3 + 7 * 200 + 1);
    CHECK(u[3] == 32768u + 65535u * 255);

    n[0] = -1, n[1] = 1, n[2] = 0;
    bits<<<1, 32>>>(n);
    OK(cudaDeviceSynchronize());
    CHECK(n[0] == (long long)(~0ull << 32) && n[1] == (long long)(~0ull << 32 | 1));
    CHECK(n[2] == (long long)(1ull << 31 | 1ull << 63));

    check_shuffles<half2>();
    check_shuffles<__nv_bfloat162>();

    sines<<<1, 1>>>(0.75f, f);
    parameter<<<1, 1>>>(4711, s);
    barrier<<<1, 32>>>(s + 4);
    OK(cudaDeviceSynchronize());
    CHECK(fabsf(f[0] - sinf(0.75f)) < 1e-6f && fabsf(f[1] - cosf(0.75f)) < 1e-6f);
    CHECK(fabsf(f[2] - sqrtf(0.5f)) < 1e-6f && fabsf(f[3] + sqrtf(0.5f)) < 1e-6f);
    CHECK(s[0] == 4711);
    CHECK(!s[4] && !s[5] && s[6] && s[7]);
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
