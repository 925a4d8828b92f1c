/*
 * Barriers in shared memory (mbarrier), to which asynchronous copies report. The 64 bits of a
 * barrier are ours to define:
 *
 *     0 to 19   arrivals still expected in this phase
 *     20 to 39  arrivals that a phase expects
 *     40        the phase, modulo 2
 *     41, 42    how often a barrier was made here, modulo 4
 *     43 to 63  bytes that were announced and have not arrived yet (signed)
 *
 * Every change is one atomic operation (IR_ATOM_PHASE), which adds to each of these fields, and
 * begins the next phase when nothing more is expected. The state that an arrival returns is the old
 * word.
 *
 * Programs make a barrier anew when they have seen it complete, although other warps may not have
 * looked yet; on a GPU all look at once. Here they look in turn, so a state of an older barrier
 * counts as complete.
 */
#include "device/soft/ir/phase.h"
#include "device/soft/ptx/expand.h"

#define COUNT_MAX   0xfffffu
#define EXPECTED    20
#define PHASE       40
#define TRANSACTION 43

/* Adds `by` to the barrier. `old` gets the old word, unless it is IR_NONE. */
static void change(struct ptx_expand *x, struct ir_src at, int64_t displacement, struct ir_src by,
                   uint32_t old)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_ATOM, IR_U64);
    i.mode = IR_ATOM_PHASE;
    i.space = IR_SPACE_SHARED;
    i.order = IR_ORDER_RELAXED;
    i.address.base = at.index;
    i.address.displacement = displacement;
    i.src_count = 1;
    i.src[0] = by;
    i.dst_count = old != IR_NONE;
    i.dst[0] = old;
    ptx_x_append(x, &i);
}

static struct ir_src wide(struct ptx_expand *x, struct ir_src v)
{
    return v.kind == IR_SRC_IMM ? ptx_x_imm((uint32_t)v.bits) : ptx_x_convert(x, IR_U64, IR_U32, v);
}

void ptx_x_complete(struct ptx_expand *x, struct ir_src at, int64_t displacement,
                    struct ir_src bytes)
{
    struct ir_src by =
        ptx_x_mad(x, IR_U64, wide(x, bytes), ptx_x_imm(0 - (1ull << TRANSACTION)), ptx_x_imm(0));
    change(x, at, displacement, by, IR_NONE);
}

void ptx_x_arrived(struct ptx_expand *x, struct ir_src at, int64_t displacement)
{
    change(x, at, displacement, ptx_x_imm(COUNT_MAX), IR_NONE); /* less one */
}

struct target {
    struct ir_src at;
    int64_t displacement;
};

static struct target parse_target(struct ptx_expand *x)
{
    struct target t;
    t.at = ptx_x_shared_address(x, &t.displacement);
    return t;
}

/* Takes ", count"; the count is 1 if there is none. */
static bool parse_count(struct ptx_expand *x, struct ir_src *count)
{
    *count = ptx_x_imm(1);
    return !ptx_accept(x->p, ',') || ptx_parse_source(x->p, IR_U32, 0, count);
}

/* The count, or minus the count, as a field of the word. */
static struct ir_src counted(struct ptx_expand *x, struct ir_src count, int64_t sign)
{
    struct ir_src all =
        ptx_x_mad(x, IR_U64, wide(x, count), ptx_x_imm((uint64_t)sign), ptx_x_imm(0));
    return ptx_x_op2(x, IR_OP_AND, IR_B64, all, ptx_x_imm(COUNT_MAX));
}

static struct ir_src load(struct ptx_expand *x, struct target t, enum ir_order order)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_LD, IR_U64);
    i.order = (uint8_t)order;
    i.space = IR_SPACE_SHARED;
    i.address.base = t.at.index;
    i.address.displacement = t.displacement;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_U64);
    ptx_x_append(x, &i);
    return ir_src_reg(i.dst[0]);
}

static bool init(struct ptx_expand *x)
{
    struct target t = parse_target(x);
    struct ir_src count;
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_U32, 0, &count))
        return false;
    x->own = true; /* nothing need have been written there */
    struct ir_src old = load(x, t, IR_ORDER_WEAK);
    x->own = false;
    struct ir_src age =
        ptx_x_op2(x, IR_OP_AND, IR_B64,
                  ptx_x_mad(x, IR_U64, old, ptx_x_imm(1), ptx_x_imm(IR_PHASE_AGE & -IR_PHASE_AGE)),
                  ptx_x_imm(IR_PHASE_AGE));
    struct ir_src both =
        ptx_x_mad(x, IR_U64, counted(x, count, 1), ptx_x_imm(1ull << EXPECTED | 1), age);
    ptx_x_store(x, IR_SPACE_SHARED, IR_B64, both, t.at, t.displacement);
    return true;
}

/* arrive{.expect_tx}, arrive_drop: {state,} [barrier]{, count or bytes} */
static bool arrive(struct ptx_expand *x, bool drop)
{
    bool bytes = ptx_x_take(x, "expect_tx");
    uint32_t state = IR_NONE;
    struct ir_src count, arrivals = ptx_x_imm(1);
    ptx_x_take(x, "noComplete");
    if (!ptx_x_taken_all(x))
        return false;
    if (!ptx_token_is(&x->p->token, '[') &&
        (!ptx_parse_destination(x->p, IR_B64, false, true, &state) || !ptx_expect(x->p, ',')))
        return false;
    struct target t = parse_target(x);
    if (!parse_count(x, &count))
        return false;
    struct ir_src by;
    if (bytes)
        by = ptx_x_mad(x, IR_U64, wide(x, count), ptx_x_imm(1ull << TRANSACTION), ptx_x_imm(0));
    else
        arrivals = count;
    struct ir_src one = ptx_x_imm((drop ? 1ull << EXPECTED : 0) + 1);
    by = ptx_x_mad(x, IR_U64, counted(x, arrivals, -1), one, bytes ? by : ptx_x_imm(0));
    change(x, t.at, t.displacement, by, state);
    return true;
}

/* expect_tx, complete_tx: [barrier], bytes */
static bool transaction(struct ptx_expand *x, uint64_t unit)
{
    static const char *const scopes[] = { "cta", "cluster" };
    ptx_x_take_shared(x);
    ptx_x_take(x, "b64");
    ptx_x_take(x, "relaxed");
    ptx_x_take_one(x, scopes, 2);
    if (!ptx_x_taken_all(x))
        return false;
    struct target t = parse_target(x);
    struct ir_src bytes;
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_U32, 0, &bytes))
        return false;
    change(x, t.at, t.displacement,
           ptx_x_mad(x, IR_U64, wide(x, bytes), ptx_x_imm(unit), ptx_x_imm(0)), IR_NONE);
    return true;
}

/* done, [barrier], state or (.parity) phase{, time} */
static bool test(struct ptx_expand *x)
{
    bool parity = ptx_x_take(x, "parity");
    uint32_t done;
    struct ir_src state, ignored;
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_PRED, false, &done) ||
        !ptx_expect(x->p, ','))
        return false;
    struct target t = parse_target(x);
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, parity ? IR_U32 : IR_B64, 0, &state) ||
        (ptx_accept(x->p, ',') && !ptx_parse_source(x->p, IR_U32, 0, &ignored)))
        return false;
    struct ir_src now = load(x, t, IR_ORDER_ACQUIRE);
    struct ir_src was =
        parity ? ptx_x_mad(x, IR_U64, wide(x, state), ptx_x_imm(1ull << PHASE), ptx_x_imm(0))
               : state;
    struct ir_src moved = ptx_x_op2(x, IR_OP_XOR, IR_B64, now, was);
    struct ir_instr i = ptx_x_instr(x, IR_OP_SETP, IR_U64);
    i.cmp = IR_CMP_NE;
    i.dst_count = 1;
    i.dst[0] = done;
    i.src_count = 2;
    i.src[0] = ptx_x_op2(x, IR_OP_AND, IR_B64, moved,
                         ptx_x_imm(parity ? IR_PHASE_BIT : IR_PHASE_BIT | IR_PHASE_AGE));
    i.src[1] = ptx_x_imm(0);
    ptx_x_append(x, &i);
    return true;
}

/* count, state */
static bool pending(struct ptx_expand *x)
{
    uint32_t count;
    struct ir_src state;
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_U32, false, &count) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B64, 0, &state))
        return false;
    struct ir_src low = ptx_x_op2(x, IR_OP_AND, IR_B64, state, ptx_x_imm(COUNT_MAX));
    ptx_x_move(x, IR_B32, count, ptx_x_convert(x, IR_U32, IR_U64, low));
    return true;
}

bool ptx_x_mbarrier(struct ptx_expand *x)
{
    static const char *const orders[] = { "acquire", "release", "relaxed" };
    static const char *const scopes[] = { "cta", "cluster" };
    const struct ptx_token *what = ptx_x_take_next(x);
    if (!what)
        return ptx_x_refuse(x);
    if (ptx_text_is(what, "expect_tx"))
        return transaction(x, 1ull << TRANSACTION);
    if (ptx_text_is(what, "complete_tx"))
        return transaction(x, 0 - (1ull << TRANSACTION));
    ptx_x_take_one(x, orders, 3);
    ptx_x_take_one(x, scopes, 2);
    ptx_x_take_shared(x);
    if (!ptx_x_take(x, "b64"))
        return ptx_x_refuse(x);
    if (ptx_text_is(what, "init"))
        return ptx_x_taken_all(x) && init(x);
    if (ptx_text_is(what, "inval"))
        return ptx_x_taken_all(x) && (parse_target(x), !x->p->why.error);
    if (ptx_text_is(what, "arrive") || ptx_text_is(what, "arrive_drop"))
        return arrive(x, what->length > 6);
    if (ptx_text_is(what, "test_wait") || ptx_text_is(what, "try_wait"))
        return test(x);
    return ptx_text_is(what, "pending_count") ? pending(x) : ptx_x_refuse(x);
}
