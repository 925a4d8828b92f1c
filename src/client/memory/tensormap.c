/*
 * Tensor maps. They are computed from numbers alone; the genuine driver does that in the executor,
 * where there is a context. Addresses in the map are the window's, which are those of the device.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/stream/call.h"
#include "client/session/companion.h"
#include "client/stream/context.h"
#include "device/array.h"

#define RANK_MAX 5u

/* Checks and packs what the kinds of maps have in common. Returns CUDA_ERROR_INVALID_VALUE if an
 * array is missing. */
static int common(struct wire_call_tensor_map *w, CUtensorMapDataType type, cuuint32_t rank,
                  void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                  const cuuint32_t *steps)
{
    if (rank == 0 || rank > RANK_MAX || !dims || (rank > 1 && !strides) || !steps)
        return CUDA_ERROR_INVALID_VALUE;
    w->data_type = (uint32_t)type;
    w->rank = rank;
    w->address = (uint64_t)(uintptr_t)address;
    w->dims = (struct wire_bytes) { dims, rank * (uint32_t)sizeof(*dims) };
    w->strides = (struct wire_bytes) { strides, (rank - 1) * (uint32_t)sizeof(*strides) };
    w->steps = (struct wire_bytes) { steps, rank * (uint32_t)sizeof(*steps) };
    return CUDA_SUCCESS;
}

static int ask(const char *name, atomic_bool *said, const struct wire_call_tensor_map *w,
               CUtensorMap *out)
{
    struct rt_call c;
    struct wire_call_tensor_map_is answer;
    int r = rt_enter_any();
    if (r)
        return r;
    if (!rt_session->memory_apart)
        return (int)rt_not_supported(name, said);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    rt_call_begin(&c, WIRE_CALL_TENSOR_MAP, 0);
    wire_put_call_tensor_map(&c.args, w);
    r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_tensor_map_is(&c.reply, &answer);
        if (answer.map.size == sizeof(*out))
            memcpy(out, answer.map.data, sizeof(*out));
        else
            r = CUDA_ERROR_UNKNOWN;
    }
    return rt_call_end(&c, r);
}

CUresult rt_cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                   cuuint32_t tensorRank, void *globalAddress,
                                   const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                   const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                   CUtensorMapL2promotion l2Promotion,
                                   CUtensorMapFloatOOBfill oobFill)
{
    static atomic_bool said;
    struct wire_call_tensor_map w = { .kind = WIRE_TENSOR_MAP_KIND_TILED,
                                      .box = { boxDim, tensorRank * (uint32_t)sizeof(*boxDim) },
                                      .interleave = (uint32_t)interleave,
                                      .swizzle = (uint32_t)swizzle,
                                      .promotion = (uint32_t)l2Promotion,
                                      .fill = (uint32_t)oobFill };
    int r = common(&w, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                   elementStrides);
    if (r == CUDA_SUCCESS && !boxDim)
        r = CUDA_ERROR_INVALID_VALUE;
    return (CUresult)(r ? r : ask("cuTensorMapEncodeTiled", &said, &w, tensorMap));
}

CUresult rt_cuTensorMapEncodeIm2col(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    static atomic_bool said;
    uint32_t corner = (tensorRank - 2) * (uint32_t)sizeof(int);
    struct wire_call_tensor_map w = { .kind = WIRE_TENSOR_MAP_KIND_IM2COL,
                                      .lower = { pixelBoxLowerCorner, corner },
                                      .upper = { pixelBoxUpperCorner, corner },
                                      .channels = channelsPerPixel,
                                      .pixels = pixelsPerColumn,
                                      .interleave = (uint32_t)interleave,
                                      .swizzle = (uint32_t)swizzle,
                                      .promotion = (uint32_t)l2Promotion,
                                      .fill = (uint32_t)oobFill };
    int r = common(&w, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                   elementStrides);
    if (r == CUDA_SUCCESS && (tensorRank < 3 || !pixelBoxLowerCorner || !pixelBoxUpperCorner))
        r = CUDA_ERROR_INVALID_VALUE;
    return (CUresult)(r ? r : ask("cuTensorMapEncodeIm2col", &said, &w, tensorMap));
}

CUresult rt_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    static atomic_bool said;
    const struct wire_call_tensor_map w = {
        .kind = WIRE_TENSOR_MAP_KIND_REPLACE,
        .address = (uint64_t)(uintptr_t)globalAddress,
        .map = { tensorMap, tensorMap ? (uint32_t)sizeof(*tensorMap) : 0 }
    };
    return (CUresult)ask("cuTensorMapReplaceAddress", &said, &w, tensorMap);
}

static CUresult linear_width(size_t *out, CUarray_format format, unsigned channels, CUdevice dev)
{
    if (!out || !dev_array_element((uint32_t)format, channels))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (size_t)rt_session->devices[dev]
               .attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
    return CUDA_SUCCESS;
}

/* The genuine library beside this one answers that, and needs no context for it. */
CUresult rt_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
                                               unsigned numChannels, CUdevice dev)
{
    static atomic_bool said;
    __typeof__(cuDeviceGetTexture1DLinearMaxWidth) *genuine;
    int r = rt_enter_any();
    if (r)
        return (CUresult)r;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!rt_session->memory_apart)
        return linear_width(maxWidthInElements, format, numChannels, dev);
    if (!rt_companion_function("cuDeviceGetTexture1DLinearMaxWidth", &genuine, sizeof(genuine)))
        return rt_not_supported("cuDeviceGetTexture1DLinearMaxWidth", &said);
    return genuine(maxWidthInElements, format, numChannels, dev);
}
