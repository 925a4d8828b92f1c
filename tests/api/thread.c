/* Many threads at once, each with work of its own, all in one context. */
#include "tap.h"

#include <pthread.h>
#include <string.h>

#define THREADS 8
#define ROUNDS  200

static CUcontext context;
static CUfunction add_to;

/* NULL, or what went wrong. */
static void *work(void *arg)
{
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    uint32_t by = 1 + (uint32_t)(uintptr_t)arg, sum = 0;
    void *params[] = { &p, &by };
    const char *wrong = NULL;
    if (cuCtxSetCurrent(context) || cuMemAlloc(&p, 256) ||
        cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuEventCreate(&e, 0) ||
        cuMemsetD8Async(p, 0, 256, s))
        return (void *)(uintptr_t) "setting up";
    for (int i = 0; i < ROUNDS && !wrong; i++) {
        for (int k = 0; k < 10 && !wrong; k++)
            if (cuLaunchKernel(add_to, 1, 1, 1, 1, 1, 1, 0, s, params, NULL))
                wrong = "launch";
        if (cuEventRecord(e, s) || cuEventSynchronize(e))
            wrong = "event";
        CUdeviceptr q;
        if (i % 20 == 0 && (cuMemAlloc(&q, 1000 + (size_t)i) || cuMemFree(q)))
            wrong = "alloc";
    }
    if (cuMemcpyDtoHAsync(&sum, p, 4, s) || cuStreamSynchronize(s))
        wrong = "copy";
    if (!wrong && tap_computes() && sum != by * 10 * ROUNDS)
        wrong = "sum";
    if (cuEventDestroy(e) || cuStreamDestroy(s) || cuMemFree(p))
        wrong = "tearing down";
    return (void *)(uintptr_t)wrong;
}

static void at_once(void)
{
    pthread_t t[THREADS];
    void *wrong;
    add_to = tap_function("add_to");
    OK(cuCtxGetCurrent(&context));
    for (uintptr_t i = 0; i < THREADS; i++)
        EQ(pthread_create(&t[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        EQ(pthread_join(t[i], &wrong), 0);
        if (wrong)
            tap_fail(__FILE__, __LINE__, "thread %d: %s", i, (const char *)wrong);
    }
    OK(cuCtxSynchronize());
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(at_once) };
    return tap_main(tests, COUNT(tests));
}
