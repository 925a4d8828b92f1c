/* Events: recording, asking, waiting, time. */
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static void life(void)
{
    CUevent e;
    OK(cuEventCreate(&e, CU_EVENT_DEFAULT));
    OK(cuEventQuery(e)); /* never recorded counts as done */
    OK(cuEventSynchronize(e));
    OK(cuEventRecord(e, NULL));
    OK(cuEventSynchronize(e));
    OK(cuEventQuery(e));
    OK(cuEventDestroy(e));
    IS(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuEventCreate(&e, 0x100), CUDA_ERROR_INVALID_VALUE);
    IS(cuEventRecord(NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuEventRecordWithFlags(NULL, NULL, 2), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamWaitEvent(NULL, NULL, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamWaitEvent(NULL, NULL, 2), CUDA_ERROR_INVALID_VALUE);
    if (!tap_genuine()) {
        IS(cuEventDestroy(e), CUDA_ERROR_INVALID_HANDLE);
        IS(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
    }
}

/* The default stream needs a context before the event is looked at. */
static void without_context(void)
{
    CUcontext before;
    OK(cuCtxPopCurrent(&before));
    IS(cuEventRecord(NULL, NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuEventQuery(NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxPushCurrent(before));
}

static void pending(void)
{
    CUevent e[2];
    CUstream s;
    _Atomic int go = 0;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e[0], CU_EVENT_DEFAULT));
    OK(cuEventCreate(&e[1], CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    OK(cuEventRecord(e[0], s));
    OK(cuEventRecord(e[1], s));
    IS(cuEventQuery(e[0]), CUDA_ERROR_NOT_READY);
    IS(cuEventQuery(e[1]), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuEventSynchronize(e[1]));
    OK(cuEventQuery(e[0]));
    OK(cuEventDestroy(e[0]));
    OK(cuEventDestroy(e[1]));
    OK(cuStreamDestroy(s));
}

/* More than there are places for times in what client and device share. */
#define MANY 70000
#define HELD 30000 /* which can wait in a stream */

static void at_once(void)
{
    static CUevent e[MANY];
    int r = CUDA_SUCCESS, wrong = 0;
    float ms, last = 0;
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < MANY; i++)
        r |= (int)cuEventCreate(&e[i], 0);
    for (int i = 0; i < MANY; i++)
        r |= (int)cuEventRecord(e[i], s);
    IS(r, CUDA_SUCCESS);
    OK(cuStreamSynchronize(s));
    for (int i = 0; i < MANY; i++) {
        r |= (int)cuEventElapsedTime(&ms, e[0], e[i]);
        wrong += ms < last;
        last = ms;
    }
    IS(r, CUDA_SUCCESS);
    IS(wrong, 0);
    OK(cuEventRecord(e[0], s)); /* one that had given its place to another one */
    OK(cuEventSynchronize(e[0]));
    OK(cuEventElapsedTime(&ms, e[MANY - 1], e[0]));
    TRUE(ms >= 0);
    OK(cuEventElapsedTime(&last, e[1], e[MANY - 1]));
    OK(cuEventElapsedTime(&ms, e[1], e[0]));
    TRUE(ms >= last);
    for (int i = 0; i < MANY; i++)
        r |= (int)cuEventDestroy(e[i]);
    IS(r, CUDA_SUCCESS);
    OK(cuStreamDestroy(s));
}

/* Events that are destroyed before they have happened keep their places until then. */
static void destroyed(void)
{
    _Atomic int go = tap_genuine(); /* which takes so many records only as they happen */
    int r = CUDA_SUCCESS;
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    for (int i = 0; i < MANY; i++) {
        CUevent e;
        if (i == HELD)
            hold_set(&go, 1);
        r |= (int)cuEventCreate(&e, 0);
        r |= (int)cuEventRecord(e, s);
        r |= (int)cuEventDestroy(e);
    }
    IS(r, CUDA_SUCCESS);
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
}

/* Each of several threads has events in its own stream, and their places change hands. */
#define THREADS 4
#define EACH    20000

static void *records(void *context)
{
    CUevent *e = calloc(EACH, sizeof(CUevent));
    long wrong = cuCtxSetCurrent(context);
    float ms, last = 0;
    CUstream s;
    wrong += cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < EACH; i++) {
        wrong += cuEventCreate(&e[i], 0);
        wrong += cuEventRecord(e[i], s);
    }
    for (int i = 0; i < EACH; i++)
        wrong += cuEventRecord(e[i], s); /* the second time counts */
    wrong += cuStreamSynchronize(s);
    for (int i = 0; i < EACH; i++) {
        wrong += cuEventElapsedTime(&ms, e[0], e[i]);
        wrong += ms < last;
        last = ms;
    }
    for (int i = 0; i < EACH; i++)
        wrong += cuEventDestroy(e[i]);
    wrong += cuStreamDestroy(s);
    free(e);
    return (void *)wrong;
}

static void by_threads(void)
{
    pthread_t threads[THREADS];
    CUcontext context;
    void *wrong;
    OK(cuCtxGetCurrent(&context));
    for (int i = 0; i < THREADS; i++)
        EQ(pthread_create(&threads[i], NULL, records, context), 0);
    for (int i = 0; i < THREADS; i++) {
        EQ(pthread_join(threads[i], &wrong), 0);
        TRUE(wrong == NULL);
    }
}

static void elapsed(void)
{
    CUevent a, b, untimed, fresh;
    CUstream s;
    float ms = -1;
    _Atomic int go = 0;
    struct timespec nap = { .tv_nsec = 5000000 };
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventCreate(&fresh, 0));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventRecord(untimed, s));
    OK(cuEventRecord(a, s));
    OK(cuEventSynchronize(a));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    OK(cuEventRecord(b, s));
    IS(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
    nanosleep(&nap, NULL); /* what is measured */
    hold_set(&go, 1);
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    TRUE(ms >= 4.9f && ms < 5000);
    OK(cuEventElapsedTime(&ms, b, a));
    TRUE(ms < 0);
    IS(cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
    IS(cuEventElapsedTime(&ms, a, fresh), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy(a));
    OK(cuEventDestroy(b));
    OK(cuEventDestroy(untimed));
    OK(cuEventDestroy(fresh));
    OK(cuStreamDestroy(s));
}

/* More than there are slots for times, created and destroyed. */
static void many(void)
{
    for (int i = 0; i < 70000; i++) {
        CUevent e;
        OK(cuEventCreate(&e, 0));
        if (i % 100 == 0)
            OK(cuEventRecord(e, NULL));
        OK(cuEventDestroy(e));
    }
    OK(cuCtxSynchronize());
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(life),       TEST(without_context),
                                             TEST(pending),    TEST(elapsed),
                                             TEST(at_once),    TEST(destroyed),
                                             TEST(by_threads), TEST(many) };
    return tap_main(tests, COUNT(tests));
}
