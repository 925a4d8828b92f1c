/*
 * What an executor that takes over has to learn from us, and what is lost with the one before: modules' functions are told
 * again; variables of modules that only the device knows, arrays, textures and surfaces were the device's own. A program
 * that has any of those gets an error that sticks, at the next call that would find them gone; others go on.
 */
#ifndef GMUX_CLIENT_RESUME_H
#define GMUX_CLIENT_RESUME_H

#include "client/session.h"

/* Of the executor that this process has settled with. */
extern _Atomic uint32_t rt_resumed_generation;

GM_COLD int rt_resume_now(void);

/* Before anything goes to the executor that names what it has to know: CUDA_SUCCESS, or the session's error. The locks of
 * lookups and calls are not held. */
static inline int rt_resume(void)
{
    return GM_LIKELY(rt_session_generation(rt_session) == rt_resumed_generation) ? 0 : rt_resume_now();
}

/* So many things more (or less) that die with the executor. Any thread. */
void rt_mortal_add(int count);

#endif
