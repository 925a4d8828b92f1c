/*
 * From the start of a process to the end of its first kernel, in milliseconds. The start comes from
 * the caller, who passes CLOCK_MONOTONIC seconds just before it starts this program.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s SECONDS\n", argv[0]);
        return 2;
    }
    double start = strtod(argv[1], NULL);
    int n = 4096;
    CUdeviceptr a, b, c;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "vecadd");

    EX_CHECK(cuMemAlloc(&a, (size_t)n * 4));
    EX_CHECK(cuMemAlloc(&b, (size_t)n * 4));
    EX_CHECK(cuMemAlloc(&c, (size_t)n * 4));
    EX_CHECK(cuMemsetD32(a, 0x3f800000, (size_t)n));
    EX_CHECK(cuMemsetD32(b, 0x40000000, (size_t)n));
    void *params[] = { &a, &b, &c, &n };
    EX_CHECK(cuLaunchKernel(f, 16, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    EX_CHECK(cuCtxSynchronize());
    double end = ex_seconds();
    float last = 0;
    EX_CHECK(cuMemcpyDtoH(&last, c + (size_t)(n - 1) * 4, sizeof(last)));
    if (last != 3.0f) {
        fprintf(stderr, "wrong result: %f\n", (double)last);
        return 1;
    }
    printf("%.3f\n", 1e3 * (end - start));
    return 0;
}
