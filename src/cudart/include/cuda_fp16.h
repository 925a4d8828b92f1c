/*
 * Half-precision numbers, for host and kernels. Arithmetic is computed in float and rounded.
 */
#ifndef GMUX_CUDA_FP16_H
#define GMUX_CUDA_FP16_H
#define __CUDA_FP16_H__ /* programs look for the toolkit's */

#include "cuda_runtime.h"

/* All that C has of them. */
typedef struct __attribute__((aligned(2))) __half_raw {
    unsigned short x;
} __half_raw;
typedef struct __attribute__((aligned(4))) __half2_raw {
    unsigned short x, y;
} __half2_raw;

#ifdef __cplusplus
#include "gmux_small_floats.h"
#include "gmux_small_more.h"

#define GMUX_HD __host__ __device__ static __inline__

GMUX_SMALL_FLOAT(__half, __half_raw, gmux_half_to_float, gmux_float_to_half)
GMUX_SMALL_VECTOR(__half2, __half, __half2_raw)
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

GMUX_SMALL_CONVERSIONS(__half, __half2, __half_raw, half)
GMUX_SMALL_FUNCTIONS(__half, __half2)
GMUX_SMALL_KERNEL_FUNCTIONS(__half, __half2)
GMUX_SMALL_MORE_CONVERSIONS(__half, __half2, half)
GMUX_SMALL_MORE_FUNCTIONS(__half, __half2)
GMUX_SMALL_OPERATORS(__half, __half2)
GMUX_SMALL_MORE_KERNEL_FUNCTIONS(__half, __half2)
#undef GMUX_HD

#endif
#endif
