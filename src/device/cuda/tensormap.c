/*
 * Tensor maps. The driver computes them from numbers alone, but it needs a context for that.
 */
#include <string.h>

#include "device/cuda/call.h"
#include "device/cuda/state.h"

#define RANK_MAX 5u

/* An array of `count` elements, or NULL if the client sent another number of bytes. */
static const void *array(struct wire_bytes b, void *room, size_t each, uint32_t count)
{
    if (b.size != each * count)
        return NULL;
    if (b.size)
        memcpy(room, b.data, b.size);
    return room;
}

static CUresult encode(const struct cuda_driver *api, const struct wire_call_tensor_map *w,
                       CUtensorMap *map)
{
    cuuint64_t dims[RANK_MAX], strides[RANK_MAX];
    cuuint32_t box[RANK_MAX], steps[RANK_MAX];
    int lower[RANK_MAX], upper[RANK_MAX];
    void *address = (void *)(uintptr_t)w->address;
    const CUtensorMapDataType type = (CUtensorMapDataType)w->data_type;
    const CUtensorMapInterleave interleave = (CUtensorMapInterleave)w->interleave;
    const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)w->swizzle;
    const CUtensorMapL2promotion promotion = (CUtensorMapL2promotion)w->promotion;
    const CUtensorMapFloatOOBfill fill = (CUtensorMapFloatOOBfill)w->fill;
    if (w->kind == WIRE_TENSOR_MAP_KIND_REPLACE) {
        if (!array(w->map, map, sizeof(*map), 1))
            return CUDA_ERROR_INVALID_VALUE;
        return api->cuTensorMapReplaceAddress(map, address);
    }
    if (w->rank == 0 || w->rank > RANK_MAX || !array(w->dims, dims, sizeof(*dims), w->rank) ||
        !array(w->strides, strides, sizeof(*strides), w->rank - 1) ||
        !array(w->steps, steps, sizeof(*steps), w->rank))
        return CUDA_ERROR_INVALID_VALUE;
    switch (w->kind) {
    case WIRE_TENSOR_MAP_KIND_TILED:
        if (!array(w->box, box, sizeof(*box), w->rank))
            return CUDA_ERROR_INVALID_VALUE;
        return api->cuTensorMapEncodeTiled(map, type, w->rank, address, dims, strides, box, steps,
                                           interleave, swizzle, promotion, fill);
    case WIRE_TENSOR_MAP_KIND_IM2COL:
        if (w->rank < 3 || !array(w->lower, lower, sizeof(*lower), w->rank - 2) ||
            !array(w->upper, upper, sizeof(*upper), w->rank - 2))
            return CUDA_ERROR_INVALID_VALUE;
        return api->cuTensorMapEncodeIm2col(map, type, w->rank, address, dims, strides, lower,
                                            upper, w->channels, w->pixels, steps, interleave,
                                            swizzle, promotion, fill);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int cuda_tensor_map(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_tensor_map w;
    CUtensorMap map;
    wire_get_call_tensor_map(args, &w);
    if (args->fatal)
        return GM_CUDA_INVALID_VALUE;
    memset(&map, 0, sizeof(map));
    CUresult r = encode(&c->dev->api, &w, &map);
    if (r == CUDA_SUCCESS)
        wire_put_call_tensor_map_is(
            reply, &(struct wire_call_tensor_map_is) { .map = { &map, sizeof(map) } });
    return (int)r;
}
