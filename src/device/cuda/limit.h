/*
 * Limits of a context. The client's thread, but for the beginning.
 */
#ifndef GMUX_DEVICE_CUDA_LIMIT_H
#define GMUX_DEVICE_CUDA_LIMIT_H

#include "device/cuda/state.h"

/* Of a context that is new, and current. */
void cuda_limits_open(struct cuda_gpu *g);
/* Gives back local memory of a context, which is quiet and current, but for what is wanted now
 * (g->local, g->stack). An order's thread. */
void cuda_limits_shrink(struct cuda_gpu *g);
/* Kernels may need as much stack in a context (quiet, current) as in the GPU's other one. */
void cuda_limits_follow(struct cuda_gpu *g, const struct cuda_gpu *other);

#endif
