/*
 * A ring of events of the driver, which are used again in turn.
 */
#include "device/cuda/point.h"
#include "device/cuda/mark.h"

#include <stdlib.h>

#include "device/cuda/inflight.h"

struct cuda_points {
    struct {
        CUevent event; /* NULL: never used */
        uint64_t seq;  /* everything up to here is before it */
    } at[CUDA_POINTS];
    uint64_t count; /* so many there have been: the last is at[(count - 1) % CUDA_POINTS] */
};

/* Behind everything that the queue has so far. */
static CUresult record(struct dev_queue *q, CUevent *out)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUresult r = CUDA_SUCCESS;
    if (!q->points && !(q->points = calloc(1, sizeof(*q->points))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct cuda_points *p = q->points;
    __typeof__(&p->at[0]) next = &p->at[p->count % CUDA_POINTS];
    cuda_enter(q->gpu);
    cuda_count(q, 1);
    if (!next->event)
        r = api->cuEventCreate(&next->event, CU_EVENT_DISABLE_TIMING);
    if (r == CUDA_SUCCESS)
        r = api->cuEventRecord(next->event, q->stream);
    if (r != CUDA_SUCCESS)
        return r;
    next->seq = q->last;
    p->count++;
    *out = next->event;
    return CUDA_SUCCESS;
}

void cuda_point_set(struct dev_queue *q)
{
    CUevent event;
    if (!cuda_check(q->client, record(q, &event), "the device refused an event"))
        return;
    cuda_queue_mark(q);
}

CUresult cuda_point_find(struct dev_queue *q, uint64_t seq, CUevent *out)
{
    const struct cuda_points *p = q->points;
    const uint64_t oldest = p && p->count > CUDA_POINTS ? p->count - CUDA_POINTS : 0;
    uint64_t i = p ? p->count : 0;
    *out = NULL;
    for (; i > oldest && p->at[(i - 1) % CUDA_POINTS].seq >= seq; i--)
        *out = p->at[(i - 1) % CUDA_POINTS].event;
    return *out ? CUDA_SUCCESS : record(q, out);
}

void cuda_points_destroy(struct dev_queue *q)
{
    for (uint32_t i = 0; q->points && i < CUDA_POINTS; i++)
        if (q->points->at[i].event)
            (void)q->client->dev->api.cuEventDestroy_v2(q->points->at[i].event);
    free(q->points);
    q->points = NULL;
}
