/*
 * Part of cuda_runtime.h: textures and surfaces in kernels, by their handles. Each function is one
 * instruction.
 */
#ifndef GMUX_CUDA_TEXTURE_FETCH_FUNCTIONS_H
#define GMUX_CUDA_TEXTURE_FETCH_FUNCTIONS_H

#ifdef __CUDA__ /* a source without kernels may include this header, too */
#include <type_traits>

#include <__clang_cuda_texture_intrinsics.h>

#define GMUX_TEX(name, op, declare, ...)                                                           \
    template <class T> GMUX_DEV T name(cudaTextureObject_t object, declare)                        \
    {                                                                                              \
        T value;                                                                                   \
        __nv_tex_surf_handler(op, &value, object, __VA_ARGS__);                                    \
        return value;                                                                              \
    }                                                                                              \
    template <class T> GMUX_DEV void name(T *value, cudaTextureObject_t object, declare)           \
    {                                                                                              \
        __nv_tex_surf_handler(op, value, object, __VA_ARGS__);                                     \
    }
#define GMUX_AND ,
GMUX_TEX(tex1Dfetch, "__itex1Dfetch", int x, x)
GMUX_TEX(tex1D, "__itex1D", float x, x)
GMUX_TEX(tex2D, "__itex2D", float x GMUX_AND float y, x, y)
GMUX_TEX(tex3D, "__itex3D", float x GMUX_AND float y GMUX_AND float z, x, y, z)
GMUX_TEX(tex1DLayered, "__itex1DLayered", float x GMUX_AND int layer, x, layer)
GMUX_TEX(tex2DLayered, "__itex2DLayered", float x GMUX_AND float y GMUX_AND int layer, x, y, layer)
GMUX_TEX(texCubemap, "__itexCubemap", float x GMUX_AND float y GMUX_AND float z, x, y, z)
GMUX_TEX(tex1DLod, "__itex1DLod", float x GMUX_AND float level, x, level)
GMUX_TEX(tex2DLod, "__itex2DLod", float x GMUX_AND float y GMUX_AND float level, x, y, level)
GMUX_TEX(tex3DLod, "__itex3DLod", float x GMUX_AND float y GMUX_AND float z GMUX_AND float level, x,
         y, z, level)
GMUX_TEX(tex1DLayeredLod, "__itex1DLayeredLod", float x GMUX_AND int layer GMUX_AND float level, x,
         layer, level)
GMUX_TEX(tex2DLayeredLod, "__itex2DLayeredLod",
         float x GMUX_AND float y GMUX_AND int layer GMUX_AND float level, x, y, layer, level)
GMUX_TEX(texCubemapLod, "__itexCubemapLod",
         float x GMUX_AND float y GMUX_AND float z GMUX_AND float level, x, y, z, level)
GMUX_TEX(texCubemapLayered, "__itexCubemapLayered",
         float x GMUX_AND float y GMUX_AND float z GMUX_AND int layer, x, y, z, layer)
GMUX_TEX(texCubemapLayeredLod, "__itexCubemapLayeredLod",
         float x GMUX_AND float y GMUX_AND float z GMUX_AND int layer GMUX_AND float level, x, y, z,
         layer, level)
GMUX_TEX(tex1DGrad, "__itex1DGrad", float x GMUX_AND float dx GMUX_AND float dy, x, dx, dy)
GMUX_TEX(tex1DLayeredGrad, "__itex1DLayeredGrad",
         float x GMUX_AND int layer GMUX_AND float dx GMUX_AND float dy, x, layer, dx, dy)
GMUX_TEX(tex2DGrad, "__itex2DGrad_v2",
         float x GMUX_AND float y GMUX_AND float2 dx GMUX_AND float2 dy, x, y, &dx, &dy)
GMUX_TEX(tex2DLayeredGrad, "__itex2DLayeredGrad_v2",
         float x GMUX_AND float y GMUX_AND int layer GMUX_AND float2 dx GMUX_AND float2 dy, x, y,
         layer, &dx, &dy)
GMUX_TEX(tex3DGrad, "__itex3DGrad_v2",
         float x GMUX_AND float y GMUX_AND float z GMUX_AND float4 dx GMUX_AND float4 dy, x, y, z,
         &dx, &dy)
GMUX_TEX(texCubemapGrad, "__itexCubemapGrad_v2",
         float x GMUX_AND float y GMUX_AND float z GMUX_AND float4 dx GMUX_AND float4 dy, x, y, z,
         &dx, &dy)
GMUX_TEX(texCubemapLayeredGrad, "__itexCubemapLayeredGrad_v2",
         float x GMUX_AND float y GMUX_AND float z GMUX_AND int layer GMUX_AND float4 dx GMUX_AND
             float4 dy,
         x, y, z, layer, &dx, &dy)
GMUX_TEX(tex2Dgather, "__itex2Dgather", float x GMUX_AND float y GMUX_AND int component = 0, x, y,
         component)
#undef GMUX_AND
#undef GMUX_TEX

/* Surfaces: x counts bytes. An access out of bounds traps; with other modes it is clamped or left
 * out. */
template <unsigned Size> struct gmux_surface;
#define GMUX_SURFACE(size, U, bits, c)                                                             \
    template <> struct gmux_surface<size> {                                                        \
        typedef U type;                                                                            \
        GMUX_SURFACE_MODE(U, bits, c, trap, 2)                                                     \
        GMUX_SURFACE_MODE(U, bits, c, clamp, 1)                                                    \
        GMUX_SURFACE_MODE(U, bits, c, zero, 0)                                                     \
    };
#define GMUX_SURFACE_MODE(U, bits, c, mode, number)                                                \
    __device__ static U load2(cudaSurfaceObject_t s, int x, int y,                                 \
                              std::integral_constant<int, number>)                                 \
    {                                                                                              \
        U v;                                                                                       \
        asm volatile("suld.b.2d." bits "." #mode " %0, [%1, {%2, %3}];"                            \
                     : "=" c(v)                                                                    \
                     : "l"(s), "r"(x), "r"(y));                                                    \
        return v;                                                                                  \
    }                                                                                              \
    __device__ static void store2(U v, cudaSurfaceObject_t s, int x, int y,                        \
                                  std::integral_constant<int, number>)                             \
    {                                                                                              \
        asm volatile("sust.b.2d." bits "." #mode " [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y),  \
                     c(v)                                                                          \
                     : "memory");                                                                  \
    }
GMUX_SURFACE(2, unsigned short, "b16", "h")
GMUX_SURFACE(4, unsigned int, "b32", "r")
GMUX_SURFACE(8, unsigned long long, "b64", "l")
#undef GMUX_SURFACE
#undef GMUX_SURFACE_MODE

template <class T>
GMUX_DEV T surf2Dread(cudaSurfaceObject_t s, int x, int y,
                      cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)
{
    typedef gmux_surface<sizeof(T)> S;
    auto v = mode == cudaBoundaryModeTrap    ? S::load2(s, x, y, std::integral_constant<int, 2>())
             : mode == cudaBoundaryModeClamp ? S::load2(s, x, y, std::integral_constant<int, 1>())
                                             : S::load2(s, x, y, std::integral_constant<int, 0>());
    return __builtin_bit_cast(T, v);
}
template <class T>
GMUX_DEV void surf2Dread(T *out, cudaSurfaceObject_t s, int x, int y,
                         cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)
{
    *out = surf2Dread<T>(s, x, y, mode);
}
template <class T>
GMUX_DEV void surf2Dwrite(T value, cudaSurfaceObject_t s, int x, int y,
                          cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)
{
    typedef gmux_surface<sizeof(T)> S;
    auto v = __builtin_bit_cast(typename S::type, value);
    if (mode == cudaBoundaryModeTrap)
        S::store2(v, s, x, y, std::integral_constant<int, 2>());
    else if (mode == cudaBoundaryModeClamp)
        S::store2(v, s, x, y, std::integral_constant<int, 1>());
    else
        S::store2(v, s, x, y, std::integral_constant<int, 0>());
}

#endif
#endif
