/*
 * Runs one block: each warp in turn, until its lanes have exited or wait at a barrier; then again
 * the warps whose barrier is complete, and those that gave up their turn.
 */
#include <fenv.h>
#include <string.h>

#include "device/soft/interp/code.h"
#include "device/soft/ir/analysis.h"

static void warp_begin(struct interp_run *r, uint32_t index)
{
    const struct interp_program *p = r->program;
    struct soft_block *b = r->block;
    uint8_t *frame = b->save + index * b->save_stride;
    uint32_t threads = GM_MIN(b->threads - index * SOFT_WARP, (uint32_t)SOFT_WARP);
    memset(frame, 0, p->clear_all ? p->frame_bytes : p->slots_at);
    for (uint32_t k = 0; k < p->clear_count; k++)
        memset(frame + p->clear[k], 0, INTERP_SLOT);
    struct interp_warp *w = (struct interp_warp *)(void *)frame;
    w->alive = threads == SOFT_WARP ? UINT32_MAX : (1u << threads) - 1;
    w->low = w->last = 0;
    w->looks = IR_PATIENCE;
    interp_waiting(p, frame)[0] = w->alive;
}

static void warp_run(struct interp_run *r, uint32_t index)
{
    r->warp_index = index;
    r->first_thread = index * SOFT_WARP;
    r->base[0] = r->block->save + index * r->block->save_stride;
    r->warp = (struct interp_warp *)(void *)r->base[0];
    interp_turn_begin(r);
    interp_run_insns(interp_next_waiting(r), r);
    interp_turn_end(r);
}

enum soft_outcome interp_run_block(const struct soft_code *code, struct soft_block *b)
{
    const struct interp_program *p = &((const struct interp_code *)code)->program;
    struct interp_run r = {
        .base = { NULL, p->consts }, .block = b, .program = p, .alive_threads = b->threads
    };
    /* A block that was left in the middle (by a fault or the watchdog) may have left another
     * rounding mode. */
    fesetround(FE_TONEAREST);
    for (uint32_t k = 0; k < b->warps; k++)
        warp_begin(&r, k);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < b->warps; k++) {
            const struct interp_warp *w = (const void *)(b->save + k * b->save_stride);
            if (w->low == INTERP_NO_BLOCK)
                continue;
            warp_run(&r, k);
            if (r.outcome != SOFT_DONE)
                return r.outcome;
            again |= w->low != INTERP_NO_BLOCK;
            if (r.barriers_used && interp_barriers_release(&r))
                again = true;
        }
    }
    if (r.alive_threads == 0)
        return SOFT_DONE;
    for (uint32_t k = 0; k < b->warps; k++) {
        const struct interp_warp *w = (const void *)(b->save + k * b->save_stride);
        if (w->parked_count) {
            b->fault_address = w->parked[0].id;
            b->fault_thread = k * SOFT_WARP + (uint32_t)__builtin_ctz(w->parked[0].lanes);
            break;
        }
    }
    return SOFT_FAULT_BARRIER;
}
