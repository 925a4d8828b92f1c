/*
 * bfloat16 numbers, for host and kernels. Such a number is the upper half of a float; arithmetic is
 * computed in float and rounded.
 */
#ifndef GMUX_CUDA_BF16_H
#define GMUX_CUDA_BF16_H
#define __CUDA_BF16_H__ /* programs look for the toolkit's */

#include "cuda_runtime.h"

/* All that C has of them. */
typedef struct __attribute__((aligned(2))) __nv_bfloat16_raw {
    unsigned short x;
} __nv_bfloat16_raw;
typedef struct __attribute__((aligned(4))) __nv_bfloat162_raw {
    unsigned short x, y;
} __nv_bfloat162_raw;

#ifdef __cplusplus
#include "gmux_small_floats.h"
#include "gmux_small_more.h"

#define GMUX_HD __host__ __device__ static __inline__

GMUX_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat16_raw, gmux_bfloat16_to_float, gmux_float_to_bfloat16)
GMUX_SMALL_VECTOR(__nv_bfloat162, __nv_bfloat16, __nv_bfloat162_raw)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

GMUX_SMALL_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, bfloat16)
GMUX_SMALL_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
GMUX_SMALL_KERNEL_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
GMUX_SMALL_MORE_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)
GMUX_SMALL_MORE_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
GMUX_SMALL_OPERATORS(__nv_bfloat16, __nv_bfloat162)
GMUX_SMALL_MORE_KERNEL_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef GMUX_HD

#endif
#endif
