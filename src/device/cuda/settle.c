/*
 * Waiting for a safe point, and what a client does that gets none: it waits on, or goes to the
 * GPU's other context.
 */
#include "device/cuda/settle.h"

#include "device/cuda/admit.h"
#include "device/cuda/hooks.h"
#include "device/cuda/local.h"

/* A client that cannot go when it has waited long enough tries again after this part of the time.
 */
#define RETRY_PART 8u
/* A program is ready to wait for this part of the time that it has been running. */
#define HELD_PART 16u

uint64_t cuda_patience(const struct dev_client *c, uint64_t begun)
{
    return begun + GM_MIN(c->dev->held_ns, CUDA_HELD_MIN_NS + (begun - c->came) / HELD_PART);
}

enum verdict {
    GO,   /* there is a safe point */
    MOVE, /* to the GPU's other context, in which nothing keeps it */
    WAIT,
    LEAVE /* it is about to be stopped */
};

/* What a client does that wants a context idle. It has waited since `begun`; first it waits once
 * more, until `until`. */
static enum verdict decide(struct dev_client *c, struct cuda_gpu *g, enum cuda_move move,
                           uint64_t begun, uint64_t until)
{
    struct dev *d = c->dev;
    const uint32_t gpus = CUDA_GPU_BIT(g);
    if ((cuda_own_wait(c, gpus, until) || move == CUDA_STAYS) &&
        cuda_admit_wait(d, c, gpus, begun, until))
        return GO;
    if (cuda_is_leaving(d, c))
        return LEAVE;
    const bool late = gm_now_ns() - begun > d->stays_ns;
    const bool moves = late ? move != CUDA_STAYS : move == CUDA_MOVES && cuda_is_long(d, gpus);
    return moves && cuda_is_quiet(d, CUDA_GPU_BIT(cuda_other_context(g))) ? MOVE : WAIT;
}

struct cuda_gpu *cuda_settle(struct dev_client *c, struct cuda_gpu *g, enum cuda_move move)
{
    const struct dev *d = c->dev;
    const uint64_t begun = gm_now_ns();
    uint64_t until = cuda_patience(c, begun);
    enum verdict v;
    cuda_hooks.client_waits(c);
    cuda_hands_away(c);
    while ((v = decide(c, g, move, begun, until)) == MOVE || v == WAIT) {
        if (v == MOVE) {
            cuda_hooks.client_held_up(c, g);
            g = cuda_home(c, g->index);
        }
        until = gm_now_ns() + d->held_ns / RETRY_PART;
    }
    if (v == LEAVE) {
        cuda_hands_back(c);
        return NULL;
    }
    cuda_enter(g);
    cuda_stack_follow(g, cuda_other_context(g));
    return g;
}

void cuda_settled(struct dev_client *c, struct cuda_gpu *g)
{
    cuda_admit_end(c->dev, CUDA_GPU_BIT(g));
    cuda_hands_back(c);
}

struct cuda_gpu *cuda_fallback_or_first(struct dev_client *c, uint32_t device)
{
    struct dev *d = c->dev;
    struct cuda_gpu *g = cuda_home(c, device);
    const uint64_t begun = gm_now_ns();
    uint64_t until = cuda_patience(c, begun);
    while (!cuda_admit_wait(d, c, CUDA_GPU_BIT(g), begun, until)) {
        if (cuda_is_leaving(d, c))
            return NULL;
        until = gm_now_ns() + d->held_ns / RETRY_PART;
        struct cuda_gpu *other = g->is_fallback ? &d->gpus[device] : cuda_fallback_open(g);
        if (other)
            g = other;
    }
    cuda_enter(g);
    return g;
}
