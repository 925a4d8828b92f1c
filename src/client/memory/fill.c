/*
 * cuMemset*: each is one `fill` record. As in CUDA, the synchronous forms wait only if the memory
 * is the host's. A fill, unlike a copy, needs a stream whose device may touch the memory: only a
 * peer can fill another device's memory.
 */
#include "client/memory/fill.h"

#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/peer.h"

int rt_fill_prepare(const struct rt_fill *f, struct wire_rec_fill *out)
{
    uint64_t row, size;
    *out = (struct wire_rec_fill) { .head = { .op = WIRE_OP_FILL, .size = sizeof(*out) } };
    if (f->width == 0 || f->height == 0)
        return CUDA_SUCCESS;
    if (__builtin_mul_overflow(f->width, f->element, &row) || (f->height > 1 && f->pitch < row) ||
        __builtin_mul_overflow(f->pitch, f->height - 1, &size) ||
        __builtin_add_overflow(size, row, &size) || f->dst % f->element ||
        (f->height > 1 && f->pitch % f->element))
        return CUDA_ERROR_INVALID_VALUE;
    out->dst = f->dst;
    out->pitch = f->height > 1 ? f->pitch : row;
    out->width = f->width;
    out->height = f->height;
    out->value = f->value;
    out->element_size = f->element;
    return CUDA_SUCCESS;
}

int rt_fill_place(struct wire_rec_fill *record, struct rt_range *range)
{
    uint64_t size = record->pitch * (record->height - 1) + record->width * record->element_size,
             dst;
    if (!rt_memory_device_range(record->dst, size, range, &dst))
        return CUDA_ERROR_INVALID_VALUE;
    record->dst = dst;
    return CUDA_SUCCESS;
}

/* Whether work in the context's streams may touch the memory. Returns true where this process
 * cannot know (a graph's memory, another process's). */
static bool reaches(struct rt_context *c, const struct rt_range *range)
{
    if (GM_LIKELY(range->device == c->device) || !rt_memory_is_device(range))
        return true;
    switch (range->kind) {
    case RT_MEMORY_DEVICE: /* a pool decides who may touch its memory */
        return range->ordered ? rt_pool_lets(rt_block_source(range->block), c->device)
                              : rt_peer_enabled(c, range->device);
    case RT_MEMORY_GLOBAL:
        return rt_peer_enabled(c, range->device);
    case RT_MEMORY_VIRTUAL:
        return rt_memory_access(range, c->device) != 0;
    default:
        return true;
    }
}

static int fill(const struct rt_fill *f, CUstream stream, bool synchronous)
{
    struct rt_stream *st;
    struct rt_range range;
    struct wire_rec_fill record;
    int r = rt_enter_work(stream, &st);
    r = r ? r : rt_capture_check(st, synchronous);
    if (r)
        return r;
    r = rt_fill_prepare(f, &record);
    if (r || record.width == 0)
        return r ? rt_capture_failed(st, r) : r;
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_fill(st, f);
    r = rt_fill_place(&record, &range);
    if (r || GM_UNLIKELY(!reaches(st->context, &range)))
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_queue_submit(st, &record.head, sizeof(record), NULL, 0);
    return r || !synchronous || (rt_memory_is_device(&range) && !range.sync) ? r
                                                                             : rt_stream_wait(st);
}

static int fill_1d(CUdeviceptr dst, uint32_t value, uint32_t element, size_t n, CUstream stream,
                   bool synchronous)
{
    return fill(
        &(struct rt_fill) {
            .dst = dst, .value = value, .element = element, .width = n, .height = 1 },
        stream, synchronous);
}

static int fill_2d(CUdeviceptr dst, size_t pitch, uint32_t value, uint32_t element, size_t width,
                   size_t height, CUstream stream, bool synchronous)
{
    return fill(&(struct rt_fill) { .dst = dst,
                                    .pitch = pitch,
                                    .value = value,
                                    .element = element,
                                    .width = width,
                                    .height = height },
                stream, synchronous);
}

CUresult rt_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return fill_1d(dstDevice, uc, 1, N, NULL, true);
}

CUresult rt_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return fill_1d(dstDevice, us, 2, N, NULL, true);
}

CUresult rt_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return fill_1d(dstDevice, ui, 4, N, NULL, true);
}

CUresult rt_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return fill_1d(dstDevice, uc, 1, N, hStream, false);
}

CUresult rt_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return fill_1d(dstDevice, us, 2, N, hStream, false);
}

CUresult rt_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return fill_1d(dstDevice, ui, 4, N, hStream, false);
}

CUresult rt_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                            size_t Height)
{
    return fill_2d(dstDevice, dstPitch, uc, 1, Width, Height, NULL, true);
}

CUresult rt_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                             size_t Width, size_t Height)
{
    return fill_2d(dstDevice, dstPitch, us, 2, Width, Height, NULL, true);
}

CUresult rt_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                             size_t Height)
{
    return fill_2d(dstDevice, dstPitch, ui, 4, Width, Height, NULL, true);
}

CUresult rt_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                              size_t Width, size_t Height, CUstream hStream)
{
    return fill_2d(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}

CUresult rt_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                               size_t Width, size_t Height, CUstream hStream)
{
    return fill_2d(dstDevice, dstPitch, us, 2, Width, Height, hStream, false);
}

CUresult rt_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                               size_t Width, size_t Height, CUstream hStream)
{
    return fill_2d(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}
