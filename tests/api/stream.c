/* Streams: order, the two default streams, waits, priorities, handles. */
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static void create_and_ask(void)
{
    CUstream s;
    unsigned flags = 9;
    int priority = 9, least, greatest;
    unsigned long long a = 0, b = 0;
    CUcontext c, current;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    OK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest));
    OK(cuStreamGetFlags(s, &flags));
    EQ(flags, CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetPriority(s, &priority));
    EQ(priority, greatest);
    OK(cuStreamGetId(s, &a));
    OK(cuStreamGetId(NULL, &b));
    TRUE(a != b);
    OK(cuStreamGetCtx(s, &c));
    OK(cuCtxGetCurrent(&current));
    TRUE(c == current);
    OK(cuStreamQuery(s));
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
    OK(cuStreamCreateWithPriority(&s, 0, -1000)); /* out of range: clamped */
    OK(cuStreamGetPriority(s, &priority));
    EQ(priority, greatest);
    OK(cuStreamDestroy(s));
    IS(cuStreamCreate(&s, 0x100), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Some arguments are looked at before the context. */
static void arguments_first(void)
{
    CUcontext before;
    CUstream s;
    OK(cuCtxPopCurrent(&before));
    IS(cuStreamCreate(&s, 0x2), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamCreateWithPriority(&s, 0x2, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamCreate(&s, 0), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamBeginCapture(NULL, (CUstreamCaptureMode)3), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPushCurrent(before));
}

static void stale(void)
{
    CUstream s;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamDestroy(s));
    IS(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamDestroy(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
}

static void not_ready(void)
{
    CUstream s;
    _Atomic int go = 0;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(NULL)); /* another matter */
    hold_set(&go, 1);
    OK(cuStreamSynchronize(s));
    OK(cuStreamQuery(s));
    OK(cuStreamDestroy(s));
}

/* The legacy stream waits for a blocking stream, and blocking streams for it; a non-blocking one
 * does not care. */
static void legacy_order(void)
{
    CUstream blocking, other, free_one;
    CUdeviceptr p;
    _Atomic int go = 0;
    uint32_t word = 0;
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD32(p, 0, 4));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(blocking, tap_hold, &go));
    OK(cuMemsetD32Async(p, 1, 1, blocking));
    OK(cuMemsetD32Async(p, 2, 1, NULL));  /* after `blocking` */
    OK(cuMemsetD32Async(p, 3, 1, other)); /* after the legacy stream */
    OK(cuMemsetD32Async(p + 4, 4, 1, free_one));
    OK(cuStreamSynchronize(free_one)); /* held back by nobody */
    IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuStreamSynchronize(other));
    OK(cuStreamQuery(NULL));
    OK(cuStreamQuery(blocking));
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 3);
    /* Waiting for the legacy stream alone waits for what blocking streams hold. */
    go = 0;
    OK(cuLaunchHostFunc(blocking, tap_hold, &go));
    IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamQuery(blocking));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(other));
    OK(cuStreamDestroy(free_one));
    OK(cuMemFree(p));
}

static void wait_event(void)
{
    CUstream a, b;
    CUevent e;
    CUdeviceptr p;
    _Atomic int go = 0;
    uint32_t word = 0;
    OK(cuMemAlloc(&p, 4));
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamWaitEvent(b, e, 0)); /* never recorded: nothing to wait for */
    OK(cuStreamSynchronize(b));
    OK(cuLaunchHostFunc(a, tap_hold, &go));
    OK(cuMemsetD32Async(p, 1, 1, a));
    OK(cuEventRecord(e, a));
    OK(cuStreamWaitEvent(b, e, 0));
    OK(cuMemsetD32Async(p, 2, 1, b));
    IS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuStreamSynchronize(b));
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 2);
    IS(cuStreamWaitEvent(b, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(p));
}

static void never_captures(void)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream s;
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamIsCapturing(s, &status));
    EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuStreamDestroy(s));
}

/* A stream may be destroyed with work in it. */
static void destroy_busy(void)
{
    CUdeviceptr p;
    _Atomic int go = 0;
    uint32_t word = 0;
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 0, 1));
    OK(cuCtxSynchronize());
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    OK(cuMemsetD32Async(p, 5, 1, s));
    OK(cuStreamDestroy(s));
    hold_set(&go, 1);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 5);
    OK(cuMemFree(p));
}

/* More streams than there are numbers, one after the other, and many at once. */
/* The end of a stream that has done its work is none for the legacy stream. */
static void destroy_idle(void)
{
    CUdeviceptr p;
    CUstream s;
    OK(cuMemAlloc(&p, 64));
    for (int i = 0; i < 200; i++) {
        OK(cuStreamCreate(&s, 0));
        OK(cuMemsetD8Async(p, 1, 64, s));
        OK(cuStreamSynchronize(s));
        OK(cuStreamDestroy(s));
        OK(cuStreamQuery(NULL));
    }
    OK(cuMemFree(p));
}

static void many(void)
{
    static CUstream s[3000];
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 4 * COUNT(s)));
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT(s); i++) {
            OK(cuStreamCreate(&s[i], round & 1 ? CU_STREAM_NON_BLOCKING : 0));
            OK(cuMemsetD32Async(p + 4 * i, i, 1, s[i]));
        }
        for (unsigned i = 0; i < COUNT(s); i++)
            OK(cuStreamDestroy(s[i]));
    }
    static uint32_t words[COUNT(s)];
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    for (unsigned i = 0; i < COUNT(s); i++)
        EQ(words[i], i);
    OK(cuMemFree(p));
}

/* However many streams a program makes, another context's default stream has a place. */
static void leave_room(void)
{
    static CUstream s[6000];
    unsigned count = 0;
    CUresult r = CUDA_SUCCESS;
    CUcontext c;
    CUdeviceptr p;
    uint32_t word = 0;
    while (count < COUNT(s) && r == CUDA_SUCCESS)
        r = cuStreamCreate(&s[count++], CU_STREAM_NON_BLOCKING);
    if (r != CUDA_SUCCESS) {
        EQ(r, CUDA_ERROR_OUT_OF_MEMORY);
        count--;
    }
    TRUE(count >= 4000);
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32Async(p, 7, 1, NULL));
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 7);
    OK(cuCtxDestroy(c));
    while (count > 0)
        OK(cuStreamDestroy(s[--count]));
}

/* The legacy stream waits for blocking streams, also for those that are gone, but not for who has
 * come after them. */
static void legacy_and_successors(void)
{
    CUstream before[32], after[96];
    CUdeviceptr p;
    _Atomic int go = 0;
    OK(cuMemAlloc(&p, 4));
    for (unsigned i = 0; i < COUNT(before); i++) {
        OK(cuStreamCreate(&before[i], CU_STREAM_DEFAULT));
        OK(cuMemsetD32Async(p, i, 1, before[i]));
    }
    for (unsigned i = 0; i < COUNT(before); i++)
        OK(cuStreamDestroy(before[i]));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < COUNT(after); i++) {
        OK(cuStreamCreate(&after[i], CU_STREAM_NON_BLOCKING));
        OK(cuLaunchHostFunc(after[i], tap_hold, &go));
    }
    OK(cuStreamQuery(NULL));
    OK(cuMemsetD32Async(p, 7, 1, NULL));
    OK(cuStreamSynchronize(NULL));
    IS(cuStreamQuery(after[0]), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    for (unsigned i = 0; i < COUNT(after); i++)
        OK(cuStreamDestroy(after[i]));
    OK(cuCtxSynchronize());
    EQ(tap_byte(p), 7);
    OK(cuMemFree(p));
}

static void CUDA_CB take_time(void *unused)
{
    (void)unused;
    for (volatile unsigned i = 0; i < 50000000; i++)
        ;
}

/* Copies of pageable memory, which the caller may make itself, come after the legacy stream's work,
 * too. */
static void copies_after_legacy(void)
{
    enum { COUNT_OF = 2048 };
    static uint32_t host[COUNT_OF];
    CUstream blocking;
    CUdeviceptr p, pinned;
    void *memory;
    OK(cuMemAlloc(&p, sizeof(host)));
    OK(cuMemAllocHost(&memory, sizeof(host)));
    OK(cuMemHostGetDevicePointer(&pinned, memory, 0));
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (uint32_t i = 0; i < COUNT_OF; i++)
        host[i] = 2;
    OK(cuLaunchHostFunc(NULL, take_time, NULL));
    OK(cuMemsetD32Async(p, 1, COUNT_OF, NULL));
    OK(cuMemcpyHtoDAsync(p, host, sizeof(host), blocking));
    OK(cuStreamSynchronize(blocking));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(host, p, sizeof(host)));
    EQ(host[0], 2);
    EQ(host[COUNT_OF - 1], 2);
    OK(cuLaunchHostFunc(NULL, take_time, NULL));
    OK(cuMemsetD32Async(p, 3, COUNT_OF, NULL));
    OK(cuMemcpyDtoHAsync(host, p, sizeof(host), blocking));
    OK(cuStreamSynchronize(blocking));
    EQ(host[0], 3);
    EQ(host[COUNT_OF - 1], 3);
    /* Between two kinds of the host's memory. */
    OK(cuLaunchHostFunc(NULL, take_time, NULL));
    OK(cuMemsetD32Async(pinned, 4, COUNT_OF, NULL));
    OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, pinned, sizeof(host), blocking));
    OK(cuStreamSynchronize(blocking));
    EQ(host[0], 4);
    EQ(host[COUNT_OF - 1], 4);
    OK(cuStreamDestroy(blocking));
    OK(cuMemFreeHost(memory));
    OK(cuMemFree(p));
}

static CUcontext shared_context;

static void *thread_stream(void *arg)
{
    CUstream mine = NULL;
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)arg;
    uintptr_t good = cuCtxSetCurrent(shared_context) == CUDA_SUCCESS;
    unsigned long long id = 0;
    for (int i = 0; i < 100 && good; i++)
        good = cuMemsetD32Async(p, (unsigned)i, 1, CU_STREAM_PER_THREAD) == CUDA_SUCCESS;
    good = good && cuStreamGetId(CU_STREAM_PER_THREAD, &id) == CUDA_SUCCESS;
    good = good && cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS;
    (void)mine;
    return (void *)(good ? (uintptr_t)id : 0);
}

static void per_thread_stream(void)
{
    pthread_t t[4];
    CUdeviceptr p;
    void *id[4];
    uint32_t words[4];
    OK(cuCtxGetCurrent(&shared_context));
    OK(cuMemAlloc(&p, 16));
    for (int i = 0; i < 4; i++)
        EQ(pthread_create(&t[i], NULL, thread_stream, (void *)(uintptr_t)(p + 4u * (unsigned)i)),
           0);
    for (int i = 0; i < 4; i++)
        EQ(pthread_join(t[i], &id[i]), 0);
    for (int i = 0; i < 4; i++)
        TRUE(id[i] != NULL);
    OK(cuMemcpyDtoH(words, p, 16));
    for (int i = 0; i < 4; i++)
        EQ(words[i], 99);
    OK(cuMemFree(p));
}

/* What programs built with a per-thread default stream call. */

static void per_thread_symbols(void)
{
    CUdeviceptr p;
    _Atomic int go = 0;
    CUstream apart;
    OK(cuMemAlloc(&p, 16));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc_ptsz(NULL, tap_hold, &go));
    IS(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(apart));
    hold_set(&go, 1);
    OK(cuMemsetD32Async_ptsz(p, 3, 1, NULL));
    OK(cuStreamSynchronize_ptsz(NULL));
    OK(cuStreamDestroy(apart));
    OK(cuMemFree(p));
}

/* Work in a stream that the program made needs no current context; in a default stream it does. */
static void without_context(void)
{
    CUcontext c;
    CUstream s;
    CUevent e;
    CUdeviceptr p;
    uint32_t in[2] = { 5, 6 }, out[2] = { 0 };
    CUfunction nothing = tap_function("nothing");
    _Atomic int go = 1;
    OK(cuMemAlloc(&p, 64));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DEFAULT));
    OK(cuCtxGetCurrent(&c));
    OK(cuCtxSetCurrent(NULL));
    CUDA_MEMCPY3D_PEER box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = p,
                               .srcContext = c,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = p + 8,
                               .dstContext = c,
                               .WidthInBytes = 4,
                               .Height = 1,
                               .Depth = 1 };
    OK(cuMemcpyHtoDAsync(p, in, sizeof(in), s));
    OK(cuMemsetD32Async(p, 7, 1, s));
    OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    OK(cuMemcpy3DPeerAsync(&box, s));
    OK(cuMemcpyPeerAsync(p + 12, c, p + 4, c, 4, s));
    OK(cuMemcpyDtoHAsync(out, p + 8, sizeof(out), s));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    OK(cuEventRecord(e, s));
    OK(cuStreamSynchronize(s));
    IS(cuMemcpyHtoDAsync(p, in, sizeof(in), NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuMemsetD32Async(p, 7, 1, NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuMemcpy3DPeerAsync(&box, NULL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuMemcpy3DPeer(&box), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuLaunchHostFunc(NULL, tap_hold, &go), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(c));
    EQ(out[0], tap_computes() ? 7 : out[0]);
    EQ(out[1], tap_computes() ? 6 : out[1]);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(create_and_ask),    TEST(never_captures),
        TEST(arguments_first),   TEST(stale),
        TEST(not_ready),         TEST(legacy_order),
        TEST(wait_event),        TEST(destroy_busy),
        TEST(destroy_idle),      TEST(many),
        TEST(leave_room),        TEST(legacy_and_successors),
        TEST(per_thread_stream), TEST(per_thread_symbols),
        TEST(without_context),   TEST(copies_after_legacy),
    };
    return tap_main(tests, COUNT(tests));
}
