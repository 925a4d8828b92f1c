/*
 * What one launch costs: the client's side alone (enqueue) and with waiting for it (launch +
 * synchronise). Driver API only, so that the same program measures gmux, NVIDIA's MPS and the
 * driver alone. Prints one line per measure: name, median, 99th percentile in nanoseconds, median
 * in cycles of the time-stamp counter (0 where there is none).
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define ROUNDS 20000
#define BATCH  64 /* launches between two synchronisations: fewer than any queue holds */

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    unsigned lo, hi;
    __asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi));
    return (uint64_t)hi << 32 | lo;
#else
    return 0;
#endif
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double *ns, double *cycles, size_t n)
{
    qsort(ns, n, sizeof(*ns), by_value);
    qsort(cycles, n, sizeof(*cycles), by_value);
    printf("%s %.1f %.1f %.0f\n", name, ns[n / 2], ns[n * 99 / 100], cycles[n / 2]);
}

int main(void)
{
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "empty");
    CUstream stream;
    static double ns[ROUNDS], cycles[ROUNDS];
    void *no_params[] = { NULL };

    EX_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 1000; i++)
        EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, no_params, NULL));
    EX_CHECK(cuStreamSynchronize(stream));

    /* Reading the clock costs as much as a launch: time batches, divide. */
    size_t n = 0;
    for (int r = 0; r < ROUNDS / BATCH; r++) {
        double t0 = ex_seconds();
        uint64_t c0 = ticks();
        for (int i = 0; i < BATCH; i++)
            EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, no_params, NULL));
        uint64_t c1 = ticks();
        double t1 = ex_seconds();
        ns[n] = 1e9 * (t1 - t0) / BATCH;
        cycles[n++] = (double)(c1 - c0) / BATCH;
        EX_CHECK(cuStreamSynchronize(stream));
    }
    report("enqueue", ns, cycles, n);

    for (n = 0; n < ROUNDS; n++) {
        double t0 = ex_seconds();
        uint64_t c0 = ticks();
        EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, no_params, NULL));
        EX_CHECK(cuStreamSynchronize(stream));
        cycles[n] = (double)(ticks() - c0);
        ns[n] = 1e9 * (ex_seconds() - t0);
    }
    report("launch_sync", ns, cycles, n);
    EX_CHECK(cuStreamDestroy(stream));
    ex_close(&d);
    return 0;
}
