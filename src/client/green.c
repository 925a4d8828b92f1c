/*
 * What programs are told of the multiprocessors that are theirs. On a GPU a client with a share lives in a green context
 * of the executor's; here that is simply the device, with as many multiprocessors as were granted. Green contexts of a
 * program's own, within its share, are not made: cuGreenCtxCreate and what leads there answer "not supported".
 */
#include <string.h>

#include "client/attach.h"
#include "client/context.h"
#include "client/gen/api.h"

static int ready(void)
{
    return rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : rt_ready();
}

static int describe(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    uint32_t step = rt_session->devices[device].multiprocessors_step;
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    memset(resource, 0, sizeof(*resource));
    resource->type = type;
    resource->sm.smCount = rt_multiprocessors(rt_session, device);
    resource->sm.minSmPartitionSize = step ? step : resource->sm.smCount;
    resource->sm.smCoscheduledAlignment = resource->sm.minSmPartitionSize;
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    int r = ready();
    if (r)
        return r;
    if (device < 0 || (unsigned)device >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    return describe(device, resource, type);
}

CUresult rt_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    int r = ready();
    if (r)
        return r;
    const struct rt_context *c = rt_context_find(hCtx, true);
    return c ? describe(c->device, resource, type) : CUDA_ERROR_INVALID_CONTEXT;
}

/* No stream is in a green context of the program's. */
CUresult rt_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (!phCtx)
        return CUDA_ERROR_INVALID_VALUE;
    *phCtx = NULL;
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (!pCtx)
        return CUDA_ERROR_INVALID_VALUE;
    *pCtx = rt_context_handle(c);
    if (pGreenCtx)
        *pGreenCtx = NULL;
    return CUDA_SUCCESS;
}

/* Contexts with fewer multiprocessors than the client has cannot be created (cuDeviceGetExecAffinitySupport says so),
 * so each has them all. */
CUresult rt_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pExecAffinity)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val = rt_multiprocessors(rt_session, c->device);
    return CUDA_SUCCESS;
}
