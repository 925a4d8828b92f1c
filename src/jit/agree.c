/*
 * Branches on which lanes may disagree, and do not: `i < n` holds for all lanes of a warp, or for none, except in the one where
 * i passes n. What rises by a constant from lane to lane is compared by its first and its last value, both scalars; the
 * vector of all is for the branch that finds them to differ (flow.c).
 */
#include "jit/gen.h"

#define STRIDE_MAX (1 << 16) /* so that a warp's values wrap once at most */

static struct jit_agree unknown(void)
{
    return (struct jit_agree) { 0 };
}

static bool is_affine(const struct jit_gen *g, const struct ir_src *s)
{
    return s->kind == IR_SRC_REG && jit_shape(g, s->index) == IR_AFFINE && !jit_may_wrap(g, s->index) &&
           g->a->regs[s->index].stride <= STRIDE_MAX && g->a->regs[s->index].stride >= -STRIDE_MAX;
}

static bool is_uniform(const struct jit_gen *g, const struct ir_src *s)
{
    return s->kind == IR_SRC_IMM || (s->kind == IR_SRC_REG && jit_shape(g, s->index) == IR_UNIFORM);
}

static struct jit_agree of_operand(struct jit_gen *g, const struct ir_src *s)
{
    struct jit_agree a;
    if (is_uniform(g, s)) {
        a.all = jit_src(g, s, IR_PRED, false);
        a.none = LLVMBuildNot(g->b, a.all, "");
        return a;
    }
    if (s->kind != IR_SRC_REG)
        return unknown();
    a = g->agree[s->index];
    return s->negated ? (struct jit_agree) { a.none, a.all } : a;
}

static struct jit_agree both(struct jit_gen *g, struct jit_agree a, struct jit_agree b)
{
    if (!a.all || !b.all)
        return unknown();
    return (struct jit_agree) { LLVMBuildAnd(g->b, a.all, b.all, ""), LLVMBuildOr(g->b, a.none, b.none, "") };
}

static struct jit_agree either(struct jit_gen *g, struct jit_agree a, struct jit_agree b)
{
    if (!a.all || !b.all)
        return unknown();
    return (struct jit_agree) { LLVMBuildOr(g->b, a.all, b.all, ""), LLVMBuildAnd(g->b, a.none, b.none, "") };
}

static struct jit_agree of_comparison(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    enum ir_type t = (enum ir_type)i->type;
    bool first = is_affine(g, &i->src[0]) && is_uniform(g, &i->src[1]);
    if (ir_type_is_float(t) || ir_types[t].size < 4 ||
        (!first && !(is_uniform(g, &i->src[0]) && is_affine(g, &i->src[1]))))
        return unknown();
    const struct ir_src *line = &i->src[first ? 0 : 1];
    int64_t stride = g->a->regs[line->index].stride;
    bool sign = ir_type_is_signed(t);
    LLVMValueRef a = jit_src(g, line, t, false), c = jit_src(g, &i->src[first ? 1 : 0], t, false);
    LLVMValueRef span = LLVMConstInt(LLVMTypeOf(a), (uint64_t)(stride * (int64_t)(g->lanes - 1)), 1);
    LLVMValueRef z = LLVMBuildAdd(g->b, a, span, "");
    LLVMValueRef low = stride > 0 ? a : z, high = stride > 0 ? z : a;
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;
    LLVMValueRef rises = LLVMBuildNot(g->b, LLVMBuildICmp(g->b, less, high, low, ""), "");
    LLVMIntPredicate p = jit_int_predicate(i->cmp, sign);
    if (p == LLVMIntEQ || p == LLVMIntNE) {
        LLVMValueRef outside =
            LLVMBuildOr(g->b, LLVMBuildICmp(g->b, less, c, low, ""), LLVMBuildICmp(g->b, less, high, c, ""), "");
        LLVMValueRef never = LLVMBuildAnd(g->b, rises, outside, ""), no = LLVMConstNull(g->i1);
        return p == LLVMIntEQ ? (struct jit_agree) { no, never } : (struct jit_agree) { never, no };
    }
    LLVMValueRef at_low = LLVMBuildICmp(g->b, p, first ? low : c, first ? c : low, "");
    LLVMValueRef at_high = LLVMBuildICmp(g->b, p, first ? high : c, first ? c : high, "");
    LLVMValueRef some = LLVMBuildOr(g->b, at_low, at_high, "");
    return (struct jit_agree) { LLVMBuildAnd(g->b, rises, LLVMBuildAnd(g->b, at_low, at_high, ""), ""),
                                LLVMBuildAnd(g->b, rises, LLVMBuildNot(g->b, some, ""), "") };
}

static struct jit_agree of_result(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    struct jit_agree a;
    switch (i->op) {
    case IR_OP_SETP:
        a = of_comparison(g);
        if (i->boolop == IR_BOOL_AND)
            return both(g, a, of_operand(g, &i->src[2]));
        if (i->boolop == IR_BOOL_OR)
            return either(g, a, of_operand(g, &i->src[2]));
        return i->boolop == IR_BOOL_NONE ? a : unknown();
    case IR_OP_AND:
        return both(g, of_operand(g, &i->src[0]), of_operand(g, &i->src[1]));
    case IR_OP_OR:
        return either(g, of_operand(g, &i->src[0]), of_operand(g, &i->src[1]));
    case IR_OP_NOT:
        a = of_operand(g, &i->src[0]);
        return (struct jit_agree) { a.none, a.all };
    case IR_OP_MOV:
        return of_operand(g, &i->src[0]);
    default:
        return unknown();
    }
}

void jit_note_agreement(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    if (!g->whole || g->guard || i->dst_count != 1 || i->dst[0] == IR_NONE ||
        g->fn->regs[i->dst[0]].type != IR_PRED || jit_shape(g, i->dst[0]) != IR_VARYING)
        return;
    g->agree[i->dst[0]] = of_result(g);
}
