/*
 * Events: a point in a stream, kept as (stream number, sequence number), and for timing a slot in session memory that
 * the device writes the time to.
 */
#ifndef GMUX_CLIENT_EVENT_H
#define GMUX_CLIENT_EVENT_H

#include "client/context.h"

/* Where the event was last recorded; *seq 0: nowhere, or nothing was there to wait for. CUresult. */
int rt_event_point(CUevent handle, uint32_t *number, uint64_t *seq);

/* Where the event was last recorded by another process, makes `st` wait for that and sets *foreign. CUresult. */
int rt_event_wait_foreign(CUevent handle, struct rt_stream *st, bool *foreign);

/* The context ends. */
void rt_event_destroy_all(struct rt_context *c);

#endif
