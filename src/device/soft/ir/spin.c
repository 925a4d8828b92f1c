/*
 * Whether blocks of a kernel may wait for each other, or for anything else outside: whether there
 * is a loop that reads, again and again, memory that others write. Compilers keep such a read if it
 * is volatile, atomic or has a memory order, or if a fence stands beside it. They may move any
 * other read out of the loop, so programs cannot wait with that.
 *
 * Most loops found in this way wait for nobody (a histogram uses the old values of its atomics).
 * That costs them little: their blocks take turns if they run for long.
 */
#include <stdlib.h>

#include "device/soft/ir/ir.h"

/* What the instructions up to some place contain. */
struct seen {
    uint32_t looks;  /* reads of memory that others may write */
    uint32_t loads;  /* all loads: a fence in the loop makes plain ones such reads */
    uint32_t fences; /* fences whose scope is wider than the block */
};

static bool is_common(const struct ir_instr *i)
{
    return i->space == IR_SPACE_GENERIC || i->space == IR_SPACE_GLOBAL;
}

static void count(struct seen *to, const struct ir_instr *i)
{
    bool fence = i->op == IR_OP_MEMBAR || i->op == IR_OP_FENCE;
    bool load = i->op == IR_OP_LD && is_common(i) && !(i->flags & (IR_F_NC | IR_F_OWN));
    bool atomic = i->op == IR_OP_ATOM && is_common(i) && i->dst_count > 0;
    to->fences += fence && i->scope != IR_SCOPE_CTA;
    to->loads += load;
    to->looks += atomic || (load && i->order != IR_ORDER_WEAK);
}

bool ir_may_wait(const struct ir_fn *fn)
{
    struct seen *before = calloc((size_t)fn->instr_count + 1, sizeof(*before));
    bool found = false;
    /* Without memory to find out, they may. */
    if (!before)
        return true;
    for (uint32_t n = 0; n < fn->instr_count; n++) {
        before[n + 1] = before[n];
        count(&before[n + 1], &fn->instrs[n]);
    }
    for (uint32_t b = 0; b < fn->block_count && !found; b++) {
        const struct ir_block *block = &fn->blocks[b];
        const struct seen *to = &before[block->first + block->count];
        for (uint32_t s = 0; s < block->succ_count; s++) {
            uint32_t target = fn->succ[block->succ_first + s];
            const struct seen *from = &before[fn->blocks[target].first];
            found |= target <= b && (to->looks > from->looks ||
                                     (to->fences > from->fences && to->loads > from->loads));
        }
    }
    free(before);
    return found;
}
