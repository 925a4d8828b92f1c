/*
 * Our CUDA runtime library (libcudart.so.12 and .13), written against the driver API and nothing
 * else, so that it runs on our driver library and on NVIDIA's. It is compiled once for each major
 * version (CUDART_VERSION), because their types differ.
 *
 * Functions are written as crt_NAME and return an error. The exported ones (entry.c, which is
 * generated from cudart.api) first make sure that there is a context, and note the thread's last
 * error. All of them may be called on any thread.
 */
#ifndef GMUX_CUDART_CUDART_H
#define GMUX_CUDART_CUDART_H

#include <cuda.h>
#include <stdbool.h>

#include "cudart/include/driver_types.h"
#include "declare.h"

/* Turns an error of the driver into one of the runtime, which has the same number. */
static inline cudaError_t crt_of(CUresult r)
{
    return (cudaError_t)r;
}

/* Makes sure that the thread has a context: its current one, or else the primary context of its
 * device. */
cudaError_t crt_enter(void);
/* Notes the result of a call as the thread's last error, and returns it. */
cudaError_t crt_done(cudaError_t r);
/* Checks that there is a driver, and that it is new enough. */
cudaError_t crt_driver(void);
/* The device of the current context. */
CUdevice crt_device(void);
/* Number of devices that the driver has. */
cudaError_t crt_device_count(int *count);
/* Gives up the device's primary context. Calls `forget` if no other primary context is in use. */
cudaError_t crt_reset(int device, void (*forget)(void));

/* Gives the calling thread so many bytes, zeroed, to which its variable *at points until the thread
 * ends; it is NULL before and after that. NULL: there is no memory. */
void *crt_thread_memory(void **at, size_t size);

/* The kernel, or the variable, that the program registered with this address. Errors: one of those
 * of crt_is_no_kernel(), cudaErrorInvalidSymbol, or the reason why its image was not loaded. */
cudaError_t crt_kernel(const void *host, CUkernel *out);
cudaError_t crt_function(const void *host, CUfunction *out);
/* Nothing was registered with the address, or its image has no such kernel. */
static inline bool crt_is_no_kernel(cudaError_t r)
{
    return r == cudaErrorInvalidDeviceFunction || r == cudaErrorInvalidResourceHandle;
}
/* From now on the program may use this kernel, of a library that it has loaded, in place of one of
 * its own; until it is forgotten, with its library or with all (NULL). */
cudaError_t crt_note_kernel(CUkernel kernel, CUlibrary library);
void crt_forget_kernels(CUlibrary library);
/* The address by which the program knows a kernel that it launched before; NULL: there is none. */
void *crt_host(CUfunction function, CUkernel kernel);
cudaError_t crt_variable(const void *host, CUdeviceptr *address, size_t *size);
/* The address of `count` bytes from `offset` on in a variable. cudaErrorInvalidValue: the variable
 * is shorter. */
cudaError_t crt_part(const void *symbol, size_t count, size_t offset, void **out);

/* Unloads all images. They are loaded again when they are needed, with the initial values of their
 * variables. */
void crt_forget_images(void);

/* Translates an array's channels to the driver's format, and back. */
cudaError_t crt_format(const struct cudaChannelFormatDesc *d, CUarray_format *format,
                       unsigned *channels);
void crt_channels(CUarray_format format, unsigned channels, struct cudaChannelFormatDesc *d);
unsigned crt_format_size(CUarray_format format);
/* Translates a copy to the driver's struct. */
cudaError_t crt_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
/* Translates a kernel node to the driver's struct. */
cudaError_t crt_kernel_node(const struct cudaKernelNodeParams *in, CUDA_KERNEL_NODE_PARAMS *out);
/* A copy of `size` consecutive bytes. */
struct cudaMemcpy3DParms crt_row(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind);

#endif
