/*
 * The genuine driver library beside ours, in a session on a GPU. It makes no context and does no
 * work. It provides the two private tables that only it can provide, and tells which handles the
 * program's runtime uses for the devices' primary contexts.
 */
#ifndef GMUX_CLIENT_SESSION_COMPANION_H
#define GMUX_CLIENT_SESSION_COMPANION_H

#include "client/entry/dispatch.h"
#include "client/session/session.h"

/* The private table between the runtime library and the driver. It is the genuine library's, and is
 * handed on. */
#define RT_TABLE_RUNTIME "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9"

/* Loads and initialises the library so that it sees the session's devices, in the session's order.
 * Without it, programs with NVIDIA's runtime library do not start; others do. Called once, when the
 * session exists. */
void rt_companion_open(const struct rt_session *s);

/* Called around a fork, which waits while the environment is changed, since the child would inherit
 * that. */
void rt_companion_fork_prepare(void);
void rt_companion_fork_end(void);

/* The genuine library's table, or NULL. */
const void *rt_companion_table(const CUuuid *id);

/* The genuine library's handle for a device's primary context; NULL: there is no such library. */
CUcontext rt_companion_primary(CUdevice device);

/* The device whose primary context has this handle in the genuine library; -1: none. Any thread. */
int rt_companion_device(CUcontext handle);

/* Gets a function of the library that needs no context, as a function pointer of `size` bytes in
 * *out. False: there is none. Any thread. */
bool rt_companion_function(const char *name, void *out, size_t size);

#endif
