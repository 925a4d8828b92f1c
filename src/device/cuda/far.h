/*
 * Memory of another GPU than the queue's.
 */
#ifndef GMUX_DEVICE_CUDA_FAR_H
#define GMUX_DEVICE_CUDA_FAR_H

#include "device/cuda/state.h"

/* The client's thread, without a lock: there is a way from the queue to this GPU, if that is not
 * its own. May wait for room for a stream. CUresult */
CUresult cuda_open_way(struct dev_queue *q, struct cuda_gpu *to);
/* The same thread: an operation of the queue that this GPU has to do. *into is where it is put,
 * with the GPU entered (CUDA_ERROR_NOT_READY: there is no way yet); then leave, with what that came
 * to, whose outcome is the operation's. A run that is learnt does not go elsewhere. */
CUresult cuda_go(struct dev_queue *q, struct cuda_gpu *to, CUstream *into);
CUresult cuda_leave(struct dev_queue *q, struct cuda_gpu *to, CUresult r);
void cuda_detours_destroy(struct dev_queue *q);

#endif
