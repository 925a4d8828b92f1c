/*
 * Kernels that read shared memory behind a barrier and then write there, without a barrier in
 * between:
 *
 *     __syncthreads(); mean = s[0]; ... if (lane == 0) s[warp] = x; __syncthreads();
 *
 * A warp that is ahead overwrites what another one has not read yet. On a GPU all warps read at
 * once, long before the first of them can write, so programs with that race are right there. Here
 * warps run one after the other, each from barrier to barrier. So such reads get a barrier of ours
 * behind them.
 *
 * Which reads: those whose address is the same in all warps of a block, since such data is what
 * warps tell each other. Other reads are mostly of words that are the thread's own to write, and a
 * barrier would cost time for nothing. So it would for what only thread 0 reads (the sum that it
 * stores for the block), as its warp runs before the others.
 *
 * A barrier that is added must pair with another one in every thread, wherever that is. So every
 * barrier of the kernel gets a second one, to which every thread that has passed the first comes
 * once before any other barrier (second.c); a kernel whose barriers are of other kinds as well is
 * left as it is. Nor may a thread wait for another one in between (polls()). The checker
 * (gmux-check) does not see ours: it reports the race.
 */
#include "device/soft/ir/second.h"

#define DEPTH_MOST 12u /* of an address's computation */

#define MANY (IR_NONE - 1)

struct ir_hazards {
    struct ir_raw_fn *raw;
    uint32_t *defined; /* by register: the one instruction that sets it, IR_NONE, or MANY */
    uint8_t *marks;    /* by instruction: bits of enum ir_mark */
    bool *targets;     /* by instruction: jumps come to it */
    bool line;         /* the kernel reads of thread numbers only %tid.x */
};

/* bar.sync 0 of all threads. */
static bool is_plain(const struct ir_instr *i)
{
    return ir_is_barrier(i) && i->mode == IR_BAR_SYNC && i->guard == IR_NONE && i->src_count == 1 &&
           i->src[0].kind == IR_SRC_IMM && i->src[0].bits == 0;
}

static bool writes_shared(const struct ir_instr *i)
{
    return (i->op == IR_OP_ST || i->op == IR_OP_ATOM || i->op == IR_OP_RED) &&
           i->space == IR_SPACE_SHARED;
}

/* May read what a thread waits for in a loop. */
static bool polls(const struct ir_instr *i)
{
    return i->op == IR_OP_ATOM || (i->op == IR_OP_LD && i->order != IR_ORDER_WEAK);
}

/* --- addresses -------------------------------------------------------------------------------- */

static bool is_same(const struct ir_hazards *h, const struct ir_src *s, unsigned depth);

static bool is_same_sreg(uint32_t sreg)
{
    switch (sreg) {
    case IR_SREG_NTID_X:
    case IR_SREG_NTID_Y:
    case IR_SREG_NTID_Z:
    case IR_SREG_CTAID_X:
    case IR_SREG_CTAID_Y:
    case IR_SREG_CTAID_Z:
    case IR_SREG_LANEID:
        return true;
    default:
        return false;
    }
}

/* NULL: there is none, or several. */
static const struct ir_instr *definition(const struct ir_hazards *h, const struct ir_src *s)
{
    uint32_t at = s->kind == IR_SRC_REG ? h->defined[s->index] : IR_NONE;
    return at < h->raw->instr_count ? &h->raw->instrs[at] : NULL;
}

/* The lane, as far as can be told: `thread & 31`, `thread * 4 & 124`, `thread % 32`. */
static bool is_lane(const struct ir_hazards *h, const struct ir_instr *i)
{
    const struct ir_instr *from = definition(h, &i->src[0]);
    const uint64_t by = i->src[1].bits;
    uint64_t lanes = 32;
    if (i->src[1].kind != IR_SRC_IMM || (from && from->op == IR_OP_SHR))
        return false;
    if (i->op == IR_OP_REM)
        return by > 0 && by <= lanes && (by & (by - 1)) == 0;
    if (from && from->op == IR_OP_SHL && from->src[1].kind == IR_SRC_IMM && from->src[1].bits < 16)
        lanes <<= from->src[1].bits;
    return by < lanes;
}

static bool is_same_result(const struct ir_hazards *h, const struct ir_instr *i, unsigned depth)
{
    bool same = i->guard == IR_NONE;
    switch (i->op) {
    case IR_OP_LD:
        return same && i->space == IR_SPACE_PARAM && i->address.base == IR_NONE;
    case IR_OP_AND:
    case IR_OP_REM:
        if (is_lane(h, i))
            return same;
        break;
    case IR_OP_MOV:
    case IR_OP_CVT:
    case IR_OP_CVTA:
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
    case IR_OP_MAD:
    case IR_OP_SHL:
        break;
    default:
        return false;
    }
    for (unsigned k = 0; k < i->src_count && same; k++)
        same = is_same(h, &i->src[k], depth);
    return same;
}

/* Whether all warps of the block have the same there; lanes may differ. What cannot be told is
 * taken for different: then no barrier is added. */
static bool is_same(const struct ir_hazards *h, const struct ir_src *s, unsigned depth)
{
    const struct ir_instr *i;
    switch (s->kind) {
    case IR_SRC_IMM:
    case IR_SRC_SYMBOL:
        return true;
    case IR_SRC_SREG:
        return is_same_sreg(s->index);
    default:
        i = definition(h, s);
        return i && depth < DEPTH_MOST && is_same_result(h, i, depth + 1);
    }
}

/* %tid.x == 0, if `equal`, or %tid.x != 0. */
static bool is_thread_0(const struct ir_hazards *h, uint32_t pred, bool equal)
{
    const struct ir_src guard = { .kind = IR_SRC_REG, .index = pred };
    const struct ir_instr *i = pred == IR_NONE ? NULL : definition(h, &guard);
    if (!i || i->op != IR_OP_SETP || i->guard != IR_NONE || i->src_count != 2 ||
        i->cmp != (equal ? IR_CMP_EQ : IR_CMP_NE))
        return false;
    const struct ir_instr *tid = definition(h, &i->src[0]);
    return i->src[1].kind == IR_SRC_IMM && i->src[1].bits == 0 && tid && tid->op == IR_OP_MOV &&
           tid->guard == IR_NONE && tid->src[0].kind == IR_SRC_SREG &&
           tid->src[0].index == IR_SREG_TID_X;
}

/* Only thread 0 comes to instruction n, by the branch that ends the block before, or carries it
 * out. */
static bool is_of_thread_0(const struct ir_hazards *h, uint32_t n)
{
    const struct ir_instr *i = &h->raw->instrs[n];
    if (!h->line || is_thread_0(h, i->guard, !(i->flags & IR_F_GUARD_NOT)))
        return h->line;
    while (n > 0 && !h->targets[n] && h->raw->instrs[n - 1].op != IR_OP_BRA)
        n--;
    i = &h->raw->instrs[n - (n > 0)];
    return !h->targets[n] && i->op == IR_OP_BRA &&
           is_thread_0(h, i->guard, i->flags & IR_F_GUARD_NOT);
}

static bool reads_from_warps(const struct ir_hazards *h, uint32_t n)
{
    const struct ir_instr *i = &h->raw->instrs[n];
    const struct ir_src base = { .kind = IR_SRC_REG, .index = i->address.base };
    return i->op == IR_OP_LD && i->space == IR_SPACE_SHARED &&
           (i->address.base == IR_NONE || is_same(h, &base, 0)) && !is_of_thread_0(h, n);
}

/* --- marks ------------------------------------------------------------------------------------ */

static void find_definitions(struct ir_hazards *h)
{
    const struct ir_raw_fn *raw = h->raw;
    for (uint32_t r = 0; r < raw->reg_count; r++)
        h->defined[r] = IR_NONE;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        for (unsigned d = 0; d < i->dst_count; d++)
            if (i->dst[d] != IR_NONE)
                h->defined[i->dst[d]] = h->defined[i->dst[d]] == IR_NONE ? n : MANY;
        if (i->dst_pred != IR_NONE)
            h->defined[i->dst_pred] = MANY;
    }
}

static void find_targets(struct ir_hazards *h)
{
    const struct ir_raw_fn *raw = h->raw;
    h->line = true;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        uint32_t count;
        const uint32_t *targets = ir_raw_targets(raw, i, &count);
        for (uint32_t t = 0; t < count; t++)
            h->targets[raw->labels[targets[t]]] = true;
        for (unsigned k = 0; k < i->src_count; k++)
            h->line &= i->src[k].kind != IR_SRC_SREG ||
                       (i->src[k].index != IR_SREG_TID_Y && i->src[k].index != IR_SREG_TID_Z);
    }
}

static uint8_t marks_of(const struct ir_hazards *h, uint32_t n)
{
    const struct ir_instr *i = &h->raw->instrs[n];
    return (uint8_t)((is_plain(i) ? IR_MARK_BARRIER : 0) | (writes_shared(i) ? IR_MARK_WRITE : 0) |
                     (polls(i) ? IR_MARK_POLL : 0) | (reads_from_warps(h, n) ? IR_MARK_READ : 0));
}

/* Whether the kernel may need second barriers, and may have them. */
static bool mark(struct ir_hazards *h)
{
    const struct ir_raw_fn *raw = h->raw;
    uint8_t all = 0;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        if ((i->op == IR_OP_BAR || i->op == IR_OP_BARRIER) && !is_plain(i))
            return false;
        h->marks[n] = marks_of(h, n);
        all |= h->marks[n];
    }
    const uint8_t needed = IR_MARK_BARRIER | IR_MARK_WRITE | IR_MARK_READ;
    return (all & needed) == needed;
}

bool ir_separate_hazards(struct ir_raw_fn *raw)
{
    struct ir_hazards h = { .raw = raw };
    h.defined = calloc((size_t)raw->reg_count + 1, sizeof(*h.defined));
    h.marks = calloc((size_t)raw->instr_count + 1, 1);
    h.targets = calloc((size_t)raw->instr_count + 1, sizeof(*h.targets));
    bool right = h.defined && h.marks && h.targets;
    if (right) {
        find_definitions(&h);
        find_targets(&h);
        if (mark(&h))
            right = ir_add_seconds(raw, h.marks);
    }
    free(h.defined);
    free(h.marks);
    free(h.targets);
    return right;
}
