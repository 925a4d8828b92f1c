/*
 * Copies that may go on while the kernel does, done at once; and barriers in shared memory
 * (mbarrier), on which such copies report. A barrier is 64 bits of our own making:
 *     0 .. 19   arrivals still to come in this phase
 *     20 .. 39  arrivals of a phase
 *     40        the phase, modulo 2
 *     43 .. 63  bytes that are announced and have not come yet (signed)
 * All changes are one atomic operation (IR_ATOM_PHASE): add, and when nothing is to come any more,
 * the next phase. The state that an arrival returns is the old word.
 */
#include "device/soft/ptx/expand.h"

#define COUNT_MAX   0xfffffu
#define EXPECTED    20
#define PHASE       40
#define TRANSACTION 43

/* --- cp.async --------------------------------------------------------------------------------- */

/* [to] = the first `valid` of `bytes` bytes at [from], then zeros. Reads whole words. */
static void copy_some(struct ptx_expand *x, struct ir_src to, int64_t to_at, struct ir_src from,
                      enum ir_space space, int64_t from_at, uint64_t bytes, struct ir_src valid)
{
    uint32_t guard = x->guard;
    bool guard_not = x->guard_not;
    for (unsigned w = 0; w < bytes / 4; w++) {
        /* How many bytes of this word count, 0 .. 4. */
        struct ir_src rest = ptx_x_op2(x, IR_OP_SUB, IR_S32, valid, ptx_x_imm(4 * w));
        rest = ptx_x_op2(x, IR_OP_MAX, IR_S32, ptx_x_op2(x, IR_OP_MIN, IR_S32, rest, ptx_x_imm(4)),
                         ptx_x_imm(0));
        uint32_t word = ptx_x_register(x, IR_U32), some = ptx_x_register(x, IR_PRED);
        ptx_x_move(x, IR_B32, word, ptx_x_imm(0));
        struct ir_instr test = ptx_x_instr(x, IR_OP_SETP, IR_S32);
        test.cmp = IR_CMP_GT;
        test.dst_count = 1;
        test.dst[0] = some;
        test.src_count = 2;
        test.src[0] = rest;
        test.src[1] = ptx_x_imm(0);
        if (guard != IR_NONE) {
            test.boolop = IR_BOOL_AND;
            test.src[test.src_count++] =
                (struct ir_src) { .kind = IR_SRC_REG, .index = guard, .negated = guard_not };
            test.guard = IR_NONE;
            test.flags = 0;
        }
        ptx_x_append(x, &test);
        x->guard = some;
        x->guard_not = false;
        ptx_x_load(x, space, IR_B32, word, from, from_at + 4 * (int64_t)w);
        x->guard = guard;
        x->guard_not = guard_not;
        struct ir_src bits = ptx_x_op2(x, IR_OP_SHL, IR_B32, rest, ptx_x_imm(3));
        struct ir_src mask = ptx_x_op2(x, IR_OP_BMSK, IR_B32, ptx_x_imm(0), bits);
        struct ir_src kept = ptx_x_op2(x, IR_OP_AND, IR_B32, ir_src_reg(word), mask);
        ptx_x_store(x, IR_SPACE_SHARED, IR_B32, kept, to, to_at + 4 * (int64_t)w);
    }
}

/* [to] = bytes at [from]: 4, 8 or 16. */
static void copy_all(struct ptx_expand *x, struct ir_src to, int64_t to_at, struct ir_src from,
                     enum ir_space space, int64_t from_at, uint64_t bytes)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_LD, IR_B32);
    i.space = (uint8_t)space;
    i.address.base = from.index;
    i.address.displacement = from_at;
    i.dst_count = (uint8_t)(bytes / 4);
    for (unsigned w = 0; w < bytes / 4; w++)
        i.dst[w] = ptx_x_register(x, IR_B32);
    ptx_x_append(x, &i);
    struct ir_instr s = ptx_x_instr(x, IR_OP_ST, IR_B32);
    s.space = IR_SPACE_SHARED;
    s.address.base = to.index;
    s.address.displacement = to_at;
    s.src_count = i.dst_count;
    for (unsigned w = 0; w < bytes / 4; w++)
        s.src[w] = ir_src_reg(i.dst[w]);
    ptx_x_append(x, &s);
}

/* Cache policies and the like: createpolicy's result, which has no meaning here. */
static bool skip_policy(struct ptx_expand *x, bool given)
{
    struct ir_src policy;
    return !given || (ptx_expect(x->p, ',') && ptx_parse_source(x->p, IR_B64, 0, &policy));
}

static bool take_shared(struct ptx_expand *x)
{
    return ptx_x_take(x, "shared") || ptx_x_take(x, "shared::cta") ||
           ptx_x_take(x, "shared::cluster");
}

/* cp.async.ca.shared.global [to], [from], bytes{, valid bytes or a predicate: ignore the source}{,
 * policy}; */
static bool copy(struct ptx_expand *x)
{
    static const char *const caches[] = { "ca", "cg" };
    static const char *const prefetches[] = { "L2::64B", "L2::128B", "L2::256B" };
    bool right = ptx_x_take_one(x, caches, 2) >= 0 && take_shared(x) && ptx_x_take(x, "global");
    ptx_x_take_one(x, prefetches, 3);
    bool policy = ptx_x_take(x, "L2::cache_hint");
    if (!right)
        return ptx_x_refuse(x);
    enum ir_space space = IR_SPACE_GLOBAL;
    enum ir_type type;
    int64_t to_at, from_at;
    uint64_t bytes = 0;
    if (!ptx_x_taken_all(x))
        return false;
    struct ir_src to = ptx_x_shared_address(x, &to_at);
    ptx_expect(x->p, ',');
    struct ir_src from = ptx_x_address(x, &space, &type, &from_at), valid;
    struct ptx_token at = x->p->token;
    if (!ptx_expect(x->p, ',') || !ptx_expect_uint(x->p, 16, &bytes, "number of bytes"))
        return false;
    if (bytes != 4 && bytes != 8 && bytes != 16)
        return ptx_fail(x->p, -EINVAL, &at, "copies are of 4, 8 or 16 bytes");
    if (!ptx_token_is(&x->p->token, ',')) {
        copy_all(x, to, to_at, from, space, from_at, bytes);
        return true;
    }
    ptx_advance(x->p);
    struct ptx_name name;
    bool is_pred = ptx_token_is(&x->p->token, '!') ||
                   (x->p->token.kind == PTX_IDENT && ptx_lookup(x->p, &x->p->token, &name) &&
                    name.kind == PTX_NAME_REG && x->p->raw->regs[name.index].type == IR_PRED);
    if (policy && x->p->token.kind == PTX_IDENT && !is_pred &&
        ptx_lookup(x->p, &x->p->token, &name) && name.kind == PTX_NAME_REG &&
        ir_types[x->p->raw->regs[name.index].type].size == 8) {
        copy_all(x, to, to_at, from, space, from_at, bytes);
        return ptx_parse_source(x->p, IR_B64, 0, &valid);
    }
    if (!ptx_parse_source(x->p, is_pred ? IR_PRED : IR_U32, is_pred ? PTX_O_NOT : 0, &valid) ||
        !skip_policy(x, policy))
        return false;
    if (is_pred)
        valid = ptx_x_op3(x, IR_OP_SELP, IR_B32, ptx_x_imm(0), ptx_x_imm(bytes), valid);
    else if (valid.kind == IR_SRC_IMM && valid.bits == bytes) {
        copy_all(x, to, to_at, from, space, from_at, bytes);
        return true;
    }
    copy_some(x, to, to_at, from, space, from_at, bytes, valid);
    return true;
}

static void change(struct ptx_expand *x, struct ir_src at, int64_t displacement, struct ir_src by,
                   uint32_t old);

/* cp.async.mbarrier.arrive{.noinc}: an arrival when the lane's copies are done, and they are.
 * Without .noinc it was announced by the same instruction, so that nothing changes. */
static bool copy_arrive(struct ptx_expand *x)
{
    bool counted = ptx_x_take(x, "noinc");
    take_shared(x);
    int64_t displacement;
    if (!ptx_x_take(x, "b64"))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    struct ir_src at = ptx_x_shared_address(x, &displacement);
    if (counted)
        change(x, at, displacement, ptx_x_imm(UINT64_MAX), IR_NONE);
    return !x->p->why.error;
}

bool ptx_x_cp(struct ptx_expand *x)
{
    uint64_t ignored;
    if (ptx_x_take(x, "reduce"))
        return ptx_x_cp_reduce(x);
    if (!ptx_x_take(x, "async"))
        return ptx_x_refuse(x);
    if (ptx_x_take(x, "bulk"))
        return ptx_x_bulk(x);
    if (ptx_x_take(x, "commit_group") || ptx_x_take(x, "wait_all"))
        return ptx_x_taken_all(x);
    if (ptx_x_take(x, "wait_group"))
        return ptx_x_taken_all(x) &&
               ptx_expect_uint(x->p, UINT32_MAX, &ignored, "number of groups");
    if (ptx_x_take(x, "mbarrier") && ptx_x_take(x, "arrive"))
        return copy_arrive(x);
    return copy(x);
}

/* --- mbarrier --------------------------------------------------------------------------------- */

/* Adds `by` to the barrier; `old` gets what it was, unless IR_NONE. */
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

/* ", count" or 1 */
static bool parse_count(struct ptx_expand *x, struct ir_src *count)
{
    *count = ptx_x_imm(1);
    return !ptx_accept(x->p, ',') || ptx_parse_source(x->p, IR_U32, 0, count);
}

static bool init(struct ptx_expand *x)
{
    struct target t = parse_target(x);
    struct ir_src count;
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_U32, 0, &count))
        return false;
    struct ir_src both =
        ptx_x_mad(x, IR_U64, wide(x, count), ptx_x_imm(1ull << EXPECTED | 1), ptx_x_imm(0));
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
    struct ir_src one = ptx_x_imm(0 - ((drop ? 1ull << EXPECTED : 0) + 1));
    by = ptx_x_mad(x, IR_U64, wide(x, arrivals), one, bytes ? by : ptx_x_imm(0));
    change(x, t.at, t.displacement, by, state);
    return true;
}

/* expect_tx, complete_tx: [barrier], bytes */
static bool transaction(struct ptx_expand *x, uint64_t unit)
{
    if (!take_shared(x))
        return ptx_x_refuse(x);
    ptx_x_take(x, "b64");
    ptx_x_take(x, "relaxed");
    ptx_x_take(x, "cta");
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
    struct ir_instr load = ptx_x_instr(x, IR_OP_LD, IR_U64);
    load.order = IR_ORDER_ACQUIRE;
    load.space = IR_SPACE_SHARED;
    load.address.base = t.at.index;
    load.address.displacement = t.displacement;
    load.dst_count = 1;
    load.dst[0] = ptx_x_register(x, IR_U64);
    ptx_x_append(x, &load);
    struct ir_src was =
        parity ? ptx_x_mad(x, IR_U64, wide(x, state), ptx_x_imm(1ull << PHASE), ptx_x_imm(0))
               : state;
    struct ir_src moved = ptx_x_op2(x, IR_OP_XOR, IR_B64, ir_src_reg(load.dst[0]), was);
    struct ir_instr i = ptx_x_instr(x, IR_OP_SETP, IR_U64);
    i.cmp = IR_CMP_NE;
    i.dst_count = 1;
    i.dst[0] = done;
    i.src_count = 2;
    i.src[0] = ptx_x_op2(x, IR_OP_AND, IR_B64, moved, ptx_x_imm(1ull << PHASE));
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
    take_shared(x);
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
