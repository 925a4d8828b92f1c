/*
 * cuStream*: the calls of programs about streams.
 */
#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/context.h"
#include "client/stream/event.h"
#include "client/stream/hostfunc.h"

CUresult rt_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct rt_context *c;
    struct rt_stream *st;
    if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_enter(&c);
    if (r)
        return r;
    r = rt_stream_create(c,
                         flags & CU_STREAM_NON_BLOCKING ? RT_ROLE_NON_BLOCKING : RT_ROLE_BLOCKING,
                         flags, rt_stream_priority(c->device, priority), &st);
    if (r == CUDA_SUCCESS)
        *phStream = (CUstream)rt_object_handle(&rt_streams, &st->object);
    return r;
}

CUresult rt_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return rt_cuStreamCreateWithPriority(phStream, Flags, RT_PRIORITY_LEAST);
}

CUresult rt_cuStreamDestroy_v2(CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    if (rt_stream_is_default(hStream))
        return CUDA_ERROR_INVALID_HANDLE;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    rt_stream_destroy(st);
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamDestroy(CUstream hStream)
{
    return rt_cuStreamDestroy_v2(hStream);
}

CUresult rt_cuStreamSynchronize(CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_check(st, true);
    r = r ? r : rt_capture_unsafe();
    r = r ? r : rt_stream_wait(st);
    if (r == CUDA_SUCCESS)
        rt_hooks.synchronized();
    return r;
}

CUresult rt_cuStreamQuery(CUstream hStream)
{
    struct rt_stream *st;
    int r = rt_enter_stream_query(hStream, &st);
    r = r ? r : rt_capture_check(st, true);
    r = r ? r : rt_capture_unsafe();
    return r ? r : rt_stream_query(st);
}

CUresult rt_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    uint32_t number;
    uint64_t seq;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    if (r)
        return r;
    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (GM_UNLIKELY(rt_stream_captures(st) || rt_event_captured(hEvent)))
        return rt_hooks.capture_wait(st, hEvent, Flags & CU_EVENT_WAIT_EXTERNAL);
    if (Flags) /* only a wait that is captured can be an external one */
        return rt_event_exists(hEvent) ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_HANDLE;
    bool foreign = false;
    r = rt_event_wait_foreign(hEvent, st, &foreign);
    if (r || foreign)
        return r;
    r = rt_event_point(hEvent, &number, &seq);
    return r || !seq ? r : rt_queue_wait(st, number, seq);
}

/* For questions that a capture does not survive; others are only refused if the capture is spoilt
 * already. */
static int refused(struct rt_stream *st)
{
    return GM_UNLIKELY(rt_stream_captures(st)) ? rt_capture_refuse(st) : CUDA_SUCCESS;
}

CUresult rt_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : refused(st);
    if (r)
        return r;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = st->flags;
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    if (r)
        return r;
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = st->priority;
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : refused(st);
    if (r)
        return r;
    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    *streamId = st->id;
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : refused(st);
    if (r)
        return r;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = st->context->device;
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    if (r)
        return r;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = rt_context_handle(st->context);
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                unsigned int flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return rt_hostfunc_add(st, NULL, callback, hStream, userData);
}

CUresult rt_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (leastPriority)
        *leastPriority = RT_PRIORITY_LEAST;
    if (greatestPriority)
        *greatestPriority = rt_session->devices[c->device].priority_greatest;
    return CUDA_SUCCESS;
}
