/*
 * 6-bit numbers, for host and kernels: e2m3 (7.5 at most) and e3m2 (28 at most), each in a byte of
 * its own. There are no infinity and no NaN: what is too large becomes the largest number, and NaN
 * the largest positive one. They are storage formats: to compute, a program converts them.
 */
#ifndef GMUX_CUDA_FP6_H
#define GMUX_CUDA_FP6_H
#define __CUDA_FP6_H__ /* programs look for the toolkit's */

#include "cuda_fp8.h"

typedef __nv_fp8_storage_t __nv_fp6_storage_t;
typedef __nv_fp8x2_storage_t __nv_fp6x2_storage_t;
typedef __nv_fp8x4_storage_t __nv_fp6x4_storage_t;
typedef enum __nv_fp6_interpretation_t { __NV_E2M3, __NV_E3M2 } __nv_fp6_interpretation_t;

#ifdef __cplusplus
#define __CUDA_FP6_TYPES_EXIST__
#define GMUX_HD __host__ __device__ static __inline__
#define GMUX_M  __host__ __device__ __inline__

GMUX_HD __nv_fp6_storage_t __nv_cvt_float_to_fp6(const float f,
                                                 const __nv_fp6_interpretation_t kind,
                                                 const enum cudaRoundMode mode)
{
    const int exponent = kind == __NV_E2M3 ? 2 : 3;
    return (__nv_fp6_storage_t)gmux_float_to_tiny(f, exponent, 5 - exponent, 0x1f, 0x1f, 0x1f,
                                                  mode);
}

GMUX_HD __half_raw __nv_cvt_fp6_to_halfraw(const __nv_fp6_storage_t x,
                                           const __nv_fp6_interpretation_t kind)
{
    const int exponent = kind == __NV_E2M3 ? 2 : 3;
    return __half_raw { gmux_float_to_half(gmux_tiny_to_float(x, exponent, 5 - exponent)) };
}

GMUX_TINY_FUNCTIONS(fp6, 8, __nv_fp6_interpretation_t, kind, enum cudaRoundMode, mode, 0x1f)

#define GMUX_E2M3(type, f) __nv_cvt_##type##_to_fp6(f, __NV_E2M3, cudaRoundNearest)
#define GMUX_OF_E2M3(bits) gmux_tiny_to_float(bits, 2, 3)
#define GMUX_E3M2(type, f) __nv_cvt_##type##_to_fp6(f, __NV_E3M2, cudaRoundNearest)
#define GMUX_OF_E3M2(bits) gmux_tiny_to_float(bits, 3, 2)
GMUX_TINY_CLASSES(fp6, e2m3, 8, GMUX_E2M3, GMUX_OF_E2M3, (__x & 0x1f) != 0)
GMUX_TINY_CLASSES(fp6, e3m2, 8, GMUX_E3M2, GMUX_OF_E3M2, (__x & 0x1f) != 0)
#undef GMUX_E2M3
#undef GMUX_OF_E2M3
#undef GMUX_E3M2
#undef GMUX_OF_E3M2
#undef GMUX_M
#undef GMUX_HD

#endif
#endif
