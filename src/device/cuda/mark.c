/*
 * Marks are made when a client's ring has run dry, and after MARK_EVERY calls at the latest.
 */
#include "device/cuda/inflight.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/output.h"
#include "device/cuda/mark.h"

#define MARK_EVERY 64u

static CUresult write_mark(struct dev_queue *q, CUdeviceptr word)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUdeviceptr proof = cuda_proof(q);
    if (!proof)
        return api->cuStreamWriteValue64_v2(q->stream, word, q->last,
                                            CU_STREAM_WRITE_VALUE_DEFAULT);
    CUstreamBatchMemOpParams both[] = {
        /* In this order, so that a thread that sees the word move finds the proof. */
        { .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                          .address = proof,
                          .value64 = q->calls,
                          .flags = CU_STREAM_WRITE_VALUE_DEFAULT } },
        { .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                          .address = word,
                          .value64 = q->last,
                          .flags = CU_STREAM_WRITE_VALUE_DEFAULT } }
    };
    return api->cuStreamBatchMemOp_v2(q->stream, GM_ARRAY_LEN(both), both, 0);
}

void cuda_queue_mark(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    struct dev *d = c->dev;
    CUdeviceptr word =
        c->seats[q->gpu->index].streams_at + q->number * sizeof(struct tp_stream_slot);
    q->calls_marked = q->calls;
    gm_list_remove(&q->dirty);
    if (q->marked == q->last || !q->stream)
        return;
    cuda_enter(q->gpu);
    if (GM_UNLIKELY(c->prints.may))
        word = cuda_output_word(q, word);
    if (!cuda_check(c, write_mark(q, word), "the device refused to write a completion"))
        return;
    pthread_mutex_lock(&d->lock);
    q->marked = q->last;
    if (gm_list_empty(&q->active)) {
        d->newcomer = true;
        if (d->resting || gm_list_empty(&d->active))
            pthread_cond_signal(&d->work);
        gm_list_append(&d->active, &q->active);
    }
    pthread_mutex_unlock(&d->lock);
}

void cuda_queue_submitted(struct dev_queue *q, uint64_t seq)
{
    q->last = seq;
    if (gm_list_empty(&q->dirty)) {
        gm_list_append(&q->client->dirty, &q->dirty);
        cuda_count(q, 1); /* the mark that will come */
    }
    if (q->calls - q->calls_marked > cuda_ahead_marks(q, MARK_EVERY))
        cuda_queue_mark(q);
}
