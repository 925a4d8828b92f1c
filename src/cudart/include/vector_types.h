/*
 * Vector types: short vectors of C's arithmetic types, aligned as a GPU reads them, and dim3.
 */
#ifndef GMUX_CUDA_VECTOR_TYPES_H
#define GMUX_CUDA_VECTOR_TYPES_H
#define __VECTOR_TYPES_H__ /* programs look for the toolkit's */

#include "host_defines.h"

#define GMUX_VECTOR_TYPES(name, type, align2, align4)                                              \
    typedef struct name##1                                                                         \
    {                                                                                              \
        type x;                                                                                    \
    }                                                                                              \
    name##1;                                                                                       \
    typedef struct __attribute__((aligned(align2))) name##2                                        \
    {                                                                                              \
        type x, y;                                                                                 \
    }                                                                                              \
    name##2;                                                                                       \
    typedef struct name##3                                                                         \
    {                                                                                              \
        type x, y, z;                                                                              \
    }                                                                                              \
    name##3;                                                                                       \
    typedef struct __attribute__((aligned(align4))) name##4                                        \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    }                                                                                              \
    name##4;

GMUX_VECTOR_TYPES(char, signed char, 2, 4)
GMUX_VECTOR_TYPES(uchar, unsigned char, 2, 4)
GMUX_VECTOR_TYPES(short, short, 4, 8)
GMUX_VECTOR_TYPES(ushort, unsigned short, 4, 8)
GMUX_VECTOR_TYPES(int, int, 8, 16)
GMUX_VECTOR_TYPES(uint, unsigned int, 8, 16)
GMUX_VECTOR_TYPES(long, long int, 16, 16)
GMUX_VECTOR_TYPES(ulong, unsigned long int, 16, 16)
GMUX_VECTOR_TYPES(longlong, long long int, 16, 16)
GMUX_VECTOR_TYPES(ulonglong, unsigned long long int, 16, 16)
GMUX_VECTOR_TYPES(float, float, 8, 16)
GMUX_VECTOR_TYPES(double, double, 16, 16)
#undef GMUX_VECTOR_TYPES

/* Types of version 13: four of the largest elements, with the alignment in their name. The types
 * without it are deprecated there, and headers of version 13 stand between these words where they
 * use them; ours deprecates nothing. */
#define __NV_SILENCE_DEPRECATION_BEGIN
#define __NV_SILENCE_DEPRECATION_END
#define GMUX_VECTOR_4(name, type, align)                                                           \
    typedef struct __attribute__((aligned(align))) name {                                          \
        type x, y, z, w;                                                                           \
    } name;
#define GMUX_VECTORS_4(name, type)                                                                 \
    GMUX_VECTOR_4(name##4_16a, type, 16)                                                           \
    GMUX_VECTOR_4(name##4_32a, type, 32)

GMUX_VECTORS_4(long, long int)
GMUX_VECTORS_4(ulong, unsigned long int)
GMUX_VECTORS_4(longlong, long long int)
GMUX_VECTORS_4(ulonglong, unsigned long long int)
GMUX_VECTORS_4(double, double)
#undef GMUX_VECTORS_4
#undef GMUX_VECTOR_4

typedef struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    __host__ __device__ constexpr dim3(unsigned int vx = 1, unsigned int vy = 1,
                                       unsigned int vz = 1)
        : x(vx), y(vy), z(vz)
    {
    }
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
#ifdef __CUDA__
    /* from threadIdx and its like (gmux_device.h) */
    template <class T, class = typename T::gmux_builtin>
    __device__ dim3(const T &v) : x(v.x), y(v.y), z(v.z)
    {
    }
#endif
    __host__ __device__ constexpr operator uint3() const
    {
        return uint3 { x, y, z };
    }
#endif
} dim3;

#endif
