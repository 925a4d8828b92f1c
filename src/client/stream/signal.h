/*
 * Signals: how far an event has come that several processes use.
 *
 * Functions return CUresult values as int. Any thread.
 */
#ifndef GMUX_CLIENT_STREAM_SIGNAL_H
#define GMUX_CLIENT_STREAM_SIGNAL_H

#include "client/session/ipc.h"
#include "client/stream/context.h"
#include "transport/signal.h"

struct rt_signal_page;

/* Where a shared event keeps how far it has come. */
struct rt_signal {
    struct rt_signal_page *page; /* NULL: it has no signal */
    struct tp_signal *words;
    uint64_t device; /* address of `words` for the device */
    uint32_t slot;
    /* Ring lock: our last record, its queue, and how many records before it were ours in that
     * queue. */
    uint32_t last, queue, run;
};

/* Makes a signal of this process; it is released with the event. */
int rt_signal_create(struct rt_signal *out);
/* Opens a signal of another process. CUDA_ERROR_INVALID_CONTEXT: it is our own. */
int rt_signal_open(const struct rt_ipc_handle *h, struct rt_signal *out);
/* Counts another user of the signal. */
void rt_signal_ref(const struct rt_signal *s);
/* Counts one user less. A signal of another process may be unmapped then; our records in it are
 * done. */
void rt_signal_release(const struct rt_signal *s);
bool rt_signal_is_own(const struct rt_signal *s);
int rt_signal_handle(const struct rt_signal *s, struct rt_ipc_handle *out);

/* Makes the next record, which is done when `st` has come this far. Called between rt_queue_begin()
 * and rt_queue_end(). -EAGAIN: too many are under way; call rt_signal_wait_for_room() first. */
int rt_signal_record(struct rt_signal *s, struct rt_stream *st, uint64_t *seq);
/* Waits until a record can be made. Called outside of rt_queue_begin() and rt_queue_end().
 * CUDA_SUCCESS or the session's error. */
int rt_signal_wait_for_room(const struct rt_signal *s);
/* The last record's number, and whether this process made it. */
uint32_t rt_signal_last(const struct rt_signal *s, bool *own);
/* Whether nobody has to wait for that record any more. */
bool rt_signal_reached(const struct rt_signal *s, uint32_t number);
/* Waits for that record. CUDA_SUCCESS or the session's error. */
int rt_signal_wait(const struct rt_signal *s, uint32_t number);
/* Makes `st` wait for that record. */
int rt_signal_wait_in(const struct rt_signal *s, uint32_t number, struct rt_stream *st);

#endif
