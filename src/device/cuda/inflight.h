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
 * Each call counts that may take an entry: operations, marks, events for other streams, detours,
 * and each launch of a row or a run by itself.
 *
 * Completion words do not count here, as the client can write them. With about one mark in
 * PROOF_EVERY calls the GPU also writes a proof: how many calls of the queue it has come past, into
 * a word that no client has, and that no call of a client reaches (SECURITY.md says what kernels
 * can reach). Both writes are one call, and nobody waits for it. A client with many queues gets
 * proofs with more of its marks, so that little is done without being known to be. A program that
 * tells the truth meets the device's own depth first (CUDA_DEPTH, which is counted by completion
 * words), unless it takes several calls for each operation. At the bound the driver itself is asked
 * as well.
 *
 * Three things are not bounded. Each client has its own CUDA_CALLS: the streams of two clients may
 * share a channel (the driver has 32), by chance or because the clients work together, and then
 * both can fill it behind a kernel that does not end. One bound for all clients together would be
 * so small that the GPU ran dry. It is not known how much of a channel the graph of a run takes,
 * which goes in one call; nor a copy of many planes.
 *
 * Everything here is the client's thread's.
 */
#ifndef GMUX_DEVICE_CUDA_INFLIGHT_H
#define GMUX_DEVICE_CUDA_INFLIGHT_H

#include "device/cuda/state.h"

/* With what one operation may take, and a proof for each queue that has none, this stays below
 * 1,000. */
#define CUDA_CALLS 896u

/* The queue hands over so many calls, now or soon. */
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

/* Has a look at what the GPU has proven. */
void cuda_calls_look(struct dev_queue *q);
/* Asks the driver, or has the GPU prove what it has not been asked to. */
void cuda_calls_ask(struct dev_queue *q);

/* The queue is about to be marked: where the GPU is to write q->calls before, in the same call. 0:
 * not this time. */
CUdeviceptr cuda_proof(struct dev_queue *q);

/* What the driver has of the queue is done, and nothing is held back. */
bool cuda_queue_is_done(struct dev_queue *q);
/* What the driver has of the queue is done, and its client has heard of that; something may be held
 * back. */
bool cuda_queue_is_over(struct dev_queue *q);
/* So many of the queue's calls are done, whatever came behind: the GPU or the driver says so. */
bool cuda_calls_are_done(const struct dev_queue *q, uint64_t calls);

/* A new queue; and one that goes, with nothing of it left to happen. */
void cuda_calls_begin(struct dev_queue *q);
void cuda_calls_end(struct dev_queue *q);

/* The client's private words, as the GPU sees them, which is entered: a completion word for each
 * stream (output.h), then what is proven of each. Made when first asked for; 0: there are none. */
CUdeviceptr cuda_words(struct dev_client *c, const struct cuda_gpu *g);
/* The client goes, and nothing of it runs. */
void cuda_words_finish(struct dev_client *c);

#endif
