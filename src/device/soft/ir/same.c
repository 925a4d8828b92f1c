/*
 * Registers whose definitions all compute the same value. Compilers copy an instruction into both
 * sides of a branch:
 *
 *     @%p bra A;              A: cvt.u64.u32 %rd1, %tid;
 *     cvt.u64.u32 %rd1, %tid;    ...
 *
 * Lanes that wait with the old value then lose nothing when others compute it again, so that such a
 * definition need not be blended, and a thread index stays affine. The definitions are one
 * instruction on sources that never change while the kernel runs: immediates, thread and block
 * indices, registers that are defined once, outside of loops and of functions that stay apart.
 */
#include "device/soft/ir/analyse.h"

static bool never_changes(const struct ir_analyser *an, const struct ir_src *s,
                          const uint32_t *block_of)
{
    switch (s->kind) {
    case IR_SRC_IMM:
    case IR_SRC_SYMBOL:
        return true;
    case IR_SRC_SREG:
        return s->index <= IR_SREG_NCTAID_Z; /* %tid, %ntid, %ctaid, %nctaid come first */
    case IR_SRC_REG: {
        uint32_t def = an->a->regs[s->index].single_def;
        return def != IR_NONE && an->fn->instrs[def].guard == IR_NONE &&
               an->a->blocks[block_of[def]].loop == IR_NONE &&
               an->a->blocks[block_of[def]].function == 0;
    }
    default:
        return false;
    }
}

/* Whether the instruction has one destination, which depends only on the sources. */
static bool is_pure(const struct ir_instr *i)
{
    const unsigned impure = IR_P_LOAD | IR_P_STORE | IR_P_EFFECT | IR_P_CROSS_LANE | IR_P_TEXTURE;
    return i->guard == IR_NONE && i->dst_count == 1 && i->dst_pred == IR_NONE &&
           !(ir_ops[i->op].properties & impure);
}

static bool same_source(const struct ir_src *a, const struct ir_src *b)
{
    return a->kind == b->kind && a->negated == b->negated && a->index == b->index &&
           a->bits == b->bits;
}

static bool same_instr(const struct ir_instr *a, const struct ir_instr *b)
{
    if (a->op != b->op || a->type != b->type || a->type2 != b->type2 || a->space != b->space ||
        a->round != b->round || a->cmp != b->cmp || a->boolop != b->boolop || a->mode != b->mode ||
        a->flags != b->flags || a->src_count != b->src_count)
        return false;
    for (unsigned k = 0; k < a->src_count; k++)
        if (!same_source(&a->src[k], &b->src[k]))
            return false;
    return true;
}

static bool sources_never_change(const struct ir_analyser *an, const struct ir_instr *i,
                                 const uint32_t *block_of)
{
    for (unsigned k = 0; k < i->src_count; k++)
        if (!never_changes(an, &i->src[k], block_of))
            return false;
    return true;
}

/* Looks at one definition of `reg`; `first`: by register, the definition seen first. */
static void look(struct ir_analyser *an, uint32_t reg, uint32_t at, uint32_t *first,
                 const uint32_t *block_of)
{
    const struct ir_instr *i = &an->fn->instrs[at];
    if (reg == IR_NONE || an->a->regs[reg].defs < 2)
        return;
    uint64_t *word = &an->same[reg / 64], bit = UINT64_C(1) << (reg % 64);
    if (first[reg] == IR_NONE) {
        first[reg] = at;
        if (is_pure(i) && sources_never_change(an, i, block_of))
            *word |= bit;
    } else if (!same_instr(i, &an->fn->instrs[first[reg]])) {
        *word &= ~bit;
    }
}

int ir_find_same(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    uint32_t *first = malloc(((size_t)fn->reg_count + 1) * sizeof(*first));
    uint32_t *block_of = malloc(((size_t)fn->instr_count + 1) * sizeof(*block_of));
    an->same = calloc(fn->reg_count / 64 + 1, sizeof(*an->same));
    bool memory = first && block_of && an->same;
    for (uint32_t r = 0; memory && r < fn->reg_count; r++)
        first[r] = IR_NONE;
    for (uint32_t n = 0; memory && n < an->a->order_count; n++) {
        const struct ir_block *b = &fn->blocks[an->a->order[n]];
        for (uint32_t at = b->first; at < b->first + b->count; at++)
            block_of[at] = an->a->order[n];
    }
    for (uint32_t n = 0; memory && n < an->a->order_count; n++) {
        const struct ir_block *b = &fn->blocks[an->a->order[n]];
        for (uint32_t at = b->first; at < b->first + b->count; at++) {
            for (unsigned d = 0; d < fn->instrs[at].dst_count; d++)
                look(an, fn->instrs[at].dst[d], at, first, block_of);
            look(an, fn->instrs[at].dst_pred, at, first, block_of);
        }
    }
    for (uint32_t r = 0; memory && r < fn->reg_count; r++)
        an->a->regs[r].any_def = ir_is_same(an, r) ? first[r] : an->a->regs[r].single_def;
    free(first);
    free(block_of);
    return memory ? 0 : -ENOMEM;
}
