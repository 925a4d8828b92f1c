/*
 * Before a call that wants a context idle (admit.h): the client waits for a safe point, and may
 * have to change to the fallback context instead (fallback.h).
 */
#ifndef GMUX_DEVICE_CUDA_SETTLE_H
#define GMUX_DEVICE_CUDA_SETTLE_H

#include "device/cuda/state.h"

/* How long a load waits until its client goes to the fallback context because of a long operation:
 * a program that has just begun, and any other one. */
#define CUDA_HELD_MIN_NS (10 * GM_NS_PER_MS)
#define CUDA_HELD_NS     (250 * GM_NS_PER_MS)
/* How long it waits where there are only short ones, or where it could not come back. */
#define CUDA_STAYS_NS GM_NS_PER_S

enum cuda_move {
    CUDA_STAYS,     /* the client does not go to the fallback context */
    CUDA_MOVES,     /* it may go */
    CUDA_MOVES_LATE /* it could not come back, so it waits for CUDA_STAYS_NS before it goes */
};

/* Waits for a safe point of `g`, which lasts until cuda_settled(), or goes to another context. The
 * result is the context that the client is in, which is current. NULL: the client is about to be
 * stopped. The client's thread. */
struct cuda_gpu *cuda_settle(struct dev_client *c, struct cuda_gpu *g, enum cuda_move move);
void cuda_settled(struct dev_client *c, struct cuda_gpu *g);
/* As cuda_settle(), for calls that have the same effect in both contexts, so that the client stays
 * where it is. cuda_admit_end() follows. Any thread. */
struct cuda_gpu *cuda_fallback_or_first(struct dev_client *c, uint32_t device);

/* Until when a client waits that has waited since `begun`: a program that begins goes soon, one
 * that has been there for long rather waits than that it goes. */
uint64_t cuda_patience(const struct dev_client *c, uint64_t begun);

static inline struct cuda_gpu *cuda_other_context(struct cuda_gpu *g)
{
    return g->is_fallback ? &g->dev->gpus[g->index] : &g->dev->fallbacks[g->index];
}

#endif
