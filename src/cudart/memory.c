/*
 * Allocations: device, pinned, managed, pitched, pools, memory of other processes.
 */
#include <stdint.h>
#include <string.h>

#include "cudart/cudart.h"

static CUdeviceptr address(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static void *pointer(CUdeviceptr p)
{
    return (void *)(uintptr_t)p; /* host and device share one address space */
}

cudaError_t crt_cudaMalloc(void **devPtr, size_t size)
{
    if (!devPtr)
        return cudaErrorInvalidValue;
    CUdeviceptr p = 0;
    CUresult r = size ? cuMemAlloc(&p, size) : CUDA_SUCCESS;
    if (!r)
        *devPtr = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaFree(void *devPtr)
{
    return crt_of(cuMemFree(address(devPtr)));
}

cudaError_t crt_cudaHostAlloc(void **host, size_t size, unsigned int flags)
{
    if (!host)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *host = NULL;
        return cudaSuccess;
    }
    return crt_of(cuMemHostAlloc(host, size, flags));
}

cudaError_t crt_cudaMallocHost(void **ptr, size_t size)
{
    return crt_cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t crt_cudaFreeHost(void *ptr)
{
    return ptr ? crt_of(cuMemFreeHost(ptr)) : cudaSuccess;
}

cudaError_t crt_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    if (!devPtr || (size && flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudaErrorInvalidValue;
    CUdeviceptr p = 0;
    CUresult r = size ? cuMemAllocManaged(&p, size, flags) : CUDA_SUCCESS;
    if (!r)
        *devPtr = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    if (!devPtr || !pitch)
        return cudaErrorInvalidValue;
    CUdeviceptr p = 0;
    CUresult r = CUDA_SUCCESS;
    *pitch = 0;
    if (width && height)
        r = cuMemAllocPitch(&p, pitch, width, height, 16);
    if (!r)
        *devPtr = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    size_t rows;
    if (!out || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return cudaErrorInvalidValue;
    void *p = NULL;
    size_t pitch = 0;
    cudaError_t r = crt_cudaMallocPitch(&p, &pitch, extent.width, rows);
    if (!r)
        *out = (struct cudaPitchedPtr) { p, pitch, extent.width, extent.height };
    return r;
}

cudaError_t crt_cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    return crt_of(cuMemHostRegister(ptr, size, flags));
}

cudaError_t crt_cudaHostUnregister(void *ptr)
{
    return crt_of(cuMemHostUnregister(ptr));
}

cudaError_t crt_cudaHostGetDevicePointer(void **out, void *host, unsigned int flags)
{
    if (!out || !host)
        return cudaErrorInvalidValue;
    CUdeviceptr p;
    CUresult r = cuMemHostGetDevicePointer(&p, host, flags);
    if (!r)
        *out = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaHostGetFlags(unsigned int *flags, void *host)
{
    return crt_of(cuMemHostGetFlags(flags, host));
}

cudaError_t crt_cudaMemGetInfo(size_t *available, size_t *total)
{
    return crt_of(cuMemGetInfo(available, total));
}

cudaError_t crt_cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *ptr)
{
    if (!out)
        return cudaErrorInvalidValue;
    unsigned type = 0, managed = 0;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    int device = -1;
    CUpointer_attribute names[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
    void *values[] = { &type, &managed, &device_pointer, &host_pointer, &device };
    CUresult r = cuPointerGetAttributes(5, names, values, address(ptr));
    if (r)
        return crt_of(r);
    memset(out, 0, sizeof(*out));
    /* The driver does not know this address. */
    if (type == 0) {
        out->type = cudaMemoryTypeUnregistered;
        out->device = cudaInvalidDeviceId;
        out->hostPointer = (void *)(uintptr_t)ptr;
        return cudaSuccess;
    }
    out->type = managed                      ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                             : cudaMemoryTypeDevice;
    out->device = device;
    out->devicePointer = pointer(device_pointer);
    out->hostPointer = host_pointer;
    return cudaSuccess;
}

static CUmemLocation place_of(struct cudaMemLocation l)
{
    return (CUmemLocation) { .type = (CUmemLocationType)l.type, .id = l.id };
}

static CUresult prefetch(const void *p, size_t count, struct cudaMemLocation l, unsigned flags,
                         cudaStream_t stream)
{
    return cuMemPrefetchAsync(address(p), count, place_of(l), flags, stream);
}

static CUresult advise(const void *p, size_t count, enum cudaMemoryAdvise advice,
                       struct cudaMemLocation l)
{
    return cuMemAdvise(address(p), count, (CUmem_advise)advice, place_of(l));
}

#if CUDART_VERSION < 13000
/* The device with that number, or the host. */
static struct cudaMemLocation location(int device)
{
    if (device == cudaCpuDeviceId)
        return (struct cudaMemLocation) { cudaMemLocationTypeHost, 0 };
    return (struct cudaMemLocation) { cudaMemLocationTypeDevice, device };
}

cudaError_t crt_cudaMemPrefetchAsync(const void *p, size_t count, int device, cudaStream_t stream)
{
    return crt_of(prefetch(p, count, location(device), 0, stream));
}

cudaError_t crt_cudaMemPrefetchAsync_v2(const void *p, size_t count, struct cudaMemLocation l,
                                        unsigned int flags, cudaStream_t stream)
{
    return crt_of(prefetch(p, count, l, flags, stream));
}

cudaError_t crt_cudaMemAdvise(const void *p, size_t count, enum cudaMemoryAdvise advice, int device)
{
    return crt_of(advise(p, count, advice, location(device)));
}

cudaError_t crt_cudaMemAdvise_v2(const void *p, size_t count, enum cudaMemoryAdvise advice,
                                 struct cudaMemLocation l)
{
    return crt_of(advise(p, count, advice, l));
}
#else
cudaError_t crt_cudaMemPrefetchAsync(const void *p, size_t count, struct cudaMemLocation l,
                                     unsigned int flags, cudaStream_t stream)
{
    return crt_of(prefetch(p, count, l, flags, stream));
}

cudaError_t crt_cudaMemAdvise(const void *p, size_t count, enum cudaMemoryAdvise advice,
                              struct cudaMemLocation l)
{
    return crt_of(advise(p, count, advice, l));
}
#endif

cudaError_t crt_cudaMemRangeGetAttribute(void *data, size_t size,
                                         enum cudaMemRangeAttribute attribute, const void *p,
                                         size_t count)
{
    return crt_of(
        cuMemRangeGetAttribute(data, size, (CUmem_range_attribute)attribute, address(p), count));
}

cudaError_t crt_cudaMemRangeGetAttributes(void **data, size_t *sizes,
                                          enum cudaMemRangeAttribute *attributes, size_t count,
                                          const void *p, size_t size)
{
    return crt_of(cuMemRangeGetAttributes(data, sizes, (CUmem_range_attribute *)attributes, count,
                                          address(p), size));
}

cudaError_t crt_cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p)
{
    return crt_of(cuIpcGetMemHandle((CUipcMemHandle *)handle, address(p)));
}

cudaError_t crt_cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle h;
    CUdeviceptr p;
    if (!out)
        return cudaErrorInvalidValue;
    memcpy(&h, &handle, sizeof(h));
    CUresult r = cuIpcOpenMemHandle(&p, h, flags);
    if (!r)
        *out = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaIpcCloseMemHandle(void *p)
{
    return crt_of(cuIpcCloseMemHandle(address(p)));
}

cudaError_t crt_cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    return crt_of(cuIpcGetEventHandle((CUipcEventHandle *)handle, event));
}

cudaError_t crt_cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle h;
    memcpy(&h, &handle, sizeof(h));
    return crt_of(cuIpcOpenEventHandle(event, h));
}

/* --- pools ------------------------------------------------------------------------------------ */

cudaError_t crt_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t stream)
{
    if (!devPtr)
        return cudaErrorInvalidValue;
    CUdeviceptr p = 0;
    CUresult r = size ? cuMemAllocAsync(&p, size, stream) : CUDA_SUCCESS;
    if (!r)
        *devPtr = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaFreeAsync(void *devPtr, cudaStream_t stream)
{
    return devPtr ? crt_of(cuMemFreeAsync(address(devPtr), stream)) : cudaSuccess;
}

cudaError_t crt_cudaMallocFromPoolAsync(void **devPtr, size_t size, cudaMemPool_t pool,
                                        cudaStream_t stream)
{
    if (!devPtr || (!pool && !size))
        return cudaErrorInvalidValue;
    CUdeviceptr p = 0;
    CUresult r = size ? cuMemAllocFromPoolAsync(&p, size, pool, stream) : CUDA_SUCCESS;
    if (!r)
        *devPtr = pointer(p);
    return crt_of(r);
}

cudaError_t crt_cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    if (!props)
        return cudaErrorInvalidValue;
    CUmemPoolProps p = { .allocType = (CUmemAllocationType)props->allocType,
                         .handleTypes = (CUmemAllocationHandleType)props->handleTypes,
                         .location = place_of(props->location),
                         .win32SecurityAttributes = props->win32SecurityAttributes,
                         .maxSize = props->maxSize,
                         .usage = props->usage };
    return crt_of(cuMemPoolCreate(pool, &p));
}

cudaError_t crt_cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                     struct cudaMemLocation *location)
{
    CUmemAccess_flags f;
    if (!flags || !location)
        return cudaErrorInvalidValue;
    CUmemLocation at = place_of(*location);
    CUresult r = cuMemPoolGetAccess(&f, pool, &at);
    if (!r)
        *flags = (enum cudaMemAccessFlags)f;
    return crt_of(r);
}

cudaError_t crt_cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return crt_of(cuMemPoolDestroy(pool));
}

cudaError_t crt_cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    return crt_of(cuMemPoolTrimTo(pool, keep));
}

cudaError_t crt_cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    return crt_of(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attr, value));
}

cudaError_t crt_cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    return crt_of(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attr, value));
}

_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "one layout");

cudaError_t crt_cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                     size_t count)
{
    return crt_of(cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)list, count));
}

cudaError_t crt_cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return crt_of(cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t crt_cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return crt_of(cuDeviceGetMemPool(pool, device));
}

cudaError_t crt_cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return crt_of(cuDeviceSetMemPool(device, pool));
}

cudaError_t crt_cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                                   enum cudaMemAllocationHandleType type,
                                                   unsigned int flags)
{
    return crt_of(
        cuMemPoolExportToShareableHandle(handle, pool, (CUmemAllocationHandleType)type, flags));
}

cudaError_t crt_cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                     enum cudaMemAllocationHandleType type,
                                                     unsigned int flags)
{
    return crt_of(
        cuMemPoolImportFromShareableHandle(pool, handle, (CUmemAllocationHandleType)type, flags));
}

_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
               "one layout");

cudaError_t crt_cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *p)
{
    return crt_of(cuMemPoolExportPointer((CUmemPoolPtrExportData *)data, address(p)));
}

cudaError_t crt_cudaMemPoolImportPointer(void **out, cudaMemPool_t pool,
                                         struct cudaMemPoolPtrExportData *data)
{
    if (!out)
        return cudaErrorInvalidValue;
    CUdeviceptr p;
    CUresult r = cuMemPoolImportPointer(&p, pool, (CUmemPoolPtrExportData *)data);
    if (!r)
        *out = pointer(p);
    return crt_of(r);
}
