/*
 * Precedence: programs that have had less of the GPU go before those that have had more.
 *
 * A GPU starts the blocks of a context's kernels in the order of the launches, and those of a
 * higher priority first. So a kernel waits until all blocks of every kernel before it have started,
 * and a program with short kernels gets as many of them as its neighbour of long ones: beside
 * kernels of 26 ms, one of 1 ms took 27. NVIDIA's MPS does the same. With a higher priority it
 * takes 2 to 3 (docs/adr/0025).
 *
 * The watch counts how much of a GPU each client has had: the time between two completions belongs
 * to the client whose operation was the second, multiplied by the part of the multiprocessors that
 * its kernel needs. Where several clients need more than there is, kernels of those who have had
 * CUDA_SLICE_NS less than the mean get the next higher priority. So each gets its part of the time
 * in the end, whatever its kernels are like, and nobody starves. Nobody is further than
 * CUDA_CREDIT_NS from the mean: a program that was idle for an hour does not have the GPU alone for
 * the next one.
 */
#ifndef GMUX_DEVICE_CUDA_PRECEDENCE_H
#define GMUX_DEVICE_CUDA_PRECEDENCE_H

#include "device/cuda/op.h"

struct cuda_function;

/* A client is at most so far from the mean of those that are busy. */
#define CUDA_CREDIT_NS (50 * GM_NS_PER_MS)
/* Programs that have had nearly the same are served in the order of their launches. */
#define CUDA_SLICE_NS (CUDA_CREDIT_NS / 4)

/* No kernel without precedence is in flight in another of the client's queues. The client's thread.
 */
bool cuda_keeps_order(const struct dev_queue *q);

/* True if the queue's next kernels are to have precedence. A program may rely on the order of its
 * launches in different streams, though CUDA does not promise it: natively a kernel that waits for
 * an earlier one has that before it. So the client's own order stays. The client's thread. */
static inline bool cuda_has_precedence(const struct dev_queue *q)
{
    const int64_t fair = atomic_load_explicit(&q->gpu->fair, memory_order_relaxed);
    const struct cuda_seat *s = &q->client->seats[q->gpu->index];
    return GM_UNLIKELY(fair != 0) && atomic_load_explicit(&s->had, memory_order_relaxed) < fair &&
           cuda_keeps_order(q);
}

/* The queue is about to launch this kernel: notes how much of the GPU it needs. The client's
 * thread. */
void cuda_precedence_need(struct dev_queue *q, const struct cuda_function *f,
                          const struct dev_launch *l);

/* Operations of the queue are done: notes what its client has had of the GPU. The watch, with
 * dev->lock, before it notes the time. */
void cuda_precedence_done(struct dev_queue *q, uint64_t now);

/* Decides for each context who has precedence. The watch calls it every millisecond while something
 * is in flight, with dev->lock. */
void cuda_precedence_look(struct dev *d, uint64_t now);

/* Parts of a context's multiprocessors are multiples of one CUDA_WHOLE-th. */
#define CUDA_WHOLE 65536u

#endif
