/*
 * Our CUDA runtime library (libcudart.so.12, .13): the runtime API over the driver API and nothing
 * else, so that it runs on our driver library and on NVIDIA's. It is compiled once per major
 * version (CUDART_VERSION), whose types differ.
 *
 * Functions are written as crt_NAME and answer an error; what is exported (entry.c, generated)
 * makes sure of a context first, and keeps the last error of the thread.
 */
#ifndef GMUX_CUDART_CUDART_H
#define GMUX_CUDART_CUDART_H

#include <cuda.h>
#include <stdbool.h>

#include "cudart/include/driver_types.h"
#include "declare.h"

/* Errors of the driver have the same numbers here. */
static inline cudaError_t crt_of(CUresult r)
{
    return (cudaError_t)r;
}

/* A call that needs a context: the thread's current one, or the primary one of its device. */
cudaError_t crt_enter(void);
/* Notes the result of a call as the thread's last error; returns it. */
cudaError_t crt_done(cudaError_t r);
/* The driver is there and new enough. */
cudaError_t crt_driver(void);
/* The device of the current context. */
CUdevice crt_device(void);
/* Number of devices that the driver has. */
cudaError_t crt_device_count(int *count);
/* Gives the device's primary context up. `forget` is called if no other one is in use. */
cudaError_t crt_reset(int device, void (*forget)(void));

/* The kernel, or variable, that a program means by an address of its own. Errors:
 * cudaErrorInvalidDeviceFunction, cudaErrorInvalidSymbol, or why its image was not loaded. */
cudaError_t crt_kernel(const void *host, CUkernel *out);
cudaError_t crt_function(const void *host, CUfunction *out);
/* A kernel of a library that the program has loaded can stand for one of its own from here on,
 * until it is forgotten: with its library, or with all (NULL). */
cudaError_t crt_note_kernel(CUkernel kernel, CUlibrary library);
void crt_forget_kernels(CUlibrary library);
/* The address by which the program means a kernel that it launched before; NULL if there is none.
 */
void *crt_host(CUfunction function, CUkernel kernel);
cudaError_t crt_variable(const void *host, CUdeviceptr *address, size_t *size);
/* The address of `count` bytes from `offset` in a variable; cudaErrorInvalidValue if it ends
 * before. */
cudaError_t crt_part(const void *symbol, size_t count, size_t offset, void **out);

/* Unloads all images; they are loaded again when they are wanted, with the first values of their
 * variables. */
void crt_forget_images(void);

/* An array's channels in the driver's words, and back. */
cudaError_t crt_format(const struct cudaChannelFormatDesc *d, CUarray_format *format,
                       unsigned *channels);
void crt_channels(CUarray_format format, unsigned channels, struct cudaChannelFormatDesc *d);
unsigned crt_format_size(CUarray_format format);
/* A copy in the driver's words. */
cudaError_t crt_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
/* A node of a graph in the driver's words. */
cudaError_t crt_kernel_node(const struct cudaKernelNodeParams *in, CUDA_KERNEL_NODE_PARAMS *out);
/* A copy of bytes in a row. */
struct cudaMemcpy3DParms crt_row(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind);

#endif
