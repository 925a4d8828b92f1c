/*
 * cuDevice*: answers what session_open said about the devices. The number of multiprocessors is the
 * number that this client may use, as under NVIDIA's MPS, so that programs choose their grids by
 * what they get.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/uuid.h"
#include "client/session/attach.h"
#include "client/session/companion.h"
#include "client/gen/api.h"
#include "client/stream/peer.h"
#include "client/stream/context.h"

static int find(CUdevice dev, const struct rt_device **out)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = &rt_session->devices[dev];
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetCount(int *count)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (int)rt_session->device_count;
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGet(CUdevice *device, int ordinal)
{
    const struct rt_device *d;
    int r = find(ordinal, &d);
    if (r)
        return r;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!name || len < 0)
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(name, (size_t)len, "%s", d->name);
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, d->uuid, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return rt_cuDeviceGetUuid_v2(uuid, dev);
}

/* These identifiers exist on Windows only. */
CUresult rt_cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    return luid && deviceNodeMask ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = d->memory_total;
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!pi || (int)attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX ||
        (unsigned)attrib >= RT_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attrib) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *pi = (int)rt_part_visible(dev);
        break;
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
        *pi = !rt_session->is_private;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *pi = (int)d->pci_domain;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *pi = (int)d->pci_bus;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *pi = (int)d->pci_device;
        break;
    /* This library does not do these things, whatever the device could do. */
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
    case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED:
        *pi = 0;
        break;
    /* Pools are kept by this library or the server. */
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *pi = 1;
        break;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
        *pi = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        break;
    default:
        *pi = d->attributes[attrib];
        break;
    }
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    *minor = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    const int32_t *a = d->attributes;
    *prop = (CUdevprop) {
        .maxThreadsPerBlock = a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .maxThreadsDim = { a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X],
                           a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y],
                           a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] },
        .maxGridSize = { a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X],
                         a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y],
                         a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] },
        .sharedMemPerBlock = a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK],
        .totalConstantMemory = a[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY],
        .SIMDWidth = a[CU_DEVICE_ATTRIBUTE_WARP_SIZE],
        .memPitch = a[CU_DEVICE_ATTRIBUTE_MAX_PITCH],
        .regsPerBlock = a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK],
        .clockRate = a[CU_DEVICE_ATTRIBUTE_CLOCK_RATE],
        .textureAlign = a[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT],
    };
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    int length = snprintf(pciBusId, (size_t)GM_MAX(len, 0), "%04X:%02X:%02X.0",
                          d->pci_domain & 0xffffu, d->pci_bus & 0xffu, d->pci_device & 0xffu);
    return length < len ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned domain = 0, bus, device;
    int r = rt_ready();
    if (r)
        return r;
    if (!dev || !pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &device) != 3) {
        domain = 0;
        if (sscanf(pciBusId, "%x:%x", &bus, &device) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < rt_session->device_count; i++) {
        const struct rt_device *d = &rt_session->devices[i];
        if (d->pci_domain == domain && d->pci_bus == bus && d->pci_device == device) {
            *dev = (CUdevice)i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult rt_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    *pi = type == CU_EXEC_AFFINITY_TYPE_SM_COUNT && rt_part_possible(dev);
    return CUDA_SUCCESS;
}

/* --- links ------------------------------------------------------------------------------------ */

bool rt_operations_ok(const unsigned *capabilities, const CUatomicOperation *operations,
                      unsigned count)
{
    if (!capabilities || !operations || count == 0)
        return false;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return false;
    return true;
}

/* A link without native atomics has no operation. For a link that has them the genuine library
 * knows the operations. */
CUresult rt_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                              const CUatomicOperation *operations,
                                              unsigned int count, CUdevice dev)
{
    static atomic_bool said;
    __typeof__(cuDeviceGetHostAtomicCapabilities) *genuine;
    const struct rt_device *d;
    int r = find(dev, &d);
    if (r)
        return r;
    if (!rt_operations_ok(capabilities, operations, count))
        return CUDA_ERROR_INVALID_VALUE;
    if (!d->attributes[CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED]) {
        memset(capabilities, 0, count * sizeof(*capabilities));
        return CUDA_SUCCESS;
    }
    if (rt_session->memory_apart &&
        rt_companion_function("cuDeviceGetHostAtomicCapabilities", &genuine, sizeof(genuine)))
        return genuine(capabilities, operations, count, dev);
    return rt_not_supported("cuDeviceGetHostAtomicCapabilities", &said);
}

/* Nothing has to be flushed: other devices cannot write to this one's memory (see the attributes
 * above). */
CUresult rt_cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                       CUflushGPUDirectRDMAWritesScope scope)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    return target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                   (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                    scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}
