/*
 * Stream capture: while a stream captures, calls on it become nodes of a graph instead of records.
 * Each stream's part in a capture is the set of nodes on which its next node will depend; events
 * carry such sets from stream to stream.
 *
 * This file knows who captures, and what a call that cannot be captured does to a capture. The
 * nodes are made above (graph/capture.h), through rt_hooks.
 *
 * What it costs a call if nothing is captured: a look at its stream or, for calls without a stream,
 * at a counter.
 */
#ifndef GMUX_CLIENT_STREAM_CAPTURE_H
#define GMUX_CLIENT_STREAM_CAPTURE_H

#include "client/entry/hooks.h"
#include "client/stream/context.h"

struct rt_graph;

/* One capture, from cuStreamBeginCapture to cuStreamEndCapture. Graph lock. */
struct rt_capture {
    struct gm_list link;
    struct gm_list streams;
    uint64_t id; /* unique in this process */
    struct rt_graph *graph;
    bool own_graph; /* the capture made it; the program did not provide it */
    struct rt_stream *origin;
    CUstreamCaptureMode mode;
    uint64_t thread; /* the thread that began it */
    bool invalidated;
};

/* A stream's part in a capture. Graph lock; whether there is one may be seen without. */
struct rt_stream_capture {
    struct gm_list link;
    struct rt_capture *capture;
    struct rt_stream *stream;
    CUgraphNode *nodes; /* dependencies of the next node; some may have been destroyed */
    CUgraphEdgeData *edges;
    size_t count, capacity;
};

/* What an event stands for that was recorded in a capturing stream. Graph lock. */
struct rt_event_capture {
    uint64_t id;
    size_t count;
    CUgraphNode nodes[];
};

/* How many captures are going on in this process. */
extern _Atomic unsigned rt_captures;
/* This thread's capture mode. As with NVIDIA's driver it may be any number; one that is no mode
 * counts as the strictest. */
extern __thread CUstreamCaptureMode rt_capture_mode;

static inline bool rt_stream_captures(const struct rt_stream *st)
{
    return atomic_load_explicit(&st->capture, memory_order_relaxed) != NULL;
}

/* The graph lock: one lock for captures, graphs, nodes and executable graphs. It is taken before
 * the ring's lock. Code that may drop a graph while it holds the lock releases it with
 * rt_graph_unlock(). */
void rt_capture_lock(void);
void rt_capture_unlock(void);

/* --- calls that are not captured. CUresult; all take the graph lock --------------------------- */

GM_COLD int rt_capture_unsafe_slow(void);
/* For calls that may wait for streams without the program's knowledge. They are refused while there
 * is a capture that, by this thread's mode, they could disturb; and then that capture is spoilt. */
static inline int rt_capture_unsafe(void)
{
    return GM_LIKELY(atomic_load_explicit(&rt_captures, memory_order_relaxed) == 0)
               ? CUDA_SUCCESS
               : rt_capture_unsafe_slow();
}
/* rt_enter() and rt_enter_plain() for such calls. */
static inline int rt_enter_unsafe(struct rt_context **out)
{
    int r = rt_enter(out);
    return r ? r : rt_capture_unsafe();
}
static inline int rt_enter_plain_unsafe(void)
{
    int r = rt_enter_plain();
    return r ? r : rt_capture_unsafe();
}
GM_COLD int rt_capture_usable_slow(struct rt_stream *st);
/* Whether a call on `st` may look at its other arguments. CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
 * its capture is spoilt. CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: it is the legacy stream beside
 * captures in which it would take part, and which are spoilt by that. */
static inline int rt_capture_usable(struct rt_stream *st)
{
    return GM_LIKELY(!rt_stream_captures(st)) ? CUDA_SUCCESS : rt_capture_usable_slow(st);
}
/* An operation that cannot be in a graph meets a stream that captures: spoils the capture. */
GM_COLD int rt_capture_refuse(struct rt_stream *st);
/* An operation was refused with `result`: if the stream captures, spoils the capture. Returns the
 * error to report. */
GM_COLD int rt_capture_failed(struct rt_stream *st, int result);
/* Called at the beginning of an operation on `st`. Copies and fills that are waited for disturb no
 * capture but that of their own stream. */
static inline int rt_capture_check(struct rt_stream *st, bool synchronous)
{
    return GM_UNLIKELY(synchronous && rt_stream_captures(st)) ? rt_capture_refuse(st)
                                                              : CUDA_SUCCESS;
}
/* Called by cuCtxSynchronize. */
int rt_capture_context_used(struct rt_context *c);

/* --- with the graph lock held ----------------------------------------------------------------- */

/* Makes a capture without streams, in the list of all captures; NULL: no memory. The caller owns
 * the graph. */
struct rt_capture *rt_capture_create(struct rt_stream *origin, struct rt_graph *graph,
                                     CUstreamCaptureMode mode);
/* Ends a capture: all streams leave it. */
void rt_capture_destroy(struct rt_capture *c);
/* Finds a capture; NULL: it has ended. */
struct rt_capture *rt_capture_find(uint64_t id);
/* Whether this thread began it. */
bool rt_capture_is_own(const struct rt_capture *c);

/* The stream's part; NULL: it does not capture. CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: it is the
 * legacy stream, beside a capture in which it would take part. */
int rt_capture_look(struct rt_stream *st, struct rt_stream_capture **out);
/* rt_capture_usable() with the graph lock held, and rt_capture_look(). */
int rt_capture_usable_locked(struct rt_stream *st, struct rt_stream_capture **out);
/* The stream takes part from now on. If it is a blocking one, its context must have a legacy
 * stream. CUresult. */
int rt_capture_join(struct rt_capture *c, struct rt_stream *st, struct rt_stream_capture **out);
void rt_capture_leave(struct rt_stream_capture *sc);

/* Like rt_capture_refuse(), with the graph lock held. */
GM_COLD int rt_capture_refuse_locked(struct rt_stream *st);
/* Spoils the capture in which the stream takes part. Returns the error of a call that would itself
 * report `result`. */
int rt_capture_spoil(struct rt_stream *st, int result);

#endif
