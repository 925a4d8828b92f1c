/*
 * Host functions in a stream (cuLaunchHostFunc, cuStreamAddCallback), and waits for what the device
 * does not know of. A `gate` record stops the stream on the device; a thread of the library,
 * started with the first of them, sees it arrive, runs the function and opens the gate.
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

/* Stops the stream until ready(arg) is true; it is looked at again and again. Then, or after an
 * error, end(arg) is called. Both run on the library's thread and do not wait. CUresult; on failure
 * neither is called. */
int rt_gate_add(struct rt_stream *st, bool (*ready)(void *arg), void (*end)(void *arg), void *arg);
/* As above, between rt_queue_begin() and rt_queue_end(), after rt_hostfunc_ready(). */
int rt_gate_put(struct rt_stream *st, bool (*ready)(void *arg), void (*end)(void *arg), void *arg);

#endif
