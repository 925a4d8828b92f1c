/*
 * Launches that wait in the ring one behind the other go to the driver several at a time.
 * Everything is the client's thread's.
 */
#ifndef GMUX_DEVICE_CUDA_CHAIN_H
#define GMUX_DEVICE_CUDA_CHAIN_H

#include "device/cuda/op.h"

/* Launches that go together, at most. */
#define CUDA_CHAIN 16u

/* Adds a launch to the queue's row, if more operations wait behind it or the row has begun, and
 * hands a full row over. False: the operation cannot be part of a row. The queue has a stream, and
 * nothing is held back. */
bool cuda_chain_take(struct dev_queue *q, const struct cuda_op *op);
/* Hands over what is in the row. This comes before anything else of the queue, and before somebody
 * waits for it. */
void cuda_chain_hand_over(struct dev_queue *q);
/* Hands over all rows of the client, and marks its queues. Its thread does this before it waits for
 * anything, so that the program hears of completions and others see what runs. */
void cuda_hand_over(struct dev_client *c);
/* Forgets what is in the row. */
void cuda_chain_drop(struct dev_queue *q);
/* Destroys the client's graphs that were made in the place with this number. */
void cuda_chains_leave(struct dev_client *c, uint64_t place);
void cuda_chain_destroy(struct dev_queue *q);

#endif
