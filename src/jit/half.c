/*
 * 16-bit floating-point numbers. They are computed as f32 or f64 and rounded twice, to the same
 * bits as once: the wider format has at least twice as many digits and two, or the first rounding
 * is to odd. The meaning is that of half_op() in device/soft/interp/scalar_float.c. Pairs are
 * vectors of twice as many elements.
 */
#include "jit/gen.h"

#include "jit/target.h"

#define INFINITY_F16  0x7c00u
#define INFINITY_BF16 0x7f80u
#define ONE_F16       0x3c00u
#define ONE_BF16      0x3f80u
#define NAN_HALF      0x7fffu

static bool is_pair(enum ir_type t)
{
    return t == IR_F16X2 || t == IR_BF16X2;
}

static bool is_brain(enum ir_type t)
{
    return t == IR_BF16 || t == IR_BF16X2;
}

static uint64_t infinity(bool brain)
{
    return brain ? INFINITY_BF16 : INFINITY_F16;
}

static LLVMValueRef is_nan(struct jit_gen *g, LLVMValueRef v, bool brain)
{
    LLVMValueRef size = LLVMBuildAnd(g->b, v, jit_const(g, v, 0x7fff), "");
    return LLVMBuildICmp(g->b, LLVMIntUGT, size, jit_const(g, v, infinity(brain)), "");
}

LLVMValueRef jit_widen_half(struct jit_gen *g, LLVMValueRef v, bool brain)
{
    LLVMTypeRef f32 = jit_like(v, g->f32);
    if (!brain)
        return LLVMBuildFPExt(g->b, LLVMBuildBitCast(g->b, v, jit_like(v, g->f16), ""), f32, "");
    v = jit_resize(g, v, g->i32, false);
    return LLVMBuildBitCast(g->b, LLVMBuildShl(g->b, v, jit_const(g, v, 16), ""), f32, "");
}

LLVMValueRef jit_narrow_half(struct jit_gen *g, LLVMValueRef v, bool brain)
{
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""), r;
    if (brain) { /* the upper half, rounded by hand */
        LLVMValueRef bits = jit_as_int(g, v), half = jit_const(g, bits, 16);
        LLVMValueRef odd =
            LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, bits, half, ""), jit_const(g, bits, 1), "");
        LLVMValueRef up = LLVMBuildAdd(g->b, odd, jit_const(g, bits, 0x7fff), "");
        r = LLVMBuildLShr(g->b, LLVMBuildAdd(g->b, bits, up, ""), half, "");
        r = jit_resize(g, r, g->i16, false);
    } else {
        r = jit_as_int(g, LLVMBuildFPTrunc(g->b, v, jit_like(v, g->f16), ""));
    }
    return jit_select(g, nan, jit_const(g, r, NAN_HALF), r);
}

LLVMValueRef jit_flush_half(struct jit_gen *g, LLVMValueRef v, bool brain)
{
    LLVMValueRef exponent = LLVMBuildAnd(g->b, v, jit_const(g, v, infinity(brain)), "");
    LLVMValueRef tiny = LLVMBuildICmp(g->b, LLVMIntEQ, exponent, jit_const(g, v, 0), "");
    return jit_select(g, tiny, LLVMBuildAnd(g->b, v, jit_const(g, v, 0x8000), ""), v);
}

/* .ftz, .sat and .relu of a result whose NaN is NAN_HALF. */
static LLVMValueRef finish(struct jit_gen *g, LLVMValueRef v, bool brain)
{
    const LLVMValueRef zero = jit_const(g, v, 0);
    if (g->i->flags & IR_F_FTZ)
        v = jit_flush_half(g, v, brain);
    if (g->i->flags & (IR_F_SAT | IR_F_RELU))
        v = jit_select(g, LLVMBuildICmp(g->b, LLVMIntSLT, v, zero, ""), zero, v);
    if (g->i->flags & IR_F_SAT) {
        LLVMValueRef one = jit_const(g, v, brain ? ONE_BF16 : ONE_F16);
        v = jit_select(g, is_nan(g, v, brain), zero, v);
        v = jit_select(g, LLVMBuildICmp(g->b, LLVMIntUGT, v, one, ""), one, v);
    }
    return v;
}

/* a + b, rounded to odd: where something is cut off, the last digit is 1. */
static LLVMValueRef odd_sum(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef sum = LLVMBuildFAdd(g->b, a, b, ""), b_part = LLVMBuildFSub(g->b, sum, a, "");
    LLVMValueRef a_rest = LLVMBuildFSub(g->b, a, LLVMBuildFSub(g->b, sum, b_part, ""), "");
    LLVMValueRef error = LLVMBuildFAdd(g->b, a_rest, LLVMBuildFSub(g->b, b, b_part, ""), "");
    LLVMValueRef bits = jit_as_int(g, sum), one = jit_const(g, bits, 1);
    LLVMValueRef opposed = LLVMBuildXor(g->b, bits, jit_as_int(g, error), "");
    LLVMValueRef beyond =
        LLVMBuildICmp(g->b, LLVMIntSLT, opposed, LLVMConstNull(LLVMTypeOf(bits)), "");
    LLVMValueRef cut = jit_select(g, beyond, LLVMBuildSub(g->b, bits, one, ""), bits);
    LLVMValueRef inexact = LLVMBuildFCmp(g->b, LLVMRealONE, error, jit_real(g, error, 0), "");
    bits = jit_select(g, inexact, LLVMBuildOr(g->b, cut, one, ""), bits);
    return LLVMBuildBitCast(g->b, bits, LLVMTypeOf(sum), "");
}

/* A product of two bf16 need not fit into f32. Of the sum 12 digits stay, as many as f32 has of the
 * smallest numbers that bf16 does not round to zero. */
static LLVMValueRef fma_brain(struct jit_gen *g, LLVMValueRef *v)
{
    const uint64_t low = (UINT64_C(1) << 41) - 1;
    LLVMTypeRef f64 = jit_like(v[0], g->f64);
    for (unsigned k = 0; k < 3; k++)
        v[k] = LLVMBuildFPExt(g->b, v[k], f64, "");
    LLVMValueRef bits = jit_as_int(g, odd_sum(g, LLVMBuildFMul(g->b, v[0], v[1], ""), v[2]));
    LLVMValueRef rest = LLVMBuildAnd(g->b, bits, jit_const(g, bits, low), "");
    LLVMValueRef exact = LLVMBuildICmp(g->b, LLVMIntEQ, rest, jit_const(g, bits, 0), "");
    LLVMValueRef kept = LLVMBuildAnd(g->b, bits, jit_const(g, bits, ~low), "");
    bits = jit_select(g, exact, kept, LLVMBuildOr(g->b, kept, jit_const(g, bits, low + 1), ""));
    return LLVMBuildFPTrunc(g->b, LLVMBuildBitCast(g->b, bits, f64, ""), jit_like(v[0], g->f32),
                            "");
}

static LLVMValueRef arithmetic(struct jit_gen *g, const LLVMValueRef *in, bool brain)
{
    LLVMValueRef v[3], r;
    for (unsigned k = 0; k < g->i->src_count && k < 3; k++)
        v[k] = jit_widen_half(g, in[k], brain);
    switch (g->i->op) {
    case IR_OP_ADD:
        r = LLVMBuildFAdd(g->b, v[0], v[1], "");
        break;
    case IR_OP_SUB:
        r = LLVMBuildFSub(g->b, v[0], v[1], "");
        break;
    case IR_OP_MUL:
        r = LLVMBuildFMul(g->b, v[0], v[1], "");
        break;
    default:
        r = brain ? fma_brain(g, v) : odd_sum(g, LLVMBuildFMul(g->b, v[0], v[1], ""), v[2]);
        break;
    }
    if ((g->i->flags & IR_F_FTZ) && !brain) { /* by the size before it is rounded */
        LLVMValueRef tiny = LLVMBuildFCmp(g->b, LLVMRealOLT, jit_call1(g, "llvm.fabs", r),
                                          jit_real(g, r, 0x1.ffep-15), "");
        r = jit_select(g, tiny, jit_call2(g, "llvm.copysign", jit_real(g, r, 0), r), r);
    }
    return jit_narrow_half(g, r, brain);
}

/* Integers in the order of the numbers, and back. */
static LLVMValueRef ordered(struct jit_gen *g, LLVMValueRef v)
{
    LLVMValueRef sign = LLVMBuildAShr(g->b, v, jit_const(g, v, 15), "");
    return LLVMBuildXor(g->b, v, LLVMBuildAnd(g->b, sign, jit_const(g, v, 0x7fff), ""), "");
}

static LLVMValueRef minmax(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, bool brain)
{
    LLVMValueRef a_nan = is_nan(g, a, brain), b_nan = is_nan(g, b, brain), r;
    r = ordered(g, jit_call2(g, g->i->op == IR_OP_MIN ? "llvm.smin" : "llvm.smax", ordered(g, a),
                             ordered(g, b)));
    r = jit_select(g, a_nan, b, jit_select(g, b_nan, a, r));
    LLVMValueRef none = g->i->flags & IR_F_NAN ? LLVMBuildOr(g->b, a_nan, b_nan, "")
                                               : LLVMBuildAnd(g->b, a_nan, b_nan, "");
    return jit_select(g, none, jit_const(g, r, NAN_HALF), r);
}

static LLVMValueRef sign(struct jit_gen *g, LLVMValueRef v, bool brain)
{
    LLVMValueRef r = g->i->op == IR_OP_NEG ? LLVMBuildXor(g->b, v, jit_const(g, v, 0x8000), "")
                                           : LLVMBuildAnd(g->b, v, jit_const(g, v, 0x7fff), "");
    return jit_select(g, is_nan(g, r, brain), jit_const(g, r, NAN_HALF), r);
}

void jit_emit_half(struct jit_gen *g, bool vec)
{
    const enum ir_type t = (enum ir_type)g->i->type;
    const bool brain = is_brain(t);
    LLVMValueRef in[3], r;
    if (!g->target->half || (g->i->flags & IR_F_XORSIGN)) {
        jit_leave(g);
        return;
    }
    for (unsigned k = 0; k < g->i->src_count && k < 3; k++) {
        in[k] = jit_src(g, &g->i->src[k], ir_type_untyped(t), vec);
        if (is_pair(t))
            in[k] =
                LLVMBuildBitCast(g->b, in[k], LLVMVectorType(g->i16, vec ? 2 * g->lanes : 2), "");
        if (g->i->flags & IR_F_FTZ)
            in[k] = jit_flush_half(g, in[k], brain);
    }
    switch (g->i->op) {
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
    case IR_OP_MAD:
    case IR_OP_FMA:
        r = arithmetic(g, in, brain);
        break;
    case IR_OP_MIN:
    case IR_OP_MAX:
        r = minmax(g, in[0], in[1], brain);
        break;
    case IR_OP_NEG:
    case IR_OP_ABS:
        r = sign(g, in[0], brain);
        break;
    default:
        jit_leave(g);
        return;
    }
    r = finish(g, r, brain);
    jit_set(g, 0,
            is_pair(t) ? LLVMBuildBitCast(g->b, r, vec ? jit_vec(g, g->i32) : g->i32, "") : r);
}

LLVMValueRef jit_add_halves(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    const enum ir_type t = (enum ir_type)g->i->type;
    const bool brain = is_brain(t);
    LLVMTypeRef whole = LLVMTypeOf(a), parts = is_pair(t) ? LLVMVectorType(g->i16, 2) : whole;
    a = jit_widen_half(g, LLVMBuildBitCast(g->b, a, parts, ""), brain);
    b = jit_widen_half(g, LLVMBuildBitCast(g->b, b, parts, ""), brain);
    LLVMValueRef sum = jit_narrow_half(g, LLVMBuildFAdd(g->b, a, b, ""), brain);
    return LLVMBuildBitCast(g->b, sum, whole, "");
}
