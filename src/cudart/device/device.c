/*
 * Mathematics of kernels: the functions __nv_* that clang's CUDA headers call. A function that is
 * one instruction is written as that. sin, exp and many others are those of libclc (Debian's
 * libclc-19), an open implementation of OpenCL's mathematics in LLVM bitcode, under their mangled
 * names. The build links both into one file of bitcode; gmux-cc links the functions that a program
 * uses from it.
 */
#define __DEVICE__
#include <__clang_cuda_libdevice_declares.h>

#pragma clang diagnostic ignored "-Wmissing-prototypes"

/* --- libclc's --------------------------------------------------------------------------------- */

#define CLC_F(name, sym) extern float clc_##name##f(float) __asm__(sym "f");
#define CLC_D(name, sym) extern double clc_##name(double) __asm__(sym "d");
#define CLC1(name, sym)                                                                            \
    CLC_F(name, sym)                                                                               \
    CLC_D(name, sym)                                                                               \
    float __nv_##name##f(float x)                                                                  \
    {                                                                                              \
        return clc_##name##f(x);                                                                   \
    }                                                                                              \
    double __nv_##name(double x)                                                                   \
    {                                                                                              \
        return clc_##name(x);                                                                      \
    }
CLC1(acos, "_Z4acos")
CLC1(acosh, "_Z5acosh")
CLC1(asin, "_Z4asin")
CLC1(asinh, "_Z5asinh")
CLC1(atan, "_Z4atan")
CLC1(atanh, "_Z5atanh")
CLC1(cbrt, "_Z4cbrt")
CLC1(cos, "_Z3cos")
CLC1(cosh, "_Z4cosh")
CLC1(cospi, "_Z5cospi")
CLC1(erf, "_Z3erf")
CLC1(erfc, "_Z4erfc")
CLC1(exp, "_Z3exp")
CLC1(exp2, "_Z4exp2")
CLC1(exp10, "_Z5exp10")
CLC1(expm1, "_Z5expm1")
CLC1(lgamma, "_Z6lgamma")
CLC1(log, "_Z3log")
CLC1(log10, "_Z5log10")
CLC1(log1p, "_Z5log1p")
CLC1(log2, "_Z4log2")
CLC1(logb, "_Z4logb")
CLC1(sin, "_Z3sin")
CLC1(sinh, "_Z4sinh")
CLC1(sinpi, "_Z5sinpi")
CLC1(tan, "_Z3tan")
CLC1(tanh, "_Z4tanh")

#define CLC2(name, sym)                                                                            \
    extern float clc_##name##f(float, float) __asm__(sym "ff");                                    \
    extern double clc_##name(double, double) __asm__(sym "dd");                                    \
    float __nv_##name##f(float x, float y)                                                         \
    {                                                                                              \
        return clc_##name##f(x, y);                                                                \
    }                                                                                              \
    double __nv_##name(double x, double y)                                                         \
    {                                                                                              \
        return clc_##name(x, y);                                                                   \
    }
CLC2(atan2, "_Z5atan2")
CLC2(fdim, "_Z4fdim")
CLC2(fmod, "_Z4fmod")
CLC2(hypot, "_Z5hypot")
CLC2(nextafter, "_Z9nextafter")
CLC2(pow, "_Z3pow")
CLC2(remainder, "_Z9remainder")

extern float clc_ldexpf(float, int) __asm__("_Z5ldexpfi");
extern double clc_ldexp(double, int) __asm__("_Z5ldexpdi");
extern float clc_pownf(float, int) __asm__("_Z4pownfi");
extern double clc_pown(double, int) __asm__("_Z4powndi");
extern int clc_ilogbf(float) __asm__("_Z5ilogbf");
extern int clc_ilogb(double) __asm__("_Z5ilogbd");
float __nv_ldexpf(float x, int e)
{
    return clc_ldexpf(x, e);
}
double __nv_ldexp(double x, int e)
{
    return clc_ldexp(x, e);
}
float __nv_scalbnf(float x, int e)
{
    return clc_ldexpf(x, e);
}
double __nv_scalbn(double x, int e)
{
    return clc_ldexp(x, e);
}
float __nv_powif(float x, int e)
{
    return clc_pownf(x, e);
}
double __nv_powi(double x, int e)
{
    return clc_pown(x, e);
}
int __nv_ilogbf(float x)
{
    return clc_ilogbf(x);
}
int __nv_ilogb(double x)
{
    return clc_ilogb(x);
}

/* --- pieces of the representation ------------------------------------------------------------- */

static unsigned bits_f(float x)
{
    return __builtin_bit_cast(unsigned, x);
}
static unsigned long long bits_d(double x)
{
    return __builtin_bit_cast(unsigned long long, x);
}

int __nv_float_as_int(float x)
{
    return (int)bits_f(x);
}
unsigned int __nv_float_as_uint(float x)
{
    return bits_f(x);
}
float __nv_int_as_float(int x)
{
    return __builtin_bit_cast(float, x);
}
float __nv_uint_as_float(unsigned int x)
{
    return __builtin_bit_cast(float, x);
}
unsigned long long __nv_double_as_longlong(double x)
{
    return bits_d(x);
}
double __nv_longlong_as_double(long long x)
{
    return __builtin_bit_cast(double, x);
}
int __nv_double2hiint(double x)
{
    return (int)(bits_d(x) >> 32);
}
int __nv_double2loint(double x)
{
    return (int)bits_d(x);
}
double __nv_hiloint2double(int hi, int lo)
{
    return __builtin_bit_cast(double, (unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}
int __nv_signbitf(float x)
{
    return (int)(bits_f(x) >> 31);
}
int __nv_signbitd(double x)
{
    return (int)(bits_d(x) >> 63);
}
int __nv_isnanf(float x)
{
    return x != x;
}
int __nv_isnand(double x)
{
    return x != x;
}
int __nv_isinff(float x)
{
    return __builtin_fabsf(x) == __builtin_inff();
}
int __nv_isinfd(double x)
{
    return __builtin_fabs(x) == __builtin_inf();
}
int __nv_finitef(float x)
{
    return __builtin_fabsf(x) < __builtin_inff();
}
int __nv_isfinited(double x)
{
    return __builtin_fabs(x) < __builtin_inf();
}
float __nv_nanf(const signed char *p)
{
    (void)p;
    return __builtin_nanf("");
}
double __nv_nan(const signed char *p)
{
    (void)p;
    return __builtin_nan("");
}

float __nv_frexpf(float x, int *e)
{
    if (x == 0 || !__nv_finitef(x))
        return *e = 0, x;
    int scaled = bits_f(x) << 1 < 0x01000000u ? 25 : 0;
    unsigned b = bits_f(scaled ? x * 0x1p25f : x);
    *e = (int)(b >> 23 & 0xff) - 126 - scaled;
    return __nv_uint_as_float((b & 0x807fffffu) | 0x3f000000u);
}

double __nv_frexp(double x, int *e)
{
    if (x == 0 || !__nv_isfinited(x))
        return *e = 0, x;
    int scaled = bits_d(x) << 1 < 0x0020000000000000u ? 54 : 0;
    unsigned long long b = bits_d(scaled ? x * 0x1p54 : x);
    *e = (int)(b >> 52 & 0x7ff) - 1022 - scaled;
    return __nv_longlong_as_double((long long)((b & 0x800fffffffffffffu) | 0x3fe0000000000000u));
}

float __nv_modff(float x, float *whole)
{
    *whole = __builtin_truncf(x);
    return __builtin_copysignf(__nv_isinff(x) ? 0.0f : x - *whole, x);
}

double __nv_modf(double x, double *whole)
{
    *whole = __builtin_trunc(x);
    return __builtin_copysign(__nv_isinfd(x) ? 0.0 : x - *whole, x);
}

float __nv_remquof(float x, float y, int *q)
{
    float r = clc_remainderf(x, y);
    *q = (int)((long long)__builtin_rintf((x - r) / y) & 0x7f) *
         (__nv_signbitf(x) != __nv_signbitf(y) ? -1 : 1);
    return r;
}

double __nv_remquo(double x, double y, int *q)
{
    double r = clc_remainder(x, y);
    long long n = (long long)__builtin_fabs(__builtin_rint((x - r) / y));
    *q = (int)(n & 0x7f) * (__nv_signbitd(x) != __nv_signbitd(y) ? -1 : 1);
    return r;
}

/* --- one instruction -------------------------------------------------------------------------- */

#define ONE(result, name, expression, ...)                                                         \
    result __nv_##name(__VA_ARGS__)                                                                \
    {                                                                                              \
        return expression;                                                                         \
    }
ONE(float, fabsf, __builtin_fabsf(x), float x)
ONE(double, fabs, __builtin_fabs(x), double x)
ONE(float, ceilf, __builtin_ceilf(x), float x)
ONE(double, ceil, __builtin_ceil(x), double x)
ONE(float, floorf, __builtin_floorf(x), float x)
ONE(double, floor, __builtin_floor(x), double x)
ONE(float, truncf, __builtin_truncf(x), float x)
ONE(double, trunc, __builtin_trunc(x), double x)
ONE(float, rintf, __builtin_rintf(x), float x)
ONE(double, rint, __builtin_rint(x), double x)
ONE(float, nearbyintf, __builtin_rintf(x), float x)
ONE(double, nearbyint, __builtin_rint(x), double x)
ONE(float, copysignf, __builtin_copysignf(x, y), float x, float y)
ONE(double, copysign, __builtin_copysign(x, y), double x, double y)
ONE(float, fmaxf, __builtin_fmaxf(x, y), float x, float y)
ONE(double, fmax, __builtin_fmax(x, y), double x, double y)
ONE(float, fminf, __builtin_fminf(x, y), float x, float y)
ONE(double, fmin, __builtin_fmin(x, y), double x, double y)
ONE(float, fmaf, __builtin_fmaf(x, y, z), float x, float y, float z)
ONE(double, fma, __builtin_fma(x, y, z), double x, double y, double z)
ONE(float, sqrtf, __builtin_sqrtf(x), float x)
ONE(double, sqrt, __nvvm_sqrt_rn_d(x), double x)
ONE(float, rsqrtf, __nvvm_rsqrt_approx_f(x), float x)
ONE(double, rsqrt, 1.0 / __nvvm_sqrt_rn_d(x), double x)
ONE(float, saturatef, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f, float x)
ONE(int, abs, x < 0 ? -x : x, int x)
ONE(long long, llabs, x < 0 ? -x : x, long long x)
ONE(int, max, x > y ? x : y, int x, int y)
ONE(int, min, x < y ? x : y, int x, int y)
ONE(unsigned, umax, x > y ? x : y, unsigned x, unsigned y)
ONE(unsigned, umin, x < y ? x : y, unsigned x, unsigned y)
ONE(long long, llmax, x > y ? x : y, long long x, long long y)
ONE(long long, llmin, x < y ? x : y, long long x, long long y)
ONE(unsigned long long, ullmax, x > y ? x : y, unsigned long long x, unsigned long long y)
ONE(unsigned long long, ullmin, x < y ? x : y, unsigned long long x, unsigned long long y)
ONE(int, brev, (int)__builtin_bitreverse32((unsigned)x), int x)
ONE(long long, brevll, (long long)__builtin_bitreverse64((unsigned long long)x), long long x)
ONE(int, clz, x ? __builtin_clz((unsigned)x) : 32, int x)
ONE(int, clzll, x ? __builtin_clzll((unsigned long long)x) : 64, long long x)
ONE(int, ffs, __builtin_ffs(x), int x)
ONE(int, ffsll, __builtin_ffsll(x), long long x)
ONE(int, popc, __builtin_popcount(x), unsigned x)
ONE(int, popcll, __builtin_popcountll(x), unsigned long long x)
ONE(int, byte_perm, (int)__nvvm_prmt((unsigned)x, (unsigned)y, (unsigned)s), int x, int y, int s)
ONE(int, mulhi, (int)((long long)x *y >> 32), int x, int y)
ONE(unsigned, umulhi, (unsigned)((unsigned long long)x *y >> 32), unsigned x, unsigned y)
ONE(long long, mul64hi, (long long)((__int128)x *y >> 64), long long x, long long y)
ONE(unsigned long long, umul64hi, (unsigned long long)((unsigned __int128)x *y >> 64),
    unsigned long long x, unsigned long long y)
ONE(int, mul24, (x << 8 >> 8) * (y << 8 >> 8), int x, int y)
ONE(unsigned, umul24, (x & 0xffffffu) * (y & 0xffffffu), unsigned x, unsigned y)
ONE(int, hadd, (int)(((long long)x + y) >> 1), int x, int y)
ONE(int, rhadd, (int)(((long long)x + y + 1) >> 1), int x, int y)
ONE(int, uhadd, (int)(((unsigned long long)x + y) >> 1), unsigned x, unsigned y)
ONE(unsigned, urhadd, (unsigned)(((unsigned long long)x + y + 1) >> 1), unsigned x, unsigned y)
ONE(int, sad, (int)((unsigned)(x > y ? x - y : y - x) + (unsigned)z), int x, int y, int z)
ONE(unsigned, usad, (x > y ? x - y : y - x) + z, unsigned x, unsigned y, unsigned z)
ONE(long long, llrintf, __nvvm_f2ll_rn(x), float x)
ONE(long long, llrint, __nvvm_d2ll_rn(x), double x)

/* Halves are rounded away from zero. */
float __nv_roundf(float x)
{
    float t = __builtin_truncf(x);
    return __builtin_copysignf(
        t + (__builtin_fabsf(x - t) >= 0.5f ? 1.0f : 0.0f) * __builtin_copysignf(1.0f, x), x);
}
double __nv_round(double x)
{
    double t = __builtin_trunc(x);
    return __builtin_copysign(
        t + (__builtin_fabs(x - t) >= 0.5 ? 1.0 : 0.0) * __builtin_copysign(1.0, x), x);
}
long long __nv_llroundf(float x)
{
    return (long long)__nv_roundf(x);
}
long long __nv_llround(double x)
{
    return (long long)__nv_round(x);
}

/* --- with a rounding of its own --------------------------------------------------------------- */

#define ROUND2(name, op, type, letter)                                                             \
    ONE(type, name##_rn, __nvvm_##op##_rn_##letter(x, y), type x, type y)                          \
    ONE(type, name##_rz, __nvvm_##op##_rz_##letter(x, y), type x, type y)                          \
    ONE(type, name##_rd, __nvvm_##op##_rm_##letter(x, y), type x, type y)                          \
    ONE(type, name##_ru, __nvvm_##op##_rp_##letter(x, y), type x, type y)
ROUND2(fadd, add, float, f)
ROUND2(fmul, mul, float, f)
ROUND2(fdiv, div, float, f)
ROUND2(dadd, add, double, d)
ROUND2(dmul, mul, double, d)
ROUND2(ddiv, div, double, d)
#define ROUND_SUB(name, op, type, letter)                                                          \
    ONE(type, name##_rn, __nvvm_##op##_rn_##letter(x, -y), type x, type y)                         \
    ONE(type, name##_rz, __nvvm_##op##_rz_##letter(x, -y), type x, type y)                         \
    ONE(type, name##_rd, __nvvm_##op##_rm_##letter(x, -y), type x, type y)                         \
    ONE(type, name##_ru, __nvvm_##op##_rp_##letter(x, -y), type x, type y)
ROUND_SUB(fsub, add, float, f)
ROUND_SUB(dsub, add, double, d)
#define ROUND1(name, op, type, letter)                                                             \
    ONE(type, name##_rn, __nvvm_##op##_rn_##letter(x), type x)                                     \
    ONE(type, name##_rz, __nvvm_##op##_rz_##letter(x), type x)                                     \
    ONE(type, name##_rd, __nvvm_##op##_rm_##letter(x), type x)                                     \
    ONE(type, name##_ru, __nvvm_##op##_rp_##letter(x), type x)
ROUND1(frcp, rcp, float, f)
ROUND1(drcp, rcp, double, d)
ROUND1(fsqrt, sqrt, float, f)
ROUND1(dsqrt, sqrt, double, d)
#define ROUND3(name, type, letter)                                                                 \
    ONE(type, name##_rn, __nvvm_fma_rn_##letter(x, y, z), type x, type y, type z)                  \
    ONE(type, name##_rz, __nvvm_fma_rz_##letter(x, y, z), type x, type y, type z)                  \
    ONE(type, name##_rd, __nvvm_fma_rm_##letter(x, y, z), type x, type y, type z)                  \
    ONE(type, name##_ru, __nvvm_fma_rp_##letter(x, y, z), type x, type y, type z)
ROUND3(fmaf, float, f)
ROUND3(fmaf_ieee, float, f)
ROUND3(fma, double, d)
ONE(float, frsqrt_rn, (float)(1.0 / __nvvm_sqrt_rn_d((double)x)), float x)

#define CONVERT(name, op, to, from)                                                                \
    ONE(to, name##_rn, __nvvm_##op##_rn(x), from x)                                                \
    ONE(to, name##_rz, __nvvm_##op##_rz(x), from x)                                                \
    ONE(to, name##_rd, __nvvm_##op##_rm(x), from x)                                                \
    ONE(to, name##_ru, __nvvm_##op##_rp(x), from x)
CONVERT(float2int, f2i, int, float)
CONVERT(float2uint, f2ui, unsigned, float)
CONVERT(float2ll, f2ll, long long, float)
CONVERT(float2ull, f2ull, unsigned long long, float)
CONVERT(double2int, d2i, int, double)
CONVERT(double2uint, d2ui, unsigned, double)
CONVERT(double2ll, d2ll, long long, double)
CONVERT(double2ull, d2ull, unsigned long long, double)
CONVERT(double2float, d2f, float, double)
CONVERT(int2float, i2f, float, int)
CONVERT(uint2float, ui2f, float, unsigned)
CONVERT(ll2float, ll2f, float, long long)
CONVERT(ull2float, ull2f, float, unsigned long long)
CONVERT(ll2double, ll2d, double, long long)
CONVERT(ull2double, ull2d, double, unsigned long long)
ONE(double, int2double_rn, (double)x, int x)
ONE(double, uint2double_rn, (double)x, unsigned x)

/* --- the fast ones: a GPU's approximations ---------------------------------------------------- */

ONE(float, fast_cosf, __nvvm_cos_approx_f(x), float x)
ONE(float, fast_sinf, __nvvm_sin_approx_f(x), float x)
ONE(float, fast_tanf, __nvvm_div_approx_f(__nvvm_sin_approx_f(x), __nvvm_cos_approx_f(x)), float x)
ONE(float, fast_expf, __nvvm_ex2_approx_f(x * 1.44269504088896341f), float x)
ONE(float, fast_exp10f, __nvvm_ex2_approx_f(x * 3.32192809488736235f), float x)
ONE(float, fast_logf, __nvvm_lg2_approx_f(x) * 0.69314718055994531f, float x)
ONE(float, fast_log2f, __nvvm_lg2_approx_f(x), float x)
ONE(float, fast_log10f, __nvvm_lg2_approx_f(x) * 0.30102999566398120f, float x)
ONE(float, fast_powf, __nvvm_ex2_approx_f(y *__nvvm_lg2_approx_f(x)), float x, float y)
ONE(float, fast_fdividef, __nvvm_div_approx_f(x, y), float x, float y)
void __nv_fast_sincosf(float x, float *s, float *c)
{
    *s = __nvvm_sin_approx_f(x);
    *c = __nvvm_cos_approx_f(x);
}

/* --- made of others --------------------------------------------------------------------------- */

void __nv_sincosf(float x, float *s, float *c)
{
    *s = clc_sinf(x), *c = clc_cosf(x);
}
void __nv_sincos(double x, double *s, double *c)
{
    *s = clc_sin(x), *c = clc_cos(x);
}
void __nv_sincospif(float x, float *s, float *c)
{
    *s = clc_sinpif(x), *c = clc_cospif(x);
}
void __nv_sincospi(double x, double *s, double *c)
{
    *s = clc_sinpi(x), *c = clc_cospi(x);
}
ONE(float, rcbrtf, 1.0f / clc_cbrtf(x), float x)
ONE(double, rcbrt, 1.0 / clc_cbrt(x), double x)
ONE(float, rhypotf, 1.0f / clc_hypotf(x, y), float x, float y)
ONE(double, rhypot, 1.0 / clc_hypot(x, y), double x, double y)

/* The gamma function of 25 and more, by Stirling's series. The result is the product of *half and
 * the returned value: its power overflows before the product does. */
static double stirling(double x, double *half)
{
    double r = 1 / x;
    double series =
        1 + r * (1.0 / 12 +
                 r * (1.0 / 288 +
                      r * (-139.0 / 51840 + r * (-571.0 / 2488320 +
                                                 r * (163879.0 / 209018880 +
                                                      r * (5246819.0 / 75246796800 +
                                                           r * (-534703531.0 / 902961561600)))))));
    *half = clc_pow(x, 0.5 * x - 0.25);
    return clc_exp(-x) * *half * 2.50662827463100050242 * series;
}
/* For x >= 0.5. Up to 25 by the recurrence from [1, 2], where the logarithm is small. */
static double gamma_right(double x)
{
    double product = 1, half;
    if (x > 172)
        return __builtin_inf();
    if (x > 25) {
        double rest = stirling(x, &half);
        return half * rest;
    }
    for (; x > 2; product *= x)
        x -= 1;
    return x < 1 ? clc_exp(clc_lgamma(x + 1)) / x : product * clc_exp(clc_lgamma(x));
}
double __nv_tgamma(double x)
{
    double product = 1, half;
    if (x >= 0.5)
        return gamma_right(x);
    if (x == __builtin_floor(x))
        return x == 0 ? __builtin_copysign(__builtin_inf(), x) : __builtin_nan("");
    /* For negative x, x + 1 is exact but 1 - x is not. So the reflection uses -x, and far from
     * 0. */
    if (x < -185)
        return __builtin_copysign(0.0, clc_sinpi(x));
    if (x < -25) {
        double rest = stirling(-x, &half);
        return -3.14159265358979323846 / (clc_sinpi(x) * x * half) / rest;
    }
    for (; x < 0.5; x += 1)
        product *= x;
    return gamma_right(x) / product;
}
float __nv_tgammaf(float x)
{
    return (float)__nv_tgamma((double)x);
}

/* Lengths of vectors. Floats are computed in double, whose range holds their squares; doubles are
 * scaled by the largest component. */
static double length(const double *v, int n)
{
    double most = 0, sum = 0;
    for (int i = 0; i < n; i++)
        most = __builtin_fmax(most, __builtin_fabs(v[i]));
    if (most == 0 || most == __builtin_inf())
        return most;
    for (int i = 0; i < n; i++)
        sum += v[i] / most * (v[i] / most);
    return most * __nvvm_sqrt_rn_d(sum);
}
static double length_f(const float *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)v[i] * v[i];
    return __nvvm_sqrt_rn_d(sum);
}
ONE(float, norm3df, (float)length_f((float[]) { a, b, c }, 3), float a, float b, float c)
ONE(float, norm4df, (float)length_f((float[]) { a, b, c, d }, 4), float a, float b, float c,
    float d)
ONE(float, rnorm3df, (float)(1 / length_f((float[]) { a, b, c }, 3)), float a, float b, float c)
ONE(float, rnorm4df, (float)(1 / length_f((float[]) { a, b, c, d }, 4)), float a, float b, float c,
    float d)
ONE(double, norm3d, length((double[]) { a, b, c }, 3), double a, double b, double c)
ONE(double, norm4d, length((double[]) { a, b, c, d }, 4), double a, double b, double c, double d)
ONE(double, rnorm3d, 1 / length((double[]) { a, b, c }, 3), double a, double b, double c)
ONE(double, rnorm4d, 1 / length((double[]) { a, b, c, d }, 4), double a, double b, double c,
    double d)
ONE(float, normf, (float)length_f(v, n), int n, const float *v)
ONE(float, rnormf, (float)(1 / length_f(v, n)), int n, const float *v)
ONE(double, norm, length(v, n), int n, const double *v)
ONE(double, rnorm, 1 / length(v, n), int n, const double *v)

/* The normal distribution. */
ONE(double, normcdf, 0.5 * clc_erfc(-x * 0.70710678118654752440), double x)
ONE(float, normcdff, (float)(0.5 * clc_erfc(-(double)x * 0.70710678118654752440)), float x)

/* exp(x^2) erfc(x). Beyond 26 erfc is 0, and the first terms of the asymptotic series are
 * precise. */
double __nv_erfcx(double x)
{
    if (x < 26)
        return clc_exp(x * x) * clc_erfc(x);
    double r = 1 / (x * x);
    return 0.56418958354775628695 / x * (1 + r * (-0.5 + r * (0.75 + r * -1.875)));
}
float __nv_erfcxf(float x)
{
    return (float)__nv_erfcx((double)x);
}

/* The inverse of erfc, by Halley's iteration on erfc(z) = y for y <= 1. It starts from the first
 * term of the series at the end or in the middle. */
double __nv_erfcinv(double y)
{
    if (!(y >= 0 && y <= 2))
        return __builtin_nan("");
    if (y == 0 || y == 2)
        return y == 0 ? __builtin_inf() : -__builtin_inf();
    double a = y > 1 ? 2 - y : y, t = __nvvm_sqrt_rn_d(-2 * clc_log(a / 2));
    double z = a > 0.5 ? 0.88622692545275801365 * (1 - a)
                       : 0.70710678118654752440 *
                             (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
    for (int i = 0; i < 4; i++) {
        double e = clc_erfc(z) - a;
        double d = -1.12837916709551257390 * clc_exp(-z * z);
        if (d == 0)
            break;
        e /= d;
        z -= e / (1 + z * e);
    }
    return y > 1 ? -z : z;
}
double __nv_erfinv(double x)
{
    /* Near 0 the last bits of x are lost in 1 - x. */
    if (__builtin_fabs(x) < 0.5) {
        double z = 0.88622692545275801365 * x;
        for (int i = 0; i < 4; i++) {
            double e = (clc_erf(z) - x) / (1.12837916709551257390 * clc_exp(-z * z));
            z -= e / (1 + z * e);
        }
        return z;
    }
    return x > 0 ? __nv_erfcinv(1 - x) : -__nv_erfcinv(1 + x);
}
float __nv_erfcinvf(float y)
{
    return (float)__nv_erfcinv((double)y);
}
float __nv_erfinvf(float x)
{
    return (float)__nv_erfinv((double)x);
}
double __nv_normcdfinv(double p)
{
    return -1.41421356237309504880 * __nv_erfcinv(2 * p);
}
float __nv_normcdfinvf(float p)
{
    return (float)__nv_normcdfinv((double)p);
}
