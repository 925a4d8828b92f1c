/*
 * Points of a queue at which its program has recorded an event. At a point the GPU writes the
 * queue's completion, whatever comes behind it, and the driver records an event of its own. So a
 * stream that waits for the program's event waits for exactly what was before it.
 *
 * The driver's events are kept for the last CUDA_POINTS points. A wait for an older point waits for
 * the oldest one that is kept, which lies behind it. The client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_POINT_H
#define GMUX_DEVICE_CUDA_POINT_H

#include "device/cuda/state.h"

#define CUDA_POINTS 64u

/* Makes a point behind everything that the queue has so far. */
void cuda_point_set(struct dev_queue *q);
/* The driver's event of the first point at or behind `seq`, which is with the driver. If there is
 * no such point, an event is recorded now. */
CUresult cuda_point_find(struct dev_queue *q, uint64_t seq, CUevent *out);
/* Destroys all events. */
void cuda_points_destroy(struct dev_queue *q);

#endif
