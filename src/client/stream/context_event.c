/*
 * Events of a whole context: of all that was issued in it, and of all that will be. A stream of
 * this library's gathers the work. To record, it waits for every stream of the context, and then
 * records the event. To wait, it waits for the event, and every stream waits for it, including
 * those made later.
 */
#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/event.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one such call runs at a time */

static int barrier(struct rt_context *c, struct rt_stream **out)
{
    *out = rt_object_find(&rt_streams, c->barrier);
    if (*out)
        return CUDA_SUCCESS;
    int r = rt_stream_create(c, RT_ROLE_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 0, out);
    if (r == CUDA_SUCCESS) {
        c->barrier = (CUstream)rt_object_handle(&rt_streams, &(*out)->object);
        c->barrier_number = (*out)->number;
    }
    return r;
}

static int enter(CUcontext ctx, struct rt_context **c)
{
    int r = rt_enter_any();
    return r ? r : rt_context_find_to_work(ctx, c);
}

/* Makes `b` wait for all work of the context's streams, and of destroyed ones, too. */
static int gather(struct rt_context *c, struct rt_stream *b)
{
    struct rt_session *s = rt_session;
    int r = rt_queue_begin(b);
    if (r)
        return r;
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_acquire);
    for (uint32_t i = 0; i < used && r == CUDA_SUCCESS; i++)
        if (atomic_load_explicit(&s->queues[i].context, memory_order_relaxed) == c->id)
            r = rt_queue_put_wait(b, i, rt_queue_issued(s, i));
    rt_queue_end();
    return r;
}

CUresult rt_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct rt_context *c;
    struct rt_stream *b;
    int r = enter(hCtx, &c);
    if (r == CUDA_SUCCESS && !rt_event_exists(hEvent))
        r = CUDA_ERROR_INVALID_HANDLE;
    r = r ? r : rt_capture_context_used(c);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    r = barrier(c, &b);
    r = r ? r : gather(c, b);
    r = r ? r : (int)rt_cuEventRecord(hEvent, c->barrier);
    pthread_mutex_unlock(&lock);
    return r;
}

struct holding {
    struct rt_context *context;
    uint32_t number;
    uint64_t seq;
    int result;
};

static void hold_one(struct rt_object *o, void *arg)
{
    struct rt_stream *st = (struct rt_stream *)(void *)o;
    struct holding *h = arg;
    if (st->context != h->context || st->number == h->number)
        return;
    int r = rt_queue_wait(st, h->number, h->seq);
    if (r && r != CUDA_ERROR_INVALID_HANDLE) /* the stream has just been destroyed */
        h->result = r;
}

CUresult rt_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct rt_context *c;
    struct rt_stream *b;
    int r = enter(hCtx, &c);
    r = r ? r : rt_capture_context_used(c);
    if (r == CUDA_SUCCESS && !rt_event_exists(hEvent))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (r)
        return r;
    if (rt_event_captured(hEvent)) {
        r = rt_event_capture_used(hEvent);
        return r == CUDA_ERROR_CAPTURED_EVENT ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : r;
    }
    pthread_mutex_lock(&lock);
    r = barrier(c, &b);
    r = r ? r : (int)rt_cuStreamWaitEvent(c->barrier, hEvent, 0);
    uint64_t seq = r ? 0 : rt_queue_issued(rt_session, c->barrier_number);
    if (seq && !rt_queue_done(rt_session, c->barrier_number, seq)) {
        struct holding h = { c, c->barrier_number, seq, CUDA_SUCCESS };
        atomic_store_explicit(&c->barrier_seq, seq, memory_order_release);
        rt_table_each(&rt_streams, hold_one, &h);
        r = h.result;
    }
    pthread_mutex_unlock(&lock);
    return r;
}
