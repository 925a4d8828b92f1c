/*
 * What programs ask about stream capture even if they never capture: libraries look before they synchronise. There are
 * no graphs here, so that no stream ever captures.
 */
#include "client/context.h"
#include "client/gen/api.h"

static int capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(stream, &c, &st);
    if (r)
        return r;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (id)
        *id = 0;
    return CUDA_SUCCESS;
}

CUresult rt_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    return capture_info(hStream, captureStatus, NULL);
}

CUresult rt_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
    return capture_info(hStream, captureStatus_out, id_out);
}

/* Outside of a capture the other outputs are left as they are. */
CUresult rt_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                      CUgraph *graph_out GM_UNUSED, const CUgraphNode **dependencies_out GM_UNUSED,
                                      size_t *numDependencies_out GM_UNUSED)
{
    return capture_info(hStream, captureStatus_out, id_out);
}

CUresult rt_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                      CUgraph *graph_out GM_UNUSED, const CUgraphNode **dependencies_out GM_UNUSED,
                                      const CUgraphEdgeData **edgeData_out GM_UNUSED,
                                      size_t *numDependencies_out GM_UNUSED)
{
    return capture_info(hStream, captureStatus_out, id_out);
}

CUresult rt_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    int r = rt_enter_any();
    if (r)
        return r;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = current;
    current = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
