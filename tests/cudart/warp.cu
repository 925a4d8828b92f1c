/*
 * What the lanes of a warp do together, for all lanes and for some: sums, minima, votes, matches and
 * exchanges, each against the same computed on the host.
 */
#include <cstdio>

#include "check.h"

enum { ADD, MIN, MAX, UMIN, UMAX, AND, OR, XOR, ANY, ALL, BALLOT, MATCH, SHFL, UP, DOWN, SWAP, COUNT };

static __host__ __device__ int value(int lane)
{
    return (int)((unsigned)(lane / 3) * 2654435761u);
}

__global__ void warp(unsigned mask, int (*out)[32])
{
    int lane = (int)threadIdx.x, v = value(lane);
    if (!(mask >> lane & 1))
        return;
    out[ADD][lane] = (int)__reduce_add_sync(mask, (unsigned)v);
    out[MIN][lane] = __reduce_min_sync(mask, v);
    out[MAX][lane] = __reduce_max_sync(mask, v);
    out[UMIN][lane] = (int)__reduce_min_sync(mask, (unsigned)v);
    out[UMAX][lane] = (int)__reduce_max_sync(mask, (unsigned)v);
    out[AND][lane] = (int)__reduce_and_sync(mask, (unsigned)v | 0xf);
    out[OR][lane] = (int)__reduce_or_sync(mask, (unsigned)v & 0xffff);
    out[XOR][lane] = (int)__reduce_xor_sync(mask, (unsigned)v);
    out[ANY][lane] = __any_sync(mask, v < 0);
    out[ALL][lane] = __all_sync(mask, lane < 32);
    out[BALLOT][lane] = (int)__ballot_sync(mask, v < 0);
    out[MATCH][lane] = (int)__match_any_sync(mask, v);
    out[SHFL][lane] = __shfl_sync(mask, v, 31 - __clz((int)mask));
    out[UP][lane] = __shfl_up_sync(mask, v, 4, 8);
    out[DOWN][lane] = __shfl_down_sync(mask, v, 4, 8);
    out[SWAP][lane] = __shfl_xor_sync(mask, v, 1);
}

/* As programs before CUDA 9 have it: without a mask. */
__global__ void maskless(unsigned mask, int (*out)[32])
{
    int lane = (int)threadIdx.x, v = value(lane);
    if (!(mask >> lane & 1))
        return;
    out[ANY][lane] = __any(v < 0);
    out[ALL][lane] = __all(lane < 32);
    out[BALLOT][lane] = (int)__ballot(v < 0);
    out[SHFL][lane] = (int)__shfl((double)v, 31 - __clz((int)mask));
    out[UP][lane] = __shfl_up(v, 4, 8);
    out[DOWN][lane] = (int)__shfl_down((long long)v, 4, 8);
    out[SWAP][lane] = (int)__shfl_xor((unsigned)v, 1);
}

static void compare(unsigned mask, const int (*out)[32])
{
    int sum = 0, least = 0x7fffffff, most = -0x7fffffff - 1, last = 0;
    unsigned uleast = ~0u, umost = 0, all = ~0u, some = 0, odd = 0, negative = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) {
            int v = value(i);
            unsigned u = (unsigned)v;
            sum = (int)((unsigned)sum + u);
            least = v < least ? v : least;
            most = v > most ? v : most;
            uleast = u < uleast ? u : uleast;
            umost = u > umost ? u : umost;
            all &= u | 0xf;
            some |= u & 0xffff;
            odd ^= u;
            negative |= (unsigned)(v < 0) << i;
            last = i;
        }
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        unsigned same = 0;
        for (int k = 0; k < 32; k++)
            same |= (mask >> k & 1u & (unsigned)(value(k) == value(i))) << k;
        CHECK(out[ADD][i] == sum && out[MIN][i] == least && out[MAX][i] == most);
        CHECK(out[UMIN][i] == (int)uleast && out[UMAX][i] == (int)umost);
        CHECK(out[AND][i] == (int)all && out[OR][i] == (int)some && out[XOR][i] == (int)odd);
        CHECK(!out[ANY][i] == !negative && out[ALL][i] && out[BALLOT][i] == (int)negative);
        CHECK(out[MATCH][i] == (int)same && out[SHFL][i] == value(last));
        if (mask == ~0u) { /* of a lane that does not take part the result is not defined */
            CHECK(out[UP][i] == value(i % 8 >= 4 ? i - 4 : i));
            CHECK(out[DOWN][i] == value(i % 8 < 4 ? i + 4 : i));
            CHECK(out[SWAP][i] == value(i ^ 1));
        }
    }
}

int main()
{
    int(*out)[32];
    OK(cudaMallocManaged(&out, sizeof(int) * COUNT * 32));
    for (unsigned mask : { ~0u, 1u, 0xfffffffeu, 0x0f0f1234u }) {
        warp<<<1, 32>>>(mask, out);
        OK(cudaDeviceSynchronize());
        compare(mask, out);
        for (int what : { ANY, ALL, BALLOT, SHFL, UP, DOWN, SWAP })
            OK(cudaMemset(out[what], 0xa5, sizeof(out[what])));
        maskless<<<1, 32>>>(mask, out);
        OK(cudaDeviceSynchronize());
        compare(mask, out);
    }
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
