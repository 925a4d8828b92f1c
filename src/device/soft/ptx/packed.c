/*
 * Instructions that are carried out in pieces: arithmetic on packed 16-bit integers, comparisons of
 * packed 16-bit floats, approximations of 16-bit floats, lop3 with a predicate, atomic accesses to
 * vectors, barriers that reduce.
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

static bool is_integers(uint8_t type)
{
    return type == IR_U16X2 || type == IR_S16X2;
}

bool ptx_is_in_pieces(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_ADD:
    case IR_OP_MIN:
    case IR_OP_MAX:
        return is_integers(i->type);
    case IR_OP_SETP:
        return is_pair(i->type);
    case IR_OP_SET:
        return is_pair(i->type2);
    case IR_OP_EX2:
    case IR_OP_TANH:
        return is_half(i->type);
    case IR_OP_CVT: /* .satfinite */
        return i->flags & IR_F_NAN;
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
    return ptx_x_convert(x, IR_U16, IR_U32,
                         high ? ptx_x_op2(x, IR_OP_SHR, IR_U32, v, ptx_x_imm(16)) : v);
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

static void halves(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src parts[2];
    for (unsigned h = 0; h < 2; h++) {
        struct ir_instr i = *whole;
        i.type = whole->type == IR_S16X2 ? IR_S16 : IR_U16;
        i.flags = (uint16_t)(i.flags & ~IR_F_RELU);
        for (unsigned k = 0; k < 2; k++)
            i.src[k] = half(x, whole->src[k], h);
        i.dst[0] = ptx_x_register(x, i.type);
        parts[h] = ir_src_reg(i.dst[0]);
        ptx_x_append(x, &i);
        if (whole->flags & IR_F_RELU)
            parts[h] = ptx_x_op2(x, IR_OP_MAX, IR_S16, parts[h], ptx_x_imm(0));
    }
    pack(x, whole->dst[0], parts);
}

static void compare(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src parts[2];
    bool to_pred = whole->op == IR_OP_SETP;
    for (unsigned h = 0; h < 2; h++) {
        struct ir_instr i = *whole;
        uint8_t type = (uint8_t)half_of(to_pred ? whole->type : whole->type2);
        /* set.eq.u32.f16x2: 0xffff in the half that compares true. */
        i.type = to_pred || is_pair(whole->type) ? type : IR_U16;
        i.type2 = to_pred ? IR_VOID : type;
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

/* Computes an approximation of 16-bit floats through f32. */
static void approximate(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src parts[2];
    enum ir_type type = half_of(whole->type);
    for (unsigned h = 0; h < (is_pair(whole->type) ? 2 : 1); h++) {
        struct ir_instr i = *whole;
        i.type = IR_F32;
        i.src[0] = ptx_x_convert(x, IR_F32, type,
                                 is_pair(whole->type) ? half(x, whole->src[0], h) : whole->src[0]);
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

/* bar.red. Threads count themselves in a word of shared memory that is reserved for this
 * (spaces.h). The word is cleared before a first barrier, read after a second, and left alone until
 * a third. */
static void reduce(struct ptx_expand *x, const struct ir_instr *whole)
{
    struct ir_src which = whole->src[whole->src_count - 1];
    bool every = whole->mode == IR_BAR_RED_AND, swap = every != which.negated;
    struct ir_instr bar = *whole, add = ptx_x_instr(x, IR_OP_RED, IR_U32),
                    i = ptx_x_instr(x, IR_OP_SELP, IR_U32);
    uint32_t count = ptx_x_register(x, IR_B32);
    x->own = true;
    struct ir_src number = ptx_x_op2(x, IR_OP_AND, IR_B32, whole->src[0], ptx_x_imm(15));
    struct ir_src at = ptx_x_mad(x, IR_U32, number, ptx_x_imm(4), ptx_x_behind_shared(x));
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

/* cvt.satfinite of f32 to halves: a result that would be infinite becomes the largest number. */
static void clamp(struct ptx_expand *x, const struct ir_instr *whole)
{
    bool small = whole->type == IR_F16 || whole->type == IR_F16X2;
    uint32_t most = small ? 0x477fe000u : 0x7f7f0000u;
    struct ir_instr i = *whole;
    i.flags &= (uint16_t)~IR_F_NAN;
    for (unsigned k = 0; k < i.src_count; k++) {
        struct ir_instr part = ptx_x_instr(x, IR_OP_MIN, IR_F32);
        part.flags |= IR_F_NAN;
        part.src_count = 2;
        part.src[0] = whole->src[k];
        part.src[1] = ptx_x_imm(most);
        part.dst_count = 1;
        part.dst[0] = ptx_x_register(x, IR_F32);
        ptx_x_append(x, &part);
        part.op = IR_OP_MAX;
        part.src[0] = ir_src_reg(part.dst[0]);
        part.src[1] = ptx_x_imm(most | 0x80000000u);
        part.dst[0] = ptx_x_register(x, IR_F32);
        ptx_x_append(x, &part);
        i.src[k] = ir_src_reg(part.dst[0]);
    }
    ptx_x_append(x, &i);
}

bool ptx_append_pieces(struct ptx_parser *p, const struct ptx_token *opcode,
                       const struct ir_instr *i)
{
    struct ptx_expand x = {
        .p = p, .opcode = opcode, .guard = i->guard, .guard_not = (i->flags & IR_F_GUARD_NOT) != 0
    };
    if (i->op == IR_OP_LOP3)
        logic(&x, i);
    else if (i->op == IR_OP_CVT)
        clamp(&x, i);
    else if (i->op == IR_OP_BAR || i->op == IR_OP_BARRIER)
        reduce(&x, i);
    else if (is_integers(i->type))
        halves(&x, i);
    else if (i->op == IR_OP_EX2 || i->op == IR_OP_TANH)
        approximate(&x, i);
    else
        compare(&x, i);
    return !p->why.error;
}

/* cvt.pack.sat.u8.s32.b32 d, a, b, c: clamps a and b and puts them below the low part of c; without
 * c (16 bits) it puts them side by side. */
bool ptx_x_pack(struct ptx_expand *x)
{
    static const char *const types[] = { "u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2" };
    bool good = ptx_x_take(x, "pack") && ptx_x_take(x, "sat");
    int type = ptx_x_take_one(x, types, GM_ARRAY_LEN(types));
    good &= type >= 0 && ptx_x_take(x, "s32") && ptx_x_take(x, "b32") == (type >= 2);
    if (!good)
        return ptx_x_refuse(x);
    unsigned bits = 16u >> (type / 2);
    bool sign = type & 1;
    int64_t top = (INT64_C(1) << (bits - sign)) - 1;
    struct ir_src v[2], r = ptx_x_imm(0);
    uint32_t to;
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_B32, false, &to) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_S32, 0, &v[0]) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_S32, 0, &v[1]) ||
        (bits < 16 && (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &r))))
        return false;
    for (unsigned k = 0; k < 2; k++) {
        struct ir_src part = ptx_x_op2(x, IR_OP_MIN, IR_S32, v[k], ptx_x_imm((uint64_t)top));
        part = ptx_x_op2(x, IR_OP_MAX, IR_S32, part, ptx_x_imm(sign ? (uint64_t)(-top - 1) : 0));
        part = ptx_x_op2(x, IR_OP_AND, IR_B32, part, ptx_x_imm((1u << bits) - 1));
        r = ptx_x_mad(x, IR_U32, r, ptx_x_imm(1u << bits), part);
    }
    ptx_x_move(x, IR_B32, to, r);
    return true;
}

/* add.f32.f16 d, a, c and sub, and fma.f32.bf16 d, a, b, c: what is multiplied, or `a`, has 16
 * bits, and the result and the last operand 32. */
bool ptx_x_mixed(struct ptx_expand *x)
{
    static const char *const rounds[] = { "rn", "rz", "rm", "rp" };
    static const uint8_t values[] = { IR_ROUND_N, IR_ROUND_Z, IR_ROUND_M, IR_ROUND_P };
    char letter = x->opcode->text[0];
    struct ir_instr i = ptx_x_instr(x,
                                    letter == 'a'   ? IR_OP_ADD
                                    : letter == 's' ? IR_OP_SUB
                                                    : IR_OP_FMA,
                                    IR_F32);
    int round = ptx_x_take_one(x, rounds, 4);
    if (ptx_x_take(x, "sat"))
        i.flags |= IR_F_SAT;
    ptx_x_take(x, "f32");
    enum ir_type type = ptx_x_take(x, "f16") ? IR_F16 : IR_BF16;
    ptx_x_take(x, "bf16");
    if (i.op == IR_OP_FMA && round < 0)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_F32, false, &i.dst[0]))
        return false;
    i.round = round < 0 ? IR_ROUND_N : values[round];
    i.dst_count = 1;
    i.src_count = i.op == IR_OP_FMA ? 3 : 2;
    for (unsigned k = 0; k < i.src_count; k++) {
        bool last = k + 1u == i.src_count;
        if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, last ? IR_F32 : type, 0, &i.src[k]))
            return false;
        if (!last)
            i.src[k] = ptx_x_convert(x, IR_F32, type, i.src[k]);
    }
    ptx_x_append(x, &i);
    return true;
}
