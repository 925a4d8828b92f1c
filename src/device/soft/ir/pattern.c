/*
 * Registers whose lanes differ by known constants that are no stride: indices that are composed of
 * bits of a thread's number, such as `2 * tid - (tid & 3)`, `tid ^ 1`, `tid / 4`.
 *
 * A lane's value is b + at[lane], where b is the same for all lanes and a multiple of a power of
 * two. Below that power the bits are those of at[lane] alone, so masks and shifts by constants can
 * be applied to it. A register that shape.c found varying, and that has such a pattern, becomes
 * IR_PATTERN: like an affine register it is kept as lane 0's value.
 *
 * This pass runs when shapes are stable. It looks only at registers with one definition that is not
 * blended, so that lanes that run together see the same definition (shape.c). Where an index is
 * widened, ranges.c must have proven that it does not wrap; nothing is left to be tested at run
 * time.
 */
#include "device/soft/ir/analyse.h"

#define OFFSET_MAX (INT64_C(1) << 20)
#define ALIGN_MAX  31u

struct lanes {
    bool known;
    uint8_t align; /* b is a multiple of 1 << align */
    int64_t at[IR_LANES_MAX];
};

static unsigned trailing_zeros(uint64_t v)
{
    return v ? GM_MIN((unsigned)__builtin_ctzll(v), ALIGN_MAX) : ALIGN_MAX;
}

static unsigned log2_of(uint64_t power)
{
    return (unsigned)__builtin_ctzll(power);
}

/* b + lane / down % period * stride */
static struct lanes steps(const struct ir_analyser *an, unsigned align, uint32_t down,
                          uint32_t period, int64_t stride)
{
    struct lanes l = { .known = true, .align = (uint8_t)align };
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        l.at[k] = (int64_t)(k / down % period) * stride;
    return l;
}

static struct lanes same(const struct ir_analyser *an, unsigned align)
{
    return steps(an, align, 1, 1, 0);
}

static struct lanes unknown(void)
{
    return (struct lanes) { .known = false };
}

/* In blocks whose rows are shorter than a warp and divide it. */
static struct lanes thread_index(const struct ir_analyser *an, unsigned dim)
{
    uint32_t n = an->opt.lanes, x = ir_known_ntid(an, 0), y = ir_known_ntid(an, 1);
    if (ir_known_ntid(an, dim) == 1)
        return same(an, ALIGN_MAX);
    if (ir_rows(an))
        return dim == 0 ? steps(an, log2_of(n), 1, n, 1) : same(an, 0);
    if (!x || n % x)
        return unknown();
    if (dim == 0)
        return steps(an, ALIGN_MAX, 1, x, 1);
    uint64_t plane = (uint64_t)x * y;
    if (plane % n == 0)
        return dim == 1 ? steps(an, log2_of(n / x), x, n / x, 1) : same(an, 0);
    if (n % plane)
        return unknown();
    return dim == 1 ? steps(an, ALIGN_MAX, x, y, 1)
                    : steps(an, log2_of(n / plane), (uint32_t)plane, n, 1);
}

static struct lanes special(const struct ir_analyser *an, uint32_t sreg)
{
    switch (sreg) {
    case IR_SREG_TID_X:
    case IR_SREG_TID_Y:
    case IR_SREG_TID_Z:
        return thread_index(an, sreg - IR_SREG_TID_X);
    case IR_SREG_LANEID:
        return steps(an, ALIGN_MAX, 1, an->opt.lanes, 1);
    case IR_SREG_LANEMASK_EQ:
    case IR_SREG_LANEMASK_LE:
    case IR_SREG_LANEMASK_LT:
    case IR_SREG_LANEMASK_GE:
    case IR_SREG_LANEMASK_GT:
        return unknown();
    default:
        return same(an, 0);
    }
}

/* A known value: it goes into the offsets, so that patterns of several registers have the same
 * b. */
static struct lanes number(const struct ir_analyser *an, int64_t value)
{
    struct lanes l = same(an, trailing_zeros((uint64_t)value));
    if (value > OFFSET_MAX || value < -OFFSET_MAX)
        return l;
    l.align = ALIGN_MAX;
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        l.at[k] = value;
    return l;
}

/* The address of a variable in the block's own memory; other addresses are not known now. */
static struct lanes of_symbol(const struct ir_analyser *an, const struct ir_src *s)
{
    if (ir_symbol_is_placed(an->m, s->index))
        return same(an, 0);
    return number(an, (int64_t)(ir_symbol_offset(an->m, an->fn, s->index) + s->bits));
}

static struct lanes of_uniform(const struct ir_analyser *an, const struct ir_reg_info *r)
{
    if (r->is_const)
        return number(an, (int64_t)r->value);
    if (r->single_def == IR_NONE)
        return same(an, 0);
    const struct ir_instr *i = &an->fn->instrs[r->single_def];
    return i->op == IR_OP_MOV && i->guard == IR_NONE && i->src[0].kind == IR_SRC_SYMBOL
               ? of_symbol(an, &i->src[0])
               : same(an, 0);
}

static struct lanes of_pattern(const struct ir_analyser *an, const struct ir_pattern *p)
{
    struct lanes l = { .known = true, .align = p->align };
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        l.at[k] = p->at[k];
    return l;
}

static struct lanes of_register(const struct ir_analyser *an, uint32_t reg)
{
    const struct ir_reg_info *r = &an->a->regs[reg];
    if (r->pattern)
        return of_pattern(an, &an->a->patterns[r->pattern - 1]);
    switch (r->shape) {
    case IR_UNIFORM:
        return of_uniform(an, r);
    case IR_AFFINE:
        if (r->may_wrap || r->stride > OFFSET_MAX || r->stride < -OFFSET_MAX)
            return unknown();
        return steps(an, an->low[reg] == IR_LOW_LANE && r->stride == 1 ? log2_of(an->opt.lanes) : 0,
                     1, an->opt.lanes, r->stride);
    default:
        return unknown();
    }
}

static struct lanes operand(const struct ir_analyser *an, const struct ir_src *s, uint8_t size)
{
    switch (s->kind) {
    case IR_SRC_IMM:
        return number(an, size == 4 ? (int32_t)s->bits : (int64_t)s->bits);
    case IR_SRC_SYMBOL:
        return of_symbol(an, s);
    case IR_SRC_SREG:
        return special(an, s->index);
    case IR_SRC_REG:
        return ir_types[an->fn->regs[s->index].type].size == size ? of_register(an, s->index)
                                                                  : unknown();
    default:
        return same(an, 0);
    }
}

/* The value of a constant source with `size` bytes, sign extended. */
static bool constant(const struct ir_analyser *an, const struct ir_src *s, uint8_t size,
                     int64_t *value)
{
    uint64_t bits = s->bits;
    if (s->kind == IR_SRC_REG && an->a->regs[s->index].is_const)
        bits = an->a->regs[s->index].value;
    else if (s->kind != IR_SRC_IMM)
        return false;
    *value = size == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    return true;
}

/* a + sign * b */
static struct lanes sum(const struct ir_analyser *an, struct lanes a, struct lanes b, int sign)
{
    if (!b.known)
        return b;
    if (b.align < a.align)
        a.align = b.align;
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        a.at[k] += sign * b.at[k];
    return a;
}

static struct lanes times(const struct ir_analyser *an, struct lanes a, int64_t by)
{
    if (by > OFFSET_MAX || by < -OFFSET_MAX)
        return unknown();
    a.align = (uint8_t)GM_MIN((unsigned)a.align + trailing_zeros((uint64_t)by), ALIGN_MAX);
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        a.at[k] *= by;
    return a;
}

static struct lanes product(struct ir_analyser *an, const struct ir_instr *i, uint8_t size)
{
    int64_t by;
    if (constant(an, &i->src[1], size, &by))
        return times(an, operand(an, &i->src[0], size), by);
    if (constant(an, &i->src[0], size, &by))
        return times(an, operand(an, &i->src[1], size), by);
    return unknown();
}

/* Whether the value's lower bits are those of its offset. */
static bool is_low(const struct ir_analyser *an, const struct lanes *l)
{
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        if (l->at[k] < 0 || l->at[k] >> l->align)
            return false;
    return l->known;
}

static struct lanes logic(const struct ir_analyser *an, const struct ir_instr *i, uint8_t size)
{
    int64_t c;
    unsigned other = constant(an, &i->src[1], size, &c) ? 0 : 1;
    if (other == 1 && !constant(an, &i->src[0], size, &c))
        return unknown();
    struct lanes l = operand(an, &i->src[other], size);
    if (!is_low(an, &l))
        return unknown();
    int64_t low = (INT64_C(1) << l.align) - 1;
    for (uint32_t k = 0; k < an->opt.lanes; k++) {
        int64_t v = l.at[k];
        l.at[k] = i->op == IR_OP_AND ? v & c : (i->op == IR_OP_OR ? v | c : v ^ c) & low;
    }
    if (i->op == IR_OP_AND && !(c & ~low))
        l.align = ALIGN_MAX; /* b is 0 */
    return l;
}

static struct lanes shift(const struct ir_analyser *an, const struct ir_instr *i, uint8_t size)
{
    int64_t n;
    struct lanes l = operand(an, &i->src[0], size);
    if (!constant(an, &i->src[1], 4, &n) || n < 0 || n > (i->op == IR_OP_SHL ? 20 : 31))
        return unknown();
    if (i->op == IR_OP_SHL)
        return times(an, l, INT64_C(1) << n);
    if (!is_low(an, &l))
        return unknown();
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        l.at[k] >>= n;
    l.align = (uint8_t)(l.align > n ? l.align - n : 0);
    return l;
}

/* Whether the register's 32-bit values have this pattern as 64-bit values, too. */
static bool can_widen(struct ir_analyser *an, const struct ir_src *s, bool is_signed)
{
    if (s->kind != IR_SRC_REG)
        return s->kind == IR_SRC_SREG;
    const struct ir_range *r = &an->ranges[s->index];
    if (r->known != IR_RANGE_KNOWN || r->high - r->low > INT32_MAX || (r->low < 0 && !is_signed))
        return false;
    if (r->grid)
        an->a->used_small_grid = true;
    return true;
}

static struct lanes widened(struct ir_analyser *an, const struct ir_src *s, bool is_signed)
{
    struct lanes l = operand(an, s, 4);
    return l.known && can_widen(an, s, is_signed) ? l : unknown();
}

static struct lanes convert(struct ir_analyser *an, const struct ir_instr *i)
{
    uint8_t from = ir_types[i->type2].size, to = ir_types[i->type].size;
    if (ir_type_is_float(i->type2) || from < 4)
        return unknown();
    return to > from ? widened(an, &i->src[0], ir_type_is_signed(i->type2))
                     : operand(an, &i->src[0], from);
}

static struct lanes wide_product(struct ir_analyser *an, const struct ir_instr *i)
{
    bool is_signed = ir_type_is_signed(i->type);
    int64_t by;
    unsigned other = constant(an, &i->src[1], 4, &by) ? 0 : 1;
    if (ir_types[i->type].size != 4 || (other == 1 && !constant(an, &i->src[0], 4, &by)))
        return unknown();
    return times(an, widened(an, &i->src[other], is_signed), is_signed ? by : (uint32_t)by);
}

static struct lanes transfer(struct ir_analyser *an, const struct ir_instr *i)
{
    uint8_t size = ir_types[i->type].size;
    struct lanes l;
    switch (i->op) {
    case IR_OP_MOV:
    case IR_OP_CVTA:
        return operand(an, &i->src[0], size);
    case IR_OP_CVT:
        return convert(an, i);
    case IR_OP_ADD:
    case IR_OP_SUB:
        return sum(an, operand(an, &i->src[0], size), operand(an, &i->src[1], size),
                   i->op == IR_OP_ADD ? 1 : -1);
    case IR_OP_MUL:
    case IR_OP_MAD:
        if (i->mode != IR_MUL_LO && i->mode != IR_MUL_WIDE)
            return unknown();
        l = i->mode == IR_MUL_WIDE ? wide_product(an, i) : product(an, i, size);
        if (i->op == IR_OP_MAD)
            l = sum(an, l, operand(an, &i->src[2], i->mode == IR_MUL_WIDE ? 8 : size), 1);
        return l;
    case IR_OP_AND:
    case IR_OP_OR:
    case IR_OP_XOR:
        return logic(an, i, size);
    case IR_OP_SHL:
    case IR_OP_SHR:
        return shift(an, i, size);
    default:
        return unknown();
    }
}

/* Whether this is the only definition of an integer that counts as varying so far, and all lanes
 * that use it see this definition. */
static bool is_candidate(const struct ir_analyser *an, uint32_t at)
{
    const struct ir_instr *i = &an->fn->instrs[at];
    if (i->dst_count != 1 || i->dst[0] == IR_NONE || i->dst_pred != IR_NONE ||
        i->guard != IR_NONE || (i->flags & (IR_F_SAT | IR_F_CARRY_OUT)) ||
        an->a->instrs[at].blend || ir_type_is_float(i->type))
        return false;
    const struct ir_reg_info *r = &an->a->regs[i->dst[0]];
    uint8_t kept = ir_types[an->fn->regs[i->dst[0]].type].size, size = ir_types[i->type].size;
    bool wide = (i->op == IR_OP_MUL || i->op == IR_OP_MAD) && i->mode == IR_MUL_WIDE;
    bool open = r->shape == IR_VARYING || (r->shape == IR_AFFINE && !r->may_wrap);
    return open && r->single_def == at && size >= 4 && kept == (wide ? 2 * size : size) &&
           !ir_type_is_float(an->fn->regs[i->dst[0]].type);
}

/* Moves multiples of b's power that all offsets contain from the offsets to b. */
static void normalise(const struct ir_analyser *an, struct lanes *l)
{
    int64_t low = l->at[0];
    for (uint32_t k = 1; k < an->opt.lanes; k++)
        low = GM_MIN(low, l->at[k]);
    low &= -(INT64_C(1) << l->align);
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        l->at[k] -= low;
}

/* Whether the pattern is a stride after all, as in `16 * tid.y + tid.x`. */
static bool in_line(const struct ir_analyser *an, const struct lanes *l)
{
    int64_t stride = l->at[1] - l->at[0];
    for (uint32_t k = 1; k < an->opt.lanes; k++)
        if (l->at[k] - l->at[k - 1] != stride)
            return false;
    return stride != 0;
}

static int add(struct ir_analyser *an, uint32_t reg, struct lanes *l)
{
    struct ir_analysis *a = an->a;
    normalise(an, l);
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        if (l->at[k] > OFFSET_MAX || l->at[k] < -OFFSET_MAX)
            return 0;
    if ((a->pattern_count & (a->pattern_count - 1)) == 0) {
        size_t cap = a->pattern_count ? 2 * (size_t)a->pattern_count : 1;
        struct ir_pattern *p = realloc(a->patterns, cap * sizeof(*p));
        if (!p)
            return -ENOMEM;
        a->patterns = p;
    }
    struct ir_pattern *p = &a->patterns[a->pattern_count];
    p->align = l->align;
    for (uint32_t k = 0; k < an->opt.lanes; k++)
        p->at[k] = (int32_t)l->at[k];
    a->regs[reg].pattern = ++a->pattern_count;
    if (a->regs[reg].shape == IR_VARYING)
        a->regs[reg].shape = IR_PATTERN;
    if (a->regs[reg].shape == IR_PATTERN && in_line(an, l)) {
        a->regs[reg].shape = IR_AFFINE;
        a->regs[reg].stride = l->at[1] - l->at[0];
    }
    return 0;
}

static void note_addresses(struct ir_analyser *an)
{
    for (uint32_t n = 0; n < an->fn->instr_count; n++) {
        uint32_t base = an->fn->instrs[n].address.base;
        if (base == IR_NONE || !an->a->regs[base].pattern)
            continue;
        an->a->instrs[n].address = an->a->regs[base].shape;
        an->a->instrs[n].address_stride = an->a->regs[base].stride;
    }
}

int ir_find_patterns(struct ir_analyser *an)
{
    for (uint32_t n = 0; n < an->a->order_count; n++) {
        const struct ir_block *b = &an->fn->blocks[an->a->order[n]];
        if (!ir_spend(an, b->count))
            return -E2BIG;
        for (uint32_t at = b->first; at < b->first + b->count; at++) {
            if (!is_candidate(an, at))
                continue;
            struct lanes l = transfer(an, &an->fn->instrs[at]);
            int rc = l.known ? add(an, an->fn->instrs[at].dst[0], &l) : 0;
            if (rc)
                return rc;
        }
    }
    note_addresses(an);
    return 0;
}
