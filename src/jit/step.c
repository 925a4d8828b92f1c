/*
 * Kernels whose threads count on their warp going in step: they store to shared memory and load
 * there what other threads of the warp have stored, without a barrier in between,
 *
 *     s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; ...
 *
 * or overwrite what others have loaded. Sorts and sums were written so before __syncwarp() was, and
 * some are still. On a GPU all 32 threads do one such line before any does the next, and so they do
 * here as long as the code has 32 lanes.
 *
 * The usual forward data flow: what threads may have done since the last barrier, by block.
 */
#include "jit/gen.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* By threads that come to a block, since they passed a barrier. */
enum done { LOADED = 1, STORED = 2, ATOMIC = 4, REACHED = 8 };

/* What the instruction does to shared memory, which generic addresses may mean, too. */
static uint8_t access_of(const struct ir_instr *i, bool generic)
{
    if (i->space != IR_SPACE_SHARED && !(generic && i->space == IR_SPACE_GENERIC))
        return 0;
    if (i->op == IR_OP_ATOM || i->op == IR_OP_RED)
        return ATOMIC;
    unsigned p = ir_ops[i->op].properties;
    return (p & IR_P_LOAD ? LOADED : 0) | (p & IR_P_STORE ? STORED : 0);
}

/* The function makes a generic address of a shared one. */
static bool makes_generic(const struct ir_fn *fn)
{
    for (uint32_t k = 0; k < fn->instr_count; k++) {
        const struct ir_instr *i = &fn->instrs[k];
        if (i->op == IR_OP_CVTA && i->mode == IR_CVTA_FROM && i->space == IR_SPACE_SHARED)
            return true;
    }
    return false;
}

/* What is done at the block's end, if it is `done` at its beginning. *step: an access follows one
 * of another kind. */
static uint8_t pass(const struct ir_fn *fn, uint32_t block, bool generic, uint8_t done, bool *step)
{
    const struct ir_block *b = &fn->blocks[block];
    for (uint32_t k = b->first; k < b->first + b->count; k++) {
        uint8_t access = access_of(&fn->instrs[k], generic);
        *step |= access && (done & ~(access | REACHED));
        done = ir_is_barrier(&fn->instrs[k]) ? REACHED : done | access;
    }
    return done;
}

bool jit_goes_in_step(const struct ir_fn *fn)
{
    GM_AUTO_FREE uint8_t *in = calloc(fn->block_count + 1u, sizeof(*in));
    if (!in)
        return true;
    bool step = false, again = true, generic = makes_generic(fn);
    in[0] = REACHED;
    while (again && !step) {
        again = false;
        for (uint32_t b = 0; b < fn->block_count; b++) {
            uint8_t out = in[b] ? pass(fn, b, generic, in[b], &step) : 0;
            for (uint32_t k = 0; k < fn->blocks[b].succ_count; k++) {
                uint8_t *to = &in[fn->succ[fn->blocks[b].succ_first + k]];
                again |= (*to | out) != *to;
                *to |= out;
            }
        }
    }
    return step;
}
