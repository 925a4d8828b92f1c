/*
 * 8-bit numbers, for host and kernels: e4m3 (four bits of exponent, no infinity, 448 at most), e5m2
 * (the upper half of a half-precision number) and e8m0 (only an exponent). They are storage
 * formats: to compute, a program converts them.
 */
#ifndef GMUX_CUDA_FP8_H
#define GMUX_CUDA_FP8_H
#define __CUDA_FP8_H__ /* programs look for the toolkit's */

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

#ifdef __cplusplus
#define GMUX_HD __host__ __device__ static __inline__
#define GMUX_M  __host__ __device__ __inline__

/* Rounds to nearest, ties to even. A number that is too large becomes the largest one if `saturate`
 * says so, else infinity, or NaN if the format has no infinity. */
GMUX_HD __nv_fp8_storage_t __nv_cvt_float_to_fp8(const float f, const __nv_saturation_t saturate,
                                                 const __nv_fp8_interpretation_t kind)
{
    const unsigned fraction = kind == __NV_E4M3 ? 3 : 2, drop = 23 - fraction;
    const unsigned rebias = (kind == __NV_E4M3 ? 127 - 7 : 127 - 15) << 23;
    const unsigned largest = kind == __NV_E4M3 ? 0x7e : 0x7b,
                   beyond = kind == __NV_E4M3 ? 0x7f : 0x7c;
    unsigned b = __builtin_bit_cast(unsigned, f), sign = b >> 24 & 0x80, m = b & 0x7fffffff, r;
    if (m > 0x7f800000)
        return (__nv_fp8_storage_t)(kind == __NV_E4M3 ? sign | 0x7f : 0x7e | sign);
    /* Subnormal: a multiple of the smallest number. */
    if (m < rebias + (1u << 23)) {
        float smallest_inverse = kind == __NV_E4M3 ? 512.0f : 65536.0f;
        r = (unsigned)__builtin_rintf(__builtin_bit_cast(float, m) * smallest_inverse);
    } else
        r = (m - rebias + (1u << (drop - 1)) - 1 + (m >> drop & 1)) >> drop;
    if (r > largest)
        r = saturate == __NV_SATFINITE ? largest : beyond;
    return (__nv_fp8_storage_t)(sign | r);
}

GMUX_HD __half_raw __nv_cvt_fp8_to_halfraw(const __nv_fp8_storage_t x,
                                           const __nv_fp8_interpretation_t kind)
{
    if (kind == __NV_E5M2)
        return __half_raw { (unsigned short)((x & 0x7f) > 0x7c ? 0x7fff : x << 8) };
    if ((x & 0x7f) == 0x7f)
        return __half_raw { 0x7fff };
    unsigned e = x >> 3 & 15, m = x & 7;
    float f = e ? (float)(8 + m) * (float)(1 << e) / 1024.0f : (float)m / 512.0f;
    return __half_raw { gmux_float_to_half(x & 0x80 ? -f : f) };
}

GMUX_HD __nv_fp8_storage_t __nv_cvt_double_to_fp8(const double d, const __nv_saturation_t saturate,
                                                  const __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float_to_fp8(gmux_double_to_odd_float(d), saturate, kind);
}
GMUX_HD __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(const __half_raw h,
                                                   const __nv_saturation_t saturate,
                                                   const __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float_to_fp8(gmux_half_to_float(h.x), saturate, kind);
}
GMUX_HD __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(const __nv_bfloat16_raw h,
                                                       const __nv_saturation_t saturate,
                                                       const __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float_to_fp8(gmux_bfloat16_to_float(h.x), saturate, kind);
}
GMUX_HD __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(const float2 f,
                                                      const __nv_saturation_t saturate,
                                                      const __nv_fp8_interpretation_t kind)
{
    return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(f.x, saturate, kind) |
                                  __nv_cvt_float_to_fp8(f.y, saturate, kind) << 8);
}
GMUX_HD __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(const double2 d,
                                                       const __nv_saturation_t saturate,
                                                       const __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float2_to_fp8x2(
        make_float2(gmux_double_to_odd_float(d.x), gmux_double_to_odd_float(d.y)), saturate, kind);
}
GMUX_HD __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(const __half2_raw h,
                                                        const __nv_saturation_t saturate,
                                                        const __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(gmux_half_to_float(h.x), gmux_half_to_float(h.y)),
                                    saturate, kind);
}
GMUX_HD __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(const __nv_bfloat162_raw h,
                                                            const __nv_saturation_t saturate,
                                                            const __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float2_to_fp8x2(
        make_float2(gmux_bfloat16_to_float(h.x), gmux_bfloat16_to_float(h.y)), saturate, kind);
}
GMUX_HD __half2_raw __nv_cvt_fp8x2_to_halfraw2(const __nv_fp8x2_storage_t x,
                                               const __nv_fp8_interpretation_t kind)
{
    return __half2_raw { __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind).x,
                         __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), kind).x };
}

#define GMUX_FP8(T, T2, T4, KIND)                                                                  \
    struct T {                                                                                     \
        __nv_fp8_storage_t __x;                                                                    \
        T() = default;                                                                             \
        GMUX_M explicit T(float f) : __x(__nv_cvt_float_to_fp8(f, __NV_SATFINITE, KIND))           \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T(double f) : __x(__nv_cvt_double_to_fp8(f, __NV_SATFINITE, KIND))         \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T(int i) : T(gmux_from_integer<float>(i))                                  \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T(unsigned int i) : T(gmux_from_integer<float>(i))                         \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T(__half h) : T((float)h)                                                  \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T(__nv_bfloat16 h) : T((float)h)                                           \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit operator float() const                                                     \
        {                                                                                          \
            return gmux_half_to_float(__nv_cvt_fp8_to_halfraw(__x, KIND).x);                       \
        }                                                                                          \
        GMUX_M explicit operator double() const                                                    \
        {                                                                                          \
            return (double)(float)*this;                                                           \
        }                                                                                          \
        GMUX_M explicit operator __half() const                                                    \
        {                                                                                          \
            return __half(__nv_cvt_fp8_to_halfraw(__x, KIND));                                     \
        }                                                                                          \
        GMUX_M explicit operator __nv_bfloat16() const                                             \
        {                                                                                          \
            return __nv_bfloat16((float)*this);                                                    \
        }                                                                                          \
        GMUX_M explicit operator bool() const                                                      \
        {                                                                                          \
            return (__x & 0x7f) != 0;                                                              \
        }                                                                                          \
    };                                                                                             \
    struct T2 {                                                                                    \
        __nv_fp8x2_storage_t __x;                                                                  \
        T2() = default;                                                                            \
        GMUX_M explicit T2(float2 f) : __x(__nv_cvt_float2_to_fp8x2(f, __NV_SATFINITE, KIND))      \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T2(double2 d) : __x(__nv_cvt_double2_to_fp8x2(d, __NV_SATFINITE, KIND))    \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T2(__half2 h) : __x(__nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, KIND))   \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T2(__nv_bfloat162 h)                                                       \
            : __x(__nv_cvt_bfloat16raw2_to_fp8x2(h, __NV_SATFINITE, KIND))                         \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit operator __half2() const                                                   \
        {                                                                                          \
            return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, KIND));                                 \
        }                                                                                          \
        GMUX_M explicit operator float2() const                                                    \
        {                                                                                          \
            __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(__x, KIND);                                 \
            return make_float2(gmux_half_to_float(h.x), gmux_half_to_float(h.y));                  \
        }                                                                                          \
    };                                                                                             \
    struct T4 {                                                                                    \
        __nv_fp8x4_storage_t __x;                                                                  \
        T4() = default;                                                                            \
        GMUX_M explicit T4(float4 f)                                                               \
            : __x(__nv_cvt_float2_to_fp8x2(make_float2(f.x, f.y), __NV_SATFINITE, KIND) |          \
                  (unsigned)__nv_cvt_float2_to_fp8x2(make_float2(f.z, f.w), __NV_SATFINITE, KIND)  \
                      << 16)                                                                       \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit operator float4() const                                                    \
        {                                                                                          \
            __half2_raw a = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)__x, KIND);           \
            __half2_raw b = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(__x >> 16), KIND);   \
            return make_float4(gmux_half_to_float(a.x), gmux_half_to_float(a.y),                   \
                               gmux_half_to_float(b.x), gmux_half_to_float(b.y));                  \
        }                                                                                          \
    };
GMUX_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
GMUX_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef GMUX_FP8

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

struct __nv_fp8_e8m0 {
    __nv_fp8_storage_t __x;
    __nv_fp8_e8m0() = default;
    GMUX_M explicit __nv_fp8_e8m0(double d)
        : __x(__nv_cvt_double_to_e8m0(d, __NV_SATFINITE, cudaRoundPosInf))
    {
    }
    GMUX_M explicit __nv_fp8_e8m0(float f) : __nv_fp8_e8m0((double)f)
    {
    }
    GMUX_M explicit __nv_fp8_e8m0(__half h) : __nv_fp8_e8m0((double)(float)h)
    {
    }
    GMUX_M explicit __nv_fp8_e8m0(__nv_bfloat16 h) : __nv_fp8_e8m0((double)(float)h)
    {
    }
    GMUX_M explicit operator float() const
    {
        return gmux_bfloat16_to_float(__nv_cvt_e8m0_to_bf16raw(__x).x);
    }
    GMUX_M explicit operator double() const
    {
        return (double)(float)*this;
    }
    GMUX_M explicit operator __nv_bfloat16() const
    {
        return __nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(__x));
    }
};
#undef GMUX_M
#undef GMUX_HD

#endif
#endif
