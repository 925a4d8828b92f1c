/*
 * Launches that wait in the ring one behind the other go to the driver several at a time.
 * Everything is the client's thread's.
 */
#ifndef GMUX_DEVICE_CUDA_CHAIN_H
#define GMUX_DEVICE_CUDA_CHAIN_H

#include "device/cuda/op.h"

/* Launches that go together, at most. */
#define CUDA_CHAIN 16u

/* Puts a launch into the queue's row, if more wait behind it or the row has begun; a full row is
 * handed over. False: it is none for a row. The queue has a stream, and nothing is held back. */
bool cuda_chain_take(struct dev_queue *q, const struct cuda_op *op);
/* Hands over what is in the row: before anything else of the queue, and before somebody waits for
 * it. */
void cuda_chain_hand_over(struct dev_queue *q);
/* Hands over what is in rows of the client's queues, and has their completion written: before its
 * thread waits for anything. Its program hears of what is done, and others see what runs. */
void cuda_hand_over(struct dev_client *c);
/* Forgets what is in the row. */
void cuda_chain_drop(struct dev_queue *q);
/* Forgets the client's graphs that were made in the place with this number, which goes. */
void cuda_chains_leave(struct dev_client *c, uint64_t place);
void cuda_chain_destroy(struct dev_queue *q);

#endif
