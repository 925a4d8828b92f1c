/*
 * Part of cuda_fp16.h and cuda_bf16.h: what both 16-bit types share. Arithmetic is computed in
 * float and rounded to nearest, ties to even. For sum, difference, product and quotient of two such
 * numbers that gives the same result as rounding once.
 */
#ifndef GMUX_SMALL_FLOATS_H
#define GMUX_SMALL_FLOATS_H

#define GMUX_HD __host__ __device__ static __inline__

GMUX_HD float gmux_half_to_float(unsigned short x)
{
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
    return f;
#else
    unsigned sign = (x & 0x8000u) << 16, e = x >> 10 & 31, m = x & 0x3ff;
    if (e == 0)
        return __builtin_copysignf((float)m / 16777216.0f, __builtin_bit_cast(float, sign));
    return __builtin_bit_cast(float, sign | (e == 31 ? 0xffu << 23 : (e + 112) << 23) | m << 13);
#endif
}

GMUX_HD unsigned short gmux_float_to_half(float f)
{
#ifdef __CUDA_ARCH__
    unsigned short x;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x) : "f"(f));
    return x;
#else
    unsigned b = __builtin_bit_cast(unsigned, f), sign = b >> 16 & 0x8000u, m = b & 0x7fffffffu;
    if (m > 0x7f800000u)
        return 0x7fff;
    /* Rounds to 2^16 or more. */
    if (m >= 0x477ff000u)
        return (unsigned short)(sign | 0x7c00u);
    /* Subnormal: a multiple of 2^-24. */
    if (m < 0x38800000u)
        return (unsigned short)(sign | (unsigned)__builtin_rintf(__builtin_bit_cast(float, m) *
                                                                 16777216.0f));
    return (unsigned short)(sign | ((m - 0x38000000u + 0xfffu + (m >> 13 & 1)) >> 13));
#endif
}

GMUX_HD float gmux_bfloat16_to_float(unsigned short x)
{
    return __builtin_bit_cast(float, (unsigned)x << 16);
}

GMUX_HD unsigned short gmux_float_to_bfloat16(float f)
{
    unsigned b = __builtin_bit_cast(unsigned, f);
    if ((b & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (unsigned short)((b + 0x7fffu + (b >> 16 & 1)) >> 16);
}
/* Rounds to odd: the last bit is set if anything was lost. Rounding the result again is then as if
 * it were the only rounding. */
GMUX_HD float gmux_double_to_odd_float(double d)
{
    float f = (float)d;
    unsigned b = __builtin_bit_cast(unsigned, f);
    if (d != d || (double)f == d)
        return f;
    return __builtin_bit_cast(float, (b - (__builtin_fabs((double)f) > __builtin_fabs(d))) | 1);
}

/* Turns an integral number into an integer. A number out of range gives the nearest limit; NaN
 * gives 0, or only the top bit for a 64-bit integer. */
template <class I> GMUX_HD I gmux_to_integer(float f)
{
    const int bits = 8 * (int)sizeof(I);
    const bool has_sign = (I)-1 < (I)1;
    const float limit = (float)(1ull << (bits - 1)) * (has_sign ? 1.0f : 2.0f);
    if (f != f)
        return bits == 64 ? (I)(1ull << 63) : (I)0;
    if (f >= limit)
        return has_sign ? (I)((1ull << (bits - 1)) - 1) : (I)-1;
    if (f < (has_sign ? -limit : 0.0f))
        return has_sign ? (I)(1ull << (bits - 1)) : (I)0;
    return (I)f;
}

/* Converts an integer with one rounding, through a float that is rounded to odd. (Of a short the
 * compiler would take the absolute value in 16 bits, and ptxas takes that of -32768 for negative.)
 */
template <class T, class I> GMUX_HD T gmux_from_integer(I i)
{
    if (sizeof(I) < 3)
        return T((float)i);
    bool negative = i < (I)0;
    unsigned long long m = negative ? 0ull - (unsigned long long)i : (unsigned long long)i,
                       lost = 0;
    int shift = 0;
    while (m >> 24) {
        lost |= m & 1;
        m >>= 1;
        shift++;
    }
    float f = (float)(m | lost) * (float)(1ull << shift);
    return T(negative ? -f : f);
}
#undef GMUX_HD

/* libraries rely on the member's name */
#define GMUX_M __host__ __device__ __inline__
#define GMUX_SMALL_FLOAT(T, RAW, TO, FROM)                                                         \
    struct T {                                                                                     \
        unsigned short __x;                                                                        \
        T() = default;                                                                             \
        GMUX_M T(RAW r) : __x(r.x)                                                                 \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(float f) : __x(FROM(f))                                                           \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(double f) : __x(FROM(gmux_double_to_odd_float(f)))                                \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(int f) : T(gmux_from_integer<T>(f))                                               \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(unsigned int f) : T(gmux_from_integer<T>(f))                                      \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(long f) : T(gmux_from_integer<T>(f))                                              \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(unsigned long f) : T(gmux_from_integer<T>(f))                                     \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(long long f) : T(gmux_from_integer<T>(f))                                         \
        {                                                                                          \
        }                                                                                          \
        GMUX_M T(unsigned long long f) : T(gmux_from_integer<T>(f))                                \
        {                                                                                          \
        }                                                                                          \
        GMUX_M operator float() const                                                              \
        {                                                                                          \
            return TO(__x);                                                                        \
        }                                                                                          \
        GMUX_M operator RAW() const volatile                                                       \
        {                                                                                          \
            return RAW { __x };                                                                    \
        }                                                                                          \
        GMUX_M T &operator+=(T o)                                                                  \
        {                                                                                          \
            return *this = T((float)*this + (float)o);                                             \
        }                                                                                          \
        GMUX_M T &operator-=(T o)                                                                  \
        {                                                                                          \
            return *this = T((float)*this - (float)o);                                             \
        }                                                                                          \
        GMUX_M T &operator*=(T o)                                                                  \
        {                                                                                          \
            return *this = T((float)*this * (float)o);                                             \
        }                                                                                          \
        GMUX_M T &operator/=(T o)                                                                  \
        {                                                                                          \
            return *this = T((float)*this / (float)o);                                             \
        }                                                                                          \
    } __attribute__((aligned(2)));                                                                 \
    GMUX_M T operator+(T a, T b)                                                                   \
    {                                                                                              \
        return T((float)a + (float)b);                                                             \
    }                                                                                              \
    GMUX_M T operator-(T a, T b)                                                                   \
    {                                                                                              \
        return T((float)a - (float)b);                                                             \
    }                                                                                              \
    GMUX_M T operator*(T a, T b)                                                                   \
    {                                                                                              \
        return T((float)a * (float)b);                                                             \
    }                                                                                              \
    GMUX_M T operator/(T a, T b)                                                                   \
    {                                                                                              \
        return T((float)a / (float)b);                                                             \
    }                                                                                              \
    GMUX_M T operator-(T a)                                                                        \
    {                                                                                              \
        return T(-(float)a);                                                                       \
    }                                                                                              \
    GMUX_M bool operator==(T a, T b)                                                               \
    {                                                                                              \
        return (float)a == (float)b;                                                               \
    }                                                                                              \
    GMUX_M bool operator!=(T a, T b)                                                               \
    {                                                                                              \
        return (float)a != (float)b;                                                               \
    }                                                                                              \
    GMUX_M bool operator<(T a, T b)                                                                \
    {                                                                                              \
        return (float)a < (float)b;                                                                \
    }                                                                                              \
    GMUX_M bool operator<=(T a, T b)                                                               \
    {                                                                                              \
        return (float)a <= (float)b;                                                               \
    }                                                                                              \
    GMUX_M bool operator>(T a, T b)                                                                \
    {                                                                                              \
        return (float)a > (float)b;                                                                \
    }                                                                                              \
    GMUX_M bool operator>=(T a, T b)                                                               \
    {                                                                                              \
        return (float)a >= (float)b;                                                               \
    }

#define GMUX_SMALL_VECTOR(V, T, RAW)                                                               \
    struct V {                                                                                     \
        T x, y;                                                                                    \
        V() = default;                                                                             \
        GMUX_M V(T a, T b) : x(a), y(b)                                                            \
        {                                                                                          \
        }                                                                                          \
        GMUX_M V(RAW r) : x(T##_raw { r.x }), y(T##_raw { r.y })                                   \
        {                                                                                          \
        }                                                                                          \
        GMUX_M operator RAW() const                                                                \
        {                                                                                          \
            return RAW { x.__x, y.__x };                                                           \
        }                                                                                          \
    } __attribute__((aligned(4)));                                                                 \
    GMUX_M V operator+(V a, V b)                                                                   \
    {                                                                                              \
        return V(a.x + b.x, a.y + b.y);                                                            \
    }                                                                                              \
    GMUX_M V operator-(V a, V b)                                                                   \
    {                                                                                              \
        return V(a.x - b.x, a.y - b.y);                                                            \
    }                                                                                              \
    GMUX_M V operator*(V a, V b)                                                                   \
    {                                                                                              \
        return V(a.x * b.x, a.y * b.y);                                                            \
    }                                                                                              \
    GMUX_M V operator/(V a, V b)                                                                   \
    {                                                                                              \
        return V(a.x / b.x, a.y / b.y);                                                            \
    }                                                                                              \
    GMUX_M V operator-(V a)                                                                        \
    {                                                                                              \
        return V(-a.x, -a.y);                                                                      \
    }                                                                                              \
    GMUX_M V &operator+=(V &a, V b)                                                                \
    {                                                                                              \
        return a = a + b;                                                                          \
    }                                                                                              \
    GMUX_M V &operator-=(V &a, V b)                                                                \
    {                                                                                              \
        return a = a - b;                                                                          \
    }                                                                                              \
    GMUX_M V &operator*=(V &a, V b)                                                                \
    {                                                                                              \
        return a = a * b;                                                                          \
    }

#define GMUX_SMALL_INTEGER(T, N, name, I)                                                          \
    GMUX_HD T __##name##2##N##_rn(I i)                                                             \
    {                                                                                              \
        return gmux_from_integer<T>(i);                                                            \
    }                                                                                              \
    GMUX_HD I __##N##2##name##_rn(T h)                                                             \
    {                                                                                              \
        return gmux_to_integer<I>(__builtin_rintf((float)h));                                      \
    }                                                                                              \
    GMUX_HD I __##N##2##name##_rz(T h)                                                             \
    {                                                                                              \
        return gmux_to_integer<I>(__builtin_truncf((float)h));                                     \
    }                                                                                              \
    GMUX_HD I __##N##2##name##_ru(T h)                                                             \
    {                                                                                              \
        return gmux_to_integer<I>(__builtin_ceilf((float)h));                                      \
    }                                                                                              \
    GMUX_HD I __##N##2##name##_rd(T h)                                                             \
    {                                                                                              \
        return gmux_to_integer<I>(__builtin_floorf((float)h));                                     \
    }

/* N is the type's name within names of functions. */
#define GMUX_SMALL_CONVERSIONS(T, V, RAW, N)                                                       \
    GMUX_HD float __##N##2float(T h)                                                               \
    {                                                                                              \
        return (float)h;                                                                           \
    }                                                                                              \
    GMUX_HD T __float2##N(float f)                                                                 \
    {                                                                                              \
        return T(f);                                                                               \
    }                                                                                              \
    GMUX_HD T __float2##N##_rn(float f)                                                            \
    {                                                                                              \
        return T(f);                                                                               \
    }                                                                                              \
    GMUX_HD T __double2##N(double d)                                                               \
    {                                                                                              \
        return T(d);                                                                               \
    }                                                                                              \
    GMUX_HD float2 __##N##22float2(V h)                                                            \
    {                                                                                              \
        return make_float2((float)h.x, (float)h.y);                                                \
    }                                                                                              \
    GMUX_HD V __float22##N##2_rn(float2 f)                                                         \
    {                                                                                              \
        return V(T(f.x), T(f.y));                                                                  \
    }                                                                                              \
    GMUX_HD V __floats2##N##2_rn(float a, float b)                                                 \
    {                                                                                              \
        return V(T(a), T(b));                                                                      \
    }                                                                                              \
    GMUX_HD V __float2##N##2_rn(float a)                                                           \
    {                                                                                              \
        return V(T(a), T(a));                                                                      \
    }                                                                                              \
    GMUX_HD V __##N##2##N##2(T a)                                                                  \
    {                                                                                              \
        return V(a, a);                                                                            \
    }                                                                                              \
    GMUX_HD V __halves2##N##2(T a, T b)                                                            \
    {                                                                                              \
        return V(a, b);                                                                            \
    }                                                                                              \
    GMUX_HD V make_##N##2(T a, T b)                                                                \
    {                                                                                              \
        return V(a, b);                                                                            \
    }                                                                                              \
    GMUX_HD T __low2##N(V h)                                                                       \
    {                                                                                              \
        return h.x;                                                                                \
    }                                                                                              \
    GMUX_HD T __high2##N(V h)                                                                      \
    {                                                                                              \
        return h.y;                                                                                \
    }                                                                                              \
    GMUX_HD V __low2##N##2(V h)                                                                    \
    {                                                                                              \
        return V(h.x, h.x);                                                                        \
    }                                                                                              \
    GMUX_HD V __high2##N##2(V h)                                                                   \
    {                                                                                              \
        return V(h.y, h.y);                                                                        \
    }                                                                                              \
    GMUX_HD V __lows2##N##2(V a, V b)                                                              \
    {                                                                                              \
        return V(a.x, b.x);                                                                        \
    }                                                                                              \
    GMUX_HD V __highs2##N##2(V a, V b)                                                             \
    {                                                                                              \
        return V(a.y, b.y);                                                                        \
    }                                                                                              \
    GMUX_HD unsigned short __##N##_as_ushort(T h)                                                  \
    {                                                                                              \
        return h.__x;                                                                              \
    }                                                                                              \
    GMUX_HD short __##N##_as_short(T h)                                                            \
    {                                                                                              \
        return (short)h.__x;                                                                       \
    }                                                                                              \
    GMUX_HD T __ushort_as_##N(unsigned short x)                                                    \
    {                                                                                              \
        return T(RAW { x });                                                                       \
    }                                                                                              \
    GMUX_HD T __short_as_##N(short x)                                                              \
    {                                                                                              \
        return T(RAW { (unsigned short)x });                                                       \
    }                                                                                              \
    GMUX_SMALL_INTEGER(T, N, int, int)                                                             \
    GMUX_SMALL_INTEGER(T, N, uint, unsigned int)                                                   \
    GMUX_SMALL_INTEGER(T, N, short, short)                                                         \
    GMUX_SMALL_INTEGER(T, N, ushort, unsigned short)                                               \
    GMUX_SMALL_INTEGER(T, N, ll, long long)                                                        \
    GMUX_SMALL_INTEGER(T, N, ull, unsigned long long)

#define GMUX_SMALL_FUNCTIONS(T, V)                                                                 \
    GMUX_HD T __hadd(T a, T b)                                                                     \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    GMUX_HD T __hsub(T a, T b)                                                                     \
    {                                                                                              \
        return a - b;                                                                              \
    }                                                                                              \
    GMUX_HD T __hmul(T a, T b)                                                                     \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    GMUX_HD T __hdiv(T a, T b)                                                                     \
    {                                                                                              \
        return a / b;                                                                              \
    }                                                                                              \
    GMUX_HD T __hneg(T a)                                                                          \
    {                                                                                              \
        return -a;                                                                                 \
    }                                                                                              \
    GMUX_HD T __habs(T a)                                                                          \
    {                                                                                              \
        return T(__builtin_fabsf((float)a));                                                       \
    }                                                                                              \
    GMUX_HD T __hfma(T a, T b, T c)                                                                \
    {                                                                                              \
        return T(__builtin_fmaf((float)a, (float)b, (float)c));                                    \
    }                                                                                              \
    GMUX_HD T __hmax(T a, T b)                                                                     \
    {                                                                                              \
        return T(__builtin_fmaxf((float)a, (float)b));                                             \
    }                                                                                              \
    GMUX_HD T __hmin(T a, T b)                                                                     \
    {                                                                                              \
        return T(__builtin_fminf((float)a, (float)b));                                             \
    }                                                                                              \
    GMUX_HD bool __heq(T a, T b)                                                                   \
    {                                                                                              \
        return a == b;                                                                             \
    }                                                                                              \
    GMUX_HD bool __hne(T a, T b)                                                                   \
    {                                                                                              \
        return a < b || a > b; /* false for NaN */                                                 \
    }                                                                                              \
    GMUX_HD bool __hlt(T a, T b)                                                                   \
    {                                                                                              \
        return a < b;                                                                              \
    }                                                                                              \
    GMUX_HD bool __hle(T a, T b)                                                                   \
    {                                                                                              \
        return a <= b;                                                                             \
    }                                                                                              \
    GMUX_HD bool __hgt(T a, T b)                                                                   \
    {                                                                                              \
        return a > b;                                                                              \
    }                                                                                              \
    GMUX_HD bool __hge(T a, T b)                                                                   \
    {                                                                                              \
        return a >= b;                                                                             \
    }                                                                                              \
    GMUX_HD bool __hisnan(T a)                                                                     \
    {                                                                                              \
        return a != a;                                                                             \
    }                                                                                              \
    GMUX_HD V __hadd2(V a, V b)                                                                    \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    GMUX_HD V __hsub2(V a, V b)                                                                    \
    {                                                                                              \
        return a - b;                                                                              \
    }                                                                                              \
    GMUX_HD V __hmul2(V a, V b)                                                                    \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    GMUX_HD V __h2div(V a, V b)                                                                    \
    {                                                                                              \
        return a / b;                                                                              \
    }                                                                                              \
    GMUX_HD V __hneg2(V a)                                                                         \
    {                                                                                              \
        return -a;                                                                                 \
    }                                                                                              \
    GMUX_HD V __hfma2(V a, V b, V c)                                                               \
    {                                                                                              \
        return V(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                    \
    }                                                                                              \
    GMUX_HD V __hmax2(V a, V b)                                                                    \
    {                                                                                              \
        return V(__hmax(a.x, b.x), __hmax(a.y, b.y));                                              \
    }                                                                                              \
    GMUX_HD V __hmin2(V a, V b)                                                                    \
    {                                                                                              \
        return V(__hmin(a.x, b.x), __hmin(a.y, b.y));                                              \
    }                                                                                              \
    GMUX_HD V __heq2(V a, V b)                                                                     \
    {                                                                                              \
        return V(a.x == b.x ? 1.0f : 0.0f, a.y == b.y ? 1.0f : 0.0f);                              \
    }                                                                                              \
    GMUX_HD bool __hbeq2(V a, V b)                                                                 \
    {                                                                                              \
        return a.x == b.x && a.y == b.y;                                                           \
    }                                                                                              \
    GMUX_HD V __hne2(V a, V b)                                                                     \
    {                                                                                              \
        return V(__hne(a.x, b.x) ? 1.0f : 0.0f, __hne(a.y, b.y) ? 1.0f : 0.0f);                    \
    }                                                                                              \
    GMUX_HD bool __hbne2(V a, V b)                                                                 \
    {                                                                                              \
        return __hne(a.x, b.x) && __hne(a.y, b.y);                                                 \
    }                                                                                              \
    GMUX_HD V __hlt2(V a, V b)                                                                     \
    {                                                                                              \
        return V(a.x < b.x ? 1.0f : 0.0f, a.y < b.y ? 1.0f : 0.0f);                                \
    }                                                                                              \
    GMUX_HD bool __hblt2(V a, V b)                                                                 \
    {                                                                                              \
        return a.x < b.x && a.y < b.y;                                                             \
    }                                                                                              \
    GMUX_HD V __hle2(V a, V b)                                                                     \
    {                                                                                              \
        return V(a.x <= b.x ? 1.0f : 0.0f, a.y <= b.y ? 1.0f : 0.0f);                              \
    }                                                                                              \
    GMUX_HD bool __hble2(V a, V b)                                                                 \
    {                                                                                              \
        return a.x <= b.x && a.y <= b.y;                                                           \
    }                                                                                              \
    GMUX_HD V __hgt2(V a, V b)                                                                     \
    {                                                                                              \
        return V(a.x > b.x ? 1.0f : 0.0f, a.y > b.y ? 1.0f : 0.0f);                                \
    }                                                                                              \
    GMUX_HD bool __hbgt2(V a, V b)                                                                 \
    {                                                                                              \
        return a.x > b.x && a.y > b.y;                                                             \
    }                                                                                              \
    GMUX_HD V __hge2(V a, V b)                                                                     \
    {                                                                                              \
        return V(a.x >= b.x ? 1.0f : 0.0f, a.y >= b.y ? 1.0f : 0.0f);                              \
    }                                                                                              \
    GMUX_HD bool __hbge2(V a, V b)                                                                 \
    {                                                                                              \
        return a.x >= b.x && a.y >= b.y;                                                           \
    }                                                                                              \
    GMUX_HD V __habs2(V a)                                                                         \
    {                                                                                              \
        return V(__habs(a.x), __habs(a.y));                                                        \
    }                                                                                              \
    GMUX_HD bool __hisinf(T a)                                                                     \
    {                                                                                              \
        return __builtin_isinf((float)a);                                                          \
    }                                                                                              \
    GMUX_HD T hrcp(T a)                                                                            \
    {                                                                                              \
        return T(1.0f / (float)a);                                                                 \
    }

/* What only kernels have. */
#ifdef __CUDA__
#define GMUX_SMALL_KERNEL_FUNCTIONS(T, V)                                                          \
    GMUX_SMALL_MATH(T, V, hsqrt, sqrtf)                                                            \
    GMUX_SMALL_MATH(T, V, hrsqrt, rsqrtf)                                                          \
    GMUX_SMALL_EXACT(T, V, hexp, exp)                                                              \
    GMUX_SMALL_EXACT(T, V, hexp2, exp2)                                                            \
    GMUX_SMALL_EXACT(T, V, hexp10, exp10)                                                          \
    GMUX_SMALL_EXACT(T, V, hlog, log)                                                              \
    GMUX_SMALL_EXACT(T, V, hlog2, log2)                                                            \
    GMUX_SMALL_EXACT(T, V, hlog10, log10)                                                          \
    GMUX_SMALL_MATH(T, V, hsin, sinf)                                                              \
    GMUX_SMALL_MATH(T, V, hcos, cosf)                                                              \
    GMUX_SMALL_MATH(T, V, htanh, tanhf)                                                            \
    GMUX_SMALL_MATH(T, V, hfloor, floorf)                                                          \
    GMUX_SMALL_MATH(T, V, hceil, ceilf)                                                            \
    GMUX_SMALL_MATH(T, V, htrunc, truncf)                                                          \
    GMUX_SMALL_MATH(T, V, hrint, rintf)                                                            \
    GMUX_SMALL_SHUFFLE(T, V, __shfl_sync, int)                                                     \
    GMUX_SMALL_SHUFFLE(T, V, __shfl_up_sync, unsigned int)                                         \
    GMUX_SMALL_SHUFFLE(T, V, __shfl_down_sync, unsigned int)                                       \
    GMUX_SMALL_SHUFFLE(T, V, __shfl_xor_sync, int)                                                 \
    __device__ static __inline__ T __ldg(const T *p)                                               \
    {                                                                                              \
        return *p;                                                                                 \
    }                                                                                              \
    __device__ static __inline__ V __ldg(const V *p)                                               \
    {                                                                                              \
        return *p;                                                                                 \
    }                                                                                              \
    /* By compare and swap of the word that it lies in. */                                         \
    __device__ static __inline__ T atomicAdd(T *p, T v)                                            \
    {                                                                                              \
        unsigned *word = (unsigned *)((size_t)p & ~(size_t)3),                                     \
                 shift = (unsigned)((size_t)p & 2) * 8;                                            \
        unsigned old = *word, seen;                                                                \
        T was;                                                                                     \
        do {                                                                                       \
            seen = old;                                                                            \
            was.__x = (unsigned short)(seen >> shift);                                             \
            T sum = was + v;                                                                       \
            old =                                                                                  \
                atomicCAS(word, seen, (seen & ~(0xffffu << shift)) | (unsigned)sum.__x << shift);  \
        } while (old != seen);                                                                     \
        return was;                                                                                \
    }                                                                                              \
    __device__ static __inline__ V atomicAdd(V *p, V v)                                            \
    {                                                                                              \
        return V(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y));                                    \
    }
#define GMUX_SMALL_MATH(T, V, name, function)                                                      \
    __device__ static __inline__ T name(T a)                                                       \
    {                                                                                              \
        return T(function((float)a));                                                              \
    }
/* What is rounded once, as CUDA's functions are: a float between is half of the way in some cases.
 */
#define GMUX_SMALL_EXACT(T, V, name, function)                                                     \
    __device__ static __inline__ T name(T a)                                                       \
    {                                                                                              \
        return T(function((double)(float)a));                                                      \
    }
#define GMUX_SMALL_SHUFFLE(T, V, name, ARG)                                                        \
    __device__ static __inline__ T name(unsigned mask, T v, ARG lane, int width = warpSize)        \
    {                                                                                              \
        T r;                                                                                       \
        r.__x = (unsigned short)name(mask, (int)v.__x, lane, width);                               \
        return r;                                                                                  \
    }                                                                                              \
    __device__ static __inline__ V name(unsigned mask, V v, ARG lane, int width = warpSize)        \
    {                                                                                              \
        int word;                                                                                  \
        __builtin_memcpy(&word, &v, sizeof(word));                                                 \
        word = name(mask, word, lane, width);                                                      \
        __builtin_memcpy(&v, &word, sizeof(word));                                                 \
        return v;                                                                                  \
    }
#else
#define GMUX_SMALL_KERNEL_FUNCTIONS(T, V)
#endif

#endif
