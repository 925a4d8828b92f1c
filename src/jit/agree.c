/*
 * Branches on which lanes may disagree, and do not: `i < n` holds for all lanes of a warp, or for
 * none, except in the one where i passes n. What rises by a constant from lane to lane is compared
 * by its first and its last value, both scalars; the vector of all is for the branch that finds
 * them to differ (flow.c).
 */
#include "jit/gen.h"

#define STRIDE_MAX (1 << 16) /* so that a warp's values wrap once at most */

static struct jit_agree unknown(void)
{
    return (struct jit_agree) { 0 };
}

static bool is_affine(const struct jit_gen *g, const struct ir_src *s)
{
    return s->kind == IR_SRC_REG && jit_shape(g, s->index) == IR_AFFINE &&
           !jit_may_wrap(g, s->index) && g->a->regs[s->index].stride <= STRIDE_MAX &&
           g->a->regs[s->index].stride >= -STRIDE_MAX;
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
    a = g->w->regs[s->index].agree;
    return s->negated ? (struct jit_agree) { a.none, a.all } : a;
}

static struct jit_agree both(struct jit_gen *g, struct jit_agree a, struct jit_agree b)
{
    if (!a.all || !b.all)
        return unknown();
    return (struct jit_agree) { LLVMBuildAnd(g->b, a.all, b.all, ""),
                                LLVMBuildOr(g->b, a.none, b.none, "") };
}

static struct jit_agree either(struct jit_gen *g, struct jit_agree a, struct jit_agree b)
{
    if (!a.all || !b.all)
        return unknown();
    return (struct jit_agree) { LLVMBuildOr(g->b, a.all, b.all, ""),
                                LLVMBuildAnd(g->b, a.none, b.none, "") };
}

/* What an operand has at its lowest and at its highest, of all lanes; `rises` (i1): it does not
 * wrap in between. */
struct ends {
    LLVMValueRef low, high, rises;
    uint64_t span; /* high is low + span, as far as it rises; 0: not known */
};

static bool ends_of(struct jit_gen *g, const struct ir_src *s, enum ir_type t, unsigned depth,
                    struct ends *e);

/* The register is the larger or the smaller one of two values, computed before in this block from
 * what has not changed since. */
static bool ends_of_choice(struct jit_gen *g, uint32_t reg, enum ir_type t, unsigned depth,
                           struct ends *e)
{
    uint32_t def = g->a->regs[reg].single_def;
    if (def == IR_NONE || def >= g->at_instr || def < g->fn->blocks[g->at_block].first ||
        depth == 0)
        return false;
    const struct ir_instr *i = &g->fn->instrs[def];
    struct ends of[2];
    if ((i->op != IR_OP_MAX && i->op != IR_OP_MIN) || i->type != t || i->guard != IR_NONE)
        return false;
    for (unsigned k = 0; k < 2; k++) {
        uint32_t from = i->src[k].kind == IR_SRC_REG ? g->a->regs[i->src[k].index].single_def : 0;
        if (from == IR_NONE || (from > def && from < g->at_instr) ||
            !ends_of(g, &i->src[k], t, depth - 1, &of[k]))
            return false;
    }
    const char *name = ir_type_is_signed(t) ? (i->op == IR_OP_MAX ? "llvm.smax" : "llvm.smin")
                                            : (i->op == IR_OP_MAX ? "llvm.umax" : "llvm.umin");
    e->low = jit_call2(g, name, of[0].low, of[1].low);
    e->high = jit_call2(g, name, of[0].high, of[1].high);
    e->rises = LLVMBuildAnd(g->b, of[0].rises, of[1].rises, "");
    e->span = 0;
    return true;
}

static bool ends_of(struct jit_gen *g, const struct ir_src *s, enum ir_type t, unsigned depth,
                    struct ends *e)
{
    if (is_uniform(g, s)) {
        e->low = e->high = jit_src(g, s, t, false);
        e->rises = LLVMConstInt(g->i1, 1, 0);
        e->span = 0;
        return true;
    }
    if (!is_affine(g, s))
        return s->kind == IR_SRC_REG && ends_of_choice(g, s->index, t, depth, e);
    int64_t stride = g->a->regs[s->index].stride;
    LLVMValueRef a = jit_src(g, s, t, false);
    LLVMValueRef span =
        LLVMConstInt(LLVMTypeOf(a), (uint64_t)(stride * (int64_t)(g->lanes - 1)), 1);
    LLVMValueRef z = LLVMBuildAdd(g->b, a, span, "");
    e->low = stride > 0 ? a : z;
    e->high = stride > 0 ? z : a;
    e->span = (uint64_t)(stride > 0 ? stride : 0) * (g->lanes - 1);
    e->rises =
        LLVMBuildICmp(g->b, ir_type_is_signed(t) ? LLVMIntSGE : LLVMIntUGE, e->high, e->low, "");
    return true;
}

/* i1: all lanes have less than `c`, or `c` where `at` is true. The last lane decides, and where the
 * span is known lane 0's value alone: it is compared with what is that much less than `c`, which is
 * the same in all rounds of a loop. */
static LLVMValueRef all_below(struct jit_gen *g, const struct ends *e, LLVMValueRef c, bool at,
                              bool sign)
{
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT, up_to = sign ? LLVMIntSLE : LLVMIntULE;
    if (!e->span)
        return LLVMBuildAnd(g->b, e->rises, LLVMBuildICmp(g->b, at ? up_to : less, e->high, c, ""),
                            "");
    LLVMValueRef span = LLVMConstInt(LLVMTypeOf(c), e->span - at, 0);
    LLVMValueRef limit = jit_call2(g, sign ? "llvm.ssub.sat" : "llvm.usub.sat", c, span);
    return LLVMBuildICmp(g->b, less, e->low, limit, "");
}

/* i1: all lanes have more than `c`, or `c` where `at` is true. */
static LLVMValueRef all_above(struct jit_gen *g, const struct ends *e, LLVMValueRef c, bool at,
                              bool sign)
{
    LLVMIntPredicate more = sign ? LLVMIntSGT : LLVMIntUGT, from = sign ? LLVMIntSGE : LLVMIntUGE;
    LLVMValueRef above = LLVMBuildICmp(g->b, at ? from : more, e->low, c, "");
    return LLVMBuildAnd(g->b, e->rises, above, "");
}

static struct jit_agree of_comparison(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    enum ir_type t = (enum ir_type)i->type;
    bool first = is_uniform(g, &i->src[1]), sign = ir_type_is_signed(t);
    struct ends e;
    if (ir_type_is_float(t) || ir_types[t].size < 4 || (!first && !is_uniform(g, &i->src[0])) ||
        !ends_of(g, &i->src[first ? 0 : 1], t, 2, &e))
        return unknown();
    LLVMValueRef c = jit_src(g, &i->src[first ? 1 : 0], t, false);
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;
    LLVMIntPredicate p = jit_int_predicate(i->cmp, sign);
    if (p == LLVMIntEQ || p == LLVMIntNE) {
        LLVMValueRef outside = LLVMBuildOr(g->b, LLVMBuildICmp(g->b, less, c, e.low, ""),
                                           LLVMBuildICmp(g->b, less, e.high, c, ""), "");
        LLVMValueRef never = LLVMBuildAnd(g->b, e.rises, outside, ""), no = LLVMConstNull(g->i1);
        return p == LLVMIntEQ ? (struct jit_agree) { no, never } : (struct jit_agree) { never, no };
    }
    bool is_less = p == LLVMIntSLT || p == LLVMIntULT || p == LLVMIntSLE || p == LLVMIntULE;
    bool at = p == LLVMIntSLE || p == LLVMIntULE || p == LLVMIntSGE || p == LLVMIntUGE;
    /* `c` < x is x > `c` */
    if (is_less == first)
        return (struct jit_agree) { all_below(g, &e, c, at, sign), all_above(g, &e, c, !at, sign) };
    return (struct jit_agree) { all_above(g, &e, c, at, sign), all_below(g, &e, c, !at, sign) };
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
    g->w->regs[i->dst[0]].agree = of_result(g);
}
