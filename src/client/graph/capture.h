/*
 * Stream capture: makes nodes of calls on a stream that captures. stream/capture.h knows which
 * streams capture.
 */
#ifndef GMUX_CLIENT_GRAPH_CAPTURE_H
#define GMUX_CLIENT_GRAPH_CAPTURE_H

#include "client/graph/graph.h"
#include "client/memory/fill.h"
#include "client/stream/capture.h"

/* --- for rt_hooks, which says what they do. CUresult; all take the graph lock ----------------- */

int rt_capture_launch(struct rt_stream *st, const void *function, const struct rt_launch *l,
                      const CUlaunchAttribute *attributes, unsigned count);
int rt_capture_copy(struct rt_stream *st, const struct rt_box *box);
int rt_capture_fill(struct rt_stream *st, const struct rt_fill *fill);
int rt_capture_alloc(struct rt_stream *st, uint64_t size, CUdeviceptr *out);
int rt_capture_free(struct rt_stream *st, CUdeviceptr address);
int rt_capture_host(struct rt_stream *st, CUhostFn fn, void *arg);
int rt_capture_memops(struct rt_stream *st, const CUstreamBatchMemOpParams *ops, unsigned count,
                      unsigned flags);
int rt_capture_record(struct rt_stream *st, CUevent event, bool external);
int rt_capture_wait(struct rt_stream *st, CUevent event, bool external);
void rt_capture_stream_ends(struct rt_stream *st);

/* --- captures. CUresult; the graph lock is held ----------------------------------------------- */

/* Takes over `params`. */
int rt_capture_add_locked(struct rt_stream *st, struct rt_params *params);
/* `graph` NULL: a new one. */
int rt_capture_begin(struct rt_stream *st, struct rt_graph *graph, const CUgraphNode *dependencies,
                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode);
int rt_capture_end(struct rt_stream *st, struct rt_graph **out);
/* Adds nodes to the part's dependencies, or sets them. */
int rt_capture_depend(struct rt_stream_capture *sc, const CUgraphNode *nodes,
                      const CUgraphEdgeData *edges, size_t count, bool set);

#endif
