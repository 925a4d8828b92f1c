/*
 * Events: a point in a stream, kept as (stream number, sequence number), and for timing a slot in
 * session memory that the device writes the time to.
 */
#ifndef GMUX_CLIENT_STREAM_EVENT_H
#define GMUX_CLIENT_STREAM_EVENT_H

#include "client/stream/context.h"

/* Where the event was last recorded; *seq 0: nowhere, or nothing was there to wait for. CUresult.
 */
int rt_event_point(CUevent handle, uint32_t *number, uint64_t *seq);

/* Where the event was last recorded by another process, makes `st` wait for that and sets *foreign.
 * CUresult. */
int rt_event_wait_foreign(CUevent handle, struct rt_stream *st, bool *foreign);
bool rt_event_exists(CUevent handle);
/* Other processes may use it, too. */
/* Without times, and this process's alone. */
bool rt_event_is_plain(CUevent handle);
bool rt_event_shared(CUevent handle);
/* Between rt_queue_begin() and rt_queue_end(), with the graph lock: what cuEventRecord does.
 * CUresult. */
int rt_event_put(CUevent handle, struct rt_stream *st);

/* --- events recorded in a stream that captures (capture.c) ------------------------------------ */

struct rt_event_capture;
/* A hint, without a lock: it was recorded in a capture last. */
bool rt_event_captured(CUevent handle);
/* Graph lock. NULL if it was not. */
const struct rt_event_capture *rt_event_capture(CUevent handle);
/* Graph lock. CUresult. */
int rt_event_capture_set(CUevent handle, uint64_t id, const CUgraphNode *nodes, size_t count);

/* The context ends. */
void rt_event_destroy_all(struct rt_context *c);

#endif
