/*
 * A program that always has work for the device, ten milliseconds or so at a time: for each line of
 * its input it prints how many kernels are done so far, so that what several of them get can be
 * compared over the same time. The device itself counts: the program may not have a processor at
 * that moment.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

#define SIDE       512
#define ITERATIONS 400
#define AHEAD      64 /* so that it also has work while others have its processor */

static _Atomic uint32_t *done; /* the device writes it */

static void *answer(void *arg)
{
    (void)arg;
    while (getchar() != EOF) {
        printf("%u\n", (unsigned)atomic_load(done));
        fflush(stdout);
    }
    _Exit(0);
}

int main(void)
{
    int side = SIDE, limit = ITERATIONS;
    float zero = 0; /* of all points, which never leave the loop: all blocks take the same time */
    CUdeviceptr image, counter;
    void *host;
    CUevent ends[AHEAD];
    pthread_t thread;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "mandelbrot");
    EX_CHECK(cuMemAlloc(&image, (size_t)SIDE * SIDE * 4));
    EX_CHECK(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    EX_CHECK(cuMemHostGetDevicePointer(&counter, host, 0));
    done = host;
    for (int i = 0; i < AHEAD; i++)
        EX_CHECK(cuEventCreate(&ends[i], CU_EVENT_DISABLE_TIMING));
    EX_CHECK(cuCtxSynchronize());
    printf("ready\n");
    fflush(stdout);
    if (pthread_create(&thread, NULL, answer, NULL) != 0)
        return 1;
    void *params[] = { &image, &side, &side, &zero, &zero, &zero, &zero, &limit };
    for (uint32_t i = 0;; i++) {
        if (i >= AHEAD)
            EX_CHECK(cuEventSynchronize(ends[i % AHEAD]));
        EX_CHECK(cuLaunchKernel(f, SIDE / 16, SIDE / 16, 1, 16, 16, 1, 0, NULL, params, NULL));
        EX_CHECK(cuStreamWriteValue32(NULL, counter, i + 1, 0));
        EX_CHECK(cuEventRecord(ends[i % AHEAD], NULL));
    }
}
