/*
 * How queues are made, go to another context, and end, and the list of operations that each of them
 * holds back.
 */
#include "device/cuda/queue.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/chain.h"
#include "device/cuda/far.h"
#include "device/cuda/graph.h"
#include "device/cuda/inflight.h"
#include "device/cuda/library.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/output.h"
#include "device/cuda/point.h"
#include "device/cuda/stream.h"

/* --- what is held back ------------------------------------------------------------------------ */

bool cuda_queue_hold(struct dev_queue *q, const struct cuda_op *op, const void *bytes, size_t size)
{
    struct cuda_op *kept = malloc(sizeof(*kept) + size);
    if (!kept)
        return false;
    *kept = *op;
    kept->bytes = kept + 1;
    if (size)
        memcpy(kept + 1, bytes, size);
    if (op->kind == CUDA_OP_LAUNCH)
        cuda_library_keep(q->client->dev, op->u.launch.library);
    else if (op->kind == CUDA_OP_GRAPH)
        op->u.graph->held++;
    gm_list_append(&q->held, &kept->link);
    if (gm_list_empty(&q->holding))
        gm_list_append(&q->client->holding, &q->holding);
    return true;
}

void cuda_queue_release(struct dev_queue *q, struct cuda_op *op)
{
    if (op->kind == CUDA_OP_LAUNCH)
        cuda_library_close(q->client->dev, op->u.launch.library);
    else if (op->kind == CUDA_OP_GRAPH)
        op->u.graph->held--;
    free(op);
}

void cuda_queue_drop(struct dev_queue *q)
{
    gm_list_for_each_safe (op, &q->held, struct cuda_op, link) {
        gm_list_remove(&op->link);
        cuda_queue_release(q, op);
    }
    gm_list_remove(&q->holding);
    cuda_chain_drop(q);
}

/* --- queues ----------------------------------------------------------------------------------- */

static void look_at_slot(struct dev_queue *q)
{
    q->wanted =
        q->gpu->groups.count ? atomic_load_explicit(&q->slot->part, memory_order_relaxed) : 0;
}

/* A stream of the driver cannot change its priority, so a queue with another priority gets another
 * stream, unless its stream still has something to do.
 */
void cuda_queue_reuse(struct dev_queue *q)
{
    int priority = atomic_load_explicit(&q->slot->priority, memory_order_relaxed);
    look_at_slot(q);
    if (GM_LIKELY(priority == q->priority) || !q->stream || !cuda_queue_is_done(q) ||
        !cuda_queue_is_over(q))
        return;
    q->priority = priority;
    cuda_stream_give_up(q);
}

void cuda_queue_go(struct dev_queue *q, struct cuda_gpu *to)
{
    struct dev *d = q->client->dev;
    cuda_stream_destroy(q);
    cuda_chain_destroy(q);
    cuda_detours_destroy(q);
    cuda_points_destroy(q);
    pthread_mutex_lock(&d->lock);
    q->gpu = to;
    pthread_mutex_unlock(&d->lock);
    look_at_slot(q);
}

int cuda_queue_create(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                      int priority, struct dev_queue **out)
{
    struct dev_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return GM_CUDA_OUT_OF_MEMORY;
    q->client = c;
    q->gpu = cuda_home(c, device);
    q->number = stream;
    q->slot = &c->session->streams[stream];
    q->last = q->marked = q->seen = q->accepted = q->prints.shown = done;
    gm_list_init(&q->prints.link);
    gm_list_init(&q->dirty);
    gm_list_init(&q->active);
    gm_list_init(&q->held);
    gm_list_init(&q->holding);
    gm_list_init(&q->chained);
    cuda_calls_begin(q);
    cuda_ahead_note(q);
    q->priority = priority;
    look_at_slot(q);
    pthread_mutex_lock(&c->dev->lock);
    gm_list_append(&c->queues, &q->link);
    pthread_mutex_unlock(&c->dev->lock);
    *out = q;
    return GM_CUDA_SUCCESS;
}

void cuda_queue_destroy(struct dev_queue *q)
{
    if (!q)
        return;
    struct dev_client *c = q->client;
    struct dev *d = c->dev;
    cuda_enter(q->gpu);
    cuda_output_drop(q);
    pthread_mutex_lock(&d->lock);
    gm_list_remove(&q->active);
    gm_list_remove(&q->link);
    atomic_fetch_add_explicit(&c->completed, q->accepted - q->seen, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    cuda_queue_drop(q);
    cuda_graph_drop(q);
    cuda_chain_destroy(q);
    cuda_calls_end(q);
    gm_list_remove(&q->dirty);
    cuda_points_destroy(q);
    cuda_detours_destroy(q);
    cuda_stream_destroy(q);
    free(q);
}
