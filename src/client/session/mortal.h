/*
 * Objects of the program that exist only in the device's driver, and are lost with an executor:
 * variables of modules that only the device knows, arrays, textures and surfaces. An executor that
 * takes over reads their number, and fails a program that has any (CUDA_ERROR_LAUNCH_FAILED); other
 * programs go on.
 */
#ifndef GMUX_CLIENT_SESSION_MORTAL_H
#define GMUX_CLIENT_SESSION_MORTAL_H

#include "client/session/session.h"

/* Changes the number by `count`. Any thread. */
static inline void rt_mortal_add(int count)
{
    atomic_fetch_add_explicit(&rt_session->shared.control->mortal, (uint32_t)count,
                              memory_order_relaxed);
}

#endif
