/*
 * Instructions that are done in pieces: comparisons of packed 16-bit floats, approximations of 16-bit floats, lop3 with
 * a predicate, accesses to vectors of atomics, barriers that reduce; and the video instructions.
 */
#include "device/soft/ptx/expand.h"

static bool is_pair(uint8_t type)
{
    return type == IR_F16X2 || type == IR_BF16X2;
}

static bool is_half(uint8_t type)
{
    return is_pair(type) || type == IR_F16 || type == IR_BF16;
}

static enum ir_type half_of(uint8_t type)
{
    return type == IR_F16X2 || type == IR_F16 ? IR_F16 : IR_BF16;
}

bool ptx_is_in_pieces(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_SETP:
        return is_pair(i->type);
    case IR_OP_SET:
        return is_pair(i->type2);
    case IR_OP_EX2:
    case IR_OP_TANH:
        return is_half(i->type);
    case IR_OP_LOP3:
        return i->boolop != IR_BOOL_NONE;
    case IR_OP_BAR:
    case IR_OP_BARRIER:
        return i->mode != IR_BAR_SYNC && i->mode != IR_BAR_ARRIVE;
    default:
        return false;
    }
}

/* The low or the high half, 16 bits. */
static struct ir_src half(struct ptx_expand *x, struct ir_src v, bool high)
{
    return ptx_x_convert(x, IR_U16, IR_U32, high ? ptx_x_op2(x, IR_OP_SHR, IR_U32, v, ptx_x_imm(16)) : v);
}

static void pack(struct ptx_expand *x, uint32_t to, const struct ir_src parts[2])
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_PACK, IR_B32);
    i.dst_count = 1;
    i.dst[0] = to;
    i.src_count = 2;
    i.src[0] = parts[0];
    i.src[1] = parts[1];
    ptx_x_append(x, &i);
}

static void compare(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src parts[2];
    bool to_pred = whole->op == IR_OP_SETP;
    for (unsigned h = 0; h < 2; h++) {
        struct ir_instr i = *whole;
        i.type = (uint8_t)half_of(to_pred ? whole->type : whole->type2);
        i.type2 = to_pred ? IR_VOID : i.type;
        for (unsigned k = 0; k < 2; k++)
            i.src[k] = half(x, whole->src[k], h);
        i.dst_count = 1;
        i.dst_pred = IR_NONE;
        i.dst[0] = ptx_x_register(x, to_pred ? IR_PRED : IR_B16);
        parts[h] = ir_src_reg(i.dst[0]);
        ptx_x_append(x, &i);
    }
    if (!to_pred) {
        pack(x, whole->dst[0], parts);
        return;
    }
    if (whole->dst[0] != IR_NONE)
        ptx_x_move(x, IR_PRED, whole->dst[0], parts[0]);
    if (whole->dst_pred != IR_NONE)
        ptx_x_move(x, IR_PRED, whole->dst_pred, parts[1]);
}

/* Through f32. */
static void approximate(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src parts[2];
    enum ir_type type = half_of(whole->type);
    for (unsigned h = 0; h < (is_pair(whole->type) ? 2 : 1); h++) {
        struct ir_instr i = *whole;
        i.type = IR_F32;
        i.src[0] = ptx_x_convert(x, IR_F32, type, is_pair(whole->type) ? half(x, whole->src[0], h) : whole->src[0]);
        i.dst[0] = ptx_x_register(x, IR_F32);
        ptx_x_append(x, &i);
        parts[h] = ptx_x_convert(x, type, IR_F32, ir_src_reg(i.dst[0]));
    }
    if (is_pair(whole->type))
        pack(x, whole->dst[0], parts);
    else
        ptx_x_move(x, IR_B16, whole->dst[0], parts[0]);
}

/* d|p: p = (d != 0) op q */
static void logic(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_instr i = *whole, test = ptx_x_instr(x, IR_OP_SETP, IR_B32);
    i.boolop = IR_BOOL_NONE;
    i.dst_pred = IR_NONE;
    i.src_count = 4;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_B32);
    ptx_x_append(x, &i);
    test.cmp = IR_CMP_NE;
    test.boolop = whole->boolop;
    test.dst_count = 1;
    test.dst[0] = whole->dst_pred;
    test.src_count = 3;
    test.src[0] = ir_src_reg(i.dst[0]);
    test.src[1] = ptx_x_imm(0);
    test.src[2] = whole->src[4];
    if (whole->dst_pred != IR_NONE)
        ptx_x_append(x, &test);
    if (whole->dst[0] != IR_NONE)
        ptx_x_move(x, IR_B32, whole->dst[0], ir_src_reg(i.dst[0]));
}

/* bar.red: threads count themselves in a word of shared memory, of which more is reserved than a block may know of (spaces.h).
 * It is emptied before one barrier, read behind a second, and left alone before a third. */
static void reduce(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src which = whole->src[whole->src_count - 1];
    bool every = whole->mode == IR_BAR_RED_AND, swap = every != which.negated;
    struct ir_instr bar = *whole, add = ptx_x_instr(x, IR_OP_RED, IR_U32), i = ptx_x_instr(x, IR_OP_SELP, IR_U32);
    uint32_t count = ptx_x_register(x, IR_B32);
    struct ir_src end = ptx_x_op2(x, IR_OP_ADD, IR_U32, ptx_x_sreg(x, IR_SREG_TOTAL_SMEM), ptx_x_imm(3));
    struct ir_src number = ptx_x_op2(x, IR_OP_AND, IR_B32, whole->src[0], ptx_x_imm(15));
    struct ir_src at =
        ptx_x_mad(x, IR_U32, number, ptx_x_imm(4), ptx_x_op2(x, IR_OP_AND, IR_B32, end, ptx_x_imm(~3u)));
    bar.mode = IR_BAR_SYNC;
    bar.type = IR_VOID;
    bar.dst_count = 0;
    bar.dst[0] = IR_NONE;
    bar.src_count--;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_B32);
    i.src_count = 3;
    which.negated = 0;
    i.src[0] = ptx_x_imm(!swap);
    i.src[1] = ptx_x_imm(swap);
    i.src[2] = which;
    ptx_x_append(x, &i);
    add.mode = IR_ATOM_ADD;
    add.space = IR_SPACE_SHARED;
    add.order = IR_ORDER_RELAXED;
    add.scope = IR_SCOPE_CTA;
    add.address.base = at.index;
    add.src_count = 1;
    add.src[0] = ir_src_reg(i.dst[0]);
    ptx_x_store(x, IR_SPACE_SHARED, IR_U32, ptx_x_imm(0), at, 0);
    ptx_x_append(x, &bar);
    ptx_x_append(x, &add);
    ptx_x_append(x, &bar);
    ptx_x_load(x, IR_SPACE_SHARED, IR_U32, count, at, 0);
    ptx_x_append(x, &bar);
    if (whole->mode == IR_BAR_RED_POPC) {
        ptx_x_move(x, IR_B32, whole->dst[0], ir_src_reg(count));
        return;
    }
    struct ir_instr test = ptx_x_instr(x, IR_OP_SETP, IR_U32);
    test.cmp = every ? IR_CMP_EQ : IR_CMP_NE;
    test.dst_count = 1;
    test.dst[0] = whole->dst[0];
    test.src_count = 2;
    test.src[0] = ir_src_reg(count);
    test.src[1] = ptx_x_imm(0);
    ptx_x_append(x, &test);
}

bool ptx_append_pieces(struct ptx_parser *p, const struct ptx_token *opcode, const struct ir_instr *i)
{
    struct ptx_expand x = {
        .p = p, .opcode = opcode, .guard = i->guard, .guard_not = (i->flags & IR_F_GUARD_NOT) != 0
    };
    if (i->op == IR_OP_LOP3)
        logic(&x, i);
    else if (i->op == IR_OP_BAR || i->op == IR_OP_BARRIER)
        reduce(&x, i);
    else if (i->op == IR_OP_EX2 || i->op == IR_OP_TANH)
        approximate(&x, i);
    else
        compare(&x, i);
    return !p->why.error;
}

/* ---- video instructions ---- */

struct video {
    enum ir_op op; /* ADD, SUB, MIN, MAX; ABS: of the difference */
    bool sign_d, sign_a, sign_b, saturate;
};

/* op(a, b) on values that fit 32 bits, as s64; clamped to `bits` bits if asked. */
static struct ir_src video_element(struct ptx_expand *x, const struct video *v, struct ir_src a, struct ir_src b,
                                   unsigned bits)
{
    struct ir_src r = ptx_x_op2(x, v->op == IR_OP_ABS ? IR_OP_SUB : v->op, IR_S64, a, b);
    if (v->op == IR_OP_ABS) {
        struct ir_src other = ptx_x_op2(x, IR_OP_SUB, IR_S64, b, a);
        r = ptx_x_op2(x, IR_OP_MAX, IR_S64, r, other);
    }
    if (!v->saturate)
        return r;
    int64_t top = (INT64_C(1) << (bits - v->sign_d)) - 1;
    if (bits < 32 || v->sign_d) /* of whole u32 the hardware keeps the low bits */
        r = ptx_x_op2(x, IR_OP_MIN, IR_S64, r, ptx_x_imm((uint64_t)top));
    return ptx_x_op2(x, IR_OP_MAX, IR_S64, r, ptx_x_imm(v->sign_d ? (uint64_t)(-top - 1) : 0));
}

/* Bits [from, from + bits) as s64. */
static struct ir_src video_part(struct ptx_expand *x, struct ir_src v, unsigned from, unsigned bits, bool sign)
{
    enum ir_type type = sign ? IR_S32 : IR_U32;
    if (bits < 32)
        v = ptx_x_op3(x, IR_OP_BFE, type, v, ptx_x_imm(from), ptx_x_imm(bits));
    return ptx_x_convert(x, IR_S64, type, v);
}

static bool take_signs(struct ptx_expand *x, struct video *v)
{
    bool *signs[] = { &v->sign_d, &v->sign_a, &v->sign_b };
    for (unsigned k = 0; k < 3; k++) {
        const struct ptx_token *t = ptx_x_take_next(x);
        if (!t || (!ptx_text_is(t, "u32") && !ptx_text_is(t, "s32")))
            return false;
        *signs[k] = t->text[0] == 's';
    }
    return true;
}

/* vadd4.u32.u32.u32{.sat}{.add} d, a, b, c: of 4 bytes or 2 halves, side by side or (.add) summed up with c.
 * vadd.u32.u32.u32{.sat}{.add .min .max} d, a, b{, c}. No selectors. */
bool ptx_x_video(struct ptx_expand *x)
{
    static const struct {
        const char *word;
        enum ir_op op;
    } all[] = { { "vadd", IR_OP_ADD },
                { "vsub", IR_OP_SUB },
                { "vabsdiff", IR_OP_ABS },
                { "vmin", IR_OP_MIN },
                { "vmax", IR_OP_MAX } };
    static const char *const seconds[] = { "add", "min", "max" };
    static const enum ir_op second_ops[] = { IR_OP_ADD, IR_OP_MIN, IR_OP_MAX };
    struct video v = { 0 };
    uint32_t length = x->opcode->length;
    char last = x->opcode->text[length - 1];
    unsigned count = last == '4' ? 4 : last == '2' ? 2 : 1, bits = 32 / count, k = 0;
    length -= count > 1;
    while (k < GM_ARRAY_LEN(all) &&
           (strlen(all[k].word) != length || memcmp(all[k].word, x->opcode->text, length) != 0))
        k++;
    v.saturate = ptx_x_take(x, "sat");
    int second = ptx_x_take_one(x, seconds, 3);
    if (k == GM_ARRAY_LEN(all) || !take_signs(x, &v) || (count > 1 && second > 0))
        return ptx_x_refuse(x);
    v.op = all[k].op;
    uint32_t to;
    struct ir_src a, b, c = ptx_x_imm(0);
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_B32, false, &to) || !ptx_expect(x->p, ',') ||
        !ptx_parse_source(x->p, IR_B32, 0, &a))
        return false;
    if (x->p->token.kind == PTX_DOT)
        return ptx_x_refuse(x);
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &b))
        return false;
    if (x->p->token.kind == PTX_DOT)
        return ptx_x_refuse(x);
    if ((count > 1 || second >= 0) && (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &c)))
        return false;
    struct ir_src result = second >= 0 && count > 1 ? c : ptx_x_imm(0);
    for (unsigned e = 0; e < count; e++) {
        struct ir_src part = video_element(x, &v, video_part(x, a, e * bits, bits, v.sign_a),
                                           video_part(x, b, e * bits, bits, v.sign_b), bits);
        part = ptx_x_convert(x, IR_U32, IR_S64, part);
        if (count == 1)
            result = second < 0 ? part : ptx_x_op2(x, second_ops[second], v.sign_d ? IR_S32 : IR_U32, part, c);
        else if (second >= 0)
            result = ptx_x_op2(x, IR_OP_ADD, IR_U32, result, part);
        else {
            part = ptx_x_op2(x, IR_OP_AND, IR_B32, part, ptx_x_imm((1u << bits) - 1));
            result = ptx_x_mad(x, IR_U32, part, ptx_x_imm(1u << (e * bits)), result);
        }
    }
    ptx_x_move(x, IR_B32, to, result);
    return true;
}
