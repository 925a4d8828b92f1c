/*
 * Who hears of what happens below.
 */
#include "device/cuda/hooks.h"

#include "device/cuda/chain.h"
#include "device/cuda/fallback.h"
#include "device/cuda/run.h"

static void place_goes(struct dev_client *c, uint64_t number)
{
    cuda_runs_leave(c, number);
    cuda_chains_leave(c, number);
}

const struct cuda_hooks cuda_hooks = {
    .client_waits = cuda_hand_over,
    .client_held_up = cuda_fallback_move,
    .place_goes = place_goes,
};
