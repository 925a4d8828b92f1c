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
