/*
 * cvt. The meaning is that of device/soft/interp/scalar_cvt.c.
 */
#include "jit/gen.h"

#include "jit/target.h"

static bool is_real(enum ir_type t)
{
    return ir_types[t].class == 'F';
}

/* Nearest value of the destination's range; both in 64 bits, except that the ranges of 64-bit types
 * meet at one end only. */
static LLVMValueRef saturate_int(struct jit_gen *g, LLVMValueRef v, enum ir_type from,
                                 enum ir_type to)
{
    bool from_sign = ir_type_is_signed(from), to_sign = ir_type_is_signed(to);
    unsigned bits = 8u * (unsigned)ir_types[to].size;
    uint64_t top = to_sign      ? (UINT64_C(1) << (bits - 1)) - 1
                   : bits == 64 ? UINT64_MAX
                                : (UINT64_C(1) << bits) - 1;
    if (!from_sign)
        return jit_call2(g, "llvm.umin", v, jit_const(g, v, top));
    if (!to_sign)
        v = jit_call2(g, "llvm.smax", v, jit_const(g, v, 0));
    else
        v = jit_call2(g, "llvm.smax", v, jit_const(g, v, 0 - top - 1));
    return top > INT64_MAX ? v : jit_call2(g, "llvm.smin", v, jit_const(g, v, top));
}

static LLVMValueRef int_to_int(struct jit_gen *g, LLVMValueRef v)
{
    enum ir_type from = (enum ir_type)g->i->type2, to = (enum ir_type)g->i->type;
    if (g->i->flags & IR_F_SAT)
        v = saturate_int(g, jit_resize(g, v, g->i64, ir_type_is_signed(from)), from, to);
    return jit_resize(g, v, jit_type(g, to), ir_type_is_signed(from));
}

static const char *integral_intrinsic(uint8_t round)
{
    switch (round) {
    case IR_ROUND_NI:
    case IR_ROUND_N:
        return "llvm.roundeven";
    case IR_ROUND_MI:
    case IR_ROUND_M:
        return "llvm.floor";
    case IR_ROUND_PI:
    case IR_ROUND_P:
        return "llvm.ceil";
    default:
        return "llvm.trunc";
    }
}

static bool is_integral(uint8_t round)
{
    return round == IR_ROUND_NI || round == IR_ROUND_ZI || round == IR_ROUND_MI ||
           round == IR_ROUND_PI;
}

/* Clamped to the type's range. NaN gives 0, but the sign bit alone for 64-bit types and from f64.
 */
static LLVMValueRef real_to_int(struct jit_gen *g, LLVMValueRef v)
{
    enum ir_type to = (enum ir_type)g->i->type;
    v = jit_call1(g, integral_intrinsic(g->i->round), v);
    LLVMValueRef r = jit_to_int(g, v, jit_type(g, to), ir_type_is_signed(to));
    if (ir_types[to].size == 8 || g->i->type2 == IR_F64)
        r = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""),
                       jit_const(g, r, UINT64_C(1) << (8 * ir_types[to].size - 1)), r);
    return r;
}

static bool is_nearest(const struct ir_instr *i)
{
    return i->round == IR_ROUND_N || i->round == IR_ROUND_NONE || is_integral(i->round);
}

/* A conversion with directed rounding, which AVX-512 has for vectors. */
static LLVMValueRef rounded(struct jit_gen *g, const char *name, LLVMTypeRef *types,
                            unsigned type_count, unsigned chunk, LLVMValueRef v, LLVMValueRef *more,
                            unsigned more_count)
{
    bool vec = jit_is_vec(v);
    if (!g->target->avx512) {
        jit_leave(g);
        return v;
    }
    v = jit_as_vec(g, v);
    v = jit_chunks(g, name, types, type_count, chunk, &v, 1, more, more_count);
    return vec ? v : LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, 0, 0), "");
}

static LLVMValueRef narrow_rounded(struct jit_gen *g, LLVMValueRef v)
{
    LLVMValueRef more[] = { LLVMConstNull(LLVMVectorType(g->f32, 8)), LLVMConstAllOnes(g->i8),
                            jit_rounding(g) };
    return rounded(g, "llvm.x86.avx512.mask.cvtpd2ps.512", NULL, 0, 8, v, more, 3);
}

static LLVMValueRef half_rounded(struct jit_gen *g, LLVMValueRef v)
{
    LLVMValueRef more[] = { jit_rounding(g), LLVMConstNull(LLVMVectorType(g->i16, 16)),
                            LLVMConstAllOnes(g->i16) };
    return rounded(g, "llvm.x86.avx512.mask.vcvtps2ph.512", NULL, 0, 16, v, more, 3);
}

/* `v` has 32 or 64 bits. */
static LLVMValueRef int_rounded(struct jit_gen *g, LLVMValueRef v, LLVMTypeRef to, bool sign,
                                unsigned bits)
{
    unsigned chunk = bits == 64 ? 8 : 16;
    LLVMTypeRef types[] = { LLVMVectorType(to, chunk),
                            LLVMVectorType(bits == 64 ? g->i64 : g->i32, chunk) };
    LLVMValueRef more[] = { jit_rounding(g) };
    return rounded(g, sign ? "llvm.x86.avx512.sitofp.round" : "llvm.x86.avx512.uitofp.round", types,
                   2, chunk, v, more, 1);
}

static LLVMValueRef real_to_half(struct jit_gen *g, LLVMValueRef v, enum ir_type to)
{
    const bool brain = to == IR_BF16;
    if (brain ? !is_nearest(g->i) : !g->target->half) {
        jit_leave(g);
        return v;
    }
    if (is_nearest(g->i))
        return jit_narrow_half(g, v, brain);
    LLVMValueRef h = jit_as_int(g, half_rounded(g, v));
    return jit_select(g, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""), jit_const(g, h, 0x7fff), h);
}

/* The source as f32 or f64. */
static LLVMValueRef real_source(struct jit_gen *g, unsigned k, bool vec)
{
    enum ir_type from = (enum ir_type)g->i->type2;
    LLVMValueRef v;
    if (from == IR_F16 || from == IR_BF16) {
        if (from == IR_F16 && !g->target->half)
            jit_leave(g);
        return jit_widen_half(g, jit_src(g, &g->i->src[k], IR_B16, vec), from == IR_BF16);
    }
    v = jit_src(g, &g->i->src[k], from, vec);
    bool flush = from == IR_F32 && (g->i->flags & IR_F_FTZ) && g->i->type != IR_F16;
    return flush ? jit_flush(g, v) : v;
}

/* f64 to f32. What is flushed depends on the size before: see interp_is_flushed(). */
static LLVMValueRef narrow(struct jit_gen *g, LLVMValueRef v)
{
    LLVMTypeRef t = jit_like(v, g->f32);
    if (!is_nearest(g->i)) {
        if (g->i->flags & IR_F_FTZ) {
            jit_leave(g);
            return LLVMGetUndef(t);
        }
        return narrow_rounded(g, v);
    }
    LLVMValueRef r = LLVMBuildFPTrunc(g->b, v, t, "");
    if (!(g->i->flags & IR_F_FTZ))
        return r;
    LLVMValueRef tiny = LLVMBuildFCmp(g->b, LLVMRealOLT, jit_call1(g, "llvm.fabs", v),
                                      jit_real(g, v, 0x1.ffffffp-127), "");
    return jit_select(g, tiny, jit_call2(g, "llvm.copysign", jit_real(g, r, 0), r), r);
}

/* There is one NaN of f32 where something is flushed or rounded to an integer, or comes of f16. */
static LLVMValueRef canonical(struct jit_gen *g, LLVMValueRef v, enum ir_type to)
{
    bool changes = (g->i->flags & IR_F_FTZ) || is_integral(g->i->round);
    if (!changes && (to != IR_F32 || g->i->type2 != IR_F16))
        return v;
    LLVMValueRef bits = jit_as_int(g, v);
    bits = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""), jit_const(g, bits, 0x7fffffff),
                      bits);
    return LLVMBuildBitCast(g->b, bits, LLVMTypeOf(v), "");
}

/* f32 or f64 to a floating point type; 16-bit ones come as integers. */
static LLVMValueRef real_to_real(struct jit_gen *g, LLVMValueRef v, enum ir_type to)
{
    bool wide = g->i->type2 == IR_F64;
    if (is_integral(g->i->round))
        v = jit_call1(g, integral_intrinsic(g->i->round), v);
    if (g->i->flags & IR_F_RELU) {
        LLVMValueRef zero = jit_real(g, v, 0);
        v = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOLE, v, zero, ""), zero, v);
    }
    if (to == IR_F64) {
        v = wide ? v : LLVMBuildFPExt(g->b, canonical(g, v, to), jit_like(v, g->f64), "");
    } else if (to == IR_F32) {
        if (wide)
            v = narrow(g, v);
        else
            v = canonical(g, g->i->flags & IR_F_FTZ ? jit_flush(g, v) : v, to);
    } else if (wide) {
        jit_leave(g);
        return v;
    } else { /* the bounds are numbers of the type: what is between them stays there */
        return real_to_half(g, g->i->flags & IR_F_SAT ? jit_saturate(g, v) : v, to);
    }
    return g->i->flags & IR_F_SAT ? jit_saturate(g, v) : v;
}

static LLVMValueRef int_to_real(struct jit_gen *g, LLVMValueRef v)
{
    enum ir_type from = (enum ir_type)g->i->type2, to = (enum ir_type)g->i->type;
    unsigned bits = 8u * (unsigned)ir_types[from].size;
    bool exact = bits <= 16 || (bits <= 32 && to == IR_F64);
    bool sign = ir_type_is_signed(from);
    if (to != IR_F32 && to != IR_F64) {
        /* Exact as f32, or beyond f16 as what f32 has of it. */
        if (bits <= 16 || (to == IR_F16 && is_nearest(g->i))) {
            LLVMTypeRef f32 = jit_like(v, g->f32);
            v = sign ? LLVMBuildSIToFP(g->b, v, f32, "") : LLVMBuildUIToFP(g->b, v, f32, "");
            return real_to_half(g, g->i->flags & IR_F_SAT ? jit_saturate(g, v) : v, to);
        }
        jit_leave(g);
        return v;
    }
    LLVMTypeRef t = jit_like(v, jit_type(g, to));
    if (!exact && !is_nearest(g->i))
        v = int_rounded(g, v, jit_type(g, to), sign, bits);
    else
        v = sign ? LLVMBuildSIToFP(g->b, v, t, "") : LLVMBuildUIToFP(g->b, v, t, "");
    return (g->i->flags & IR_F_SAT) && !g->called ? jit_saturate(g, v) : v;
}

/* Two values, the first one into the upper half. */
static void emit_packed(struct jit_gen *g, bool vec)
{
    enum ir_type half = g->i->type == IR_F16X2 ? IR_F16 : IR_BF16;
    LLVMValueRef high = real_to_real(g, real_source(g, 0, vec), half);
    LLVMValueRef low = real_to_real(g, real_source(g, 1, vec), half);
    if (g->called)
        return;
    high = jit_resize(g, high, g->i32, false);
    high = LLVMBuildShl(g->b, high, jit_const(g, high, 16), "");
    jit_set(g, 0, LLVMBuildOr(g->b, high, jit_resize(g, low, g->i32, false), ""));
}

void jit_emit_convert(struct jit_gen *g)
{
    enum ir_type from = (enum ir_type)g->i->type2, to = (enum ir_type)g->i->type;
    bool vec = jit_wants_vec(g);
    LLVMValueRef v;
    if (to == IR_E4M3X2 || to == IR_E5M2X2 || from == IR_E4M3X2 || from == IR_E5M2X2) {
        jit_leave(g);
        return;
    }
    if (to == IR_F16X2 || to == IR_BF16X2) {
        emit_packed(g, vec);
        return;
    }
    if ((to == IR_B32 && from == IR_F32) || from == IR_F16X2 || from == IR_BF16X2) {
        jit_leave(g);
        return;
    }
    if (is_real(from))
        v = real_source(g, 0, vec);
    else
        v = jit_src(g, &g->i->src[0], from, vec);
    if (is_real(to))
        v = is_real(from) ? real_to_real(g, v, to) : int_to_real(g, v);
    else
        v = is_real(from) ? real_to_int(g, v) : int_to_int(g, v);
    if (!g->called)
        jit_set(g, 0, v);
}
