/*
 * Streams, events, and host functions in streams.
 */
#include <stdlib.h>

#include "cudart/cudart.h"

cudaError_t crt_cudaStreamCreate(cudaStream_t *stream)
{
    return crt_of(cuStreamCreate(stream, CU_STREAM_DEFAULT));
}

cudaError_t crt_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return crt_of(cuStreamCreate(stream, flags));
}

cudaError_t crt_cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return crt_of(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t crt_cudaStreamDestroy(cudaStream_t stream)
{
    return stream ? crt_of(cuStreamDestroy(stream)) : cudaErrorInvalidResourceHandle;
}

cudaError_t crt_cudaStreamSynchronize(cudaStream_t stream)
{
    return crt_of(cuStreamSynchronize(stream));
}

cudaError_t crt_cudaStreamQuery(cudaStream_t stream)
{
    return crt_of(cuStreamQuery(stream));
}

cudaError_t crt_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return crt_of(cuStreamWaitEvent(stream, event, flags));
}

struct callback {
    cudaStreamCallback_t function;
    void *data;
};

static void run_callback(CUstream stream, CUresult status, void *data)
{
    struct callback c = *(struct callback *)data;
    free(data);
    c.function(stream, crt_of(status), c.data);
}

cudaError_t crt_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                      void *data, unsigned int flags)
{
    if (!callback || flags)
        return cudaErrorInvalidValue;
    struct callback *c = malloc(sizeof(*c));
    if (!c)
        return cudaErrorMemoryAllocation;
    *c = (struct callback) { callback, data };
    CUresult r = cuStreamAddCallback(stream, run_callback, c, 0);
    if (r)
        free(c);
    return crt_of(r);
}

cudaError_t crt_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
    return crt_of(cuLaunchHostFunc(stream, fn, data));
}

cudaError_t crt_cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    return crt_of(cuStreamGetFlags(stream, flags));
}

cudaError_t crt_cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    return crt_of(cuStreamGetPriority(stream, priority));
}

cudaError_t crt_cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    return crt_of(cuStreamGetId(stream, id));
}

cudaError_t crt_cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    return crt_of(cuStreamGetDevice(stream, device));
}

cudaError_t crt_cudaStreamAttachMemAsync(cudaStream_t stream, void *p, size_t length,
                                         unsigned int flags)
{
    return crt_of(cuStreamAttachMemAsync(stream, (CUdeviceptr)(uintptr_t)p, length, flags));
}

_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUstreamAttrValue), "one layout");

/* Streams have some of the attributes of launches. */
static bool is_of_streams(enum cudaLaunchAttributeID attr)
{
    return attr == cudaLaunchAttributeAccessPolicyWindow ||
           attr == cudaLaunchAttributeSynchronizationPolicy ||
           attr == cudaLaunchAttributePriority || attr == cudaLaunchAttributeMemSyncDomainMap ||
           attr == cudaLaunchAttributeMemSyncDomain;
}

cudaError_t crt_cudaStreamSetAttribute(cudaStream_t stream, enum cudaLaunchAttributeID attr,
                                       const cudaLaunchAttributeValue *value)
{
    if (!is_of_streams(attr))
        return cudaErrorInvalidValue;
    return crt_of(
        cuStreamSetAttribute(stream, (CUstreamAttrID)attr, (const CUstreamAttrValue *)value));
}

cudaError_t crt_cudaStreamGetAttribute(cudaStream_t stream, enum cudaLaunchAttributeID attr,
                                       cudaLaunchAttributeValue *value)
{
    return crt_of(cuStreamGetAttribute(stream, (CUstreamAttrID)attr, (CUstreamAttrValue *)value));
}

cudaError_t crt_cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
    return crt_of(cuStreamCopyAttributes(dst, src));
}

cudaError_t crt_cudaEventCreate(cudaEvent_t *event)
{
    return crt_of(cuEventCreate(event, CU_EVENT_DEFAULT));
}

cudaError_t crt_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    return flags & ~known ? cudaErrorInvalidValue : crt_of(cuEventCreate(event, flags));
}

cudaError_t crt_cudaEventDestroy(cudaEvent_t event)
{
    return crt_of(cuEventDestroy(event));
}

cudaError_t crt_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return crt_of(cuEventRecord(event, stream));
}

cudaError_t crt_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return crt_of(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t crt_cudaEventQuery(cudaEvent_t event)
{
    return crt_of(cuEventQuery(event));
}

cudaError_t crt_cudaEventSynchronize(cudaEvent_t event)
{
    return crt_of(cuEventSynchronize(event));
}

cudaError_t crt_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return crt_of(cuEventElapsedTime(ms, start, end));
}

#if CUDART_VERSION < 13000
cudaError_t crt_cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return crt_of(cuEventElapsedTime(ms, start, end));
}
#endif
