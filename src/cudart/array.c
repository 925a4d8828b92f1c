/*
 * Arrays, textures and surfaces: translates the runtime's structs to the driver's, and calls the
 * driver.
 */
#include <stdint.h>
#include <string.h>

#include "cudart/cudart.h"

unsigned crt_format_size(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

cudaError_t crt_format(const struct cudaChannelFormatDesc *d, CUarray_format *format,
                       unsigned *channels)
{
    static const CUarray_format formats[3][3] = {
        { CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32 },
        { CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32 },
        { 0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT },
    };
    const int bits[4] = { d->x, d->y, d->z, d->w };
    unsigned n = 0;
    while (n < 4 && bits[n])
        n++;
    for (unsigned i = 0; i < 4; i++)
        if (bits[i] != (i < n ? d->x : 0))
            return cudaErrorInvalidChannelDescriptor;
    int size = d->x == 8 ? 0 : d->x == 16 ? 1 : d->x == 32 ? 2 : -1;
    if (size < 0 || n == 3 || (unsigned)d->f > cudaChannelFormatKindFloat || !formats[d->f][size])
        return cudaErrorInvalidChannelDescriptor;
    *format = formats[d->f][size];
    *channels = n;
    return cudaSuccess;
}

void crt_channels(CUarray_format format, unsigned channels, struct cudaChannelFormatDesc *d)
{
    int bits = (int)crt_format_size(format) * 8;
    enum cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
    if (format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT)
        kind = cudaChannelFormatKindFloat;
    else if (format == CU_AD_FORMAT_SIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT16 ||
             format == CU_AD_FORMAT_SIGNED_INT32)
        kind = cudaChannelFormatKindSigned;
    *d = (struct cudaChannelFormatDesc) { bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                          channels > 3 ? bits : 0, kind };
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind f)
{
    return (struct cudaChannelFormatDesc) { x, y, z, w, f };
}

/* Whether there are arrays of this shape; this is looked at before the format, and before the
 * driver is asked, which may have another error. */
static bool is_shape(struct cudaExtent e, unsigned flags)
{
    const bool layered = flags & cudaArrayLayered;
    if (e.width == 0 || (layered && e.depth == 0))
        return false;
    if (flags & cudaArrayCubemap)
        return e.width == e.height && (layered ? e.depth % 6 == 0 : e.depth == 6);
    return layered || e.depth == 0 || e.height != 0;
}

static cudaError_t describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent e,
                            unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *out)
{
    CUarray_format format;
    unsigned channels;
    cudaError_t r = desc ? crt_format(desc, &format, &channels) : cudaErrorInvalidValue;
    if (!r)
        *out = (CUDA_ARRAY3D_DESCRIPTOR) { e.width, e.height, e.depth, format, channels, flags };
    return is_shape(e, flags) ? r : cudaErrorInvalidValue;
}

cudaError_t crt_cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                  struct cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t r = describe(desc, extent, flags, &d);
    return r ? r : crt_of(cuArray3DCreate((CUarray *)array, &d));
}

cudaError_t crt_cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                size_t width, size_t height, unsigned int flags)
{
    return crt_cudaMalloc3DArray(array, desc, (struct cudaExtent) { width, height, 0 }, flags);
}

cudaError_t crt_cudaFreeArray(cudaArray_t array)
{
    return array ? crt_of(cuArrayDestroy((CUarray)array)) : cudaSuccess;
}

cudaError_t crt_cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                                 unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (!array)
        return cudaErrorInvalidResourceHandle;
    CUresult r = cuArray3DGetDescriptor(&d, (CUarray)array);
    if (r)
        return crt_of(r);
    if (desc)
        crt_channels(d.Format, d.NumChannels, desc);
    if (extent)
        *extent = (struct cudaExtent) { d.Width, d.Height, d.Depth };
    if (flags)
        *flags = d.Flags;
    return cudaSuccess;
}

cudaError_t crt_cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    return desc ? crt_cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)(uintptr_t)array)
                : cudaErrorInvalidValue;
}

cudaError_t crt_cudaMallocMipmappedArray(cudaMipmappedArray_t *out,
                                         const struct cudaChannelFormatDesc *desc,
                                         struct cudaExtent extent, unsigned int levels,
                                         unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t r = describe(desc, extent, flags, &d);
    return r ? r : crt_of(cuMipmappedArrayCreate((CUmipmappedArray *)out, &d, levels));
}

cudaError_t crt_cudaGetMipmappedArrayLevel(cudaArray_t *level_array,
                                           cudaMipmappedArray_const_t array, unsigned int level)
{
    return crt_of(cuMipmappedArrayGetLevel((CUarray *)level_array,
                                           (CUmipmappedArray)(uintptr_t)array, level));
}

cudaError_t crt_cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    return array ? crt_of(cuMipmappedArrayDestroy((CUmipmappedArray)array)) : cudaSuccess;
}

static cudaError_t resource(const struct cudaResourceDesc *in, CUDA_RESOURCE_DESC *out)
{
    cudaError_t r = cudaSuccess;
    memset(out, 0, sizeof(*out));
    if (!in)
        return cudaErrorInvalidValue;
    switch (in->resType) {
    case cudaResourceTypeArray:
        out->resType = CU_RESOURCE_TYPE_ARRAY;
        out->res.array.hArray = (CUarray)in->res.array.array;
        return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
        out->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        out->res.mipmap.hMipmappedArray = (CUmipmappedArray)in->res.mipmap.mipmap;
        return cudaSuccess;
    case cudaResourceTypeLinear:
        out->resType = CU_RESOURCE_TYPE_LINEAR;
        out->res.linear.devPtr = (CUdeviceptr)(uintptr_t)in->res.linear.devPtr;
        out->res.linear.sizeInBytes = in->res.linear.sizeInBytes;
        r = crt_format(&in->res.linear.desc, &out->res.linear.format, &out->res.linear.numChannels);
        return r;
    case cudaResourceTypePitch2D:
        out->resType = CU_RESOURCE_TYPE_PITCH2D;
        out->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)in->res.pitch2D.devPtr;
        out->res.pitch2D.width = in->res.pitch2D.width;
        out->res.pitch2D.height = in->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = in->res.pitch2D.pitchInBytes;
        r = crt_format(&in->res.pitch2D.desc, &out->res.pitch2D.format,
                       &out->res.pitch2D.numChannels);
        return r;
    default:
        return cudaErrorInvalidValue;
    }
}

/* The format of the elements that a texture reads. */
static CUresult resource_format(const CUDA_RESOURCE_DESC *d, CUarray_format *format)
{
    CUDA_ARRAY3D_DESCRIPTOR a = { 0 };
    CUarray array = d->res.array.hArray;
    CUresult r = CUDA_SUCCESS;
    if (d->resType == CU_RESOURCE_TYPE_LINEAR)
        a.Format = d->res.linear.format;
    else if (d->resType == CU_RESOURCE_TYPE_PITCH2D)
        a.Format = d->res.pitch2D.format;
    else {
        if (d->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
            r = cuMipmappedArrayGetLevel(&array, d->res.mipmap.hMipmappedArray, 0);
        if (!r)
            r = cuArray3DGetDescriptor(&a, array);
    }
    *format = a.Format;
    return r;
}

cudaError_t crt_cudaCreateTextureObject(cudaTextureObject_t *out,
                                        const struct cudaResourceDesc *res,
                                        const struct cudaTextureDesc *tex,
                                        const struct cudaResourceViewDesc *view)
{
    CUDA_RESOURCE_DESC d;
    CUarray_format format;
    cudaError_t r = out && tex ? resource(res, &d) : cudaErrorInvalidValue;
    if (!r)
        r = crt_of(resource_format(&d, &format));
    if (r)
        return r;
    bool is_float = format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF;
    bool as_float = tex->readMode == cudaReadModeNormalizedFloat;
    bool is_small = !is_float && crt_format_size(format) < 4;
    if (tex->filterMode == cudaFilterModeLinear && !is_float && !(as_float && is_small))
        return cudaErrorInvalidFilterSetting;
    if (as_float && !is_small)
        return cudaErrorInvalidNormSetting;
    CUDA_TEXTURE_DESC t = { .filterMode = (CUfilter_mode)tex->filterMode,
                            .maxAnisotropy = tex->maxAnisotropy,
                            .mipmapFilterMode = (CUfilter_mode)tex->mipmapFilterMode,
                            .mipmapLevelBias = tex->mipmapLevelBias,
                            .minMipmapLevelClamp = tex->minMipmapLevelClamp,
                            .maxMipmapLevelClamp = tex->maxMipmapLevelClamp };
    for (int i = 0; i < 3; i++)
        t.addressMode[i] = (CUaddress_mode)tex->addressMode[i];
    memcpy(t.borderColor, tex->borderColor, sizeof(t.borderColor));
    if (tex->readMode == cudaReadModeElementType && !is_float)
        t.flags |= CU_TRSF_READ_AS_INTEGER;
    if (tex->normalizedCoords)
        t.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (tex->sRGB)
        t.flags |= CU_TRSF_SRGB;
    if (tex->disableTrilinearOptimization)
        t.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    if (tex->seamlessCubemap)
        t.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
    CUDA_RESOURCE_VIEW_DESC v = { 0 };
    if (view)
        v = (CUDA_RESOURCE_VIEW_DESC) { .format = (CUresourceViewFormat)view->format,
                                        .width = view->width,
                                        .height = view->height,
                                        .depth = view->depth,
                                        .firstMipmapLevel = view->firstMipmapLevel,
                                        .lastMipmapLevel = view->lastMipmapLevel,
                                        .firstLayer = view->firstLayer,
                                        .lastLayer = view->lastLayer };
    return crt_of(cuTexObjectCreate(out, &d, &t, view ? &v : NULL));
}

cudaError_t crt_cudaDestroyTextureObject(cudaTextureObject_t texture)
{
    return crt_of(cuTexObjectDestroy(texture));
}

cudaError_t crt_cudaCreateSurfaceObject(cudaSurfaceObject_t *out,
                                        const struct cudaResourceDesc *res)
{
    CUDA_RESOURCE_DESC d;
    cudaError_t r = out ? resource(res, &d) : cudaErrorInvalidValue;
    return r ? r : crt_of(cuSurfObjectCreate(out, &d));
}

cudaError_t crt_cudaDestroySurfaceObject(cudaSurfaceObject_t surface)
{
    return crt_of(cuSurfObjectDestroy(surface));
}

/* --- read back -------------------------------------------------------------------------------- */

static void resource_back(const CUDA_RESOURCE_DESC *in, struct cudaResourceDesc *out)
{
    memset(out, 0, sizeof(*out));
    switch (in->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        out->resType = cudaResourceTypeArray;
        out->res.array.array = (cudaArray_t)in->res.array.hArray;
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        out->resType = cudaResourceTypeMipmappedArray;
        out->res.mipmap.mipmap = (cudaMipmappedArray_t)in->res.mipmap.hMipmappedArray;
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        out->resType = cudaResourceTypeLinear;
        out->res.linear.devPtr = (void *)(uintptr_t)in->res.linear.devPtr;
        out->res.linear.sizeInBytes = in->res.linear.sizeInBytes;
        crt_channels(in->res.linear.format, in->res.linear.numChannels, &out->res.linear.desc);
        break;
    default:
        out->resType = cudaResourceTypePitch2D;
        out->res.pitch2D.devPtr = (void *)(uintptr_t)in->res.pitch2D.devPtr;
        out->res.pitch2D.width = in->res.pitch2D.width;
        out->res.pitch2D.height = in->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = in->res.pitch2D.pitchInBytes;
        crt_channels(in->res.pitch2D.format, in->res.pitch2D.numChannels, &out->res.pitch2D.desc);
    }
}

cudaError_t crt_cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *out,
                                                 cudaTextureObject_t texture)
{
    CUDA_RESOURCE_DESC d;
    cudaError_t r = out ? crt_of(cuTexObjectGetResourceDesc(&d, texture)) : cudaErrorInvalidValue;
    if (!r)
        resource_back(&d, out);
    return r;
}

cudaError_t crt_cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *out,
                                                 cudaSurfaceObject_t surface)
{
    CUDA_RESOURCE_DESC d;
    cudaError_t r = out ? crt_of(cuSurfObjectGetResourceDesc(&d, surface)) : cudaErrorInvalidValue;
    if (!r)
        resource_back(&d, out);
    return r;
}

cudaError_t crt_cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *out,
                                                cudaTextureObject_t texture)
{
    CUDA_RESOURCE_DESC d;
    CUDA_TEXTURE_DESC t;
    CUarray_format format;
    CUresult r = out ? cuTexObjectGetTextureDesc(&t, texture) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = cuTexObjectGetResourceDesc(&d, texture);
    if (!r)
        r = resource_format(&d, &format);
    if (r)
        return crt_of(r);
    /* The driver reads 8-bit and 16-bit integers as numbers from 0 to 1 unless a flag says not
     * to. */
    bool small = crt_format_size(format) < 4 && format != CU_AD_FORMAT_HALF;
    *out = (struct cudaTextureDesc) {
        .filterMode = (enum cudaTextureFilterMode)t.filterMode,
        .readMode = small && !(t.flags & CU_TRSF_READ_AS_INTEGER) ? cudaReadModeNormalizedFloat
                                                                  : cudaReadModeElementType,
        .sRGB = (t.flags & CU_TRSF_SRGB) != 0,
        .normalizedCoords = (t.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
        .maxAnisotropy = t.maxAnisotropy,
        .mipmapFilterMode = (enum cudaTextureFilterMode)t.mipmapFilterMode,
        .mipmapLevelBias = t.mipmapLevelBias,
        .minMipmapLevelClamp = t.minMipmapLevelClamp,
        .maxMipmapLevelClamp = t.maxMipmapLevelClamp,
        .disableTrilinearOptimization = (t.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
        .seamlessCubemap = (t.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0,
    };
    for (int i = 0; i < 3; i++)
        out->addressMode[i] = (enum cudaTextureAddressMode)t.addressMode[i];
    memcpy(out->borderColor, t.borderColor, sizeof(out->borderColor));
    return cudaSuccess;
}

cudaError_t crt_cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *out,
                                                     cudaTextureObject_t texture)
{
    CUDA_RESOURCE_VIEW_DESC v;
    cudaError_t r =
        out ? crt_of(cuTexObjectGetResourceViewDesc(&v, texture)) : cudaErrorInvalidValue;
    if (!r)
        *out = (struct cudaResourceViewDesc) {
            .format = (enum cudaResourceViewFormat)v.format,
            .width = v.width,
            .height = v.height,
            .depth = v.depth,
            .firstMipmapLevel = v.firstMipmapLevel,
            .lastMipmapLevel = v.lastMipmapLevel,
            .firstLayer = v.firstLayer,
            .lastLayer = v.lastLayer,
        };
    return r;
}
