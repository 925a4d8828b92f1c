/*
 * Arrays. On a GPU they are objects of its driver, which the executor makes and keeps; this process
 * has their numbers and shapes, and its own handles for them. Where device memory is ordinary
 * memory, an array is an allocation of rows that follow each other (dev_array_place()), and copies
 * with it are ordinary copies.
 *
 * Any thread.
 */
#ifndef GMUX_CLIENT_MEMORY_ARRAY_H
#define GMUX_CLIENT_MEMORY_ARRAY_H

#include "client/stream/context.h"
#include "device/array.h"

struct rt_mipmap;

/* The memory of an array, where arrays are ordinary memory. It exists as long as the array, or a
 * texture of it. */
struct rt_array_memory {
    _Atomic uint32_t users;
    uint64_t address;
    int device;
};

/* An array, or one level of a mipmapped array. */
struct rt_array {
    struct rt_object object;
    struct rt_context *context;
    struct rt_mipmap *mipmap;       /* NULL: it is no level of a mipmapped array */
    uint32_t number;                /* on a GPU: the executor's number of it */
    struct rt_array_memory *memory; /* where arrays are ordinary memory: its memory; else NULL */
    uint32_t level;
    struct dev_array_shape shape; /* for a level: that of the whole mipmapped array */
};

extern struct rt_table rt_arrays;
extern struct rt_table rt_mipmaps;

/* Finds a mipmapped array, as an array whose level has no meaning. False: there is none of that
 * handle. */
bool rt_mipmap_find(CUmipmappedArray handle, struct rt_array *out);

/* rt_array_memory_take() counts another user of the memory; rt_array_memory_release() one less, and
 * with the last one waits for the device and frees the memory. */
void rt_array_memory_take(struct rt_array_memory *m);
int rt_array_memory_release(struct rt_array_memory *m);

/* The error of copies and descriptors for a handle of which rt_array_find() or rt_mipmap_find()
 * knows nothing. Functions about an array itself give CUDA_ERROR_INVALID_HANDLE for NULL, too. */
static inline int rt_array_error(const void *handle)
{
    return handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

static inline struct rt_array *rt_array_find(CUarray handle)
{
    return (struct rt_array *)rt_object_find(&rt_arrays, handle);
}
static inline CUarray rt_array_handle(const struct rt_array *a)
{
    return (CUarray)rt_object_handle(&rt_arrays, &a->object);
}

/* The context ends; nothing of it runs any more, and its textures are gone. */
void rt_array_destroy_all(struct rt_context *c);

#endif
