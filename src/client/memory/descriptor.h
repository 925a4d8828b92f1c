/*
 * Textures and surfaces where device memory is ordinary memory: descriptors (struct dev_texture) in
 * memory of the client's, whose addresses are what kernels get.
 *
 * Any thread.
 */
#ifndef GMUX_CLIENT_MEMORY_DESCRIPTOR_H
#define GMUX_CLIENT_MEMORY_DESCRIPTOR_H

#include "client/memory/array.h"
#include "device/texture.h"

/* Room for a descriptor in memory of the device. CUresult. */
int rt_descriptor_take(int device, uint64_t *address);
/* At once; what was issued before may go on with it. */
void rt_descriptor_give(uint64_t address);
/* Writes one; what runs may see the old one or parts of both. */
void rt_descriptor_write(uint64_t address, const struct dev_texture *t);

/* Fills in what is sampled, without the sampler. *memory: the array's memory, NULL: of none; nobody
 * has counted that user yet. CUresult. */
int rt_descriptor_resource(const CUDA_RESOURCE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *view,
                           bool surface, struct dev_texture *out, struct rt_array_memory **memory);
/* Fills in the sampler; the resource stands there. CUresult. */
int rt_descriptor_sampler(const CUDA_TEXTURE_DESC *d, struct dev_texture *out);

#endif
