/* Events of a whole context, and contexts that are counted. */
#include "tap.h"

#include <stdatomic.h>

static CUcontext context(void)
{
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    return c;
}

/* The event is reached when all streams have got there, and does not wait for what comes after. */
static void record(void)
{
    CUstream a, b;
    CUevent e;
    CUdeviceptr p;
    _Atomic int go = 0, later = 0;
    uint32_t words[2] = { 0 };
    OK(cuMemAlloc(&p, 8));
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD32Async(p, 1, 1, a));
    OK(cuLaunchHostFunc(b, tap_hold, &go));
    OK(cuMemsetD32Async(p + 4, 2, 1, b));
    OK(cuCtxRecordEvent(context(), e));
    OK(cuLaunchHostFunc(a, tap_hold, &later));
    OK(cuLaunchHostFunc(b, tap_hold, &later));
    IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuEventSynchronize(e));
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    hold_set(&later, 1);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(words, p, 8));
    EQ(words[0], 1);
    EQ(words[1], 2);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(p));
}

/* Streams that are there wait, and streams made afterwards. */
static void wait(void)
{
    CUstream a, b, late;
    CUevent e;
    CUdeviceptr p;
    _Atomic int go = 0;
    uint32_t words[4] = { 0 };
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD32(p, 0, 4));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuLaunchHostFunc(a, tap_hold, &go));
    OK(cuMemsetD32Async(p, 1, 1, a));
    OK(cuEventRecord(e, a));
    OK(cuCtxWaitEvent(context(), e));
    OK(cuStreamCreate(&late, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyDtoDAsync(p + 4, p, 4, b));
    OK(cuMemcpyDtoDAsync(p + 8, p, 4, late));
    OK(cuMemcpyDtoDAsync(p + 12, p, 4, NULL));
    IS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(late), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(words, p, 16));
    for (int i = 0; i < 4; i++)
        EQ(words[i], 1);
    OK(cuCtxWaitEvent(context(), e)); /* reached long ago */
    OK(cuStreamQuery(b));
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuStreamDestroy(late));
    OK(cuMemFree(p));
}

static void wrong(void)
{
    CUcontext mine = context(), other;
    CUevent e, others;
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuEventCreate(&others, CU_EVENT_DISABLE_TIMING));
    IS(cuCtxRecordEvent(mine, others), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxRecordEvent(other, others));
    OK(cuCtxWaitEvent(mine, others)); /* may be from another context */
    OK(cuEventDestroy(others));
    OK(cuCtxDestroy(other));
    IS(cuCtxRecordEvent(mine, NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuCtxWaitEvent(mine, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy(e));
}

static void captures(void)
{
    CUstream s;
    CUevent e;
    CUgraph g = NULL;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    IS(cuCtxRecordEvent(context(), e), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(e, s));
    IS(cuCtxWaitEvent(context(), e), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(s));
}

static void context_of_a_stream(void)
{
    CUstream s;
    CUcontext c = NULL;
    CUgreenCtx green = (CUgreenCtx)(void *)&c;
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamGetCtx_v2(s, &c, &green));
    TRUE(c == context());
    TRUE(green == NULL);
    OK(cuStreamDestroy(s));
}

static void attach(void)
{
    CUcontext mine = context(), c, again = NULL, top = NULL;
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuCtxAttach(&again, 0));
    TRUE(again == c);
    IS(cuCtxAttach(&again, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxDetach(mine), CUDA_ERROR_INVALID_CONTEXT); /* not current */
    OK(cuCtxDetach(c));
    OK(cuCtxSynchronize()); /* once more is left */
    OK(cuCtxDetach(c));
    OK(cuCtxGetCurrent(&top));
    TRUE(top != c);
    OK(cuCtxSetCurrent(mine));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(record), TEST(wait), TEST(wrong), TEST(captures), TEST(context_of_a_stream),
        TEST(attach),
    };
    return tap_main(tests, COUNT(tests));
}
