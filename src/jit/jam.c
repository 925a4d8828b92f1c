/*
 * Several warps in one call of a region's function. A warp's sum of products is a chain of
 * instructions that wait for each other; warps side by side fill the gaps, and what is the same for
 * all of them, a row of a tile in shared memory, is loaded once. Each instruction is emitted for
 * one warp after the other, which has registers of its own (struct jit_warp).
 *
 * This is for regions without divergence, of blocks whose warps all take the same way and have all
 * their lanes.
 */
#include "jit/gen.h"
#include "jit/target.h"

#define INSTRS_MAX 200 /* instructions of a region */
#define CHAIN_MIN  8   /* instructions on floating point that make it worth while */

/* Counts how many vector registers the region's values take at most, of each warp alone and shared
 * by warps. */
static void count_pressure(const struct jit_gen *g, const struct ir_region *r, unsigned *own,
                           unsigned *shared)
{
    *own = *shared = 0;
    for (uint32_t k = 0; k < r->blocks.count; k++) {
        uint32_t b = g->a->pool[r->blocks.first + k];
        unsigned here[2] = { 0, 0 };
        for (uint32_t reg = 0; reg < g->fn->reg_count; reg++) {
            bool live = ir_live_in(g->a, b, reg) || ir_live_out(g->a, b, reg);
            if (live && jit_shape(g, reg) == IR_VARYING && g->fn->regs[reg].type != IR_PRED)
                here[g->a->regs[reg].block_uniform] +=
                    ir_types[g->fn->regs[reg].type].size * g->lanes;
        }
        *own = GM_MAX(*own, here[0]);
        *shared = GM_MAX(*shared, here[1]);
    }
    unsigned bytes = g->target->avx512 ? 64 : 32;
    *own = (*own + bytes - 1) / bytes;
    *shared = (*shared + bytes - 1) / bytes;
}

static bool is_chain(const struct jit_gen *g, const struct ir_instr *i)
{
    return (i->op == IR_OP_FMA || i->op == IR_OP_MAD || i->op == IR_OP_ADD || i->op == IR_OP_MUL) &&
           ir_type_is_float((enum ir_type)i->type) && jit_shape(g, i->dst[0]) == IR_VARYING;
}

/* The region can run several warps side by side, and that is faster. */
static bool is_worth(const struct jit_gen *g, uint32_t r)
{
    const struct ir_region *region = &g->a->regions[r];
    unsigned chain = 0, instrs = 0, outside = 0;
    if (!region->jammable || !g->full[r].stays)
        return false;
    for (uint32_t k = 0; k < region->blocks.count; k++) {
        uint32_t b = g->a->pool[region->blocks.first + k];
        const struct ir_block *block = &g->fn->blocks[b];
        if (g->a->blocks[b].masked || g->a->blocks[b].divergent || g->a->blocks[b].early_exit)
            return false;
        instrs += block->count;
        for (uint32_t n = block->first; n < block->first + block->count; n++) {
            const struct ir_instr *i = &g->fn->instrs[n];
            if (i->guard != IR_NONE && jit_shape(g, i->guard) != IR_UNIFORM)
                return false;
            if (ir_ops[i->op].properties & (IR_P_CROSS_LANE | IR_P_TEXTURE) ||
                i->order != IR_ORDER_WEAK)
                return false;
            chain += is_chain(g, i);
            outside += (i->op == IR_OP_LD || i->op == IR_OP_ST) && i->space != IR_SPACE_SHARED &&
                       i->space != IR_SPACE_PARAM;
        }
    }
    return instrs <= INSTRS_MAX && chain >= CHAIN_MIN && chain > 4 * outside;
}

/* All warps go from region to region together, if the program has no races. */
static bool in_step(const struct jit_gen *g)
{
    int64_t only;
    for (uint32_t r = 0; r < g->a->region_count; r++)
        if (!g->a->regions[r].jammable && !jit_has_one_result(g, r, &only))
            return false;
    return true;
}

void jit_choose_copies(struct jit_gen *g)
{
    unsigned registers = g->target->avx512 ? 26 : 12, own, shared;
    uint32_t warps = g->threads / g->lanes;
    g->jams = false;
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        g->full[r].copies = 1;
        if (!g->has_whole || g->a->region_count < 2 || !g->full_warps || !is_worth(g, r) ||
            !in_step(g))
            continue;
        count_pressure(g, &g->a->regions[r], &own, &shared);
        own = GM_MAX(own, 1u);
        while (g->full[r].copies < JIT_COPIES_MAX && warps % (2 * g->full[r].copies) == 0 &&
               2 * g->full[r].copies * own + shared + 2 <= registers &&
               2 * g->full[r].copies * g->lanes <= 128)
            g->full[r].copies *= 2;
        g->jams |= g->full[r].copies > 1;
    }
}
