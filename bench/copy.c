/*
 * Copies between host and device against memcpy, interleaved in one run. Prints per direction:
 * name, median GB/s of the driver's copy, median GB/s of memcpy between two buffers of the same
 * size. With -pinned the buffers are the driver's (cuMemAllocHost), else malloc's.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define ROUNDS 15

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, ROUNDS, sizeof(*v), by_value);
    return v[ROUNDS / 2];
}

static char *buffer(bool pinned, size_t size)
{
    void *p = NULL;
    if (pinned)
        EX_CHECK(cuMemAllocHost(&p, size));
    else
        p = malloc(size);
    return p;
}

static void release(bool pinned, char *p)
{
    if (pinned)
        EX_CHECK(cuMemFreeHost(p));
    else
        free(p);
}

int main(int argc, char **argv)
{
    long mib = 64;
    bool pinned = false;
    for (int i = 1; i < argc; i++)
        if (ex_flag(argv[i], "pinned"))
            pinned = true;
        else if (!ex_option(argv[i], "mib", 1, 4096, &mib))
            return 2;
    size_t size = (size_t)mib << 20;
    struct ex_device d = ex_open(0, ex_ptx);
    CUdeviceptr dev;
    char *a = buffer(pinned, size), *b = buffer(pinned, size);
    double to[ROUNDS], from[ROUNDS], plain[ROUNDS];

    if (!a || !b)
        return 1;
    memset(a, 1, size);
    memset(b, 2, size);
    EX_CHECK(cuMemAlloc(&dev, size));
    for (int r = -2; r < ROUNDS; r++) { /* two rounds to touch every page */
        double t0 = ex_seconds();
        EX_CHECK(cuMemcpyHtoD(dev, a, size));
        double t1 = ex_seconds();
        EX_CHECK(cuMemcpyDtoH(b, dev, size));
        double t2 = ex_seconds();
        memcpy(b, a, size);
        double t3 = ex_seconds();
        if (r < 0)
            continue;
        to[r] = (double)size / (t1 - t0) * 1e-9;
        from[r] = (double)size / (t2 - t1) * 1e-9;
        plain[r] = (double)size / (t3 - t2) * 1e-9;
    }
    double m = median(plain);
    printf("host_to_device %.3f %.3f\n", median(to), m);
    printf("device_to_host %.3f %.3f\n", median(from), m);
    EX_CHECK(cuMemFree(dev));
    release(pinned, a);
    release(pinned, b);
    ex_close(&d);
    return 0;
}
