/*
 * Calls of the driver that wait until nothing runs in the GPU's context: the first look for a kernel or a variable (which loads it), PTX that is
 * loaded, what unloads a library, unpins memory, destroys an array, makes a green context, makes stacks larger. Most of them keep a lock of the context
 * meanwhile, without which nobody launches anything; and the context is everybody's. docs/adr/0013-calls-that-wait.md has the list.
 *
 * That such a call waits for another client's kernel cannot be helped, but by going elsewhere (second.h). But only its own client should, so the waiting is done here, before the
 * call, without a lock: until nothing of its own runs, and whatever others run is likely to end soon. That is so of a stream whose last operations
 * were short, until one takes longer than they did.
 *
 * How long streams have been where they are the watch notes, by the completion words. These are for clients to write: one that lies can
 * hold up others' loads, as it could with a kernel. Where the words say that a stream has done everything the driver is asked before such a call,
 * and where it says otherwise the GPU itself, by a word that no client has (inflight.h): so no kernel is hidden. A client that lies about
 * each operation of a stream, one after the other, gets as far as it may have calls with the driver.
 */
#ifndef GMUX_DEVICE_CUDA_QUIET_H
#define GMUX_DEVICE_CUDA_QUIET_H

#include "base/clock.h"
#include "device/cuda/state.h"

/* An operation was short. */
#define CUDA_QUIET_NS (20 * GM_NS_PER_MS)
/* There is one completion for many operations (queue.c): where each of the last ones was short, so is what comes before the next one, for
 * twice as long as they took, up to this .. */
#define CUDA_QUIET_GRACE_NS (500 * GM_NS_PER_MS)
/* .. and a little more. */
#define CUDA_QUIET_PATIENCE_NS GM_NS_PER_MS
/* Where several streams have operations of a tenth of a second each, there is never a moment in which all have only begun: whoever has waited for
 * long takes what has been going on for less than this part of that. What was there before is never among that. */
#define CUDA_QUIET_PART 4u

/* The watch, with dev->lock, for a queue that is active: so many operations more are done (0: none). */
static inline void cuda_quiet_note(struct dev_queue *q, uint64_t now, uint64_t done)
{
    if (GM_LIKELY((done == 0 || q->drains) && q->since))
        return;
    uint64_t took = q->since ? now - q->since : 0;
    q->since = now;
    if (done)
        q->grace = took / done < CUDA_QUIET_NS ? GM_MIN(2 * took + 1, CUDA_QUIET_GRACE_NS) : 0;
}

/* The same: what the queue is at takes a part of that for which somebody might have to wait. */
static inline void cuda_quiet_note_long(struct dev_queue *q, uint64_t now)
{
    if (GM_UNLIKELY((q->seen < q->marked || q->drains) && now - q->since > q->gpu->dev->held_ns / CUDA_QUIET_PART))
        q->gpu->stood = now;
}

/* `gpus`: contexts, a CUDA_GPU_BIT for each. Any thread, no lock held, as the following. */
bool cuda_is_quiet(struct dev *d, uint32_t gpus);
/* The same for one who has waited since `begun` (gm_now_ns). */
bool cuda_is_quiet_for(struct dev *d, uint32_t gpus, uint64_t begun);
/* Waits until they are quiet. False: the client is about to be stopped, and whatever it wanted need not be done. */
GM_MUST_CHECK bool cuda_quiet_wait(struct dev_client *c, uint32_t gpus);
/* The same until `deadline`, for one who has waited since `begun` (gm_now_ns); `c` is NULL if it is nobody's. */
bool cuda_quiet_wait_until(struct dev *d, const struct dev_client *c, uint32_t gpus, uint64_t begun,
                           uint64_t deadline);
/* Waits until nothing of the client is with the driver there, as far as it has been handed over; the driver is asked. False: not before `deadline`, or the client is about to be
 * stopped. Its thread. */
GM_MUST_CHECK bool cuda_quiet_wait_for_own(struct dev_client *c, uint32_t gpus, uint64_t deadline);
/* Both: what of its own takes so long that it is no longer new is waited for as others' is. */
GM_MUST_CHECK bool cuda_quiet_wait_own_too(struct dev_client *c, uint32_t gpus);
/* Nothing is to be waited for any more: the client is about to be stopped, or all of them are. */
bool cuda_is_leaving(const struct dev *d, const struct dev_client *c);
/* Something there has been going on for at least so long. */
bool cuda_is_held(struct dev *d, uint32_t gpus, uint64_t ns);
/* For so long no operation on it took long. */
bool cuda_is_calm(struct cuda_gpu *g, uint64_t ns);

/* The queue's client is gone: what the driver still has of it others wait for until it is over. */
void cuda_quiet_drains(struct dev_queue *q, bool drains);

/* Has clients hand over nothing more, until none has anything in flight: then the context can go without anybody's loss. False, and they
 * go on, if that does not come soon. What the gone have in flight does not count. */
bool cuda_quiet_freeze(struct dev *d);

/* Around the call: meanwhile the watch asks nothing of the GPUs, or it would wait, too, and nobody would hear of what is done, on whatever GPU. */
void cuda_wait_begin(struct dev *d, uint32_t gpus);
void cuda_wait_end(struct dev *d, uint32_t gpus);

#endif
