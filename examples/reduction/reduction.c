/*
 * Sum of many numbers, timed with events: shared memory, shuffles, one atomic per block.
 *
 * Expect: "reduction: sum of N numbers = S, correct".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

int main(int argc, char **argv)
{
    long n = 4 << 20;
    long blocks = 256;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "n", 1, 1 << 28, &n) &&
            !ex_option(argv[i], "blocks", 1, 65535, &blocks)) {
            fprintf(stderr, "usage: %s [-n=ELEMENTS] [-blocks=BLOCKS]\n", argv[0]);
            return 2;
        }
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "reduce_sum");
    size_t size = (size_t)n * sizeof(float);
    float *in = malloc(size);
    if (!in)
        return 1;
    uint32_t seed = 1;
    double expected = 0;
    for (long i = 0; i < n; i++) {
        in[i] = ex_random(&seed);
        expected += in[i];
    }
    CUdeviceptr din, dout;
    CUstream stream;
    CUevent begin, end;
    EX_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EX_CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    EX_CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    EX_CHECK(cuMemAlloc(&din, size));
    EX_CHECK(cuMemAlloc(&dout, sizeof(float)));
    EX_CHECK(cuMemcpyHtoDAsync(din, in, size, stream));
    EX_CHECK(cuMemsetD32Async(dout, 0, 1, stream));

    int count = (int)n;
    void *params[] = { &din, &dout, &count };
    EX_CHECK(cuEventRecord(begin, stream));
    EX_CHECK(cuLaunchKernel(f, (unsigned)blocks, 1, 1, 256, 1, 1, 0, stream, params, NULL));
    EX_CHECK(cuEventRecord(end, stream));

    float sum, ms;
    EX_CHECK(cuMemcpyDtoHAsync(&sum, dout, sizeof(sum), stream));
    EX_CHECK(cuStreamSynchronize(stream));
    EX_CHECK(cuEventElapsedTime(&ms, begin, end));
    bool correct = fabs(sum - expected) <= 1e-5 * expected;
    printf("reduction: sum of %ld numbers = %.1f, %s\n", n, (double)sum,
           correct ? "correct" : "WRONG");
    printf("reduction: %.3f ms, %.2f GB/s\n", (double)ms, (double)size / 1e6 / (double)ms);

    EX_CHECK(cuMemFree(din));
    EX_CHECK(cuMemFree(dout));
    EX_CHECK(cuEventDestroy(begin));
    EX_CHECK(cuEventDestroy(end));
    EX_CHECK(cuStreamDestroy(stream));
    ex_close(&d);
    free(in);
    return correct ? 0 : 1;
}
