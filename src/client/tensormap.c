/*
 * Tensor maps, and what else is computed from numbers alone: the genuine library beside us does it, without a context. The
 * addresses in a map are the window's, which are the device's.
 */
#include "client/companion.h"
#include "client/context.h"
#include "client/gen/api.h"

/* The genuine function, or what every call of it returns. */
static int enter(const char *name, atomic_bool *said, void *function, size_t size)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!rt_session->memory_apart || !rt_companion_function(name, function, size))
        return (int)rt_not_supported(name, said);
    return CUDA_SUCCESS;
}

#define PASS(name, ...)                                                                                              \
    static atomic_bool said;                                                                                         \
    __typeof__(name) *genuine;                                                                                       \
    int r = enter(#name, &said, &genuine, sizeof(genuine));                                                          \
    return r ? (CUresult)r : genuine(__VA_ARGS__)

CUresult rt_cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                   void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                   const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                   CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    PASS(cuTensorMapEncodeTiled, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
         boxDim, elementStrides, interleave, swizzle, l2Promotion, oobFill);
}

CUresult rt_cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
                                    cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                    const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                    CUtensorMapFloatOOBfill oobFill)
{
    PASS(cuTensorMapEncodeIm2col, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
         pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn, elementStrides, interleave,
         swizzle, l2Promotion, oobFill);
}

CUresult rt_cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                        cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
                                        const cuuint64_t *globalStrides, int pixelBoxLowerCornerWidth,
                                        int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
                                        cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
                                        CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                        CUtensorMapFloatOOBfill oobFill)
{
    PASS(cuTensorMapEncodeIm2colWide, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
         pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth, channelsPerPixel, pixelsPerColumn, elementStrides,
         interleave, mode, swizzle, l2Promotion, oobFill);
}

CUresult rt_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    PASS(cuTensorMapReplaceAddress, tensorMap, globalAddress);
}

CUresult rt_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
                                               unsigned numChannels, CUdevice dev)
{
    if (dev < 0 || (rt_session && (unsigned)dev >= rt_session->device_count))
        return CUDA_ERROR_INVALID_DEVICE;
    PASS(cuDeviceGetTexture1DLinearMaxWidth, maxWidthInElements, format, numChannels, dev);
}
