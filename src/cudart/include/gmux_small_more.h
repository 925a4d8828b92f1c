/*
 * Part of cuda_fp16.h and cuda_bf16.h: the rarer functions of both 16-bit types. Conversions that
 * round down, up or towards zero, results within 0 and 1 or not below 0, comparisons that are true
 * for NaN (their names end with u), and comparisons whose result is a mask.
 */
#ifndef GMUX_SMALL_MORE_H
#define GMUX_SMALL_MORE_H

#define GMUX_HD __host__ __device__ static __inline__

/* The next number below (`up`: above) `h`, which is not NaN and not the last one there. */
template <class T> GMUX_HD T gmux_small_next(T h, bool up)
{
    bool negative = h.__x >> 15, zero = !(h.__x & 0x7fff);
    if (zero)
        h.__x = up ? 0x0001 : 0x8001;
    else
        h.__x = (unsigned short)(negative == up ? h.__x - 1 : h.__x + 1);
    return h;
}

/* `h` is the number nearest to another one; `more` and `less`: it is greater, or less, than that
 * one. Returns the number that a conversion gives that rounds down (-1), towards zero (0) or up
 * (1). */
template <class T> GMUX_HD T gmux_small_directed(T h, bool more, bool less, int direction)
{
    bool negative = h.__x >> 15;
    if (more && (direction < 0 || (direction == 0 && !negative)))
        return gmux_small_next(h, false);
    if (less && (direction > 0 || (direction == 0 && negative)))
        return gmux_small_next(h, true);
    return h;
}

template <class T> GMUX_HD T gmux_small_from_float(float f, int direction)
{
    T h = T(f);
    return gmux_small_directed(h, (float)h > f, (float)h < f, direction);
}

/* `i` is not 0 where `h` is fractional, which it never is. */
template <class T, class I> GMUX_HD T gmux_small_from_integer(I i, int direction)
{
    const bool has_sign = (I)-1 < (I)1;
    const float limit = (float)(1ull << (8 * sizeof(I) - 1)) * (has_sign ? 1.0f : 2.0f);
    T h = gmux_from_integer<T>(i);
    float f = (float)h;
    if (f >= limit)
        return gmux_small_directed(h, true, false, direction);
    if (has_sign && f < -limit)
        return gmux_small_directed(h, false, true, direction);
    return gmux_small_directed(h, (I)f > i, (I)f < i, direction);
}

template <class T> GMUX_HD T gmux_small_saturate(T h)
{
    return (float)h > 0.0f ? ((float)h < 1.0f ? h : T(1.0f)) : T(0.0f);
}

template <class T> GMUX_HD T gmux_small_not_negative(T h)
{
    return (float)h <= 0.0f ? T(0.0f) : h;
}

/* The greater (`sign` 1) or smaller (-1) one, or NaN if one is; -0 is smaller than 0. */
template <class T> GMUX_HD T gmux_small_extreme(T a, T b, float sign)
{
    float x = (float)a * sign, y = (float)b * sign;
    if (x != x || y != y)
        return T((float)a + (float)b);
    if (x == y)
        return (a.__x >> 15) == (sign > 0.0f) ? b : a;
    return x > y ? a : b;
}

#define GMUX_SMALL_DIRECTED(T, N, name, I)                                                         \
    GMUX_HD T __##name##2##N##_rd(I i)                                                             \
    {                                                                                              \
        return gmux_small_from_integer<T>(i, -1);                                                  \
    }                                                                                              \
    GMUX_HD T __##name##2##N##_rz(I i)                                                             \
    {                                                                                              \
        return gmux_small_from_integer<T>(i, 0);                                                   \
    }                                                                                              \
    GMUX_HD T __##name##2##N##_ru(I i)                                                             \
    {                                                                                              \
        return gmux_small_from_integer<T>(i, 1);                                                   \
    }

#define GMUX_SMALL_MORE_CONVERSIONS(T, V, N)                                                       \
    GMUX_HD T __float2##N##_rd(float f)                                                            \
    {                                                                                              \
        return gmux_small_from_float<T>(f, -1);                                                    \
    }                                                                                              \
    GMUX_HD T __float2##N##_rz(float f)                                                            \
    {                                                                                              \
        return gmux_small_from_float<T>(f, 0);                                                     \
    }                                                                                              \
    GMUX_HD T __float2##N##_ru(float f)                                                            \
    {                                                                                              \
        return gmux_small_from_float<T>(f, 1);                                                     \
    }                                                                                              \
    GMUX_SMALL_DIRECTED(T, N, int, int)                                                            \
    GMUX_SMALL_DIRECTED(T, N, uint, unsigned int)                                                  \
    GMUX_SMALL_DIRECTED(T, N, short, short)                                                        \
    GMUX_SMALL_DIRECTED(T, N, ushort, unsigned short)                                              \
    GMUX_SMALL_DIRECTED(T, N, ll, long long)                                                       \
    GMUX_SMALL_DIRECTED(T, N, ull, unsigned long long)                                             \
    GMUX_HD signed char __##N##2char_rz(T h)                                                       \
    {                                                                                              \
        return gmux_to_integer<signed char>(__builtin_truncf((float)h));                           \
    }                                                                                              \
    GMUX_HD unsigned char __##N##2uchar_rz(T h)                                                    \
    {                                                                                              \
        return gmux_to_integer<unsigned char>(__builtin_truncf((float)h));                         \
    }                                                                                              \
    GMUX_HD float __low2float(V h)                                                                 \
    {                                                                                              \
        return (float)h.x;                                                                         \
    }                                                                                              \
    GMUX_HD float __high2float(V h)                                                                \
    {                                                                                              \
        return (float)h.y;                                                                         \
    }                                                                                              \
    GMUX_HD V __lowhigh2highlow(V h)                                                               \
    {                                                                                              \
        return V(h.y, h.x);                                                                        \
    }

/* An operation of two numbers or two pairs: the result, and the result within 0 and 1. */
#define GMUX_SMALL_BINARY(T, V, name, op)                                                          \
    GMUX_HD T name##_rn(T a, T b)                                                                  \
    {                                                                                              \
        return a op b;                                                                             \
    }                                                                                              \
    GMUX_HD T name##_sat(T a, T b)                                                                 \
    {                                                                                              \
        return gmux_small_saturate(a op b);                                                        \
    }                                                                                              \
    GMUX_HD V name##2_rn(V a, V b)                                                                 \
    {                                                                                              \
        return V(a.x op b.x, a.y op b.y);                                                          \
    }                                                                                              \
    GMUX_HD V name##2_sat(V a, V b)                                                                \
    {                                                                                              \
        return V(name##_sat(a.x, b.x), name##_sat(a.y, b.y));                                      \
    }

#define GMUX_SMALL_UNORDERED(T, V, name, op)                                                       \
    GMUX_HD bool __h##name##u(T a, T b)                                                            \
    {                                                                                              \
        return a op b || a != a || b != b;                                                         \
    }                                                                                              \
    GMUX_HD V __h##name##u2(V a, V b)                                                              \
    {                                                                                              \
        return V(__h##name##u(a.x, b.x) ? 1.0f : 0.0f, __h##name##u(a.y, b.y) ? 1.0f : 0.0f);      \
    }                                                                                              \
    GMUX_HD bool __hb##name##u2(V a, V b)                                                          \
    {                                                                                              \
        return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y);                                   \
    }                                                                                              \
    GMUX_HD unsigned int __h##name##2_mask(V a, V b)                                               \
    {                                                                                              \
        return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffffu << 16 : 0u);  \
    }                                                                                              \
    GMUX_HD unsigned int __h##name##u2_mask(V a, V b)                                              \
    {                                                                                              \
        return (__h##name##u(a.x, b.x) ? 0xffffu : 0u) |                                           \
               (__h##name##u(a.y, b.y) ? 0xffffu << 16 : 0u);                                      \
    }

#define GMUX_SMALL_EXTREME(T, V, name, sign)                                                       \
    GMUX_HD T name##_nan(T a, T b)                                                                 \
    {                                                                                              \
        return gmux_small_extreme(a, b, sign);                                                     \
    }                                                                                              \
    GMUX_HD V name##2_nan(V a, V b)                                                                \
    {                                                                                              \
        return V(name##_nan(a.x, b.x), name##_nan(a.y, b.y));                                      \
    }

#define GMUX_SMALL_MORE_FUNCTIONS(T, V)                                                            \
    GMUX_SMALL_BINARY(T, V, __hadd, +)                                                             \
    GMUX_SMALL_BINARY(T, V, __hsub, -)                                                             \
    GMUX_SMALL_BINARY(T, V, __hmul, *)                                                             \
    GMUX_SMALL_UNORDERED(T, V, eq, ==)                                                             \
    GMUX_SMALL_UNORDERED(T, V, ne, !=)                                                             \
    GMUX_SMALL_UNORDERED(T, V, lt, <)                                                              \
    GMUX_SMALL_UNORDERED(T, V, le, <=)                                                             \
    GMUX_SMALL_UNORDERED(T, V, gt, >)                                                              \
    GMUX_SMALL_UNORDERED(T, V, ge, >=)                                                             \
    GMUX_SMALL_EXTREME(T, V, __hmax, 1.0f)                                                         \
    GMUX_SMALL_EXTREME(T, V, __hmin, -1.0f)                                                        \
    GMUX_HD T __hfma_sat(T a, T b, T c)                                                            \
    {                                                                                              \
        return gmux_small_saturate(__hfma(a, b, c));                                               \
    }                                                                                              \
    GMUX_HD V __hfma2_sat(V a, V b, V c)                                                           \
    {                                                                                              \
        return V(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                            \
    }                                                                                              \
    GMUX_HD T __hfma_relu(T a, T b, T c)                                                           \
    {                                                                                              \
        return gmux_small_not_negative(__hfma(a, b, c));                                           \
    }                                                                                              \
    GMUX_HD V __hfma2_relu(V a, V b, V c)                                                          \
    {                                                                                              \
        return V(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                          \
    }                                                                                              \
    /* A product of complex numbers, and another one added. */                                     \
    GMUX_HD V __hcmadd(V a, V b, V c)                                                              \
    {                                                                                              \
        T re = __hfma(a.x, b.x, c.x), im = __hfma(a.x, b.y, c.y);                                  \
        return V(__hfma(-a.y, b.y, re), __hfma(a.y, b.x, im));                                     \
    }                                                                                              \
    GMUX_HD V __hisnan2(V a)                                                                       \
    {                                                                                              \
        return V(a.x != a.x ? 1.0f : 0.0f, a.y != a.y ? 1.0f : 0.0f);                              \
    }

/* Operators that are used more rarely. */
#define GMUX_SMALL_STEP(X, op, plus, one)                                                          \
    GMUX_HD X &operator op(X &a)                                                                   \
    {                                                                                              \
        return a = a plus one;                                                                     \
    }                                                                                              \
    GMUX_HD X operator op(X &a, int)                                                               \
    {                                                                                              \
        X before = a;                                                                              \
        a = a plus one;                                                                            \
        return before;                                                                             \
    }
#define GMUX_SMALL_COMPARED(V, op, function)                                                       \
    GMUX_HD bool operator op(V a, V b)                                                             \
    {                                                                                              \
        return function(a, b);                                                                     \
    }
#define GMUX_SMALL_OPERATORS(T, V)                                                                 \
    GMUX_SMALL_STEP(T, ++, +, T(1.0f))                                                             \
    GMUX_SMALL_STEP(T, --, -, T(1.0f))                                                             \
    GMUX_SMALL_STEP(V, ++, +, V(T(1.0f), T(1.0f)))                                                 \
    GMUX_SMALL_STEP(V, --, -, V(T(1.0f), T(1.0f)))                                                 \
    GMUX_SMALL_COMPARED(V, ==, __hbeq2)                                                            \
    GMUX_SMALL_COMPARED(V, !=, __hbneu2)                                                           \
    GMUX_SMALL_COMPARED(V, <, __hblt2)                                                             \
    GMUX_SMALL_COMPARED(V, <=, __hble2)                                                            \
    GMUX_SMALL_COMPARED(V, >, __hbgt2)                                                             \
    GMUX_SMALL_COMPARED(V, >=, __hbge2)                                                            \
    GMUX_HD T operator+(T a)                                                                       \
    {                                                                                              \
        return a;                                                                                  \
    }                                                                                              \
    GMUX_HD V operator+(V a)                                                                       \
    {                                                                                              \
        return a;                                                                                  \
    }                                                                                              \
    GMUX_HD V &operator/=(V &a, V b)                                                               \
    {                                                                                              \
        return a = a / b;                                                                          \
    }

/* What only kernels have. */
#ifdef __CUDA__
#define GMUX_SMALL_PAIR(V, name)                                                                   \
    __device__ static __inline__ V h2##name(V a)                                                   \
    {                                                                                              \
        return V(h##name(a.x), h##name(a.y));                                                      \
    }
#define GMUX_SMALL_MORE_KERNEL_FUNCTIONS(T, V)                                                     \
    __device__ static __inline__ T htanh_approx(T a)                                               \
    {                                                                                              \
        return htanh(a);                                                                           \
    }                                                                                              \
    GMUX_SMALL_PAIR(V, sqrt)                                                                       \
    GMUX_SMALL_PAIR(V, rsqrt)                                                                      \
    GMUX_SMALL_PAIR(V, rcp)                                                                        \
    GMUX_SMALL_PAIR(V, exp)                                                                        \
    GMUX_SMALL_PAIR(V, exp2)                                                                       \
    GMUX_SMALL_PAIR(V, exp10)                                                                      \
    GMUX_SMALL_PAIR(V, log)                                                                        \
    GMUX_SMALL_PAIR(V, log2)                                                                       \
    GMUX_SMALL_PAIR(V, log10)                                                                      \
    GMUX_SMALL_PAIR(V, sin)                                                                        \
    GMUX_SMALL_PAIR(V, cos)                                                                        \
    GMUX_SMALL_PAIR(V, tanh)                                                                       \
    GMUX_SMALL_PAIR(V, tanh_approx)                                                                \
    GMUX_SMALL_PAIR(V, floor)                                                                      \
    GMUX_SMALL_PAIR(V, ceil)                                                                       \
    GMUX_SMALL_PAIR(V, trunc)                                                                      \
    GMUX_SMALL_PAIR(V, rint)
#else
#define GMUX_SMALL_MORE_KERNEL_FUNCTIONS(T, V)
#endif

#undef GMUX_HD
#endif
