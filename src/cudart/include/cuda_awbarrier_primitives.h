/*
 * Barriers in shared memory where a thread arrives first and waits later: words that count the
 * arrivals of a phase. From sm_80 on.
 */
#ifndef GMUX_CUDA_AWBARRIER_PRIMITIVES_H
#define GMUX_CUDA_AWBARRIER_PRIMITIVES_H
#include "cuda_runtime.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
typedef unsigned long long __mbarrier_t __attribute__((aligned(8)));
typedef unsigned long long __mbarrier_token_t; /* the barrier's state at an arrival */

static __device__ __inline__ unsigned gmux_shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ __inline__ unsigned __mbarrier_maximum_count(void)
{
    return (1u << 20) - 1;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
static __device__ __inline__ void __mbarrier_init(__mbarrier_t *barrier, unsigned expected)
{
#ifdef __CUDA_ARCH__
    __asm__ volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(gmux_shared_address(barrier)),
                     "r"(expected)
                     : "memory");
#endif
}

static __device__ __inline__ void __mbarrier_inval(__mbarrier_t *barrier)
{
#ifdef __CUDA_ARCH__
    __asm__ volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(gmux_shared_address(barrier))
                     : "memory");
#endif
}

static __device__ __inline__ __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *barrier)
{
    __mbarrier_token_t token = 0;
#ifdef __CUDA_ARCH__
    __asm__ volatile("mbarrier.arrive.shared.b64 %0, [%1];"
                     : "=l"(token)
                     : "r"(gmux_shared_address(barrier))
                     : "memory");
#endif
    return token;
}

/* Arrives, and is no longer expected in later phases. */
static __device__ __inline__ __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t *barrier)
{
    __mbarrier_token_t token = 0;
#ifdef __CUDA_ARCH__
    __asm__ volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];"
                     : "=l"(token)
                     : "r"(gmux_shared_address(barrier))
                     : "memory");
#endif
    return token;
}

/* Whether the phase of the token is over. */
static __device__ __inline__ bool __mbarrier_test_wait(__mbarrier_t *barrier,
                                                       __mbarrier_token_t token)
{
    unsigned over = 0;
#ifdef __CUDA_ARCH__
    __asm__ volatile(
        "{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(gmux_shared_address(barrier)), "l"(token)
        : "memory");
#endif
    return over != 0;
}

/* Whether the phase of that parity is over. */
static __device__ __inline__ bool __mbarrier_test_wait_parity(__mbarrier_t *barrier, bool parity)
{
    unsigned over = 0;
#ifdef __CUDA_ARCH__
    __asm__ volatile(
        "{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(gmux_shared_address(barrier)), "r"((unsigned)parity)
        : "memory");
#endif
    return over != 0;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/* Waits for the end of that phase, at most about so many nanoseconds. */
static __device__ __inline__ bool
__mbarrier_try_wait(__mbarrier_t *barrier, __mbarrier_token_t token, unsigned max_sleep_ns)
{
    unsigned over = 0;
#ifdef __CUDA_ARCH__
    __asm__ volatile(
        "{.reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(gmux_shared_address(barrier)), "l"(token), "r"(max_sleep_ns)
        : "memory");
#endif
    return over != 0;
}
static __device__ __inline__ bool __mbarrier_try_wait_parity(__mbarrier_t *barrier, bool parity,
                                                             unsigned max_sleep_ns)
{
    unsigned over = 0;
#ifdef __CUDA_ARCH__
    __asm__ volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(gmux_shared_address(barrier)), "r"((unsigned)parity), "r"(max_sleep_ns)
        : "memory");
#endif
    return over != 0;
}
#endif

/* How many arrivals were still missing at the token's arrival. */
static __device__ __inline__ unsigned __mbarrier_token_pending_count(__mbarrier_token_t token)
{
    unsigned count = 0;
#ifdef __CUDA_ARCH__
    __asm__("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(token));
#endif
    return count;
}
#endif

#endif
#endif
