/*
 * Memory, semaphores and resources of other interfaces (Vulkan, OpenGL, Direct3D, NvSci). They can
 * have nothing of a session's device, so there is nothing to import, and every handle is invalid.
 * Arguments are checked as NVIDIA's driver does, which answers CUDA_ERROR_UNKNOWN to a descriptor
 * of another kind.
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
    return fd ? CUDA_ERROR_UNKNOWN
              : (int)rt_not_supported("memory and semaphores of other interfaces", &said);
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
    bool fd = semHandleDesc &&
              (semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD ||
               semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD);
    return import(extSem_out, semHandleDesc, fd);
}

/* Refuses a handle, since none exists. */
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

CUresult rt_cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray *mipmap, CUexternalMemory extMem,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    return mipmap && mipmapDesc ? no_handle(extMem) : CUDA_ERROR_INVALID_VALUE;
}

static int none_of(const void *handles, unsigned count, CUstream stream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(stream, &c, &st);
    if (r)
        return r;
    return handles && count ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

CUresult
rt_cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                   const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
                                   unsigned int numExtSems, CUstream stream)
{
    return none_of(extSemArray, paramsArray ? numExtSems : 0, stream);
}

CUresult rt_cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                          const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
                                          unsigned int numExtSems, CUstream stream)
{
    return none_of(extSemArray, paramsArray ? numExtSems : 0, stream);
}

/* --- graphics: no interface registers anything here, so no handle is good --------------------- */

static int no_resource(void)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return r ? r : CUDA_ERROR_INVALID_HANDLE;
}

CUresult rt_cuGraphicsUnregisterResource(CUgraphicsResource resource GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsSubResourceGetMappedArray(CUarray *pArray GM_UNUSED,
                                                CUgraphicsResource resource GM_UNUSED,
                                                unsigned int arrayIndex GM_UNUSED,
                                                unsigned int mipLevel GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray *pMipmappedArray GM_UNUSED,
                                                      CUgraphicsResource resource GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1 *pDevPtr GM_UNUSED,
                                               unsigned int *pSize GM_UNUSED,
                                               CUgraphicsResource resource GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *pDevPtr GM_UNUSED,
                                                  size_t *pSize GM_UNUSED,
                                                  CUgraphicsResource resource GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsResourceSetMapFlags(CUgraphicsResource resource GM_UNUSED,
                                          unsigned int flags GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource resource GM_UNUSED,
                                             unsigned int flags GM_UNUSED)
{
    return no_resource();
}

CUresult rt_cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources,
                                   CUstream hStream)
{
    return none_of(resources, count, hStream);
}

CUresult rt_cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources,
                                     CUstream hStream)
{
    return none_of(resources, count, hStream);
}
