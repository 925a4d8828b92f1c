/*
 * Context-local storage: what NVIDIA's libraries keep with a context, each value under a key of
 * theirs. They reach it through a private table (client/export_table.c), whose functions the first
 * three are. A context's handle of NULL means the current one. Any thread.
 */
#ifndef GMUX_CLIENT_STREAM_LOCAL_H
#define GMUX_CLIENT_STREAM_LOCAL_H

#include "client/stream/context.h"

typedef void rt_local_destructor(CUcontext handle, void *key, void *value);

/* Replaces the key's value. `destructor` may be NULL. */
CUresult rt_local_put(CUcontext handle, void *key, void *value, rt_local_destructor *destructor);
/* Without calling the destructor. */
CUresult rt_local_delete(CUcontext handle, void *key);
/* CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult rt_local_get(void **value, CUcontext handle, void *key);

/* The context is destroyed or reset: destructors get their values. */
void rt_local_destroy_all(struct rt_context *c);

#endif
