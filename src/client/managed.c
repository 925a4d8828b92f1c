/*
 * Hints about managed memory. It is pinned host memory here, which host and device both reach where it is: there is
 * nothing to move, and a hint is checked and then heeded as far as it goes.
 */
#include "client/gen/api.h"
#include "client/memory.h"

/* CUresult. */
static int check_range(CUdeviceptr address, size_t size, bool device_named, int device)
{
    struct rt_range range;
    int r = rt_enter_any();
    if (r)
        return r;
    if (device_named && device != CU_DEVICE_CPU && (device < 0 || (unsigned)device >= rt_session->device_count))
        return CUDA_ERROR_INVALID_DEVICE;
    if (size == 0 || !rt_memory_find(address, &range) || range.kind != RT_MEMORY_MANAGED ||
        size > range.size - (address - range.base))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static int prefetch(CUdeviceptr address, size_t size, bool device_named, int device, CUstream stream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(stream, &c, &st);
    return r ? r : check_range(address, size, device_named, device);
}

CUresult rt_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return prefetch(devPtr, count, true, dstDevice, hStream);
}

CUresult rt_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                                  CUstream hStream)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return prefetch(devPtr, count, location.type == CU_MEM_LOCATION_TYPE_DEVICE, location.id, hStream);
}

static bool advice_known(CUmem_advise advice)
{
    return advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CUresult rt_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return advice_known(advice) ? (CUresult)check_range(devPtr, count, true, device) : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
    if (!advice_known(advice))
        return CUDA_ERROR_INVALID_VALUE;
    return check_range(devPtr, count, location.type == CU_MEM_LOCATION_TYPE_DEVICE, location.id);
}
