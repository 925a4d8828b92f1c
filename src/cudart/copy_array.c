/*
 * Copies to, from and between arrays: in two dimensions, and of consecutive bytes.
 */
#include <stdint.h>

#include "cudart/copy.h"

/* What is wrong with a copy between memory and an array. */
static cudaError_t check(const CUDA_MEMCPY2D *c, cudaArray_const_t array, enum cudaMemcpyKind kind)
{
    if (is_empty2d(c))
        return cudaSuccess;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return array ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t to_array(CUDA_MEMCPY2D *c, cudaArray_t dst, size_t x, size_t y, const void *src,
                            size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    *c = (CUDA_MEMCPY2D) { .srcMemoryType = source_type(kind),
                           .srcHost = src,
                           .srcDevice = address(src),
                           .srcPitch = spitch,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = (CUarray)dst,
                           .dstXInBytes = x,
                           .dstY = y,
                           .WidthInBytes = width,
                           .Height = height };
    return check(c, dst, kind);
}

static cudaError_t from_array(CUDA_MEMCPY2D *c, void *dst, size_t dpitch, cudaArray_const_t src,
                              size_t x, size_t y, size_t width, size_t height,
                              enum cudaMemcpyKind kind)
{
    *c = (CUDA_MEMCPY2D) { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = (CUarray)(uintptr_t)src,
                           .srcXInBytes = x,
                           .srcY = y,
                           .dstMemoryType = destination_type(kind),
                           .dstHost = dst,
                           .dstDevice = address(dst),
                           .dstPitch = dpitch,
                           .WidthInBytes = width,
                           .Height = height };
    return check(c, src, kind);
}

cudaError_t crt_cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src,
                                    size_t spitch, size_t width, size_t height,
                                    enum cudaMemcpyKind kind, cudaStream_t own)
{
    CUDA_MEMCPY2D c;
    cudaError_t r = to_array(&c, dst, x, y, src, spitch, width, height, kind);
    return r ? r : copy2d(&c, own);
}

cudaError_t crt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
                                      size_t y, size_t width, size_t height,
                                      enum cudaMemcpyKind kind, cudaStream_t own)
{
    CUDA_MEMCPY2D c;
    cudaError_t r = from_array(&c, dst, dpitch, src, x, y, width, height, kind);
    return r ? r : copy2d(&c, own);
}

cudaError_t crt_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
                                         size_t spitch, size_t width, size_t height,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D c;
    cudaError_t r = to_array(&c, dst, x, y, src, spitch, width, height, kind);
    return r ? r : copy2d_async(&c, stream);
}

cudaError_t crt_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                                           size_t x, size_t y, size_t width, size_t height,
                                           enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D c;
    cudaError_t r = from_array(&c, dst, dpitch, src, x, y, width, height, kind);
    return r ? r : copy2d_async(&c, stream);
}

/* Where a copy of consecutive bytes reads or writes: an array, from (x, y) on, or memory, which is
 * one endless row. */
struct end {
    CUarray array;
    char *memory;
    CUmemorytype type;
    size_t row, x, y;
};

static cudaError_t array_end(struct end *e, cudaArray_const_t array, size_t x, size_t y)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    *e = (struct end) { .array = (CUarray)(uintptr_t)array, .type = CU_MEMORYTYPE_ARRAY };
    CUresult r = cuArray3DGetDescriptor(&d, e->array);
    if (r)
        return crt_of(r);
    e->row = d.Width * d.NumChannels * crt_format_size(d.Format);
    e->x = x;
    e->y = y;
    return x < e->row ? cudaSuccess : cudaErrorInvalidValue;
}

static struct end memory_end(const void *p, CUmemorytype type)
{
    return (struct end) { .memory = (char *)(uintptr_t)p, .type = type, .row = SIZE_MAX };
}

static void move_on(struct end *e, size_t width, size_t height)
{
    if (e->memory) {
        e->memory += width * height;
        return;
    }
    e->x += width;
    e->y += e->x == e->row ? height : height - 1;
    e->x = e->x == e->row ? 0 : e->x;
}

/* Copies what is left of a first row, then whole rows, then a part of a last row, each as one
 * copy. */
static cudaError_t copy_row(struct end to, struct end from, size_t count, cudaStream_t stream)
{
    while (count) {
        size_t left = to.row - to.x < from.row - from.x ? to.row - to.x : from.row - from.x;
        size_t width = count < left ? count : left;
        bool whole = !to.x && !from.x && (to.memory || from.memory || to.row == from.row);
        size_t height = whole && count >= left ? count / left : 1;
        CUDA_MEMCPY2D c = { .srcMemoryType = from.type,
                            .srcHost = from.memory,
                            .srcDevice = address(from.memory),
                            .srcArray = from.array,
                            .srcPitch = width,
                            .srcXInBytes = from.x,
                            .srcY = from.y,
                            .dstMemoryType = to.type,
                            .dstHost = to.memory,
                            .dstDevice = address(to.memory),
                            .dstArray = to.array,
                            .dstPitch = width,
                            .dstXInBytes = to.x,
                            .dstY = to.y,
                            .WidthInBytes = width,
                            .Height = height };
        CUresult r = cuMemcpy2DAsync(&c, stream);
        if (r)
            return crt_of(r);
        move_on(&to, width, height);
        move_on(&from, width, height);
        count -= width * height;
    }
    return cudaSuccess;
}

cudaError_t crt_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
                                       size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct end to;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = src ? array_end(&to, dst, x, y) : cudaErrorInvalidValue;
    return r ? r : copy_row(to, memory_end(src, source_type(kind)), count, stream);
}

cudaError_t crt_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t x, size_t y,
                                         size_t count, enum cudaMemcpyKind kind,
                                         cudaStream_t stream)
{
    struct end from;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = dst ? array_end(&from, src, x, y) : cudaErrorInvalidValue;
    return r ? r : copy_row(memory_end(dst, destination_type(kind)), from, count, stream);
}

cudaError_t crt_cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src,
                                  size_t count, enum cudaMemcpyKind kind, cudaStream_t own)
{
    cudaError_t r = crt_cudaMemcpyToArrayAsync(dst, x, y, src, count, kind, own);
    return r ? r : crt_of(cuStreamSynchronize(own));
}

cudaError_t crt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t x, size_t y,
                                    size_t count, enum cudaMemcpyKind kind, cudaStream_t own)
{
    cudaError_t r = crt_cudaMemcpyFromArrayAsync(dst, src, x, y, count, kind, own);
    return r ? r : crt_of(cuStreamSynchronize(own));
}

/* Arrays are always on the device, so the kind has to fit that. */
static bool between_arrays(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

cudaError_t crt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                       cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                       size_t count, enum cudaMemcpyKind kind, cudaStream_t own)
{
    struct end to, from;
    if (!between_arrays(kind))
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t r = array_end(&to, dst, wOffsetDst, hOffsetDst);
    if (!r)
        r = array_end(&from, src, wOffsetSrc, hOffsetSrc);
    if (!r)
        r = copy_row(to, from, count, own);
    return r ? r : crt_of(cuStreamSynchronize(own));
}

cudaError_t crt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                         cudaArray_const_t src, size_t wOffsetSrc,
                                         size_t hOffsetSrc, size_t width, size_t height,
                                         enum cudaMemcpyKind kind, cudaStream_t own)
{
    if (!between_arrays(kind))
        return cudaErrorInvalidMemcpyDirection;
    CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = (CUarray)(uintptr_t)src,
                        .srcXInBytes = wOffsetSrc,
                        .srcY = hOffsetSrc,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = (CUarray)dst,
                        .dstXInBytes = wOffsetDst,
                        .dstY = hOffsetDst,
                        .WidthInBytes = width,
                        .Height = height };
    return copy2d(&c, own);
}
