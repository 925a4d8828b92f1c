/*
 * Intervals of 32-bit registers, for one question: can an affine index that is widened to a 64-bit
 * address wrap inside a warp? The intervals begin with what CUDA promises about thread and block
 * numbers, and with the caller's promise that a row of the grid has less than 2^31 threads. They
 * pass through the few operations that index arithmetic uses. Loops that count are not followed
 * (IR_RANGE_ANY): there the code tests at run time.
 *
 * Branches do not narrow intervals, so they hold for lanes that do not run as well.
 */
#include "device/soft/ir/analyse.h"

static struct ir_range any(void)
{
    return (struct ir_range) { .known = IR_RANGE_ANY };
}

static struct ir_range interval(int64_t low, int64_t high)
{
    if (low > high || low < INT32_MIN || high > INT32_MAX)
        return any();
    return (struct ir_range) { .known = IR_RANGE_KNOWN, .low = low, .high = high };
}

static struct ir_range grid_interval(int64_t high)
{
    struct ir_range r = interval(0, high);
    r.grid = true;
    return r;
}

static struct ir_range special(const struct ir_analyser *an, uint32_t sreg)
{
    static const int64_t threads[3] = { 1024, 1024, 64 }, blocks[3] = { INT32_MAX, 65535, 65535 };
    _Static_assert(IR_SREG_TID_X == 0, "first in the table");
    unsigned dim;
    if (sreg <= IR_SREG_NTID_Z) { /* they come first */
        dim = (sreg - IR_SREG_TID_X) % 3;
        uint32_t n = ir_known_ntid(an, dim);
        int64_t most = n ? n : threads[dim];
        return sreg <= IR_SREG_TID_Z ? interval(0, most - 1) : interval(n ? n : 1, most);
    }
    if (sreg >= IR_SREG_CTAID_X && sreg <= IR_SREG_NCTAID_Z) {
        dim = (sreg - IR_SREG_CTAID_X) % 3;
        bool is_index = sreg <= IR_SREG_CTAID_Z;
        uint32_t n = ir_known_ntid(an, dim);
        int64_t most = blocks[dim];
        if (an->opt.small_grid && n && INT32_MAX / n < most)
            return grid_interval(INT32_MAX / n - is_index);
        return interval(!is_index, most - is_index);
    }
    if (sreg == IR_SREG_LANEID)
        return interval(0, 31);
    if (sreg == IR_SREG_WARPID || sreg == IR_SREG_NWARPID)
        return interval(0, 64);
    return any();
}

/* The special register that a register was loaded from, if that is its only definition. */
static uint32_t origin(const struct ir_analyser *an, const struct ir_src *s)
{
    if (s->kind == IR_SRC_SREG)
        return s->index;
    if (s->kind != IR_SRC_REG || an->a->regs[s->index].single_def == IR_NONE)
        return IR_NONE;
    const struct ir_instr *def = &an->fn->instrs[an->a->regs[s->index].single_def];
    if (def->op != IR_OP_MOV || def->guard != IR_NONE || def->src[0].kind != IR_SRC_SREG)
        return IR_NONE;
    return def->src[0].index;
}

/* The dimension d if this is ctaid.d * ntid.d; else IR_NONE. */
static uint32_t block_start(const struct ir_analyser *an, const struct ir_src *a,
                            const struct ir_src *b)
{
    uint32_t x = origin(an, a), y = origin(an, b);
    for (uint32_t d = 0; d < 3; d++) {
        uint32_t ctaid = IR_SREG_CTAID_X + d, ntid = IR_SREG_NTID_X + d;
        if ((x == ctaid && y == ntid) || (x == ntid && y == ctaid))
            return d;
    }
    return IR_NONE;
}

/* The dimension d if s is a register with ctaid.d * ntid.d; else IR_NONE. */
static uint32_t block_start_register(const struct ir_analyser *an, const struct ir_src *s)
{
    if (s->kind != IR_SRC_REG || an->a->regs[s->index].single_def == IR_NONE)
        return IR_NONE;
    const struct ir_instr *def = &an->fn->instrs[an->a->regs[s->index].single_def];
    if (def->op != IR_OP_MUL || def->mode != IR_MUL_LO || def->guard != IR_NONE)
        return IR_NONE;
    return block_start(an, &def->src[0], &def->src[1]);
}

static bool is_thread_index(const struct ir_analyser *an, const struct ir_src *s, uint32_t dim)
{
    return dim != IR_NONE && origin(an, s) == IR_SREG_TID_X + dim;
}

static struct ir_range operand(const struct ir_analyser *an, const struct ir_src *s)
{
    switch (s->kind) {
    case IR_SRC_REG:
        return an->ranges[s->index];
    case IR_SRC_IMM:
        return interval((int32_t)s->bits, (int32_t)s->bits);
    case IR_SRC_SREG:
        return special(an, s->index);
    default:
        return any();
    }
}

static struct ir_range combine(struct ir_range a, struct ir_range b, int64_t low, int64_t high)
{
    struct ir_range r = interval(low, high);
    r.grid = a.grid || b.grid;
    return r;
}

static struct ir_range product(struct ir_range a, struct ir_range b)
{
    int64_t p[4] = { a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high };
    int64_t low = p[0], high = p[0];
    for (unsigned k = 1; k < 4; k++) {
        low = GM_MIN(low, p[k]);
        high = GM_MAX(high, p[k]);
    }
    return combine(a, b, low, high);
}

static struct ir_range hull(struct ir_range a, struct ir_range b)
{
    return combine(a, b, GM_MIN(a.low, b.low), GM_MAX(a.high, b.high));
}

static struct ir_range transfer(const struct ir_analyser *an, const struct ir_instr *i)
{
    struct ir_range s[3] = { { 0 } };
    bool known = i->src_count > 0 && i->src_count <= 3;
    if (ir_type_is_float(i->type) || (i->flags & (IR_F_SAT | IR_F_CARRY_OUT)))
        return any();
    /* These operations do not depend on what is known of the operands. */
    bool small = an->opt.small_grid && i->mode == IR_MUL_LO;
    if (small && i->op == IR_OP_MUL && block_start(an, &i->src[0], &i->src[1]) != IR_NONE)
        return grid_interval(INT32_MAX - 1);
    if (small && i->op == IR_OP_MAD &&
        is_thread_index(an, &i->src[2], block_start(an, &i->src[0], &i->src[1])))
        return grid_interval(INT32_MAX - 1);
    if (an->opt.small_grid && i->op == IR_OP_ADD &&
        (is_thread_index(an, &i->src[1], block_start_register(an, &i->src[0])) ||
         is_thread_index(an, &i->src[0], block_start_register(an, &i->src[1]))))
        return grid_interval(INT32_MAX - 1);
    for (unsigned k = 0; k < i->src_count && k < 3; k++) {
        if (i->op == IR_OP_SELP && k == 2)
            break;
        s[k] = operand(an, &i->src[k]);
        if (s[k].known == IR_RANGE_UNKNOWN)
            return s[k]; /* not known yet */
        known &= s[k].known == IR_RANGE_KNOWN;
    }
    if (i->op == IR_OP_AND && ir_types[i->type].size == 4) {
        for (unsigned k = 0; k < 2; k++)
            if (s[k].known == IR_RANGE_KNOWN && s[k].low == s[k].high && s[k].low >= 0)
                return interval(0, s[k].high);
        return any();
    }
    if (!known)
        return any();
    switch (i->op) {
    case IR_OP_MOV:
        return s[0];
    case IR_OP_CVT:
        if (ir_types[i->type2].class == 'F' || ir_types[i->type].size < 4 ||
            ir_types[i->type2].size != 4)
            return any();
        return s[0].low >= 0 || ir_type_is_signed(i->type2) ? s[0] : any();
    case IR_OP_ADD:
        return combine(s[0], s[1], s[0].low + s[1].low, s[0].high + s[1].high);
    case IR_OP_SUB:
        return combine(s[0], s[1], s[0].low - s[1].high, s[0].high - s[1].low);
    case IR_OP_MUL:
        return i->mode == IR_MUL_LO ? product(s[0], s[1]) : any();
    case IR_OP_MAD: {
        struct ir_range p = i->mode == IR_MUL_LO ? product(s[0], s[1]) : any();
        return p.known == IR_RANGE_KNOWN ? combine(p, s[2], p.low + s[2].low, p.high + s[2].high)
                                         : p;
    }
    case IR_OP_SHL:
        if (s[1].low != s[1].high || s[1].low < 0 || s[1].low > 30)
            return any();
        return combine(s[0], s[0], s[0].low * (1ll << s[1].low), s[0].high * (1ll << s[1].low));
    case IR_OP_SHR:
        if (s[1].low != s[1].high || s[1].low < 0 || s[1].low > 31 || s[0].low < 0)
            return any();
        return combine(s[0], s[0], s[0].low >> s[1].low, s[0].high >> s[1].low);
    case IR_OP_MIN:
    case IR_OP_MAX:
        return s[0].low >= 0 && s[1].low >= 0 ? hull(s[0], s[1]) : any();
    case IR_OP_SELP:
        return hull(s[0], s[1]);
    default:
        return any();
    }
}

static bool join(struct ir_range *r, struct ir_range v)
{
    if (v.known == IR_RANGE_UNKNOWN || r->known == IR_RANGE_ANY)
        return false;
    if (v.known == IR_RANGE_ANY || r->known == IR_RANGE_UNKNOWN) {
        *r = v;
        return true;
    }
    if (v.low >= r->low && v.high <= r->high && v.grid <= r->grid)
        return false;
    uint8_t grows = (uint8_t)(r->grows + 1);
    *r = grows > 4 ? any() : hull(*r, v);
    r->grows = grows;
    return true;
}

static bool visit(struct ir_analyser *an, const struct ir_instr *i)
{
    bool changed = false;
    if (i->dst_count == 1 && i->dst[0] != IR_NONE)
        changed |= join(&an->ranges[i->dst[0]], transfer(an, i));
    for (unsigned d = 0; d < i->dst_count && i->dst_count > 1; d++)
        if (i->dst[d] != IR_NONE)
            changed |= join(&an->ranges[i->dst[d]], any());
    return changed;
}

int ir_compute_ranges(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    an->ranges = calloc((size_t)fn->reg_count + 1, sizeof(*an->ranges));
    if (!an->ranges)
        return -ENOMEM;
    for (uint32_t r = 0; r < fn->reg_count; r++)
        if (ir_types[fn->regs[r].type].size != 4 || fn->regs[r].type == IR_F32 ||
            an->a->regs[r].defs == 0)
            an->ranges[r].known = IR_RANGE_ANY;
    return ir_until_stable(an, visit);
}

/* True if all values lie in an interval of less than 2^32 and consecutive lanes are less than 2^31
 * apart: then nothing wraps between them. */
bool ir_cannot_wrap(struct ir_analyser *an, const struct ir_src *src, bool is_signed)
{
    if (src->kind != IR_SRC_REG)
        return src->kind == IR_SRC_SREG;
    const struct ir_range *r = &an->ranges[src->index];
    int64_t stride = an->a->regs[src->index].stride;
    if (r->known != IR_RANGE_KNOWN || (r->low < 0 && !is_signed) || stride > (1 << 26) ||
        stride < -(1 << 26))
        return false;
    if (r->grid)
        an->a->used_small_grid = true;
    return true;
}
