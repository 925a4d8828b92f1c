/* Stream capture: what calls become, forks and joins by events, and what spoils a capture. */
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Streams that a test began a capture in. One that fails leaves it open: the next begins by ending
 * it. */
static CUstream begun[32];
static unsigned begun_count;

static CUstream make_stream(void)
{
    CUstream s;
    CUgraph g;
    for (unsigned i = 0; i < begun_count; i++)
        if (cuStreamEndCapture(begun[i], &g) == CUDA_SUCCESS)
            (void)cuGraphDestroy(g);
    begun_count = 0;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

static void destroy(CUstream s)
{
    for (unsigned i = 0; i < begun_count; i++)
        if (begun[i] == s)
            begun[i--] = begun[--begun_count];
    OK(cuStreamDestroy(s));
}

static CUevent make_event(void)
{
    CUevent e;
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

static uint32_t read_word(CUdeviceptr p)
{
    uint32_t word = 0;
    OK(cuMemcpyDtoH(&word, p, 4));
    return word;
}

static void begin_mode(CUstream s, CUstreamCaptureMode mode)
{
    OK(cuStreamBeginCapture(s, mode));
    if (begun_count < COUNT(begun))
        begun[begun_count++] = s;
}

static void begin(CUstream s)
{
    begin_mode(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static CUstreamCaptureStatus status_of(CUstream s)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;
    OK(cuStreamIsCapturing(s, &status));
    return status;
}

static size_t nodes_in(CUgraph g)
{
    size_t count = 0;
    OK(cuGraphGetNodes(g, NULL, &count));
    return count;
}

static size_t edges_in(CUgraph g)
{
    size_t count = 0;
    OK(cuGraphGetEdges(g, NULL, NULL, NULL, &count));
    return count;
}

static void run(CUgraph g, CUstream s)
{
    CUgraphExec e;
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(e));
}

/* Ends a capture that something has spoilt. */
static void end_spoilt(CUstream s)
{
    CUgraph g = (CUgraph)(uintptr_t)1;
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    TRUE(g == NULL);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void add(CUstream s, CUdeviceptr p, uint32_t by)
{
    void *params[] = { &p, &by };
    OK(cuLaunchKernel(tap_function("add_to"), 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

static void CUDA_CB count_up(void *arg)
{
    ++*(_Atomic int *)arg;
}

/* Every kind of call; nothing of it happens before the launch, and all of it at each. */
static void everything(void)
{
    static uint32_t in[4], out[4];
    static _Atomic int calls;
    CUstream s = make_stream();
    CUgraph g;
    CUgraphExec e;
    CUdeviceptr p, q;
    in[0] = 100;
    out[0] = 0;
    calls = 0;
    OK(cuMemAlloc(&p, 16));
    OK(cuMemAlloc(&q, 16));
    OK(cuMemsetD32(p, 7, 4));
    OK(cuCtxSynchronize());
    begin(s);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemcpyHtoDAsync(p, in, sizeof(in), s));
    add(s, p, 5);
    OK(cuMemsetD32Async(q, 3, 4, s));
    OK(cuMemcpyDtoDAsync(q, p, 4, s));
    OK(cuLaunchHostFunc(s, count_up, &calls));
    OK(cuMemcpyDtoHAsync(out, q, sizeof(out), s));
    OK(cuStreamEndCapture(s, &g));
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
    EQ(nodes_in(g), 6);
    EQ(edges_in(g), 5);
    EQ(read_word(p), 7);
    EQ(calls, 0);
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    for (uint32_t i = 1; i < 4; i++) {
        in[0] = 100 * i;
        OK(cuGraphLaunch(e, s));
        OK(cuStreamSynchronize(s));
        EQ(out[0], tap_computes() ? 100 * i + 5 : 100 * i);
        EQ(out[1], 3);
        EQ(calls, (int)i);
    }
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    destroy(s);
    OK(cuMemFree(p));
    OK(cuMemFree(q));
}

/* What was captured is what the call said, parameters by value. */
static void params_by_value(void)
{
    CUstream s = make_stream();
    CUgraph g;
    CUgraphNode node;
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS k;
    CUdeviceptr p;
    size_t count = 1;
    OK(cuMemAlloc(&p, 16));
    begin(s);
    add(s, p, 55);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, &node, &count));
    EQ(count, 1);
    OK(cuGraphNodeGetType(node, &type));
    EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
    OK(cuGraphKernelNodeGetParams(node, &k));
    EQ(*(CUdeviceptr *)k.kernelParams[0], p);
    EQ(*(uint32_t *)k.kernelParams[1], 55);
    OK(cuGraphDestroy(g));
    destroy(s);
    OK(cuMemFree(p));
}

/* a -> (b, c) -> d over two streams; more streams join the capture through events. */
static void fork_and_join(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent e = make_event(), f = make_event();
    CUgraph g;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    begin(s);
    OK(cuMemsetD32Async(p, 1, 4, s));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    EQ(status_of(t), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemsetD32Async(p + 4, 2, 1, t));
    OK(cuMemsetD32Async(p + 8, 3, 1, s));
    OK(cuEventRecord(f, t));
    OK(cuStreamWaitEvent(s, f, 0));
    OK(cuMemcpyDtoDAsync(p, p + 4, 4, s));
    OK(cuStreamEndCapture(s, &g));
    EQ(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);
    EQ(nodes_in(g), 4);
    EQ(edges_in(g), 4);
    run(g, s);
    EQ(read_word(p), 2);
    EQ(read_word(p + 4), 2);
    EQ(read_word(p + 8), 3);
    EQ(read_word(p + 12), 1);
    OK(cuGraphDestroy(g));
    OK(cuEventRecord(e, s)); /* as good as new */
    OK(cuEventSynchronize(e));
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(f));
    destroy(s);
    destroy(t);
    OK(cuMemFree(p));
}

static void unjoined(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent e = make_event();
    CUgraph g;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    begin(s);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuMemsetD32Async(p, 1, 1, t));
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    TRUE(g == NULL);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
    EQ(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);
    /* Ended in a stream that it did not begin in. */
    begin(s);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    IS(cuStreamEndCapture(t, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_spoilt(s);
    OK(cuMemFree(p));
    OK(cuEventDestroy(e));
    destroy(s);
    destroy(t);
}

static void isolation_and_merge(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent e = make_event();
    OK(cuEventRecord(e, t)); /* of no capture */
    begin(s);
    IS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    end_spoilt(s);
    begin(s);
    begin(t);
    OK(cuEventRecord(e, s));
    IS(cuStreamWaitEvent(t, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    end_spoilt(s);
    end_spoilt(t);
    OK(cuEventDestroy(e));
    destroy(s);
    destroy(t);
}

/* An event of a capture that has ended is good for nothing until it is recorded again. */
static void ended(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent e = make_event(), fresh = make_event();
    CUgraph g;
    float ms;
    size_t count = 9;
    begin(s);
    OK(cuEventRecord(e, s));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    IS(cuEventQuery(e), CUDA_ERROR_INVALID_VALUE);
    IS(cuEventSynchronize(e), CUDA_ERROR_INVALID_VALUE);
    IS(cuEventElapsedTime(&ms, e, e), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitEvent(t, e, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitEvent(t, e, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
    begin(s);
    IS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamWaitEvent(s, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuEventRecord(NULL, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_spoilt(s);
    begin(s);
    OK(cuStreamWaitEvent(s, fresh, 0)); /* never recorded: there is nothing to wait for */
    IS(cuEventRecord(NULL, s), CUDA_ERROR_INVALID_HANDLE);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, NULL, &count));
    EQ(count, 0);
    OK(cuGraphDestroy(g));
    begin(s);
    IS(cuStreamWaitEvent(s, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
    end_spoilt(s);
    OK(cuEventRecord(e, t));
    OK(cuEventSynchronize(e));
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(fresh));
    destroy(s);
    destroy(t);
}

/* Events that other processes may use are in no graph. */
static void shared_events(void)
{
    CUstream s = make_stream();
    CUevent e;
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    begin(s);
    IS(cuEventRecord(e, s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    IS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuEventRecord(e, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_spoilt(s);
    OK(cuEventDestroy(e));
    destroy(s);
}

static void CUDA_CB callback(CUstream s, CUresult r, void *arg)
{
    (void)s, (void)r, (void)arg;
}

/* Questions and waits that a capture does not survive. */
static void refused(void)
{
    CUstream s = make_stream();
    CUevent e = make_event();
    CUgraph g;
    CUdeviceptr p;
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    OK(cuMemAlloc(&p, 16));
    begin(s);
    IS(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); /* whether spoilt or not */
    IS(cuMemsetD32Async(p, 0, 1, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_spoilt(s);
    begin(s);
    IS(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    OK(cuEventRecord(e, s));
    IS(cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
    end_spoilt(s);
    begin(s);
    OK(cuEventRecord(e, s));
    IS(cuEventSynchronize(e), CUDA_ERROR_CAPTURED_EVENT);
    end_spoilt(s);
    begin(s);
    IS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuCtxWaitEvent(c, NULL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuCtxSetLimit((CUlimit)-1, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuCtxSetSharedMemConfig((CUsharedconfig)-1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuStreamAddCallback(s, callback, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuStreamEndCapture(s, &g)); /* that was no harm */
    OK(cuGraphDestroy(g));
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
    IS(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamBeginCapture(s, (CUstreamCaptureMode)7), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    OK(cuEventDestroy(e));
    destroy(s);
}

/* What a stream is asked for while it captures. */
static void asked(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUstreamAttrValue v;
    CUdevice device;
    CUcontext c;
    unsigned long long id;
    unsigned flags;
    int priority;
    memset(&v, 0, sizeof(v));
    begin(s);
    IS(cuStreamGetFlags(s, &flags), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamGetDevice(s, &device), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamGetPriority(s, &priority), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamGetId(s, &id), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamGetCtx(s, &c), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v),
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v),
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, 2),
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_spoilt(s);
    IS(cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, 2), CUDA_ERROR_ILLEGAL_STATE);
    begin(s);
    IS(cuStreamQuery(t), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); /* another stream */
    end_spoilt(s);
    begin_mode(s, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuStreamQuery(t));
    OK(cuStreamEndCapture(s, &(CUgraph) { NULL }));
    destroy(s);
    destroy(t);
}

/* While a blocking stream captures, the legacy stream would have to wait for it. */
static void implicit(void)
{
    CUstream other = make_stream(), s;
    CUdeviceptr p, q;
    CUgraph g;
    CUstreamCaptureStatus status;
    destroy(other);
    OK(cuMemAlloc(&p, 16));
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    begin(s);
    IS(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE); /* asking is no harm */
    IS(cuMemsetD32Async(p, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuEventRecord(NULL, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuStreamEndCapture(NULL, &g), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuStreamUpdateCaptureDependencies(NULL, NULL, NULL, 0, 0),
       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuStreamGetPriority(NULL, &(int) { 0 }), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuStreamWaitEvent(NULL, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    begin(s);
    IS(cuMemAllocAsync(&q, 16, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(s);
    OK(cuMemsetD32Async(p, 1, 1, NULL)); /* free again */
    OK(cuStreamSynchronize(NULL));
    destroy(s);
    s = make_stream();
    begin(s); /* one that is not blocking does not care */
    OK(cuMemsetD32Async(p, 1, 1, NULL));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    destroy(s);
    OK(cuMemFree(p));
}

struct launcher {
    CUcontext context;
    CUgraphExec exec;
    CUresult result;
    _Atomic int stop;
};

static void *launch_graphs(void *arg)
{
    struct launcher *l = arg;
    CUresult r = cuCtxSetCurrent(l->context);
    while (!l->stop && (r == CUDA_SUCCESS || r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT))
        r = cuGraphLaunch(l->exec, NULL);
    l->result = r;
    return NULL;
}

/* Graphs are launched in the legacy stream while another thread's captures begin and end: each
 * launch works or is refused. */
static void implicit_between(void)
{
    CUstream other = make_stream(), s;
    CUgraph g, inner;
    pthread_t thread;
    struct launcher l = { .stop = 0 };
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, does not survive it");
    destroy(other);
    OK(cuGraphCreate(&inner, 0));
    OK(cuGraphInstantiateWithFlags(&l.exec, inner, 0));
    OK(cuCtxGetCurrent(&l.context));
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    EQ(pthread_create(&thread, NULL, launch_graphs, &l), 0);
    for (int i = 0; i < 20000; i++) {
        CUresult r;
        begin(s);
        r = cuStreamEndCapture(s, &g);
        if (r == CUDA_SUCCESS)
            OK(cuGraphDestroy(g));
        else
            IS(r, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    l.stop = 1;
    EQ(pthread_join(thread, NULL), 0);
    TRUE(l.result == CUDA_SUCCESS || l.result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    OK(cuGraphExecDestroy(l.exec));
    OK(cuGraphDestroy(inner));
    destroy(s);
}

struct other {
    CUcontext context;
    CUstream stream;
    CUstreamCaptureMode mode;
    CUresult alloc, end;
};

static void *allocate_elsewhere(void *arg)
{
    struct other *o = arg;
    CUdeviceptr p;
    (void)cuCtxSetCurrent(o->context);
    (void)cuThreadExchangeStreamCaptureMode(&o->mode);
    o->alloc = cuMemAlloc(&p, 16);
    if (o->alloc == CUDA_SUCCESS)
        o->alloc = cuMemFree(p);
    return NULL;
}

static void *end_elsewhere(void *arg)
{
    struct other *o = arg;
    CUgraph g;
    (void)cuCtxSetCurrent(o->context);
    o->end = cuStreamEndCapture(o->stream, &g);
    if (o->end == CUDA_SUCCESS)
        (void)cuGraphDestroy(g);
    return NULL;
}

static void in_thread(void *(*f)(void *), struct other *o)
{
    pthread_t t;
    OK(cuCtxGetCurrent(&o->context));
    EQ(pthread_create(&t, NULL, f, o), 0);
    EQ(pthread_join(t, NULL), 0);
}

/* Which threads may make an unsafe call (here: allocate) while a capture goes on. */
static void modes(void)
{
    CUstream s = make_stream();
    CUdeviceptr p;
    CUgraph g;
    struct other o;
    CUstreamCaptureMode mode;

    begin_mode(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(cuMemAlloc(&p, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);

    begin_mode(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    o = (struct other) { .mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL };
    in_thread(allocate_elsewhere, &o);
    IS(o.alloc, CUDA_SUCCESS);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    o = (struct other) { .mode = CU_STREAM_CAPTURE_MODE_GLOBAL };
    in_thread(allocate_elsewhere, &o);
    IS(o.alloc, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);

    begin_mode(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    in_thread(allocate_elsewhere, &o);
    IS(o.alloc, CUDA_SUCCESS);
    mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemAlloc(&p, 16)); /* at its own risk */
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
    mode = (CUstreamCaptureMode)3; /* no mode, which is kept nevertheless */
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    EQ(mode, 3);

    begin_mode(s, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuMemAlloc(&p, 16));
    OK(cuMemFree(p));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    destroy(s);
}

static void other_thread_ends(void)
{
    CUstream s = make_stream();
    CUgraph g;
    struct other o = { .stream = s };
    begin(s);
    in_thread(end_elsewhere, &o);
    IS(o.end, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); /* but it has ended */
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
    begin_mode(s, CU_STREAM_CAPTURE_MODE_RELAXED);
    in_thread(end_elsewhere, &o);
    IS(o.end, CUDA_SUCCESS);
    destroy(s);
}

static void info(void)
{
    CUstream s = make_stream();
    CUstreamCaptureStatus status;
    CUgraph g = NULL, end;
    CUgraphNode empty;
    const CUgraphNode *nodes = NULL;
    cuuint64_t id = 0, id2 = 0;
    size_t count = 9;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    begin(s);
    OK(cuStreamGetCaptureInfo(s, &status, &id, &g, &nodes, NULL, &count));
    EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    TRUE(id != 0 && g != NULL);
    EQ(count, 0);
    OK(cuMemsetD32Async(p, 1, 1, s));
    OK(cuStreamGetCaptureInfo(s, &status, &id2, &g, &nodes, NULL, &count));
    EQ(id, id2);
    EQ(count, 1);
    /* A node of the program's own, put between what is captured. */
    OK(cuGraphAddEmptyNode(&empty, g, nodes, count));
    OK(cuStreamUpdateCaptureDependencies(s, &empty, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuMemsetD32Async(p, 2, 1, s));
    OK(cuStreamEndCapture(s, &end));
    TRUE(end == g);
    EQ(nodes_in(g), 3);
    EQ(edges_in(g), 2);
    run(g, s);
    EQ(read_word(p), 2);
    OK(cuGraphDestroy(g));
    begin(s);
    OK(cuStreamGetCaptureInfo(s, &status, &id2, NULL, NULL, NULL, NULL));
    TRUE(id != id2);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    IS(cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, 0), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuMemFree(p));
    destroy(s);
}

static void to_graph(void)
{
    CUstream s = make_stream();
    CUgraph g, end;
    CUgraphNode first;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEmptyNode(&first, g, NULL, 0));
    OK(cuStreamBeginCaptureToGraph(s, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemsetD32Async(p, 4, 1, s));
    OK(cuStreamEndCapture(s, &end));
    TRUE(end == g);
    EQ(nodes_in(g), 2);
    EQ(edges_in(g), 1);
    run(g, s);
    EQ(read_word(p), 4);
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
    destroy(s);
}

/* Events as nodes, which the world outside can see and be seen by. */
static void external_events(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent in = make_event(), out = make_event();
    CUgraph g;
    CUgraphExec x;
    CUdeviceptr p;
    _Atomic int go = 0;
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD32(p, 0, 4));
    OK(cuCtxSynchronize());
    begin(s);
    OK(cuStreamWaitEvent(s, in, CU_EVENT_WAIT_EXTERNAL));
    OK(cuMemsetD32Async(p, 6, 1, s));
    OK(cuEventRecordWithFlags(out, s, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(s, &g));
    EQ(nodes_in(g), 3);
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuLaunchHostFunc(t, tap_hold, &go));
    OK(cuEventRecord(in, t));
    OK(cuGraphLaunch(x, s));
    IS(cuEventQuery(out), CUDA_ERROR_NOT_READY);
    hold_set(&go, 1);
    OK(cuEventSynchronize(out));
    EQ(read_word(p), 6);
    IS(cuStreamWaitEvent(s, in, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    IS(cuEventRecordWithFlags(out, s, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    OK(cuEventDestroy(in));
    OK(cuEventDestroy(out));
    destroy(s);
    destroy(t);
    OK(cuMemFree(p));
}

/* A graph is not launched into a capture. What does the same is a child graph in the graph that is
 * being made. */
static void graph_in_capture(void)
{
    CUstream s = make_stream();
    CUgraph inner, outer;
    CUgraphExec e;
    CUgraphNode node;
    CUstreamCaptureStatus status;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD32(p, 0, 4));
    OK(cuCtxSynchronize());
    begin(s);
    OK(cuMemsetD32Async(p, 8, 1, s));
    OK(cuStreamEndCapture(s, &inner));
    OK(cuGraphInstantiateWithFlags(&e, inner, 0));
    begin(s);
    IS(cuGraphLaunch(e, s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuGraphInstantiateWithFlags(&e, NULL, 0x10), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphInstantiateWithFlags(&e, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    IS(cuGraphExecDestroy(NULL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(s);
    begin(s);
    OK(cuStreamGetCaptureInfo(s, &status, NULL, &outer, NULL, NULL, NULL));
    OK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, inner));
    OK(cuStreamUpdateCaptureDependencies(s, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuMemcpyDtoDAsync(p + 4, p, 4, s));
    OK(cuStreamEndCapture(s, &outer));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(inner));
    EQ(read_word(p), 0);
    run(outer, s);
    EQ(read_word(p + 4), 8);
    OK(cuGraphDestroy(outer));
    destroy(s);
    OK(cuMemFree(p));
}

/* Stream-ordered allocation and release become nodes. */
static void memory(void)
{
    CUstream s = make_stream();
    CUgraph g;
    CUdeviceptr p = 0, q;
    OK(cuMemAlloc(&q, 16));
    begin(s);
    OK(cuMemAllocAsync(&p, 1 << 16, s));
    TRUE(p != 0);
    OK(cuMemsetD32Async(p, 31, 4, s));
    OK(cuMemcpyDtoDAsync(q, p, 16, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamEndCapture(s, &g));
    EQ(nodes_in(g), 4);
    EQ(edges_in(g), 3);
    run(g, s);
    EQ(read_word(q + 12), 31);
    OK(cuGraphDestroy(g));
    destroy(s);
    OK(cuMemFree(q));
}

/* As CUDA's samples do it: two streams share memory that they allocate and free, and the events go
 * early, too. */
static void memory_of_two_streams(void)
{
    static uint32_t in[256], first[256], second[256];
    CUstream s = make_stream(), t = make_stream();
    CUevent copied = make_event(), used = make_event(), released = make_event();
    CUgraph g;
    CUdeviceptr p, q;
    for (uint32_t i = 0; i < COUNT(in); i++)
        in[i] = i * i;
    begin_mode(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemAllocAsync(&p, sizeof(in), s));
    OK(cuMemcpyHtoDAsync(p, in, sizeof(in), s));
    OK(cuEventRecord(copied, s));
    OK(cuStreamWaitEvent(t, copied, 0));
    OK(cuMemcpyDtoHAsync(first, p, sizeof(in), t));
    OK(cuMemAllocAsync(&q, sizeof(in), s));
    OK(cuMemcpyDtoDAsync(q, p, sizeof(in), s));
    OK(cuEventRecord(used, s));
    OK(cuMemcpyDtoHAsync(second, q, sizeof(in), s));
    OK(cuMemFreeAsync(q, s));
    OK(cuStreamWaitEvent(t, used, 0));
    OK(cuMemFreeAsync(p, t));
    OK(cuEventRecord(released, t));
    OK(cuStreamWaitEvent(s, released, 0));
    destroy(t);
    OK(cuEventDestroy(copied));
    OK(cuEventDestroy(used));
    OK(cuEventDestroy(released));
    OK(cuStreamEndCapture(s, &g));
    EQ(nodes_in(g), 8);
    for (int i = 0; i < 2; i++) {
        memset(first, 0, sizeof(first));
        memset(second, 0, sizeof(second));
        run(g, s);
        EQ(memcmp(first, in, sizeof(in)), 0);
        EQ(memcmp(second, in, sizeof(in)), 0);
    }
    OK(cuGraphDestroy(g));
    destroy(s);
}

/* A stream that was forked into a capture is destroyed before it ends: no harm if it has been
 * joined. */
static void destroyed_forks(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent e = make_event(), f = make_event();
    CUgraph g;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD32(p, 0, 4));
    OK(cuCtxSynchronize());
    begin(s);
    OK(cuMemsetD32Async(p, 1, 1, s));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuMemcpyDtoDAsync(p + 4, p, 4, t));
    OK(cuEventRecord(f, t));
    OK(cuStreamWaitEvent(s, f, 0));
    destroy(t);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemcpyDtoDAsync(p + 8, p + 4, 4, s));
    OK(cuStreamEndCapture(s, &g));
    EQ(nodes_in(g), 3);
    run(g, s);
    EQ(read_word(p + 8), 1);
    OK(cuGraphDestroy(g));
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(f));
    destroy(s);
    OK(cuMemFree(p));
}

static void destroyed_unjoined_fork(void)
{
    CUstream s = make_stream(), t = make_stream();
    CUevent e = make_event();
    CUgraph g;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    begin(s);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuMemsetD32Async(p, 1, 1, t));
    destroy(t);
    IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    TRUE(g == NULL);
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuEventDestroy(e));
    destroy(s);
    OK(cuMemFree(p));
}

/* A capture ends with the stream that it began in. */
static void destroyed_streams(void)
{
    CUstream s = make_stream();
    CUevent e = make_event();
    CUdeviceptr p;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuMemAlloc(&p, 16));
    begin(s);
    OK(cuEventRecord(e, s));
    OK(cuMemsetD32Async(p, 1, 1, s));
    destroy(s);
    OK(cuCtxSynchronize()); /* nothing captures any more */
    OK(cuMemFree(p));
    OK(cuEventDestroy(e));
}

/* Nodes of a graph that is being captured may be taken away; the graph may not. */
static void destroyed_nodes(void)
{
    CUstream s = make_stream();
    CUgraph g, end;
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes;
    size_t count;
    CUdeviceptr p;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuMemAlloc(&p, 16));
    begin(s);
    OK(cuMemsetD32Async(p, 1, 1, s));
    OK(cuStreamGetCaptureInfo(s, &status, NULL, &g, &nodes, NULL, &count));
    IS(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroyNode(nodes[0]));
    OK(cuMemsetD32Async(p, 2, 1, s));
    OK(cuStreamEndCapture(s, &end));
    EQ(nodes_in(end), 1);
    OK(cuGraphDestroy(end));
    OK(cuMemFree(p));
    destroy(s);
}

/* A fill of what is no memory: libraries capture to see what would be launched, with addresses that
 * they replace. */
static void placeholder(void)
{
    CUstream s = make_stream();
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUdeviceptr p;
    CUcontext c;
    CUDA_MEMSET_NODE_PARAMS f;
    size_t count = 1;
    OK(cuCtxGetCurrent(&c));
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD32(p, 9, 4));
    begin(s);
    OK(cuMemsetD8Async(0x80, 0, 16, s));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, &n, &count));
    EQ(count, 1);
    OK(cuGraphMemsetNodeGetParams(n, &f));
    EQ(f.dst, 0x80);
    EQ(f.width * f.elementSize * f.height, 16);
    if (!tap_genuine()) /* where nobody has tried */
        IS(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_INVALID_VALUE);
    f.dst = p;
    OK(cuGraphMemsetNodeSetParams(n, &f));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    if (!tap_genuine()) { /* which fills once and does not the next time */
        EQ(read_word(p), 0);
        f.dst = 0x80;
        IS(cuGraphExecMemsetNodeSetParams(e, n, &f, c), CUDA_ERROR_INVALID_VALUE);
        OK(cuGraphLaunch(e, s));
        OK(cuStreamSynchronize(s));
    }
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
    destroy(s);
}

/* Copies and fills that are waited for disturb no capture of a stream that the legacy stream does
 * not wait for. */
static void copies_beside(void)
{
    static unsigned char host[64];
    CUstream s;
    CUdeviceptr p;
    CUgraph g;
    size_t count = 0;
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, agrees, but dies in the next capture");
    OK(cuMemAlloc(&p, 64));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    begin_mode(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemsetD8Async(p, 1, 64, s));
    OK(cuMemcpyHtoD(p, host, 64));
    OK(cuMemcpyDtoH(host, p, 64));
    OK(cuMemsetD8(p, 2, 64));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, NULL, &count));
    EQ(count, 1);
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
}

/* A call that fails on a stream that captures spoils the capture. */
static void bad_calls(void)
{
    CUstream s = make_stream();
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16));
    begin(s);
    IS(cuLaunchKernel(tap_function("nothing"), 0, 1, 1, 1, 1, 1, 0, s, NULL, NULL),
       CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD32Async(p, 1, 1, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_spoilt(s);
    OK(cuMemFree(p));
    destroy(s);
}

/* The last test: the program ends in the middle of one. */
static void left_open(void)
{
    CUstream s = make_stream();
    begin(s);
    OK(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    EQ(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(everything),
        TEST(params_by_value),
        TEST(placeholder),
        TEST(fork_and_join),
        TEST(unjoined),
        TEST(isolation_and_merge),
        TEST(ended),
        TEST(shared_events),
        TEST(refused),
        TEST(asked),
        TEST(implicit),
        TEST(implicit_between),
        TEST(modes),
        TEST(other_thread_ends),
        TEST(info),
        TEST(to_graph),
        TEST(external_events),
        TEST(graph_in_capture),
        TEST(memory),
        TEST(memory_of_two_streams),
        TEST(destroyed_forks),
        TEST(destroyed_unjoined_fork),
        TEST(destroyed_streams),
        TEST(destroyed_nodes),
        TEST(copies_beside),
        TEST(bad_calls),
        TEST(left_open),
    };
    return tap_main(tests, COUNT(tests));
}
