/*
 * Part of cuda_runtime.h: surfaces in kernels, by their handles. x counts bytes, the other
 * coordinates count elements. Elements have 1, 2, 4, 8 or 16 bytes. An access out of bounds traps;
 * with other modes it is clamped or left out.
 */
#ifndef GMUX_CUDA_SURFACE_INDIRECT_FUNCTIONS_H
#define GMUX_CUDA_SURFACE_INDIRECT_FUNCTIONS_H
#include "cuda_runtime.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */

/* What registers hold of an element. */
template <unsigned Size> struct gmux_texel;
template <> struct gmux_texel<1> {
    typedef unsigned char type;
};
template <> struct gmux_texel<2> {
    typedef unsigned short type;
};
template <> struct gmux_texel<4> {
    typedef unsigned int type;
};
template <> struct gmux_texel<8> {
    typedef unsigned long long type;
};
template <> struct gmux_texel<16> {
    typedef uint4 type;
};

/* One instruction each: a load and a store of one size. */
#define GMUX_SURFACE_ONE(shape, at, mode, bits, U, Register, c)                                    \
    __device__ static void load(U *value, cudaSurfaceObject_t s, int x, int y, int z)              \
    {                                                                                              \
        Register v;                                                                                \
        asm volatile("suld.b." shape "." bits "." mode " %0, [%1, " at "];"                        \
                     : "=" c(v)                                                                    \
                     : "l"(s), [x] "r"(x), [y] "r"(y), [z] "r"(z));                                \
        *value = (U)v;                                                                             \
    }                                                                                              \
    __device__ static void store(U value, cudaSurfaceObject_t s, int x, int y, int z)              \
    {                                                                                              \
        asm volatile("sust.b." shape "." bits "." mode " [%0, " at "], %1;" ::"l"(s),              \
                     c((Register)value), [x] "r"(x), [y] "r"(y), [z] "r"(z)                        \
                     : "memory");                                                                  \
    }
#define GMUX_SURFACE_FOUR(shape, at, mode)                                                         \
    __device__ static void load(uint4 *v, cudaSurfaceObject_t s, int x, int y, int z)              \
    {                                                                                              \
        asm volatile("suld.b." shape ".v4.b32." mode " {%0, %1, %2, %3}, [%4, " at "];"            \
                     : "=r"(v->x), "=r"(v->y), "=r"(v->z), "=r"(v->w)                              \
                     : "l"(s), [x] "r"(x), [y] "r"(y), [z] "r"(z));                                \
    }                                                                                              \
    __device__ static void store(uint4 v, cudaSurfaceObject_t s, int x, int y, int z)              \
    {                                                                                              \
        asm volatile("sust.b." shape ".v4.b32." mode " [%0, " at "], {%1, %2, %3, %4};" ::"l"(s),  \
                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), [x] "r"(x), [y] "r"(y), [z] "r"(z)    \
                     : "memory");                                                                  \
    }
#define GMUX_SURFACE_MODE(shape, at, mode)                                                         \
    struct mode {                                                                                  \
        GMUX_SURFACE_ONE(shape, at, #mode, "b8", unsigned char, unsigned short, "h")               \
        GMUX_SURFACE_ONE(shape, at, #mode, "b16", unsigned short, unsigned short, "h")             \
        GMUX_SURFACE_ONE(shape, at, #mode, "b32", unsigned int, unsigned int, "r")                 \
        GMUX_SURFACE_ONE(shape, at, #mode, "b64", unsigned long long, unsigned long long, "l")     \
        GMUX_SURFACE_FOUR(shape, at, #mode)                                                        \
    };
#define GMUX_SURFACE_SHAPE(name, shape, at)                                                        \
    struct name {                                                                                  \
        GMUX_SURFACE_MODE(shape, at, trap)                                                         \
        GMUX_SURFACE_MODE(shape, at, clamp)                                                        \
        GMUX_SURFACE_MODE(shape, at, zero)                                                         \
    };
GMUX_SURFACE_SHAPE(gmux_surface_1d, "1d", "{%[x]}")
GMUX_SURFACE_SHAPE(gmux_surface_2d, "2d", "{%[x], %[y]}")
GMUX_SURFACE_SHAPE(gmux_surface_3d, "3d", "{%[x], %[y], %[z], %[z]}")
GMUX_SURFACE_SHAPE(gmux_surface_a1d, "a1d", "{%[z], %[x]}")
GMUX_SURFACE_SHAPE(gmux_surface_a2d, "a2d", "{%[z], %[x], %[y], %[y]}")
#undef GMUX_SURFACE_SHAPE
#undef GMUX_SURFACE_MODE
#undef GMUX_SURFACE_FOUR
#undef GMUX_SURFACE_ONE

template <class Shape, class T>
GMUX_DEV T gmux_surface_load(cudaSurfaceObject_t s, int x, int y, int z,
                             cudaSurfaceBoundaryMode mode)
{
    typename gmux_texel<sizeof(T)>::type v;
    if (mode == cudaBoundaryModeTrap)
        Shape::trap::load(&v, s, x, y, z);
    else if (mode == cudaBoundaryModeClamp)
        Shape::clamp::load(&v, s, x, y, z);
    else
        Shape::zero::load(&v, s, x, y, z);
    return __builtin_bit_cast(T, v);
}
template <class Shape, class T>
GMUX_DEV void gmux_surface_store(T value, cudaSurfaceObject_t s, int x, int y, int z,
                                 cudaSurfaceBoundaryMode mode)
{
    auto v = __builtin_bit_cast(typename gmux_texel<sizeof(T)>::type, value);
    if (mode == cudaBoundaryModeTrap)
        Shape::trap::store(v, s, x, y, z);
    else if (mode == cudaBoundaryModeClamp)
        Shape::clamp::store(v, s, x, y, z);
    else
        Shape::zero::store(v, s, x, y, z);
}

/* The functions of one shape: two forms of reads, and writes. */
#define GMUX_AND ,
#define GMUX_SURFACE(name, Shape, declare, x, y, z)                                                \
    template <class T>                                                                             \
    GMUX_DEV T name##read(cudaSurfaceObject_t surface, declare,                                    \
                          cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                     \
    {                                                                                              \
        return gmux_surface_load<Shape, T>(surface, x, y, z, mode);                                \
    }                                                                                              \
    template <class T>                                                                             \
    GMUX_DEV void name##read(T *value, cudaSurfaceObject_t surface, declare,                       \
                             cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                  \
    {                                                                                              \
        *value = gmux_surface_load<Shape, T>(surface, x, y, z, mode);                              \
    }                                                                                              \
    template <class T>                                                                             \
    GMUX_DEV void name##write(T value, cudaSurfaceObject_t surface, declare,                       \
                              cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                 \
    {                                                                                              \
        gmux_surface_store<Shape>(value, surface, x, y, z, mode);                                  \
    }
GMUX_SURFACE(surf1D, gmux_surface_1d, int x, x, 0, 0)
GMUX_SURFACE(surf2D, gmux_surface_2d, int x GMUX_AND int y, x, y, 0)
GMUX_SURFACE(surf3D, gmux_surface_3d, int x GMUX_AND int y GMUX_AND int z, x, y, z)
GMUX_SURFACE(surf1DLayered, gmux_surface_a1d, int x GMUX_AND int layer, x, 0, layer)
GMUX_SURFACE(surf2DLayered, gmux_surface_a2d, int x GMUX_AND int y GMUX_AND int layer, x, y, layer)
GMUX_SURFACE(surfCubemap, gmux_surface_a2d, int x GMUX_AND int y GMUX_AND int face, x, y, face)
GMUX_SURFACE(surfCubemapLayered, gmux_surface_a2d, int x GMUX_AND int y GMUX_AND int face, x, y,
             face) /* face: six times the layer, and the face in it */
#undef GMUX_SURFACE
#undef GMUX_AND

#endif
#endif
