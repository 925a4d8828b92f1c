/*
 * Many copies by one call, and copies between devices. Each becomes one of the copies of
 * copy_api.c. Between contexts of one device a peer copy is an ordinary copy.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/memory/array.h"
#include "client/memory/copy.h"
#include "client/stream/capture.h"

/* --- from device to device -------------------------------------------------------------------- */

static int peer_to_3d(const CUDA_MEMCPY3D_PEER *p, CUDA_MEMCPY3D *out)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if ((p->srcContext && !rt_context_find(p->srcContext, true)) ||
        (p->dstContext && !rt_context_find(p->dstContext, true)))
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = (CUDA_MEMCPY3D) { .srcXInBytes = p->srcXInBytes,
                             .srcY = p->srcY,
                             .srcZ = p->srcZ,
                             .srcLOD = p->srcLOD,
                             .srcMemoryType = p->srcMemoryType,
                             .srcHost = p->srcHost,
                             .srcDevice = p->srcDevice,
                             .srcArray = p->srcArray,
                             .srcPitch = p->srcPitch,
                             .srcHeight = p->srcHeight,
                             .dstXInBytes = p->dstXInBytes,
                             .dstY = p->dstY,
                             .dstZ = p->dstZ,
                             .dstLOD = p->dstLOD,
                             .dstMemoryType = p->dstMemoryType,
                             .dstHost = p->dstHost,
                             .dstDevice = p->dstDevice,
                             .dstArray = p->dstArray,
                             .dstPitch = p->dstPitch,
                             .dstHeight = p->dstHeight,
                             .WidthInBytes = p->WidthInBytes,
                             .Height = p->Height,
                             .Depth = p->Depth };
    return CUDA_SUCCESS;
}

CUresult rt_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    CUDA_MEMCPY3D copy;
    int r = rt_enter_any();
    r = r ? r : peer_to_3d(pCopy, &copy);
    return r ? (CUresult)r : rt_cuMemcpy3D_v2(&copy);
}

CUresult rt_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    CUDA_MEMCPY3D copy;
    int r = rt_enter_any();
    r = r ? r : peer_to_3d(pCopy, &copy);
    return r ? (CUresult)r : rt_cuMemcpy3DAsync_v2(&copy, hStream);
}

/* --- many at once ----------------------------------------------------------------------------- */

/* A batch needs a stream that the program has made and that does not capture. */
static int enter(CUstream stream, struct rt_stream **st)
{
    struct rt_context *c;
    int r = rt_enter_stream(stream, &c, st);
    if (r)
        return r;
    if ((*st)->role == RT_ROLE_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    return GM_UNLIKELY(rt_stream_captures(*st)) ? rt_capture_refuse(*st) : CUDA_SUCCESS;
}

static bool order_known(CUmemcpySrcAccessOrder order)
{
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Checks the attributes. *at_once: some source must have been read when the call returns. */
static int check_attributes(const CUmemcpyAttributes *attrs, const size_t *attrsIdxs,
                            size_t numAttrs, size_t count, bool *at_once)
{
    if (!attrs || !attrsIdxs || numAttrs == 0 || numAttrs > count || attrsIdxs[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numAttrs; i++) {
        if (!order_known(attrs[i].srcAccessOrder) || attrsIdxs[i] >= count ||
            (i && attrsIdxs[i] <= attrsIdxs[i - 1]) ||
            (attrs[i].flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE))
            return CUDA_ERROR_INVALID_VALUE;
        *at_once |= attrs[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    }
    return CUDA_SUCCESS;
}

static int copy_one(struct rt_stream *st, CUdeviceptr dst, CUdeviceptr src, size_t size)
{
    const struct rt_box box = {
        .dst = { .kind = RT_SIDE_UNIFIED, .address = dst, .pitch = size, .slice = size },
        .src = { .kind = RT_SIDE_UNIFIED, .address = src, .pitch = size, .slice = size },
        .width = size,
        .height = 1,
        .depth = 1,
    };
    return size ? rt_copy(st, &box, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                               size_t *failIdx, CUstream hStream)
{
    struct rt_stream *st;
    bool at_once = false;
    if (failIdx)
        *failIdx = SIZE_MAX; /* no copy in particular */
    int r = enter(hStream, &st);
    if (r)
        return r;
    if (!dsts || !srcs || !sizes || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_attributes(attrs, attrsIdxs, numAttrs, count, &at_once);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        r = copy_one(st, dsts[i], srcs[i], sizes[i]);
        if (r && failIdx)
            *failIdx = i;
    }
    return r || !at_once ? r : rt_stream_wait(st);
}

CUresult rt_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                  CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                  CUstream hStream)
{
    return rt_cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL,
                                 hStream);
}

/* Sets *element to the bytes of the end's elements, if it is an array; two arrays must agree
 * (*element is 0 before the first). What LIMIT_BITS leave room for can be multiplied by it. */
static int check_operand(const CUmemcpy3DOperand *o, size_t *element)
{
    enum { LIMIT_BITS = 56 };
    const CUoffset3D *at = &o->op.array.offset;
    if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
        return o->op.ptr.rowLength >> LIMIT_BITS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (o->type != CU_MEMCPY_OPERAND_TYPE_ARRAY || !o->op.array.array ||
        (at->x | at->y | at->z) >> LIMIT_BITS)
        return CUDA_ERROR_INVALID_VALUE;
    const struct rt_array *array = rt_array_find(o->op.array.array);
    if (!array)
        return rt_array_error(o->op.array.array);
    const size_t own = dev_array_element(array->shape.format, array->shape.channels);
    if (*element && *element != own)
        return CUDA_ERROR_INVALID_VALUE;
    *element = own;
    return CUDA_SUCCESS;
}

/* Fills in the side of an operand that has been checked; `element`: the bytes of an element. */
static int make_side(const CUmemcpy3DOperand *o, size_t element, const struct rt_box *box,
                     struct rt_side *out)
{
    struct rt_side_spec spec;
    if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
        spec = (struct rt_side_spec) { .type = CU_MEMORYTYPE_ARRAY,
                                       .array = o->op.array.array,
                                       .x = o->op.array.offset.x * element,
                                       .y = o->op.array.offset.y,
                                       .z = o->op.array.offset.z };
    else
        spec = (struct rt_side_spec) { .type = CU_MEMORYTYPE_UNIFIED,
                                       .device = o->op.ptr.ptr,
                                       .pitch = o->op.ptr.rowLength * element,
                                       .height = o->op.ptr.layerHeight };
    return rt_copy_side(&spec, box, out);
}

/* Between pointers an element is a byte. */
static int copy_box(struct rt_stream *st, const CUDA_MEMCPY3D_BATCH_OP *op)
{
    size_t element = 0;
    const CUextent3D *e = &op->extent;
    if (!order_known(op->srcAccessOrder) || !e->width || !e->height || !e->depth ||
        (op->flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE))
        return CUDA_ERROR_INVALID_VALUE;
    int r = check_operand(&op->dst, &element);
    r = r ? r : check_operand(&op->src, &element);
    if (r)
        return r;
    element = element ? element : 1;
    struct rt_box box = { .height = e->height, .depth = e->depth };
    if (__builtin_mul_overflow(e->width, element, &box.width))
        return CUDA_ERROR_INVALID_VALUE;
    r = make_side(&op->dst, element, &box, &box.dst);
    r = r ? r : make_side(&op->src, element, &box, &box.src);
    return r ? r : rt_copy(st, &box, false);
}

CUresult rt_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                 unsigned long long flags, CUstream hStream)
{
    struct rt_stream *st;
    bool at_once = false;
    if (failIdx)
        *failIdx = SIZE_MAX;
    int r = enter(hStream, &st);
    if (r)
        return r;
    if (numOps == 0 || !opList || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numOps && r == CUDA_SUCCESS; i++) {
        r = copy_box(st, &opList[i]);
        at_once |= opList[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
        if (r && failIdx)
            *failIdx = i;
    }
    return r || !at_once ? r : rt_stream_wait(st);
}

CUresult rt_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                    unsigned long long flags, CUstream hStream)
{
    return rt_cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}
