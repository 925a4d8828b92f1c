/*
 * How many calls of a client are in flight, and the bound for that.
 *
 * All clients share a context, and the driver takes their calls one at a time, under one lock. For
 * each of the GPU's channels it has a queue of about 1,000 entries. A call that finds this queue
 * full waits in the driver until the GPU gets on, and keeps the lock: everybody waits with it, and
 * behind a kernel that does not end they wait for ever. So a client has no more than CUDA_CALLS
 * calls with the driver that are not known to be done. That holds for all its streams together,
 * because streams share channels, and only the driver knows which ones. At the bound a client's
 * operations are held back in their queues, and its ring is not read.
 *
 * Every call that may take an entry counts: operations, marks, events for other streams, detours,
 * and each launch in a row or a run.
 *
 * Completion words prove nothing here, since the client can write them. With about one mark in
 * PROOF_EVERY calls the GPU also writes a proof, which is the number of the queue's calls that it
 * has come past. The proof goes into a word that no client has and that no call of a client reaches
 * (SECURITY.md says what kernels can reach). Both writes are one call, and nobody waits for it. A
 * client with many queues gets proofs with more of its marks, so that few calls are done without
 * being known to be done. A program that tells the truth meets the device's own depth first
 * (CUDA_DEPTH, which completion words count), unless it needs several calls for each operation. At
 * the bound the driver is asked as well.
 *
 * Three things are not bounded. First, each client has CUDA_CALLS of its own. The streams of two
 * clients may share a channel (the driver has 32), by chance or because the clients work together,
 * and then both can fill it behind a kernel that does not end. One bound for all clients together
 * would be so small that the GPU would run dry. Second, it is not known how much of a channel the
 * graph of a run takes, which goes in one call. Third, nor is it known of a copy of many planes.
 *
 * All of this is for the client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_INFLIGHT_H
#define GMUX_DEVICE_CUDA_INFLIGHT_H

#include "device/cuda/state.h"

/* Together with what one more operation may take, and a proof for each queue that lacks one, this
 * is below 1,000. */
#define CUDA_CALLS 896u

/* The queue makes so many calls of the driver, now or soon. */
static inline void cuda_count(struct dev_queue *q, uint32_t calls)
{
    struct dev_client *c = q->client;
    q->calls += calls;
    c->calls += calls;
    atomic_store_explicit(&q->touched, true, memory_order_release);
    if (GM_UNLIKELY(gm_list_empty(&q->owing))) {
        gm_list_append(&c->owing, &q->owing);
        c->owing_count++;
    }
}

/* Counts as done what the GPU has proven to be done. */
void cuda_calls_look(struct dev_queue *q);
/* Asks the driver whether all is done; if not, has the GPU write a proof behind what has none. */
void cuda_calls_ask(struct dev_queue *q);

/* The queue is about to be marked: the address where the GPU is to write q->calls first, in the
 * same call. 0: no proof is due. */
CUdeviceptr cuda_proof(struct dev_queue *q);

/* What the driver has of the queue is done, and nothing is held back. */
bool cuda_queue_is_done(struct dev_queue *q);
/* What the driver has of the queue is done, and its client has heard of that; something may be held
 * back. */
bool cuda_queue_is_over(struct dev_queue *q);
/* The queue's first `calls` calls are done, as the GPU or the driver says. */
bool cuda_calls_are_done(const struct dev_queue *q, uint64_t calls);

/* Begins and ends the counting for a queue; at the end nothing of it is left to happen. */
void cuda_calls_begin(struct dev_queue *q);
void cuda_calls_end(struct dev_queue *q);

/* The client's private words, at the address where this GPU sees them, which is entered: a
 * completion word for each stream (output.h), then a proof for each. They are made when first asked
 * for; 0: they could not be made. */
CUdeviceptr cuda_words(struct dev_client *c, const struct cuda_gpu *g);
/* Frees them. Nothing of the client runs. */
void cuda_words_finish(struct dev_client *c);

#endif
