/*
 * Half-precision numbers, for host and kernels: computed in float and rounded.
 */
#ifndef GMUX_CUDA_FP16_H
#define GMUX_CUDA_FP16_H

#include "cuda_runtime.h"
#include "gmux_small_floats.h"

#define GMUX_HD __host__ __device__ static __inline__

struct __half_raw {
    unsigned short x;
};
struct __half2_raw {
    unsigned short x, y;
};

GMUX_SMALL_FLOAT(__half, __half_raw, gmux_half_to_float, gmux_float_to_half)
GMUX_SMALL_VECTOR(__half2, __half, __half2_raw)
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

GMUX_HD float __half2float(__half h)
{
    return (float)h;
}
GMUX_HD __half __float2half(float f)
{
    return __half(f);
}
GMUX_HD __half __float2half_rn(float f)
{
    return __half(f);
}
GMUX_HD __half __double2half(double d)
{
    return __half((float)d);
}
GMUX_HD float2 __half22float2(__half2 h)
{
    return make_float2((float)h.x, (float)h.y);
}
GMUX_HD __half2 __float22half2_rn(float2 f)
{
    return __half2(__half(f.x), __half(f.y));
}
GMUX_HD __half2 __floats2half2_rn(float a, float b)
{
    return __half2(__half(a), __half(b));
}
GMUX_HD __half2 __float2half2_rn(float a)
{
    return __half2(__half(a), __half(a));
}
GMUX_HD __half2 __half2half2(__half a)
{
    return __half2(a, a);
}
GMUX_HD __half2 __halves2half2(__half a, __half b)
{
    return __half2(a, b);
}
GMUX_HD __half2 make_half2(__half a, __half b)
{
    return __half2(a, b);
}
GMUX_HD __half __low2half(__half2 h)
{
    return h.x;
}
GMUX_HD __half __high2half(__half2 h)
{
    return h.y;
}
GMUX_HD float __low2float(__half2 h)
{
    return (float)h.x;
}
GMUX_HD float __high2float(__half2 h)
{
    return (float)h.y;
}
GMUX_HD __half __int2half_rn(int i)
{
    return __half((float)i);
}
GMUX_HD int __half2int_rn(__half h)
{
    return (int)__builtin_rintf((float)h);
}
GMUX_HD int __half2int_rz(__half h)
{
    return (int)(float)h;
}
GMUX_HD unsigned short __half_as_ushort(__half h)
{
    return ((__half_raw)h).x;
}
GMUX_HD short __half_as_short(__half h)
{
    return (short)((__half_raw)h).x;
}
GMUX_HD __half __ushort_as_half(unsigned short x)
{
    return __half(__half_raw { x });
}
GMUX_HD __half __short_as_half(short x)
{
    return __half(__half_raw { (unsigned short)x });
}
GMUX_SMALL_FUNCTIONS(__half, __half2)
#undef GMUX_HD

#endif
