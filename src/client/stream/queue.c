/*
 * Here work enters the ring. One lock covers both the choice of a sequence number and the writing,
 * so that each stream's records are in the ring in the order of their numbers. A launch shares
 * nothing but this lock with other threads. It is held for as long as it takes to copy some hundred
 * bytes, unless the ring is full.
 */
#include "client/stream/capture.h"
#include "client/stream/coherence.h"
#include "client/stream/reach.h"

#include <errno.h>
#include <stdlib.h>

atomic_uint rt_pages_here, rt_pages_stale;

static int ring_result(int r)
{
    if (r == 0)
        return CUDA_SUCCESS;
    if (r > 0)
        return r; /* the watchdog's error */
    tp_session_fail(&rt_session->shared, CUDA_ERROR_MPS_RPC_FAILURE, 0);
    return rt_session_error(rt_session);
}

int rt_queue_put(struct rt_stream *st, struct wire_record *head, size_t head_size, const void *tail,
                 size_t tail_size, uint64_t *seq)
{
    struct rt_session *s = rt_session;
    uint32_t number = st->number;
    if (GM_UNLIKELY(number >= TP_STREAMS))
        return CUDA_ERROR_INVALID_HANDLE; /* another thread has just destroyed the stream */
    uint64_t next = atomic_load_explicit(&s->queues[number].issued, memory_order_relaxed) + 1;
    head->flags = 0;
    head->size = (uint32_t)(head_size + tail_size);
    head->stream = number;
    head->reserved = 0;
    head->seq = next;
    int r = tp_ring_write(&s->ring, head, head_size, tail, tail_size, &s->patient);
    if (GM_UNLIKELY(r != 0))
        return ring_result(r);
    if (GM_UNLIKELY(s->device_count > 1) && rt_reach_is_abroad(head, s->queues[number].device))
        atomic_store_explicit(&s->queues[number].abroad, next, memory_order_release);
    atomic_store_explicit(&s->queues[number].issued, next, memory_order_release);
    if (st->role == RT_ROLE_BLOCKING) {
        struct rt_context *c = st->context;
        c->dirty[number / 64] |= 1ull << number % 64;
        c->dirty_any = true;
    }
    if (seq)
        *seq = next;
    return CUDA_SUCCESS;
}

/* So many bytes at most are written at once, so that the device can begin before the rest is
 * written. */
#define RUN_BYTES (32u << 10)

/* Makes as many of the records at `at` as fit members of one run. Returns their size in bytes.
 * *abroad is how many there are up to the last one that uses another device's memory. */
static size_t make_run(const struct rt_queue *queue, uint8_t *at, size_t bytes, uint32_t *count,
                       uint32_t *abroad)
{
    size_t used = 0;
    *abroad = 0;
    for (*count = 0; used < bytes; ++*count) {
        struct wire_record *head = (struct wire_record *)(void *)(at + used);
        size_t size = gm_padded(head->size);
        if (*count && used + size > RUN_BYTES)
            break;
        if (GM_UNLIKELY(rt_session->device_count > 1) && rt_reach_is_abroad(head, queue->device))
            *abroad = *count + 1;
        head->flags = 0;
        head->stream = 0;
        head->reserved = 0;
        head->seq = 0;
        used += size;
    }
    return used;
}

int rt_queue_put_run(struct rt_stream *st, void *records, size_t bytes)
{
    struct rt_session *s = rt_session;
    uint32_t number = st->number;
    if (GM_UNLIKELY(number >= TP_STREAMS))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t next = atomic_load_explicit(&s->queues[number].issued, memory_order_relaxed) + 1;
    if (bytes && st->role == RT_ROLE_BLOCKING) {
        st->context->dirty[number / 64] |= 1ull << number % 64;
        st->context->dirty_any = true;
    }
    for (uint8_t *at = records, *end = at + bytes; at < end;) {
        struct wire_record *first = (struct wire_record *)(void *)at;
        uint32_t count, abroad;
        size_t size = make_run(&s->queues[number], at, (size_t)(end - at), &count, &abroad);
        struct wire_rec_run run = { .head = { .op = WIRE_OP_RUN,
                                              .size = (uint32_t)(sizeof(run) + size),
                                              .stream = number,
                                              .seq = next },
                                    .count = count };
        int r;
        if (count > 1) {
            r = tp_ring_write(&s->ring, &run.head, sizeof(run), at, size, &s->patient);
        } else {
            first->stream = number;
            first->seq = next;
            r = tp_ring_write(&s->ring, first, first->size, NULL, 0, &s->patient);
        }
        if (GM_UNLIKELY(r != 0))
            return ring_result(r);
        if (abroad)
            atomic_store_explicit(&s->queues[number].abroad, next + abroad - 1,
                                  memory_order_release);
        next += count;
        atomic_store_explicit(&s->queues[number].issued, next - 1, memory_order_release);
        at += size;
    }
    return CUDA_SUCCESS;
}

int rt_queue_put_wait(struct rt_stream *st, uint32_t other, uint64_t seq)
{
    if (other == st->number || rt_queue_done(rt_session, other, seq))
        return CUDA_SUCCESS;
    struct wire_rec_wait r = { .head.op = WIRE_OP_WAIT, .other = other, .other_seq = seq };
    return rt_queue_put(st, &r.head, sizeof(r), NULL, 0, NULL);
}

/* Makes a blocking stream wait for the work of the legacy stream. */
static int order_after_legacy(struct rt_stream *st)
{
    const uint32_t number = rt_context_legacy(st->context);
    if (number >= TP_STREAMS)
        return CUDA_SUCCESS;
    uint64_t issued = rt_queue_issued(rt_session, number);
    if (GM_LIKELY(issued <= st->legacy_seen))
        return CUDA_SUCCESS;
    int r = rt_queue_put_wait(st, number, issued);
    if (r == CUDA_SUCCESS)
        st->legacy_seen = issued;
    return r;
}

uint64_t rt_context_dirty(const struct rt_context *c, uint32_t number)
{
    const struct rt_session *s = rt_session;
    bool own = atomic_load_explicit(&s->queues[number].context, memory_order_relaxed) == c->id;
    return own ? rt_queue_issued(s, number) : 0;
}

/* Makes the legacy stream wait for the work of the blocking streams. */
static int order_after_blocking(struct rt_stream *legacy)
{
    struct rt_context *c = legacy->context;
    for (uint32_t w = 0; w < TP_STREAMS / 64; w++) {
        while (c->dirty[w]) {
            uint32_t number = w * 64 + (uint32_t)__builtin_ctzll(c->dirty[w]);
            int r = rt_queue_put_wait(legacy, number, rt_context_dirty(c, number));
            if (r != CUDA_SUCCESS)
                return r;
            c->dirty[w] &= c->dirty[w] - 1;
        }
    }
    c->dirty_any = false;
    return CUDA_SUCCESS;
}

int rt_queue_begin(struct rt_stream *st)
{
    int r = CUDA_SUCCESS;
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_capture_refuse(st);
    pthread_mutex_lock(&rt_session->ring_lock);
    while (GM_UNLIKELY(atomic_load(&rt_pages_here)) && st->role != RT_ROLE_OWN) {
        pthread_mutex_unlock(&rt_session->ring_lock);
        r = rt_hooks.pages_release();
        if (r)
            return r;
        pthread_mutex_lock(&rt_session->ring_lock);
    }
    if (st->role == RT_ROLE_BLOCKING)
        r = order_after_legacy(st);
    else if (st->role == RT_ROLE_LEGACY && st->context->dirty_any)
        r = order_after_blocking(st);
    if (GM_UNLIKELY(r != CUDA_SUCCESS))
        pthread_mutex_unlock(&rt_session->ring_lock);
    return r;
}

void rt_queue_end(void)
{
    pthread_mutex_unlock(&rt_session->ring_lock);
}

int rt_queue_submit(struct rt_stream *st, struct wire_record *head, size_t head_size,
                    const void *tail, size_t tail_size)
{
    int r = rt_queue_begin(st);
    if (GM_UNLIKELY(r != CUDA_SUCCESS))
        return r;
    r = rt_queue_put(st, head, head_size, tail, tail_size, NULL);
    rt_queue_end();
    return r;
}

int rt_queue_wait(struct rt_stream *st, uint32_t number, uint64_t seq)
{
    int r = rt_queue_begin(st);
    if (r)
        return r;
    r = rt_queue_put_wait(st, number, seq);
    rt_queue_end();
    return r;
}

/* --- stream numbers --------------------------------------------------------------------------- */

/* So many numbers are not for streams that a program makes. A kernel that is used for the first
 * time, and a default stream, find one however many streams there are. */
#define NUMBERS_KEPT 64u

static uint32_t numbers(const struct rt_session *s, bool kept)
{
    const uint32_t all = GM_MIN(s->shared.streams_count, TP_STREAMS);
    return kept || all <= NUMBERS_KEPT ? all : all - NUMBERS_KEPT;
}

/* Takes a number for the server's device `device`, after the work of its last user is done. Returns
 * -EAGAIN, with the number to wait for in *wait_for, if none is free yet, or -ENOSPC if all numbers
 * are in use, or were used on other devices. Called with the ring lock held. */
static int number_take(struct rt_session *s, uint32_t device, bool kept, uint32_t *out,
                       uint32_t *wait_for)
{
    __typeof__(&s->queues_free[0]) list = &s->queues_free[device];
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_relaxed);
    uint32_t oldest = list->first;
    if (list->count && rt_queue_done(s, oldest, rt_queue_issued(s, oldest))) {
        list->first = s->queues[oldest].next;
        list->count--;
        *out = oldest;
        return 0;
    }
    if (used < numbers(s, kept)) {
        *out = used;
        s->queues[used].device = device;
        atomic_store_explicit(&s->shared.streams[used].device, device, memory_order_relaxed);
        atomic_store_explicit(&s->queues_used, used + 1, memory_order_release);
        return 0;
    }
    *wait_for = oldest;
    return list->count ? -EAGAIN : -ENOSPC;
}

static void number_give(struct rt_session *s, uint32_t number)
{
    __typeof__(&s->queues_free[0]) list = &s->queues_free[s->queues[number].device];
    if (list->count)
        s->queues[list->last].next = (uint16_t)number;
    else
        list->first = (uint16_t)number;
    list->last = (uint16_t)number;
    list->count++;
}

/* Takes a number, and waits for one if necessary. CUresult. */
static int number_wait(struct rt_session *s, uint32_t device, bool kept, uint32_t *out)
{
    uint32_t busy = 0;
    int r, error = CUDA_SUCCESS;
    pthread_mutex_lock(&s->ring_lock);
    while (error == CUDA_SUCCESS && (r = number_take(s, device, kept, out, &busy)) == -EAGAIN) {
        pthread_mutex_unlock(&s->ring_lock);
        error = rt_session_wait(s, busy, rt_queue_issued(s, busy), NULL);
        pthread_mutex_lock(&s->ring_lock);
    }
    pthread_mutex_unlock(&s->ring_lock);
    return error ? error : r < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

int rt_stream_create_bare(int device, int priority, struct rt_stream **out)
{
    struct rt_stream *st = calloc(1, sizeof(*st));
    int r = st ? number_wait(rt_session, rt_session->devices[device].index, true, &st->number)
               : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        free(st);
        return r;
    }
    st->role = RT_ROLE_NON_BLOCKING;
    st->priority = priority;
    atomic_store_explicit(&rt_session->shared.streams[st->number].priority, priority,
                          memory_order_relaxed);
    *out = st;
    return CUDA_SUCCESS;
}

/* Gives the number to the context. Its last user's work is done, so the legacy stream need not look
 * at that again. */
static void number_assign(struct rt_session *s, uint32_t number, struct rt_context *c)
{
    pthread_mutex_lock(&s->ring_lock);
    c->dirty[number / 64] &= ~(1ull << number % 64);
    atomic_store_explicit(&s->queues[number].context, c->id, memory_order_release);
    pthread_mutex_unlock(&s->ring_lock);
}

/* Makes a new stream wait for the events of cuCtxWaitEvent of its context. */
static int wait_as_context(struct rt_stream *st)
{
    struct rt_context *c = st->context;
    uint64_t seq = atomic_load_explicit(&c->barrier_seq, memory_order_acquire);
    return seq && !rt_queue_done(rt_session, c->barrier_number, seq)
               ? rt_queue_wait(st, c->barrier_number, seq)
               : CUDA_SUCCESS;
}

int rt_stream_create(struct rt_context *c, enum rt_role role, unsigned flags, int priority,
                     struct rt_stream **out)
{
    static _Atomic uint64_t ids = 1;
    struct rt_session *s = rt_session;
    struct rt_stream *st = rt_object_take(&rt_streams);
    uint32_t number = 0;

    if (!st)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const bool made = role == RT_ROLE_BLOCKING || role == RT_ROLE_NON_BLOCKING;
    int r = number_wait(s, s->devices[c->device].index, !made, &number);
    if (r) {
        rt_object_release(&rt_streams, &st->object);
        return r;
    }
    st->context = c;
    st->context_generation = rt_object_generation(&c->object);
    st->number = number;
    st->role = role;
    st->flags = flags;
    st->priority = priority;
    st->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
    number_assign(s, number, c);
    atomic_store_explicit(&s->shared.streams[number].priority, priority, memory_order_relaxed);
    atomic_store_explicit(&s->shared.streams[number].part, c->part, memory_order_relaxed);
    rt_object_publish(&st->object);
    r = wait_as_context(st);
    if (GM_UNLIKELY(r))
        rt_stream_destroy(st);
    *out = st;
    return r;
}

void rt_stream_destroy(struct rt_stream *st)
{
    struct rt_session *s = rt_session;
    struct wire_rec_retire r = { .head.op = WIRE_OP_RETIRE };

    if (GM_UNLIKELY(rt_stream_captures(st)))
        rt_hooks.capture_stream_ends(st);
    pthread_mutex_lock(&s->ring_lock);
    if (st->number < TP_STREAMS) {
        bool idle = rt_queue_done(s, st->number, rt_queue_issued(s, st->number));
        /* The device does not know a stream that never had a record: nothing has to be retired. */
        if (rt_queue_issued(s, st->number) != 0)
            (void)rt_queue_put(st, &r.head, sizeof(r), NULL, 0, NULL);
        if (idle) /* its end is no work: the legacy stream is as ready as it was before */
            st->context->dirty[st->number / 64] &= ~(1ull << st->number % 64);
        number_give(s, st->number);
        st->number = TP_STREAMS;
    }
    pthread_mutex_unlock(&s->ring_lock);
    rt_object_release(&rt_streams, &st->object);
}
