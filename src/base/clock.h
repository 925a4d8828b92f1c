/*
 * Time. One clock for durations and deadlines (CLOCK_MONOTONIC, nanoseconds since boot; the same in
 * every process of the machine, also across PID and user namespaces), and the CPU's pause hint for
 * spin loops.
 */
#ifndef GMUX_BASE_CLOCK_H
#define GMUX_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GM_NS_PER_US 1000ULL
#define GM_NS_PER_MS 1000000ULL
#define GM_NS_PER_S  1000000000ULL

static inline uint64_t gm_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* CPU time that the calling thread has used. */
static inline uint64_t gm_thread_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* A counter of the processor's that goes on at a constant rate; elsewhere nanoseconds. */
static inline uint64_t gm_cycles(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#else
    return gm_now_ns();
#endif
}

static inline void gm_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
