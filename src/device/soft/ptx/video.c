/*
 * The video instructions: arithmetic on bytes and halves that are selected from registers, one or
 * several at a time. Values are computed in 64 bits, where none of them overflows. What the
 * hardware does beyond PTX's description was recorded on an H200 (tests/expected).
 */
#include "device/soft/ptx/expand.h"

enum video_op { ADD, SUB, ABSDIFF, MIN, MAX, AVERAGE, SET, SHL, SHR };

struct video {
    enum video_op op;
    unsigned count; /* how many elements are computed side by side */
    uint8_t cmp;    /* SET: enum ir_cmp */
    bool sign_d, sign_a, sign_b, saturate, wrap;
    int second; /* how the result and c are combined: index of second_words; -1: not at all */
};

/* A part of a source register, or of the destination. */
struct part {
    struct ir_src v;
    unsigned from, bits;
};

static const char *const second_words[] = { "add", "min", "max" };

/* --- operands --------------------------------------------------------------------------------- */

/* Takes ".b2" or ".h1": one byte or half. */
static bool parse_selector(struct ptx_expand *x, struct part *part)
{
    const struct ptx_token t = x->p->token;
    part->from = 0;
    part->bits = 32;
    if (t.kind != PTX_DOT)
        return true;
    unsigned bits = t.text[0] == 'b' ? 8 : 16,
             digit = t.length == 2 ? (unsigned)(t.text[1] - '0') : 4;
    if ((t.text[0] != 'b' && t.text[0] != 'h') || digit >= 32 / bits)
        return ptx_fail(x->p, -EINVAL, &t, "'.%.*s' selects nothing", PTX_TEXT(&t));
    part->from = digit * bits;
    part->bits = bits;
    ptx_advance(x->p);
    return true;
}

/* Takes ".b7210" or ".h32": for each element a digit that selects it from the two registers,
 * highest element first. Gives the nibbles that prmt takes. */
static bool parse_choice(struct ptx_expand *x, unsigned count, uint32_t *nibbles)
{
    const struct ptx_token t = x->p->token;
    if (t.kind != PTX_DOT)
        return true;
    bool good = t.text[0] == (count == 4 ? 'b' : 'h') && t.length == count + 1;
    *nibbles = 0;
    for (unsigned k = 1; good && k <= count; k++) {
        unsigned digit = (unsigned)(t.text[k] - '0');
        good = digit < 2 * count;
        *nibbles =
            count == 4 ? *nibbles << 4 | digit : *nibbles << 8 | (2 * digit + 1) << 4 | 2 * digit;
    }
    if (!good)
        return ptx_fail(x->p, -EINVAL, &t, "'.%.*s' selects nothing", PTX_TEXT(&t));
    ptx_advance(x->p);
    return true;
}

/* Takes ".b20": which elements are written; without it all are. */
static bool parse_mask(struct ptx_expand *x, unsigned count, unsigned *mask)
{
    const struct ptx_token t = x->p->token;
    *mask = (1u << count) - 1;
    if (t.kind != PTX_DOT)
        return true;
    bool good = t.text[0] == (count == 4 ? 'b' : 'h') && t.length > 1 && t.length <= count + 1;
    *mask = 0;
    for (unsigned k = 1; good && k < t.length; k++) {
        unsigned digit = (unsigned)(t.text[k] - '0');
        good = digit < count;
        *mask |= good ? 1u << digit : 0;
    }
    if (!good)
        return ptx_fail(x->p, -EINVAL, &t, "'.%.*s' selects nothing", PTX_TEXT(&t));
    ptx_advance(x->p);
    return true;
}

/* Extends the part to 64 bits. */
static struct ir_src extend(struct ptx_expand *x, const struct part *part, bool sign)
{
    enum ir_type type = sign ? IR_S32 : IR_U32;
    struct ir_src v = part->v;
    if (part->bits < 32)
        v = ptx_x_op3(x, IR_OP_BFE, type, v, ptx_x_imm(part->from), ptx_x_imm(part->bits));
    return ptx_x_convert(x, IR_S64, type, v);
}

/* Puts `v` in the place of `part`; the other bits are those of `base`. */
static struct ir_src insert(struct ptx_expand *x, struct ir_src v, const struct part *part,
                            struct ir_src base)
{
    uint32_t mask = part->bits < 32 ? (1u << part->bits) - 1 : UINT32_MAX;
    v = ptx_x_op2(x, IR_OP_AND, IR_B32, v, ptx_x_imm(mask));
    base = ptx_x_op2(x, IR_OP_AND, IR_B32, base, ptx_x_imm((uint32_t) ~(mask << part->from)));
    return ptx_x_mad(x, IR_U32, v, ptx_x_imm(1u << part->from), base);
}

/* --- one element ------------------------------------------------------------------------------ */

static struct ir_src compare(struct ptx_expand *x, const struct video *v, struct ir_src a,
                             struct ir_src b)
{
    struct ir_src holds = ptx_x_compare(x, v->cmp, IR_S64, a, b);
    return ptx_x_op3(x, IR_OP_SELP, IR_S64, ptx_x_imm(1), ptx_x_imm(0), holds);
}

static struct ir_src shift(struct ptx_expand *x, const struct video *v, struct ir_src a,
                           struct ir_src b)
{
    b = ptx_x_convert(x, IR_U32, IR_S64, b);
    b = v->wrap ? ptx_x_op2(x, IR_OP_AND, IR_B32, b, ptx_x_imm(31))
                : ptx_x_op2(x, IR_OP_MIN, IR_U32, b, ptx_x_imm(32));
    if (v->op == SHR)
        return ptx_x_op2(x, IR_OP_SHR, IR_S64, a, b);
    /* The hardware computes in 34 bits, the highest of which is the sign. */
    struct ir_src r =
        ptx_x_op2(x, IR_OP_SHL, IR_B64, ptx_x_op2(x, IR_OP_SHL, IR_B64, a, b), ptx_x_imm(30));
    return ptx_x_op2(x, IR_OP_SHR, IR_S64, r, ptx_x_imm(30));
}

static struct ir_src compute(struct ptx_expand *x, const struct video *v, struct ir_src a,
                             struct ir_src b)
{
    struct ir_src r;
    switch (v->op) {
    case ADD:
        return ptx_x_op2(x, IR_OP_ADD, IR_S64, a, b);
    case SUB:
        return ptx_x_op2(x, IR_OP_SUB, IR_S64, a, b);
    case ABSDIFF:
        r = ptx_x_op2(x, IR_OP_SUB, IR_S64, a, b);
        return ptx_x_op2(x, IR_OP_MAX, IR_S64, r, ptx_x_op2(x, IR_OP_SUB, IR_S64, b, a));
    case MIN:
        return ptx_x_op2(x, IR_OP_MIN, IR_S64, a, b);
    case MAX:
        return ptx_x_op2(x, IR_OP_MAX, IR_S64, a, b);
    /* A half is rounded up, for a negative sum down. */
    case AVERAGE:
        r = ptx_x_op2(x, IR_OP_ADD, IR_S64, a, b);
        r = ptx_x_op2(x, IR_OP_ADD, IR_S64, r, ptx_x_op2(x, IR_OP_SHR, IR_S64, r, ptx_x_imm(63)));
        return ptx_x_op2(x, IR_OP_SHR, IR_S64, ptx_x_op2(x, IR_OP_ADD, IR_S64, r, ptx_x_imm(1)),
                         ptx_x_imm(1));
    case SET:
        return compare(x, v, a, b);
    default:
        return shift(x, v, a, b);
    }
}

/* op(a, b), clamped to `bits` bits if asked. */
static struct ir_src element(struct ptx_expand *x, const struct video *v, struct ir_src a,
                             struct ir_src b, unsigned bits)
{
    struct ir_src r = compute(x, v, a, b);
    if (!v->saturate)
        return ptx_x_convert(x, IR_U32, IR_S64, r);
    int64_t top = (INT64_C(1) << (bits - v->sign_d)) - 1;
    /* A result that is inserted: a negative one counts as too large. */
    if (bits < 32 && v->count == 1)
        return ptx_x_convert(x, IR_U32, IR_S64,
                             ptx_x_op2(x, IR_OP_MIN, IR_U64, r, ptx_x_imm((uint64_t)top)));
    /* If all 32 bits are written the hardware keeps the low bits. */
    if (bits < 32 || v->sign_d || v->op == SHL)
        r = ptx_x_op2(x, IR_OP_MIN, IR_S64, r, ptx_x_imm((uint64_t)top));
    r = ptx_x_op2(x, IR_OP_MAX, IR_S64, r, ptx_x_imm(v->sign_d ? (uint64_t)(-top - 1) : 0));
    return ptx_x_convert(x, IR_U32, IR_S64, r);
}

/* --- instructions ----------------------------------------------------------------------------- */

static bool take_sign(struct ptx_expand *x, bool *sign)
{
    const struct ptx_token *t = ptx_x_take_next(x);
    if (!t || (!ptx_text_is(t, "u32") && !ptx_text_is(t, "s32")))
        return false;
    *sign = t->text[0] == 's';
    return true;
}

static bool take_modifiers(struct ptx_expand *x, struct video *v)
{
    static const char *const comparisons[] = { "eq", "ne", "lt", "le", "gt", "ge" };
    static const uint8_t cmps[] = {
        IR_CMP_EQ, IR_CMP_NE, IR_CMP_LT, IR_CMP_LE, IR_CMP_GT, IR_CMP_GE
    };
    bool shifts = v->op == SHL || v->op == SHR, clamp = shifts && ptx_x_take(x, "clamp");
    v->wrap = shifts && ptx_x_take(x, "wrap");
    v->saturate = v->op != SET && ptx_x_take(x, "sat");
    v->second = ptx_x_take_one(x, second_words, GM_ARRAY_LEN(second_words));
    if (v->op == SET) {
        int c = ptx_x_take_one(x, comparisons, GM_ARRAY_LEN(comparisons));
        if (c < 0)
            return false;
        v->cmp = cmps[c];
    } else if (!take_sign(x, &v->sign_d)) {
        return false;
    }
    return clamp + v->wrap == shifts && take_sign(x, &v->sign_a) && take_sign(x, &v->sign_b) &&
           !(shifts && v->sign_b) && !(v->count > 1 && v->second > 0);
}

/* The second operation. A difference is never negative for it, even one of 2^31 and more. */
static struct ir_src combine(struct ptx_expand *x, const struct video *v, enum ir_op op,
                             struct ir_src r, struct ir_src c)
{
    enum ir_type type = v->sign_d ? IR_S32 : IR_U32;
    if (v->op != ABSDIFF)
        return ptx_x_op2(x, op, type, r, c);
    r = ptx_x_op2(x, op, IR_S64, ptx_x_convert(x, IR_S64, IR_U32, r),
                  ptx_x_convert(x, IR_S64, type, c));
    return ptx_x_convert(x, IR_U32, IR_S64, r);
}

/* d{.b0}, a{.b0}, b{.b0}{, c}: computes one element. */
static bool one(struct ptx_expand *x, const struct video *v)
{
    struct part d, a, b;
    struct ir_src c = ptx_x_imm(0);
    uint32_t to;
    if (!ptx_parse_register(x->p, IR_B32, false, &to) || !parse_selector(x, &d) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &a.v) ||
        !parse_selector(x, &a) || !ptx_expect(x->p, ',') ||
        !ptx_parse_source(x->p, IR_B32, 0, &b.v) || !parse_selector(x, &b))
        return false;
    bool has_c = d.bits < 32 || v->second >= 0;
    if (has_c && (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &c)))
        return false;
    if (d.bits < 32 && v->second >= 0)
        return ptx_x_refuse(x);
    static const enum ir_op ops[] = { IR_OP_ADD, IR_OP_MIN, IR_OP_MAX };
    struct ir_src r = element(x, v, extend(x, &a, v->sign_a), extend(x, &b, v->sign_b), d.bits);
    if (v->second >= 0)
        r = combine(x, v, ops[v->second], r, c);
    else if (d.bits < 32)
        r = insert(x, r, &d, c);
    ptx_x_move(x, IR_B32, to, r);
    return true;
}

/* d{.b3210}, a{.b3210}, b{.b7654}, c: computes several elements; with .add the result is their sum
 * plus c. */
static bool several(struct ptx_expand *x, const struct video *v)
{
    uint32_t to, of_a = 0x3210, of_b = 0x7654;
    unsigned mask, bits = 32 / v->count;
    struct ir_src a, b, c;
    if (!ptx_parse_register(x->p, IR_B32, false, &to) || !parse_mask(x, v->count, &mask) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &a) ||
        !parse_choice(x, v->count, &of_a) || !ptx_expect(x->p, ',') ||
        !ptx_parse_source(x->p, IR_B32, 0, &b) || !parse_choice(x, v->count, &of_b) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &c))
        return false;
    struct part pa = { .v = of_a == 0x3210
                                ? a
                                : ptx_x_op3(x, IR_OP_PRMT, IR_B32, a, b, ptx_x_imm(of_a)) };
    struct part pb = { .v = of_b == 0x7654
                                ? b
                                : ptx_x_op3(x, IR_OP_PRMT, IR_B32, a, b, ptx_x_imm(of_b)) };
    struct ir_src r = c;
    pa.bits = pb.bits = bits;
    for (unsigned e = 0; e < v->count; e++) {
        if (!(mask >> e & 1))
            continue;
        pa.from = pb.from = e * bits;
        struct ir_src one =
            element(x, v, extend(x, &pa, v->sign_a), extend(x, &pb, v->sign_b), bits);
        r = v->second >= 0 ? ptx_x_op2(x, IR_OP_ADD, IR_U32, r, one) : insert(x, one, &pa, r);
    }
    ptx_x_move(x, IR_B32, to, r);
    return true;
}

/* vadd.u32.u32.u32{.sat}{.add .min .max}, vadd4.u32.u32.u32{.sat}{.add} and so on. */
bool ptx_x_video(struct ptx_expand *x)
{
    static const char *const words[] = {
        [ADD] = "vadd",      [SUB] = "vsub", [ABSDIFF] = "vabsdiff", [MIN] = "vmin", [MAX] = "vmax",
        [AVERAGE] = "vavrg", [SET] = "vset", [SHL] = "vshl",         [SHR] = "vshr"
    };
    struct video v = { 0 };
    uint32_t length = x->opcode->length, k = 0;
    char last = x->opcode->text[length - 1];
    v.count = last == '4' ? 4 : last == '2' ? 2 : 1;
    length -= v.count > 1;
    while (k < GM_ARRAY_LEN(words) &&
           (strlen(words[k]) != length || memcmp(words[k], x->opcode->text, length) != 0))
        k++;
    v.op = (enum video_op)k;
    if (k == GM_ARRAY_LEN(words) || !take_modifiers(x, &v))
        return ptx_x_refuse(x);
    return ptx_x_taken_all(x) && (v.count > 1 ? several(x, &v) : one(x, &v));
}

/* --- vmad ------------------------------------------------------------------------------------- */

static bool multiplicand(struct ptx_expand *x, struct part *part, bool *negated)
{
    *negated = ptx_accept(x->p, '-');
    return ptx_parse_source(x->p, IR_B32, 0, &part->v) && parse_selector(x, part) &&
           ptx_expect(x->p, ',');
}

static struct ir_src negated(struct ptx_expand *x, bool yes, struct ir_src v)
{
    return yes ? ptx_x_op2(x, IR_OP_SUB, IR_S64, ptx_x_imm(0), v) : v;
}

/* vmad.u32.u32.u32{.sat}{.shr7 .shr15} d, {-}a{.b0}, {-}b{.b0}, {-}c. With .po the result is one
 * larger. */
bool ptx_x_vmad(struct ptx_expand *x)
{
    bool sign_d, sign_a, sign_b, minus_a, minus_b, minus_c, po = ptx_x_take(x, "po"),
                                                            saturate = ptx_x_take(x, "sat");
    unsigned scale = ptx_x_take(x, "shr7") ? 7 : ptx_x_take(x, "shr15") ? 15 : 0;
    struct part a, b;
    struct ir_src c;
    uint32_t to;
    if (!take_sign(x, &sign_d) || !take_sign(x, &sign_a) || !take_sign(x, &sign_b))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_B32, false, &to) ||
        !ptx_expect(x->p, ',') || !multiplicand(x, &a, &minus_a) || !multiplicand(x, &b, &minus_b))
        return false;
    minus_c = ptx_accept(x->p, '-');
    if (!ptx_parse_source(x->p, IR_B32, 0, &c))
        return false;
    bool sign = sign_a || sign_b || minus_a != minus_b || minus_c;
    /* The hardware treats whole registers as signed, whatever their types are. */
    struct ir_src factor = extend(x, &a, sign_a || a.bits == 32);
    struct ir_src r =
        ptx_x_mad(x, IR_U64, factor, extend(x, &b, sign_b || b.bits == 32), ptx_x_imm(po));
    r = negated(x, minus_a != minus_b, r);
    struct ir_src addend = ptx_x_convert(x, IR_S64, IR_S32, c);
    r = ptx_x_op2(x, IR_OP_ADD, IR_S64, r, negated(x, minus_c, addend));
    if (scale)
        r = ptx_x_op2(x, IR_OP_SHR, IR_S64, r, ptx_x_imm(scale));
    if (saturate && sign) {
        r = ptx_x_op2(x, IR_OP_MIN, IR_S64, r, ptx_x_imm(INT32_MAX));
        r = ptx_x_op2(x, IR_OP_MAX, IR_S64, r, ptx_x_imm((uint64_t)INT32_MIN));
        /* When scaled, a negative result counts as too large. */
    } else if (saturate) {
        if (!scale)
            r = ptx_x_op2(x, IR_OP_MAX, IR_S64, r, ptx_x_imm(0));
        r = ptx_x_op2(x, IR_OP_MIN, IR_U64, r, ptx_x_imm(UINT32_MAX));
    }
    ptx_x_move(x, IR_B32, to, ptx_x_convert(x, IR_U32, IR_S64, r));
    return true;
}
