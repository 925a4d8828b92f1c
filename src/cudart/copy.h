/*
 * What copies of memory and of arrays share (copy.c, copy_array.c).
 */
#ifndef GMUX_CUDART_COPY_H
#define GMUX_CUDART_COPY_H

#include "cudart/cudart.h"

static inline CUdeviceptr address(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

/* Ends a call: waits for `own`, if the copy was queued there. */
static inline cudaError_t finish(CUresult r, cudaStream_t own)
{
    return crt_of(r || !own ? r : cuStreamSynchronize(own));
}

static inline CUmemorytype source_type(enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault)
        return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
                                                                          : CU_MEMORYTYPE_DEVICE;
}

static inline CUmemorytype destination_type(enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault)
        return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
                                                                          : CU_MEMORYTYPE_DEVICE;
}

/* Whether a copy may be to a variable, or from one: it is always on the device. */
static inline bool goes_to_variable(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

static inline bool comes_from_variable(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

/* Nothing is copied then, and nobody looks at what else the call names. */
static inline bool is_empty2d(const CUDA_MEMCPY2D *c)
{
    return c->WidthInBytes == 0 || c->Height == 0;
}

static inline cudaError_t copy2d_async(const CUDA_MEMCPY2D *c, cudaStream_t stream)
{
    return is_empty2d(c) ? cudaSuccess : crt_of(cuMemcpy2DAsync(c, stream));
}

static inline cudaError_t copy2d(const CUDA_MEMCPY2D *c, cudaStream_t own)
{
    if (is_empty2d(c))
        return cudaSuccess;
    return own ? finish(cuMemcpy2DAsync(c, own), own) : crt_of(cuMemcpy2DUnaligned(c));
}

#endif
