/*
 * 8-bit numbers, for host and kernels: e4m3 (four bits of exponent, no infinity, 448 at most), e5m2
 * (the upper half of a half-precision number) and e8m0 (only an exponent). They are storage
 * formats: to compute, a program converts them.
 */
#ifndef GMUX_CUDA_FP8_H
#define GMUX_CUDA_FP8_H
#define __CUDA_FP8_H__ /* programs look for the toolkit's */

#include "gmux_tiny_floats.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

#ifdef __cplusplus
#define __CUDA_FP8_TYPES_EXIST__
#define GMUX_HD __host__ __device__ static __inline__
#define GMUX_M  __host__ __device__ __inline__

/* Rounds to nearest, ties to even. A number that is too large becomes the largest one if `saturate`
 * says so, else infinity, or NaN if the format has no infinity. */
GMUX_HD __nv_fp8_storage_t __nv_cvt_float_to_fp8(const float f, const __nv_saturation_t saturate,
                                                 const __nv_fp8_interpretation_t kind)
{
    const unsigned largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
    const int exponent = kind == __NV_E4M3 ? 4 : 5;
    return (__nv_fp8_storage_t)gmux_float_to_tiny(
        f, exponent, 7 - exponent, largest, saturate == __NV_SATFINITE ? largest : largest + 1,
        0x7f, cudaRoundNearest);
}

GMUX_HD __half_raw __nv_cvt_fp8_to_halfraw(const __nv_fp8_storage_t x,
                                           const __nv_fp8_interpretation_t kind)
{
    if ((x & 0x7f) > (kind == __NV_E4M3 ? 0x7e : 0x7c))
        return __half_raw { 0x7fff };
    if (kind == __NV_E5M2)
        return __half_raw { (unsigned short)(x << 8) };
    return __half_raw { gmux_float_to_half(gmux_tiny_to_float(x, 4, 3)) };
}

/* NaN loses its sign, unless it is a double. */
GMUX_TINY_FUNCTIONS(fp8, 8, __nv_saturation_t, saturate, __nv_fp8_interpretation_t, kind,
                    (__builtin_signbit(d) ? 0x80 : 0) | (kind == __NV_E4M3 ? 0x7f : 0x7e))

#define GMUX_E4M3(type, f) __nv_cvt_##type##_to_fp8(f, __NV_SATFINITE, __NV_E4M3)
#define GMUX_OF_E4M3(bits) gmux_half_to_float(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3).x)
#define GMUX_E5M2(type, f) __nv_cvt_##type##_to_fp8(f, __NV_SATFINITE, __NV_E5M2)
#define GMUX_OF_E5M2(bits) gmux_half_to_float(__nv_cvt_fp8_to_halfraw(bits, __NV_E5M2).x)
GMUX_TINY_CLASSES(fp8, e4m3, 8, GMUX_E4M3, GMUX_OF_E4M3, (__x & 0x7f) != 0)
GMUX_TINY_CLASSES(fp8, e5m2, 8, GMUX_E5M2, GMUX_OF_E5M2, (__x & 0x7f) != 0)
#undef GMUX_E4M3
#undef GMUX_OF_E4M3
#undef GMUX_E5M2
#undef GMUX_OF_E5M2

/* e8m0: a power of two, 2^-127 to 2^127, or NaN; used for scale factors. The sign is lost. `mode`
 * is cudaRoundZero or cudaRoundPosInf. */
GMUX_HD __nv_fp8_storage_t __nv_cvt_double_to_e8m0(const double d, const __nv_saturation_t saturate,
                                                   const enum cudaRoundMode mode)
{
    unsigned long long b = __builtin_bit_cast(unsigned long long, d) & ~(1ull << 63);
    int e = (int)(b >> 52) - 1023 + 127;
    if (d != d)
        return 0xff;
    if (e < 0)
        return 0;
    if (mode == cudaRoundPosInf && b << 12)
        e++;
    if (b >> 52 == 0x7ff || (e > 254 && mode == cudaRoundPosInf))
        return saturate == __NV_SATFINITE ? 0xfe : 0xff;
    return (__nv_fp8_storage_t)(e > 254 ? 254 : e);
}

GMUX_HD __nv_fp8_storage_t __nv_cvt_float_to_e8m0(const float f, const __nv_saturation_t saturate,
                                                  const enum cudaRoundMode mode)
{
    return __nv_cvt_double_to_e8m0((double)f, saturate, mode);
}

GMUX_HD __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(const __nv_bfloat16_raw h,
                                                        const __nv_saturation_t saturate,
                                                        const enum cudaRoundMode mode)
{
    return __nv_cvt_float_to_e8m0(gmux_bfloat16_to_float(h.x), saturate, mode);
}

GMUX_HD __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(const __nv_fp8_storage_t x)
{
    return __nv_bfloat16_raw { (unsigned short)(x == 255 ? 0x7fff : x ? x << 7 : 0x40) };
}

GMUX_HD __nv_fp8x2_storage_t __nv_cvt_double2_to_e8m0x2(const double2 d,
                                                        const __nv_saturation_t saturate,
                                                        const enum cudaRoundMode mode)
{
    return (__nv_fp8x2_storage_t)(__nv_cvt_double_to_e8m0(d.x, saturate, mode) |
                                  __nv_cvt_double_to_e8m0(d.y, saturate, mode) << 8);
}

GMUX_HD __nv_fp8x2_storage_t __nv_cvt_float2_to_e8m0x2(const float2 f,
                                                       const __nv_saturation_t saturate,
                                                       const enum cudaRoundMode mode)
{
    return __nv_cvt_double2_to_e8m0x2(make_double2((double)f.x, (double)f.y), saturate, mode);
}

GMUX_HD __nv_fp8x2_storage_t __nv_cvt_bfloat162raw_to_e8m0x2(const __nv_bfloat162_raw h,
                                                             const __nv_saturation_t saturate,
                                                             const enum cudaRoundMode mode)
{
    return __nv_cvt_float2_to_e8m0x2(
        make_float2(gmux_bfloat16_to_float(h.x), gmux_bfloat16_to_float(h.y)), saturate, mode);
}

GMUX_HD __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(const __nv_fp8x2_storage_t x)
{
    return __nv_bfloat162_raw { __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)x).x,
                                __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)(x >> 8)).x };
}

#define GMUX_E8M0(type, f) __nv_cvt_##type##_to_e8m0(f, __NV_SATFINITE, cudaRoundPosInf)
#define GMUX_OF_E8M0(bits) gmux_bfloat16_to_float(__nv_cvt_e8m0_to_bf16raw(bits).x)
GMUX_TINY_CLASSES(fp8, e8m0, 8, GMUX_E8M0, GMUX_OF_E8M0, true)
#undef GMUX_E8M0
#undef GMUX_OF_E8M0
#undef GMUX_M
#undef GMUX_HD

#endif
#endif
