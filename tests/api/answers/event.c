/* Events: flags, times, and what may be asked when. */
#include "answers.h"

#include <stdatomic.h>

#include "../hold.h"

static atomic_int flag;

static void CUDA_CB hold(void *data)
{
    hold_wait(data, 1);
}

static void flags(void)
{
    CUevent e;
    CALL(cuEventCreate(&e, CU_EVENT_DEFAULT));
    CALL(cuEventCreate(&e, CU_EVENT_BLOCKING_SYNC));
    CALL(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CALL(cuEventCreate(&e, CU_EVENT_INTERPROCESS));
    CALL(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    CALL(cuEventCreate(&e, 0x40));
    CALL(cuEventCreate(NULL, 0));
    CALL(cuEventDestroy(e));
    CALL(cuEventDestroy(NULL));
}

static void times(void)
{
    CUevent a, b, untimed, never;
    CUstream s;
    float ms = -1;
    CALL(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CALL(cuEventCreate(&a, 0));
    CALL(cuEventCreate(&b, 0));
    CALL(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    CALL(cuEventCreate(&never, 0));
    CALL(cuEventQuery(a));
    CALL(cuEventSynchronize(a));
    CALL(cuEventElapsedTime(&ms, a, b));
    CALL(cuEventRecord(a, s));
    CALL(cuLaunchHostFunc(s, hold, &flag));
    CALL(cuEventRecord(b, s));
    CALL(cuEventRecord(untimed, s));
    CALL(cuEventQuery(b));
    CALL(cuEventElapsedTime(&ms, a, b));
    hold_set(&flag, 1);
    CALL(cuEventSynchronize(b));
    CALL(cuEventElapsedTime(&ms, a, b));
    NUM(ms >= 0);
    CALL(cuEventElapsedTime(&ms, b, a));
    NUM(ms <= 0);
    CALL(cuEventElapsedTime(&ms, a, a));
    NUM(ms == 0);
    CALL(cuEventElapsedTime(&ms, a, never));
    CALL(cuStreamSynchronize(s));
    CALL(cuEventElapsedTime(&ms, a, untimed));
    CALL(cuEventElapsedTime(NULL, a, b));
    CALL(cuEventElapsedTime(&ms, NULL, b));
}

static void recording(void)
{
    CUevent e;
    CUstream s;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuEventCreate(&e, 0));
    CALL(cuEventRecord(e, NULL));
    CALL(cuEventRecord(e, CU_STREAM_PER_THREAD));
    CALL(cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_DEFAULT));
    CALL(cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL));
    CALL(cuEventRecordWithFlags(e, s, 8));
    CALL(cuEventSynchronize(e));
    CALL(cuEventQuery(e));
    CALL(cuEventRecord(NULL, s));
    CALL(cuEventQuery(NULL));
    CALL(cuEventSynchronize(NULL));
    CALL(cuStreamDestroy(s));
    CALL(cuEventQuery(e));
    CALL(cuEventDestroy(e));
}

const struct answers_case answers_event[] = { CASE(flags), CASE(times), CASE(recording), END };
