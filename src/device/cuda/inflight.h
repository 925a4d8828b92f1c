/*
 * Calls in flight: how many of a client's calls the driver has that are not known to be done, and the bound for that.
 *
 * All clients are in one context, whose calls take turns at one lock. Each of the GPU's channels has a queue of about 1,000
 * entries in the driver, and whoever calls when that one is full waits in the driver until the GPU gets on: with the lock,
 * so that everybody waits. Behind a kernel that does not end that is for ever. So a client has no more than CUDA_CALLS calls
 * with the driver that are not known to be done, over all its streams, because many streams share a channel and which ones
 * is the driver's to know. What comes then is held back in its queue, and its ring is not read. Counted is what may take
 * an entry: operations, marks, events for others and detours; each launch of a row and of a run by itself.
 *
 * Completion words are the client's to write, and do not count here. With some marks, once in about PROOF_EVERY calls,
 * the GPU also writes how many calls of the queue it has come past into a word that no client has, nor any call of one
 * reaches (of kernels SECURITY.md speaks): one call for both, and nobody waits for it. Where there are many queues it goes
 * with more of the marks, so that what is done and not known to be stays small. A program that tells the truth meets the
 * device's own depth before this limit (CUDA_DEPTH, operations by the completion words), unless it takes several calls for
 * each operation. At the limit the driver itself is asked as well.
 *
 * What is not bounded: several clients together. Each has its own CUDA_CALLS. Where streams of two share a channel (the driver has
 * 32 for all streams; two clients that work together can see to it, others meet by chance) and one's kernel does not end,
 * the other's calls stand behind it, and both together can fill the channel. Parts of one whole for all clients would be so
 * small that the GPU ran dry between them. Nor is it known how much of a channel a run's graph takes, which goes in one call
 * when there is room for one operation, nor a copy of many planes.
 *
 * Everything is the client's thread's.
 */
#ifndef GMUX_DEVICE_CUDA_INFLIGHT_H
#define GMUX_DEVICE_CUDA_INFLIGHT_H

#include "device/cuda/state.h"

/* With what one operation may take, and a proof for each queue that has none, this stays below 1,000. */
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

/* At the limit. True if there is room after all; else the watch rings the ring's bell with each completion. */
bool cuda_make_room(struct dev_client *c);

/* One more operation may be handed over. */
static inline bool cuda_has_room(struct dev_client *c)
{
    return GM_LIKELY(c->calls < CUDA_CALLS && !atomic_load_explicit(&c->full, memory_order_relaxed)) ||
           cuda_make_room(c);
}

/* The queue is about to be marked: where the GPU is to write q->calls before, in the same call. 0: not this time. */
CUdeviceptr cuda_proof(struct dev_queue *q);

/* The next mark makes nothing that is not there yet. If it soon might, it now will: whoever is not in a hurry is asked to
 * do what comes next. */
bool cuda_proof_is_prompt(const struct dev_queue *q);

/* A new queue; and one that goes, with nothing of it left to happen. */
void cuda_calls_begin(struct dev_queue *q);
void cuda_calls_end(struct dev_queue *q);

/* The client's private words, as the GPU sees them, which is entered: a completion word for each stream (output.h), then
 * what is proven of each. Made when first asked for; 0: there are none. */
CUdeviceptr cuda_words(struct dev_client *c, const struct cuda_gpu *g);
/* The client goes, and nothing of it runs. */
void cuda_words_finish(struct dev_client *c);

#endif
