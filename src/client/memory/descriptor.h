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

/* Allocates a descriptor in memory of the device. CUresult. */
int rt_descriptor_take(int device, uint64_t *address);
/* Frees a descriptor at once; work issued before may still use its memory. */
void rt_descriptor_give(uint64_t address);
/* Writes a descriptor. Kernels that run may see the old one, or parts of both. */
void rt_descriptor_write(uint64_t address, const struct dev_texture *t);

/* Fills in the sampled resource, without the sampler. *memory: the array's memory, of which the
 * caller has to count another user; NULL: there is none. CUresult. */
int rt_descriptor_resource(const CUDA_RESOURCE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *view,
                           bool surface, struct dev_texture *out, struct rt_array_memory **memory);
/* Fills in the sampler of a descriptor that has its resource already. CUresult. */
int rt_descriptor_sampler(const CUDA_TEXTURE_DESC *d, struct dev_texture *out);

#endif
