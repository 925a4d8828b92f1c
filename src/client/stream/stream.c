/*
 * Streams as the program sees them: handles, the two default streams, waiting and asking.
 * cuStream*.
 */
#include "client/stream/context.h"

#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/event.h"
#include "client/stream/hostfunc.h"

/* Smaller is more urgent; the numbers of NVIDIA's data centre devices, so that programs find what
 * they know. */
#define PRIORITY_LEAST 0

struct rt_table rt_streams = RT_TABLE(RT_KIND_STREAM, struct rt_stream);

static int legacy_stream(struct rt_context *c, struct rt_stream **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    *out = atomic_load_explicit(&c->legacy, memory_order_relaxed);
    if (!*out) {
        r = rt_stream_create(c, RT_ROLE_LEGACY, CU_STREAM_DEFAULT, PRIORITY_LEAST, out);
        if (r == CUDA_SUCCESS)
            atomic_store_explicit(&c->legacy, *out, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

int rt_stream_resolve_slow(struct rt_context *c, CUstream handle, struct rt_stream **out)
{
    if (handle == NULL)
        handle = rt_default_stream;
    if (handle == CU_STREAM_LEGACY)
        return legacy_stream(c, out);
    if (handle == CU_STREAM_PER_THREAD)
        return rt_thread_stream(c, out);
    return CUDA_ERROR_INVALID_HANDLE;
}

static bool is_default(CUstream handle)
{
    return handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

int rt_enter_stream(CUstream handle, struct rt_context **c, struct rt_stream **st)
{
    if (is_default(handle)) {
        int r = rt_enter(c);
        return r ? r : rt_stream_resolve(*c, handle, st);
    }
    int r = rt_enter_any();
    if (r)
        return r;
    *st = rt_object_find(&rt_streams, handle);
    if (!*st)
        return CUDA_ERROR_INVALID_HANDLE;
    *c = (*st)->context;
    return CUDA_SUCCESS;
}

/* What a look at the stream now would have to wait for: itself, and for the legacy stream the
 * blocking ones, as far as they are now: a number may be somebody else's the next moment. */
struct snapshot {
    uint32_t number;
    uint64_t issued;
    bool dirty_any;
    uint64_t dirty[TP_STREAMS / 64];
    uint64_t seq[TP_STREAMS]; /* of those in `dirty` */
};

static void note_dirty(const struct rt_context *c, struct snapshot *out)
{
    out->dirty_any = true;
    for (uint32_t w = 0; w < TP_STREAMS / 64; w++) {
        out->dirty[w] = c->dirty[w];
        for (uint64_t bits = c->dirty[w]; bits; bits &= bits - 1) {
            uint32_t number = w * 64 + (uint32_t)__builtin_ctzll(bits);
            out->seq[number] = rt_context_dirty(c, number);
        }
    }
}

static int take_snapshot(struct rt_stream *st, struct snapshot *out)
{
    struct rt_session *s = rt_session;
    out->dirty_any = false;
    pthread_mutex_lock(&s->ring_lock);
    out->number = st->number;
    if (out->number < TP_STREAMS)
        out->issued = rt_queue_issued(s, out->number);
    if (st->role == RT_ROLE_LEGACY && st->context->dirty_any)
        note_dirty(st->context, out);
    pthread_mutex_unlock(&s->ring_lock);
    return out->number < TP_STREAMS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Calls look() for each queue of the snapshot until one does not return CUDA_SUCCESS. */
static int each_queue(const struct snapshot *snap, const struct tp_wait_policy *policy,
                      int (*look)(uint32_t number, uint64_t issued,
                                  const struct tp_wait_policy *policy))
{
    int r = look(snap->number, snap->issued, policy);
    for (uint32_t w = 0; r == CUDA_SUCCESS && snap->dirty_any && w < TP_STREAMS / 64; w++) {
        for (uint64_t bits = snap->dirty[w]; bits && r == CUDA_SUCCESS; bits &= bits - 1) {
            uint32_t number = w * 64 + (uint32_t)__builtin_ctzll(bits);
            r = look(number, snap->seq[number], policy);
        }
    }
    return r;
}

static int look_and_wait(uint32_t number, uint64_t issued, const struct tp_wait_policy *policy)
{
    return rt_session_wait(rt_session, number, issued, policy);
}

static int look_only(uint32_t number, uint64_t issued,
                     const struct tp_wait_policy *policy GM_UNUSED)
{
    return rt_queue_done(rt_session, number, issued) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

int rt_stream_wait(struct rt_stream *st)
{
    struct snapshot snap;
    struct tp_wait_policy policy = rt_stream_policy(st);
    int r = take_snapshot(st, &snap);
    return r ? r : each_queue(&snap, &policy, look_and_wait);
}

int rt_stream_query(struct rt_stream *st)
{
    struct snapshot snap;
    int r = take_snapshot(st, &snap);
    r = r ? r : each_queue(&snap, NULL, look_only);
    int error =
        r == CUDA_ERROR_NOT_READY ? rt_session_look(rt_session) : rt_session_error(rt_session);
    return error ? error : r;
}

int rt_stream_priority(const struct rt_context *c, int wanted)
{
    int priority = GM_MIN(wanted, PRIORITY_LEAST);
    return GM_MAX(priority, rt_session->devices[c->device].priority_greatest);
}

/* --- entry points ----------------------------------------------------------------------------- */

CUresult rt_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_stream_create(c,
                         flags & CU_STREAM_NON_BLOCKING ? RT_ROLE_NON_BLOCKING : RT_ROLE_BLOCKING,
                         flags, rt_stream_priority(c, priority), &st);
    if (r == CUDA_SUCCESS)
        *phStream = (CUstream)rt_object_handle(&rt_streams, &st->object);
    return r;
}

CUresult rt_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return rt_cuStreamCreateWithPriority(phStream, Flags, PRIORITY_LEAST);
}

CUresult rt_cuStreamDestroy_v2(CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (is_default(hStream))
        return CUDA_ERROR_INVALID_HANDLE;
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
    r = r ? r : rt_stream_wait(st);
    if (r == CUDA_SUCCESS)
        rt_hooks.synchronized();
    return r;
}

CUresult rt_cuStreamQuery(CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r == CUDA_SUCCESS && GM_UNLIKELY(rt_stream_captures(st)))
        r = rt_capture_refuse(st);
    return r ? r : rt_stream_query(st);
}

CUresult rt_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    uint32_t number;
    uint64_t seq;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (GM_UNLIKELY(rt_stream_captures(st) || rt_event_captured(hEvent)))
        return rt_hooks.capture_wait(st, hEvent, Flags & CU_EVENT_WAIT_EXTERNAL);
    if (Flags) /* external to what? */
        return CUDA_ERROR_ILLEGAL_STATE;
    bool foreign = false;
    r = rt_event_wait_foreign(hEvent, st, &foreign);
    if (r || foreign)
        return r;
    r = rt_event_point(hEvent, &number, &seq);
    if (r || !seq)
        return r;
    r = rt_queue_begin(st);
    if (r)
        return r;
    r = rt_queue_put_wait(st, number, seq);
    rt_queue_end();
    return r;
}

CUresult rt_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
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
        *leastPriority = PRIORITY_LEAST;
    if (greatestPriority)
        *greatestPriority = rt_session->devices[c->device].priority_greatest;
    return CUDA_SUCCESS;
}
