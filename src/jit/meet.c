/* Finds kernels that cannot be compiled because lanes of a warp would meet in an instruction before
 * all of them are there. The order of blocks prevents that if it can (ir/order.c). Other kernels
 * are left to the interpreter, which waits for the lanes. */
#include "jit/gen.h"

#include <stdlib.h>
#include <string.h>

static bool polls_in_frontier(const struct jit_gen *g, uint32_t block)
{
    const struct ir_list *f = &g->a->blocks[block].frontier;
    for (uint32_t k = 0; k < f->count; k++)
        if (g->a->blocks[g->a->pool[f->first + k]].polls)
            return true;
    return false;
}

/* Why some of the lanes that should meet in the block may be missing; NULL: none is. */
static const char *who_is_missing(const struct jit_gen *g, uint32_t block)
{
    const struct ir_block_info *b = &g->a->blocks[block];
    if (g->a->parking && !b->meets && polls_in_frontier(g, block))
        return "while some wait for other threads";
    if (b->frontier.count != 0 && jit_in_tangle(g->fn, g->a, block))
        return "in a loop with several entrances";
    /* Lanes that call the function from elsewhere come later. */
    return b->function != 0 && b->frontier.count != 0 ? "in a function that others call" : NULL;
}

/* --- waits for the warp in places of their own ------------------------------------------------ */

static const struct ir_instr *last_of(const struct jit_gen *g, uint32_t block)
{
    const struct ir_block *b = &g->fn->blocks[block];
    return &g->fn->instrs[b->first + b->count - 1];
}

static bool syncs(const struct jit_gen *g, uint32_t block)
{
    return last_of(g, block)->op == IR_OP_BARWARP;
}

/* Blocks that lanes come to from here without going back in a loop. */
static void mark_ahead(const struct jit_gen *g, uint32_t from, uint8_t *ahead)
{
    uint32_t first = g->a->blocks[from].priority;
    memset(ahead, 0, g->fn->block_count);
    ahead[from] = 1;
    for (uint32_t n = first; n < g->a->order_count; n++) {
        const struct ir_block *b = &g->fn->blocks[g->a->order[n]];
        for (uint32_t s = 0; s < b->succ_count && ahead[g->a->order[n]]; s++)
            if (g->a->blocks[g->fn->succ[b->succ_first + s]].priority > n)
                ahead[g->fn->succ[b->succ_first + s]] = 1;
    }
}

/* Lanes that have parted may wait for each other in two loops, and no order of blocks is right for
 * that. `ahead` belongs to the first block. */
static bool in_two_loops(const struct jit_gen *g, uint32_t x, uint32_t y, const uint8_t *ahead)
{
    const struct ir_src *a = &last_of(g, x)->src[0], *b = &last_of(g, y)->src[0];
    bool same = a->kind == b->kind && a->index == b->index && a->bits == b->bits;
    return same && !ahead[y] && g->a->blocks[x].priority < g->a->blocks[y].priority &&
           g->a->blocks[x].loop != g->a->blocks[y].loop;
}

#define MOST_STEPS (1u << 24)

static void check_syncs(struct jit_gen *g)
{
    uint8_t *ahead = malloc(g->fn->block_count);
    uint64_t steps = 0;
    for (uint32_t n = 0; n < g->a->order_count && ahead && steps < MOST_STEPS; n++) {
        uint32_t x = g->a->order[n];
        if (!syncs(g, x) || !g->a->blocks[x].masked)
            continue;
        mark_ahead(g, x, ahead);
        steps += g->a->order_count;
        for (uint32_t k = n + 1; k < g->a->order_count; k++)
            if (syncs(g, g->a->order[k]) && in_two_loops(g, x, g->a->order[k], ahead))
                jit_unsupported(g, "line %u: lanes of a warp wait for each other in two loops",
                                last_of(g, x)->line);
    }
    free(ahead);
}

void jit_check_meetings(struct jit_gen *g)
{
    check_syncs(g);
    for (uint32_t n = 0; n < g->a->order_count; n++) {
        const struct ir_block *b = &g->fn->blocks[g->a->order[n]];
        const char *why = who_is_missing(g, g->a->order[n]);
        for (uint32_t k = 0; k < b->count && why; k++) {
            const struct ir_instr *i = &g->fn->instrs[b->first + k];
            if ((ir_ops[i->op].properties & IR_P_CROSS_LANE) && i->op != IR_OP_ACTIVEMASK)
                jit_unsupported(g, "line %u: lanes of a warp meet %s", i->line, why);
        }
    }
}
