/*
 * Copies into shared memory that are waited for batch by batch, and barriers at which a thread
 * arrives before it waits, by the primitives and by the classes of CUDA 11.
 */
#include <cuda_awbarrier.h>
#include <cuda_pipeline.h>

#include <cstdio>

#include "check.h"

enum { THREADS = 128, ROUNDS = 9 };

struct alignas(16) quad {
    int v[4];
};

/* Two stages: what was fetched the round before is read while the next is under way. */
__global__ void primitives(const int *in, int *out)
{
    __shared__ int stage[2][THREADS];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], in + t, sizeof(int));
    __pipeline_commit();
    for (int k = 0; k < ROUNDS; k++) {
        if (k + 1 < ROUNDS)
            __pipeline_memcpy_async(&stage[(k + 1) % 2][t], in + (k + 1) * THREADS + t, 4,
                                    t == 5 ? 3 : 0);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[k * THREADS + t] = stage[k % 2][THREADS - 1 - t];
        __syncthreads();
    }
}

__global__ void classes(const quad *in, quad *out)
{
    __shared__ quad stage[2][THREADS];
    nvcuda::experimental::pipeline p;
    unsigned t = threadIdx.x;
    nvcuda::experimental::memcpy_async(stage[0][t], in[t], p);
    size_t first = p.commit();
    nvcuda::experimental::memcpy_async(stage[1][t], in[THREADS + t], p);
    p.commit();
    p.wait(first);
    __syncthreads();
    out[t] = stage[0][t ^ 1];
    p.wait_prior<0>();
    __syncthreads();
    out[THREADS + t] = stage[1][t ^ 1];
}

/* Each warp adds to what the one before it has left; the last phase is for half of the threads. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void barriers(const int *in, int *out)
{
    __shared__ nvcuda::experimental::awbarrier bar;
    __shared__ __mbarrier_t word;
    __shared__ int sum[THREADS], copied[THREADS];
    unsigned t = threadIdx.x;
    if (t == 0) {
        init(&bar, THREADS);
        __mbarrier_init(&word, THREADS);
    }
    __syncthreads();
    sum[t] = (int)t;
    for (unsigned step = 1; step < THREADS; step *= 2) {
        bar.arrive_and_wait();
        int other = sum[t ^ step];
        auto token = bar.arrive();
        bar.wait(token);
        sum[t] += other;
    }
    __pipeline_memcpy_async(&copied[t], in + t, sizeof(int));
    __pipeline_arrive_on(&word); /* arrives for nobody, but the phase waits for the copy */
    auto token = __mbarrier_arrive(&word);
    while (!__mbarrier_test_wait(&word, token))
        ;
    out[t] = sum[t] + copied[t ^ 64];
    if (t % 2) {
        bar.arrive_and_drop();
        return;
    }
    bar.arrive_and_wait();
    bar.arrive_and_wait(); /* of the others only */
    out[t] += 1;
}
#else
__global__ void barriers(const int *, int *) {}
#endif

int main()
{
    static int in[ROUNDS * THREADS], out[ROUNDS * THREADS];
    int *from, *to;
    for (int i = 0; i < ROUNDS * THREADS; i++)
        in[i] = i * 7919 + 256 * 77;
    OK(cudaMalloc(&from, sizeof(in)));
    OK(cudaMalloc(&to, sizeof(out)));
    OK(cudaMemcpy(from, in, sizeof(in), cudaMemcpyHostToDevice));
    for (int again = 0; again < 20; again++) { /* interpreted, then compiled */
        primitives<<<1, THREADS>>>(from, to);
        OK(cudaMemcpy(out, to, sizeof(out), cudaMemcpyDeviceToHost));
        for (int k = 0; k < ROUNDS; k++)
            for (int t = 0; t < THREADS; t++) {
                int v = in[k * THREADS + THREADS - 1 - t];
                CHECK(out[k * THREADS + t] == (k > 0 && THREADS - 1 - t == 5 ? v & 0xff : v));
            }
        classes<<<1, THREADS>>>((const quad *)from, (quad *)to);
        OK(cudaMemcpy(out, to, sizeof(out), cudaMemcpyDeviceToHost));
        for (int i = 0; i < 2 * THREADS * 4; i++)
            CHECK(out[i] == in[i ^ 4]);
#ifndef NO_BARRIERS
        barriers<<<1, THREADS>>>(from, to);
        OK(cudaMemcpy(out, to, sizeof(out), cudaMemcpyDeviceToHost));
        for (int t = 0; t < THREADS; t++)
            CHECK(out[t] == THREADS * (THREADS - 1) / 2 + in[t ^ 64] + (t % 2 == 0));
#endif
    }
    printf("passed\n");
    return 0;
}
