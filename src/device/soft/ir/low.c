/*
 * The lower bits of integer registers, as many as number the lanes of a warp: whether they are 0 in
 * all lanes, or the lane's number. That makes "thread number / 32" one value for a warp, also where
 * the thread's number in the grid is meant: the block's size must be known then, so that
 * ctaid * ntid is a multiple of the warp's.
 *
 * Arithmetic that wraps leaves lower bits as they are, so no more needs to be known of operands. A
 * register has what all of its definitions agree on; which of them a lane has does not matter.
 */
#include "device/soft/ir/analyse.h"

static enum ir_low number(const struct ir_analyser *an, uint64_t bits)
{
    return bits % an->opt.lanes == 0 ? IR_LOW_ZERO : IR_LOW_ANY;
}

static enum ir_low special(const struct ir_analyser *an, uint32_t sreg)
{
    switch (sreg) {
    case IR_SREG_TID_X:
        return ir_rows(an) ? IR_LOW_LANE : IR_LOW_ANY;
    case IR_SREG_LANEID:
        return IR_LOW_LANE;
    case IR_SREG_NTID_X:
    case IR_SREG_NTID_Y:
    case IR_SREG_NTID_Z: {
        uint32_t n = ir_known_ntid(an, sreg - IR_SREG_NTID_X);
        return n ? number(an, n) : IR_LOW_ANY;
    }
    default:
        return IR_LOW_ANY;
    }
}

/* A register whose value is known is as good as the number. */
static enum ir_low of_register(struct ir_analyser *an, uint32_t reg)
{
    const struct ir_range *r = &an->ranges[reg];
    if (r->known != IR_RANGE_KNOWN || r->low != r->high)
        return an->low[reg];
    if (r->grid)
        an->a->used_small_grid = true;
    return number(an, (uint64_t)r->low);
}

enum ir_low ir_low_of(struct ir_analyser *an, const struct ir_src *s)
{
    switch (s->kind) {
    case IR_SRC_REG:
        return of_register(an, s->index);
    case IR_SRC_IMM:
        return number(an, s->bits);
    case IR_SRC_SREG:
        return special(an, s->index);
    default:
        return IR_LOW_ANY;
    }
}

/* a + b, a | b, a ^ b */
static enum ir_low sum(enum ir_low a, enum ir_low b)
{
    return a == IR_LOW_ZERO ? b : b == IR_LOW_ZERO ? a : IR_LOW_ANY;
}

static enum ir_low difference(enum ir_low a, enum ir_low b)
{
    if (b == IR_LOW_ZERO)
        return a;
    return a == IR_LOW_LANE && b == IR_LOW_LANE ? IR_LOW_ZERO : IR_LOW_ANY;
}

static enum ir_low product(enum ir_low a, enum ir_low b)
{
    return a == IR_LOW_ZERO || b == IR_LOW_ZERO ? IR_LOW_ZERO : IR_LOW_ANY;
}

/* "tid & 31", "tid & ~31" */
static enum ir_low cut(struct ir_analyser *an, const struct ir_instr *i)
{
    uint64_t lane = an->opt.lanes - 1;
    enum ir_low a = ir_low_of(an, &i->src[0]), b = ir_low_of(an, &i->src[1]);
    if (a == IR_LOW_ZERO || b == IR_LOW_ZERO)
        return IR_LOW_ZERO;
    for (unsigned k = 0; k < 2; k++)
        if (i->src[k].kind == IR_SRC_IMM && (i->src[k].bits & lane) == lane)
            return k ? a : b;
    return IR_LOW_ANY;
}

static enum ir_low shift(struct ir_analyser *an, const struct ir_instr *i)
{
    enum ir_low a = ir_low_of(an, &i->src[0]);
    const struct ir_src *n = &i->src[1];
    bool out = n->kind == IR_SRC_IMM && (n->bits > 31 || 1u << n->bits >= an->opt.lanes);
    return a == IR_LOW_ZERO || out ? IR_LOW_ZERO : IR_LOW_ANY;
}

static enum ir_low join(enum ir_low a, enum ir_low b)
{
    if (a == IR_LOW_UNKNOWN || b == IR_LOW_UNKNOWN)
        return a == IR_LOW_UNKNOWN ? b : a;
    return a == b ? a : IR_LOW_ANY;
}

static enum ir_low transfer(struct ir_analyser *an, const struct ir_instr *i)
{
    const struct ir_src *s = i->src;
    if (ir_type_is_float(i->type) || ir_types[i->type].size < 4 || (i->flags & IR_F_SAT) ||
        i->dst_count != 1)
        return IR_LOW_ANY;
    for (unsigned k = 0; k < i->src_count; k++)
        if (s[k].kind == IR_SRC_REG && of_register(an, s[k].index) == IR_LOW_UNKNOWN)
            return IR_LOW_UNKNOWN;
    switch (i->op) {
    case IR_OP_MOV:
        return ir_low_of(an, &s[0]);
    case IR_OP_CVT:
        return ir_type_is_float(i->type2) || ir_types[i->type2].size < 4 ? IR_LOW_ANY
                                                                         : ir_low_of(an, &s[0]);
    case IR_OP_ADD:
        return i->src_count == 2 ? sum(ir_low_of(an, &s[0]), ir_low_of(an, &s[1])) : IR_LOW_ANY;
    case IR_OP_SUB:
        return i->src_count == 2 ? difference(ir_low_of(an, &s[0]), ir_low_of(an, &s[1]))
                                 : IR_LOW_ANY;
    case IR_OP_MUL:
    case IR_OP_MAD: {
        enum ir_low p = product(ir_low_of(an, &s[0]), ir_low_of(an, &s[1]));
        if (i->mode != IR_MUL_LO && i->mode != IR_MUL_WIDE)
            return IR_LOW_ANY;
        return i->op == IR_OP_MUL ? p : sum(p, ir_low_of(an, &s[2]));
    }
    case IR_OP_AND:
        return cut(an, i);
    case IR_OP_OR:
    case IR_OP_XOR:
        return sum(ir_low_of(an, &s[0]), ir_low_of(an, &s[1]));
    case IR_OP_SHL:
        return shift(an, i);
    case IR_OP_SELP:
        return join(ir_low_of(an, &s[0]), ir_low_of(an, &s[1]));
    default:
        return IR_LOW_ANY;
    }
}

static bool define(struct ir_analyser *an, uint32_t reg, enum ir_low v)
{
    if (reg == IR_NONE)
        return false;
    enum ir_low old = an->low[reg];
    an->low[reg] = (uint8_t)join(old, v);
    return an->low[reg] != old;
}

static bool visit(struct ir_analyser *an, const struct ir_instr *i)
{
    bool changed = false;
    for (unsigned d = 0; d < i->dst_count; d++)
        changed |= define(an, i->dst[d], transfer(an, i));
    return define(an, i->dst_pred, IR_LOW_ANY) || changed;
}

int ir_compute_low(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    an->low = calloc((size_t)fn->reg_count + 1, sizeof(*an->low));
    if (!an->low)
        return -ENOMEM;
    for (uint32_t r = 0; r < fn->reg_count; r++)
        if (an->a->regs[r].defs == 0)
            an->low[r] = IR_LOW_ANY;
    return ir_until_stable(an, visit);
}
