/*
 * Blocks side by side in one call. A block that is 32 threads wide and 8 high touches a short piece
 * of each of eight rows of a matrix, and its neighbour goes on with each of them: too short for
 * processors to see that a row is read. So the neighbours in x take turns: the first line of
 * threads of each, then the second one's. What is the same for all of them is computed once.
 *
 * This is for kernels whose warps run to their end one after the other anyway. Taking turns is for
 * those without loops that access what lies side by side: others find in caches what the block's
 * line before them has read.
 */
#include "jit/gen.h"

#define ROW_THREADS 1024u /* threads in a line of all blocks */

/* A line of threads accesses lines of memory, each once. */
static bool in_lines(const struct jit_gen *g, uint32_t at)
{
    const struct ir_instr *i = &g->fn->instrs[at];
    const struct ir_instr_info *info = &g->a->instrs[at];
    if (i->space == IR_SPACE_PARAM)
        return true;
    if (i->space != IR_SPACE_GLOBAL && i->space != IR_SPACE_CONST && i->space != IR_SPACE_GENERIC)
        return false;
    return info->address == IR_UNIFORM ||
           (info->address == IR_AFFINE && info->address_stride > 0 && info->address_stride <= 16);
}

static bool takes_turns(const struct jit_gen *g)
{
    for (uint32_t b = 0; b < g->fn->block_count; b++)
        if (g->a->blocks[b].priority != IR_NONE && g->a->blocks[b].loop_depth)
            return false;
    for (uint32_t at = 0; at < g->fn->instr_count; at++) {
        const struct ir_instr *i = &g->fn->instrs[at];
        unsigned kind = ir_ops[i->op].properties;
        if ((kind & (IR_P_LOAD | IR_P_STORE | IR_P_TEXTURE | IR_P_EFFECT)) &&
            ((i->op != IR_OP_LD && i->op != IR_OP_ST) || !in_lines(g, at)))
            return false;
    }
    return true;
}

static bool uses_shared(const struct jit_gen *g)
{
    for (uint32_t at = 0; at < g->fn->instr_count; at++)
        if (g->fn->instrs[at].space == IR_SPACE_SHARED)
            return true;
    return g->fn->shared_static || g->fn->uses_dynamic_shared;
}

void jit_choose_row(struct jit_gen *g)
{
    uint32_t x = g->ntid[0];
    g->row = (struct jit_row) { .lines = 1 };
    if (g->a->region_count != 1 || g->a->parking || !g->threads || uses_shared(g))
        return;
    g->row.blocks = ROW_THREADS / x;
    bool whole = x % g->lanes == 0 && g->threads % x == 0,
         several = g->lanes % x == 0 && g->threads % g->lanes == 0;
    if ((whole || several) && takes_turns(g))
        g->row.lines = g->threads / GM_MAX(x, g->lanes);
}
