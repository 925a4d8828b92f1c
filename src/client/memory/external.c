/*
 * Memory and semaphores of other interfaces (Vulkan, Direct3D, NvSci). None of them has anything of a session's device, so
 * there is nothing to import: arguments are checked as NVIDIA's driver does, which for a descriptor that is not such a
 * thing answers CUDA_ERROR_UNKNOWN.
 */
#include "client/gen/api.h"
#include "client/stream/context.h"

static int import(const void *out, const void *desc, bool fd)
{
    static atomic_bool said;
    int r = rt_enter_any();
    if (r)
        return r;
    if (!out || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    return fd ? CUDA_ERROR_UNKNOWN : (int)rt_not_supported("memory and semaphores of other interfaces", &said);
}

CUresult rt_cuImportExternalMemory(CUexternalMemory *extMem_out,
                                   const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    return import(extMem_out, memHandleDesc,
                  memHandleDesc && memHandleDesc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);
}

CUresult rt_cuImportExternalSemaphore(CUexternalSemaphore *extSem_out,
                                      const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc)
{
    bool fd = semHandleDesc && (semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD ||
                                semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD);
    return import(extSem_out, semHandleDesc, fd);
}

/* There is no such handle. */
static int no_handle(const void *handle)
{
    int r = rt_enter_any();
    return r ? r : handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuDestroyExternalMemory(CUexternalMemory extMem)
{
    return no_handle(extMem);
}

CUresult rt_cuDestroyExternalSemaphore(CUexternalSemaphore extSem)
{
    return no_handle(extSem);
}

CUresult rt_cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                            const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    return devPtr && bufferDesc ? no_handle(extMem) : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                                    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    return mipmap && mipmapDesc ? no_handle(extMem) : CUDA_ERROR_INVALID_VALUE;
}
