/*
 * What is mapped in a client's window (range.h), and which GPUs may touch it. Orders about memory,
 * where nothing else is said.
 */
#ifndef GMUX_DEVICE_CUDA_MEMORY_H
#define GMUX_DEVICE_CUDA_MEMORY_H

#include "device/cuda/state.h"

int cuda_memory_map(struct dev_client *c, uint64_t address, uint64_t size);
int cuda_memory_attach(struct dev_client *c, uint64_t address, uint64_t size, int fd,
                       uint64_t offset, uint32_t device, uint32_t access);
void cuda_memory_unmap(struct dev_client *c, uint64_t address, uint64_t size);
int cuda_client_peer(struct dev_client *c, uint32_t device, uint32_t peer, bool enabled);

/* --- the client's end ------------------------------------------------------------------------ */

/* Both unpin memory, at a safe point of all contexts, since it is mapped in all of them. */
void cuda_unpin(struct dev *d, void *memory);
void cuda_pinned_unmap(struct dev_client *c, const struct cuda_range *r);
/* Unmaps all device memory of the client. Does not wait. */
void cuda_device_unmap(struct dev_client *c);

#endif
