/*
 * Kernels of libraries (library.h) as functions of a context. The driver loads a function when it
 * is first wanted.
 */
#ifndef GMUX_DEVICE_CUDA_KERNEL_H
#define GMUX_DEVICE_CUDA_KERNEL_H

#include "device/cuda/library.h"

/* The function of a kernel in the context that the client has on this GPU, which is current
 * afterwards. The first one to ask has it loaded; for that it may have to wait (admit.h), and the
 * client may change to the other context meanwhile (fallback.h). The client's thread. */
CUresult cuda_library_function(struct dev_client *c, uint32_t device, struct cuda_library *l,
                               CUkernel k, CUfunction *out);
/* Finds f->handle in this way, and sets f->loaded if the function can be launched without
 * waiting. */
CUresult cuda_library_find(struct dev_client *c, uint32_t device, struct cuda_library *l,
                           struct cuda_function *f);
/* Finds the function of a kernel that is launched next, and waits for room for its local memory,
 * too (local.h). */
CUresult cuda_library_launch(struct dev_client *c, uint32_t device, struct cuda_library *l,
                             CUkernel k, CUfunction *out);
/* The function, if it is loaded already and there is room for it; else NULL. Does not wait. The
 * client's thread. */
CUfunction cuda_library_known(struct dev_client *c, struct cuda_gpu *g, struct cuda_library *l,
                              CUkernel k);
/* The client has come back to this context, which is current and at a safe point: loads one kernel
 * of each of its libraries, so that loading the others does not wait. */
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
