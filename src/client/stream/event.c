/*
 * An event is a record in its stream, and remembers that record's number. An event with timing is a
 * `stamp`, at which the device writes the time to the event's slot; without timing it is a `mark`.
 * At both the device writes the stream's completion at once, whatever comes after it. No record is
 * made if the last one was a stamp or mark already, or if everything is done.
 *
 * There are fewer slots than a program may have events, but more than there can be stamps that have
 * not been reached. So an event gets a slot when it is recorded, and when no slot is free, the
 * events that have happened keep their times themselves and give theirs back.
 */
#include "client/stream/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/stream/capture.h"
#include "client/stream/coherence.h"
#include "client/stream/event_slot.h"
#include "client/stream/reach.h"
#include "client/stream/signal.h"

struct rt_event {
    struct rt_object object;
    struct rt_context *context;
    unsigned flags;
    struct rt_signal signal; /* for an event that other processes use */
    /* point_lock */
    bool recorded;
    uint32_t number;
    uint64_t seq;
    /* RT_NO_SLOT: `time_ns` has the event's time, if it has any. While the event lives this changes
     * in the ring lock, too. */
    uint32_t slot;
    uint64_t time_ns;
    /* Protected by the graph lock; also read without it. */
    _Atomic(struct rt_event_capture *) capture;
};

static struct rt_table events = RT_TABLE(RT_KIND_EVENT, struct rt_event);
/* No other lock is taken inside this one, which is also taken inside the ring lock. */
static pthread_mutex_t point_lock = PTHREAD_MUTEX_INITIALIZER;

struct point {
    bool recorded;
    uint32_t number;
    uint64_t seq;
};

static bool has_time(const struct rt_event *e)
{
    return !(e->flags & CU_EVENT_DISABLE_TIMING);
}

/* An event that has happened keeps its time itself, so that another one can have its slot. What is
 * read of it counts if it still lives afterwards: another thread may destroy it meanwhile, and
 * clear it for the next event. */
static void keep_time(struct rt_object *o, void *arg)
{
    struct rt_event *e = (struct rt_event *)(void *)o;
    const uint32_t life = rt_object_generation(o);
    uint32_t slot = RT_NO_SLOT;
    (void)arg;
    pthread_mutex_lock(&point_lock);
    const bool happened = e->slot != RT_NO_SLOT && rt_queue_done(rt_session, e->number, e->seq);
    atomic_thread_fence(memory_order_acquire);
    if (happened && (life & 1) && rt_object_generation(o) == life) {
        slot = e->slot;
        e->time_ns = rt_event_slot_time(slot);
        e->slot = RT_NO_SLOT;
    }
    pthread_mutex_unlock(&point_lock);
    if (slot != RT_NO_SLOT)
        rt_event_slot_give(slot, 0, 0);
}

/* Makes the event have a slot; called in the ring lock. CUresult. */
static int slot_ensure(struct rt_event *e)
{
    if (GM_LIKELY(e->slot != RT_NO_SLOT))
        return CUDA_SUCCESS;
    uint32_t slot = rt_event_slot_take();
    if (slot == RT_NO_SLOT) {
        rt_table_each(&events, keep_time, NULL);
        slot = rt_event_slot_take();
    }
    pthread_mutex_lock(&point_lock);
    e->slot = slot;
    pthread_mutex_unlock(&point_lock);
    return slot != RT_NO_SLOT ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Makes the event forget its capture: it was recorded elsewhere, or ends. */
static void forget_capture(struct rt_event *e)
{
    if (GM_LIKELY(!atomic_load_explicit(&e->capture, memory_order_relaxed)))
        return;
    rt_capture_lock();
    free(atomic_exchange_explicit(&e->capture, NULL, memory_order_relaxed));
    rt_capture_unlock();
}

bool rt_event_exists(CUevent handle)
{
    return rt_object_find(&events, handle) != NULL;
}

bool rt_event_is_plain(CUevent handle)
{
    const struct rt_event *e = rt_object_find(&events, handle);
    return e && !e->signal.page && (e->flags & CU_EVENT_DISABLE_TIMING);
}

bool rt_event_shared(CUevent handle)
{
    const struct rt_event *e = rt_object_find(&events, handle);
    return e && e->signal.page;
}

static struct point event_point(struct rt_event *e)
{
    pthread_mutex_lock(&point_lock);
    struct point p = { e->recorded, e->number, e->seq };
    pthread_mutex_unlock(&point_lock);
    return p;
}

bool rt_event_recorded(CUevent handle)
{
    struct rt_event *e = rt_object_find(&events, handle);
    return e && event_point(e).recorded;
}

bool rt_event_captured(CUevent handle)
{
    struct rt_event *e = rt_object_find(&events, handle);
    return e && atomic_load_explicit(&e->capture, memory_order_relaxed) != NULL;
}

const struct rt_event_capture *rt_event_capture(CUevent handle)
{
    struct rt_event *e = rt_object_find(&events, handle);
    return e ? atomic_load_explicit(&e->capture, memory_order_relaxed) : NULL;
}

int rt_event_capture_set(CUevent handle, uint64_t id, const CUgraphNode *nodes, size_t count)
{
    struct rt_event *e = rt_object_find(&events, handle);
    struct rt_event_capture *c = malloc(sizeof(*c) + count * sizeof(*nodes));
    if (!e || !c) {
        free(c);
        return e ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE;
    }
    c->id = id;
    c->count = count;
    if (count)
        memcpy(c->nodes, nodes, count * sizeof(*nodes));
    free(atomic_exchange_explicit(&e->capture, c, memory_order_relaxed));
    return CUDA_SUCCESS;
}

/* Why the event of a capture cannot be asked for anything; `spoils`: that spoils the capture. */
static int capture_error(CUevent event, bool spoils)
{
    int r = CUDA_SUCCESS;
    if (GM_LIKELY(!rt_event_captured(event)))
        return r;
    rt_capture_lock();
    const struct rt_event_capture *ec = rt_event_capture(event);
    if (ec) {
        struct rt_capture *c = rt_capture_find(ec->id);
        r = !c || c->invalidated ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CAPTURED_EVENT;
        if (c && spoils)
            c->invalidated = true;
    }
    rt_capture_unlock();
    return r;
}

int rt_event_capture_used(CUevent event)
{
    return capture_error(event, true);
}

static void event_destroy(struct rt_event *e)
{
    forget_capture(e);
    pthread_mutex_lock(&point_lock);
    const uint32_t slot = e->slot;
    e->slot = RT_NO_SLOT;
    pthread_mutex_unlock(&point_lock);
    if (slot != RT_NO_SLOT)
        rt_event_slot_give(slot, e->number, e->recorded ? e->seq : 0);
    if (e->signal.page) {
        if (e->recorded &&
            !rt_signal_is_own(&e->signal)) { /* the device may still store into the page */
            (void)rt_session_wait(rt_session, e->number, e->seq, NULL);
            (void)rt_reach_wait(1u << e->context->device);
        }
        rt_signal_release(&e->signal);
    }
    rt_object_release(&events, &e->object);
}

static void end_event(struct rt_object *o, void *arg)
{
    struct rt_event *e = (struct rt_event *)(void *)o;
    if (e->context == arg)
        event_destroy(e);
}

void rt_event_destroy_all(struct rt_context *c)
{
    rt_table_each(&events, end_event, c);
}

int rt_event_point(CUevent handle, uint32_t *number, uint64_t *seq)
{
    struct rt_event *e = rt_object_find(&events, handle);
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    struct point p = event_point(e);
    *number = p.number;
    *seq = p.recorded ? p.seq : 0;
    return CUDA_SUCCESS;
}

static int find(CUevent handle, struct rt_context **c, struct rt_event **e)
{
    *e = rt_object_find(&events, handle);
    if (!*e)
        return CUDA_ERROR_INVALID_HANDLE;
    *c = (*e)->context;
    return CUDA_SUCCESS;
}

static int enter(CUevent handle, struct rt_context **c, struct rt_event **e)
{
    int r = find(handle, c, e);
    return r ? r : rt_enter_any();
}

/* Like enter(), for a call that asks whether the event has happened; `looks`: and does not wait. */
static int enter_waiting(CUevent handle, struct rt_context **c, struct rt_event **e, bool looks)
{
    int r = find(handle, c, e);
    r = r ? r : looks ? rt_enter_query() : rt_enter_any();
    r = r ? r : rt_event_capture_used(handle);
    return r ? r : rt_capture_unsafe();
}

/* Whether another process recorded the event last. Then *mark says which record that was. */
static bool is_foreign(const struct rt_event *e, uint32_t *mark)
{
    bool own = true;
    if (!e->signal.page)
        return false;
    *mark = rt_signal_last(&e->signal, &own);
    return *mark && !own;
}

int rt_event_wait_foreign(CUevent handle, struct rt_stream *st, bool *foreign)
{
    struct rt_event *e = rt_object_find(&events, handle);
    uint32_t mark;
    *foreign = e && is_foreign(e, &mark);
    return *foreign ? rt_signal_wait_in(&e->signal, mark, st) : CUDA_SUCCESS;
}

/* --- entry points ----------------------------------------------------------------------------- */

CUresult rt_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!phEvent || (Flags & ~known) ||
        ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_event *e = rt_object_take(&events);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->context = rt_context_owner(c);
    e->flags = Flags;
    e->slot = RT_NO_SLOT;
    if (Flags & CU_EVENT_INTERPROCESS)
        r = rt_signal_create(&e->signal);
    if (r) {
        rt_object_release(&events, &e->object);
        return r;
    }
    rt_object_publish(&e->object);
    *phEvent = (CUevent)rt_object_handle(&events, &e->object);
    return CUDA_SUCCESS;
}

CUresult rt_cuEventDestroy_v2(CUevent hEvent)
{
    struct rt_context *c;
    struct rt_event *e;
    int r = enter(hEvent, &c, &e);
    if (r)
        return r;
    event_destroy(e);
    return CUDA_SUCCESS;
}

CUresult rt_cuEventDestroy(CUevent hEvent)
{
    return rt_cuEventDestroy_v2(hEvent);
}

/* Called between rt_queue_begin() and rt_queue_end(). CUresult, or -EAGAIN: an event that other
 * processes use has no room yet. */
static int put(struct rt_event *e, struct rt_stream *st)
{
    uint64_t seq = 0;
    int r = CUDA_SUCCESS;
    uint32_t number = st->number;
    struct rt_queue *queue = &rt_session->queues[number % TP_STREAMS];
    if (number >= TP_STREAMS) {
        r = CUDA_ERROR_INVALID_HANDLE;
    } else if (e->signal.page) {
        r = rt_signal_record(&e->signal, st, &seq);
    } else if (has_time(e)) {
        r = slot_ensure(e);
        if (r)
            return r;
        struct wire_rec_stamp stamp = { .head.op = WIRE_OP_STAMP, .event = e->slot };
        r = rt_queue_put(st, &stamp.head, sizeof(stamp), NULL, 0, &seq);
        queue->point = seq;
    } else {
        seq = rt_queue_issued(rt_session, number);
        if (seq != queue->point && !rt_queue_done(rt_session, number, seq)) {
            struct wire_rec_mark mark = { .head.op = WIRE_OP_MARK };
            r = rt_queue_put(st, &mark.head, sizeof(mark), NULL, 0, &seq);
            queue->point = seq;
        }
    }
    if (r)
        return r;
    pthread_mutex_lock(&point_lock);
    e->recorded = true;
    e->number = number;
    e->seq = seq;
    pthread_mutex_unlock(&point_lock);
    return CUDA_SUCCESS;
}

int rt_event_put(CUevent handle, struct rt_stream *st)
{
    struct rt_event *e = rt_object_find(&events, handle);
    if (!e || e->signal.page)
        return CUDA_ERROR_INVALID_HANDLE;
    free(atomic_exchange_explicit(&e->capture, NULL, memory_order_relaxed));
    return put(e, st);
}

static int record(struct rt_event *e, struct rt_stream *st)
{
    int r;
    forget_capture(e);
    for (;;) {
        r = rt_queue_begin(st);
        if (r)
            return r;
        r = put(e, st);
        rt_queue_end();
        if (GM_LIKELY(r != -EAGAIN))
            return r;
        r = rt_signal_wait_for_room(&e->signal);
        if (r)
            return r;
    }
}

CUresult rt_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    struct rt_context *c;
    struct rt_event *e;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    r = r ? r : find(hEvent, &c, &e);
    if (r)
        return r;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags && !rt_stream_captures(st)) /* only a captured record can be an external one */
        return CUDA_ERROR_ILLEGAL_STATE;
    if (rt_context_owner(st->context) != e->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return e->signal.page ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                              : rt_hooks.capture_record(st, hEvent, flags);
    return record(e, st);
}

CUresult rt_cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return rt_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult rt_cuEventQuery(CUevent hEvent)
{
    uint32_t mark;
    struct rt_context *c;
    struct rt_event *e;
    int r = enter_waiting(hEvent, &c, &e, true);
    if (r)
        return r;
    struct point p = event_point(e);
    if (is_foreign(e, &mark) ? rt_signal_reached(&e->signal, mark)
                             : !p.recorded || rt_queue_done(rt_session, p.number, p.seq)) {
        rt_coherence_acquire();
        return CUDA_SUCCESS;
    }
    int error = rt_session_look(rt_session);
    return error ? error : CUDA_ERROR_NOT_READY;
}

CUresult rt_cuEventSynchronize(CUevent hEvent)
{
    uint32_t mark;
    struct rt_context *c;
    struct rt_event *e;
    int r = enter_waiting(hEvent, &c, &e, false);
    if (r)
        return r;
    struct tp_wait_policy policy = c->wait;
    if (e->flags & CU_EVENT_BLOCKING_SYNC)
        policy.spin_ns = policy.yield_ns = 0;
    struct point p = event_point(e);
    if (is_foreign(e, &mark))
        r = rt_signal_wait(&e->signal, mark);
    else
        r = p.recorded ? rt_session_wait(rt_session, p.number, p.seq, &policy) : CUDA_SUCCESS;
    rt_coherence_acquire();
    if (r == CUDA_SUCCESS)
        rt_hooks.synchronized();
    return r;
}

/* Returns the device's time of an event with timing that has happened. CUresult. */
static int event_time(CUevent handle, uint64_t *ns)
{
    struct rt_event *e = rt_object_find(&events, handle);
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    int r = capture_error(handle, false);
    if (r)
        return r;
    struct point p = event_point(e);
    if (!has_time(e) || !p.recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!rt_queue_done(rt_session, p.number, p.seq))
        return CUDA_ERROR_NOT_READY;
    pthread_mutex_lock(&point_lock);
    *ns = e->slot != RT_NO_SLOT ? rt_event_slot_time(e->slot) : e->time_ns;
    pthread_mutex_unlock(&point_lock);
    return CUDA_SUCCESS;
}

CUresult rt_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    uint64_t start, end;
    int r = rt_event_exists(hStart) && rt_event_exists(hEnd) ? rt_enter_any()
                                                             : CUDA_ERROR_INVALID_HANDLE;
    if (r)
        return r;
    r = event_time(hStart, &start);
    int r2 = event_time(hEnd, &end);
    if (r || r2)
        return r == CUDA_ERROR_INVALID_HANDLE || !r2 ? r : r2;
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_HANDLE;
    *pMilliseconds = (float)((double)(int64_t)(end - start) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult rt_cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return rt_cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/* --- events of several processes -------------------------------------------------------------- */

CUresult rt_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    struct rt_context *c;
    struct rt_event *e;
    struct rt_ipc_handle h;
    int r = enter(event, &c, &e);
    if (r)
        return r;
    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    /* An event that another process made is not passed on. */
    if (!e->signal.page || !rt_signal_is_own(&e->signal))
        return CUDA_ERROR_INVALID_HANDLE;
    r = rt_signal_handle(&e->signal, &h);
    if (r == CUDA_SUCCESS)
        memcpy(pHandle, &h, sizeof(h));
    return r;
}

CUresult rt_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct rt_context *c;
    struct rt_ipc_handle h;
    int r = rt_enter(&c);
    if (r)
        return r;
    memcpy(&h, &handle, sizeof(h));
    if (!phEvent)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_ipc_handle_is(&h, RT_IPC_EVENT))
        return CUDA_ERROR_MAP_FAILED;
    struct rt_event *e = rt_object_take(&events);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->context = rt_context_owner(c);
    e->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    e->slot = RT_NO_SLOT;
    r = rt_signal_open(&h, &e->signal);
    if (r) {
        rt_object_release(&events, &e->object);
        return r;
    }
    rt_object_publish(&e->object);
    *phEvent = (CUevent)rt_object_handle(&events, &e->object);
    return CUDA_SUCCESS;
}
