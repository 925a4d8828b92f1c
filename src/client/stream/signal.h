/*
 * Signals: how far an event that several processes use has come.
 *
 * CUresult values as int. Any thread.
 */
#ifndef GMUX_CLIENT_STREAM_SIGNAL_H
#define GMUX_CLIENT_STREAM_SIGNAL_H

#include "client/session/ipc.h"
#include "client/stream/context.h"
#include "transport/signal.h"

struct rt_signal_page;

/* Where an event shared with others keeps how far it has come. */
struct rt_signal {
    struct rt_signal_page *page; /* NULL: no signal */
    struct tp_signal *words;
    uint64_t device; /* address of `words` for the device */
    uint32_t slot;
    /* ring lock: our last record, its queue, and how many before it were ours in that queue */
    uint32_t last, queue, run;
};

/* A new one of this process; given back when the event goes. */
int rt_signal_create(struct rt_signal *out);
/* That of another process. CUDA_ERROR_INVALID_CONTEXT if it is our own. */
int rt_signal_open(const struct rt_ipc_handle *h, struct rt_signal *out);
/* Another user of the same one. */
void rt_signal_ref(const struct rt_signal *s);
/* One of another process may be unmapped by this: records of ours are done. */
void rt_signal_release(const struct rt_signal *s);
bool rt_signal_is_own(const struct rt_signal *s);
int rt_signal_handle(const struct rt_signal *s, struct rt_ipc_handle *out);

/* Between rt_queue_begin() and rt_queue_end(): the next record, done when `st` has come so far.
 * -EAGAIN: too many are under way; rt_signal_wait_for_room() comes first. */
int rt_signal_record(struct rt_signal *s, struct rt_stream *st, uint64_t *seq);
/* Waits until a record can be made. Outside of rt_queue_begin() and rt_queue_end(). CUDA_SUCCESS or
 * the session's error. */
int rt_signal_wait_for_room(const struct rt_signal *s);
/* The last record's number, and whether this process made it. */
uint32_t rt_signal_last(const struct rt_signal *s, bool *own);
/* True if nobody has to wait for that record any more. */
bool rt_signal_reached(const struct rt_signal *s, uint32_t number);
/* Waits for it. CUDA_SUCCESS or the session's error. */
int rt_signal_wait(const struct rt_signal *s, uint32_t number);
/* Makes `st` wait for it. */
int rt_signal_wait_in(const struct rt_signal *s, uint32_t number, struct rt_stream *st);

#endif
