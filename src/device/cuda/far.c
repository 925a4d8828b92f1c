/*
 * Memory of another GPU than the queue's. If the driver has allocated memory itself, it finds out
 * which GPU an operation has to go to. Here memory is mapped for the GPUs that may touch it, so
 * this file does that. An operation on memory that the queue's GPU may not touch takes a detour
 * through a stream of the GPU that has the memory. A copy between two GPUs is a copy between peers,
 * which works whether they can touch each other's memory or not.
 */
#include <stdlib.h>

#include "device/cuda/capacity.h"
#include "device/cuda/far.h"
#include "device/cuda/inflight.h"
#include "device/cuda/op.h"
#include "device/cuda/stream.h"

struct cuda_detour {
    struct cuda_gpu *gpu; /* where the stream is: of a context, and it has room there */
    CUstream stream;
    CUevent there; /* of the queue's GPU: the detour begins */
    CUevent back;
};

/* --- detours ---------------------------------------------------------------------------------- */

#define DETOURS (2 * DEV_DEVICES)

/* A GPU's fallback context, in which arrays may be, has a detour of its own. */
static struct cuda_detour *detour(const struct dev_queue *q, const struct cuda_gpu *to)
{
    return &q->detours[to->index + to->is_fallback * DEV_DEVICES];
}

static bool has_way(const struct dev_queue *q, const struct cuda_gpu *to)
{
    return to == q->gpu || cuda_captures(q) || (q->detours && detour(q, to)->back);
}

CUresult cuda_open_way(struct dev_queue *q, struct cuda_gpu *to)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUresult r = CUDA_SUCCESS;
    if (GM_LIKELY(has_way(q, to)))
        return CUDA_SUCCESS;
    if (!to->context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!q->detours && !(q->detours = calloc(DETOURS, sizeof(*q->detours))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct cuda_detour *d = detour(q, to);
    d->gpu = to;
    cuda_enter(q->gpu);
    if (!d->there)
        r = api->cuEventCreate(&d->there, CU_EVENT_DISABLE_TIMING);
    cuda_enter(to);
    if (r == CUDA_SUCCESS && !d->stream)
        r = cuda_stream_make(q->client, to, NULL, 0, &d->stream);
    if (r == CUDA_SUCCESS && !d->back)
        r = api->cuEventCreate(&d->back, CU_EVENT_DISABLE_TIMING);
    cuda_enter(q->gpu);
    return r;
}

static CUresult begin_detour(struct dev_queue *q, struct cuda_gpu *to, CUstream *into)
{
    const struct cuda_driver *api = &q->client->dev->api;
    struct cuda_detour *d = detour(q, to);
    cuda_count(q, 4); /* two events, and a wait for each */
    cuda_enter(q->gpu);
    CUresult r = api->cuEventRecord(d->there, q->stream);
    if (r != CUDA_SUCCESS)
        return r;
    cuda_enter(to);
    *into = d->stream;
    return api->cuStreamWaitEvent(d->stream, d->there, CU_EVENT_WAIT_DEFAULT);
}

static CUresult end_detour(struct dev_queue *q, struct cuda_gpu *to)
{
    const struct cuda_driver *api = &q->client->dev->api;
    struct cuda_detour *d = detour(q, to);
    cuda_enter(to);
    CUresult r = api->cuEventRecord(d->back, d->stream);
    cuda_enter(q->gpu);
    return r == CUDA_SUCCESS ? api->cuStreamWaitEvent(q->stream, d->back, CU_EVENT_WAIT_DEFAULT)
                             : r;
}

CUresult cuda_go(struct dev_queue *q, struct cuda_gpu *to, CUstream *into)
{
    *into = cuda_into(q);
    if (GM_LIKELY(to == q->gpu))
        return CUDA_SUCCESS;
    if (!has_way(q, to))
        return CUDA_ERROR_NOT_READY;
    return cuda_captures(q) ? CUDA_ERROR_INVALID_VALUE : begin_detour(q, to, into);
}

/* Ends the detour even after a failure, since the operation may have begun. */
CUresult cuda_leave(struct dev_queue *q, struct cuda_gpu *to, CUresult r)
{
    if (GM_LIKELY(to == q->gpu) || cuda_captures(q) || !has_way(q, to))
        return r;
    CUresult end = end_detour(q, to);
    return r != CUDA_SUCCESS ? r : end;
}

/* The queue's stream has waited for everything in them. */
void cuda_detours_destroy(struct dev_queue *q)
{
    const struct cuda_driver *api = &q->client->dev->api;
    for (uint32_t i = 0; q->detours && i < DETOURS; i++) {
        struct cuda_detour *d = &q->detours[i];
        if (d->there) {
            cuda_enter(q->gpu);
            (void)api->cuEventDestroy_v2(d->there);
        }
        if (!d->stream)
            continue;
        cuda_enter(d->gpu);
        if (d->back)
            (void)api->cuEventDestroy_v2(d->back);
        cuda_capacity_stream_destroy(d->gpu, NULL, d->stream);
    }
    free(q->detours);
    q->detours = NULL;
    cuda_enter(q->gpu);
}
