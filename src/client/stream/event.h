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
/* Without times, and this process's alone. */
bool rt_event_is_plain(CUevent handle);
/* Other processes may use it, too. */
bool rt_event_shared(CUevent handle);
/* Between rt_queue_begin() and rt_queue_end(), with the graph lock: what cuEventRecord does.
 * CUresult. */
int rt_event_put(CUevent handle, struct rt_stream *st);

/* --- events recorded in a stream that captures ------------------------------------ */

struct rt_event_capture;
/* A hint, without a lock: it was recorded in a capture last. */
bool rt_event_captured(CUevent handle);
/* Graph lock. NULL if it was not. */
const struct rt_event_capture *rt_event_capture(CUevent handle);
/* Graph lock. CUresult. */
int rt_event_capture_set(CUevent handle, uint64_t id, const CUgraphNode *nodes, size_t count);

/* An event that was recorded in a capture is asked about: CUDA_ERROR_CAPTURED_EVENT, in one that is
 * spoilt already CUDA_ERROR_INVALID_VALUE, or CUDA_SUCCESS if it is none. */
int rt_event_capture_used(CUevent event);

/* The context ends. */
void rt_event_destroy_all(struct rt_context *c);

#endif
