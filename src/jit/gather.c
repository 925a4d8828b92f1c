/*
 * Instructions for which lanes of a warp come together, in kernels whose lanes wait for other
 * threads. Some of the lanes that the instruction names may be parked (park.c) when others come to
 * it. Those are parked, too, and look again whenever lanes come, and in each turn of the warp,
 * until all that are named are there. The instruction begins a block for that. Lanes that wait for
 * their warp (bar.warp.sync) may do so at different places; the last that comes lets all go on.
 *
 * Lanes may be named that never come: they wait at another such place, or at a barrier. If nobody
 * of the warp can go on otherwise, all that are parked in such places go on as they are.
 */
#include <errno.h>
#include <stdlib.h>

#include "jit/gen.h"

/* More of them would make the code much larger than the kernel. */
#define MOST_PLACES 256u

static bool gathers(const struct ir_instr *i)
{
    return (ir_ops[i->op].properties & IR_P_CROSS_LANE) &&
           (i->flags & IR_F_SYNC || i->op == IR_OP_BARWARP);
}

static const struct ir_src *members_of(const struct ir_instr *i)
{
    return &i->src[i->src_count - 1];
}

static bool same_members(const struct ir_src *a, const struct ir_src *b)
{
    return a && a->kind == b->kind && a->index == b->index && a->bits == b->bits;
}

static bool writes(const struct ir_instr *i, const struct ir_src *s)
{
    bool found = i->dst_pred == s->index;
    for (unsigned d = 0; d < i->dst_count; d++)
        found |= i->dst[d] == s->index;
    return s->kind == IR_SRC_REG && found;
}

bool jit_gathers(const struct ir_fn *fn, const struct ir_analysis *a)
{
    for (uint32_t n = 0; n < a->order_count; n++) {
        const struct ir_block *b = &fn->blocks[a->order[n]];
        const struct ir_list *f = &a->blocks[a->order[n]].frontier;
        bool waits = false, found = false;
        for (uint32_t k = 0; k < f->count; k++)
            waits |= a->blocks[a->pool[f->first + k]].polls;
        for (uint32_t k = 0; k < b->count && waits; k++)
            found |= gathers(&fn->instrs[b->first + k]);
        if (found)
            return true;
    }
    return false;
}

/* Marks the instructions that have to begin a block: the first in its block of those that name the
 * same lanes, since these stay together from there on. Returns their number. */
static uint32_t mark_places(const struct ir_fn *fn, bool *begins)
{
    uint32_t places = 0;
    for (uint32_t b = 0; b < fn->block_count; b++) {
        const struct ir_src *here = NULL;
        for (uint32_t n = fn->blocks[b].first; n < fn->blocks[b].first + fn->blocks[b].count; n++) {
            const struct ir_instr *i = &fn->instrs[n];
            if (gathers(i) && !same_members(here, members_of(i))) {
                begins[n] = true;
                places++;
                here = i->guard == IR_NONE ? members_of(i) : NULL;
            }
            if (here && writes(i, here))
                here = NULL;
        }
    }
    return places;
}

/* The blocks of `fn`, cut before each instruction that begins one: into `blocks`, and their
 * successors into `succ`. number[b]: what block b has become, or its first part. */
static void cut(const struct ir_fn *fn, const bool *begins, struct ir_block *blocks, uint32_t *succ,
                uint32_t *number)
{
    uint32_t count = 0, more = fn->succ_count;
    for (uint32_t b = 0; b < fn->block_count; b++) {
        const struct ir_block *old = &fn->blocks[b];
        number[b] = count;
        blocks[count] = *old;
        for (uint32_t n = 1; n < old->count; n++) {
            if (!begins[old->first + n])
                continue;
            struct ir_block *part = &blocks[count++];
            part->count = old->first + n - part->first;
            part->succ_first = more;
            part->succ_count = 1;
            succ[more++] = count;
            blocks[count] = *old;
            blocks[count].first = old->first + n;
            blocks[count].count = old->count - n;
        }
        count++;
    }
    for (uint32_t s = 0; s < fn->succ_count; s++)
        succ[s] = number[fn->succ[s]];
}

static void replace(struct ir_fn *fn, struct ir_block *blocks, uint32_t *succ, uint32_t parts,
                    const uint32_t *number)
{
    for (uint32_t n = 0; n < fn->instr_count; n++)
        if (fn->instrs[n].op == IR_OP_BRA)
            fn->instrs[n].target = number[fn->instrs[n].target];
    free(fn->blocks);
    free(fn->succ);
    fn->blocks = blocks;
    fn->succ = succ;
    fn->block_count += parts;
    fn->succ_count += parts;
}

int jit_cut_at_gatherings(struct ir_fn *fn, bool **polls, bool **meets)
{
    bool *begins = calloc(fn->instr_count + 1u, sizeof(*begins));
    uint32_t places = begins ? mark_places(fn, begins) : 0, parts = places;
    for (uint32_t b = 0; b < fn->block_count && begins; b++)
        parts -= begins[fn->blocks[b].first];
    uint32_t count = fn->block_count + parts;
    struct ir_block *blocks = calloc(count + 1u, sizeof(*blocks));
    uint32_t *succ = calloc(fn->succ_count + parts + 1u, sizeof(*succ));
    uint32_t *number = calloc(fn->block_count + 1u, sizeof(*number));
    bool *new_polls = calloc(count + 1u, sizeof(bool)),
         *new_meets = calloc(count + 1u, sizeof(bool));
    bool memory = begins && blocks && succ && number && new_polls && new_meets;
    if (memory && places <= MOST_PLACES) {
        cut(fn, begins, blocks, succ, number);
        for (uint32_t b = 0; b < fn->block_count; b++)
            new_polls[number[b]] = (*polls)[b];
        replace(fn, blocks, succ, parts, number);
        for (uint32_t b = 0; b < count; b++)
            new_meets[b] = begins[fn->blocks[b].first];
        bool *old_polls = *polls;
        *polls = new_polls;
        *meets = new_meets;
        new_polls = old_polls;
        new_meets = NULL;
    } else {
        free(blocks);
        free(succ);
    }
    free(begins);
    free(number);
    free(new_polls);
    free(new_meets);
    return memory ? 0 : -ENOMEM;
}

bool jit_has_gatherings(const struct jit_gen *g)
{
    bool found = false;
    for (uint32_t n = 0; n < g->a->order_count; n++)
        found |= g->a->blocks[g->a->order[n]].meets;
    return found;
}

/* --- code ------------------------------------------------------------------------------------- */

static LLVMValueRef load(struct jit_gen *g, LLVMValueRef from)
{
    return LLVMBuildLoad2(g->b, g->i32, from, "");
}

/* Lanes of `here` that miss none of the lanes which they name. `*members`: what those name. */
static LLVMValueRef complete_lanes(struct jit_gen *g, LLVMValueRef here, LLVMValueRef elsewhere,
                                   LLVMValueRef *members)
{
    const struct ir_src *s = members_of(g->i);
    LLVMValueRef come = LLVMBuildOr(g->b, here, elsewhere, "");
    LLVMValueRef away = LLVMBuildAnd(g->b, load(g, g->alive), LLVMBuildNot(g->b, come, ""), "");
    bool vec = jit_src_varies(g, s);
    LLVMValueRef named = jit_src(g, s, IR_U32, vec), zero = LLVMConstNull(g->i32);
    away = LLVMBuildAnd(g->b, named, vec ? jit_splat(g, away) : away, "");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, away, LLVMConstNull(LLVMTypeOf(away)), "");
    LLVMValueRef lanes = vec ? LLVMBuildAnd(g->b, here, jit_bits(g, none), "")
                             : LLVMBuildSelect(g->b, none, here, zero, "");
    *members = vec ? jit_reduce(g, named, lanes, IR_ATOM_OR, false)
                   : LLVMBuildSelect(g->b, none, named, zero, "");
    return lanes;
}

LLVMValueRef jit_gather(struct jit_gen *g, LLVMValueRef here)
{
    LLVMValueRef lanes = jit_parked_here(g), freed = jit_freed_here(g), members;
    LLVMValueRef elsewhere = LLVMConstNull(g->i32);
    bool syncs = g->i->op == IR_OP_BARWARP;
    here = LLVMBuildOr(g->b, here, load(g, lanes), "");
    LLVMBuildStore(g->b, elsewhere, lanes);
    if (syncs)
        elsewhere = jit_parked_at_syncs(g);
    LLVMValueRef ready = complete_lanes(g, here, elsewhere, &members);
    if (syncs)
        jit_free_at_syncs(g, members);
    ready = LLVMBuildOr(g->b, ready, load(g, freed), "");
    if (g->guard) { /* those for which it does not hold need not wait */
        LLVMValueRef not = LLVMBuildNot(g->b, jit_bits(g, jit_as_vec(g, g->guard)), "");
        ready = LLVMBuildOr(g->b, ready, not, "");
    }
    ready = LLVMBuildAnd(g->b, ready, here, "");
    LLVMBuildStore(g->b, LLVMConstNull(g->i32), freed);
    LLVMBuildStore(g->b, LLVMBuildAnd(g->b, here, LLVMBuildNot(g->b, ready, ""), ""), lanes);
    return ready;
}
