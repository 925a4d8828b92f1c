/*
 * Which registers are the same for all lanes of a warp (uniform), lane 0's value plus lane times a
 * constant (affine), or anything (varying); and which are the same for all warps of a block.
 *
 * The analysis is optimistic. Every register begins as "nothing known yet" and rises (uniform,
 * affine, varying) as its definitions are examined, round after round, together with the divergence
 * of branches (frontier.c), until nothing changes. A shape belongs to the register, not to a
 * definition: PTX registers are nearly in SSA form. For the few that are not, this rule makes it
 * right: a definition in a block that runs while lanes wait elsewhere for the old value (it is live
 * in somewhere in the block's frontier) must be blended, and a blended register varies. So lanes
 * that run together always see the same definition of a uniform or affine register.
 *
 * Affine arithmetic is exact modulo the register's width. Widening a 32-bit value is the exception:
 * base + 31 * stride may wrap in 32 bits but not in 64. Such places are marked
 * (ir_instr_info.widen), unless ranges.c proves that they cannot wrap; their results have may_wrap.
 */
#include "device/soft/ir/analyse.h"

/* A value as the transfer functions see it. */
struct ir_value {
    uint8_t shape;
    bool unknown; /* nothing is known yet: optimistically it fits everything */
    bool may_wrap;
    bool numbered;  /* AFFINE with stride 1: lane 0's value is a multiple of the number of lanes */
    bool invariant; /* block_uniform */
    bool is_const;
    int64_t stride;
    uint64_t bits;
};

static struct ir_value uniform(bool invariant)
{
    return (struct ir_value) { .shape = IR_UNIFORM, .invariant = invariant };
}

static struct ir_value affine(int64_t stride, bool invariant)
{
    if (stride == 0)
        return uniform(invariant);
    return (struct ir_value) { .shape = IR_AFFINE, .stride = stride, .invariant = invariant };
}

static struct ir_value varying(bool invariant)
{
    return (struct ir_value) { .shape = IR_VARYING, .invariant = invariant };
}

static struct ir_value constant(uint64_t bits)
{
    struct ir_value v = { .shape = IR_UNIFORM, .invariant = true, .is_const = true, .bits = bits };
    return v;
}

/* --- special registers ------------------------------------------------------------------------ */

static struct ir_value thread_index(const struct ir_analyser *an, unsigned dim)
{
    uint32_t x = ir_known_ntid(an, 0), y = ir_known_ntid(an, 1), n = ir_known_ntid(an, dim);
    if (n == 1)
        return constant(0);
    if (ir_rows(an) && dim == 0) {
        return affine(1, x == an->opt.lanes);
    }
    if (ir_rows(an))
        return uniform(false);
    if (x == 0)
        return varying(false);
    /* In each warp the pattern is the same if its period x (for y: x * y) divides 32. */
    uint64_t period = dim == 0 ? x : dim == 1 ? (uint64_t)x * y : 0;
    if (dim == 2 && (uint64_t)x * y % an->opt.lanes == 0)
        return uniform(false);
    return varying(period && an->opt.lanes % period == 0);
}

static struct ir_value special(const struct ir_analyser *an, uint32_t sreg)
{
    switch ((enum ir_sreg)sreg) {
    case IR_SREG_TID_X:
    case IR_SREG_TID_Y:
    case IR_SREG_TID_Z:
        return thread_index(an, sreg - IR_SREG_TID_X);
    case IR_SREG_NTID_X:
    case IR_SREG_NTID_Y:
    case IR_SREG_NTID_Z: {
        uint32_t n = ir_known_ntid(an, sreg - IR_SREG_NTID_X);
        return n ? constant(n) : uniform(true);
    }
    case IR_SREG_LANEID:
        return affine(1, true);
    case IR_SREG_LANEMASK_EQ:
    case IR_SREG_LANEMASK_LE:
    case IR_SREG_LANEMASK_LT:
    case IR_SREG_LANEMASK_GE:
    case IR_SREG_LANEMASK_GT:
        return varying(true);
    case IR_SREG_WARPID:
    case IR_SREG_CLOCK:
    case IR_SREG_CLOCK_HI:
    case IR_SREG_CLOCK64:
    case IR_SREG_GLOBALTIMER:
    case IR_SREG_GLOBALTIMER_LO:
    case IR_SREG_GLOBALTIMER_HI:
        return uniform(false);
    default:
        return uniform(true);
    }
}

/* --- operands --------------------------------------------------------------------------------- */

static struct ir_value register_value(const struct ir_analyser *an, uint32_t reg)
{
    const struct ir_reg_info *r = &an->a->regs[reg];
    struct ir_value v = { .shape = r->shape,
                          .unknown = r->shape == IR_SHAPE_UNKNOWN,
                          .may_wrap = r->may_wrap,
                          .numbered = r->shape == IR_AFFINE && r->stride == 1 && !r->may_wrap &&
                                      an->low[reg] == IR_LOW_LANE,
                          .invariant = r->block_uniform,
                          .is_const = r->is_const,
                          .stride = r->stride,
                          .bits = r->value };
    if (v.unknown)
        v.shape = IR_UNIFORM;
    return v;
}

static struct ir_value operand(const struct ir_analyser *an, const struct ir_src *s)
{
    switch (s->kind) {
    case IR_SRC_REG:
        return register_value(an, s->index);
    case IR_SRC_IMM:
        return constant(s->bits);
    case IR_SRC_SREG:
        return special(an, s->index);
    default:
        return uniform(true);
    }
}

static int64_t wrap_stride(int64_t stride, uint8_t size)
{
    if (size == 4)
        return (int32_t)(uint32_t)(uint64_t)stride;
    if (size == 2)
        return (int16_t)(uint16_t)(uint64_t)stride;
    return stride;
}

/* Uniform if everything it depends on is, else varying. */
static struct ir_value plain(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value result = uniform(true);
    for (unsigned s = 0; s < i->src_count; s++) {
        struct ir_value v = operand(an, &i->src[s]);
        if (v.shape != IR_UNIFORM)
            result.shape = IR_VARYING;
        result.unknown |= v.unknown;
        result.invariant &= v.invariant;
    }
    if (result.shape == IR_VARYING)
        result.unknown = false;
    return result;
}

/* a + sign * b, modulo the width. */
static struct ir_value sum(struct ir_value a, struct ir_value b, int sign, uint8_t size)
{
    bool invariant = a.invariant && b.invariant, wraps = a.may_wrap || b.may_wrap;
    if (a.shape == IR_VARYING || b.shape == IR_VARYING)
        return varying(invariant);
    if (a.unknown || b.unknown) { /* not known yet */
        struct ir_value wait = uniform(invariant);
        wait.unknown = true;
        return wait;
    }
    uint64_t sb = a.shape == IR_AFFINE ? (uint64_t)a.stride : 0;
    uint64_t tb = b.shape == IR_AFFINE ? (uint64_t)b.stride : 0;
    struct ir_value r =
        affine(wrap_stride((int64_t)(sign > 0 ? sb + tb : sb - tb), size), invariant);
    /* A difference of two values that may wrap is uniform only if they do not. */
    if (wraps && r.shape == IR_UNIFORM && a.shape == IR_AFFINE)
        return varying(invariant);
    r.may_wrap = wraps && r.shape == IR_AFFINE;
    return r;
}

/* a * b where one is a known constant. */
static struct ir_value product(struct ir_value a, struct ir_value b, uint8_t size)
{
    bool invariant = a.invariant && b.invariant;
    if (a.shape == IR_UNIFORM && b.shape == IR_UNIFORM) {
        struct ir_value r = uniform(invariant);
        r.unknown = a.unknown || b.unknown;
        return r;
    }
    struct ir_value by = a.shape == IR_AFFINE ? b : a, line = a.shape == IR_AFFINE ? a : b;
    if (line.shape != IR_AFFINE || by.shape != IR_UNIFORM)
        return varying(invariant);
    if (by.unknown) {
        by.shape = IR_UNIFORM;
        by.invariant = invariant;
        return by; /* not known yet */
    }
    if (!by.is_const)
        return varying(invariant);
    uint64_t stride = (uint64_t)line.stride * by.bits;
    struct ir_value r = affine(wrap_stride((int64_t)stride, size), invariant);
    r.may_wrap = line.may_wrap && r.shape == IR_AFFINE;
    return r;
}

/* --- widening --------------------------------------------------------------------------------- */

/* The value of a narrow affine source as a wide one. Notes the place if it is not proven that it
 * does not wrap. */
static struct ir_value widened(struct ir_analyser *an, const struct ir_instr *i, unsigned source,
                               bool is_signed, struct ir_instr_info *info)
{
    struct ir_value v = operand(an, &i->src[source]);
    if (v.shape != IR_AFFINE)
        return v;
    if (v.numbered || ir_cannot_wrap(an, &i->src[source], is_signed))
        return v;
    v.may_wrap = true;
    if (info) {
        info->widen = is_signed ? IR_WIDEN_SIGNED : IR_WIDEN_UNSIGNED;
        info->widen_src = (uint8_t)source;
    }
    return v;
}

static struct ir_value convert(struct ir_analyser *an, const struct ir_instr *i,
                               struct ir_instr_info *info)
{
    enum ir_type from = i->type2, to = i->type;
    const struct ir_src *s = &i->src[0];
    struct ir_value v = operand(an, s);
    uint8_t from_size = ir_types[from].size, to_size = ir_types[an->fn->regs[i->dst[0]].type].size;
    bool integers = !ir_type_is_float(from) && !ir_type_is_float(to) && !(i->flags & IR_F_SAT) &&
                    ir_types[to].size == to_size;
    if (v.shape != IR_AFFINE || !integers || from_size < 4)
        return v.shape == IR_AFFINE ? varying(v.invariant) : v.is_const ? plain(an, i) : v;
    uint8_t source_size =
        s->kind == IR_SRC_REG ? ir_types[an->fn->regs[s->index].type].size : from_size;
    v.stride = wrap_stride(v.stride, from_size);
    if (to_size > from_size) {
        if (source_size > from_size) /* cut and widened in one step */
            return varying(v.invariant);
        return widened(an, i, 0, ir_type_is_signed(from), info);
    }
    struct ir_value r = affine(wrap_stride(v.stride, to_size), v.invariant);
    /* A value that wrapped in 32 bits may be right again when it is cut to 32 bits: do not rely on
     * it. */
    if (v.may_wrap && r.shape == IR_UNIFORM)
        return varying(v.invariant);
    r.may_wrap = v.may_wrap;
    return r;
}

static struct ir_value multiply(struct ir_analyser *an, const struct ir_instr *i,
                                struct ir_instr_info *info)
{
    uint8_t size = ir_types[i->type].size;
    if (ir_type_is_float(i->type) || i->mode == IR_MUL_HI ||
        (i->flags & (IR_F_SAT | IR_F_CARRY_OUT)))
        return plain(an, i);
    struct ir_value a = operand(an, &i->src[0]), b = operand(an, &i->src[1]);
    if (i->mode == IR_MUL_WIDE) {
        bool is_signed = ir_type_is_signed(i->type);
        if (a.shape != IR_UNIFORM && b.shape != IR_UNIFORM)
            return plain(an, i);
        if (size < 4 && (a.shape != IR_UNIFORM || b.shape != IR_UNIFORM))
            return plain(an, i);
        a = widened(an, i, 0, is_signed, info);
        b = widened(an, i, 1, is_signed, info);
        if (a.is_const)
            a.bits = is_signed ? (uint64_t)(int64_t)(int32_t)a.bits : (uint32_t)a.bits;
        if (b.is_const)
            b.bits = is_signed ? (uint64_t)(int64_t)(int32_t)b.bits : (uint32_t)b.bits;
        size = 8;
    }
    struct ir_value r = product(a, b, size);
    if (i->op == IR_OP_MAD)
        r = sum(r, operand(an, &i->src[2]), 1, size);
    return r;
}

static struct ir_value shift_left(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value v = operand(an, &i->src[0]), n = operand(an, &i->src[1]);
    uint8_t size = ir_types[i->type].size;
    if (v.shape != IR_AFFINE || !n.is_const || n.bits >= 8u * size)
        return plain(an, i);
    struct ir_value r =
        affine(wrap_stride((int64_t)((uint64_t)v.stride << n.bits), size), v.invariant);
    r.may_wrap = v.may_wrap && r.shape == IR_AFFINE;
    return r;
}

static struct ir_value choose(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value a = operand(an, &i->src[0]), b = operand(an, &i->src[1]),
                    p = operand(an, &i->src[2]);
    bool invariant = a.invariant && b.invariant && p.invariant;
    bool same = a.shape == b.shape && a.stride == b.stride;
    if (p.shape == IR_UNIFORM && a.shape == IR_AFFINE && (same || b.unknown)) {
        a.may_wrap |= b.may_wrap;
        a.invariant = invariant;
        return a;
    }
    return plain(an, i);
}

/* --- thread numbers --------------------------------------------------------------------------- */

/* "tid & 31", "tid & ~31" */
static struct ir_value bits_of(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value v = operand(an, &i->src[0]), c = operand(an, &i->src[1]);
    uint64_t lane = an->opt.lanes - 1;
    if (!v.numbered || !c.is_const || (c.bits & lane) % lane != 0)
        return plain(an, i);
    if (!(c.bits & lane))
        return uniform(v.invariant);
    return affine(1, v.invariant || c.bits == lane);
}

/* "32 * n | tid", "32 * n ^ tid": the lower bits come from the one, the others are one value.
 * "tid | 31": the lower bits are known. */
static struct ir_value joined_bits(struct ir_analyser *an, const struct ir_instr *i)
{
    uint64_t lane = an->opt.lanes - 1;
    for (unsigned k = 0; k < 2; k++) {
        struct ir_value v = operand(an, &i->src[k]), by = operand(an, &i->src[1 - k]);
        if (v.numbered && by.is_const && (by.bits & lane) == lane && i->op == IR_OP_OR)
            return uniform(v.invariant);
        if (v.numbered && by.shape == IR_UNIFORM && ir_low_of(an, &i->src[1 - k]) == IR_LOW_ZERO)
            return by.unknown ? by : affine(1, v.invariant && by.invariant);
    }
    return plain(an, i);
}

/* "tid >> 5" */
static struct ir_value shift_right(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value v = operand(an, &i->src[0]), n = operand(an, &i->src[1]);
    if (!v.numbered || !n.is_const || n.bits >= 32 || (1u << n.bits) < an->opt.lanes)
        return plain(an, i);
    return uniform(v.invariant);
}

/* "tid < 32": all lanes of a warp agree. */
static struct ir_value compare(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value v = operand(an, &i->src[0]), c = operand(an, &i->src[1]);
    if (i->src_count != 2 || i->dst_pred != IR_NONE || ir_types[i->type].size != 4 || !v.numbered ||
        !c.is_const)
        return plain(an, i);
    uint32_t limit = (uint32_t)c.bits;
    switch (i->cmp) {
    case IR_CMP_LT:
    case IR_CMP_GE:
        break;
    case IR_CMP_GT:
    case IR_CMP_LE:
        limit++;
        break;
    default:
        return plain(an, i);
    }
    return limit % an->opt.lanes == 0 && limit < UINT32_C(1) << 31 ? uniform(v.invariant)
                                                                   : plain(an, i);
}

/* --- memory and lanes ------------------------------------------------------------------------- */

/* Whether a generic address can point to the lanes' own memory: only if there is any. */
static bool may_be_local(const struct ir_analyser *an, const struct ir_instr *i)
{
    return i->space == IR_SPACE_LOCAL || (i->space == IR_SPACE_GENERIC && an->fn->local_bytes > 0);
}

static struct ir_value load(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_value at = uniform(true);
    if (i->address.base != IR_NONE)
        at = register_value(an, i->address.base);
    bool invariant = at.invariant && i->order == IR_ORDER_WEAK && !may_be_local(an, i);
    struct ir_value r =
        at.shape != IR_UNIFORM || may_be_local(an, i) ? varying(invariant) : uniform(invariant);
    r.unknown = at.unknown && r.shape == IR_UNIFORM;
    return r;
}

static bool mask_uniform(const struct ir_analyser *an, const struct ir_instr *i, unsigned source)
{
    return !(i->flags & IR_F_SYNC) || operand(an, &i->src[source]).shape == IR_UNIFORM;
}

/* The source, a shuffle's c, makes no segments of a warp and lets any lane be the source. */
static bool is_whole_warp(const struct ir_analyser *an, const struct ir_src *s)
{
    struct ir_value c = operand(an, s);
    return c.is_const && (c.bits & 0x1f1f) == 0x1f;
}

/* Results of operations across lanes. They depend on which lanes run, so warps may differ. */
static struct ir_value cross_lane(const struct ir_analyser *an, const struct ir_instr *i)
{
    bool same = false;
    switch (i->op) {
    case IR_OP_SHFL: /* all from one lane, which may be absent: then they get 0 */
        same = i->mode == IR_SHFL_IDX && operand(an, &i->src[0]).shape == IR_UNIFORM &&
               operand(an, &i->src[1]).shape == IR_UNIFORM && is_whole_warp(an, &i->src[2]);
        break;
    case IR_OP_VOTE:
    case IR_OP_REDUX:
        same = mask_uniform(an, i, 1);
        break;
    case IR_OP_MATCH:
        same = i->mode == IR_VOTE_ALL && mask_uniform(an, i, 1);
        break;
    case IR_OP_ELECT:
        same = mask_uniform(an, i, 0);
        break;
    case IR_OP_ACTIVEMASK:
        same = true;
        break;
    default:
        break;
    }
    return same ? uniform(false) : varying(false);
}

/* --- one instruction -------------------------------------------------------------------------- */

static struct ir_value transfer(struct ir_analyser *an, const struct ir_instr *i,
                                struct ir_instr_info *info)
{
    bool integer = !ir_type_is_float(i->type) && !(i->flags & (IR_F_SAT | IR_F_CARRY_OUT));
    uint8_t size = ir_types[i->type].size;
    switch (i->op) {
    case IR_OP_MOV:
        return operand(an, &i->src[0]);
    /* It adds or subtracts the beginning of the space. */
    case IR_OP_CVTA: {
        struct ir_value v = operand(an, &i->src[0]);
        v.is_const = false;
        return v;
    }
    case IR_OP_CVT:
        return convert(an, i, info);
    case IR_OP_ADD:
    case IR_OP_SUB:
        if (integer && size >= 4)
            return sum(operand(an, &i->src[0]), operand(an, &i->src[1]),
                       i->op == IR_OP_ADD ? 1 : -1, size);
        return plain(an, i);
    case IR_OP_NEG:
        if (integer && size >= 4)
            return sum(constant(0), operand(an, &i->src[0]), -1, size);
        return plain(an, i);
    case IR_OP_MUL:
    case IR_OP_MAD:
        return multiply(an, i, info);
    case IR_OP_SHL:
        return shift_left(an, i);
    case IR_OP_SHR:
        return shift_right(an, i);
    case IR_OP_AND:
        return bits_of(an, i);
    case IR_OP_OR:
    case IR_OP_XOR:
        return joined_bits(an, i);
    case IR_OP_SETP:
        return compare(an, i);
    case IR_OP_SELP:
        return choose(an, i);
    case IR_OP_LD:
        return load(an, i);
    case IR_OP_ATOM:
    case IR_OP_HELPER:
    case IR_OP_TEX:
        return varying(false);
    case IR_OP_BAR:
        return uniform(true);
    default:
        if (ir_ops[i->op].properties & IR_P_CROSS_LANE)
            return cross_lane(an, i);
        return plain(an, i);
    }
}

/* The second result, a predicate: p|q of setp and shfl, the carry. */
static struct ir_value transfer_pred(struct ir_analyser *an, const struct ir_instr *i,
                                     struct ir_value result)
{
    switch (i->op) {
    case IR_OP_SHFL:
    case IR_OP_ELECT:
        return varying(false);
    case IR_OP_MATCH:
        return result;
    default:
        return plain(an, i);
    }
}

/* Raises the shape of register `reg` so that it holds `v`, too. */
static bool merge(struct ir_analyser *an, uint32_t reg, struct ir_value v)
{
    struct ir_reg_info *r = &an->a->regs[reg], old = *r;
    if (an->fn->regs[reg].type == IR_PRED && v.shape == IR_AFFINE)
        v.shape = IR_VARYING;
    if (!v.invariant)
        r->block_uniform = false;
    if (v.unknown && v.shape == IR_UNIFORM)
        return r->block_uniform != old.block_uniform;
    if (r->shape == IR_SHAPE_UNKNOWN) {
        r->shape = v.shape;
        r->stride = v.shape == IR_AFFINE ? v.stride : 0;
    } else if (r->shape != v.shape || (v.shape == IR_AFFINE && r->stride != v.stride)) {
        r->shape = IR_VARYING;
    }
    r->may_wrap |= v.may_wrap && v.shape == IR_AFFINE;
    if (r->shape != IR_AFFINE) {
        r->may_wrap = false;
        r->stride = 0;
    }
    r->is_const = r->defs == 1 && v.is_const && r->shape == IR_UNIFORM;
    r->value = r->is_const ? v.bits : 0;
    return memcmp(r, &old, sizeof(*r)) != 0;
}

/* Whether lanes that wait elsewhere need the old value of `reg`, which the block overwrites. */
static bool is_pinned(const struct ir_analyser *an, uint32_t block, uint32_t reg)
{
    const uint64_t *pinned = an->pinned + (size_t)block * an->a->live_words;
    return (pinned[reg / 64] >> (reg % 64) & 1) && !ir_is_same(an, reg);
}

static bool define(struct ir_analyser *an, uint32_t block, const struct ir_instr *i, uint32_t reg,
                   struct ir_value v)
{
    if (reg == IR_NONE)
        return false;
    bool blended = is_pinned(an, block, reg);
    if (i->guard != IR_NONE) {
        struct ir_value guard = register_value(an, i->guard);
        blended |= guard.shape != IR_UNIFORM;
        v.invariant &= guard.invariant;
        v.is_const = false;
    }
    if (blended) {
        v.shape = IR_VARYING;
        v.unknown = v.is_const = v.may_wrap = false;
    }
    if (an->warp_branch[block])
        v.invariant = false;
    return merge(an, reg, v);
}

int ir_shape_round(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    bool changed = false;
    for (uint32_t n = 0; n < an->a->order_count; n++) {
        uint32_t b = an->a->order[n];
        const struct ir_block *block = &fn->blocks[b];
        if (!ir_spend(an, block->count * 4u))
            return -E2BIG;
        for (uint32_t k = 0; k < block->count; k++) {
            const struct ir_instr *i = &fn->instrs[block->first + k];
            if (i->dst_count == 0 && i->dst_pred == IR_NONE)
                continue;
            struct ir_value v = transfer(an, i, NULL);
            for (unsigned d = 0; d < i->dst_count; d++)
                changed |= define(an, b, i, i->dst[d], v);
            if (i->dst_pred != IR_NONE)
                changed |= define(an, b, i, i->dst_pred, transfer_pred(an, i, v));
        }
    }
    return changed;
}

void ir_shape_finish(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    struct ir_analysis *a = an->a;
    for (uint32_t n = 0; n < a->order_count; n++) {
        uint32_t b = a->order[n];
        for (uint32_t k = 0; k < fn->blocks[b].count; k++) {
            uint32_t at = fn->blocks[b].first + k;
            const struct ir_instr *i = &fn->instrs[at];
            struct ir_instr_info *info = &a->instrs[at];
            for (unsigned d = 0; d < i->dst_count; d++)
                if (i->dst[d] != IR_NONE && is_pinned(an, b, i->dst[d]))
                    info->blend = (uint8_t)(info->blend | 1u << d);
            if (i->dst_pred != IR_NONE && is_pinned(an, b, i->dst_pred))
                info->blend |= 16;
            if (i->dst_count)
                transfer(an, i, info);
            if (i->address.base != IR_NONE) {
                struct ir_value v = register_value(an, i->address.base);
                info->address = v.shape;
                info->address_stride = v.stride;
                info->address_may_wrap = v.may_wrap;
            }
        }
    }
}
