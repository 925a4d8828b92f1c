/*
 * A fallback context of a GPU, for clients that somebody's long kernel keeps from loading theirs.
 *
 * A load waits until nothing runs in its context (admit.h), and the primary context is everybody's:
 * beside a kernel that does not end nobody could begin. So a client whose load has waited for some
 * time goes to a fallback context, made for the first one that needs it. There the hardware gives
 * both contexts the GPU in turn, as it does with two processes: slower than beside each other, but
 * nobody waits for somebody else's kernel. When no operation in the primary context has taken long
 * for a while, its clients come back; those that have to have something made there, when it is
 * quiet.
 *
 * Memory, its addresses, libraries and completion words are the process's, and the same in both
 * contexts. What belongs to a context is left behind: streams are made anew, kernels are found
 * again. So a client goes when nothing of it runs or waits to run, and stays where it is while it
 * has something there that cannot be made again: green contexts of its own (they are the primary
 * context's), arrays and textures, variables in the driver's memory, attributes of kernels. Its
 * share of the multiprocessors, a green context as well, does not hold there.
 * docs/adr/0013-calls-that-wait.md has what was measured.
 *
 * The client's thread, where nothing else is said.
 */
#ifndef GMUX_DEVICE_CUDA_FALLBACK_H
#define GMUX_DEVICE_CUDA_FALLBACK_H

#include "base/clock.h"
#include "device/cuda/state.h"

struct cuda_op_launch;

/* A program that begins waits no longer for a load .. */
#define CUDA_HELD_MIN_NS (10 * GM_NS_PER_MS)
/* .. than this, and none longer than this. */
#define CUDA_HELD_NS (250 * GM_NS_PER_MS)
/* So long after the last operation that took long clients come back; one that had to go again stays
 * away twice as long .. */
#define CUDA_CALM_NS GM_NS_PER_S
/* .. up to this. */
#define CUDA_AWAY_MAX_NS (600 * GM_NS_PER_S)

/* The client has a call that wants a context idle: `g`, or, if it may move, the one in which it is
 * then, which is entered. There is a safe point there (admit.h) until cuda_settled(). NULL: it is
 * about to be stopped. */
struct cuda_gpu *cuda_settle(struct dev_client *c, struct cuda_gpu *g, bool may_move);
void cuda_settled(struct dev_client *c, struct cuda_gpu *g);
/* A GPU that the client begins to use, which is entered: its place there, in the fallback context
 * where the share that it is to have would have to wait. An order's thread. */
CUresult cuda_fallback_seat(struct dev_client *c, struct cuda_gpu *g);
/* As cuda_settle() for what is the same in both contexts, without going anywhere: any thread.
 * cuda_admit_end() follows. */
struct cuda_gpu *cuda_fallback_or_first(struct dev_client *c, uint32_t device);
/* Any thread, with dev->lock: the client has something that no other executor could make again, or
 * it cannot be told just now. */
bool cuda_would_lose(struct dev_client *c);
/* Nothing of the client is in flight: it comes back, where it can. */
void cuda_fallback_return(struct dev_client *c);
/* The kernel of a launch, in the context of the queue, which may have gone there. False: the client
 * has an error, or is about to be stopped. */
bool cuda_fallback_find(struct dev_queue *q, struct cuda_op_launch *l);
/* A kernel that is loaded takes at least so much dynamic shared memory, in its context. */
void cuda_fallback_allow(const struct dev *d, CUfunction f, uint32_t bytes);

#endif
