/*
 * Questions that only the device can answer: a record in the ring, an answer in session memory. One
 * at a time per process, in a stream of their own, so that no stream of the program is ever waited
 * for.
 *
 *     struct rt_call c;
 *     rt_call_begin(&c, WIRE_CALL_FUNCTION_NAMES, module);
 *     wire_put_...(&c.args, ...);
 *     int r = rt_call_run(&c);
 *     if (r == CUDA_SUCCESS)
 *         wire_get_...(&c.reply, ...);
 *     r = rt_call_end(&c, r);
 */
#ifndef GMUX_CLIENT_STREAM_CALL_H
#define GMUX_CLIENT_STREAM_CALL_H

#include "client/session/session.h"

struct rt_call {
    /* The server's number of the device that is asked; the first device, unless the caller sets
     * it. */
    uint32_t device;
    uint32_t function;
    uint32_t module;
    struct wire_enc args;
    struct wire_dec reply; /* reads a private copy, which is valid until rt_call_end() */
};

/* Takes the lock of calls. `module`: its number, 0 for none. */
void rt_call_begin(struct rt_call *c, uint32_t function, uint32_t module);
/* Asks and waits. CUresult: the answer's, or the session's. */
int rt_call_run(struct rt_call *c);
/* Releases the lock. Returns `result`; or CUDA_ERROR_UNKNOWN if that is a success and the reply was
 * malformed. */
int rt_call_end(struct rt_call *c, int result);

#endif
