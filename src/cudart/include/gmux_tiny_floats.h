/*
 * Part of cuda_fp8.h, cuda_fp6.h and cuda_fp4.h: what the numbers of 8 bits and less share. A
 * format is told by how many bits its exponent and its fraction have; in front is the sign.
 */
#ifndef GMUX_TINY_FLOATS_H
#define GMUX_TINY_FLOATS_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

#ifdef __cplusplus
#define GMUX_HD __host__ __device__ static __inline__

/* Rounds `f` to nearest with ties to even if `mode` says so, else toward zero. What is then above
 * `largest` becomes `beyond`, both without their sign, and NaN becomes `nan`. */
GMUX_HD unsigned gmux_float_to_tiny(float f, int exponent, int fraction, unsigned largest,
                                    unsigned beyond, unsigned nan, enum cudaRoundMode mode)
{
    const unsigned b = __builtin_bit_cast(unsigned, f), sign = b >> 31;
    const int lowest = 128 - (1 << (exponent - 1)) + 1; /* of what is not subnormal */
    int e = (int)(b >> 23 & 255), drop = 23 - fraction;
    unsigned m = (b & 0x7fffff) | 1u << 23;
    if ((b & 0x7fffffff) > 0x7f800000)
        return nan;
    if (e < lowest) { /* subnormal; 24 bits are less than half of what 25 that go stand for */
        drop = lowest - e + drop < 25 ? lowest - e + drop : 25;
        e = lowest;
    }
    if (mode == cudaRoundNearest)
        m += (1u << (drop - 1)) - 1 + (m >> drop & 1);
    unsigned r = ((unsigned)(e - lowest) << fraction) + (m >> drop);
    return sign << (exponent + fraction) | (r > largest ? beyond : r);
}

/* The bits, moved to where a half-precision number has them, are the number but for the bias. */
GMUX_HD float gmux_tiny_to_float(unsigned x, int exponent, int fraction)
{
    const unsigned magnitude = x & ((1u << (exponent + fraction)) - 1);
    const unsigned sign = x >> (exponent + fraction) & 1;
    return gmux_half_to_float((unsigned short)(sign << 15 | magnitude << (10 - fraction))) *
           (float)(1 << (16 - (1 << (exponent - 1))));
}

template <class T> GMUX_HD T gmux_tiny_of(unsigned bits)
{
    T t;
    t.__x = (decltype(t.__x))bits;
    return t;
}
#undef GMUX_HD

/* The functions that convert by way of float, for a format `n` of which two take `BITS` bits each
 * in a pair; `A a` and `B b` say how. A double `d` that is NaN becomes NAN_BITS. */
#define GMUX_TINY_FUNCTIONS(n, BITS, A, a, B, b, NAN_BITS)                                         \
    GMUX_HD __nv_##n##_storage_t __nv_cvt_double_to_##n(const double d, const A a, const B b)      \
    {                                                                                              \
        return d == d ? __nv_cvt_float_to_##n(gmux_double_to_odd_float(d), a, b)                   \
                      : (__nv_##n##_storage_t)(NAN_BITS);                                          \
    }                                                                                              \
    GMUX_HD __nv_##n##_storage_t __nv_cvt_halfraw_to_##n(const __half_raw h, const A a, const B b) \
    {                                                                                              \
        return __nv_cvt_float_to_##n(gmux_half_to_float(h.x), a, b);                               \
    }                                                                                              \
    GMUX_HD __nv_##n##_storage_t __nv_cvt_bfloat16raw_to_##n(const __nv_bfloat16_raw h, const A a, \
                                                             const B b)                            \
    {                                                                                              \
        return __nv_cvt_float_to_##n(gmux_bfloat16_to_float(h.x), a, b);                           \
    }                                                                                              \
    GMUX_HD __nv_##n##x2_storage_t __nv_cvt_float2_to_##n##x2(const float2 f, const A a,           \
                                                              const B b)                           \
    {                                                                                              \
        return (__nv_##n##x2_storage_t)(__nv_cvt_float_to_##n(f.x, a, b) |                         \
                                        __nv_cvt_float_to_##n(f.y, a, b) << BITS);                 \
    }                                                                                              \
    GMUX_HD __nv_##n##x2_storage_t __nv_cvt_double2_to_##n##x2(const double2 d, const A a,         \
                                                               const B b)                          \
    {                                                                                              \
        return (__nv_##n##x2_storage_t)(__nv_cvt_double_to_##n(d.x, a, b) |                        \
                                        __nv_cvt_double_to_##n(d.y, a, b) << BITS);                \
    }                                                                                              \
    GMUX_HD __nv_##n##x2_storage_t __nv_cvt_halfraw2_to_##n##x2(const __half2_raw h, const A a,    \
                                                                const B b)                         \
    {                                                                                              \
        return __nv_cvt_float2_to_##n##x2(                                                         \
            make_float2(gmux_half_to_float(h.x), gmux_half_to_float(h.y)), a, b);                  \
    }                                                                                              \
    GMUX_HD __nv_##n##x2_storage_t __nv_cvt_bfloat16raw2_to_##n##x2(const __nv_bfloat162_raw h,    \
                                                                    const A a, const B b)          \
    {                                                                                              \
        return __nv_cvt_float2_to_##n##x2(                                                         \
            make_float2(gmux_bfloat16_to_float(h.x), gmux_bfloat16_to_float(h.y)), a, b);          \
    }                                                                                              \
    GMUX_HD __half2_raw __nv_cvt_##n##x2_to_halfraw2(const __nv_##n##x2_storage_t x,               \
                                                     const __nv_##n##_interpretation_t kind)       \
    {                                                                                              \
        return __half2_raw {                                                                       \
            __nv_cvt_##n##_to_halfraw((__nv_##n##_storage_t)(x & ((1 << BITS) - 1)), kind).x,      \
            __nv_cvt_##n##_to_halfraw((__nv_##n##_storage_t)(x >> BITS), kind).x                   \
        };                                                                                         \
    }

#define GMUX_TINY_TO(T, I)                                                                         \
    GMUX_M explicit operator I() const                                                             \
    {                                                                                              \
        return gmux_to_integer<I>((float)*this);                                                   \
    }
#define GMUX_TINY_INTEGER(T, I)                                                                    \
    GMUX_M explicit T(I i) : T(gmux_from_integer<float>(i))                                        \
    {                                                                                              \
    }                                                                                              \
    GMUX_TINY_TO(T, I)

/* The class T of a number: FROM(type, f) makes its bits of a float or double and TO(x) a float of
 * its bits __x, which are not zero if NONZERO says so. */
#define GMUX_TINY(T, S, FROM, TO, NONZERO)                                                         \
    struct T {                                                                                     \
        S __x;                                                                                     \
        T() = default;                                                                             \
        GMUX_M explicit T(float f) : __x(FROM(float, f))                                           \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T(double d) : __x(FROM(double, d))                                         \
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
            return TO(__x);                                                                        \
        }                                                                                          \
        GMUX_M explicit operator double() const                                                    \
        {                                                                                          \
            return (double)(float)*this;                                                           \
        }                                                                                          \
        GMUX_M explicit operator __half() const                                                    \
        {                                                                                          \
            return __half((float)*this);                                                           \
        }                                                                                          \
        GMUX_M explicit operator __nv_bfloat16() const                                             \
        {                                                                                          \
            return __nv_bfloat16((float)*this);                                                    \
        }                                                                                          \
        GMUX_M explicit operator bool() const                                                      \
        {                                                                                          \
            return NONZERO;                                                                        \
        }                                                                                          \
        GMUX_TINY_TO(T, char)                                                                      \
        GMUX_TINY_TO(T, signed char)                                                               \
        GMUX_TINY_TO(T, unsigned char)                                                             \
        GMUX_TINY_INTEGER(T, short)                                                                \
        GMUX_TINY_INTEGER(T, unsigned short)                                                       \
        GMUX_TINY_INTEGER(T, int)                                                                  \
        GMUX_TINY_INTEGER(T, unsigned int)                                                         \
        GMUX_TINY_INTEGER(T, long)                                                                 \
        GMUX_TINY_INTEGER(T, unsigned long)                                                        \
        GMUX_TINY_INTEGER(T, long long)                                                            \
        GMUX_TINY_INTEGER(T, unsigned long long)                                                   \
    };

#define GMUX_TINY_TO_PAIR(V, H)                                                                    \
    GMUX_M explicit operator V() const                                                             \
    {                                                                                              \
        float2 f = float2(*this);                                                                  \
        return V(H(f.x), H(f.y));                                                                  \
    }
#define GMUX_TINY_FROM_4(T2, T4, D)                                                                \
    GMUX_M explicit T4(D d) : T4(T2(make_double2(d.x, d.y)), T2(make_double2(d.z, d.w)))           \
    {                                                                                              \
    }
/* The classes of two and of four numbers T, of `BITS` bits each; the first one is lowest. */
#define GMUX_TINY_PAIRS(T, T2, S2, T4, S4, BITS)                                                   \
    struct T2 {                                                                                    \
        S2 __x;                                                                                    \
        T2() = default;                                                                            \
        GMUX_M explicit T2(float2 f) : __x((S2)(T(f.x).__x | T(f.y).__x << BITS))                  \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T2(double2 d) : __x((S2)(T(d.x).__x | T(d.y).__x << BITS))                 \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T2(__half2 h) : T2(make_float2((float)h.x, (float)h.y))                    \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T2(__nv_bfloat162 h) : T2(make_float2((float)h.x, (float)h.y))             \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit operator float2() const                                                    \
        {                                                                                          \
            return make_float2((float)gmux_tiny_of<T>(__x & ((1u << BITS) - 1)),                   \
                               (float)gmux_tiny_of<T>((unsigned)__x >> BITS));                     \
        }                                                                                          \
        GMUX_TINY_TO_PAIR(__half2, __half)                                                         \
        GMUX_TINY_TO_PAIR(__nv_bfloat162, __nv_bfloat16)                                           \
    };                                                                                             \
    struct T4 {                                                                                    \
        S4 __x;                                                                                    \
        T4() = default;                                                                            \
        GMUX_M explicit T4(T2 low, T2 high) : __x((S4)(low.__x | (unsigned)high.__x << 2 * BITS))  \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T4(__half2 low, __half2 high) : T4(T2(low), T2(high))                      \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T4(__nv_bfloat162 low, __nv_bfloat162 high) : T4(T2(low), T2(high))        \
        {                                                                                          \
        }                                                                                          \
        GMUX_M explicit T4(float4 f) : T4(T2(make_float2(f.x, f.y)), T2(make_float2(f.z, f.w)))    \
        {                                                                                          \
        }                                                                                          \
        GMUX_TINY_FROM_4(T2, T4, double4)                                                          \
        GMUX_TINY_FROM_4(T2, T4, double4_16a)                                                      \
        GMUX_TINY_FROM_4(T2, T4, double4_32a)                                                      \
        GMUX_M explicit operator float4() const                                                    \
        {                                                                                          \
            float2 low = (float2)gmux_tiny_of<T2>(__x & ((1u << 2 * BITS) - 1));                   \
            float2 high = (float2)gmux_tiny_of<T2>((unsigned)__x >> 2 * BITS);                     \
            return make_float4(low.x, low.y, high.x, high.y);                                      \
        }                                                                                          \
    };

/* The classes of format `n`, of which `kind` is one, with one, two and four numbers. */
#define GMUX_TINY_CLASSES(n, kind, BITS, FROM, TO, NONZERO)                                        \
    GMUX_TINY(__nv_##n##_##kind, __nv_##n##_storage_t, FROM, TO, NONZERO)                          \
    GMUX_TINY_PAIRS(__nv_##n##_##kind, __nv_##n##x2_##kind, __nv_##n##x2_storage_t,                \
                    __nv_##n##x4_##kind, __nv_##n##x4_storage_t, BITS)

#endif
#endif
