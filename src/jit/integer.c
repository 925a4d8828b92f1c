/*
 * Integer arithmetic. The meaning of each instruction is that of device/soft/interp/scalar_int.c.
 */
#include "jit/gen.h"

#include "jit/target.h"

bool jit_wants_vec(const struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    if (g->by_lane)
        return true;
    bool varying = i->dst_pred != IR_NONE && jit_shape(g, i->dst_pred) == IR_VARYING;
    if (i->dst_count && i->dst[0] != IR_NONE && jit_shape(g, i->dst[0]) == IR_VARYING)
        varying = true;
    if (!varying)
        return false;
    for (unsigned k = 0; k < i->src_count; k++)
        if (jit_src_varies(g, &i->src[k]))
            return true;
    return false;
}

static LLVMValueRef extend(struct jit_gen *g, LLVMValueRef v, LLVMTypeRef element)
{
    return jit_resize(g, v, element, ir_type_is_signed(g->i->type));
}

static unsigned width(const struct jit_gen *g)
{
    return 8u * (unsigned)ir_types[g->i->type].size;
}

static LLVMTypeRef twice(const struct jit_gen *g)
{
    return LLVMIntTypeInContext(g->context, 2 * width(g));
}

/* Values that do not fit in 32 signed bits take the nearest that does; `v` has 64. */
static LLVMValueRef clamp_s32(struct jit_gen *g, LLVMValueRef v)
{
    v = jit_call2(g, "llvm.smax", v, jit_const(g, v, (uint64_t)INT32_MIN));
    v = jit_call2(g, "llvm.smin", v, jit_const(g, v, INT32_MAX));
    return LLVMBuildTrunc(g->b, v, jit_like(v, g->i32), "");
}

static LLVMValueRef as_number(struct jit_gen *g, LLVMValueRef flag, LLVMValueRef like)
{
    return LLVMBuildZExt(g->b, flag, LLVMTypeOf(like), "");
}

/* a + b + carry, a - b - !carry; the carry out goes to dst_pred where one is asked for. */
static void emit_add(struct jit_gen *g, bool subtract, LLVMValueRef a, LLVMValueRef b,
                     LLVMValueRef carry)
{
    bool sat = (g->i->flags & IR_F_SAT) != 0;
    if (sat) {
        LLVMTypeRef wide = jit_like(a, g->i64);
        a = LLVMBuildSExt(g->b, a, wide, "");
        b = LLVMBuildSExt(g->b, b, wide, "");
        jit_set(
            g, 0,
            clamp_s32(g, subtract ? LLVMBuildSub(g->b, a, b, "") : LLVMBuildAdd(g->b, a, b, "")));
        return;
    }
    LLVMValueRef r = subtract ? LLVMBuildSub(g->b, a, b, "") : LLVMBuildAdd(g->b, a, b, "");
    LLVMValueRef out = NULL;
    if (g->i->flags & IR_F_CARRY_OUT)
        out = subtract ? LLVMBuildICmp(g->b, LLVMIntULT, a, b, "")
                       : LLVMBuildICmp(g->b, LLVMIntULT, r, a, "");
    if (carry) {
        LLVMValueRef more = subtract ? LLVMBuildNot(g->b, carry, "") : carry;
        LLVMValueRef one = as_number(g, more, r), before = r;
        r = subtract ? LLVMBuildSub(g->b, r, one, "") : LLVMBuildAdd(g->b, r, one, "");
        if (out)
            out = LLVMBuildOr(g->b, out,
                              subtract ? LLVMBuildICmp(g->b, LLVMIntULT, before, one, "")
                                       : LLVMBuildICmp(g->b, LLVMIntULT, r, before, ""),
                              "");
    }
    jit_set(g, 0, r);
    if (out)
        jit_set(g, 4, subtract ? LLVMBuildNot(g->b, out, "") : out);
}

/* Upper half of a 64-bit product from four 32-bit ones: vectors have no 128-bit integers. */
static LLVMValueRef high_u64(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef half = jit_const(g, a, 32), low = jit_const(g, a, UINT32_MAX);
    LLVMValueRef al = LLVMBuildAnd(g->b, a, low, ""), ah = LLVMBuildLShr(g->b, a, half, "");
    LLVMValueRef bl = LLVMBuildAnd(g->b, b, low, ""), bh = LLVMBuildLShr(g->b, b, half, "");
    LLVMValueRef ll = LLVMBuildMul(g->b, al, bl, ""), lh = LLVMBuildMul(g->b, al, bh, "");
    LLVMValueRef hl = LLVMBuildMul(g->b, ah, bl, ""), hh = LLVMBuildMul(g->b, ah, bh, "");
    LLVMValueRef mid = LLVMBuildAdd(g->b, hl, LLVMBuildLShr(g->b, ll, half, ""), "");
    LLVMValueRef mid2 = LLVMBuildAdd(g->b, lh, LLVMBuildAnd(g->b, mid, low, ""), "");
    hh = LLVMBuildAdd(g->b, hh, LLVMBuildLShr(g->b, mid, half, ""), "");
    return LLVMBuildAdd(g->b, hh, LLVMBuildLShr(g->b, mid2, half, ""), "");
}

/* All ones where it is negative. */
static LLVMValueRef sign_of(struct jit_gen *g, LLVMValueRef v)
{
    return LLVMBuildAShr(g->b, v, jit_const(g, v, 63), "");
}

static LLVMValueRef high_64(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef r = high_u64(g, a, b);
    if (!ir_type_is_signed(g->i->type))
        return r;
    LLVMValueRef x = LLVMBuildAnd(g->b, sign_of(g, a), b, "");
    LLVMValueRef y = LLVMBuildAnd(g->b, sign_of(g, b), a, "");
    return LLVMBuildSub(g->b, LLVMBuildSub(g->b, r, x, ""), y, "");
}

/* The part of a * b that the mode asks for. */
static LLVMValueRef product(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    if (g->i->mode != IR_MUL_HI && g->i->mode != IR_MUL_WIDE)
        return LLVMBuildMul(g->b, a, b, "");
    if (width(g) == 64)
        return high_64(g, a, b);
    LLVMValueRef r = LLVMBuildMul(g->b, extend(g, a, twice(g)), extend(g, b, twice(g)), "");
    if (g->i->mode == IR_MUL_WIDE)
        return r;
    r = LLVMBuildLShr(g->b, r, jit_const(g, r, width(g)), "");
    return LLVMBuildTrunc(g->b, r, LLVMTypeOf(a), "");
}

static enum ir_type wide_type(enum ir_type t)
{
    return t == IR_U16 || t == IR_S16 || t == IR_B16 ? IR_U32 : IR_U64;
}

static void emit_mad(struct jit_gen *g, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    LLVMValueRef a = jit_src(g, &g->i->src[0], t, vec), b = jit_src(g, &g->i->src[1], t, vec);
    bool wide = g->i->mode == IR_MUL_WIDE, carry_in = g->i->op == IR_OP_MADC;
    LLVMValueRef ab = product(g, a, b);
    LLVMValueRef c = jit_src(g, &g->i->src[2], wide ? wide_type(t) : t, vec);
    if (wide)
        jit_set(g, 0, LLVMBuildAdd(g->b, ab, c, ""));
    else
        emit_add(g, false, ab, c, carry_in ? jit_src(g, &g->i->src[3], IR_PRED, vec) : NULL);
}

/* Low 24 bits of the sources, extended to 64. */
static LLVMValueRef narrow24(struct jit_gen *g, const struct ir_src *s, bool vec)
{
    LLVMValueRef v = jit_src(g, s, IR_U32, vec), eight = jit_const(g, v, 8);
    bool sign = ir_type_is_signed(g->i->type);
    v = LLVMBuildShl(g->b, v, eight, "");
    v = sign ? LLVMBuildAShr(g->b, v, eight, "") : LLVMBuildLShr(g->b, v, eight, "");
    return jit_resize(g, v, g->i64, sign);
}

static void emit_mul24(struct jit_gen *g, bool vec)
{
    LLVMValueRef ab =
        LLVMBuildMul(g->b, narrow24(g, &g->i->src[0], vec), narrow24(g, &g->i->src[1], vec), "");
    if (g->i->mode == IR_MUL_HI)
        ab = LLVMBuildLShr(g->b, ab, jit_const(g, ab, 16), "");
    ab = jit_resize(g, ab, g->i32, false);
    if (g->i->op == IR_OP_MUL24)
        jit_set(g, 0, ab);
    else
        emit_add(g, false, ab, jit_src(g, &g->i->src[2], IR_U32, vec), NULL);
}

/* Quotient of vectors of 32-bit integers through double precision, whose 53 bits are enough for it
 * to be exact. */
static LLVMValueRef divide_by_reals(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, bool sign)
{
    LLVMTypeRef real = jit_like(a, g->f64), wide = jit_like(a, g->i64);
    LLVMValueRef x = sign ? LLVMBuildSIToFP(g->b, a, real, "") : LLVMBuildUIToFP(g->b, a, real, "");
    LLVMValueRef y = sign ? LLVMBuildSIToFP(g->b, b, real, "") : LLVMBuildUIToFP(g->b, b, real, "");
    LLVMValueRef q = LLVMBuildFPToSI(g->b, LLVMBuildFDiv(g->b, x, y, ""), wide, "");
    return LLVMBuildTrunc(g->b, q, LLVMTypeOf(a), "");
}

/* a * w, where w is a little less than 1 / b: never more than a / b, and less by no more than its
 * 2^49th part and one. */
static LLVMValueRef at_most(struct jit_gen *g, LLVMValueRef a, LLVMValueRef w)
{
    LLVMValueRef x = LLVMBuildUIToFP(g->b, a, LLVMTypeOf(w), "");
    return LLVMBuildFPToUI(g->b, LLVMBuildFMul(g->b, x, w, ""), LLVMTypeOf(a), "");
}

/* Quotient of vectors of unsigned 64-bit integers through double precision: of what the first
 * product leaves the second one is less by one at most. */
static LLVMValueRef divide_in_two_steps(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef real = jit_like(a, g->f64);
    LLVMValueRef y = LLVMBuildUIToFP(g->b, b, real, "");
    LLVMValueRef w = LLVMBuildFDiv(g->b, jit_real(g, y, 1 - 0x1p-50), y, "");
    LLVMValueRef first = at_most(g, a, w);
    LLVMValueRef left = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, first, b, ""), "");
    LLVMValueRef second = at_most(g, left, w);
    left = LLVMBuildSub(g->b, left, LLVMBuildMul(g->b, second, b, ""), "");
    LLVMValueRef last = LLVMBuildICmp(g->b, LLVMIntUGE, left, b, "");
    LLVMValueRef q = LLVMBuildAdd(g->b, first, second, "");
    return LLVMBuildAdd(g->b, q, LLVMBuildZExt(g->b, last, LLVMTypeOf(a), ""), "");
}

static LLVMValueRef negate_where(struct jit_gen *g, LLVMValueRef v, LLVMValueRef sign)
{
    return LLVMBuildSub(g->b, LLVMBuildXor(g->b, v, sign, ""), sign, "");
}

static LLVMValueRef divide_wide(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, bool sign)
{
    if (!sign)
        return divide_in_two_steps(g, a, b);
    LLVMValueRef q = divide_in_two_steps(g, negate_where(g, a, sign_of(g, a)),
                                         negate_where(g, b, sign_of(g, b)));
    return negate_where(g, q, sign_of(g, LLVMBuildXor(g->b, a, b, "")));
}

static LLVMValueRef quotient(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, bool sign)
{
    unsigned bits = width(g);
    if (jit_is_vec(a) && bits == 32 && !LLVMIsConstant(b))
        return divide_by_reals(g, a, b, sign);
    if (jit_is_vec(a) && bits == 64 && !LLVMIsConstant(b) && g->target->avx512)
        return divide_wide(g, a, b, sign);
    return sign ? LLVMBuildSDiv(g->b, a, b, "") : LLVMBuildUDiv(g->b, a, b, "");
}

/* By zero, quotient and remainder are all ones, as on the hardware; the one quotient that does not
 * fit wraps. LLVM's (and the CPU's) division knows neither, so that the divisor is replaced where
 * it must not be used. */
static void emit_div(struct jit_gen *g, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    bool sign = ir_type_is_signed(t), rem = g->i->op == IR_OP_REM;
    LLVMValueRef a = jit_src(g, &g->i->src[0], t, vec), b = jit_src(g, &g->i->src[1], t, vec);
    LLVMValueRef zero = jit_const(g, b, 0), one = jit_const(g, b, 1),
                 minus = jit_const(g, b, UINT64_MAX);
    LLVMValueRef by_zero = LLVMBuildICmp(g->b, LLVMIntEQ, b, zero, "");
    LLVMValueRef by_minus = sign ? LLVMBuildICmp(g->b, LLVMIntEQ, b, minus, "") : NULL;
    LLVMValueRef safe = jit_select(g, by_zero, one, b);
    if (by_minus)
        safe = jit_select(g, by_minus, one, safe);
    LLVMValueRef q = quotient(g, a, safe, sign);
    if (by_minus)
        q = jit_select(g, by_minus, LLVMBuildNeg(g->b, a, ""), q);
    if (rem)
        q = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, q, b, ""), "");
    jit_set(g, 0, jit_select(g, by_zero, minus, q));
}

static void emit_minmax(struct jit_gen *g, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    bool sign = ir_type_is_signed(t), min = g->i->op == IR_OP_MIN;
    const char *name = sign ? (min ? "llvm.smin" : "llvm.smax") : (min ? "llvm.umin" : "llvm.umax");
    LLVMValueRef r =
        jit_call2(g, name, jit_src(g, &g->i->src[0], t, vec), jit_src(g, &g->i->src[1], t, vec));
    if (g->i->flags & IR_F_RELU)
        r = jit_call2(g, "llvm.smax", r, jit_const(g, r, 0));
    jit_set(g, 0, r);
}

/* `bits` bits of a 32-bit word from bit `from` on, extended to 32. */
static LLVMValueRef part(struct jit_gen *g, LLVMValueRef v, unsigned from, unsigned bits, bool sign)
{
    v = LLVMBuildShl(g->b, v, jit_const(g, v, 32 - from - bits), "");
    LLVMValueRef down = jit_const(g, v, 32 - bits);
    return sign ? LLVMBuildAShr(g->b, v, down, "") : LLVMBuildLShr(g->b, v, down, "");
}

static void emit_dot(struct jit_gen *g, bool vec)
{
    bool four = g->i->op == IR_OP_DP4A;
    LLVMValueRef a = jit_src(g, &g->i->src[0], IR_U32, vec),
                 b = jit_src(g, &g->i->src[1], IR_U32, vec);
    LLVMValueRef sum = jit_src(g, &g->i->src[2], IR_U32, vec);
    unsigned bits = four ? 8 : 16, from = !four && g->i->mode == IR_MUL_HI ? 16 : 0;
    for (unsigned k = 0; k < (four ? 4u : 2u); k++) {
        LLVMValueRef x = part(g, a, bits * k, bits, g->i->type == IR_S32);
        LLVMValueRef y = part(g, b, from + 8 * k, 8, g->i->type2 == IR_S32);
        sum = LLVMBuildAdd(g->b, sum, LLVMBuildMul(g->b, x, y, ""), "");
    }
    jit_set(g, 0, sum);
}

static void emit_unary(struct jit_gen *g, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    LLVMValueRef a = jit_src(g, &g->i->src[0], t, vec), minus = LLVMBuildNeg(g->b, a, "");
    if (g->i->op == IR_OP_ABS)
        minus = jit_select(g, LLVMBuildICmp(g->b, LLVMIntSLT, a, jit_const(g, a, 0), ""), minus, a);
    jit_set(g, 0, minus);
}

static void emit_sad(struct jit_gen *g, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    bool sign = ir_type_is_signed(t);
    LLVMValueRef a = jit_src(g, &g->i->src[0], t, vec), b = jit_src(g, &g->i->src[1], t, vec);
    LLVMValueRef high = jit_call2(g, sign ? "llvm.smax" : "llvm.umax", a, b);
    LLVMValueRef low = jit_call2(g, sign ? "llvm.smin" : "llvm.umin", a, b);
    LLVMValueRef sum = LLVMBuildAdd(g->b, jit_src(g, &g->i->src[2], t, vec),
                                    LLVMBuildSub(g->b, high, low, ""), "");
    jit_set(g, 0, sum);
}

bool jit_emit_integer(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    enum ir_type t = (enum ir_type)i->type;
    bool vec = jit_wants_vec(g);
    switch (i->op) {
    case IR_OP_ADD:
    case IR_OP_SUB:
        emit_add(g, i->op == IR_OP_SUB, jit_src(g, &i->src[0], t, vec),
                 jit_src(g, &i->src[1], t, vec), NULL);
        return true;
    case IR_OP_ADDC:
    case IR_OP_SUBC:
        emit_add(g, i->op == IR_OP_SUBC, jit_src(g, &i->src[0], t, vec),
                 jit_src(g, &i->src[1], t, vec), jit_src(g, &i->src[2], IR_PRED, vec));
        return true;
    case IR_OP_MUL:
        jit_set(g, 0, product(g, jit_src(g, &i->src[0], t, vec), jit_src(g, &i->src[1], t, vec)));
        return true;
    case IR_OP_MAD:
    case IR_OP_MADC:
        emit_mad(g, vec);
        return true;
    case IR_OP_MUL24:
    case IR_OP_MAD24:
        emit_mul24(g, vec);
        return true;
    case IR_OP_DIV:
    case IR_OP_REM:
        emit_div(g, vec);
        return true;
    case IR_OP_ABS:
    case IR_OP_NEG:
        emit_unary(g, vec);
        return true;
    case IR_OP_MIN:
    case IR_OP_MAX:
        emit_minmax(g, vec);
        return true;
    case IR_OP_SAD:
        emit_sad(g, vec);
        return true;
    case IR_OP_DP4A:
    case IR_OP_DP2A:
        emit_dot(g, vec);
        return true;
    default:
        return false;
    }
}
