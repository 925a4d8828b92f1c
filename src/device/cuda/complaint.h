/*
 * What the driver says on standard error. When an assertion of a kernel has failed, the driver
 * writes there which one, and the context ends. The program whose assertion it was is to see that
 * text on its own standard error, as it would without gmux.
 *
 * So standard error is a pipe to ourselves. Everything is passed on to where standard error went
 * before; lines about failed assertions are kept as well. Such a line does not say whose assertion
 * it was. The program gets it that had work in flight and has launched kernels with assertions, if
 * there is exactly one. If there are several, or programs of several users had work in flight,
 * nobody gets it, since it may name things that are none of the others' business. It is in the
 * server's log in any case.
 */
#ifndef GMUX_DEVICE_CUDA_COMPLAINT_H
#define GMUX_DEVICE_CUDA_COMPLAINT_H

#include "device/cuda/state.h"

/* Redirects standard error; our own log goes where it went. 0 or -errno. Once per process. */
GM_MUST_CHECK int cuda_complaint_open(void);
/* The client has launched a kernel of an image with assertions. Its thread. */
static inline void cuda_complaint_asserts(struct dev_client *c)
{
    atomic_store_explicit(&c->asserts, true, memory_order_relaxed);
}
/* The context has died, and this process is about to end: reads what the driver has said and
 * delivers it. */
void cuda_complaint_deliver(struct dev *d);

static inline bool cuda_client_is_busy(const struct dev_client *c)
{
    return atomic_load(&c->submitted) != atomic_load(&c->completed);
}

#endif
