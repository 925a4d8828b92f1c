/*
 * Kernels that read shared memory right behind a barrier and then write there, without a barrier in
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
 * barrier would cost time for nothing.
 *
 * A barrier that is added must pair with another one in every thread, wherever that is. So every
 * barrier of the kernel gets a second one, at a place to which every thread that has passed the
 * first comes once before any other barrier; a kernel whose barriers are of other kinds as well is
 * left as it is. Nor may a thread wait for another one in between (polls()). The checker
 * (gmux-check) does not see ours: it reports the race.
 */
#include "device/soft/ir/raw.h"

#define BARRIERS_MOST 256u       /* with more of them, none is added */
#define STEPS_MOST    (1u << 20) /* instructions looked at to find writes; then none is added */
#define DEPTH_MOST    12u        /* of an address's computation */

#define MANY (IR_NONE - 1)

/* Instructions that jump to one: the first and the last of them. */
struct sources {
    uint32_t first, last; /* first > last: none */
};

struct ir_hazards {
    struct ir_raw_fn *raw;
    uint32_t *defined;       /* by register: the one instruction that sets it, IR_NONE, or MANY */
    struct sources *sources; /* by instruction */
    uint8_t *seen;           /* by instruction, in a search */
    uint32_t *stack;
    uint32_t steps;
    struct {
        uint32_t at;     /* the barrier */
        uint32_t behind; /* the second one comes behind this instruction */
        bool joins;      /* jumps to what comes next go to the second one */
    } barriers[BARRIERS_MOST];
    uint32_t count;
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

static bool reads_from_warps(const struct ir_hazards *h, const struct ir_instr *i)
{
    const struct ir_src base = { .kind = IR_SRC_REG, .index = i->address.base };
    return i->op == IR_OP_LD && i->space == IR_SPACE_SHARED &&
           (i->address.base == IR_NONE || is_same(h, &base, 0));
}

/* --- control flow ----------------------------------------------------------------------------- */

static void visit(struct ir_hazards *h, uint32_t *top, uint32_t at)
{
    if (at < h->raw->instr_count && !h->seen[at]) {
        h->seen[at] = 1;
        h->stack[(*top)++] = at;
    }
}

/* Whether shared memory may be written behind instruction `from` before the next plain barrier. */
static bool write_follows(struct ir_hazards *h, uint32_t from)
{
    uint32_t top = 0, count;
    memset(h->seen, 0, h->raw->instr_count);
    visit(h, &top, from + 1);
    while (top > 0) {
        uint32_t at = h->stack[--top];
        const struct ir_instr *i = &h->raw->instrs[at];
        if (writes_shared(i))
            return true;
        if (is_plain(i) || ++h->steps > STEPS_MOST)
            continue;
        const uint32_t *targets = ir_raw_targets(h->raw, i, &count);
        for (uint32_t t = 0; t < count; t++, h->steps++)
            visit(h, &top, h->raw->labels[targets[t]]);
        if (ir_falls_through(i))
            visit(h, &top, at + 1);
    }
    return false;
}

/* The code behind a barrier up to an instruction, of which is known what jumps in and out. */
struct stretch {
    uint32_t barrier;
    uint32_t last_target, last_source; /* of jumps out of it, and of jumps into it */
};

/* Whether all threads that leave the stretch before instruction n come to n at once, and only they:
 * what is put before n is then carried out once by each. */
static bool all_come_to(const struct ir_hazards *h, const struct stretch *s, uint32_t n,
                        bool *by_jumps)
{
    const struct sources *from = &h->sources[n];
    *by_jumps = from->first <= from->last && from->first > s->barrier && from->last < n;
    bool others = from->first > from->last || from->first >= n;
    return s->last_target <= n && s->last_source < n &&
           (*by_jumps ||
            (others && s->last_target < n && ir_falls_through(&h->raw->instrs[n - 1])));
}

/* Notes jumps from and to instruction n. False: one goes to, or comes from, before the barrier. */
static bool extend(const struct ir_hazards *h, struct stretch *s, uint32_t n)
{
    const struct ir_raw_fn *raw = h->raw;
    const struct ir_instr *i = &raw->instrs[n];
    const struct sources *from = &h->sources[n];
    if (from->first <= from->last) {
        if (from->first <= s->barrier)
            return false;
        s->last_source = GM_MAX(s->last_source, from->last);
    }
    uint32_t count;
    const uint32_t *targets = ir_raw_targets(raw, i, &count);
    for (uint32_t t = 0; t < count; t++) {
        uint32_t to = raw->labels[targets[t]];
        if (to <= s->barrier)
            return false;
        s->last_target = GM_MAX(s->last_target, to);
    }
    return true;
}

/* Places the second barrier: behind the last such read before shared memory may be written, where
 * all threads come by. Where there is none, directly behind the first. */
static void place_second(struct ir_hazards *h, uint32_t b)
{
    const struct ir_raw_fn *raw = h->raw;
    struct stretch s = { .barrier = h->barriers[b].at };
    bool read = false, by_jumps;
    h->barriers[b].behind = s.barrier;
    for (uint32_t n = s.barrier + 1; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        if (read && all_come_to(h, &s, n, &by_jumps)) {
            h->barriers[b].behind = n - 1;
            h->barriers[b].joins = by_jumps;
            read = false;
        }
        if (!extend(h, &s, n) || i->op == IR_OP_BAR || i->op == IR_OP_BARRIER || writes_shared(i) ||
            polls(i) || ++h->steps > STEPS_MOST)
            break;
        read |= reads_from_warps(h, i);
    }
}

/* False: the kernel has barriers that cannot be paired, too many, or none. */
static bool find_barriers(struct ir_hazards *h)
{
    const struct ir_raw_fn *raw = h->raw;
    bool writes = false;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        writes |= writes_shared(i);
        if (i->op != IR_OP_BAR && i->op != IR_OP_BARRIER)
            continue;
        if (!is_plain(i) || h->count == BARRIERS_MOST)
            return false;
        h->barriers[h->count++].at = n;
    }
    return writes && h->count > 0;
}

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

static void note_source(struct ir_hazards *h, uint32_t label, uint32_t from)
{
    struct sources *s = &h->sources[h->raw->labels[label]];
    s->first = GM_MIN(s->first, from);
    s->last = GM_MAX(s->last, from);
}

static void find_sources(struct ir_hazards *h)
{
    const struct ir_raw_fn *raw = h->raw;
    for (uint32_t n = 0; n <= raw->instr_count; n++)
        h->sources[n] = (struct sources) { .first = IR_NONE };
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        uint32_t count;
        const uint32_t *targets = ir_raw_targets(raw, &raw->instrs[n], &count);
        for (uint32_t t = 0; t < count; t++)
            note_source(h, targets[t], n);
    }
}

static bool find_hazard(struct ir_hazards *h)
{
    bool found = false;
    find_definitions(h);
    find_sources(h);
    for (uint32_t b = 0; b < h->count; b++) {
        place_second(h, b);
        found |=
            h->barriers[b].behind > h->barriers[b].at && write_follows(h, h->barriers[b].behind);
    }
    return found && h->steps <= STEPS_MOST;
}

/* --- the second barriers ---------------------------------------------------------------------- */

static bool add_barriers(struct ir_hazards *h)
{
    struct ir_raw_fn *raw = h->raw;
    uint32_t count = raw->instr_count + h->count, out = 0;
    struct ir_instr *instrs = calloc(count, sizeof(*instrs));
    if (!instrs)
        return false;
    for (uint32_t l = 0; l < raw->label_count; l++) {
        uint32_t before = 0;
        while (before < h->count &&
               h->barriers[before].behind + h->barriers[before].joins < raw->labels[l])
            before++;
        raw->labels[l] += before;
    }
    for (uint32_t n = 0, b = 0; n < raw->instr_count; n++) {
        instrs[out++] = raw->instrs[n];
        if (b < h->count && h->barriers[b].behind == n) {
            instrs[out] = raw->instrs[h->barriers[b++].at];
            instrs[out++].flags |= IR_F_SECOND;
        }
    }
    free(raw->instrs);
    raw->instrs = instrs;
    raw->instr_count = raw->instr_cap = count;
    return true;
}

bool ir_separate_hazards(struct ir_raw_fn *raw)
{
    struct ir_hazards h = { .raw = raw };
    if (!find_barriers(&h))
        return true;
    h.defined = calloc((size_t)raw->reg_count + 1, sizeof(*h.defined));
    h.sources = calloc((size_t)raw->instr_count + 1, sizeof(*h.sources));
    h.seen = calloc((size_t)raw->instr_count + 1, 1);
    h.stack = calloc((size_t)raw->instr_count + 1, sizeof(*h.stack));
    bool right = h.defined && h.sources && h.seen && h.stack;
    if (right && find_hazard(&h))
        right = add_barriers(&h);
    free(h.defined);
    free(h.sources);
    free(h.seen);
    free(h.stack);
    return right;
}
