/*
 * What the driver says on standard error. When an assertion of a kernel has failed, it writes there
 * which, and the context is at its end. The program whose assertion it was is to see that on its
 * own standard error, as with the driver beside it.
 *
 * Standard error is therefore a pipe to ourselves. All of it goes on to where it went before; what
 * says that an assertion failed is kept as well. The text does not say whose it is: it is given to
 * the program that had work in flight and kernels with assertions, if there is one such. Where
 * there are several, or where programs of several users had work in flight, nobody gets it: it may
 * name what is none of the others' business. It stands in the server's log in any case.
 */
#ifndef GMUX_DEVICE_CUDA_COMPLAINT_H
#define GMUX_DEVICE_CUDA_COMPLAINT_H

#include "device/cuda/state.h"

/* Redirects standard error; our own log goes where it went. 0 or -errno. Once per process. */
GM_MUST_CHECK int cuda_complaint_open(void);
/* The client has launched something of an image that has assertions. Its thread. */
static inline void cuda_complaint_asserts(struct dev_client *c)
{
    atomic_store_explicit(&c->asserts, true, memory_order_relaxed);
}
/* The context has died, and this process is about to end: what the driver has said is read, and
 * given to whom it belongs. */
void cuda_complaint_deliver(struct dev *d);

static inline bool cuda_client_is_busy(const struct dev_client *c)
{
    return atomic_load(&c->submitted) != atomic_load(&c->completed);
}

#endif
