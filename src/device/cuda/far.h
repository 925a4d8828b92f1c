/*
 * Memory of another GPU than the queue's.
 */
#ifndef GMUX_DEVICE_CUDA_FAR_H
#define GMUX_DEVICE_CUDA_FAR_H

#include "device/cuda/state.h"

/* Makes a way from the queue to this GPU, if that is not the queue's own. May wait for room for a
 * stream. The client's thread, without a lock. CUresult. */
CUresult cuda_open_way(struct dev_queue *q, struct cuda_gpu *to);
/* Begins an operation of the queue that this GPU has to do: *into is the stream to put it into, and
 * the GPU's context is current. CUDA_ERROR_NOT_READY: there is no way yet. Then cuda_leave(), with
 * the result of putting it there, returns the result of the whole. Not while a run is learnt. The
 * client's thread. */
CUresult cuda_go(struct dev_queue *q, struct cuda_gpu *to, CUstream *into);
CUresult cuda_leave(struct dev_queue *q, struct cuda_gpu *to, CUresult r);
void cuda_detours_destroy(struct dev_queue *q);

#endif
