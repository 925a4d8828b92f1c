/*
 * Scans over the threads of a tile, or of a coalesced group.
 */
#ifndef GMUX_CUDA_COOPERATIVE_GROUPS_SCAN_H
#define GMUX_CUDA_COOPERATIVE_GROUPS_SCAN_H
#include "cooperative_groups.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
namespace cooperative_groups
{
namespace __v1
{
template <class Group, class T, class Op>
__device__ __inline__ T inclusive_scan(const Group &g, T v, Op op)
{
    for (unsigned d = 1; d < g.size(); d *= 2) {
        T before = g.shfl_up(v, d);
        if (g.thread_rank() >= d)
            v = op(before, v);
    }
    return v;
}

template <class Group, class T> __device__ __inline__ T inclusive_scan(const Group &g, T v)
{
    return inclusive_scan(g, v, plus<T>());
}

/* The first thread, which has nothing to add up, gets T(). */
template <class Group, class T, class Op>
__device__ __inline__ T exclusive_scan(const Group &g, T v, Op op)
{
    T before = g.shfl_up(inclusive_scan(g, v, op), 1);
    return g.thread_rank() ? before : T();
}

template <class Group, class T> __device__ __inline__ T exclusive_scan(const Group &g, T v)
{
    return exclusive_scan(g, v, plus<T>());
}
} // namespace __v1
} // namespace cooperative_groups

#endif
#endif
