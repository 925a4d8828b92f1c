/*
 * Streams of queues, each in a place of its client (place.h). The client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_STREAM_H
#define GMUX_DEVICE_CUDA_STREAM_H

#include "device/cuda/state.h"

/* Makes a stream, of the context, which it enters, or of the place's green context (`p` may be
 * NULL). Waits if there is no room for one. CUDA_ERROR_NOT_READY: the client is about to be
 * stopped. */
CUresult cuda_stream_make(struct dev_client *c, struct cuda_gpu *g, struct cuda_place *p,
                          int priority, CUstream *out);
/* The place that the queue's stream belongs in. */
static inline struct cuda_place *cuda_place_now(struct dev_queue *q)
{
    struct cuda_place *p =
        atomic_load_explicit(&q->client->seats[q->gpu->index].place, memory_order_acquire);
    return GM_LIKELY(!q->wanted) ? p : cuda_place_part(q, p);
}

/* Makes the queue's stream, in the place that it belongs in, or moves it there. If the queue has no
 * stream afterwards, the client has an error. */
void cuda_stream_place(struct dev_queue *q);
/* The driver's priority for kernels of the queue that go before its others (precedence.h). */
int cuda_stream_precedence(const struct dev_queue *q);
/* Makes another stream in the queue's place. CUDA_ERROR_NOT_READY: there is no room for it now. */
CUresult cuda_stream_like(struct dev_queue *q, CUstream *out);
/* Destroys the stream that the queue has left, if that is done. */
void cuda_stream_settle(struct dev_queue *q);
/* Destroys the queue's stream; the next operation makes another one. */
void cuda_stream_give_up(struct dev_queue *q);
void cuda_stream_destroy(struct dev_queue *q);

#endif
