/*
 * Floating point arithmetic and comparison. The meaning of each instruction is that of
 * device/soft/interp/scalar_float.c and scalar_compare.c; mul and add are never contracted to fma,
 * so that compiled and interpreted code compute the same bits, approximate functions excepted.
 */
#include "jit/gen.h"

#include <stdio.h>

#include "jit/target.h"

static bool is_real(enum ir_type t)
{
    return t == IR_F32 || t == IR_F64;
}

static LLVMValueRef source(struct jit_gen *g, unsigned k, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    LLVMValueRef v = jit_src(g, &g->i->src[k], t, vec);
    return (g->i->flags & IR_F_FTZ) && t == IR_F32 ? jit_flush(g, v) : v;
}

LLVMValueRef jit_saturate(struct jit_gen *g, LLVMValueRef v)
{
    LLVMValueRef zero = jit_real(g, v, 0), one = jit_real(g, v, 1);
    LLVMValueRef below = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOLT, v, one, ""), v, one);
    return jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOGT, v, zero, ""), below, zero);
}

/* Writes a result that has been flushed. */
static void finish(struct jit_gen *g, LLVMValueRef v)
{
    if (g->i->flags & IR_F_SAT)
        v = jit_saturate(g, v);
    if (g->i->flags & IR_F_RELU) {
        LLVMValueRef zero = jit_real(g, v, 0);
        v = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOLE, v, zero, ""), zero, v);
    }
    jit_set(g, 0, v);
}

static void result(struct jit_gen *g, LLVMValueRef v)
{
    finish(g, (g->i->flags & IR_F_FTZ) && g->i->type == IR_F32 ? jit_flush(g, v) : v);
}

/* Whether the optimiser may find that an operation with this operand changes nothing, and drop it
 * with its flushing. */
static bool is_neutral(LLVMValueRef v)
{
    LLVMBool loses;
    if (LLVMIsAConstantVector(v) || LLVMIsAConstantDataVector(v))
        v = LLVMGetAggregateElement(v, 0);
    if (!LLVMIsAConstantFP(v))
        return LLVMIsConstant(v);
    double d = LLVMConstRealGetDouble(v, &loses);
    return d == 0 || d == 1 || d == -1;
}

/* The instruction's rounding mode as AVX-512 has it, without exceptions. */
LLVMValueRef jit_rounding(struct jit_gen *g)
{
    unsigned mode = g->i->round == IR_ROUND_M   ? 9
                    : g->i->round == IR_ROUND_P ? 10
                    : g->i->round == IR_ROUND_Z ? 11
                                                : 8;
    return LLVMConstInt(g->i32, mode, 0);
}

/* Arithmetic with a directed rounding mode, which AVX-512 has in the instruction. */
static LLVMValueRef rounded(struct jit_gen *g, const char *name, LLVMValueRef *args, unsigned count,
                            bool vec)
{
    char full[64];
    bool wide = g->i->type == IR_F64;
    if (!g->target->avx512) {
        jit_leave(g);
        return args[0];
    }
    snprintf(full, sizeof(full), "llvm.x86.avx512.%s.%s.512", name, wide ? "pd" : "ps");
    LLVMValueRef control = jit_rounding(g);
    for (unsigned k = 0; k < count; k++)
        args[k] = jit_as_vec(g, args[k]);
    LLVMValueRef r = jit_chunks(g, full, NULL, 0, wide ? 8 : 16, args, count, &control, 1);
    return vec ? r : LLVMBuildExtractElement(g->b, r, LLVMConstInt(g->i32, 0, 0), "");
}

static bool is_nearest(const struct ir_instr *i)
{
    return i->round == IR_ROUND_N || i->round == IR_ROUND_NONE || (i->flags & IR_F_APPROX);
}

/* div.approx multiplies by 1 / b, which is flushed for large b: a times a zero then. */
static LLVMValueRef without_reciprocal(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b,
                                       LLVMValueRef quotient)
{
    LLVMValueRef large =
        LLVMBuildFCmp(g->b, LLVMRealOGT, jit_call1(g, "llvm.fabs", b), jit_real(g, b, 0x1p126), "");
    LLVMValueRef zero = jit_call2(g, "llvm.copysign", jit_real(g, b, 0), b);
    return jit_select(g, large, LLVMBuildFMul(g->b, a, zero, ""), quotient);
}

static void emit_arithmetic(struct jit_gen *g, bool vec)
{
    LLVMValueRef args[3], r;
    unsigned count = g->i->src_count;
    bool flush = (g->i->flags & IR_F_FTZ) && g->i->type == IR_F32, neutral = false;
    for (unsigned k = 0; k < count && k < 3; k++) {
        args[k] = jit_src(g, &g->i->src[k], (enum ir_type)g->i->type, vec);
        neutral |= is_neutral(args[k]);
    }
    flush &= !g->flushes || neutral;
    for (unsigned k = 0; flush && k < count && k < 3; k++)
        args[k] = jit_flush(g, args[k]);
    bool nearest = is_nearest(g->i);
    switch (g->i->op) {
    case IR_OP_ADD:
        r = nearest ? LLVMBuildFAdd(g->b, args[0], args[1], "") : rounded(g, "add", args, 2, vec);
        break;
    case IR_OP_SUB:
        r = nearest ? LLVMBuildFSub(g->b, args[0], args[1], "") : rounded(g, "sub", args, 2, vec);
        break;
    case IR_OP_MUL:
        r = nearest ? LLVMBuildFMul(g->b, args[0], args[1], "") : rounded(g, "mul", args, 2, vec);
        break;
    case IR_OP_DIV:
        r = nearest ? LLVMBuildFDiv(g->b, args[0], args[1], "") : rounded(g, "div", args, 2, vec);
        if ((g->i->flags & IR_F_APPROX) && g->i->type == IR_F32)
            r = without_reciprocal(g, args[0], args[1], r);
        break;
    case IR_OP_SQRT:
        r = nearest ? jit_call1(g, "llvm.sqrt", args[0]) : rounded(g, "sqrt", args, 1, vec);
        break;
    case IR_OP_RCP:
        args[1] = args[0];
        args[0] = jit_real(g, args[1], 1);
        r = nearest ? LLVMBuildFDiv(g->b, args[0], args[1], "") : rounded(g, "div", args, 2, vec);
        break;
    default:
        r = nearest ? jit_fma(g, args[0], args[1], args[2]) : rounded(g, "vfmadd", args, 3, vec);
        break;
    }
    finish(g, flush ? jit_flush(g, r) : r);
}

/* A NaN loses against a number unless .NaN is given; -0 is below +0. */
static void emit_minmax(struct jit_gen *g, bool vec)
{
    bool min = g->i->op == IR_OP_MIN;
    if (g->i->flags & IR_F_XORSIGN) {
        jit_leave(g);
        return;
    }
    LLVMValueRef a = source(g, 0, vec), b = source(g, 1, vec), r;
    LLVMValueRef x = jit_as_int(g, a), y = jit_as_int(g, b);
    r = jit_call2(g, min ? "llvm.minnum" : "llvm.maxnum", a, b);
    LLVMValueRef tie = min ? LLVMBuildOr(g->b, x, y, "") : LLVMBuildAnd(g->b, x, y, "");
    tie = LLVMBuildBitCast(g->b, tie, LLVMTypeOf(a), "");
    r = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOEQ, a, b, ""), tie, r);
    if (g->i->type == IR_F32) { /* what is no number is one certain NaN */
        LLVMValueRef nan = LLVMBuildBitCast(g->b, jit_const(g, x, 0x7fffffff), LLVMTypeOf(a), "");
        LLVMValueRef other = g->i->flags & IR_F_NAN ? b : r, one = g->i->flags & IR_F_NAN ? a : r;
        r = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealUNO, one, other, ""), nan, r);
    }
    jit_set(g, 0, r);
}

static uint64_t sign_bit(const struct jit_gen *g)
{
    return g->i->type == IR_F64 ? UINT64_C(1) << 63 : 0x80000000u;
}

static void emit_sign(struct jit_gen *g, bool vec)
{
    LLVMValueRef a = source(g, 0, vec), bits = jit_as_int(g, a),
                 sign = jit_const(g, bits, sign_bit(g));
    LLVMValueRef rest = LLVMBuildNot(g->b, sign, ""), r;
    if (g->i->op == IR_OP_NEG)
        r = LLVMBuildXor(g->b, bits, sign, "");
    else if (g->i->op == IR_OP_ABS)
        r = LLVMBuildAnd(g->b, bits, rest, "");
    else /* COPYSIGN: the first one's sign, the second one's value */
        r = LLVMBuildOr(g->b, LLVMBuildAnd(g->b, bits, sign, ""),
                        LLVMBuildAnd(g->b, jit_as_int(g, source(g, 1, vec)), rest, ""), "");
    jit_set(g, 0, LLVMBuildBitCast(g->b, r, LLVMTypeOf(a), ""));
}

/* rcp.approx.ftz.f64 reads and gives upper halves only. */
static void emit_approx_f64(struct jit_gen *g, bool vec)
{
    bool ftz = (g->i->flags & IR_F_FTZ) != 0;
    LLVMValueRef a = jit_src(g, &g->i->src[0], IR_F64, vec);
    if (g->i->op == IR_OP_RSQRT)
        a = jit_call1(g, "llvm.sqrt", a);
    if (ftz && g->i->op == IR_OP_RSQRT) {
        jit_leave(g);
        return;
    }
    if (!ftz) {
        jit_set(g, 0, LLVMBuildFDiv(g->b, jit_real(g, a, 1), a, ""));
        return;
    }
    LLVMValueRef step[2] = { a, NULL };
    for (int k = 0; k < 2; k++) {
        LLVMValueRef bits = jit_as_int(g, step[k]);
        bits = LLVMBuildAnd(g->b, bits, jit_const(g, bits, UINT64_C(0xffffffff00000000)), "");
        LLVMValueRef exponent =
            LLVMBuildAnd(g->b, bits, jit_const(g, bits, UINT64_C(0x7ff) << 52), "");
        LLVMValueRef zero = LLVMBuildAnd(g->b, bits, jit_const(g, bits, UINT64_C(1) << 63), "");
        bits = jit_select(
            g, LLVMBuildICmp(g->b, LLVMIntEQ, exponent, LLVMConstNull(LLVMTypeOf(bits)), ""), zero,
            bits);
        LLVMValueRef flushed = LLVMBuildBitCast(g->b, bits, LLVMTypeOf(a), "");
        if (k == 0) {
            step[1] = LLVMBuildFDiv(g->b, jit_real(g, a, 1), flushed, "");
        } else {
            jit_set(g, 0, LLVMBuildBitCast(g->b, bits, LLVMTypeOf(a), ""));
        }
    }
}

static void emit_function(struct jit_gen *g, bool vec)
{
    if (g->i->op == IR_OP_RSQRT &&
        g->flushes) { /* arithmetic all through, and no result is subnormal */
        jit_set(g, 0, jit_rsqrt(g, jit_src(g, &g->i->src[0], IR_F32, vec)));
        return;
    }
    LLVMValueRef a = source(g, 0, vec);
    switch (g->i->op) {
    case IR_OP_RSQRT:
        result(g, jit_rsqrt(g, a));
        return;
    case IR_OP_SIN:
    case IR_OP_COS:
        result(g, jit_sin_cos(g, a, g->i->op == IR_OP_COS));
        return;
    case IR_OP_EX2:
        result(g, jit_ex2(g, a));
        return;
    case IR_OP_LG2:
        result(g, jit_lg2(g, a));
        return;
    default:
        result(g, jit_tanh(g, a));
        return;
    }
}

LLVMIntPredicate jit_int_predicate(uint8_t cmp, bool sign)
{
    switch (cmp) {
    case IR_CMP_EQ:
        return LLVMIntEQ;
    case IR_CMP_NE:
        return LLVMIntNE;
    case IR_CMP_LT:
        return sign ? LLVMIntSLT : LLVMIntULT;
    case IR_CMP_LE:
        return sign ? LLVMIntSLE : LLVMIntULE;
    case IR_CMP_GT:
        return sign ? LLVMIntSGT : LLVMIntUGT;
    default:
        return sign ? LLVMIntSGE : LLVMIntUGE;
    }
}

static LLVMRealPredicate real_predicate(uint8_t cmp)
{
    static const LLVMRealPredicate table[] = {
        [IR_CMP_EQ] = LLVMRealOEQ,  [IR_CMP_NE] = LLVMRealONE,  [IR_CMP_LT] = LLVMRealOLT,
        [IR_CMP_LE] = LLVMRealOLE,  [IR_CMP_GT] = LLVMRealOGT,  [IR_CMP_GE] = LLVMRealOGE,
        [IR_CMP_EQU] = LLVMRealUEQ, [IR_CMP_NEU] = LLVMRealUNE, [IR_CMP_LTU] = LLVMRealULT,
        [IR_CMP_LEU] = LLVMRealULE, [IR_CMP_GTU] = LLVMRealUGT, [IR_CMP_GEU] = LLVMRealUGE,
        [IR_CMP_NUM] = LLVMRealORD, [IR_CMP_NAN] = LLVMRealUNO,
    };
    return table[cmp < GM_ARRAY_LEN(table) ? cmp : IR_CMP_EQ];
}

static LLVMValueRef with_boolop(struct jit_gen *g, LLVMValueRef r, LLVMValueRef c)
{
    switch (g->i->boolop) {
    case IR_BOOL_AND:
        return LLVMBuildAnd(g->b, r, c, "");
    case IR_BOOL_OR:
        return LLVMBuildOr(g->b, r, c, "");
    case IR_BOOL_XOR:
        return LLVMBuildXor(g->b, r, c, "");
    default:
        return r;
    }
}

/* Value of the "true" of set in the destination's type. */
static LLVMValueRef set_value(struct jit_gen *g, enum ir_type t, LLVMValueRef like)
{
    LLVMTypeRef element = jit_type(g, t);
    LLVMTypeRef type = jit_like(like, element);
    if (t == IR_F32 || t == IR_F64)
        return jit_real(g, LLVMGetUndef(type), 1);
    return LLVMConstAllOnes(type);
}

/* A number of 16 bits comes as f32. */
static LLVMValueRef compared(struct jit_gen *g, unsigned k, enum ir_type t, bool vec)
{
    const bool half = t == IR_F16 || t == IR_BF16, flush = (g->i->flags & IR_F_FTZ) != 0;
    LLVMValueRef v = jit_src(g, &g->i->src[k], half ? IR_B16 : t, vec);
    if (half)
        return jit_widen_half(g, flush ? jit_flush_half(g, v, t == IR_BF16) : v, t == IR_BF16);
    return flush && t == IR_F32 && !g->flushes ? jit_flush(g, v) : v;
}

void jit_emit_compare(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    enum ir_type t = (enum ir_type)(i->op == IR_OP_SET ? i->type2 : i->type);
    const bool vec = jit_wants_vec(g), real = ir_types[t].class == 'F',
               half = t == IR_F16 || t == IR_BF16;
    if ((real && !is_real(t) && !(half && g->target->half)) ||
        (i->op == IR_OP_SET && ir_types[i->type].class == 'F' && !is_real(i->type))) {
        jit_leave(g);
        return;
    }
    LLVMValueRef a = compared(g, 0, t, vec), b = compared(g, 1, t, vec), r;
    if (real)
        r = LLVMBuildFCmp(g->b, real_predicate(i->cmp), a, b, "");
    else
        r = LLVMBuildICmp(g->b, jit_int_predicate(i->cmp, ir_type_is_signed(t)), a, b, "");
    LLVMValueRef other = LLVMBuildNot(g->b, r, "");
    if (i->boolop != IR_BOOL_NONE) {
        LLVMValueRef c = jit_src(g, &i->src[2], IR_PRED, vec);
        r = with_boolop(g, r, c);
        other = with_boolop(g, other, c);
    }
    if (i->op == IR_OP_SET) {
        LLVMValueRef yes = set_value(g, (enum ir_type)i->type, r);
        jit_set(g, 0, jit_select(g, r, yes, LLVMConstNull(LLVMTypeOf(yes))));
        return;
    }
    jit_set(g, 0, r);
    if (i->dst_pred != IR_NONE)
        jit_set(g, 4, other);
}

static enum ir_type plain_type(enum ir_type t)
{
    return t == IR_F16 ? IR_B16 : t;
}

static void emit_select(struct jit_gen *g, bool vec)
{
    const struct ir_instr *i = g->i;
    enum ir_type t = plain_type((enum ir_type)i->type);
    LLVMValueRef a = jit_src(g, &i->src[0], t, vec), b = jit_src(g, &i->src[1], t, vec), cond;
    if (i->op == IR_OP_SELP) {
        cond = jit_src(g, &i->src[2], IR_PRED, vec);
    } else if (i->type2 == IR_F32) {
        LLVMValueRef c = jit_src(g, &i->src[2], IR_F32, vec);
        if (i->flags & IR_F_FTZ)
            c = jit_flush(g, c);
        cond = LLVMBuildFCmp(g->b, LLVMRealOGE, c, jit_real(g, c, 0), "");
    } else {
        LLVMValueRef c = jit_src(g, &i->src[2], IR_S32, vec);
        cond = LLVMBuildICmp(g->b, LLVMIntSGE, c, jit_const(g, c, 0), "");
    }
    jit_set(g, 0, jit_select(g, cond, a, b));
}

static void emit_testp(struct jit_gen *g, bool vec)
{
    bool wide = g->i->type == IR_F64;
    LLVMValueRef a = jit_src(g, &g->i->src[0], (enum ir_type)g->i->type, vec),
                 bits = jit_as_int(g, a);
    uint64_t infinity = wide ? UINT64_C(0x7ff) << 52 : 0x7f800000u,
             smallest = wide ? UINT64_C(1) << 52 : 0x00800000u;
    LLVMValueRef size =
        LLVMBuildAnd(g->b, bits, LLVMBuildNot(g->b, jit_const(g, bits, sign_bit(g)), ""), "");
    LLVMValueRef inf = jit_const(g, size, infinity), normal = jit_const(g, size, smallest), r, zero;
    zero = LLVMBuildICmp(g->b, LLVMIntEQ, size, jit_const(g, size, 0), "");
    LLVMValueRef finite = LLVMBuildICmp(g->b, LLVMIntULT, size, inf, "");
    LLVMValueRef big = LLVMBuildICmp(g->b, LLVMIntUGE, size, normal, "");
    switch (g->i->mode) {
    case IR_TESTP_FINITE:
        r = finite;
        break;
    case IR_TESTP_INFINITE:
        r = LLVMBuildICmp(g->b, LLVMIntEQ, size, inf, "");
        break;
    case IR_TESTP_NUMBER:
        r = LLVMBuildICmp(g->b, LLVMIntULE, size, inf, "");
        break;
    case IR_TESTP_NOTANUMBER:
        r = LLVMBuildICmp(g->b, LLVMIntUGT, size, inf, "");
        break;
    case IR_TESTP_NORMAL:
        r = LLVMBuildAnd(g->b, finite, LLVMBuildOr(g->b, big, zero, ""), "");
        break;
    default:
        r = LLVMBuildNot(g->b, LLVMBuildOr(g->b, big, zero, ""), "");
        break;
    }
    jit_set(g, 0, r);
}

bool jit_emit_real(struct jit_gen *g)
{
    enum ir_type t = (enum ir_type)g->i->type;
    bool vec = jit_wants_vec(g);
    switch (g->i->op) {
    case IR_OP_SELP:
    case IR_OP_SLCT:
        emit_select(g, vec);
        return true;
    case IR_OP_TESTP:
        emit_testp(g, vec);
        return true;
    default:
        break;
    }
    if (ir_types[t].class != 'F' || g->i->op == IR_OP_MOV || g->i->op == IR_OP_PACK ||
        g->i->op == IR_OP_UNPACK)
        return false;
    if (!is_real(t)) {
        jit_emit_half(g, vec);
        return true;
    }
    if (t == IR_F64 &&
        (g->i->op == IR_OP_RSQRT || (g->i->op == IR_OP_RCP && (g->i->flags & IR_F_APPROX)))) {
        emit_approx_f64(g, vec);
        return true;
    }
    switch (g->i->op) {
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
    case IR_OP_DIV:
    case IR_OP_SQRT:
    case IR_OP_RCP:
    case IR_OP_FMA:
    case IR_OP_MAD:
        emit_arithmetic(g, vec);
        return true;
    case IR_OP_MIN:
    case IR_OP_MAX:
        emit_minmax(g, vec);
        return true;
    case IR_OP_ABS:
    case IR_OP_NEG:
    case IR_OP_COPYSIGN:
        emit_sign(g, vec);
        return true;
    case IR_OP_RSQRT:
    case IR_OP_SIN:
    case IR_OP_COS:
    case IR_OP_EX2:
    case IR_OP_LG2:
    case IR_OP_TANH:
        emit_function(g, vec);
        return true;
    default:
        return false;
    }
}
