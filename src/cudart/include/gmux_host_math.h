/*
 * Part of cuda_runtime.h: mathematics that CUDA has on the host and C has not.
 */
#ifndef GMUX_HOST_MATH_H
#define GMUX_HOST_MATH_H

#include <math.h> /* for C++ that leaves out std:: */

#define GMUX_HOST __host__ static __inline__ __attribute__((unused))
GMUX_HOST float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
GMUX_HOST double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
GMUX_HOST float rsqrt(float x)
{
    return 1.0f / sqrtf(x);
}
GMUX_HOST float rcbrtf(float x)
{
    return 1.0f / cbrtf(x);
}
GMUX_HOST double rcbrt(double x)
{
    return 1.0 / cbrt(x);
}
GMUX_HOST double sinpi(double x)
{
    return sin(3.14159265358979323846 * fmod(x, 2.0));
}
GMUX_HOST float sinpif(float x)
{
    return (float)sinpi((double)x);
}
GMUX_HOST double cospi(double x)
{
    return cos(3.14159265358979323846 * fmod(x, 2.0));
}
GMUX_HOST float cospif(float x)
{
    return (float)cospi((double)x);
}
GMUX_HOST double normcdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}
GMUX_HOST float normcdff(float x)
{
    return (float)normcdf((double)x);
}

/* min and max. clang has those of int for kernels. */
#define GMUX_BOTH __host__ __device__ static __inline__ __attribute__((unused))
GMUX_HOST int min(int a, int b)
{
    return b < a ? b : a;
}
GMUX_HOST int max(int a, int b)
{
    return a < b ? b : a;
}
GMUX_BOTH float min(float a, float b)
{
    return __builtin_fminf(a, b);
}
GMUX_BOTH float max(float a, float b)
{
    return __builtin_fmaxf(a, b);
}
GMUX_BOTH double min(double a, double b)
{
    return __builtin_fmin(a, b);
}
GMUX_BOTH double max(double a, double b)
{
    return __builtin_fmax(a, b);
}
#define GMUX_MINMAX(type)                                                                          \
    GMUX_BOTH type min(type a, type b)                                                             \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    GMUX_BOTH type max(type a, type b)                                                             \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
GMUX_MINMAX(unsigned int)
GMUX_MINMAX(long)
GMUX_MINMAX(unsigned long)
GMUX_MINMAX(long long)
GMUX_MINMAX(unsigned long long)
#undef GMUX_MINMAX
/* For arguments of mixed types, converted as C++ would. */
#define GMUX_MIXED(result, a_type, b_type)                                                         \
    GMUX_BOTH result min(a_type a, b_type b)                                                       \
    {                                                                                              \
        return min((result)a, (result)b);                                                          \
    }                                                                                              \
    GMUX_BOTH result max(a_type a, b_type b)                                                       \
    {                                                                                              \
        return max((result)a, (result)b);                                                          \
    }
GMUX_MIXED(unsigned int, int, unsigned int)
GMUX_MIXED(unsigned int, unsigned int, int)
GMUX_MIXED(unsigned long, long, unsigned long)
GMUX_MIXED(unsigned long, unsigned long, long)
GMUX_MIXED(unsigned long long, long long, unsigned long long)
GMUX_MIXED(unsigned long long, unsigned long long, long long)
GMUX_MIXED(double, float, double)
GMUX_MIXED(double, double, float)
#undef GMUX_MIXED
#undef GMUX_HOST
#undef GMUX_BOTH

#endif
