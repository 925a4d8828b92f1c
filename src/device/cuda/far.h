/*
 * Memory of another GPU than the queue's.
 */
#ifndef GMUX_DEVICE_CUDA_FAR_H
#define GMUX_DEVICE_CUDA_FAR_H

#include "device/cuda/state.h"

/* Makes a way from the queue to another GPU; nothing if it is the queue's own. May wait for room
 * for a stream. The client's thread, no lock held. CUresult. */
CUresult cuda_open_way(struct dev_queue *q, struct cuda_gpu *to);
/* Around an operation of the queue that another GPU has to do. cuda_go() makes that GPU's context
 * current and says into which stream to put the operation; CUDA_ERROR_NOT_READY: there is no way
 * yet. cuda_leave() gets the result of that and returns the result of the whole. Not while a run is
 * learnt. The client's thread. */
CUresult cuda_go(struct dev_queue *q, struct cuda_gpu *to, CUstream *into);
CUresult cuda_leave(struct dev_queue *q, struct cuda_gpu *to, CUresult r);
void cuda_detours_destroy(struct dev_queue *q);

#endif
