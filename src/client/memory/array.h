/*
 * Arrays: objects of a GPU's own driver, which the executor makes and keeps. This process has their numbers and shapes, and
 * handles of its own for them. On a device whose memory is not apart there are none: CUDA_ERROR_NOT_SUPPORTED.
 *
 * Any thread.
 */
#ifndef GMUX_CLIENT_MEMORY_ARRAY_H
#define GMUX_CLIENT_MEMORY_ARRAY_H

#include "client/stream/context.h"
#include "device/array.h"

struct rt_mipmap;

/* An array, or a level of a mipmapped one. */
struct rt_array {
    struct rt_object object;
    struct rt_context *context;
    struct rt_mipmap *mipmap; /* NULL: an array by itself */
    uint32_t number;          /* the executor's */
    uint32_t level;
    struct dev_array_shape shape; /* the mipmapped array's where it is a level */
};

extern struct rt_table rt_arrays;
extern struct rt_table rt_mipmaps;

/* The executor's number of a mipmapped array; 0 if there is none behind the handle. */
uint32_t rt_mipmap_number(CUmipmappedArray handle);

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
