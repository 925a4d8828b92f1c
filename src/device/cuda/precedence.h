/*
 * Precedence: small kernels do not wait behind large ones.
 *
 * A GPU starts the blocks of a context's kernels in the order of the launches, and those of a
 * higher priority first. So a kernel that would fit beside the others waits until all blocks of
 * every larger kernel before it have started. Beside six programs with kernels of 8 ms, a kernel of
 * 2 ms took 47. Under NVIDIA's MPS, where programs take turns, it took 6 to 16 ms; with a higher
 * priority it takes 2 to 4 (docs/adr/0025).
 *
 * Where N queues are busy, a kernel that needs at most an N-th of the multiprocessors gets the next
 * higher priority. All such kernels together leave the others their part, so nobody starves, and
 * nothing has to be measured or remembered.
 */
#ifndef GMUX_DEVICE_CUDA_PRECEDENCE_H
#define GMUX_DEVICE_CUDA_PRECEDENCE_H

#include "device/cuda/op.h"

struct cuda_function;

/* True if a kernel that is about to be launched is to have precedence. Also notes how large it is,
 * on which the others' precedence depends. The client's thread. */
bool cuda_has_precedence(struct dev_queue *q, const struct cuda_function *f,
                         const struct dev_launch *l);

/* Decides for each context how much a kernel with precedence may need. The watch calls it every
 * millisecond while something is in flight, with dev->lock. */
void cuda_precedence_look(struct dev *d, uint64_t now);

/* Parts of a context's multiprocessors are multiples of one CUDA_WHOLE-th. */
#define CUDA_WHOLE 65536u

#endif
