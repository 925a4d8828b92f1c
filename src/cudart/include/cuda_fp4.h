/*
 * 4-bit numbers, for host and kernels: e2m1, which are 0, 0.5, 1, 1.5, 2, 3, 4, 6 and the same with
 * a minus sign, two in a byte. What is too large becomes 6 or -6, and NaN 6. They are a storage
 * format: to compute, a program converts them.
 */
#ifndef GMUX_CUDA_FP4_H
#define GMUX_CUDA_FP4_H
#define __CUDA_FP4_H__ /* programs look for the toolkit's */

#include "cuda_fp6.h"

typedef __nv_fp8_storage_t __nv_fp4_storage_t;
typedef __nv_fp8_storage_t __nv_fp4x2_storage_t;
typedef __nv_fp8x2_storage_t __nv_fp4x4_storage_t;
typedef enum __nv_fp4_interpretation_t { __NV_E2M1 } __nv_fp4_interpretation_t;

#ifdef __cplusplus
#define __CUDA_FP4_TYPES_EXIST__
#define GMUX_HD __host__ __device__ static __inline__
#define GMUX_M  __host__ __device__ __inline__

GMUX_HD __nv_fp4_storage_t __nv_cvt_float_to_fp4(const float f, const __nv_fp4_interpretation_t,
                                                 const enum cudaRoundMode mode)
{
    return (__nv_fp4_storage_t)gmux_float_to_tiny(f, 2, 1, 7, 7, 7, mode);
}

GMUX_HD __half_raw __nv_cvt_fp4_to_halfraw(const __nv_fp4_storage_t x,
                                           const __nv_fp4_interpretation_t)
{
    return __half_raw { gmux_float_to_half(gmux_tiny_to_float(x, 2, 1)) };
}

GMUX_TINY_FUNCTIONS(fp4, 4, __nv_fp4_interpretation_t, kind, enum cudaRoundMode, mode, 7)

#define GMUX_E2M1(type, f) __nv_cvt_##type##_to_fp4(f, __NV_E2M1, cudaRoundNearest)
#define GMUX_OF_E2M1(bits) gmux_tiny_to_float(bits, 2, 1)
GMUX_TINY_CLASSES(fp4, e2m1, 4, GMUX_E2M1, GMUX_OF_E2M1, (__x & 7) != 0)
#undef GMUX_E2M1
#undef GMUX_OF_E2M1
#undef GMUX_M
#undef GMUX_HD

#endif
#endif
