/*
 * Copies and fills. The kind of a copy says what its pointers are; with cudaMemcpyDefault the
 * driver finds that out. A call that also exists for per-thread streams has a parameter `own`,
 * which is that stream: the copy is queued there and waited for.
 */
#include <stdint.h>

#include "cudart/copy.h"

static CUresult copy_async(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                           cudaStream_t stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return cuMemcpyHtoDAsync(address(dst), src, n, stream);
    case cudaMemcpyDeviceToHost:
        return cuMemcpyDtoHAsync(dst, address(src), n, stream);
    case cudaMemcpyDeviceToDevice:
        return cuMemcpyDtoDAsync(address(dst), address(src), n, stream);
    default:
        return cuMemcpyAsync(address(dst), address(src), n, stream);
    }
}

static CUresult copy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return cuMemcpyHtoD(address(dst), src, n);
    case cudaMemcpyDeviceToHost:
        return cuMemcpyDtoH(dst, address(src), n);
    case cudaMemcpyDeviceToDevice:
        return cuMemcpyDtoD(address(dst), address(src), n);
    default:
        return cuMemcpy(address(dst), address(src), n);
    }
}

cudaError_t crt_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                           cudaStream_t own)
{
    if (count == 0)
        return cudaSuccess;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return own ? finish(copy_async(dst, src, count, kind, own), own)
               : crt_of(copy(dst, src, count, kind));
}

cudaError_t crt_cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                                cudaStream_t stream)
{
    if (count == 0)
        return cudaSuccess;
    return (unsigned)kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
                                              : crt_of(copy_async(dst, src, count, kind, stream));
}

/* The primary contexts of two devices; created if they do not exist yet. */
static CUresult two_contexts(int a, int b, CUcontext *ca, CUcontext *cb)
{
    CUresult r = cuDevicePrimaryCtxRetain(ca, a);
    return r ? r : cuDevicePrimaryCtxRetain(cb, b);
}

cudaError_t crt_cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
                               size_t count)
{
    CUcontext a, b;
    if (count == 0)
        return cudaSuccess;
    CUresult r = two_contexts(dst_device, src_device, &a, &b);
    return crt_of(r ? r : cuMemcpyPeer(address(dst), a, address(src), b, count));
}

cudaError_t crt_cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                    size_t count, cudaStream_t stream)
{
    CUcontext a, b;
    if (count == 0)
        return cudaSuccess;
    CUresult r = two_contexts(dst_device, src_device, &a, &b);
    return crt_of(r ? r : cuMemcpyPeerAsync(address(dst), a, address(src), b, count, stream));
}

static cudaError_t plain2d(CUDA_MEMCPY2D *c, void *dst, size_t dpitch, const void *src,
                           size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    *c = (CUDA_MEMCPY2D) { .srcMemoryType = source_type(kind),
                           .srcHost = src,
                           .srcDevice = address(src),
                           .srcPitch = spitch,
                           .dstMemoryType = destination_type(kind),
                           .dstHost = dst,
                           .dstDevice = address(dst),
                           .dstPitch = dpitch,
                           .WidthInBytes = width,
                           .Height = height };
    if (is_empty2d(c))
        return cudaSuccess;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return height > 1 && (width > dpitch || width > spitch) ? cudaErrorInvalidPitchValue
                                                            : cudaSuccess;
}

cudaError_t crt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                             size_t height, enum cudaMemcpyKind kind, cudaStream_t own)
{
    CUDA_MEMCPY2D c;
    cudaError_t r = plain2d(&c, dst, dpitch, src, spitch, width, height, kind);
    return r ? r : copy2d(&c, own);
}

cudaError_t crt_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                  size_t width, size_t height, enum cudaMemcpyKind kind,
                                  cudaStream_t stream)
{
    CUDA_MEMCPY2D c;
    cudaError_t r = plain2d(&c, dst, dpitch, src, spitch, width, height, kind);
    return r ? r : copy2d_async(&c, stream);
}

/* --- three dimensions ------------------------------------------------------------------------- */

cudaError_t crt_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
    if (!p || (unsigned)p->kind > cudaMemcpyDefault)
        return p ? cudaErrorInvalidMemcpyDirection : cudaErrorInvalidValue;
    if (!p->srcArray == !p->srcPtr.ptr || !p->dstArray == !p->dstPtr.ptr)
        return cudaErrorInvalidValue;
    /* A copy with an array counts in the array's elements, any other one in bytes. */
    size_t element = 1;
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaArray_t array = p->srcArray ? p->srcArray : p->dstArray;
    if (array) {
        CUresult r = cuArray3DGetDescriptor(&d, (CUarray)array);
        if (r)
            return crt_of(r);
        element = d.NumChannels * crt_format_size(d.Format);
    }
    *out =
        (CUDA_MEMCPY3D) { .srcXInBytes = p->srcPos.x * (p->srcArray ? element : 1),
                          .srcY = p->srcPos.y,
                          .srcZ = p->srcPos.z,
                          .srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : source_type(p->kind),
                          .srcHost = p->srcPtr.ptr,
                          .srcDevice = address(p->srcPtr.ptr),
                          .srcArray = (CUarray)p->srcArray,
                          .srcPitch = p->srcPtr.pitch,
                          .srcHeight = p->srcPtr.ysize,
                          .dstXInBytes = p->dstPos.x * (p->dstArray ? element : 1),
                          .dstY = p->dstPos.y,
                          .dstZ = p->dstPos.z,
                          .dstMemoryType =
                              p->dstArray ? CU_MEMORYTYPE_ARRAY : destination_type(p->kind),
                          .dstHost = p->dstPtr.ptr,
                          .dstDevice = address(p->dstPtr.ptr),
                          .dstArray = (CUarray)p->dstArray,
                          .dstPitch = p->dstPtr.pitch,
                          .dstHeight = p->dstPtr.ysize,
                          .WidthInBytes = p->extent.width * element,
                          .Height = p->extent.height,
                          .Depth = p->extent.depth };
    return cudaSuccess;
}

/* The driver's form of a copy. Of one that copies nothing it gets no more than that: it still looks
 * whether anything may be done now. */
static cudaError_t form_of(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
    if (p && (!p->extent.width || !p->extent.height || !p->extent.depth)) {
        *out = (CUDA_MEMCPY3D) { .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                 .dstMemoryType = CU_MEMORYTYPE_UNIFIED };
        return cudaSuccess;
    }
    return crt_copy3d(p, out);
}

cudaError_t crt_cudaMemcpy3D(const struct cudaMemcpy3DParms *p, cudaStream_t own)
{
    CUDA_MEMCPY3D c;
    cudaError_t r = form_of(p, &c);
    if (r)
        return r;
    return own ? finish(cuMemcpy3DAsync(&c, own), own) : crt_of(cuMemcpy3D(&c));
}

cudaError_t crt_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    CUDA_MEMCPY3D c;
    cudaError_t r = form_of(p, &c);
    return r ? r : crt_of(cuMemcpy3DAsync(&c, stream));
}

/* The driver needs the contexts of both devices; everything else is a copy by addresses. */
static cudaError_t peer3d(const struct cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *out)
{
    CUDA_MEMCPY3D c;
    CUcontext to, from;
    if (!p)
        return cudaErrorInvalidValue;
    const struct cudaMemcpy3DParms plain = { p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                                             p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDefault };
    cudaError_t r = crt_copy3d(&plain, &c);
    if (!r)
        r = crt_of(two_contexts(p->dstDevice, p->srcDevice, &to, &from));
    if (!r)
        *out = (CUDA_MEMCPY3D_PEER) { .srcXInBytes = c.srcXInBytes,
                                      .srcY = c.srcY,
                                      .srcZ = c.srcZ,
                                      .srcMemoryType = c.srcMemoryType,
                                      .srcHost = c.srcHost,
                                      .srcDevice = c.srcDevice,
                                      .srcArray = c.srcArray,
                                      .srcContext = from,
                                      .srcPitch = c.srcPitch,
                                      .srcHeight = c.srcHeight,
                                      .dstXInBytes = c.dstXInBytes,
                                      .dstY = c.dstY,
                                      .dstZ = c.dstZ,
                                      .dstMemoryType = c.dstMemoryType,
                                      .dstHost = c.dstHost,
                                      .dstDevice = c.dstDevice,
                                      .dstArray = c.dstArray,
                                      .dstContext = to,
                                      .dstPitch = c.dstPitch,
                                      .dstHeight = c.dstHeight,
                                      .WidthInBytes = c.WidthInBytes,
                                      .Height = c.Height,
                                      .Depth = c.Depth };
    return r;
}

cudaError_t crt_cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p, cudaStream_t own)
{
    CUDA_MEMCPY3D_PEER c;
    cudaError_t r = peer3d(p, &c);
    if (r)
        return r;
    return own ? finish(cuMemcpy3DPeerAsync(&c, own), own) : crt_of(cuMemcpy3DPeer(&c));
}

cudaError_t crt_cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    CUDA_MEMCPY3D_PEER c;
    cudaError_t r = peer3d(p, &c);
    return r ? r : crt_of(cuMemcpy3DPeerAsync(&c, stream));
}

/* --- variables -------------------------------------------------------------------------------- */

/* The part of a variable of `size` bytes at `p`. */
static cudaError_t part_of(CUdeviceptr p, size_t size, size_t count, size_t offset, void **out)
{
    if (offset > size || count > size - offset)
        return cudaErrorInvalidValue;
    *out = (char *)(uintptr_t)p + offset;
    return cudaSuccess;
}

cudaError_t crt_part(const void *symbol, size_t count, size_t offset, void **out)
{
    CUdeviceptr p;
    size_t size;
    cudaError_t r = crt_variable(symbol, &p, &size);
    return r ? r : part_of(p, size, count, offset, out);
}

cudaError_t crt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                                   enum cudaMemcpyKind kind, cudaStream_t own)
{
    void *p;
    if (count == 0)
        return cudaSuccess;
    cudaError_t r = crt_part(symbol, count, offset, &p);
    if (!r && !goes_to_variable(kind))
        r = cudaErrorInvalidMemcpyDirection;
    return r ? r : crt_cudaMemcpy(p, src, count, kind, own);
}

cudaError_t crt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                     enum cudaMemcpyKind kind, cudaStream_t own)
{
    void *p;
    if (count == 0)
        return cudaSuccess;
    cudaError_t r = crt_part(symbol, count, offset, &p);
    if (!r && !comes_from_variable(kind))
        r = cudaErrorInvalidMemcpyDirection;
    return r ? r : crt_cudaMemcpy(dst, p, count, kind, own);
}

/* In a stream the direction is looked at before the range. */
static cudaError_t part_in_stream(const void *symbol, size_t count, size_t offset, bool goes,
                                  void **out)
{
    CUdeviceptr p;
    size_t size;
    cudaError_t r = crt_variable(symbol, &p, &size);
    if (!r && !goes)
        r = cudaErrorInvalidMemcpyDirection;
    return r ? r : part_of(p, size, count, offset, out);
}

cudaError_t crt_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
                                        size_t offset, enum cudaMemcpyKind kind,
                                        cudaStream_t stream)
{
    void *p;
    if (count == 0)
        return cudaSuccess;
    cudaError_t r = part_in_stream(symbol, count, offset, goes_to_variable(kind), &p);
    return r ? r : crt_cudaMemcpyAsync(p, src, count, kind, stream);
}

cudaError_t crt_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
                                          size_t offset, enum cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
    void *p;
    if (count == 0)
        return cudaSuccess;
    cudaError_t r = part_in_stream(symbol, count, offset, comes_from_variable(kind), &p);
    return r ? r : crt_cudaMemcpyAsync(dst, p, count, kind, stream);
}

cudaError_t crt_cudaGetSymbolAddress(void **out, const void *symbol)
{
    return out ? crt_part(symbol, 0, 0, out) : cudaErrorInvalidValue;
}

cudaError_t crt_cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr p;
    return size ? crt_variable(symbol, &p, size) : cudaErrorInvalidValue;
}

/* --- fills ------------------------------------------------------------------------------------ */

cudaError_t crt_cudaMemset(void *p, int value, size_t count, cudaStream_t own)
{
    if (count == 0)
        return cudaSuccess;
    return own ? finish(cuMemsetD8Async(address(p), (unsigned char)value, count, own), own)
               : crt_of(cuMemsetD8(address(p), (unsigned char)value, count));
}

cudaError_t crt_cudaMemsetAsync(void *p, int value, size_t count, cudaStream_t stream)
{
    return count ? crt_of(cuMemsetD8Async(address(p), (unsigned char)value, count, stream))
                 : cudaSuccess;
}

cudaError_t crt_cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height,
                             cudaStream_t own)
{
    if (width == 0 || height == 0)
        return cudaSuccess;
    return own ? finish(
                     cuMemsetD2D8Async(address(p), pitch, (unsigned char)value, width, height, own),
                     own)
               : crt_of(cuMemsetD2D8(address(p), pitch, (unsigned char)value, width, height));
}

cudaError_t crt_cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                                  cudaStream_t stream)
{
    if (width == 0 || height == 0)
        return cudaSuccess;
    return crt_of(
        cuMemsetD2D8Async(address(p), pitch, (unsigned char)value, width, height, stream));
}

cudaError_t crt_cudaMemset3DAsync(struct cudaPitchedPtr p, int value, struct cudaExtent e,
                                  cudaStream_t stream)
{
    size_t slice;
    if (e.width == 0 || e.height == 0 || e.depth == 0)
        return cudaSuccess;
    if (__builtin_mul_overflow(p.pitch, p.ysize, &slice) || e.height > p.ysize)
        return cudaErrorInvalidValue;
    /* All slices follow each other without a gap. */
    if (e.height == p.ysize) {
        size_t all;
        if (__builtin_mul_overflow(e.height, e.depth, &all))
            return cudaErrorInvalidValue;
        return crt_cudaMemset2DAsync(p.ptr, p.pitch, value, e.width, all, stream);
    }
    cudaError_t r = cudaSuccess;
    for (size_t z = 0; !r && z < e.depth; z++)
        r = crt_cudaMemset2DAsync((char *)p.ptr + z * slice, p.pitch, value, e.width, e.height,
                                  stream);
    return r;
}

cudaError_t crt_cudaMemset3D(struct cudaPitchedPtr p, int value, struct cudaExtent e,
                             cudaStream_t own)
{
    if (!e.width || !e.height || !e.depth)
        return cudaSuccess;
    cudaError_t r = crt_cudaMemset3DAsync(p, value, e, own);
    return r ? r : crt_of(cuStreamSynchronize(own));
}
