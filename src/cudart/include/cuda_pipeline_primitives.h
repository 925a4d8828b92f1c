/*
 * Copies from global to shared memory that a thread does not wait for at once. They are begun,
 * closed as a batch, and waited for by saying how many batches may still be running. Below sm_80,
 * which has no such copies, a copy is complete when its function returns.
 */
#ifndef GMUX_CUDA_PIPELINE_PRIMITIVES_H
#define GMUX_CUDA_PIPELINE_PRIMITIVES_H
#include "cuda_awbarrier_primitives.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
/* Copies `size` bytes, 4, 8 or 16, of which the last `zeros` are not read but set to 0. */
static __device__ __inline__ void __pipeline_memcpy_async(void *to, const void *from, size_t size,
                                                          size_t zeros = 0)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned at = gmux_shared_address(to), given = (unsigned)(size - zeros);
    if (size == 16)
        __asm__ volatile("{.reg .b64 g; cvta.to.global.u64 g, %1; cp.async.cg.shared.global [%0], "
                         "[g], 16, %2;}" ::"r"(at),
                         "l"(from), "r"(given)
                         : "memory");
    else if (size == 8)
        __asm__ volatile("{.reg .b64 g; cvta.to.global.u64 g, %1; cp.async.ca.shared.global [%0], "
                         "[g], 8, %2;}" ::"r"(at),
                         "l"(from), "r"(given)
                         : "memory");
    else
        __asm__ volatile("{.reg .b64 g; cvta.to.global.u64 g, %1; cp.async.ca.shared.global [%0], "
                         "[g], 4, %2;}" ::"r"(at),
                         "l"(from), "r"(given)
                         : "memory");
#else
    for (size_t i = 0; i < size; i++)
        ((char *)to)[i] = i < size - zeros ? ((const char *)from)[i] : 0;
#endif
}

static __device__ __inline__ void __pipeline_commit(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    __asm__ volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most `batches` batches of this thread are running; more than 8 count as 8. */
static __device__ __inline__ void __pipeline_wait_prior(size_t batches)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define GMUX_WAIT(n)                                                                               \
    case n:                                                                                        \
        __asm__ volatile("cp.async.wait_group " #n ";" ::: "memory");                              \
        break
    switch (batches) {
        GMUX_WAIT(0);
        GMUX_WAIT(1);
        GMUX_WAIT(2);
        GMUX_WAIT(3);
        GMUX_WAIT(4);
        GMUX_WAIT(5);
        GMUX_WAIT(6);
        GMUX_WAIT(7);
    default:
        __asm__ volatile("cp.async.wait_group 8;" ::: "memory");
    }
#undef GMUX_WAIT
#endif
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* When this thread's copies so far are complete, that counts as one arrival at the barrier, and the
 * barrier expects one more. */
static __device__ __inline__ void __pipeline_arrive_on(__mbarrier_t *barrier)
{
#ifdef __CUDA_ARCH__
    __asm__ volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(gmux_shared_address(barrier))
                     : "memory");
#endif
}
#endif

#endif
#endif
