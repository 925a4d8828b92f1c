/*
 * A capture that was spoilt by a call which may not be captured stays until it is ended, and
 * refuses everything meanwhile. The legacy stream waits for every blocking stream. So while one of
 * them captures, the legacy stream has a capture state of its own that refuses work.
 */
#include "client/stream/capture.h"

#include <stdlib.h>

_Atomic unsigned rt_captures;
__thread CUstreamCaptureMode rt_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_list captures = { &captures, &captures };
/* The state of the legacy stream while a blocking stream of its context captures. */
static struct rt_stream_capture implicit;

void rt_capture_lock(void)
{
    pthread_mutex_lock(&lock);
}

void rt_capture_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Addresses of threads are used again, but these numbers are not. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t threads;
    static __thread uint64_t number;
    if (!number)
        number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    return number;
}

struct rt_capture *rt_capture_find(uint64_t id)
{
    gm_list_for_each (c, &captures, struct rt_capture, link)
        if (c->id == id)
            return c;
    return NULL;
}

static struct rt_stream_capture *part_of(const struct rt_stream *st)
{
    return atomic_load_explicit(&st->capture, memory_order_relaxed);
}

/* --- streams' parts --------------------------------------------------------------------------- */

int rt_capture_look(struct rt_stream *st, struct rt_stream_capture **out)
{
    *out = part_of(st);
    if (*out != &implicit)
        return CUDA_SUCCESS;
    *out = NULL;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* Notes whether the context's legacy stream may be used, which depends on whether one of its
 * blocking streams captures. */
static void mark_legacy(struct rt_context *context)
{
    struct rt_stream *legacy = atomic_load_explicit(&context->legacy, memory_order_acquire);
    bool any = false;
    gm_list_for_each (c, &captures, struct rt_capture, link)
        gm_list_for_each (sc, &c->streams, struct rt_stream_capture, link)
            any = any || (sc->stream->context == context && sc->stream->role == RT_ROLE_BLOCKING);
    if (legacy)
        atomic_store_explicit(&legacy->capture, any ? &implicit : NULL, memory_order_relaxed);
}

int rt_capture_join(struct rt_capture *c, struct rt_stream *st, struct rt_stream_capture **out)
{
    struct rt_stream_capture *sc = calloc(1, sizeof(*sc));
    if (!sc)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc->capture = c;
    sc->stream = st;
    gm_list_append(&c->streams, &sc->link);
    atomic_store_explicit(&st->capture, sc, memory_order_relaxed);
    if (st->role == RT_ROLE_BLOCKING)
        mark_legacy(st->context);
    *out = sc;
    return CUDA_SUCCESS;
}

void rt_capture_leave(struct rt_stream_capture *sc)
{
    struct rt_stream *st = sc->stream;
    gm_list_remove(&sc->link);
    atomic_store_explicit(&st->capture, NULL, memory_order_relaxed);
    if (st->role == RT_ROLE_BLOCKING)
        mark_legacy(st->context);
    free(sc->nodes);
    free(sc->edges);
    free(sc);
}

/* --- captures --------------------------------------------------------------------------------- */

struct rt_capture *rt_capture_create(struct rt_stream *origin, struct rt_graph *graph,
                                     CUstreamCaptureMode mode)
{
    static uint64_t ids;
    struct rt_capture *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    *c = (struct rt_capture) {
        .id = ++ids, .graph = graph, .origin = origin, .mode = mode, .thread = this_thread()
    };
    gm_list_init(&c->streams);
    gm_list_append(&captures, &c->link);
    atomic_fetch_add_explicit(&rt_captures, 1, memory_order_relaxed);
    return c;
}

void rt_capture_destroy(struct rt_capture *c)
{
    while (!gm_list_empty(&c->streams))
        rt_capture_leave(gm_list_entry(c->streams.next, struct rt_stream_capture, link));
    gm_list_remove(&c->link);
    free(c);
    atomic_fetch_sub_explicit(&rt_captures, 1, memory_order_relaxed);
}

bool rt_capture_is_own(const struct rt_capture *c)
{
    return c->thread == this_thread();
}

/* --- what spoils captures --------------------------------------------------------------------- */

int rt_capture_unsafe_slow(void)
{
    uint64_t me = this_thread();
    int r = CUDA_SUCCESS;
    if (rt_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    rt_capture_lock();
    gm_list_for_each (c, &captures, struct rt_capture, link) {
        bool mine = c->thread == me && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool everybodys = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                          rt_capture_mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        if (mine || everybodys) {
            c->invalidated = true;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    rt_capture_unlock();
    return r;
}

/* Spoils the captures that have a stream of this context, or only those that have a blocking
 * one. */
static bool spoil_context(struct rt_context *context, bool blocking_only)
{
    bool any = false;
    gm_list_for_each (c, &captures, struct rt_capture, link)
        gm_list_for_each (sc, &c->streams, struct rt_stream_capture, link)
            if (sc->stream->context == context &&
                (!blocking_only || sc->stream->role == RT_ROLE_BLOCKING))
                any = c->invalidated = true;
    return any;
}

int rt_capture_context_used(struct rt_context *context)
{
    if (GM_LIKELY(atomic_load_explicit(&rt_captures, memory_order_relaxed) == 0))
        return CUDA_SUCCESS;
    rt_capture_lock();
    bool any = spoil_context(context, false);
    rt_capture_unlock();
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

int rt_capture_spoil(struct rt_stream *st, int result)
{
    struct rt_stream_capture *sc;
    if (rt_capture_look(st, &sc)) {
        (void)spoil_context(st->context, true);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!sc) /* another thread has just ended the capture */
        return result;
    if (sc->capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    sc->capture->invalidated = true;
    return result;
}

int rt_capture_usable_locked(struct rt_stream *st, struct rt_stream_capture **out)
{
    if (rt_capture_look(st, out))
        return rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return *out && (*out)->capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                                : CUDA_SUCCESS;
}

int rt_capture_usable_slow(struct rt_stream *st)
{
    struct rt_stream_capture *sc;
    rt_capture_lock();
    int r = rt_capture_usable_locked(st, &sc);
    rt_capture_unlock();
    return r;
}

int rt_capture_failed(struct rt_stream *st, int result)
{
    if (!rt_stream_captures(st))
        return result;
    rt_capture_lock();
    int r = rt_capture_spoil(st, result);
    rt_capture_unlock();
    return r;
}

int rt_capture_refuse_locked(struct rt_stream *st)
{
    int r = rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                      : r; /* also if the capture is spoilt */
}

int rt_capture_refuse(struct rt_stream *st)
{
    rt_capture_lock();
    int r = rt_capture_refuse_locked(st);
    rt_capture_unlock();
    return r;
}
