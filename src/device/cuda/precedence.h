/*
 * Precedence: small kernels do not wait behind large ones.
 *
 * A GPU hands out the blocks of a context's kernels in the order of the launches, those of a higher
 * priority first. So a kernel that would fit beside the others waits until all blocks of every
 * larger one before it have begun: beside six programs with kernels of 8 ms, 2 ms become 47.
 * NVIDIA's MPS lets programs take turns (6 to 16 ms), and a higher priority does better than that
 * (2 to 4 ms; docs/adr/0025).
 *
 * Where N queues are busy, a kernel that needs no more than an N-th of the multiprocessors has the
 * next higher priority. All these together leave the others their part, so nobody starves, and
 * nothing has to be measured or remembered.
 */
#ifndef GMUX_DEVICE_CUDA_PRECEDENCE_H
#define GMUX_DEVICE_CUDA_PRECEDENCE_H

#include "device/cuda/op.h"

struct cuda_function;

/* Of the kernel, which is about to be launched: it is to have precedence. Also notes how large it
 * is, for others. The client's thread. */
bool cuda_has_precedence(struct dev_queue *q, const struct cuda_function *f,
                         const struct dev_launch *l);

/* The watch, with dev->lock, every millisecond while something is in flight: how much of each
 * context a kernel may need. */
void cuda_precedence_look(struct dev *d, uint64_t now);

/* A context's part that kernels may need, or need, of all its multiprocessors. */
#define CUDA_WHOLE 65536u

#endif
