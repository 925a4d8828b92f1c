/*
 * Small kernels one after the other: each occupies 8 blocks of 128 threads for -us microseconds, and the program waits
 * for it before it launches the next, as a program does that uses a fraction of a GPU. Runs for -ms milliseconds or, with
 * -kernels, until so many are done. Prints: name, kernels per second, seconds.
 */
#include <cuda.h>
#include <stdio.h>

#include "example.h"

#define BLOCKS  8
#define THREADS 128

int main(int argc, char **argv)
{
    long us = 50, ms = 2000, kernels = 0, n = 0;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "us", 1, 60000000, &us) && !ex_option(argv[i], "ms", 1, 600000, &ms) &&
            !ex_option(argv[i], "kernels", 1, 1 << 30, &kernels))
            return 2;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "spin");
    CUstream s;
    unsigned long long ns = 1000ull * (unsigned long long)us;
    void *params[] = { &ns };

    EX_CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EX_CHECK(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL)); /* the first one also loads */
    EX_CHECK(cuStreamSynchronize(s));
    ex_gate();
    double start = ex_seconds(), now = start;
    while (kernels ? n < kernels : now - start < 1e-3 * (double)ms) {
        EX_CHECK(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
        EX_CHECK(cuStreamSynchronize(s));
        n++;
        now = ex_seconds();
    }
    printf("kernels %.1f %.4f\n", (double)n / (now - start), now - start);
    EX_CHECK(cuStreamDestroy(s));
    ex_close(&d);
    return 0;
}
