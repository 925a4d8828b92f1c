/*
 * Stands in for NVIDIA's libcuda in the server, which makes memory with it: there is none left as
 * long as GMUX_TEST_FULL is a file.
 */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuInit(unsigned flags)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    memset(uuid, 0, sizeof(*uuid));
    uuid->bytes[0] = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    const char *full = getenv("GMUX_TEST_FULL");
    *handle = size;
    return full && access(full, F_OK) == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                       CUmemGenericAllocationHandle handle)
{
    memset(prop, 0, sizeof(*prop));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemExportToShareableHandle(void *fd, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type,
                                             unsigned long long flags)
{
    int made = memfd_create("full", MFD_CLOEXEC);
    memcpy(fd, &made, sizeof(made));
    return made < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
