/*
 * Stream capture: while a stream captures, calls on it become nodes of a graph instead of records.
 * Each stream's part in a capture is the set of nodes that its next one will depend on; events
 * carry such sets from stream to stream.
 *
 * Here is who captures, and what a call that cannot be captured does to a capture. The nodes are
 * made above (graph/capture.h), by way of rt_hooks.
 *
 * What a call costs where nothing is captured: a look at its stream, or for calls without one, at a
 * counter.
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
    uint64_t id; /* never used twice in a process */
    struct rt_graph *graph;
    bool own_graph; /* made by the capture, not brought by the program */
    struct rt_stream *origin;
    CUstreamCaptureMode mode;
    uint64_t thread; /* that began it */
    bool invalidated;
};

/* A stream's part in one. Graph lock; that there is one may be seen without. */
struct rt_stream_capture {
    struct gm_list link;
    struct rt_capture *capture;
    struct rt_stream *stream;
    CUgraphNode *nodes; /* the next one's dependencies; some may have been destroyed */
    CUgraphEdgeData *edges;
    size_t count, capacity;
};

/* What an event recorded in a capturing stream stands for. Graph lock. */
struct rt_event_capture {
    uint64_t id;
    size_t count;
    CUgraphNode nodes[];
};

/* Captures going on in this process. */
extern _Atomic unsigned rt_captures;
/* This thread's capture mode. */
extern __thread CUstreamCaptureMode rt_capture_mode;

static inline bool rt_stream_captures(const struct rt_stream *st)
{
    return atomic_load_explicit(&st->capture, memory_order_relaxed) != NULL;
}

/* The graph lock: one for captures, graphs, nodes and executable graphs. It comes before the ring's
 * lock. Who may drop a graph in it unlocks with rt_graph_unlock(). */
void rt_capture_lock(void);
void rt_capture_unlock(void);

/* --- calls that are not captured. CUresult; all take the graph lock --------------------------- */

GM_COLD int rt_capture_unsafe_slow(void);
/* Calls that may wait for streams behind the program's back: refused while a capture goes on that
 * this thread's mode says they could disturb, and then that capture is spoilt. */
static inline int rt_capture_unsafe(void)
{
    return GM_LIKELY(atomic_load_explicit(&rt_captures, memory_order_relaxed) == 0)
               ? CUDA_SUCCESS
               : rt_capture_unsafe_slow();
}
/* An operation that has no place in a graph meets a stream that captures: the capture is spoilt. */
GM_COLD int rt_capture_refuse(struct rt_stream *st);
/* An operation was refused with `result`: if the stream captures, that spoils the capture. The
 * error to report. */
GM_COLD int rt_capture_failed(struct rt_stream *st, int result);
/* What a synchronous call on `st` begins with. */
static inline int rt_capture_check(struct rt_stream *st, bool synchronous)
{
    if (GM_LIKELY(!synchronous))
        return CUDA_SUCCESS;
    return GM_UNLIKELY(rt_stream_captures(st)) ? rt_capture_refuse(st) : rt_capture_unsafe();
}
/* cuCtxSynchronize. */
int rt_capture_context_used(struct rt_context *c);

/* --- with the graph lock held ----------------------------------------------------------------- */

/* A new capture without streams, in the list of all; NULL: out of memory. The graph is the
 * caller's. */
struct rt_capture *rt_capture_create(struct rt_stream *origin, struct rt_graph *graph,
                                     CUstreamCaptureMode mode);
/* All streams leave it. */
void rt_capture_destroy(struct rt_capture *c);
/* NULL if it has ended. */
struct rt_capture *rt_capture_find(uint64_t id);
/* This thread began it. */
bool rt_capture_is_own(const struct rt_capture *c);

/* The stream's part, NULL if it does not capture; CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy
 * stream beside a capture that it would take part in. */
int rt_capture_look(struct rt_stream *st, struct rt_stream_capture **out);
/* The stream takes part from now on. If it is a blocking one, its context has a legacy stream.
 * CUresult. */
int rt_capture_join(struct rt_capture *c, struct rt_stream *st, struct rt_stream_capture **out);
void rt_capture_leave(struct rt_stream_capture *sc);

/* As rt_capture_refuse(). */
GM_COLD int rt_capture_refuse_locked(struct rt_stream *st);
/* Spoils what the stream takes part in: the error of a call that would report `result` itself. */
int rt_capture_spoil(struct rt_stream *st, int result);

#endif
