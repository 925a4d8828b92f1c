/*
 * Cooperative groups within a warp: shuffles of any type, partitions, masks, sums and scans, each
 * beside what the host comes to.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;

struct wide {
    double a;
    short b;
    int c[3];
};

enum { THREADS = 96, RESULTS = 40 };

struct results {
    int v[RESULTS];
};

/* What a thread takes part with. */
__host__ __device__ int input(int t)
{
    return (t * 37 + 11) % 23 - 7;
}

/* Ranks and partitions of a group, by ballots and sums. */
template <class G> __device__ int *lanes(const G &g, int value, int *out)
{
    *out++ = (int)cg::thread_rank(g);
    *out++ = (int)cg::group_size(g);
    *out++ = (int)g.ballot(value > 0);
    *out++ = (int)g.match_any(value);
    *out++ = cg::reduce(g, value, cg::plus<int>());
    *out++ = cg::reduce(g, value, cg::less<int>());
    *out++ = cg::reduce(g, value, cg::greater<int>());
    *out++ = cg::reduce(g, value, cg::bit_xor<int>());
    *out++ = cg::inclusive_scan(g, value);
    *out++ = cg::exclusive_scan(g, value);
    *out++ = cg::inclusive_scan(g, value, cg::greater<int>());
    wide w = { value + 0.5, (short)(value * 3), { value, value + 1, value + 2 } };
    wide r = g.shfl(w, g.size() - 1);
    *out++ = (int)(r.a * 2) + r.b + r.c[0] + r.c[1] + r.c[2];
    *out++ = g.shfl_down(value, 2);
    *out++ = (int)g.meta_group_rank();
    *out++ = (int)g.meta_group_size();
    return out;
}

__global__ void within_warp(int kind, results *all)
{
    auto block = cg::this_thread_block();
    int t = (int)block.thread_rank(), value = input(t);
    int *out = all[t].v;
    auto warp = cg::tiled_partition<32>(block);
    if (kind == 0) {
        lanes(warp, value, out);
    } else if (kind == 1) {
        lanes(cg::tiled_partition<8>(warp), value, out);
    } else if (kind == 2) {
        if (t % 3 != 1)
            lanes(cg::coalesced_threads(), value, out);
    } else if (kind == 3) {
        lanes(cg::labeled_partition(warp, t % 5), value, out);
    } else if (kind == 4) {
        lanes(cg::binary_partition(warp, value > 3), value, out);
    } else {
        auto token = block.barrier_arrive();
        block.barrier_wait(static_cast<cg::thread_block::arrival_token &&>(token));
        cg::thread_block_tile<4> four = cg::tiled_partition<4>(block);
        lanes(four, value, out);
    }
}

/* The group of a thread, as a mask of its warp's lanes; its place among its like. */
static unsigned group_of(int kind, int t, int *meta_rank, int *meta_size)
{
    int warp = t / 32 * 32;
    unsigned mask = 0;
    *meta_rank = 0;
    *meta_size = 1;
    for (int i = 0; i < 32; i++) {
        int o = warp + i;
        bool same = kind == 0   ? true
                    : kind == 1 ? o / 8 == t / 8
                    : kind == 2 ? o % 3 != 1
                    : kind == 3 ? o % 5 == t % 5
                    : kind == 4 ? (input(o) > 3) == (input(t) > 3)
                                : o / 4 == t / 4;
        mask |= (unsigned)same << i;
    }
    if (kind == 0)
        *meta_rank = t / 32, *meta_size = THREADS / 32;
    if (kind == 1)
        *meta_rank = t % 32 / 8, *meta_size = 4;
    if (kind == 3) /* in the order of their first lanes */
        *meta_rank = (t % 5 + 5 - warp % 5) % 5, *meta_size = 5;
    if (kind == 4)
        *meta_rank = input(t) > 3, *meta_size = 2;
    if (kind == 5)
        *meta_rank = t / 4, *meta_size = THREADS / 4;
    return mask;
}

static results expected(int kind, int t)
{
    results e = {};
    int n = 0, rank = 0, members[32], meta_rank, meta_size;
    unsigned mask = group_of(kind, t, &meta_rank, &meta_size);
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) {
            if (t / 32 * 32 + i == t)
                rank = n;
            members[n++] = t / 32 * 32 + i;
        }
    int sum = 0, least = 1000, most = -1000, exclusive = 0, inclusive = 0, greatest = -1000;
    unsigned positive = 0, same = 0, x = 0;
    for (int i = 0; i < n; i++) {
        int v = input(members[i]);
        exclusive = i == rank ? sum : exclusive;
        sum += v;
        inclusive = i == rank ? sum : inclusive;
        x ^= (unsigned)v;
        least = v < least ? v : least;
        most = v > most ? v : most;
        greatest = i <= rank ? most : greatest;
        positive |= (unsigned)(v > 0) << i;
        same |= (unsigned)(v == input(t)) << i;
    }
    int last = input(members[n - 1]);
    int values[] = { rank,
                     n,
                     (int)positive,
                     (int)same,
                     sum,
                     least,
                     most,
                     (int)x,
                     inclusive,
                     exclusive,
                     greatest,
                     (int)((last + 0.5) * 2) + 6 * last + 3,
                     rank + 2 < n ? input(members[rank + 2]) : input(t),
                     meta_rank,
                     meta_size };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        e.v[i] = values[i];
    return e;
}

int main()
{
    int failures = 0;
    results *all;
    if (cudaMallocManaged(&all, THREADS * sizeof(*all)))
        return 1;
    for (int kind = 0; kind < 6; kind++) {
        cudaMemset(all, 0, THREADS * sizeof(*all));
        within_warp<<<1, THREADS>>>(kind, all);
        if (cudaError_t r = cudaDeviceSynchronize()) {
            printf("kind %d: %s\n", kind, cudaGetErrorName(r));
            return 1;
        }
        for (int t = 0; t < THREADS; t++) {
            results e = expected(kind, t);
            for (int i = 0; i < RESULTS && !(kind == 2 && t % 3 == 1); i++)
                if (all[t].v[i] != e.v[i] && failures++ < 20)
                    printf("kind %d, thread %d, value %d: %d, expected %d\n", kind, t, i,
                           all[t].v[i], e.v[i]);
        }
    }
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
