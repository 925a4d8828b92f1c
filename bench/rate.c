/*
 * Launches of an empty kernel per second, sustained for some seconds with a synchronisation after
 * each thousand: several copies at once show what a device shared by processes takes in all.
 * Prints: name, launches per second.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

#define BATCH 1000

int main(int argc, char **argv)
{
    double wanted = argc > 1 ? atof(argv[1]) : 3;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "empty");
    CUstream s;
    long n = 0;
    EX_CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL)); /* the first one also loads */
    EX_CHECK(cuStreamSynchronize(s));
    ex_gate();
    double start = ex_seconds(), now = start;
    for (; now - start < wanted; now = ex_seconds()) {
        for (int i = 0; i < BATCH; i++, n++)
            EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
        EX_CHECK(cuStreamSynchronize(s));
    }
    printf("launches %.0f\n", (double)n / (now - start));
    EX_CHECK(cuStreamDestroy(s));
    ex_close(&d);
    return 0;
}
