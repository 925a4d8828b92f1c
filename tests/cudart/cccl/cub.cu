/*
 * CUB on our headers and runtime library: within a warp, a block, and for a whole device. What is
 * expected is the C++ library's own algorithms on the host, or arithmetic.
 */
#include <cub/cub.cuh>
#include <cuda/std/array>
#include <cuda/std/limits>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../check.h"

/* A block of 128: what each algorithm makes of the threads' numbers. */
__global__ void block(int *out, float *sorted)
{
    using reduce = cub::BlockReduce<int, 128>;
    using scan = cub::BlockScan<int, 128>;
    using sort = cub::BlockRadixSort<float, 128, 4>;
    using exchange = cub::BlockExchange<int, 128, 2>;
    using warp = cub::WarpReduce<int>;
    __shared__ union {
        typename reduce::TempStorage reduce;
        typename scan::TempStorage scan;
        typename sort::TempStorage sort;
        typename exchange::TempStorage exchange;
        typename warp::TempStorage warp[4];
    } s;
    int t = (int)threadIdx.x;
    int total = reduce(s.reduce).Reduce(t, [](int a, int b) { return a > b ? a : b; });
    __syncthreads();
    int before;
    scan(s.scan).ExclusiveSum(t, before);
    __syncthreads();
    float keys[4];
    for (int i = 0; i < 4; i++)
        keys[i] = (float)((t * 4 + i) * 7919 % 512) - 256;
    sort(s.sort).Sort(keys);
    __syncthreads();
    for (int i = 0; i < 4; i++)
        sorted[t * 4 + i] = keys[i];
    int striped[2] = { t, t + 128 };
    exchange(s.exchange).StripedToBlocked(striped, striped);
    __syncthreads();
    int of_warp = warp(s.warp[t / 32]).Sum(t);
    out[t] = before;
    out[128 + t] = striped[0] * 1000 + striped[1];
    if (t % 32 == 0)
        out[256 + t / 32] = of_warp;
    if (t == 0)
        out[260] = total;
}

static void in_a_block()
{
    int *d, h[261];
    float *ds, hs[512];
    OK(cudaMalloc(&d, sizeof(h)));
    OK(cudaMalloc(&ds, sizeof(hs)));
    block<<<1, 128>>>(d, ds);
    OK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(hs, ds, sizeof(hs), cudaMemcpyDeviceToHost));
    for (int t = 0; t < 128; t++)
        CHECK(h[t] == t * (t - 1) / 2 && h[128 + t] == 2 * t * 1000 + 2 * t + 1);
    for (int w = 0; w < 4; w++)
        CHECK(h[256 + w] == 32 * 32 * w + 496);
    CHECK(h[260] == 127);
    for (int i = 0; i < 512; i++)
        CHECK(hs[i] == (float)(i - 256));
    OK(cudaFree(d));
    OK(cudaFree(ds));
}

/* Each device-wide algorithm is called twice: for the size of its scratch memory, then to work. */
template <class F> static void with_scratch(F call)
{
    size_t size = 0;
    void *scratch = nullptr;
    OK(call((void *)nullptr, size));
    OK(cudaMalloc(&scratch, size));
    OK(call(scratch, size));
    OK(cudaFree(scratch));
}

static void on_the_device(int count)
{
    std::vector<unsigned> h((size_t)count), r((size_t)count);
    unsigned x = 1;
    for (unsigned &i : h)
        i = (x = x * 1664525 + 1013904223) >> 4;
    unsigned *in, *out, *more;
    int *counter;
    OK(cudaMalloc(&in, h.size() * 4));
    OK(cudaMalloc(&out, h.size() * 4));
    OK(cudaMalloc(&more, h.size() * 4));
    OK(cudaMalloc(&counter, 4));
    OK(cudaMemcpy(in, h.data(), h.size() * 4, cudaMemcpyHostToDevice));
    auto fetch = [&](unsigned *from) {
        OK(cudaMemcpy(r.data(), from, r.size() * 4, cudaMemcpyDeviceToHost));
    };
    with_scratch([&](void *s, size_t &n) { return cub::DeviceReduce::Sum(s, n, in, out, count); });
    fetch(out);
    CHECK(r[0] == std::accumulate(h.begin(), h.end(), 0u));
    with_scratch([&](void *s, size_t &n) { return cub::DeviceScan::InclusiveSum(s, n, in, out, count); });
    fetch(out);
    std::vector<unsigned> want(h.size());
    std::partial_sum(h.begin(), h.end(), want.begin());
    CHECK(r == want);
    with_scratch([&](void *s, size_t &n) {
        return cub::DeviceRadixSort::SortKeysDescending(s, n, in, out, count);
    });
    fetch(out);
    want = h;
    std::sort(want.begin(), want.end(), std::greater<unsigned>());
    CHECK(r == want);
    int kept = 0;
    with_scratch([&](void *s, size_t &n) {
        return cub::DeviceSelect::If(s, n, in, more, counter, count,
                                     [] __device__(unsigned v) { return v % 3 == 0; });
    });
    OK(cudaMemcpy(&kept, counter, 4, cudaMemcpyDeviceToHost));
    want.clear();
    std::copy_if(h.begin(), h.end(), std::back_inserter(want), [](unsigned v) { return v % 3 == 0; });
    fetch(more);
    CHECK(kept == (int)want.size() && std::equal(want.begin(), want.end(), r.begin()));
    int *bins, hb[16];
    OK(cudaMalloc(&bins, sizeof(hb)));
    with_scratch([&](void *s, size_t &n) {
        return cub::DeviceHistogram::HistogramEven(s, n, in, bins, 17, 0u, 1u << 28, count);
    });
    OK(cudaMemcpy(hb, bins, sizeof(hb), cudaMemcpyDeviceToHost));
    for (unsigned b = 0; b < 16; b++)
        CHECK(hb[b] == std::count_if(h.begin(), h.end(), [=](unsigned v) { return v >> 24 == b; }));
    for (void *p : { (void *)in, (void *)out, (void *)more, (void *)counter, (void *)bins })
        OK(cudaFree(p));
}

int main()
{
    in_a_block();
    for (int count : { 1, 777, 100000 })
        on_the_device(count);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
