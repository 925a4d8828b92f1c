/*
 * Complex numbers for C and C++, for host and kernels.
 */
#ifndef GMUX_CUDA_COMPLEX_H
#define GMUX_CUDA_COMPLEX_H
#define CU_COMPLEX_H_ /* programs look for the toolkit's */

#include <math.h>

#include "vector_functions.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define GMUX_COMPLEX(T, C, V, f, suffix)                                                           \
    __host__ __device__ static __inline__ T cuCreal##suffix(C x)                                   \
    {                                                                                              \
        return x.x;                                                                                \
    }                                                                                              \
    __host__ __device__ static __inline__ T cuCimag##suffix(C x)                                   \
    {                                                                                              \
        return x.y;                                                                                \
    }                                                                                              \
    __host__ __device__ static __inline__ C make_##V(T r, T i)                                     \
    {                                                                                              \
        C v;                                                                                       \
        v.x = r;                                                                                   \
        v.y = i;                                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    __host__ __device__ static __inline__ C cuConj##suffix(C x)                                    \
    {                                                                                              \
        return make_##V(x.x, -x.y);                                                                \
    }                                                                                              \
    __host__ __device__ static __inline__ C cuCadd##suffix(C x, C y)                               \
    {                                                                                              \
        return make_##V(x.x + y.x, x.y + y.y);                                                     \
    }                                                                                              \
    __host__ __device__ static __inline__ C cuCsub##suffix(C x, C y)                               \
    {                                                                                              \
        return make_##V(x.x - y.x, x.y - y.y);                                                     \
    }                                                                                              \
    __host__ __device__ static __inline__ C cuCmul##suffix(C x, C y)                               \
    {                                                                                              \
        return make_##V(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);                             \
    }                                                                                              \
    /* Scaled, so that squares do not leave the range. */                                          \
    __host__ __device__ static __inline__ C cuCdiv##suffix(C x, C y)                               \
    {                                                                                              \
        T s = 1 / (fabs##f(y.x) + fabs##f(y.y)), a = x.x * s, b = x.y * s, c = y.x * s,            \
          d = y.y * s;                                                                             \
        T n = 1 / (c * c + d * d);                                                                 \
        return make_##V((a * c + b * d) * n, (b * c - a * d) * n);                                 \
    }                                                                                              \
    __host__ __device__ static __inline__ T cuCabs##suffix(C x)                                    \
    {                                                                                              \
        return hypot##f(x.x, x.y);                                                                 \
    }                                                                                              \
    __host__ __device__ static __inline__ C cuCfma##suffix(C x, C y, C d)                          \
    {                                                                                              \
        return cuCadd##suffix(cuCmul##suffix(x, y), d);                                            \
    }

GMUX_COMPLEX(float, cuFloatComplex, cuFloatComplex, f, f)
GMUX_COMPLEX(double, cuDoubleComplex, cuDoubleComplex, , )
#undef GMUX_COMPLEX

__host__ __device__ static __inline__ cuComplex make_cuComplex(float r, float i)
{
    return make_cuFloatComplex(r, i);
}
__host__ __device__ static __inline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex c)
{
    return make_cuFloatComplex((float)c.x, (float)c.y);
}
__host__ __device__ static __inline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex c)
{
    return make_cuDoubleComplex(c.x, c.y);
}

#endif
