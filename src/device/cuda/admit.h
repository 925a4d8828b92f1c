/*
 * Admission: when a call is made that wants a context idle.
 *
 * Some calls of the driver return only when nothing runs in their context, and most of them keep a
 * lock meanwhile without which nobody launches anything there; the context is everybody's. Which
 * calls do that stands in driver.h, as the class of each.
 *
 * So such a call is made at a safe point of the context. Clients' threads hand over nothing more to
 * it, what is in flight there ends, the call finds the context idle and is short, and everybody
 * goes on. A safe point is tried only when all that is in flight is likely to end within
 * CUDA_REST_NS. Each queue has a pace, which is the mean time that its operations took lately, and
 * the pace predicts how long the rest will take. If the prediction was wrong, the safe point is
 * given up soon afterwards. All threads that wait have the safe point together, so that everybody
 * is stopped once for all of them. settle.c decides what a client does that gets no safe point.
 *
 * Predictions rest on completion words, which clients can write. But it is the driver who says
 * whether the context is idle: it is asked about each stream that was used since the last time. So
 * a client cannot hide a kernel.
 *
 * A client's thread sets a word of its own with each operation ("its hands are on"), until the ring
 * has run dry. Another word of the client says which contexts it uses. A thread that wants a safe
 * point first closes the contexts and then reads those words; the client's thread first sets its
 * word and then looks whether its contexts are closed. So at least one of them sees the other.
 */
#ifndef GMUX_DEVICE_CUDA_ADMIT_H
#define GMUX_DEVICE_CUDA_ADMIT_H

#include "base/clock.h"
#include "device/cuda/state.h"

/* A safe point is tried if what is in flight is likely to end within this time (two kernels of 5 ms
 * are waited for), or within half of the time that somebody has waited for it, but at most
 * CUDA_REST_MOST_NS. It is given up after a third more. */
#define CUDA_REST_NS      (12 * GM_NS_PER_MS)
#define CUDA_REST_MOST_NS (100 * GM_NS_PER_MS)
/* This bound is for the safe points at which clients come back from the fallback context. */
#define CUDA_RETURNS_NS (500 * GM_NS_PER_MS)
/* An operation that has taken this long may be a long one, if its queue has no pace or it has taken
 * more than twice the pace. */
#define CUDA_UNKNOWN_NS (5 * GM_NS_PER_MS)

/* The watch, with dev->lock: another `done` operations of an active queue are done (0: none). */
static inline void cuda_pace_note(struct dev_queue *q, uint64_t now, uint64_t done)
{
    if (GM_LIKELY((done == 0 || q->drains) && q->since))
        return;
    uint64_t took = done && q->since ? (now - q->since) / done : 0;
    q->pace = !took ? q->pace : q->pace ? (3 * q->pace + took) / 4 : took;
    q->since = now;
}

/* --- questions; any thread, no lock held. `gpus`: contexts, a CUDA_GPU_BIT for each ----------- */

/* Everything that is in flight in these contexts is likely to end within dev->rest_ns. */
bool cuda_is_quiet(struct dev *d, uint32_t gpus);
/* Something in flight there is likely to take longer than dev->rest_most_ns: programs do not wait
 * for its end. */
bool cuda_is_long(struct dev *d, uint32_t gpus);
/* The client is about to be stopped, or all clients are: nobody waits for anything any more. */
bool cuda_is_leaving(const struct dev *d, const struct dev_client *c);

/* The calling thread sleeps for so long. */
void cuda_nap(uint64_t ns);
/* As dev->rest_ns: every context counts as idle, so that nobody waits. Tests use it. */
#define CUDA_NEVER ((uint64_t)INT64_MAX)

/* --- safe points; any thread, no lock held; the client's hands are off. `c`: whose call it is;
 * NULL: nobody's --- */

/* True: the contexts are idle, and stay idle until cuda_admit_end(), which must follow soon. False:
 * there is no safe point now. */
GM_MUST_CHECK bool cuda_admit_try(struct dev *d, struct dev_client *c, uint32_t gpus);
/* Waits for a safe point until `deadline`. `begun`: when the wait began (gm_now_ns, both), of which
 * this may be a part; 0: nobody waits for the call. False: there was none until then, or the client
 * is about to be stopped. */
GM_MUST_CHECK bool cuda_admit_wait(struct dev *d, struct dev_client *c, uint32_t gpus,
                                   uint64_t begun, uint64_t deadline);
/* Waits for a safe point at which clients come back from the fallback context. It waits for longer
 * operations (CUDA_RETURNS_NS), so such safe points are rare. Others may join it until it ends. */
GM_MUST_CHECK bool cuda_admit_return(struct dev *d, uint32_t gpus, uint64_t deadline);
/* What is in flight is short enough for that. */
bool cuda_admit_return_is_near(struct dev *d, uint32_t gpus);
/* Waits until such a safe point may be tried. */
GM_MUST_CHECK bool cuda_admit_return_is_due(struct dev *d, uint32_t gpus, uint64_t deadline);
void cuda_admit_end(struct dev *d, uint32_t gpus);

/* --- the client's thread, or who stands in for it --------------------------------------------- */

/* The client hands over from now on. False: one of its contexts has a safe point. */
bool cuda_hands_try(struct dev_client *c);
/* The client hands over from now on, after a safe point has ended if there is one. */
void cuda_hands_on(struct dev_client *c);
/* The client hands over nothing until cuda_hands_on() or cuda_hands_try(). */
static inline void cuda_hands_off(struct dev_client *c)
{
    atomic_store_explicit(&c->handing, false, memory_order_release);
}
/* Around a wait in the middle of handing over: takes the hands off, and puts them on again if they
 * were on. */
void cuda_hands_away(struct dev_client *c);
void cuda_hands_back(struct dev_client *c);
/* Waits until the driver has done all that the client has handed over to these contexts. False: it
 * had not at `deadline`, or the client is about to be stopped. */
GM_MUST_CHECK bool cuda_own_wait(struct dev_client *c, uint32_t gpus, uint64_t deadline);

/* --- the end of a client ---------------------------------------------------------------------- */

/* With `drains`: the queue's client is gone, and others who want a safe point wait until the driver
 * has done what it still has of the queue, whatever the completion word says. */
void cuda_drains(struct dev_queue *q, bool drains);

/* --- calls of the driver ---------------------------------------------------------------------- */

/* Makes a call that may wait for what runs in `gpus`; its class (driver.h) says so. CUresult.
 * Meanwhile the watch asks the driver nothing about those GPUs: it would wait, too, and then nobody
 * would hear of completions on any GPU. */
#define CUDA_CALL(d, gpus, name, ...)                                                              \
    cuda_call_end(d, gpus,                                                                         \
                  (cuda_call_begin(d, gpus, (enum cuda_call_class)CUDA_CLASS_##name),              \
                   (d)->api.name(__VA_ARGS__)))
void cuda_call_begin(struct dev *d, uint32_t gpus, enum cuda_call_class class);
CUresult cuda_call_end(struct dev *d, uint32_t gpus, CUresult r);

#endif
