/*
 * A client's modules; what it asks about one is in lookup.c.
 */
#ifndef GMUX_DEVICE_CUDA_MODULE_H
#define GMUX_DEVICE_CUDA_MODULE_H

#include "device/cuda/state.h"

int cuda_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                     uint32_t kind, struct dev_module **out, struct dev_module_info *info);
int cuda_module_place(struct dev_module *m, uint64_t globals_address, bool initialise);
void cuda_module_unload(struct dev_module *m);

/* Lets a function have so much dynamic shared memory; what it may not have, its launch will say. */
void cuda_function_dynamic(struct cuda_gpu *g, struct cuda_function *f, uint32_t bytes);

#endif
