/* Streams: their properties, what waits for what, host functions, captures. */
#include "answers.h"

#include <stdatomic.h>

#include "../hold.h"

static atomic_int flag;

static void CUDA_CB hold(void *data)
{
    hold_wait(data, 1);
}

static void properties(void)
{
    CUstream s, t;
    unsigned flags = 99;
    int priority = 99, device = 99;
    unsigned long long a = 0, b = 0;
    CUcontext c, current;
    cuCtxGetCurrent(&current);
    CALL(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    CALL(cuStreamGetFlags(s, &flags));
    NUM(flags);
    CALL(cuStreamGetPriority(s, &priority));
    NUM(priority);
    CALL(cuStreamCreateWithPriority(&t, CU_STREAM_NON_BLOCKING, -1));
    CALL(cuStreamGetFlags(t, &flags));
    NUM(flags);
    CALL(cuStreamGetPriority(t, &priority));
    NUM(priority);
    CALL(cuStreamGetId(s, &a));
    CALL(cuStreamGetId(t, &b));
    NUM(a != b);
    CALL(cuStreamGetCtx(s, &c));
    NUM(c == current);
    CALL(cuStreamGetDevice(s, &device));
    NUM(device);
    CALL(cuStreamCreateWithPriority(&t, 0, -100));
    CALL(cuStreamGetPriority(t, &priority));
    NUM(priority);
    CALL(cuStreamCreateWithPriority(&t, 0, 100));
    CALL(cuStreamGetPriority(t, &priority));
    NUM(priority);
    CALL(cuStreamCreate(&t, 8));
    CALL(cuStreamCreate(NULL, 0));
    CALL(cuStreamGetFlags(s, NULL));
    CALL(cuStreamGetPriority(s, NULL));
    CALL(cuStreamGetId(s, NULL));
    CALL(cuStreamDestroy(s));
    CALL(cuStreamDestroy(NULL));
}

static void special_streams(void)
{
    CUstream all[] = { NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD };
    unsigned long long ids[3] = { 0 };
    for (unsigned i = 0; i < 3; i++) {
        unsigned flags = 99;
        int priority = 99, device = 99;
        CUcontext c = NULL, current;
        cuCtxGetCurrent(&current);
        CALL(cuStreamGetFlags(all[i], &flags));
        NUM(flags);
        CALL(cuStreamGetPriority(all[i], &priority));
        NUM(priority);
        CALL(cuStreamGetId(all[i], &ids[i]));
        CALL(cuStreamGetCtx(all[i], &c));
        NUM(c == current);
        CALL(cuStreamGetDevice(all[i], &device));
        CALL(cuStreamQuery(all[i]));
        CALL(cuStreamSynchronize(all[i]));
    }
    NUM(ids[0] == ids[1]);
    NUM(ids[0] == ids[2]);
    CALL(cuStreamDestroy(CU_STREAM_LEGACY));
    CALL(cuStreamDestroy(CU_STREAM_PER_THREAD));
}

/* A stream that stands: what is ready, and what waits for it. */
static void ordering(void)
{
    CUstream s, n;
    CUdeviceptr p;
    CALL(cuMemAlloc(&p, 64));
    CALL(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    CALL(cuStreamCreate(&n, CU_STREAM_NON_BLOCKING));
    CALL(cuLaunchHostFunc(s, hold, &flag));
    CALL(cuStreamQuery(s));
    CALL(cuStreamQuery(n));
    CALL(cuMemsetD8Async(p, 1, 64, n));
    CALL(cuStreamSynchronize(n));
    CALL(cuMemsetD8Async(p, 1, 64, NULL));
    CALL(cuStreamQuery(NULL));
    CALL(cuStreamQuery(CU_STREAM_PER_THREAD));
    CALL(cuMemsetD8Async(p, 1, 64, CU_STREAM_PER_THREAD));
    CALL(cuStreamQuery(CU_STREAM_PER_THREAD));
    CALL(cuStreamQuery(n));
    hold_set(&flag, 1);
    CALL(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CALL(cuStreamQuery(s));
    CALL(cuStreamQuery(NULL));
    CALL(cuCtxSynchronize());
}

static void waiting(void)
{
    CUstream s, t;
    CUevent e;
    CALL(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    CALL(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CALL(cuStreamWaitEvent(t, e, 0));
    CALL(cuStreamQuery(t));
    CALL(cuLaunchHostFunc(s, hold, &flag));
    CALL(cuEventRecord(e, s));
    CALL(cuStreamWaitEvent(t, e, 0));
    CALL(cuEventQuery(e));
    CALL(cuStreamQuery(t));
    CALL(cuEventRecord(e, t));
    hold_set(&flag, 1);
    CALL(cuStreamSynchronize(t));
    CALL(cuEventQuery(e));
    CALL(cuStreamWaitEvent(t, e, 8));
    CALL(cuStreamWaitEvent(t, NULL, 0));
    CALL(cuStreamWaitEvent(t, e, CU_EVENT_WAIT_EXTERNAL));
}

static CUresult seen[6];
static void CUDA_CB calls(void *data)
{
    CUdeviceptr p;
    int n;
    seen[0] = cuMemAlloc(&p, 64);
    seen[1] = cuStreamSynchronize(NULL);
    seen[2] = cuDeviceGetCount(&n);
    seen[3] = cuCtxSynchronize();
    *(int *)data += 1;
}

static CUresult status = CUDA_ERROR_UNKNOWN;
static CUstream given;
static void CUDA_CB callback(CUstream s, CUresult r, void *data)
{
    status = r;
    given = s;
    *(int *)data += 1;
}

static void host_functions(void)
{
    CUstream s;
    int count = 0;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuLaunchHostFunc(s, calls, &count));
    CALL(cuStreamSynchronize(s));
    NUM(count);
    CALL(seen[0]);
    CALL(seen[1]);
    CALL(seen[2]);
    CALL(seen[3]);
    CALL(cuLaunchHostFunc(s, NULL, &count));
    CALL(cuLaunchHostFunc(NULL, calls, &count));
    CALL(cuStreamAddCallback(s, callback, &count, 0));
    CALL(cuCtxSynchronize());
    NUM(count);
    NUM(status);
    NUM(given == s);
    CALL(cuStreamAddCallback(s, callback, &count, 1));
    CALL(cuStreamAddCallback(s, NULL, &count, 0));
    CALL(cuStreamSynchronize(s));
}

static void stream_attributes(void)
{
    CUstream s, t;
    CUstreamAttrValue v = { 0 }, w = { 0 };
    CALL(cuStreamCreate(&s, 0));
    CALL(cuStreamCreate(&t, 0));
    CALL(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    NUM(v.syncPolicy);
    v.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
    CALL(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    CALL(cuStreamCopyAttributes(t, s));
    CALL(cuStreamGetAttribute(t, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &w));
    NUM(w.syncPolicy);
    v.syncPolicy = (CUsynchronizationPolicy)77;
    CALL(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    CALL(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
    NUM(v.accessPolicyWindow.num_bytes);
    CALL(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    NUM(v.priority);
    v.priority = -2;
    CALL(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    CALL(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &v));
    CALL(cuStreamGetAttribute(s, (CUstreamAttrID)99, &v));
    CALL(cuStreamSetAttribute(s, (CUstreamAttrID)99, &v));
}

static void capturing(void)
{
    CUstream s;
    CUgraph g = NULL;
    CUdeviceptr p;
    CUstreamCaptureStatus how = 9;
    cuuint64_t id = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    size_t n = 0;
    CALL(cuMemAlloc(&p, 64));
    CALL(cuStreamCreate(&s, 0));
    CALL(cuStreamIsCapturing(s, &how));
    NUM(how);
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamIsCapturing(s, &how));
    NUM(how);
    CALL(cuMemsetD8Async(p, 3, 64, s));
    CALL(answers_fill(s, p, 4, 4));
    CALL(cuStreamGetCaptureInfo(s, &how, &id, &g, NULL, NULL, &n));
    NUM(n);
    NUM(id > 0);
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuGraphGetNodes(g, NULL, &n));
    NUM(n);
    CALL(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamBeginCapture(s, (CUstreamCaptureMode)9));
    CALL(cuThreadExchangeStreamCaptureMode(&mode));
    NUM(mode);
    CALL(cuThreadExchangeStreamCaptureMode(&mode));
    mode = (CUstreamCaptureMode)9;
    CALL(cuThreadExchangeStreamCaptureMode(&mode));
    CALL(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
}

/* What ends a capture, and how. */
static void capture_errors(void)
{
    CUstream s, t;
    CUgraph g = NULL;
    CUdeviceptr p;
    CUevent e;
    CUstreamCaptureStatus how = 9;
    CALL(cuEventCreate(&e, 0));
    CALL(cuStreamCreate(&s, 0));
    CALL(cuStreamCreate(&t, 0));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamSynchronize(s));
    CALL(cuStreamIsCapturing(s, &how));
    NUM(how);
    CALL(cuStreamEndCapture(s, &g));
    NUM(g == NULL);
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuMemsetD8Async(p, 1, 64, NULL));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamQuery(s));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuEventRecord(e, s));
    CALL(cuStreamWaitEvent(t, e, 0));
    CALL(cuMemsetD8Async(p, 1, 64, t));
    CALL(cuStreamEndCapture(t, &g));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamIsCapturing(t, &how));
    NUM(how);
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuEventRecord(e, s));
    CALL(cuEventQuery(e));
    CALL(cuEventSynchronize(e));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamDestroy(s));
}

static void thread_local_captures(void)
{
    CUstream s;
    CUgraph g = NULL;
    CUdeviceptr p;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuStreamEndCapture(s, &g));
    CALL(cuGraphCreate(&g, 0));
    CALL(cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuMemsetD8Async(p, 1, 64, s));
    CALL(cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CALL(cuStreamEndCapture(s, &g));
}

const struct answers_case answers_stream[] = {
    CASE(properties),
    CASE(special_streams),
    CASE(ordering),
    CASE(waiting),
    CASE(host_functions),
    CASE(stream_attributes),
    CASE(capturing),
    CASE(capture_errors),
    CASE(thread_local_captures),
    END,
};
