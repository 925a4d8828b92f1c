/*
 * Arrays, textures and surfaces of a client.
 */
#ifndef GMUX_DEVICE_CUDA_ARRAY_H
#define GMUX_DEVICE_CUDA_ARRAY_H

#include <pthread.h>

#include "device/array.h"
#include "device/cuda/driver.h"
#include "device/device.h"

struct cuda_gpu;

struct cuda_array {
    bool exists;
    bool dying; /* destroyed by the client, while something may have used it */
    struct cuda_gpu *gpu;
    struct dev_array_shape shape;
    CUarray array;           /* either this */
    CUmipmappedArray mipmap; /* or this */
    CUarray *levels;         /* of a mipmapped array: those that were asked for */
    uint64_t bytes;
    uint32_t users; /* textures and surfaces */
};

/* A texture or a surface. */
struct cuda_object {
    bool exists;
    bool surface;
    struct cuda_gpu *gpu;
    uint64_t handle;
    uint32_t array; /* 0: none */
};

/* A client's, each by number - 1. */
struct cuda_arrays {
    struct cuda_array *at;
    uint32_t count, dying;
    pthread_mutex_t lock;
    uint64_t bytes[DEV_DEVICES], limit[DEV_DEVICES]; /* lock */
};

struct cuda_objects {
    struct cuda_object *at;
    uint32_t count, free; /* all below `free` are in use */
};

/* The array with this number; NULL: there is none, or it has no such level. Valid until the next
 * array is made. */
struct cuda_array *cuda_array_find(struct dev_client *c, uint32_t number, uint32_t level);
/* The driver's array of this level, or the array itself if it has no levels. */
CUresult cuda_array_level(struct dev_client *c, struct cuda_array *a, uint32_t level, CUarray *out);

/* Hands a copy with an array to the driver, as cuda_op_submit() does with others. */
void cuda_array_copy(struct dev_queue *q, const struct wire_rec_copy_array *r);

/* The client's arrays on a device may take so much memory. An order's thread. CUresult */
int cuda_array_memory(struct dev_client *c, uint32_t device, uint64_t bytes);

/* At the client's end; both may be called again. Objects are finished first, since they name
 * arrays.
 */
void cuda_objects_finish(struct dev_client *c);
void cuda_arrays_finish(struct dev_client *c);

#endif
