/*
 * What kernels need of a context besides their code: local memory for their threads, which holds
 * their stacks, too, and the heap of device malloc.
 *
 * The driver makes a context's local memory when a kernel first needs it, for as many threads as
 * the GPU can hold, and waits with that until nothing runs (capacity.h). It keeps what the limit of
 * the stack asks for, and gives back the rest when that limit is set anew. But a graph counts on as
 * much local memory as there was when it was made, whatever its kernels need: if it is launched
 * when there is less, the GPU ends the context (error 719; driver 580.159.04). So graphs do not
 * outlive a change of the limit.
 */
#ifndef GMUX_DEVICE_CUDA_LOCAL_H
#define GMUX_DEVICE_CUDA_LOCAL_H

#include "device/cuda/state.h"

struct cuda_library;

/* A context that is new, and current: notes the limits that a program's own context would have, and
 * gives it a heap that is large enough for everybody. */
void cuda_local_open(struct cuda_gpu *g);

/* A context that is at a safe point, and current, has stacks of at least so many bytes. */
CUresult cuda_stack_raise(struct cuda_gpu *g, uint64_t value);
/* Like cuda_stack_raise(): makes stacks as large as in the GPU's other context. */
void cuda_stack_follow(struct cuda_gpu *g, const struct cuda_gpu *other);

/* A kernel, which is loaded there, can be launched without waiting: the client counts on that from
 * now on. The client's thread. */
bool cuda_local_has(struct dev_client *c, struct cuda_gpu *g, const struct cuda_library *l,
                    CUfunction f);
/* A kernel is about to be launched, by a client that has waited for room. The client's thread. */
void cuda_local_take(struct dev_client *c, struct cuda_gpu *g, const struct cuda_library *l,
                     CUfunction f);
/* A launch of the client's has failed: the room that it was to make may not be there. The client's
 * thread. */
void cuda_local_unsure(struct dev_client *c, struct cuda_gpu *g);
/* A client is gone that may have had much local memory; the GPUs are at a safe point. An order's
 * thread. */
void cuda_local_shrink(struct dev *d);

#endif
