/*
 * Arrays. On a GPU they are objects of its driver, which the executor makes and keeps: this process
 * has their numbers and shapes, and handles of its own for them. Where device memory is ordinary
 * memory, an array is an allocation like any other, of rows one after the other
 * (dev_array_place()), and copies with it are copies between memory.
 *
 * Any thread.
 */
#ifndef GMUX_CLIENT_MEMORY_ARRAY_H
#define GMUX_CLIENT_MEMORY_ARRAY_H

#include "client/stream/context.h"
#include "device/array.h"

struct rt_mipmap;

/* What an array consists of where it is ordinary memory: as long as the array or a texture of it is
 * there. */
struct rt_array_memory {
    _Atomic uint32_t users;
    uint64_t address;
    int device;
};

/* An array, or a level of a mipmapped one. */
struct rt_array {
    struct rt_object object;
    struct rt_context *context;
    struct rt_mipmap *mipmap;       /* NULL: an array by itself */
    uint32_t number;                /* the executor's name for it, where it is the device's */
    struct rt_array_memory *memory; /* what it is made of where it is memory; else NULL */
    uint32_t level;
    struct dev_array_shape shape; /* the mipmapped array's where it is a level */
};

extern struct rt_table rt_arrays;
extern struct rt_table rt_mipmaps;

/* A mipmapped array as an array, of which the level says nothing; false if there is none behind the
 * handle. */
bool rt_mipmap_find(CUmipmappedArray handle, struct rt_array *out);

/* Another user of the memory, and one less; the last one waits for the device and gives the memory
 * back. */
void rt_array_memory_take(struct rt_array_memory *m);
int rt_array_memory_release(struct rt_array_memory *m);

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
