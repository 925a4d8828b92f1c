/*
 * Ways to copy:
 *   record  both sides lie in the window (device memory, pinned memory): a `copy` record, in order
 *           with the stream
 *   write   a little pageable memory to the device: the bytes travel in a `write` record, the
 *           source is free at once
 *   staged  pageable memory from or to device memory that only the device can touch (staging.c)
 *   array   anything with an array of the device's own: a record or staged, too (copy_array.c)
 *   direct  the rest, and what is synchronous and touches the host: wait for the stream, then one
 *           memcpy by the caller, for the window is mapped here at the device's addresses. CUDA
 *           allows asynchronous copies of pageable memory to be synchronous.
 */
#include "client/memory/copy.h"

#include <string.h>

#include "client/memory/memory.h"
#include "client/memory/staging.h"
#include "client/stream/capture.h"
#include "client/stream/check.h"

/* Computes how many bytes lie from the first to the last one. Returns false on overflow. */
static bool extent(const struct rt_box *b, const struct rt_side *side, uint64_t *out)
{
    uint64_t rows, planes, sum;
    if (__builtin_mul_overflow(side->pitch, b->height - 1, &rows) ||
        __builtin_mul_overflow(side->slice, b->depth - 1, &planes) ||
        __builtin_add_overflow(rows, planes, &sum))
        return false;
    return !__builtin_add_overflow(sum, b->width, out);
}

/* Whether a side begins in registered memory and ends outside of it: NVIDIA's driver refuses
 * that. */
static bool is_beyond_registered(const struct rt_side *side, uint64_t size)
{
    struct rt_range r;
    return side->kind == RT_SIDE_HOST && rt_memory_find(side->address, &r) &&
           (r.kind == RT_MEMORY_REGISTERED || r.kind == RT_MEMORY_PAGEABLE) &&
           size > r.size - (side->address - r.base);
}

/* Whether the address lies in the window, in which the program has no memory of its own. */
static bool is_in_window(uint64_t address)
{
    return address - rt_session->window_base < 2 * rt_session->window_half;
}

int rt_copy_locate(const struct rt_box *b, const struct rt_side *side, struct rt_place *out)
{
    struct rt_range range;
    uint64_t size, end;
    if (side->array && rt_copy_check_array(b, side) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (!extent(b, side, &size) || __builtin_add_overflow(side->address, size, &end))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t window = side->address;
    bool known = rt_memory_device_range(side->address, size, &range, &window);
    /* What is not known memory from end to end is the program's own. It must not begin in the
     * device's memory, nor be called the device's. */
    if (!known && (is_beyond_registered(side, size) || side->kind == RT_SIDE_DEVICE ||
                   side->array || side->address == 0 ||
                   (side->kind == RT_SIDE_UNIFIED &&
                    (is_in_window(side->address) ||
                     (rt_memory_find(side->address, &range) && range.kind != RT_MEMORY_PAGEABLE)))))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct rt_place) { .in_window = known,
                               .host = !known || rt_memory_is_host(&range),
                               .apart = known && rt_memory_is_apart(&range),
                               .sync = known && (range.sync || rt_memory_is_managed(&range)),
                               .window = known ? window : side->address };
    return CUDA_SUCCESS;
}

static int plan_side(const struct rt_box *b, const struct rt_side *side, bool *in_window,
                     uint64_t *window)
{
    struct rt_place p = { .in_window = true };
    int r = rt_copy_is_apart(side) ? rt_copy_check_array(b, side) : rt_copy_locate(b, side, &p);
    *in_window = r == CUDA_SUCCESS && p.in_window;
    *window = r == CUDA_SUCCESS ? p.window : 0;
    return r;
}

int rt_copy_plan(const struct rt_box *b, struct rt_copy_plan *out)
{
    *out = (struct rt_copy_plan) { 0 };
    if (b->width == 0 || b->height == 0 || b->depth == 0)
        return CUDA_SUCCESS;
    int r = plan_side(b, &b->dst, &out->dst_in_window, &out->dst);
    return r ? r : plan_side(b, &b->src, &out->src_in_window, &out->src);
}

void rt_copy_record(const struct rt_box *b, uint64_t dst, uint64_t src, struct wire_rec_copy *out)
{
    *out = (struct wire_rec_copy) {
        .head = { .op = WIRE_OP_COPY, .size = sizeof(*out) },
        .dst = dst,
        .src = src,
        .width = b->width,
        .height = b->height,
        .depth = b->depth,
        .dst_pitch = b->dst.pitch,
        .dst_slice = b->dst.slice,
        .src_pitch = b->src.pitch,
        .src_slice = b->src.slice,
    };
}

static int copy_by_record(struct rt_stream *st, const struct rt_box *b, uint64_t dst, uint64_t src)
{
    struct wire_rec_copy r;
    rt_copy_record(b, dst, src, &r);
    return rt_queue_submit(st, &r.head, sizeof(r), NULL, 0);
}

static int copy_by_write(struct rt_stream *st, uint64_t dst, const void *data, size_t size)
{
    struct wire_rec_write r = { .head.op = WIRE_OP_WRITE, .dst = dst };
    return rt_queue_submit(st, &r.head, sizeof(r), data, size);
}

static void copy_direct(const struct rt_box *b)
{
    for (uint64_t z = 0; z < b->depth; z++) {
        uint8_t *dst = (uint8_t *)(uintptr_t)(b->dst.address + z * b->dst.slice);
        const uint8_t *src = (const uint8_t *)(uintptr_t)(b->src.address + z * b->src.slice);
        for (uint64_t y = 0; y < b->height; y++)
            memmove(dst + y * b->dst.pitch, src + y * b->src.pitch, b->width);
    }
}

/* Tells the checker of bytes that this library has written. */
static void wrote(const struct rt_box *b)
{
    for (uint64_t z = 0; z < b->depth; z++)
        for (uint64_t y = 0; y < b->height; y++)
            rt_check_wrote(b->dst.address + z * b->dst.slice + y * b->dst.pitch, b->width);
}

/* Copies between the host and device memory that only the device can touch. */
static int copy_apart(struct rt_stream *st, const struct rt_box *b, const struct rt_place *dst,
                      const struct rt_place *src, bool synchronous)
{
    int r;
    if (dst->in_window && src->in_window)
        r = copy_by_record(st, b, dst->window, src->window);
    else if (dst->apart && b->height == 1 && b->depth == 1 && b->width <= WIRE_REC_WRITE_DATA_MAX)
        r = copy_by_write(st, dst->window, (const void *)(uintptr_t)b->src.address, b->width);
    else
        r = rt_staging_copy(st, b, dst->apart ? dst->window : src->window, dst->apart);
    return r || !synchronous ? r : rt_stream_wait(st);
}

/* Copies with an array on a side. If the device can reach both sides that is one record, in order
 * with the stream; pageable memory goes through the staging slots. */
static int copy_with_array(struct rt_stream *st, const struct rt_box *b, bool synchronous)
{
    struct rt_copy_plan plan;
    int r = rt_copy_plan(b, &plan);
    if (r)
        return rt_capture_failed(st, r);
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_copy(st, b);
    if (plan.dst_in_window && plan.src_in_window) {
        struct wire_rec_copy_array record;
        rt_copy_array_record(b, plan.dst, plan.src, &record);
        r = rt_queue_submit(st, &record.head, sizeof(record), NULL, 0);
    } else {
        r = rt_staging_copy(st, b, 0, !plan.src_in_window);
    }
    return r || !synchronous ? r : rt_stream_wait(st);
}

int rt_copy(struct rt_stream *st, const struct rt_box *b, bool synchronous)
{
    struct rt_place dst, src;
    if (b->width == 0 || b->height == 0 || b->depth == 0)
        return CUDA_SUCCESS;
    if (GM_UNLIKELY(rt_copy_is_apart(&b->dst) || rt_copy_is_apart(&b->src)))
        return copy_with_array(st, b, synchronous);
    int r = rt_copy_locate(b, &b->dst, &dst);
    r = r ? r : rt_copy_locate(b, &b->src, &src);
    if (r)
        return rt_capture_failed(st, r);
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_copy(st, b);
    bool in_window = dst.in_window && src.in_window;
    if (dst.apart != src.apart)
        return copy_apart(st, b, &dst, &src, synchronous);
    if (in_window && (!synchronous || (!dst.host && !src.host))) {
        r = copy_by_record(st, b, dst.window, src.window);
        return r || !synchronous || !(dst.sync || src.sync) ? r : rt_stream_wait(st);
    }
    if (dst.in_window && !dst.host && !(synchronous && dst.sync) && !src.in_window &&
        b->height == 1 && b->depth == 1 && b->width <= WIRE_REC_WRITE_DATA_MAX &&
        rt_stream_query_turn(st) == CUDA_ERROR_NOT_READY)
        return copy_by_write(st, dst.window, (const void *)(uintptr_t)b->src.address, b->width);
    r = rt_stream_wait_turn(st);
    if (r)
        return r;
    copy_direct(b);
    if (GM_UNLIKELY(rt_checks) && dst.in_window)
        wrote(b);
    atomic_thread_fence(memory_order_acquire);
    return rt_session_error(
        /* If an error came meanwhile, the bytes may have been gone before they were read. */
        rt_session);
}
