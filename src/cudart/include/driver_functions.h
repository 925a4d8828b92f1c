/* make_cudaExtent() and similar functions. */
#ifndef GMUX_CUDA_DRIVER_FUNCTIONS_H
#define GMUX_CUDA_DRIVER_FUNCTIONS_H

#include "driver_types.h"

static __inline__ __host__ struct cudaPitchedPtr make_cudaPitchedPtr(void *d, size_t p, size_t xsz,
                                                                     size_t ysz)
{
    struct cudaPitchedPtr v = { d, p, xsz, ysz };
    return v;
}

static __inline__ __host__ struct cudaPos make_cudaPos(size_t x, size_t y, size_t z)
{
    struct cudaPos v = { x, y, z };
    return v;
}

static __inline__ __host__ struct cudaExtent make_cudaExtent(size_t w, size_t h, size_t d)
{
    struct cudaExtent v = { w, h, d };
    return v;
}

#endif
