/*
 * bfloat16 numbers, for host and kernels: the upper half of a float; computed in float and rounded.
 */
#ifndef GMUX_CUDA_BF16_H
#define GMUX_CUDA_BF16_H

#include "cuda_runtime.h"
#include "gmux_small_floats.h"

#define GMUX_HD __host__ __device__ static __inline__

struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __nv_bfloat162_raw {
    unsigned short x, y;
};

GMUX_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat16_raw, gmux_bfloat16_to_float, gmux_float_to_bfloat16)
GMUX_SMALL_VECTOR(__nv_bfloat162, __nv_bfloat16, __nv_bfloat162_raw)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

GMUX_HD float __bfloat162float(__nv_bfloat16 h)
{
    return (float)h;
}
GMUX_HD __nv_bfloat16 __float2bfloat16(float f)
{
    return __nv_bfloat16(f);
}
GMUX_HD __nv_bfloat16 __float2bfloat16_rn(float f)
{
    return __nv_bfloat16(f);
}
GMUX_HD __nv_bfloat16 __double2bfloat16(double f)
{
    return __nv_bfloat16((float)f);
}
GMUX_HD float2 __bfloat1622float2(__nv_bfloat162 h)
{
    return make_float2((float)h.x, (float)h.y);
}
GMUX_HD __nv_bfloat162 __float22bfloat162_rn(float2 f)
{
    return __nv_bfloat162(__nv_bfloat16(f.x), __nv_bfloat16(f.y));
}
GMUX_HD __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
GMUX_HD __nv_bfloat162 __float2bfloat162_rn(float a)
{
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a));
}
GMUX_HD __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a)
{
    return __nv_bfloat162(a, a);
}
GMUX_HD __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat162(a, b);
}
GMUX_HD __nv_bfloat16 __low2bfloat16(__nv_bfloat162 h)
{
    return h.x;
}
GMUX_HD __nv_bfloat16 __high2bfloat16(__nv_bfloat162 h)
{
    return h.y;
}
GMUX_HD unsigned short __bfloat16_as_ushort(__nv_bfloat16 h)
{
    return ((__nv_bfloat16_raw)h).x;
}
GMUX_HD __nv_bfloat16 __ushort_as_bfloat16(unsigned short x)
{
    return __nv_bfloat16(__nv_bfloat16_raw { x });
}
GMUX_SMALL_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef GMUX_HD

#endif
