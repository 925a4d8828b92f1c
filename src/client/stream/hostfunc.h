/*
 * Host functions in a stream (cuLaunchHostFunc, cuStreamAddCallback), and waits for conditions that
 * the device does not know. A `gate` record stops the stream on the device. A thread of the
 * library, which is started with the first gate, sees that the stream has come there, runs the
 * function and opens the gate.
 */
#ifndef GMUX_CLIENT_STREAM_HOSTFUNC_H
#define GMUX_CLIENT_STREAM_HOSTFUNC_H

#include "client/stream/context.h"

/* Exactly one of `fn` and `callback` is set; `handle` is what the callback gets as its stream.
 * CUresult. */
int rt_hostfunc_add(struct rt_stream *st, CUhostFn fn, CUstreamCallback callback, CUstream handle,
                    void *arg);
/* Between rt_queue_begin() and rt_queue_end(), after rt_hostfunc_ready(). CUresult. */
int rt_hostfunc_put(struct rt_stream *st, CUhostFn fn, void *arg);
/* Starts the library's thread if it does not run yet. CUresult. */
int rt_hostfunc_ready(void);
/* Whether a host function, or a function of a gate, runs now. */
extern atomic_bool rt_hostfunc_runs;

/* Stops the stream until ready(arg), which is called again and again, returns true. Then, or after
 * an error, end(arg) is called. Both run on the library's thread and must not wait. CUresult; on
 * failure neither is called. */
int rt_gate_add(struct rt_stream *st, bool (*ready)(void *arg), void (*end)(void *arg), void *arg);
/* Like rt_gate_add(), between rt_queue_begin() and rt_queue_end(), after rt_hostfunc_ready(). */
int rt_gate_put(struct rt_stream *st, bool (*ready)(void *arg), void (*end)(void *arg), void *arg);

#endif
