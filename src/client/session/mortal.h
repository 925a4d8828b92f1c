/*
 * Things of the program that only the device's driver has, and that are lost with an executor:
 * variables of modules that only the device knows, arrays, textures and surfaces. An executor that
 * takes over looks at their number and fails a program that has any (CUDA_ERROR_LAUNCH_FAILED);
 * others go on.
 */
#ifndef GMUX_CLIENT_SESSION_MORTAL_H
#define GMUX_CLIENT_SESSION_MORTAL_H

#include "client/session/session.h"

/* So many more, or less. Any thread. */
static inline void rt_mortal_add(int count)
{
    atomic_fetch_add_explicit(&rt_session->shared.control->mortal, (uint32_t)count,
                              memory_order_relaxed);
}

#endif
