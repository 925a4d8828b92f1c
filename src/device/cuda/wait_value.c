/*
 * Streams that wait for a value in memory. The driver's own wait would block one of the GPU's
 * channels, which streams of other programs share, and it would not end with its program. So the
 * queue stands at a gate, as for a host function, and meanwhile its stream, which is empty then,
 * copies the word to a place where the executor can read it. The executor repeats that for as long
 * as the program is there (executor/client.c; docs/adr/0020).
 *
 * The copy goes to session memory. The client can write there, too, but would only deceive itself.
 */
#include "device/cuda/far.h"
#include "device/cuda/stream.h"
#include "device/cuda/op.h"
#include "device/cuda/wait_value.h"
#include "device/value.h"

/* Copies the word. memory_lock is held, so that nothing is unmapped meanwhile.
 * CUDA_ERROR_NOT_READY: there is no way yet to the GPU `*does`, whose memory it is. */
static CUresult fetch(struct dev_queue *q, struct cuda_gpu **does)
{
    struct dev_client *c = q->client;
    const struct cuda_memory m = cuda_memory_at(c, q->value.address, q->value.width);
    CUstream into;
    if (!m.held)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    *does = !m.gpu || (m.reach & 1u << q->gpu->index) ? q->gpu : m.gpu;
    CUresult r = cuda_go(q, *does, &into);
    if (r != CUDA_SUCCESS)
        return r;
    CUdeviceptr to = c->seats[(*does)->index].streams_at +
                     q->number * sizeof(struct tp_stream_slot) +
                     offsetof(struct tp_stream_slot, looked);
    r = c->dev->api.cuMemcpyAsync(to, q->value.address, q->value.width, into);
    return cuda_leave(q, *does, r);
}

static void look(struct dev_queue *q)
{
    struct cuda_gpu *does = q->gpu;
    CUresult r;
    do {
        pthread_mutex_lock(&q->client->memory_lock);
        r = fetch(q, &does);
        pthread_mutex_unlock(&q->client->memory_lock);
    } while (r == CUDA_ERROR_NOT_READY && (r = cuda_open_way(q, does)) == CUDA_SUCCESS);
    q->looking = true;
    atomic_store_explicit(&q->touched, true, memory_order_release);
    if (r == CUDA_ERROR_ILLEGAL_ADDRESS)
        cuda_wrong(q->client, r, q->value.address, "wait for a value outside the program's memory");
    else
        (void)cuda_check(q->client, r, "the device refused to read a word that a stream waits for");
}

void cuda_value_begin(struct dev_queue *q, const struct wire_rec_wait_value *r)
{
    q->value = *r;
    q->looking = false;
    cuda_value_look(q);
}

void cuda_value_look(struct dev_queue *q)
{
    if (GM_UNLIKELY(!q->stream || q->place != cuda_place_now(q))) {
        q->looking = false; /* a copy that was under way does not count */
        cuda_stream_place(q);
    }
    if (!q->stream || !cuda_stream_is_done(q, q->stream)) /* none: the client has an error */
        return;
    if (!q->looking) {
        look(q);
        return;
    }
    q->looking = false; /* the next look is a new one */
    if (dev_value_reached(&q->value, atomic_load_explicit(&q->slot->looked, memory_order_acquire)))
        atomic_store_explicit(&q->slot->gate, q->gate, memory_order_release);
}
