/*
 * Tiled matrix product, checked on a sample of rows.
 *
 * Expect: "matmul: 512 x 512, correct" and a rate.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

#define TILE 32

static bool row_is_right(const float *a, const float *b, const float *c, long n, long row)
{
    for (long col = 0; col < n; col++) {
        double sum = 0;
        for (long k = 0; k < n; k++)
            sum += (double)a[row * n + k] * (double)b[k * n + col];
        if (fabs(sum - (double)c[row * n + col]) > 1e-4 * fabs(sum) + 1e-4)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    long n = 512;
    long repeat = 1;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "n", TILE, 16384, &n) &&
            !ex_option(argv[i], "repeat", 1, 1000000, &repeat)) {
            fprintf(stderr, "usage: %s [-n=SIZE] [-repeat=TIMES]\n", argv[0]);
            return 2;
        }
    n = n / TILE * TILE;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "matmul");
    size_t size = (size_t)n * (size_t)n * sizeof(float);
    float *a = malloc(size), *b = malloc(size), *c = malloc(size);
    if (!a || !b || !c)
        return 1;
    uint32_t seed = 7;
    for (long i = 0; i < n * n; i++) {
        a[i] = ex_random(&seed);
        b[i] = ex_random(&seed) - 0.5f;
    }
    CUdeviceptr da, db, dc;
    EX_CHECK(cuMemAlloc(&da, size));
    EX_CHECK(cuMemAlloc(&db, size));
    EX_CHECK(cuMemAlloc(&dc, size));
    EX_CHECK(cuMemcpyHtoD(da, a, size));
    EX_CHECK(cuMemcpyHtoD(db, b, size));

    int width = (int)n;
    unsigned tiles = (unsigned)(n / TILE);
    void *params[] = { &da, &db, &dc, &width };
    double t0 = ex_seconds();
    for (long r = 0; r < repeat; r++)
        EX_CHECK(cuLaunchKernel(f, tiles, tiles, 1, TILE, TILE, 1, 0, NULL, params, NULL));
    EX_CHECK(cuCtxSynchronize());
    double t = ex_seconds() - t0;
    EX_CHECK(cuMemcpyDtoH(c, dc, size));

    bool correct = true;
    for (long row = 0; row < n; row += n / 8)
        correct = correct && row_is_right(a, b, c, n, row);
    printf("matmul: %ld x %ld, %s\n", n, n, correct ? "correct" : "WRONG");
    printf("matmul: %.2f GFLOP/s\n", 2e-9 * (double)n * (double)n * (double)n * (double)repeat / t);
    EX_CHECK(cuMemFree(da));
    EX_CHECK(cuMemFree(db));
    EX_CHECK(cuMemFree(dc));
    ex_close(&d);
    free(a);
    free(b);
    free(c);
    return correct ? 0 : 1;
}
