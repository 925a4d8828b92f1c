/*
 * Copies that a group makes together: memcpy_async() and the wait for it. A copy is complete when
 * memcpy_async() returns, which is allowed for a copy that may be asynchronous. Sizes are in bytes.
 */
#ifndef GMUX_CUDA_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define GMUX_CUDA_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#include "cooperative_groups.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
namespace cooperative_groups
{
namespace __v1
{
template <class Group, class T>
__device__ __inline__ void memcpy_async(const Group &g, T *to, const T *from, size_t size)
{
    for (size_t i = g.thread_rank(); i < size; i += g.size())
        ((char *)to)[i] = ((const char *)from)[i];
}

/* With two layouts these count elements, of which as many are copied as both have. */
template <class Group, class T, class To, class From>
__device__ __inline__ void memcpy_async(const Group &g, T *to, const To &room, const T *from,
                                        const From &count)
{
    const size_t n = (size_t)room < (size_t)count ? (size_t)room : (size_t)count;
    memcpy_async(g, to, from, n * sizeof(T));
}

template <class Group> __device__ __inline__ void wait(const Group &g)
{
    g.sync();
}

template <unsigned Stages, class Group> __device__ __inline__ void wait_prior(const Group &g)
{
    g.sync();
}
} // namespace __v1
} // namespace cooperative_groups

#endif
#endif
