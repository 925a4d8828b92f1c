/*
 * cuPointerGetAttribute(s) answer from the map of addresses. A pointer that is not in it points to
 * the program's own memory. As in CUDA, the single form fails for it, and the plural form mostly
 * answers zero.
 */
#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/memory/pool_ipc.h"
#include "client/stream/capture.h"

static CUmemorytype memory_type(const struct rt_range *r)
{
    return rt_memory_is_device(r) || rt_memory_is_managed(r) ? CU_MEMORYTYPE_DEVICE
                                                             : CU_MEMORYTYPE_HOST;
}

/* Answers one attribute. `range` is NULL for a pointer to the program's own memory. Returns
 * CUDA_ERROR_INVALID_VALUE if the attribute does not apply. */
static int get(void *data, CUpointer_attribute attribute, CUdeviceptr ptr,
               const struct rt_range *range)
{
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t offset = ptr - range->base;
    bool host = memory_type(range) == CU_MEMORYTYPE_HOST;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = range->ordered ? NULL : rt_context_handle(range->context);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = memory_type(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (range->kind == RT_MEMORY_PAGEABLE)
            return CUDA_ERROR_INVALID_VALUE;
        *(CUdeviceptr *)data = range->window + offset;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && !rt_memory_is_managed(range))
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)ptr;
        return CUDA_SUCCESS;
    /* For drivers of other devices, none of which reaches this memory. */
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        if (host)
            return CUDA_ERROR_INVALID_VALUE;
        (void)rt_memory_set_sync(ptr, true); /* NVIDIA's driver does so for these tokens */
        *(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *)data = (CUDA_POINTER_ATTRIBUTE_P2P_TOKENS) { 0 };
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = range->sync;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = range->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = rt_memory_is_managed(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = range->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = range->kind == RT_MEMORY_DEVICE && !range->ordered;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = range->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = range->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = range->kind != RT_MEMORY_PAGEABLE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = range->kind == RT_MEMORY_VIRTUAL
                                ? rt_memory_access(range, range->device)
                                : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data =
            range->physical ? rt_physical_handle_types(range->physical) : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data =
            range->block ? rt_block_pool(range->block) : rt_pool_of_imported(range->base);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Whether the plural form knows the attribute. */
static bool attribute_known(CUpointer_attribute a)
{
    return a >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           a <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE &&
           a != CU_POINTER_ATTRIBUTE_P2P_TOKENS;
}

/* Answers of the plural form where the single form fails, as the genuine library was seen to
 * answer. */
static void answer_unknown(void *data, CUpointer_attribute attribute, CUdeviceptr ptr, bool known)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = -2;
        return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: /* such a pointer points to the program's own memory */
        *(uint64_t *)data = known ? 0 : ptr;
        return;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(uint64_t *)data = 0;
        return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return; /* the value stays as it was */
    default:
        *(unsigned *)data = 0;
        return;
    }
}

/* Finds the range. Registered memory has two addresses; both become the host's. */
static bool find(CUdeviceptr *ptr, struct rt_range *range)
{
    if (rt_memory_find(*ptr, range))
        return true;
    if (!rt_memory_find_alias(*ptr, range))
        return false;
    *ptr = range->base + (*ptr - range->window);
    return true;
}

CUresult rt_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
        !rt_memory_set_sync(ptr, *(const unsigned *)value != 0))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult rt_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct rt_range range;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = find(&ptr, &range);
    return get(data, attribute, ptr, known ? &range : NULL);
}

CUresult rt_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                   void **data, CUdeviceptr ptr)
{
    struct rt_range range;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!numAttributes || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = find(&ptr, &range);
    for (unsigned i = 0; i < numAttributes; i++) {
        if (!data[i] || !attribute_known(attributes[i]))
            return CUDA_ERROR_INVALID_VALUE;
        if (get(data[i], attributes[i], ptr, known ? &range : NULL) != CUDA_SUCCESS)
            answer_unknown(data[i], attributes[i], ptr, known);
    }
    return CUDA_SUCCESS;
}
