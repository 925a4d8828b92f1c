/*
 * c = a + b. The smallest complete driver-API program.
 *
 * Expect: "vecadd: 1000000 elements, all correct".
 */
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

int main(int argc, char **argv)
{
    long n = 1000000;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "n", 1, 1 << 28, &n)) {
            fprintf(stderr, "usage: %s [-n=ELEMENTS]\n", argv[0]);
            return 2;
        }
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "vecadd");
    size_t size = (size_t)n * sizeof(float);
    float *a = malloc(size), *b = malloc(size), *c = malloc(size);
    if (!a || !b || !c)
        return 1;
    for (long i = 0; i < n; i++) {
        a[i] = (float)(i % 1000);
        b[i] = 0.5f * (float)(i % 77);
    }
    CUdeviceptr da, db, dc;
    EX_CHECK(cuMemAlloc(&da, size));
    EX_CHECK(cuMemAlloc(&db, size));
    EX_CHECK(cuMemAlloc(&dc, size));
    EX_CHECK(cuMemcpyHtoD(da, a, size));
    EX_CHECK(cuMemcpyHtoD(db, b, size));

    int count = (int)n;
    void *params[] = { &da, &db, &dc, &count };
    EX_CHECK(cuLaunchKernel(f, ((unsigned)n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    EX_CHECK(cuMemcpyDtoH(c, dc, size));

    long wrong = 0;
    for (long i = 0; i < n; i++)
        wrong += c[i] != a[i] + b[i];
    if (wrong)
        printf("vecadd: %ld of %ld elements WRONG\n", wrong, n);
    else
        printf("vecadd: %ld elements, all correct\n", n);
    EX_CHECK(cuMemFree(da));
    EX_CHECK(cuMemFree(db));
    EX_CHECK(cuMemFree(dc));
    ex_close(&d);
    free(a);
    free(b);
    free(c);
    return wrong ? 1 : 0;
}
