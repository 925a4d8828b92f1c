/*
 * Asynchronous copies and reductions of many bytes, and stores that report to a barrier. They are
 * carried out at once, in loops of ordinary accesses, and then reported; an instruction that waits
 * for a group of them finds it complete.
 */
#include "device/soft/ptx/expand.h"

/* An address in memory that a loop advances. */
struct place {
    enum ir_space space;
    enum ir_type type; /* of the register */
    uint32_t reg;
};

/* Takes the next address operand and copies it to a register of its own. */
static struct place parse_place(struct ptx_expand *x, enum ir_space space)
{
    struct place p = { .space = space, .type = IR_U32 };
    int64_t displacement;
    struct ir_src base = space == IR_SPACE_SHARED
                             ? ptx_x_shared_address(x, &displacement)
                             : ptx_x_address(x, &p.space, &p.type, &displacement);
    struct ir_src at = ptx_x_op2(x, IR_OP_ADD, p.type, base, ptx_x_imm((uint64_t)displacement));
    p.reg = at.index;
    return p;
}

static void step(struct ptx_expand *x, enum ir_type type, uint32_t reg, uint64_t by)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_ADD, type);
    i.dst_count = 1;
    i.dst[0] = reg;
    i.src_count = 2;
    i.src[0] = ir_src_reg(reg);
    i.src[1] = ptx_x_imm(by);
    ptx_x_append(x, &i);
}

/* One element: copies it, or applies the operation to the element at `to`. */
static void element(struct ptx_expand *x, const struct place *to, const struct place *from,
                    const struct ir_instr *sum)
{
    struct ir_instr load = ptx_x_instr(x, IR_OP_LD, sum ? sum->type : IR_B32);
    load.space = (uint8_t)from->space;
    load.address.base = from->reg;
    load.dst_count = sum ? 1 : 4;
    for (unsigned k = 0; k < load.dst_count; k++)
        load.dst[k] = ptx_x_register(x, load.type);
    ptx_x_append(x, &load);
    struct ir_instr store = sum ? *sum : ptx_x_instr(x, IR_OP_ST, IR_B32);
    store.space = (uint8_t)to->space;
    store.address.base = to->reg;
    store.src_count = load.dst_count;
    for (unsigned k = 0; k < load.dst_count; k++)
        store.src[k] = ir_src_reg(load.dst[k]);
    ptx_x_append(x, &store);
}

/* Handles `bytes` bytes in elements of `unit` bytes. */
static void loop(struct ptx_expand *x, const struct place *to, const struct place *from,
                 struct ir_src bytes, uint64_t unit, const struct ir_instr *sum)
{
    uint32_t left = ptx_x_register(x, IR_U32), again = ptx_x_label(x), end = ptx_x_label(x);
    ptx_x_move(x, IR_B32, left, bytes);
    ptx_x_place(x, again);
    struct ir_src done = ptx_x_compare(x, IR_CMP_LT, IR_U32, ir_src_reg(left), ptx_x_imm(unit));
    ptx_x_branch(x, end, done.index, false);
    element(x, to, from, sum);
    step(x, to->type, to->reg, unit);
    step(x, from->type, from->reg, unit);
    step(x, IR_U32, left, 0 - unit);
    ptx_x_branch(x, again, IR_NONE, false);
    ptx_x_place(x, end);
}

/* [to], [from], bytes{, [barrier]}{, mask of blocks}{, policy} */
static bool transfer(struct ptx_expand *x, bool to_block, bool from_block, bool reports,
                     const struct ir_instr *sum)
{
    bool many = ptx_x_take(x, "multicast::cluster"), masked = ptx_x_take(x, "cp_mask");
    bool policy = ptx_x_take(x, "L2::cache_hint");
    struct ir_src bytes, bar = { 0 };
    int64_t displacement = 0;
    if (masked)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    uint32_t over = ptx_x_begin_loops(x);
    struct place to = parse_place(x, to_block ? IR_SPACE_SHARED : IR_SPACE_GLOBAL);
    ptx_expect(x->p, ',');
    struct place from = parse_place(x, from_block ? IR_SPACE_SHARED : IR_SPACE_GLOBAL);
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_U32, 0, &bytes))
        return false;
    if (reports && ptx_expect(x->p, ','))
        bar = ptx_x_shared_address(x, &displacement);
    if ((many && !ptx_x_skip_source(x, IR_U16)) || (policy && !ptx_x_skip_source(x, IR_B64)))
        return false;
    loop(x, &to, &from, bytes, sum ? ir_types[sum->type].size : 16, sum);
    if (reports)
        ptx_x_complete(x, bar, displacement, bytes);
    ptx_x_place(x, over);
    return !x->p->why.error;
}

/* Takes the operation and its type, which come last. IR_VOID: there is none. */
static enum ir_type take_type(struct ptx_expand *x)
{
    for (enum ir_type t = IR_B8; t < IR_PRED; t++)
        if (ptx_x_take(x, ir_types[t].text))
            return t;
    return IR_VOID;
}

static bool take_sum(struct ptx_expand *x, struct ir_instr *i)
{
    static const struct {
        const char *word;
        uint8_t mode;
    } modes[] = { { "add", IR_ATOM_ADD }, { "min", IR_ATOM_MIN }, { "max", IR_ATOM_MAX },
                  { "inc", IR_ATOM_INC }, { "dec", IR_ATOM_DEC }, { "and", IR_ATOM_AND },
                  { "or", IR_ATOM_OR },   { "xor", IR_ATOM_XOR } };
    *i = ptx_x_instr(x, IR_OP_RED, IR_B32);
    i->order = IR_ORDER_RELAXED;
    i->scope = IR_SCOPE_GPU;
    bool found = false, noftz = ptx_x_take(x, "noftz");
    for (size_t k = 0; k < GM_ARRAY_LEN(modes) && !found; k++) {
        found = ptx_x_take(x, modes[k].word);
        i->mode = modes[k].mode;
    }
    i->type = (uint8_t)take_type(x);
    const struct ir_type_info *t = &ir_types[i->type];
    bool half = i->type == IR_F16 || i->type == IR_BF16;
    bool sums = i->mode == IR_ATOM_ADD && (t->class == 'U' || t->class == 'S' || t->class == 'F') &&
                half == noftz;
    bool bounds =
        i->mode <= IR_ATOM_MAX && i->mode != IR_ATOM_ADD && (t->class == 'U' || t->class == 'S');
    bool turns = (i->mode == IR_ATOM_INC || i->mode == IR_ATOM_DEC) && i->type == IR_U32;
    bool bits = (i->mode == IR_ATOM_AND || i->mode == IR_ATOM_OR || i->mode == IR_ATOM_XOR) &&
                t->class == 'B';
    return found && (t->size >= 4 || half) && (sums || bounds || turns || bits);
}

static bool bulk(struct ptx_expand *x, bool reduces)
{
    struct ir_instr sum;
    bool is_block[2];
    for (unsigned k = 0; k < 2; k++) { /* the destination, then the source */
        const struct ptx_token *t = ptx_x_take_next(x);
        is_block[k] = t && t->length > 6 && memcmp(t->text, "shared", 6) == 0;
        if (!t || (!is_block[k] && !ptx_text_is(t, "global")))
            return ptx_x_refuse(x);
    }
    bool reports = ptx_x_take(x, "mbarrier::complete_tx::bytes");
    if (reports != is_block[0] || (!reports && (!is_block[1] || !ptx_x_take(x, "bulk_group"))) ||
        (reduces && !take_sum(x, &sum)))
        return ptx_x_refuse(x);
    return transfer(x, is_block[0], is_block[1], reports, reduces ? &sum : NULL);
}

/* prefetch.L2.global [at], bytes{, policy} */
static bool prefetch(struct ptx_expand *x)
{
    enum ir_space space = IR_SPACE_GLOBAL;
    enum ir_type type;
    int64_t displacement;
    ptx_x_take(x, "L2");
    ptx_x_take(x, "global");
    bool policy = ptx_x_take(x, "L2::cache_hint");
    if (!ptx_x_taken_all(x))
        return false;
    ptx_x_address(x, &space, &type, &displacement);
    return ptx_x_skip_source(x, IR_U32) && (!policy || ptx_x_skip_source(x, IR_B64));
}

bool ptx_x_bulk(struct ptx_expand *x)
{
    uint64_t ignored;
    if (ptx_x_take(x, "commit_group"))
        return ptx_x_taken_all(x);
    if (ptx_x_take(x, "wait_group")) {
        ptx_x_take(x, "read");
        return ptx_x_taken_all(x) &&
               ptx_expect_uint(x->p, UINT32_MAX, &ignored, "number of groups");
    }
    if (ptx_x_take(x, "tensor"))
        return ptx_x_refuse(x);
    return ptx_x_take(x, "prefetch") ? prefetch(x) : bulk(x, false);
}

bool ptx_x_cp_reduce(struct ptx_expand *x)
{
    if (!ptx_x_take(x, "async") || !ptx_x_take(x, "bulk") || ptx_x_take(x, "tensor"))
        return ptx_x_refuse(x);
    return bulk(x, true);
}

/* st.async{.weak}.mbarrier::complete_tx::bytes{.v2,.v4}.type [at], value, [barrier] */
bool ptx_x_st_async(struct ptx_expand *x)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_ST, IR_B32);
    unsigned want = 1;
    ptx_x_take(x, "async");
    ptx_x_take(x, "weak");
    ptx_x_take_shared(x);
    bool good = ptx_x_take(x, "mbarrier::complete_tx::bytes");
    want = ptx_x_take(x, "v2") ? 2 : ptx_x_take(x, "v4") ? 4 : 1;
    i.type = (uint8_t)take_type(x);
    if (!good || ir_types[i.type].size < 4)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    struct place to = parse_place(x, IR_SPACE_SHARED);
    if (!ptx_expect(x->p, ','))
        return false;
    struct ptx_token at = x->p->token;
    unsigned count = ptx_x_values(x, i.type, i.src, 4);
    if (x->p->why.error || !ptx_expect(x->p, ','))
        return false;
    if (count != want)
        return ptx_fail(x->p, -EINVAL, &at, "%u values for a vector of %u", count, want);
    int64_t displacement;
    struct ir_src bar = ptx_x_shared_address(x, &displacement);
    i.space = IR_SPACE_SHARED;
    i.address.base = to.reg;
    i.src_count = (uint8_t)count;
    ptx_x_append(x, &i);
    ptx_x_complete(x, bar, displacement, ptx_x_imm(count * ir_types[i.type].size));
    return !x->p->why.error;
}

/* red.async.relaxed.cluster.mbarrier::complete_tx::bytes.op.type [at], value, [barrier] */
bool ptx_x_red_async(struct ptx_expand *x)
{
    struct ir_instr i;
    ptx_x_take(x, "async");
    ptx_x_take(x, "relaxed");
    ptx_x_take(x, "cluster");
    ptx_x_take_shared(x);
    if (!ptx_x_take(x, "mbarrier::complete_tx::bytes") || !take_sum(x, &i))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    struct place to = parse_place(x, IR_SPACE_SHARED);
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, i.type, 0, &i.src[0]) ||
        !ptx_expect(x->p, ','))
        return false;
    int64_t displacement;
    struct ir_src bar = ptx_x_shared_address(x, &displacement);
    i.space = IR_SPACE_SHARED;
    i.address.base = to.reg;
    i.src_count = 1;
    ptx_x_append(x, &i);
    ptx_x_complete(x, bar, displacement, ptx_x_imm(ir_types[i.type].size));
    return !x->p->why.error;
}
