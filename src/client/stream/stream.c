/*
 * Streams: handles, the two default streams, and how to wait for a stream or ask about it. The
 * calls of programs are in stream_api.c.
 */
#include <string.h>

#include "client/stream/coherence.h"
#include "client/stream/context.h"

static int legacy_stream(struct rt_context *c, struct rt_stream **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    *out = atomic_load_explicit(&c->legacy, memory_order_relaxed);
    if (!*out) {
        r = rt_stream_create(c, RT_ROLE_LEGACY, CU_STREAM_DEFAULT, RT_PRIORITY_LEAST, out);
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

static int find(CUstream handle, struct rt_stream **st)
{
    *st = rt_object_find(&rt_streams, handle);
    return *st ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int rt_enter_stream(CUstream handle, struct rt_context **c, struct rt_stream **st)
{
    if (rt_stream_is_default(handle)) {
        int r = rt_enter(c);
        return r ? r : rt_stream_resolve(*c, handle, st);
    }
    int r = rt_enter_any();
    r = r ? r : find(handle, st);
    if (r == CUDA_SUCCESS)
        *c = (*st)->context;
    return r;
}

int rt_enter_stream_query(CUstream handle, struct rt_stream **st)
{
    struct rt_context *c;
    if (rt_stream_is_default(handle))
        return rt_enter_stream(handle, &c, st);
    int r = rt_enter_query();
    return r ? r : find(handle, st);
}

/* What a look at the stream has to wait for at this moment: its own work, and what its role orders
 * before that in other queues. It is a copy, because another stream may get a number the next
 * moment. */
struct snapshot {
    uint32_t number;
    uint64_t issued;
    bool others_any;
    uint64_t others[TP_STREAMS / 64];
    uint64_t seq[TP_STREAMS]; /* for the queues in `others` */
};

/* For the legacy stream: the work of the blocking streams. */
static void note_dirty(const struct rt_context *c, struct snapshot *out)
{
    out->others_any = true;
    for (uint32_t w = 0; w < TP_STREAMS / 64; w++) {
        out->others[w] = c->dirty[w];
        for (uint64_t bits = c->dirty[w]; bits; bits &= bits - 1) {
            uint32_t number = w * 64 + (uint32_t)__builtin_ctzll(bits);
            out->seq[number] = rt_context_dirty(c, number);
        }
    }
}

/* For a blocking stream: the work of the legacy stream. */
static void note_legacy(const struct rt_context *c, struct snapshot *out)
{
    const uint32_t number = rt_context_legacy(c);
    if (number >= TP_STREAMS)
        return;
    out->others_any = true;
    memset(out->others, 0, sizeof(out->others));
    out->others[number / 64] = 1ull << number % 64;
    out->seq[number] = rt_queue_issued(rt_session, number);
}

/* `turn`: also for what new work of the stream would wait for. */
static int take_snapshot(struct rt_stream *st, bool turn, struct snapshot *out)
{
    struct rt_session *s = rt_session;
    out->others_any = false;
    pthread_mutex_lock(&s->ring_lock);
    out->number = st->number;
    if (out->number < TP_STREAMS)
        out->issued = rt_queue_issued(s, out->number);
    if (st->role == RT_ROLE_LEGACY && st->context->dirty_any)
        note_dirty(st->context, out);
    if (st->role == RT_ROLE_BLOCKING && turn)
        note_legacy(st->context, out);
    pthread_mutex_unlock(&s->ring_lock);
    return out->number < TP_STREAMS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Calls look() for each queue of the snapshot until it returns something else than CUDA_SUCCESS. */
static int each_queue(const struct snapshot *snap, const struct tp_wait_policy *policy,
                      int (*look)(uint32_t number, uint64_t issued,
                                  const struct tp_wait_policy *policy))
{
    int r = look(snap->number, snap->issued, policy);
    for (uint32_t w = 0; r == CUDA_SUCCESS && snap->others_any && w < TP_STREAMS / 64; w++) {
        for (uint64_t bits = snap->others[w]; bits && r == CUDA_SUCCESS; bits &= bits - 1) {
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

/* With CU_SYNC_POLICY_AUTO the stream waits as its context does. */
struct tp_wait_policy rt_stream_policy(const struct rt_stream *st)
{
    struct tp_wait_policy policy = st->context->wait;
    unsigned wanted = atomic_load_explicit(&st->sync_policy, memory_order_relaxed);
    if (wanted == CU_SYNC_POLICY_SPIN)
        policy.spin_ns = RT_SPIN_NS;
    else if (wanted == CU_SYNC_POLICY_YIELD)
        policy.spin_ns = 0;
    else if (wanted == CU_SYNC_POLICY_BLOCKING_SYNC)
        policy.spin_ns = policy.yield_ns = 0;
    return policy;
}

static int wait_for(struct rt_stream *st, bool turn)
{
    struct snapshot snap;
    struct tp_wait_policy policy = rt_stream_policy(st);
    int r = take_snapshot(st, turn, &snap);
    r = r ? r : each_queue(&snap, &policy, look_and_wait);
    rt_coherence_acquire();
    return r;
}

int rt_stream_wait(struct rt_stream *st)
{
    return wait_for(st, false);
}

int rt_stream_wait_turn(struct rt_stream *st)
{
    return wait_for(st, true);
}

static int query_for(struct rt_stream *st, bool turn)
{
    struct snapshot snap;
    int r = take_snapshot(st, turn, &snap);
    r = r ? r : each_queue(&snap, NULL, look_only);
    if (r == CUDA_SUCCESS)
        rt_coherence_acquire();
    int error =
        r == CUDA_ERROR_NOT_READY ? rt_session_look(rt_session) : rt_session_error(rt_session);
    return error ? error : r;
}

int rt_stream_query(struct rt_stream *st)
{
    return query_for(st, false);
}

int rt_stream_query_turn(struct rt_stream *st)
{
    return query_for(st, true);
}

int rt_stream_priority(int device, int wanted)
{
    int priority = GM_MIN(wanted, RT_PRIORITY_LEAST);
    return GM_MAX(priority, rt_session->devices[device].priority_greatest);
}
