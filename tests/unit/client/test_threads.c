/* Many threads in the library at once, for the thread sanitizer: launches, events, host functions,
 * streams that come and go, allocations, the thread's own stream. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <pthread.h>

#include "fake.h"

#define THREADS 4
#define ROUNDS  60

static struct fake fake;
static CUcontext context;
static CUfunction function;
static CUevent shared_event;
static _Atomic int host_calls;

static void CUDA_CB host_call(void *arg)
{
    (void)arg;
    host_calls++;
}

static CUresult round_of_work(CUdeviceptr p)
{
    CUstream s;
    CUevent e;
    CUdeviceptr q;
    uint32_t n = 1;
    float ms;
    void *params[] = { &p, &n };
    CUresult r = cuStreamCreate(&s, 0);
    r = r ? r : cuEventCreate(&e, 0);
    for (int i = 0; i < 5 && !r; i++)
        r = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s, params, NULL);
    r = r ? r : cuEventRecord(e, s);
    r = r ? r : cuEventRecord(shared_event, s);
    r = r ? r : cuStreamWaitEvent(CU_STREAM_PER_THREAD, e, 0);
    r = r ? r : cuMemsetD8Async(p, 1, 16, CU_STREAM_PER_THREAD);
    r = r ? r : cuLaunchHostFunc(s, host_call, NULL);
    r = r ? r : cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    r = r ? r : cuEventSynchronize(shared_event);
    r = r ? r : cuStreamSynchronize(CU_STREAM_PER_THREAD);
    r = r ? r : cuMemAlloc_v2(&q, 100);
    r = r ? r : cuMemFreeAsync(q, s);
    r = r ? r : cuStreamSynchronize(s);
    r = r ? r : cuEventElapsedTime(&ms, e, e);
    r = r ? r : cuStreamDestroy_v2(s);
    return r ? r : cuEventDestroy_v2(e);
}

static void *work(void *arg)
{
    CUdeviceptr p;
    CUresult r = cuCtxSetCurrent(context);
    (void)arg;
    r = r ? r : cuMemAlloc_v2(&p, 4096);
    for (int i = 0; i < ROUNDS && !r; i++)
        r = round_of_work(p);
    r = r ? r : cuMemFree_v2(p);
    return (void *)(uintptr_t)r;
}

Test(threads, everything_at_once, .timeout = 50)
{
    pthread_t t[THREADS];
    CUmodule m;
    void *result;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    fake_device_start(&fake);
    cr_assert_eq(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuModuleLoadData(&m, ".version 6.0\n"), CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetFunction(&function, m, "k"), CUDA_SUCCESS);
    cr_assert_eq(cuEventCreate(&shared_event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], &result);
        cr_assert_eq((uintptr_t)result, CUDA_SUCCESS, "thread %d: error %d", i,
                     (int)(uintptr_t)result);
    }
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    cr_assert_eq(host_calls, THREADS * ROUNDS);
    cr_assert_eq(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

/* Several threads call cuInit at once: one session. */
static void *init(void *arg)
{
    (void)arg;
    return (void *)(uintptr_t)cuInit(0);
}

Test(threads, init_at_once, .timeout = 50)
{
    pthread_t t[8];
    void *result;
    fake_start(&fake, fake_serve_well, NULL);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, init, NULL);
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], &result);
        cr_assert_eq((uintptr_t)result, CUDA_SUCCESS);
    }
    cr_assert_eq(fake.connections, 1);
}

/* Several threads begin with the primary context at once, as NVIDIA's runtime does: one context. */
static void *retain(void *arg)
{
    CUcontext *retained = arg, current = NULL;
    CUresult r = cuDevicePrimaryCtxRetain(retained, 0);
    r = r ? r : cuCtxSetCurrent(*retained);
    r = r ? r : cuCtxGetCurrent(&current);
    return (void *)(uintptr_t)(r || current != *retained);
}

Test(threads, primary_at_once, .timeout = 50)
{
    pthread_t t[8];
    CUcontext retained[8];
    void *failed;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    fake_device_start(&fake);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, retain, &retained[i]);
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], &failed);
        cr_assert(!failed && retained[i] == retained[0]);
    }
}
