/*
 * Kernels of libraries (library.h) as functions of a context, which the driver loads when they are
 * first wanted.
 */
#ifndef GMUX_DEVICE_CUDA_KERNEL_H
#define GMUX_DEVICE_CUDA_KERNEL_H

#include "device/cuda/library.h"

/* The function of a kernel in the client's context of that GPU. The first one to ask has it loaded,
 * for which it may have to wait (admit.h), and the client may change to the other context meanwhile
 * (fallback.h). Its context is current afterwards. The client's thread. */
CUresult cuda_library_function(struct dev_client *c, uint32_t device, struct cuda_library *l,
                               CUkernel k, CUfunction *out);
/* As above, for f->handle; f->loaded is set if the function can be launched. */
CUresult cuda_library_find(struct dev_client *c, uint32_t device, struct cuda_library *l,
                           struct cuda_function *f);
/* As cuda_library_function(), for a kernel that is launched next: there is room for it in the
 * context, too (local.h). */
CUresult cuda_library_launch(struct dev_client *c, uint32_t device, struct cuda_library *l,
                             CUkernel k, CUfunction *out);
/* The function if it has been loaded already and there is room for it; else NULL. Does not wait.
 * The client's thread. */
CUfunction cuda_library_known(struct dev_client *c, struct cuda_gpu *g, struct cuda_library *l,
                              CUkernel k);
/* The client has come back to this context, which is current and at a safe point: loads something
 * of each of its libraries, so that loading the rest does not wait. */
void cuda_libraries_follow(struct dev_client *c, struct cuda_gpu *g);
/* Finds a variable of the library, loading it as cuda_library_function() does. CUresult. */
CUresult cuda_library_variable(struct dev_client *c, uint32_t device, struct cuda_library *l,
                               const char *name, CUdeviceptr *address, size_t *size);

/* Lets launches of a kernel that is loaded in this GPU's primary context have at least so much
 * dynamic shared memory. False: the driver refused. */
bool cuda_library_raise_dynamic(struct cuda_gpu *g, CUkernel kernel, uint32_t bytes);
/* Lets launches of a function have at least so much dynamic shared memory, in its own context. */
void cuda_kernel_allow(const struct dev *d, CUfunction f, uint32_t bytes);

#endif
