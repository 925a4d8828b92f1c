/*
 * Linking for a client, and for the device itself.
 */
#ifndef GMUX_DEVICE_CUDA_LINK_H
#define GMUX_DEVICE_CUDA_LINK_H

#include "device/cuda/state.h"

/* Forgets the link that is being made. Nothing else of the client runs. */
void cuda_link_finish(struct dev_client *c);
/* Compiles PTX for the GPU whose context is current; the caller frees the machine code. Any thread.
 * CUresult. */
int cuda_link_text(struct dev *d, const void *text, size_t size, void **cubin, size_t *cubin_size);

#endif
