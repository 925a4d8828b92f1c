/*
 * A client's queues. The client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_QUEUE_H
#define GMUX_DEVICE_CUDA_QUEUE_H

#include "device/cuda/op.h"

int cuda_queue_create(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                      int priority, struct dev_queue **out);
/* The queue's number is another stream's now: reads that stream's priority and part from session
 * memory. */
void cuda_queue_reuse(struct dev_queue *q);
/* Takes a queue of which the driver has nothing to the other context, where its client is already.
 */
void cuda_queue_go(struct dev_queue *q, struct cuda_gpu *to);
void cuda_queue_destroy(struct dev_queue *q);

/* Holds back a copy of an operation, behind the others. False: no memory. */
GM_MUST_CHECK bool cuda_queue_hold(struct dev_queue *q, const struct cuda_op *op, const void *bytes,
                                   size_t size);
/* Frees one that was held back, and is no longer in the list. */
void cuda_queue_release(struct dev_queue *q, struct cuda_op *op);
/* Forgets all that is held back. */
void cuda_queue_drop(struct dev_queue *q);

#endif
