/*
 * The API tests' harness: plain programs that speak TAP and link with libcuda and nothing else, so
 * that the same binary runs against the genuine driver (LD_LIBRARY_PATH decides), against gmux with
 * a private server, and under a daemon. A test is a function; the first failed check ends it. Names
 * of checks are those of the calls.
 */
#ifndef GMUX_TESTS_API_TAP_H
#define GMUX_TESTS_API_TAP_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hold.h"

struct tap_test {
    const char *name;
    void (*run)(void);
};

/* Runs them in order, each with the primary context of device 0 current; the exit status. */
int tap_main(const struct tap_test *tests, size_t count);
/* Runs the tests without a cuInit before. */
int tap_main_bare(const struct tap_test *tests, size_t count);

/* Ends the test as failed. */
_Noreturn void tap_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends the test as not for this device. */
_Noreturn void tap_skip(const char *why);
void tap_check_result(const char *file, int line, const char *call, CUresult got, CUresult want);

#define OK(call)       tap_check_result(__FILE__, __LINE__, #call, (call), CUDA_SUCCESS)
#define IS(call, want) tap_check_result(__FILE__, __LINE__, #call, (call), (want))
#define TRUE(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            tap_fail(__FILE__, __LINE__, "not so: %s", #cond);                                     \
    } while (0)
#define EQ(a, b)                                                                                   \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_)                                                                              \
            tap_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #a, a_, b_);                      \
    } while (0)
#define TEST(function)                                                                             \
    {                                                                                              \
#function, function                                                                        \
    }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* False on the null device, which accepts kernels and runs none. */
bool tap_computes(void);
/* True if the device is a GPU, whose driver compiles and runs kernels. */
bool tap_gpu(void);

/* True if it is NVIDIA's library that answers. */
bool tap_genuine(void);

/* True if the library is gmux, on whatever device. */
bool tap_ours(void);

/* False under a daemon, where other clients' allocations show in what is free, unless TAP_ALONE
 * says that there are none. */
bool tap_alone(void);

/* kernels.ptx; loaded once, in the context current at the first use. */
extern const char tap_ptx[];
/* where(seen, ns): each block's threads count themselves in the word of the multiprocessor they run
 * on, and stay there for so long. For devices whose multiprocessors have numbers. */
extern const char tap_where_ptx[];
CUmodule tap_module(void);
CUfunction tap_function(const char *name);
/* The byte at an address of the device. */
unsigned tap_byte(CUdeviceptr pointer);
/* A host function that a test can hold back: it returns when the flag, an _Atomic int, is 1, or
 * after ten seconds. hold_set() sets it. */
void CUDA_CB tap_hold(void *flag);

#endif
