/*
 * A program whose kernel writes where it may not: the fault that its neighbours are to survive.
 * Prints the error that it got; status 0 if there was one.
 */
#include <cuda.h>
#include <stdio.h>

#include "example.h"

int main(void)
{
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "wild");
    unsigned long long where = 4096;
    void *params[] = { &where };
    const char *name = "nothing";

    EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CUresult r = cuCtxSynchronize();
    cuGetErrorName(r, &name);
    printf("fault %s\n", name);
    return r == CUDA_SUCCESS;
}
