/*
 * Admission: when a call is made that wants a context idle.
 *
 * Some calls of the driver return only when nothing runs in their context, and most of them keep a
 * lock meanwhile without which nobody launches anything there; the context is everybody's. Which
 * calls do that stands in driver.h, as the class of each.
 *
 * So such a call is made at a safe point of the context. Clients' threads hand over nothing more to
 * it, what is in flight there ends, the call finds it idle and is short, and all go on. A safe
 * point is tried only when all that is in flight is likely to end within CUDA_REST_NS: each queue
 * has a pace, the mean time that its operations took lately, and so a predicted rest. Where the
 * prediction was wrong the safe point is given up soon after that. All who wait when it is there
 * have it together: what stops everybody is done for all of them at once. What a client does that
 * gets none is decided in settle.c.
 *
 * Predictions rest on completion words, which clients can write. Whether the context is idle the
 * driver says, for each stream that has been used since it was last asked: so no kernel is hidden.
 *
 * A client's thread says that it is handing over ("its hands are on") with each operation until the
 * ring has run dry, in a word of its own; and its client says which contexts it uses. A thread that
 * wants a safe point closes the contexts, then waits for those words. Either side writes first and
 * looks then, so one of both sees the other.
 */
#ifndef GMUX_DEVICE_CUDA_ADMIT_H
#define GMUX_DEVICE_CUDA_ADMIT_H

#include "base/clock.h"
#include "device/cuda/state.h"

/* What is in flight is likely to end within this, or no safe point is tried (two kernels of 5 ms
 * are waited for); it is given up after a third more. */
#define CUDA_REST_NS (12 * GM_NS_PER_MS)
/* As above, for the safe points at which clients come back from the fallback context. */
#define CUDA_RETURNS_NS (500 * GM_NS_PER_MS)
/* An operation of a queue without a pace, or that has taken longer than twice its pace, may be long
 * from then on. */
#define CUDA_UNKNOWN_NS (5 * GM_NS_PER_MS)

/* The watch, with dev->lock, for a queue that is active: so many operations more are done (0:
 * none). */
static inline void cuda_pace_note(struct dev_queue *q, uint64_t now, uint64_t done)
{
    if (GM_LIKELY((done == 0 || q->drains) && q->since))
        return;
    uint64_t took = done && q->since ? (now - q->since) / done : 0;
    q->pace = !took ? q->pace : q->pace ? (3 * q->pace + took) / 4 : took;
    q->since = now;
}

/* --- questions; any thread, no lock held. `gpus`: contexts, a CUDA_GPU_BIT for each ----------- */

/* All that is in flight there is likely to end soon. */
bool cuda_is_quiet(struct dev *d, uint32_t gpus);
/* Nothing is to be waited for any more: the client is about to be stopped, or all of them are. */
bool cuda_is_leaving(const struct dev *d, const struct dev_client *c);

/* The calling thread sleeps for so long. */
void cuda_nap(uint64_t ns);
/* Nobody waits: for tests. */
#define CUDA_NEVER ((uint64_t)INT64_MAX)

/* --- safe points; any thread, no lock held; the client's hands are off. `c`: whose call it is;
 * NULL: nobody's --- */

/* True: the contexts are idle, and stay so until cuda_admit_end(), which must follow soon. False:
 * not now. */
GM_MUST_CHECK bool cuda_admit_try(struct dev *d, struct dev_client *c, uint32_t gpus);
/* As above, waiting until `deadline` (gm_now_ns). False: not before, or the client is about to be
 * stopped. */
GM_MUST_CHECK bool cuda_admit_wait(struct dev *d, struct dev_client *c, uint32_t gpus,
                                   uint64_t deadline);
/* As above, for clients that come back from the fallback context: what is in flight may take
 * longer, CUDA_RETURNS_NS, and such safe points are seldom. Until it ends others may join it. */
GM_MUST_CHECK bool cuda_admit_return(struct dev *d, uint32_t gpus, uint64_t deadline);
void cuda_admit_end(struct dev *d, uint32_t gpus);

/* --- the client's thread, or who stands in for it --------------------------------------------- */

/* It hands over from now on. False: there is a safe point of a context that it uses. */
bool cuda_hands_try(struct dev_client *c);
/* As above, waiting until that is over. */
void cuda_hands_on(struct dev_client *c);
/* It hands over nothing until the next of those. */
static inline void cuda_hands_off(struct dev_client *c)
{
    atomic_store_explicit(&c->handing, false, memory_order_release);
}
/* In the middle of handing over it waits for something else; and goes on. */
void cuda_hands_away(struct dev_client *c);
void cuda_hands_back(struct dev_client *c);
/* Waits until nothing of the client is with the driver there, as far as it has been handed over;
 * the driver is asked. False: not before `deadline`, or the client is about to be stopped. */
GM_MUST_CHECK bool cuda_own_wait(struct dev_client *c, uint32_t gpus, uint64_t deadline);

/* --- the end of a client ---------------------------------------------------------------------- */

/* The queue's client is gone: what the driver still has of it others wait for until it is over. */
void cuda_drains(struct dev_queue *q, bool drains);
/* --- calls of the driver ---------------------------------------------------------------------- */

/* One that may wait for what runs in `gpus`, as its class says (driver.h): CUresult. Meanwhile the
 * watch asks nothing of those GPUs, or it would wait, too, and nobody would hear of what is done,
 * on whatever GPU. */
#define CUDA_CALL(d, gpus, name, ...)                                                              \
    cuda_call_end(d, gpus,                                                                         \
                  (cuda_call_begin(d, gpus, (enum cuda_call_class)CUDA_CLASS_##name),              \
                   (d)->api.name(__VA_ARGS__)))
void cuda_call_begin(struct dev *d, uint32_t gpus, enum cuda_call_class class);
CUresult cuda_call_end(struct dev *d, uint32_t gpus, CUresult r);

#endif
