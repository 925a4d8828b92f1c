/*
 * Part of cuda_runtime.h: C++ overloads of mathematics for float in kernels, such as round(1.5f)
 * and std::fmax(a, b), which clang 19 declares but does not define.
 */
#ifndef GMUX_MATH_H
#define GMUX_MATH_H

#define GMUX_FLOAT static __inline__ __attribute__((always_inline, device))
#define GMUX_FLOAT1(result, name, inner)                                                           \
    GMUX_FLOAT result name(float x)                                                                \
    {                                                                                              \
        return ::inner(x);                                                                         \
    }
#define GMUX_FLOAT2(result, name, inner, type)                                                     \
    GMUX_FLOAT result name(float x, type y)                                                        \
    {                                                                                              \
        return ::inner(x, y);                                                                      \
    }
GMUX_FLOAT1(float, acosh, acoshf)
GMUX_FLOAT1(float, asinh, asinhf)
GMUX_FLOAT1(float, atanh, atanhf)
GMUX_FLOAT1(float, cbrt, cbrtf)
GMUX_FLOAT1(float, erf, erff)
GMUX_FLOAT1(float, erfc, erfcf)
GMUX_FLOAT1(float, exp2, exp2f)
GMUX_FLOAT1(float, expm1, expm1f)
GMUX_FLOAT1(float, lgamma, lgammaf)
GMUX_FLOAT1(float, log1p, log1pf)
GMUX_FLOAT1(float, log2, log2f)
GMUX_FLOAT1(float, logb, logbf)
GMUX_FLOAT1(float, nearbyint, nearbyintf)
GMUX_FLOAT1(float, rint, rintf)
GMUX_FLOAT1(float, round, roundf)
GMUX_FLOAT1(float, tgamma, tgammaf)
GMUX_FLOAT1(float, trunc, truncf)
GMUX_FLOAT1(int, ilogb, ilogbf)
GMUX_FLOAT1(long, lrint, lrintf)
GMUX_FLOAT1(long, lround, lroundf)
GMUX_FLOAT1(long long, llrint, llrintf)
GMUX_FLOAT1(long long, llround, llroundf)
GMUX_FLOAT2(float, copysign, copysignf, float)
GMUX_FLOAT2(float, fdim, fdimf, float)
GMUX_FLOAT2(float, fmax, fmaxf, float)
GMUX_FLOAT2(float, fmin, fminf, float)
GMUX_FLOAT2(float, hypot, hypotf, float)
GMUX_FLOAT2(float, nextafter, nextafterf, float)
GMUX_FLOAT2(float, remainder, remainderf, float)
GMUX_FLOAT2(float, scalbn, scalbnf, int)
GMUX_FLOAT2(float, scalbln, scalblnf, long)
#undef GMUX_FLOAT1
#undef GMUX_FLOAT2

GMUX_FLOAT float fma(float x, float y, float z)
{
    return ::fmaf(x, y, z);
}
GMUX_FLOAT void sincos(float x, float *sine, float *cosine)
{
    ::sincosf(x, sine, cosine);
}
GMUX_FLOAT void sincospi(float x, float *sine, float *cosine)
{
    ::sincospif(x, sine, cosine);
}
GMUX_FLOAT float remquo(float x, float y, int *quotient)
{
    return ::remquof(x, y, quotient);
}
/* The text may choose a NaN; here the result is always the same NaN. */
GMUX_FLOAT float nanf(const char *)
{
    return __builtin_nanf("");
}
GMUX_FLOAT double nan(const char *)
{
    return __builtin_nan("");
}
#undef GMUX_FLOAT

#endif
