/*
 * Properties and attributes of devices, their limits, peers, and versions.
 */
#include <stdio.h>
#include <string.h>

#include "cudart/cudart.h"

_Static_assert(sizeof(struct cudaDeviceProp) == (CUDART_VERSION < 13000 ? 1032 : 1008),
               "as programs were compiled with");

/* Attributes that are one int among the properties. */
static const struct {
    size_t offset;
    CUdevice_attribute attribute;
} ints[] = {
/* One property a line. */
/* clang-format off */
#define ONE(field, name) { offsetof(struct cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##name },
    ONE(regsPerBlock, MAX_REGISTERS_PER_BLOCK)
    ONE(warpSize, WARP_SIZE)
    ONE(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
    ONE(maxThreadsDim[0], MAX_BLOCK_DIM_X)
    ONE(maxThreadsDim[1], MAX_BLOCK_DIM_Y)
    ONE(maxThreadsDim[2], MAX_BLOCK_DIM_Z)
    ONE(maxGridSize[0], MAX_GRID_DIM_X)
    ONE(maxGridSize[1], MAX_GRID_DIM_Y)
    ONE(maxGridSize[2], MAX_GRID_DIM_Z)
    ONE(major, COMPUTE_CAPABILITY_MAJOR)
    ONE(minor, COMPUTE_CAPABILITY_MINOR)
    ONE(multiProcessorCount, MULTIPROCESSOR_COUNT)
    ONE(integrated, INTEGRATED)
    ONE(canMapHostMemory, CAN_MAP_HOST_MEMORY)
    ONE(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH)
    ONE(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)
    ONE(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH)
    ONE(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT)
    ONE(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)
    ONE(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)
    ONE(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH)
    ONE(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)
    ONE(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH)
    ONE(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH)
    ONE(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT)
    ONE(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH)
    ONE(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT)
    ONE(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH)
    ONE(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)
    ONE(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)
    ONE(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)
    ONE(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH)
    ONE(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH)
    ONE(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS)
    ONE(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH)
    ONE(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)
    ONE(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS)
    ONE(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)
    ONE(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS)
    ONE(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH)
    ONE(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH)
    ONE(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT)
    ONE(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH)
    ONE(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT)
    ONE(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH)
    ONE(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH)
    ONE(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS)
    ONE(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH)
    ONE(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT)
    ONE(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS)
    ONE(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH)
    ONE(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH)
    ONE(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS)
    ONE(concurrentKernels, CONCURRENT_KERNELS)
    ONE(ECCEnabled, ECC_ENABLED)
    ONE(pciBusID, PCI_BUS_ID)
    ONE(pciDeviceID, PCI_DEVICE_ID)
    ONE(pciDomainID, PCI_DOMAIN_ID)
    ONE(tccDriver, TCC_DRIVER)
    ONE(asyncEngineCount, ASYNC_ENGINE_COUNT)
    ONE(unifiedAddressing, UNIFIED_ADDRESSING)
    ONE(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)
    ONE(l2CacheSize, L2_CACHE_SIZE)
    ONE(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)
    ONE(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)
    ONE(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)
    ONE(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)
    ONE(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)
    ONE(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)
    ONE(managedMemory, MANAGED_MEMORY)
    ONE(isMultiGpuBoard, MULTI_GPU_BOARD)
    ONE(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID)
    ONE(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED)
    ONE(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)
    ONE(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)
    ONE(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)
    ONE(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)
    ONE(cooperativeLaunch, COOPERATIVE_LAUNCH)
    ONE(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)
    ONE(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)
    ONE(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)
    ONE(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE)
    ONE(hostRegisterSupported, HOST_REGISTER_SUPPORTED)
    ONE(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED)
    ONE(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)
    ONE(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)
    ONE(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)
    ONE(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)
    ONE(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)
    ONE(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING)
    ONE(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES)
    ONE(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)
    ONE(ipcEventSupported, IPC_EVENT_SUPPORTED)
    ONE(clusterLaunch, CLUSTER_LAUNCH)
    ONE(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)
#if CUDART_VERSION < 13000
    ONE(clockRate, CLOCK_RATE)
    ONE(deviceOverlap, GPU_OVERLAP)
    ONE(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT)
    ONE(computeMode, COMPUTE_MODE)
    ONE(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH)
    ONE(memoryClockRate, MEMORY_CLOCK_RATE)
    ONE(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
    ONE(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)
#else
    ONE(deviceNumaConfig, NUMA_CONFIG)
    ONE(deviceNumaId, NUMA_ID)
    ONE(mpsEnabled, MPS_ENABLED)
    ONE(hostNumaId, HOST_NUMA_ID)
    ONE(gpuPciDeviceID, GPU_PCI_DEVICE_ID)
    ONE(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID)
    ONE(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED)
#endif
#undef ONE
    /* clang-format on */
};

static const struct {
    size_t offset;
    CUdevice_attribute attribute;
} sizes[] = {
#define ONE(field, name) { offsetof(struct cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##name },
    ONE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK) ONE(memPitch, MAX_PITCH)
        ONE(totalConstMem, TOTAL_CONSTANT_MEMORY) ONE(textureAlignment, TEXTURE_ALIGNMENT)
            ONE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)
                ONE(surfaceAlignment, SURFACE_ALIGNMENT)
                    ONE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
                        ONE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                            ONE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
#undef ONE
};

static cudaError_t device_of(int number, CUdevice *device)
{
    int count;
    cudaError_t r = crt_device_count(&count);
    if (r)
        return r;
    return number < 0 || number >= count ? cudaErrorInvalidDevice
                                         : crt_of(cuDeviceGet(device, number));
}

static cudaError_t properties(struct cudaDeviceProp *prop, int number)
{
    CUdevice device;
    if (!prop)
        return cudaErrorInvalidValue;
    cudaError_t r = device_of(number, &device);
    if (r)
        return r;
    memset(prop, 0, sizeof(*prop));
    CUresult cr = cuDeviceGetName(prop->name, sizeof(prop->name), device);
    if (!cr)
        cr = cuDeviceTotalMem(&prop->totalGlobalMem, device);
    if (!cr)
        cr = cuDeviceGetUuid(&prop->uuid, device);
    if (cr)
        return crt_of(cr);
    /* An older driver does not know all attributes; the ones that it refuses stay 0. */
    int v;
    for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++)
        if (!cuDeviceGetAttribute(&v, ints[i].attribute, device))
            memcpy((char *)prop + ints[i].offset, &v, sizeof(v));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (!cuDeviceGetAttribute(&v, sizes[i].attribute, device)) {
            size_t size = (size_t)(unsigned)v;
            memcpy((char *)prop + sizes[i].offset, &size, sizeof(size));
        }
    return cudaSuccess;
}

#if CUDART_VERSION < 13000
cudaError_t crt_cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
#else
cudaError_t crt_cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
#endif
{
    return properties(prop, device);
}

cudaError_t crt_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int number)
{
    CUdevice device;
    cudaError_t r = device_of(number, &device);
    return r ? r : crt_of(cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device));
}

/* Chooses the first device that has at least the wanted compute capability and memory, or else the
 * nearest one. */
cudaError_t crt_cudaChooseDevice(int *device, const struct cudaDeviceProp *want)
{
    int count;
    if (!device || !want)
        return cudaErrorInvalidValue;
    cudaError_t r = crt_device_count(&count);
    *device = 0;
    for (int i = 0; !r && i < count; i++) {
        struct cudaDeviceProp p;
        r = properties(&p, i);
        if (!r && p.major * 10 + p.minor >= want->major * 10 + want->minor &&
            p.totalGlobalMem >= want->totalGlobalMem) {
            *device = i;
            break;
        }
    }
    return r;
}

cudaError_t crt_cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    cudaError_t r = device && id ? crt_driver() : cudaErrorInvalidValue;
    return r ? r : crt_of(cuDeviceGetByPCIBusId(device, id));
}

cudaError_t crt_cudaDeviceGetPCIBusId(char *id, int len, int number)
{
    CUdevice device;
    cudaError_t r = device_of(number, &device);
    return r ? r : crt_of(cuDeviceGetPCIBusId(id, len, device));
}

cudaError_t crt_cudaDeviceCanAccessPeer(int *can, int number, int peer)
{
    CUdevice a, b;
    cudaError_t r = device_of(number, &a);
    if (!r)
        r = device_of(peer, &b);
    return r ? r : crt_of(cuDeviceCanAccessPeer(can, a, b));
}

cudaError_t crt_cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int source,
                                          int destination)
{
    CUdevice a, b;
    cudaError_t r = device_of(source, &a);
    if (!r)
        r = device_of(destination, &b);
    return r ? r : crt_of(cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attr, a, b));
}

/* The primary context of a peer; created if it does not exist yet. */
static cudaError_t peer_context(int peer, CUcontext *context)
{
    CUdevice device;
    cudaError_t r = device_of(peer, &device);
    return r ? r : crt_of(cuDevicePrimaryCtxRetain(context, device));
}

cudaError_t crt_cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext context;
    cudaError_t r = peer_context(peer, &context);
    return r ? r : crt_of(cuCtxEnablePeerAccess(context, flags));
}

cudaError_t crt_cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context;
    cudaError_t r = peer_context(peer, &context);
    return r ? r : crt_of(cuCtxDisablePeerAccess(context));
}

cudaError_t crt_cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    return crt_of(cuCtxSetLimit((CUlimit)limit, value));
}

cudaError_t crt_cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    return crt_of(cuCtxGetLimit(value, (CUlimit)limit));
}

cudaError_t crt_cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    return crt_of(cuCtxSetCacheConfig((CUfunc_cache)config));
}

cudaError_t crt_cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    CUfunc_cache c;
    if (!config)
        return cudaErrorInvalidValue;
    CUresult r = cuCtxGetCacheConfig(&c);
    if (!r)
        *config = (enum cudaFuncCache)c;
    return crt_of(r);
}

cudaError_t crt_cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    return (unsigned)config > cudaSharedMemBankSizeEightByte ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t crt_cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    if (!config)
        return cudaErrorInvalidValue;
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

#if CUDART_VERSION < 13000
cudaError_t crt_cudaThreadSetLimit(enum cudaLimit limit, size_t value)
{
    return crt_cudaDeviceSetLimit(limit, value);
}

cudaError_t crt_cudaThreadGetLimit(size_t *value, enum cudaLimit limit)
{
    return crt_cudaDeviceGetLimit(value, limit);
}

cudaError_t crt_cudaThreadSetCacheConfig(enum cudaFuncCache config)
{
    return crt_cudaDeviceSetCacheConfig(config);
}

cudaError_t crt_cudaThreadGetCacheConfig(enum cudaFuncCache *config)
{
    return crt_cudaDeviceGetCacheConfig(config);
}
#endif

cudaError_t crt_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return crt_of(cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t crt_cudaDeviceGetTexture1DLinearMaxWidth(size_t *width,
                                                     const struct cudaChannelFormatDesc *desc,
                                                     int number)
{
    CUdevice device;
    CUarray_format format;
    unsigned channels;
    cudaError_t r = width && desc ? device_of(number, &device) : cudaErrorInvalidValue;
    if (!r)
        r = crt_format(desc, &format, &channels);
    return r ? r : crt_of(cuDeviceGetTexture1DLinearMaxWidth(width, format, channels, device));
}

cudaError_t crt_cudaCtxResetPersistingL2Cache(void)
{
    return crt_of(cuCtxResetPersistingL2Cache());
}

/* Profilers talk to the driver; without one there is nothing to start. */
cudaError_t crt_cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t crt_cudaProfilerStop(void)
{
    return cudaSuccess;
}

cudaError_t crt_cudaDriverGetVersion(int *version)
{
    if (!version)
        return cudaErrorInvalidValue;
    *version = 0;
    return crt_of(cuDriverGetVersion(version));
}

cudaError_t crt_cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static cudaError_t entry_point(const char *symbol, void **out, unsigned int version,
                               unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    if (!symbol || !out)
        return cudaErrorInvalidValue;
    CUresult r = cuGetProcAddress(symbol, out, (int)version, flags, &found);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return crt_of(r);
}

/* In a program whose stream 0 is the thread's own, the functions that it asks for use that stream,
 * too, unless it says which. */
static unsigned long long per_thread(unsigned long long flags)
{
    return flags == CU_GET_PROC_ADDRESS_DEFAULT ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                                : flags;
}

cudaError_t crt_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                 unsigned int version, unsigned long long flags,
                                                 enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, out, version, flags, status);
}

cudaError_t crt_cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **out,
                                                      unsigned int version,
                                                      unsigned long long flags,
                                                      enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, out, version, per_thread(flags), status);
}

cudaError_t crt_cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                        enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, out, CUDART_VERSION, flags, status);
}

cudaError_t crt_cudaGetDriverEntryPoint_ptsz(const char *symbol, void **out,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, out, CUDART_VERSION, per_thread(flags), status);
}

cudaError_t crt_cudaDeviceReset(void)
{
    int device;
    cudaError_t r = crt_cudaGetDevice(&device);
    return r ? r : crt_reset(device, crt_forget_images);
}

#if CUDART_VERSION < 13000
cudaError_t crt_cudaThreadSynchronize(void)
{
    return crt_cudaDeviceSynchronize();
}

cudaError_t crt_cudaThreadExit(void)
{
    return crt_cudaDeviceReset();
}
#endif
