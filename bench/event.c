/*
 * When events are seen. A kernel stores a number into host memory as its last act; an event is
 * recorded behind it, and a longer kernel stands behind that. One thread looks for the number,
 * another one waits for the event. Prints: late, the median of how much later the event was seen
 * than the number, and the worst, for kernels of 2 and 15 ms in turn; late_timed, for events with
 * timing; late_long, for kernels of 40 ms; then elapsed, the median time between two events around
 * a kernel of 100 us; then first, when the first of two events behind kernels of 150 ms each was
 * seen. Microseconds, milliseconds at last.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

#define ROUNDS 60

static _Atomic unsigned long long *word;
static double stored; /* when the number was seen */
static CUfunction spin, spin_store;
static CUstream s;

static void launch(double ms)
{
    unsigned long long ns = (unsigned long long)(1e6 * ms);
    void *params[] = { &ns };
    EX_CHECK(cuLaunchKernel(spin, 8, 1, 1, 128, 1, 1, 0, s, params, NULL));
}

static void launch_store(double ms, CUdeviceptr at, unsigned long long number)
{
    unsigned long long ns = (unsigned long long)(1e6 * ms);
    void *params[] = { &ns, &at, &number };
    EX_CHECK(cuLaunchKernel(spin_store, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

static void *look(void *number)
{
    while (atomic_load(word) != *(unsigned long long *)number)
        ;
    stored = ex_seconds();
    return NULL;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void lateness(CUdeviceptr at, unsigned flags, double odd_ms, double even_ms,
                     const char *name)
{
    double late[ROUNDS];
    CUevent e;
    EX_CHECK(cuEventCreate(&e, flags));
    for (unsigned long long i = 0; i < ROUNDS; i++) {
        unsigned long long number = atomic_load(word) + 1;
        pthread_t thread;
        launch_store(i % 2 ? odd_ms : even_ms, at, number);
        EX_CHECK(cuEventRecord(e, s));
        launch(20);
        if (pthread_create(&thread, NULL, look, &number) != 0)
            exit(1);
        EX_CHECK(cuEventSynchronize(e));
        double now = ex_seconds();
        pthread_join(thread, NULL);
        late[i] = 1e6 * (now - stored);
        EX_CHECK(cuStreamSynchronize(s));
    }
    qsort(late, ROUNDS, sizeof(*late), compare);
    printf("%s %.2f %.2f\n", name, late[ROUNDS / 2], late[ROUNDS - 1]);
    EX_CHECK(cuEventDestroy(e));
}

static void elapsed(void)
{
    double us[ROUNDS];
    CUevent e[2];
    EX_CHECK(cuEventCreate(&e[0], 0));
    EX_CHECK(cuEventCreate(&e[1], 0));
    for (int i = 0; i < ROUNDS; i++) {
        float ms;
        EX_CHECK(cuEventRecord(e[0], s));
        launch(0.1);
        EX_CHECK(cuEventRecord(e[1], s));
        EX_CHECK(cuEventSynchronize(e[1]));
        EX_CHECK(cuEventElapsedTime(&ms, e[0], e[1]));
        us[i] = 1e3 * (double)ms;
    }
    qsort(us, ROUNDS, sizeof(*us), compare);
    printf("elapsed %.2f\n", us[ROUNDS / 2]);
    EX_CHECK(cuEventDestroy(e[0]));
    EX_CHECK(cuEventDestroy(e[1]));
}

static void first_of_two(void)
{
    CUevent e[2];
    double begin = ex_seconds();
    for (int i = 0; i < 2; i++) {
        EX_CHECK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
        launch(150);
        EX_CHECK(cuEventRecord(e[i], s));
    }
    EX_CHECK(cuEventSynchronize(e[0]));
    printf("first %.2f\n", 1e3 * (ex_seconds() - begin));
    EX_CHECK(cuStreamSynchronize(s));
    EX_CHECK(cuEventDestroy(e[0]));
    EX_CHECK(cuEventDestroy(e[1]));
}

int main(void)
{
    struct ex_device d = ex_open(0, ex_ptx);
    CUdeviceptr at;
    void *memory;
    spin = ex_function(&d, "spin");
    spin_store = ex_function(&d, "spin_store");
    EX_CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EX_CHECK(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    EX_CHECK(cuMemHostGetDevicePointer(&at, memory, 0));
    word = memory;
    atomic_store(word, 0);
    launch(0.1);
    launch_store(0, at, 1);
    EX_CHECK(cuStreamSynchronize(s));
    lateness(at, CU_EVENT_DISABLE_TIMING, 2, 15, "late");
    lateness(at, CU_EVENT_DEFAULT, 2, 15, "late_timed");
    lateness(at, CU_EVENT_DISABLE_TIMING, 40, 40, "late_long");
    elapsed();
    first_of_two();
    EX_CHECK(cuMemFreeHost(memory));
    EX_CHECK(cuStreamDestroy(s));
    ex_close(&d);
    return 0;
}
