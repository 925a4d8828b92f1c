/*
 * Context-local storage: values that NVIDIA's libraries keep with a context, under keys of theirs.
 * They reach it through a private table (client/export_table.c), which has the first three
 * functions. A context of NULL means the current one. Any thread.
 */
#ifndef GMUX_CLIENT_STREAM_LOCAL_H
#define GMUX_CLIENT_STREAM_LOCAL_H

#include "client/stream/context.h"

typedef void rt_local_destructor(CUcontext handle, void *key, void *value);

/* Replaces the key's value. `destructor` may be NULL. */
CUresult rt_local_put(CUcontext handle, void *key, void *value, rt_local_destructor *destructor);
/* Removes the key's value without calling the destructor. */
CUresult rt_local_delete(CUcontext handle, void *key);
/* CUDA_ERROR_INVALID_HANDLE: there is no value. */
CUresult rt_local_get(void **value, CUcontext handle, void *key);

/* The context is destroyed or reset: calls the destructors of all values. */
void rt_local_destroy_all(struct rt_context *c);

#endif
