/*
 * The genuine driver library beside us, in a session on a GPU. It makes no context and does no work
 * there; it answers the two private tables that only it can answer, and says by which handles the
 * program's runtime will name the devices' primary contexts.
 */
#ifndef GMUX_CLIENT_SESSION_COMPANION_H
#define GMUX_CLIENT_SESSION_COMPANION_H

#include "client/entry/dispatch.h"
#include "client/session/session.h"

/* The private table between the runtime library and the driver: the genuine library's, handed on.
 */
#define RT_TABLE_RUNTIME "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9"

/* Loads and initialises it so that it sees the session's devices, in the session's order. Without
 * one, or with one that fails, programs of NVIDIA's runtime library will not start; others do.
 * Once, when the session stands. */
void rt_companion_open(const struct rt_session *s);

/* Around a fork, which waits while the environment is not the program's: that would be the child's.
 */
void rt_companion_fork_prepare(void);
void rt_companion_fork_end(void);

/* Its table, or NULL. */
const void *rt_companion_table(const CUuuid *id);

/* What the genuine library calls a device's primary context; NULL if it is not there. */
CUcontext rt_companion_primary(CUdevice device);

/* The device whose primary context the genuine library calls `handle`, -1 if none. Any thread. */
int rt_companion_device(CUcontext handle);

/* A function of it that needs no context, as a function pointer of `size` bytes in *out. False
 * without one. Any thread. */
bool rt_companion_function(const char *name, void *out, size_t size);

#endif
