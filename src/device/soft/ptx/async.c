/*
 * Asynchronous copies (cp.async). They are carried out at once, which PTX allows.
 */
#include "device/soft/ptx/expand.h"

/* [to] = the first `valid` of `bytes` bytes at [from], followed by zeros. Reads whole words. */
static void copy_some(struct ptx_expand *x, struct ir_src to, int64_t to_at, struct ir_src from,
                      enum ir_space space, int64_t from_at, uint64_t bytes, struct ir_src valid)
{
    uint32_t guard = x->guard;
    bool guard_not = x->guard_not;
    for (unsigned w = 0; w < bytes / 4; w++) {
        /* how many bytes of this word are valid, 0 to 4 */
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

/* Skips a cache policy, the result of createpolicy: it has no meaning here. */
static bool skip_policy(struct ptx_expand *x, bool given)
{
    struct ir_src policy;
    return !given || (ptx_expect(x->p, ',') && ptx_parse_source(x->p, IR_B64, 0, &policy));
}

/* cp.async.ca.shared.global [to], [from], bytes{, valid}{, policy}; `valid` is a number of bytes,
 * or a predicate that says to ignore the source. */
static bool copy(struct ptx_expand *x)
{
    static const char *const caches[] = { "ca", "cg" };
    static const char *const prefetches[] = { "L2::64B", "L2::128B", "L2::256B" };
    bool right =
        ptx_x_take_one(x, caches, 2) >= 0 && ptx_x_take_shared(x) && ptx_x_take(x, "global");
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
    if (!ptx_parse_source(x->p, is_pred ? IR_PRED : IR_U32, 0, &valid) || !skip_policy(x, policy))
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

/* cp.async.mbarrier.arrive{.noinc}: an arrival when the lane's copies are done, which they are.
 * Without .noinc the same instruction also announces it, so that nothing changes. */
static bool copy_arrive(struct ptx_expand *x)
{
    bool counted = ptx_x_take(x, "noinc");
    ptx_x_take_shared(x);
    int64_t displacement;
    if (!ptx_x_take(x, "b64"))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    struct ir_src at = ptx_x_shared_address(x, &displacement);
    if (counted)
        ptx_x_arrived(x, at, displacement);
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
