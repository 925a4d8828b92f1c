/*
 * Points of a queue at which its program has recorded an event. There the GPU writes the queue's
 * completion, whatever comes behind, and the driver records an event of its own: a stream that
 * waits for the program's event waits for exactly what was before it.
 *
 * The driver's events are kept for the last CUDA_POINTS points. A wait for an older one waits for
 * the oldest that there is, which is behind it. The client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_POINT_H
#define GMUX_DEVICE_CUDA_POINT_H

#include "device/cuda/state.h"

#define CUDA_POINTS 64u

/* Everything of the queue so far is before this point, which is its last operation. */
void cuda_point_set(struct dev_queue *q);
/* The driver's event of the first point at or behind `seq`, which is with the driver; where there
 * is none, one is recorded now. */
CUresult cuda_point_find(struct dev_queue *q, uint64_t seq, CUevent *out);
/* Forgets them all. */
void cuda_points_destroy(struct dev_queue *q);

#endif
