/* Host functions and stream callbacks: order, arguments, that they may not call CUDA, and who waits
 * for them. */
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static _Atomic int steps;

static void CUDA_CB step(void *arg)
{
    int want = (int)(uintptr_t)arg;
    atomic_compare_exchange_strong(&steps, &want, want + 1);
}

static void in_order(void)
{
    CUstream s;
    steps = 0;
    OK(cuStreamCreate(&s, 0));
    for (uintptr_t i = 0; i < 500; i++) {
        OK(cuLaunchHostFunc(s, step, (void *)i));
        if (i % 10 == 0)
            OK(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    }
    OK(cuStreamSynchronize(s));
    EQ(steps, 500);
    OK(cuStreamDestroy(s));
    IS(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

static CUstream callback_stream;
static CUresult callback_status = CUDA_ERROR_UNKNOWN;

static void CUDA_CB on_done(CUstream s, CUresult status, void *arg)
{
    callback_stream = s;
    callback_status = status;
    atomic_store((_Atomic int *)arg, 1);
}

static void callbacks(void)
{
    CUstream s;
    _Atomic int done = 0;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamAddCallback(s, on_done, &done, 0));
    OK(cuStreamSynchronize(s));
    EQ(done, 1);
    TRUE(callback_stream == s);
    EQ(callback_status, CUDA_SUCCESS);
    IS(cuStreamAddCallback(s, on_done, &done, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamDestroy(s));
}

static CUresult inside[3];
static CUresult looked[4];
static CUstream looked_at;
static CUevent passed, ahead;

static void CUDA_CB calls_cuda(void *arg)
{
    CUdeviceptr p;
    CUcontext c;
    (void)arg;
    inside[0] = cuMemAlloc(&p, 16);
    inside[1] = cuStreamSynchronize(NULL);
    inside[2] = cuCtxGetCurrent(&c);
}

static void CUDA_CB looks(void *arg)
{
    (void)arg;
    looked[0] = cuEventQuery(passed);
    looked[1] = cuEventQuery(ahead);
    looked[2] = cuStreamQuery(looked_at);
    looked[3] = cuEventQuery(NULL);
}

/* What only looks is permitted: at the function's own stream, which is not done. */
static void may_look(void)
{
    OK(cuStreamCreate(&looked_at, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&passed, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&ahead, CU_EVENT_DEFAULT));
    OK(cuEventRecord(passed, looked_at));
    OK(cuLaunchHostFunc(looked_at, looks, NULL));
    OK(cuStreamSynchronize(looked_at));
    IS(looked[0], CUDA_SUCCESS);
    IS(looked[1], CUDA_SUCCESS); /* it was never recorded */
    IS(looked[2], CUDA_ERROR_NOT_READY);
    IS(looked[3], CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy(ahead));
    OK(cuEventDestroy(passed));
    OK(cuStreamDestroy(looked_at));
}

static void not_permitted(void)
{
    OK(cuLaunchHostFunc(NULL, calls_cuda, NULL));
    OK(cuCtxSynchronize());
    IS(inside[0], CUDA_ERROR_NOT_PERMITTED);
    IS(inside[1], CUDA_ERROR_NOT_PERMITTED);
}

/* What the device did before is there to see, and what the function does is seen by the device
 * after. */
static void CUDA_CB double_it(void *arg)
{
    uint32_t *w = arg;
    *w *= 2;
}

static void between_device_work(void)
{
    uint32_t *h;
    OK(cuMemAllocHost((void **)&h, 64));
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32Async(p, 21, 1, NULL));
    OK(cuMemcpyDtoHAsync(h, p, 4, NULL));
    OK(cuLaunchHostFunc(NULL, double_it, h));
    OK(cuMemcpyHtoDAsync(p, h, 4, NULL));
    uint32_t got = 0;
    OK(cuMemcpyDtoH(&got, p, 4));
    EQ(got, 42);
    OK(cuMemFree(p));
    OK(cuMemFreeHost(h));
}

static void CUDA_CB set_word(void *arg)
{
    atomic_store((_Atomic uint32_t *)arg, 1);
}

/* A stream stands before its host function until that of another stream has run: the later one is
 * not overlooked. */
static void of_two_streams(void)
{
    CUstream a, b;
    CUdeviceptr p;
    void *word;
    steps = 0;
    if (!tap_computes())
        tap_skip("kernels do not run here");
    CUfunction await = tap_function("await");
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc(&word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&p, word, 0));
    void *params[] = { &p };
    const time_t end = time(NULL) + 3; /* on a busy machine each takes a while */
    int i = 0;
    for (; i < 5000 && time(NULL) < end; i++) {
        atomic_store((_Atomic uint32_t *)word, 0);
        OK(cuLaunchKernel(await, 1, 1, 1, 1, 1, 1, 0, b, params, NULL));
        OK(cuLaunchHostFunc(b, step, (void *)(uintptr_t)i));
        OK(cuLaunchHostFunc(a, set_word, word));
        OK(cuStreamSynchronize(b));
    }
    EQ(steps, i);
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFreeHost(word));
}

/* --- beside a call that waits for a host function --------------------------------------------- */

static _Atomic int opened, stood_too_long;

static void CUDA_CB stand(void *arg)
{
    (void)arg;
    hold_wait(&opened, 1);
    stood_too_long |= !opened;
}

#define TOO_MUCH ((size_t)1 << 44)

static void *allocate_too_much(void *context)
{
    CUdeviceptr p;
    CUresult r = cuCtxSetCurrent(context);
    return (void *)(uintptr_t)(r ? r : cuMemAlloc(&p, TOO_MUCH));
}

static void *allocate_too_much_in_graph(void *context)
{
    CUgraph g;
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } },
        .bytesize = TOO_MUCH
    };
    CUresult r = cuCtxSetCurrent(context);
    r = r ? r : cuGraphCreate(&g, 0);
    r = r ? r : cuGraphAddMemAllocNode(&n, g, NULL, 0, &a);
    return (void *)(uintptr_t)r;
}

#define TIMES 500u

/* Everything that takes a lock which an allocation may hold. Not cuMemFree, which waits for all
 * streams. */
static void do_others(CUdeviceptr *mine)
{
    CUgraph g;
    CUgraphNode n;
    CUdeviceptr p;
    OK(cuMemAlloc(mine, 4096));
    OK(cuMemAllocAsync(&p, 4096, CU_STREAM_PER_THREAD));
    OK(cuMemFreeAsync(p, CU_STREAM_PER_THREAD));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEmptyNode(&n, g, NULL, 0));
    OK(cuGraphDestroy(g));
}

/* An allocation that finds no room waits for what other streams are about to free. The program's
 * other threads go on meanwhile: the host function that keeps the stream from it may be waiting for
 * them. */
static void beside(void *(*wait)(void *context))
{
    CUstream s;
    CUcontext c;
    CUdeviceptr p, mine[TIMES];
    pthread_t thread;
    void *result;
    if (!tap_ours())
        tap_skip("whether the driver waits there is not defined");
    opened = stood_too_long = 0;
    OK(cuCtxGetCurrent(&c));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 4096));
    OK(cuLaunchHostFunc(s, stand, NULL));
    OK(cuMemFreeAsync(p, s));
    TRUE(pthread_create(&thread, NULL, wait, c) == 0);
    for (unsigned i = 0; i < TIMES; i++) /* by then the other one waits */
        do_others(&mine[i]);
    hold_set(&opened, 1);
    TRUE(pthread_join(thread, &result) == 0);
    EQ((uintptr_t)result, CUDA_ERROR_OUT_OF_MEMORY);
    EQ(stood_too_long, 0);
    for (unsigned i = 0; i < TIMES; i++)
        OK(cuMemFree(mine[i]));
    OK(cuStreamDestroy(s));
}

static void beside_an_allocation(void)
{
    beside(allocate_too_much);
}

static void beside_an_allocation_in_a_graph(void)
{
    beside(allocate_too_much_in_graph);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(in_order),
        TEST(callbacks),
        TEST(not_permitted),
        TEST(may_look),
        TEST(between_device_work),
        TEST(of_two_streams),
        TEST(beside_an_allocation),
        TEST(beside_an_allocation_in_a_graph),
    };
    return tap_main(tests, COUNT(tests));
}
