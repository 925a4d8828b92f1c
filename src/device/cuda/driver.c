/*
 * Looks up the functions of NVIDIA's library by name.
 */
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "device/genuine/genuine.h"

int cuda_driver_load(struct cuda_driver *d, char *why, size_t why_size)
{
    const char *missing = NULL;
    void *library = dev_genuine_library(why, why_size);
    if (!library)
        return -ENOENT;
#define X(name, class)                                                                             \
    d->name = (__typeof__(d->name))dlsym(library, #name);                                          \
    if (!d->name)                                                                                  \
        missing = #name;
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
    if (!missing)
        return 0;
    (void)snprintf(why, why_size, "the NVIDIA driver has no %s; 12.5 or newer is needed", missing);
    return -ENOENT;
}
