/*
 * Stream capture: while a stream captures, calls on it become nodes of a graph instead of records. Each stream's part in
 * a capture is the set of nodes that its next one will depend on; events carry such sets from stream to stream.
 *
 * What a call costs where nothing is captured: a look at its stream, or for calls without one, at a counter.
 */
#ifndef GMUX_CLIENT_GRAPH_CAPTURE_H
#define GMUX_CLIENT_GRAPH_CAPTURE_H

#include "client/graph/graph.h"
#include "client/memory/fill.h"

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

static inline bool rt_stream_captures(const struct rt_stream *st)
{
    return atomic_load_explicit(&st->capture, memory_order_relaxed) != NULL;
}

/* --- calls that are not captured. CUresult; all take the graph lock -------------------------------------------------- */

GM_COLD int rt_capture_unsafe_slow(void);
/* Calls that may wait for streams behind the program's back: refused while a capture goes on that this thread's mode
 * says they could disturb, and then that capture is spoilt. */
static inline int rt_capture_unsafe(void)
{
    return GM_LIKELY(atomic_load_explicit(&rt_captures, memory_order_relaxed) == 0) ? CUDA_SUCCESS
                                                                                    : rt_capture_unsafe_slow();
}
/* An operation that has no place in a graph meets a stream that captures: the capture is spoilt. */
GM_COLD int rt_capture_refuse(struct rt_stream *st);
/* An operation was refused with `result`: if the stream captures, that spoils the capture. The error to report. */
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
/* An event that was recorded in a capture is asked about: CUDA_ERROR_CAPTURED_EVENT, or CUDA_SUCCESS if it is none. */
int rt_capture_event_used(CUevent event);
/* The stream goes away: a capture that began in it does, too; one that it joined goes on without it. */
void rt_capture_stream_ends(struct rt_stream *st);

/* --- calls that become nodes. CUresult; all take the graph lock ------------------------------------------------------ */

int rt_capture_launch(struct rt_stream *st, const void *function, const struct rt_launch *l,
                      const CUlaunchAttribute *attributes, unsigned count);
int rt_capture_copy(struct rt_stream *st, const struct rt_box *box);
int rt_capture_fill(struct rt_stream *st, const struct rt_fill *fill);
int rt_capture_alloc(struct rt_stream *st, uint64_t size, CUdeviceptr *out);
int rt_capture_free(struct rt_stream *st, CUdeviceptr address);
int rt_capture_host(struct rt_stream *st, CUhostFn fn, void *arg);
/* `external`: as a node. */
int rt_capture_record(struct rt_stream *st, CUevent event, bool external);
/* Either the stream captures or the event was captured. */
int rt_capture_wait(struct rt_stream *st, CUevent event, bool external);
/* Takes over `params`; the graph lock is held already. */
int rt_capture_add_locked(struct rt_stream *st, struct rt_params *params);

/* --- captures. CUresult; the graph lock is held ---------------------------------------------------------------------- */

/* `graph` NULL: a new one. */
int rt_capture_begin(struct rt_stream *st, struct rt_graph *graph, const CUgraphNode *dependencies,
                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode);
int rt_capture_end(struct rt_stream *st, struct rt_graph **out);
/* As rt_capture_refuse(). */
GM_COLD int rt_capture_refuse_locked(struct rt_stream *st);
/* The stream's part, NULL if it does not capture; CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream beside a
 * capture that it would take part in. */
int rt_capture_look(struct rt_stream *st, struct rt_stream_capture **out);
/* Adds nodes to the part's dependencies, or sets them. */
int rt_capture_depend(struct rt_stream_capture *sc, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                      size_t count, bool set);

/* This thread's capture mode. */
extern __thread CUstreamCaptureMode rt_capture_mode;

#endif
