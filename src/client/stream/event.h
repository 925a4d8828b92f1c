/*
 * Events: a point in a stream, as (stream number, sequence number); and for timing a slot in
 * session memory into which the device writes the time.
 */
#ifndef GMUX_CLIENT_STREAM_EVENT_H
#define GMUX_CLIENT_STREAM_EVENT_H

#include "client/stream/context.h"

/* Where the event was last recorded; *seq 0: nowhere, or there was nothing to wait for.
 * CUresult. */
int rt_event_point(CUevent handle, uint32_t *number, uint64_t *seq);

/* If another process recorded the event last, makes `st` wait for that and sets *foreign.
 * CUresult. */
int rt_event_wait_foreign(CUevent handle, struct rt_stream *st, bool *foreign);
bool rt_event_exists(CUevent handle);
/* Whether the event has no times and belongs to this process alone. */
bool rt_event_is_plain(CUevent handle);
/* Whether other processes may use the event, too. */
bool rt_event_shared(CUevent handle);
/* Whether it was recorded by this process, and not in a capture. */
bool rt_event_recorded(CUevent handle);
/* Does what cuEventRecord does. Called between rt_queue_begin() and rt_queue_end(), with the graph
 * lock held. CUresult. */
int rt_event_put(CUevent handle, struct rt_stream *st);

/* --- events recorded in a stream that captures ------------------------------------------------ */

struct rt_event_capture;
/* Whether it was last recorded in a capture. A hint: no lock is needed. */
bool rt_event_captured(CUevent handle);
/* The capture that it was last recorded in; NULL: none. Graph lock held. */
const struct rt_event_capture *rt_event_capture(CUevent handle);
/* Notes that it was recorded in a capture. Graph lock held. CUresult. */
int rt_event_capture_set(CUevent handle, uint64_t id, const CUgraphNode *nodes, size_t count);

/* Called when the program asks about an event. CUDA_ERROR_CAPTURED_EVENT: it was recorded in a
 * capture; CUDA_ERROR_INVALID_VALUE: in one that has ended or is spoilt; CUDA_SUCCESS: in none. */
int rt_event_capture_used(CUevent event);

/* The context ends. */
void rt_event_destroy_all(struct rt_context *c);

#endif
