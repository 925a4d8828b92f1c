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

static const struct ir_instr *last_of(const struct ir_fn *fn, uint32_t block)
{
    const struct ir_block *b = &fn->blocks[block];
    return &fn->instrs[b->first + b->count - 1];
}

/* Lanes wait for their warp behind the block, and others could pass it before them. */
static bool is_passed(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t block)
{
    const struct ir_block_info *b = &a->blocks[block];
    return last_of(fn, block)->op == IR_OP_BARWARP && b->masked && !b->meets;
}

/* Marks what lanes come to from marked blocks without going back in a loop. */
static void spread_ahead(const struct ir_fn *fn, const struct ir_analysis *a, uint8_t *ahead)
{
    for (uint32_t n = 0; n < a->order_count; n++) {
        const struct ir_block *b = &fn->blocks[a->order[n]];
        for (uint32_t s = 0; s < b->succ_count && ahead[a->order[n]]; s++)
            if (a->blocks[fn->succ[b->succ_first + s]].priority > n)
                ahead[fn->succ[b->succ_first + s]] = 1;
    }
}

static bool same_lanes(const struct ir_fn *fn, uint32_t x, uint32_t y)
{
    const struct ir_src *a = &last_of(fn, x)->src[0], *b = &last_of(fn, y)->src[0];
    return last_of(fn, y)->op == IR_OP_BARWARP && a->kind == b->kind && a->index == b->index &&
           a->bits == b->bits;
}

/* Whether others come to wait in another loop while lanes do behind `x`, which will not come there.
 * `ahead` has place for two sets of blocks. */
static bool others_wait(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t x,
                        uint8_t *ahead)
{
    uint8_t *others = ahead + fn->block_count;
    const struct ir_list *f = &a->blocks[x].frontier;
    memset(ahead, 0, 2 * (size_t)fn->block_count);
    ahead[x] = 1;
    spread_ahead(fn, a, ahead);
    for (uint32_t k = 0; k < f->count; k++)
        others[a->pool[f->first + k]] = 1;
    spread_ahead(fn, a, others);
    for (uint32_t n = a->blocks[x].priority + 1; n < a->order_count; n++) {
        uint32_t y = a->order[n];
        if (others[y] && !ahead[y] && a->blocks[y].loop != a->blocks[x].loop &&
            same_lanes(fn, x, y))
            return true;
    }
    return false;
}

#define MOST_STEPS (1u << 24)

uint32_t jit_find_two_loops(const struct ir_fn *fn, const struct ir_analysis *a)
{
    uint8_t *ahead = malloc(2 * (size_t)fn->block_count + 1);
    uint64_t steps = 0;
    uint32_t line = 0;
    for (uint32_t n = 0; n < a->order_count && ahead && !line && steps < MOST_STEPS; n++) {
        uint32_t x = a->order[n];
        if (!is_passed(fn, a, x))
            continue;
        steps += 2 * (uint64_t)a->order_count;
        if (others_wait(fn, a, x, ahead))
            line = last_of(fn, x)->line;
    }
    free(ahead);
    return line;
}

void jit_check_meetings(struct jit_gen *g)
{
    uint32_t line = jit_find_two_loops(g->fn, g->a);
    if (line)
        jit_unsupported(g, "line %u: lanes of a warp wait for each other in two loops", line);
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
