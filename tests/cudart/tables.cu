/*
 * Functions that read a table, beside constants of the program's own that are no multiple of 16
 * bytes: where the tables lie makes no difference.
 */
#include <cuda_runtime.h>

#include <math.h>

#include "check.h"

__constant__ char odd[3] = { 1, 2, 3 };

__global__ void large(const double *x, double *out)
{
    int k = (int)threadIdx.x;
    out[3 * k] = sin(x[k]) + odd[k % 3];
    out[3 * k + 1] = cos(x[k]) + odd[k % 3];
    out[3 * k + 2] = tan(x[k]) + odd[k % 3];
}

int main()
{
    const double values[] = { 1e300, -1e22, 0x1p1023, 1e17, 3e9, -1e100, 0x1p60, 7e200 };
    enum { COUNT = sizeof(values) / sizeof(*values) };
    double *x, *out;
    OK(cudaMallocManaged(&x, sizeof(values)));
    OK(cudaMallocManaged(&out, 3 * sizeof(values)));
    for (int k = 0; k < COUNT; k++)
        x[k] = values[k];
    large<<<1, COUNT>>>(x, out);
    OK(cudaDeviceSynchronize());
    for (int k = 0; k < COUNT && !failures; k++) {
        const double expected[] = { sin(values[k]), cos(values[k]), tan(values[k]) };
        for (int f = 0; f < 3; f++)
            CHECK(fabs(out[3 * k + f] - (k % 3 + 1) - expected[f]) < 1e-13 * (1 + fabs(expected[f])));
    }
    OK(cudaFree(x));
    OK(cudaFree(out));
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
