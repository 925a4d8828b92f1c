/*
 * cuMemcpy*. A one-dimensional copy is a box of one row; the others are boxes as they are
 * described.
 */
#include "client/memory/copy.h"

#include "client/gen/api.h"
#include "client/memory/array.h"
#include "client/stream/capture.h"

static int enter(CUstream handle, bool synchronous, struct rt_stream **st)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (GM_UNLIKELY(r == CUDA_ERROR_INVALID_CONTEXT)) /* not one that is destroyed */
        r = rt_enter_stream(handle, &c, st);
    else if (r == CUDA_SUCCESS)
        r = rt_stream_resolve(c, handle, st);
    if (r)
        return r;
    return synchronous ? rt_capture_check(*st, true) : rt_capture_usable(*st);
}

static int copy_bytes(uint64_t dst, enum rt_side_kind dst_kind, uint64_t src,
                      enum rt_side_kind src_kind, size_t size, CUstream stream, bool synchronous)
{
    struct rt_stream *st;
    int r = enter(stream, synchronous, &st);
    if (r)
        return r;
    const struct rt_box box = {
        .dst = { .kind = dst_kind, .address = dst, .pitch = size, .slice = size },
        .src = { .kind = src_kind, .address = src, .pitch = size, .slice = size },
        .width = size,
        .height = 1,
        .depth = 1,
    };
    return rt_copy(st, &box, synchronous);
}

CUresult rt_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_bytes(dst, RT_SIDE_UNIFIED, src, RT_SIDE_UNIFIED, ByteCount, NULL, true);
}

CUresult rt_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_bytes(dst, RT_SIDE_UNIFIED, src, RT_SIDE_UNIFIED, ByteCount, hStream, false);
}

CUresult rt_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_bytes(dstDevice, RT_SIDE_DEVICE, (uintptr_t)srcHost, RT_SIDE_HOST, ByteCount, NULL,
                      true);
}

CUresult rt_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                 CUstream hStream)
{
    return copy_bytes(dstDevice, RT_SIDE_DEVICE, (uintptr_t)srcHost, RT_SIDE_HOST, ByteCount,
                      hStream, false);
}

CUresult rt_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_bytes((uintptr_t)dstHost, RT_SIDE_HOST, srcDevice, RT_SIDE_DEVICE, ByteCount, NULL,
                      true);
}

CUresult rt_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream)
{
    return copy_bytes((uintptr_t)dstHost, RT_SIDE_HOST, srcDevice, RT_SIDE_DEVICE, ByteCount,
                      hStream, false);
}

CUresult rt_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_bytes(dstDevice, RT_SIDE_DEVICE, srcDevice, RT_SIDE_DEVICE, ByteCount, NULL, true);
}

CUresult rt_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream)
{
    return copy_bytes(dstDevice, RT_SIDE_DEVICE, srcDevice, RT_SIDE_DEVICE, ByteCount, hStream,
                      false);
}

/* NULL means the current context. */
static struct rt_context *find_context(CUcontext handle)
{
    return rt_context_find(handle ? handle : rt_stack_top(), true);
}

/* Copies between two contexts. The synchronous form comes after all earlier work of both, and
 * before all later. Between contexts of one device only the default stream's order counts. The
 * device knows whose memory it is, so that a copy between peers is an ordinary copy. */
static CUresult copy_peers(CUdeviceptr dst, struct rt_context *to, CUdeviceptr src,
                           struct rt_context *from, size_t size)
{
    bool far = to->device != from->device;
    int r = far ? rt_context_wait(to) : CUDA_SUCCESS;
    r = r || !far ? r : rt_context_wait(from);
    r = r ? r : (int)rt_cuMemcpyDtoD_v2(dst, src, size);
    return r || !far ? (CUresult)r : rt_cuCtxSynchronize();
}

CUresult rt_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                         CUcontext srcContext, size_t ByteCount)
{
    struct rt_context *to = find_context(dstContext), *from = find_context(srcContext);
    return to && from ? copy_peers(dstDevice, to, srcDevice, from, ByteCount)
                      : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult rt_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                              CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    return find_context(dstContext) && find_context(srcContext)
               ? rt_cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream)
               : CUDA_ERROR_INVALID_CONTEXT;
}

/* --- boxes ------------------------------------------------------------------------------------ */

static int make_array_side(CUarray handle, uint64_t x, uint64_t y, uint64_t z, struct rt_side *out)
{
    *out = (struct rt_side) {
        .kind = RT_SIDE_ARRAY, .array = rt_array_find(handle), .x = x, .y = y, .z = z
    };
    if (!out->array)
        return rt_array_error(handle);
    rt_copy_place_array(out);
    return CUDA_SUCCESS;
}

int rt_copy_side(const struct rt_side_spec *spec, const struct rt_box *box, struct rt_side *out)
{
    uint64_t row_end, last_row, slice, offset, rows;
    switch (spec->type) {
    case CU_MEMORYTYPE_HOST:
        *out = (struct rt_side) { .kind = RT_SIDE_HOST, .address = (uintptr_t)spec->host };
        break;
    case CU_MEMORYTYPE_DEVICE:
        *out = (struct rt_side) { .kind = RT_SIDE_DEVICE, .address = spec->device };
        break;
    case CU_MEMORYTYPE_UNIFIED:
        *out = (struct rt_side) { .kind = RT_SIDE_UNIFIED, .address = spec->device };
        break;
    case CU_MEMORYTYPE_ARRAY:
        if (!spec->array)
            return CUDA_ERROR_INVALID_VALUE;
        return make_array_side(spec->array, spec->x, spec->y, spec->z, out);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (__builtin_add_overflow(spec->x, box->width, &row_end) ||
        __builtin_add_overflow(spec->y, box->height, &last_row))
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t pitch = spec->pitch ? spec->pitch : row_end;
    const uint64_t height = spec->height ? spec->height : last_row;
    if (row_end > pitch || last_row > height || __builtin_mul_overflow(pitch, height, &slice) ||
        __builtin_mul_overflow(slice, spec->z, &offset) ||
        __builtin_mul_overflow(pitch, spec->y, &rows) ||
        __builtin_add_overflow(offset, rows, &offset) ||
        __builtin_add_overflow(offset, spec->x, &offset) ||
        __builtin_add_overflow(out->address, offset, &out->address))
        return CUDA_ERROR_INVALID_VALUE;
    out->pitch = pitch;
    out->slice = slice;
    return CUDA_SUCCESS;
}

/* Nothing is copied then, whatever the sides are. */
static bool is_empty(const struct rt_box *box)
{
    return box->width == 0 || box->height == 0 || box->depth == 0;
}

static int copy_box(struct rt_box *box, const struct rt_side_spec *dst,
                    const struct rt_side_spec *src, CUstream stream, bool synchronous)
{
    struct rt_stream *st;
    int r = enter(stream, synchronous, &st);
    if (r == CUDA_SUCCESS && is_empty(box))
        return rt_copy(st, box, synchronous);
    r = r ? r : rt_copy_side(dst, box, &box->dst);
    r = r ? r : rt_copy_side(src, box, &box->src);
    return r ? r : rt_copy(st, box, synchronous);
}

/* What CUDA_MEMCPY2D and CUDA_MEMCPY3D both say of an end, which is `dst` or `src`; the latter says
 * more. */
#define SIDE_OF_2D(p, end)                                                                         \
    .type = (p)->end##MemoryType, .host = (p)->end##Host, .device = (p)->end##Device,              \
    .array = (p)->end##Array, .x = (p)->end##XInBytes, .y = (p)->end##Y, .pitch = (p)->end##Pitch
#define SIDE_OF_3D(p, end) SIDE_OF_2D(p, end), .z = (p)->end##Z, .height = (p)->end##Height

static int copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool synchronous)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_box box = { .width = p->WidthInBytes, .height = p->Height, .depth = 1 };
    const struct rt_side_spec dst = { SIDE_OF_2D(p, dst) };
    const struct rt_side_spec src = { SIDE_OF_2D(p, src) };
    return copy_box(&box, &dst, &src, stream, synchronous);
}

int rt_copy_describe(const CUDA_MEMCPY3D *p, struct rt_box *out)
{
    if ((p->srcLOD && p->srcMemoryType == CU_MEMORYTYPE_ARRAY) ||
        (p->dstLOD && p->dstMemoryType == CU_MEMORYTYPE_ARRAY))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct rt_box) { .width = p->WidthInBytes, .height = p->Height, .depth = p->Depth };
    const struct rt_side_spec dst = { SIDE_OF_3D(p, dst) };
    const struct rt_side_spec src = { SIDE_OF_3D(p, src) };
    int r = rt_copy_side(&dst, out, &out->dst);
    return r ? r : rt_copy_side(&src, out, &out->src);
}

static CUmemorytype type_of(const struct rt_side *s)
{
    static const CUmemorytype types[] = { [RT_SIDE_DEVICE] = CU_MEMORYTYPE_DEVICE,
                                          [RT_SIDE_HOST] = CU_MEMORYTYPE_HOST,
                                          [RT_SIDE_UNIFIED] = CU_MEMORYTYPE_UNIFIED,
                                          [RT_SIDE_ARRAY] = CU_MEMORYTYPE_ARRAY };
    return types[s->kind];
}

/* Describes a side: an array and a place in it, or an address and pitches. */
static void describe_source(const struct rt_side *s, CUDA_MEMCPY3D *out)
{
    out->srcMemoryType = type_of(s);
    if (s->array) {
        out->srcArray = rt_array_handle(s->array);
        out->srcXInBytes = s->x;
        out->srcY = s->y;
        out->srcZ = s->z;
        return;
    }
    out->srcHost = (const void *)(uintptr_t)s->address;
    out->srcDevice = s->address;
    out->srcPitch = s->pitch;
    out->srcHeight = s->slice / s->pitch;
}

static void describe_destination(const struct rt_side *s, CUDA_MEMCPY3D *out)
{
    out->dstMemoryType = type_of(s);
    if (s->array) {
        out->dstArray = rt_array_handle(s->array);
        out->dstXInBytes = s->x;
        out->dstY = s->y;
        out->dstZ = s->z;
        return;
    }
    out->dstHost = (void *)(uintptr_t)s->address;
    out->dstDevice = s->address;
    out->dstPitch = s->pitch;
    out->dstHeight = s->slice / s->pitch;
}

void rt_copy_redescribe(const struct rt_box *b, CUDA_MEMCPY3D *out)
{
    *out = (CUDA_MEMCPY3D) { .WidthInBytes = b->width, .Height = b->height, .Depth = b->depth };
    describe_source(&b->src, out);
    describe_destination(&b->dst, out);
}

static int copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool synchronous)
{
    struct rt_stream *st;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_box box = { .width = p->WidthInBytes, .height = p->Height, .depth = p->Depth };
    int r = enter(stream, synchronous, &st);
    if (r == CUDA_SUCCESS && !is_empty(&box))
        r = rt_copy_describe(p, &box);
    return r ? r : rt_copy(st, &box, synchronous);
}

CUresult rt_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult rt_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult rt_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, hStream, false);
}

CUresult rt_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy_3d(pCopy, NULL, true);
}

CUresult rt_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d(pCopy, hStream, false);
}

/* --- rows of arrays --------------------------------------------------------------------------- */

static struct rt_side memory_side(enum rt_side_kind kind, uint64_t address, size_t size)
{
    return (struct rt_side) { .kind = kind, .address = address, .pitch = size, .slice = size };
}

/* Copies a part of the first row of an array; a side for which `array` is set is the array. */
static int copy_row(CUarray dst_array, struct rt_side dst, CUarray src_array, struct rt_side src,
                    size_t size, CUstream stream, bool synchronous)
{
    struct rt_stream *st;
    int r = enter(stream, synchronous, &st);
    if (r == CUDA_SUCCESS && dst.kind == RT_SIDE_ARRAY)
        r = make_array_side(dst_array, dst.x, 0, 0, &dst);
    if (r == CUDA_SUCCESS && src.kind == RT_SIDE_ARRAY)
        r = make_array_side(src_array, src.x, 0, 0, &src);
    const struct rt_box box = { .dst = dst, .src = src, .width = size, .height = 1, .depth = 1 };
    return r ? r : rt_copy(st, &box, synchronous);
}

static struct rt_side array_side(size_t offset)
{
    return (struct rt_side) { .kind = RT_SIDE_ARRAY, .x = offset };
}

CUresult rt_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                            size_t ByteCount)
{
    return copy_row(dstArray, array_side(dstOffset), NULL,
                    memory_side(RT_SIDE_DEVICE, srcDevice, ByteCount), ByteCount, NULL, true);
}

CUresult rt_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount)
{
    return copy_row(NULL, memory_side(RT_SIDE_DEVICE, dstDevice, ByteCount), srcArray,
                    array_side(srcOffset), ByteCount, NULL, true);
}

CUresult rt_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                            size_t ByteCount)
{
    return copy_row(dstArray, array_side(dstOffset), NULL,
                    memory_side(RT_SIDE_HOST, (uintptr_t)srcHost, ByteCount), ByteCount, NULL,
                    true);
}

CUresult rt_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                 size_t ByteCount, CUstream hStream)
{
    return copy_row(dstArray, array_side(dstOffset), NULL,
                    memory_side(RT_SIDE_HOST, (uintptr_t)srcHost, ByteCount), ByteCount, hStream,
                    false);
}

CUresult rt_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_row(NULL, memory_side(RT_SIDE_HOST, (uintptr_t)dstHost, ByteCount), srcArray,
                    array_side(srcOffset), ByteCount, NULL, true);
}

CUresult rt_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
                                 size_t ByteCount, CUstream hStream)
{
    return copy_row(NULL, memory_side(RT_SIDE_HOST, (uintptr_t)dstHost, ByteCount), srcArray,
                    array_side(srcOffset), ByteCount, hStream, false);
}

CUresult rt_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount)
{
    return copy_row(dstArray, array_side(dstOffset), srcArray, array_side(srcOffset), ByteCount,
                    NULL, true);
}
