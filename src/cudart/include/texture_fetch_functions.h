/*
 * Part of cuda_runtime.h: textures in kernels, by their handles. Each function is one instruction.
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

#endif
#endif
