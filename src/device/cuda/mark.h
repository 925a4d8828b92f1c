/*
 * Marks: behind what a queue has with the driver, the GPU writes how far the queue has come. The
 * client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_MARK_H
#define GMUX_DEVICE_CUDA_MARK_H

#include "device/cuda/state.h"

/* Has the GPU write the completion of all that is with the driver. */
void cuda_queue_mark(struct dev_queue *q);
/* The operations up to `seq` are with the driver, and have been counted (inflight.h). */
void cuda_queue_submitted(struct dev_queue *q, uint64_t seq);

#endif
