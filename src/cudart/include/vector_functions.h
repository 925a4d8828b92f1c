/* make_int4(x, y, z, w) and so on, for each vector type. */
#ifndef GMUX_CUDA_VECTOR_FUNCTIONS_H
#define GMUX_CUDA_VECTOR_FUNCTIONS_H
#define __VECTOR_FUNCTIONS_H__ /* programs look for the toolkit's */

#include "vector_types.h"

#ifdef __cplusplus
#define GMUX_MAKE        __inline__ __host__ __device__ constexpr
#define GMUX_VALUE(type) type
#else
#define GMUX_MAKE        static __inline__
#define GMUX_VALUE(type) (type)
#endif

#define GMUX_MAKE_VECTORS(name, type)                                                              \
    GMUX_MAKE name##1 make_##name##1(type x)                                                       \
    {                                                                                              \
        return GMUX_VALUE(name##1) { x };                                                          \
    }                                                                                              \
    GMUX_MAKE name##2 make_##name##2(type x, type y)                                               \
    {                                                                                              \
        return GMUX_VALUE(name##2) { x, y };                                                       \
    }                                                                                              \
    GMUX_MAKE name##3 make_##name##3(type x, type y, type z)                                       \
    {                                                                                              \
        return GMUX_VALUE(name##3) { x, y, z };                                                    \
    }                                                                                              \
    GMUX_MAKE name##4 make_##name##4(type x, type y, type z, type w)                               \
    {                                                                                              \
        return GMUX_VALUE(name##4) { x, y, z, w };                                                 \
    }

GMUX_MAKE_VECTORS(char, signed char)
GMUX_MAKE_VECTORS(uchar, unsigned char)
GMUX_MAKE_VECTORS(short, short)
GMUX_MAKE_VECTORS(ushort, unsigned short)
GMUX_MAKE_VECTORS(int, int)
GMUX_MAKE_VECTORS(uint, unsigned int)
GMUX_MAKE_VECTORS(long, long int)
GMUX_MAKE_VECTORS(ulong, unsigned long int)
GMUX_MAKE_VECTORS(longlong, long long int)
GMUX_MAKE_VECTORS(ulonglong, unsigned long long int)
GMUX_MAKE_VECTORS(float, float)
GMUX_MAKE_VECTORS(double, double)
#undef GMUX_MAKE_VECTORS

#define GMUX_MAKE_4(name, type)                                                                    \
    GMUX_MAKE name make_##name(type x, type y, type z, type w)                                     \
    {                                                                                              \
        return GMUX_VALUE(name) { x, y, z, w };                                                    \
    }
#define GMUX_MAKES_4(name, type)                                                                   \
    GMUX_MAKE_4(name##4_16a, type)                                                                 \
    GMUX_MAKE_4(name##4_32a, type)

GMUX_MAKES_4(long, long int)
GMUX_MAKES_4(ulong, unsigned long int)
GMUX_MAKES_4(longlong, long long int)
GMUX_MAKES_4(ulonglong, unsigned long long int)
GMUX_MAKES_4(double, double)
#undef GMUX_MAKES_4
#undef GMUX_MAKE_4
#undef GMUX_MAKE
#undef GMUX_VALUE

#endif
