/*
 * The approximate functions, to the precision that PTX asks for, on vectors and scalars. The
 * interpreter computes the same (device/soft/interp/scalar_approx.c).
 */
#include "jit/gen.h"

#include "jit/target.h"

/* Horner: c[n - 1] + x * (c[n - 2] + ...), highest power first. */
static LLVMValueRef polynomial(struct jit_gen *g, LLVMValueRef x, const double *c, unsigned n)
{
    LLVMValueRef r = jit_real(g, x, c[0]);
    for (unsigned k = 1; k < n; k++)
        r = jit_fma(g, r, x, jit_real(g, x, c[k]));
    return r;
}

static LLVMValueRef less(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFCmp(g->b, LLVMRealOLT, a, b, "");
}

/* The CPU's estimate, at least 14 bits (AVX-512) or 12. */
static LLVMValueRef rsqrt_estimate(struct jit_gen *g, LLVMValueRef x)
{
    if (g->target->avx512) {
        LLVMValueRef more[] = { LLVMConstNull(LLVMVectorType(g->f32, 16)),
                                LLVMConstAllOnes(g->i16) };
        return jit_chunks(g, "llvm.x86.avx512.rsqrt14.ps.512", NULL, 0, 16, &x, 1, more, 2);
    }
    return jit_chunks(g, "llvm.x86.avx.rsqrt.ps.256", NULL, 0, 8, &x, 1, NULL, 0);
}

/*
 * y = y0 + y0 / 2 * e with e = 1 - x * y0 * y0: one Newton step. For x = 0 and infinity, x * y0 is
 * not a number, while y0 is already the result: e is then replaced by a small number, which changes
 * nothing. Taking the minimum of e and an upper bound of it does that in one instruction, as the
 * x86 minimum returns its second operand for NaN.
 */
static LLVMValueRef refined_rsqrt(struct jit_gen *g, LLVMValueRef x)
{
    LLVMValueRef y0 = rsqrt_estimate(g, x),
                 bound = jit_real(g, x, g->target->avx512 ? 0x1p-12 : 0x1p-9);
    LLVMValueRef t = LLVMBuildFMul(g->b, x, y0, "");
    LLVMValueRef e = jit_fma(g, LLVMBuildFNeg(g->b, t, ""), y0, jit_real(g, x, 1));
    e = jit_select(g, less(g, e, bound), e, bound);
    return jit_fma(g, LLVMBuildFMul(g->b, y0, jit_real(g, x, 0.5), ""), e, y0);
}

/* The estimate without AVX-512 takes subnormal numbers for zero, on Intel's processors as on AMD's
 * of Zen 3: it is made of larger ones. */
LLVMValueRef jit_rsqrt(struct jit_gen *g, LLVMValueRef x)
{
    if (!jit_is_vec(x) || (!g->target->avx512 && !g->target->avx2))
        return LLVMBuildFDiv(g->b, jit_real(g, x, 1), jit_call1(g, "llvm.sqrt", x), "");
    if (g->target->avx512 || g->flushes)
        return refined_rsqrt(g, x);
    LLVMValueRef small = less(g, jit_call1(g, "llvm.fabs", x), jit_real(g, x, 0x1p-126));
    LLVMValueRef large = LLVMBuildFMul(g->b, x, jit_real(g, x, 0x1p24), "");
    LLVMValueRef y = refined_rsqrt(g, jit_select(g, small, large, x));
    return jit_select(g, small, LLVMBuildFMul(g->b, y, jit_real(g, x, 0x1p12), ""), y);
}

/* 2^k of integers k = -126 .. 127. */
static LLVMValueRef power_of_two(struct jit_gen *g, LLVMValueRef k)
{
    LLVMValueRef biased = LLVMBuildAdd(g->b, k, jit_const(g, k, 127), "");
    return LLVMBuildBitCast(g->b, LLVMBuildShl(g->b, biased, jit_const(g, k, 23), ""),
                            jit_like(k, g->f32), "");
}

LLVMValueRef jit_ex2(struct jit_gen *g, LLVMValueRef x)
{
    /* ln(2)^n / n! */
    static const double c[] = { 1.52527338040598403e-5, 1.54035303933816100e-4,
                                1.33335581464284434e-3, 9.61812910762847716e-3,
                                5.55041086648215800e-2, 2.40226506959100712e-1,
                                6.93147180559945309e-1, 1.0 };
    LLVMValueRef low = jit_real(g, x, -160), high = jit_real(g, x, 130);
    x = jit_select(g, less(g, x, low), low, x); /* NaN stays */
    x = jit_select(g, less(g, high, x), high, x);
    LLVMValueRef n = jit_call1(g, "llvm.roundeven", x);
    LLVMValueRef r = polynomial(g, LLVMBuildFSub(g->b, x, n, ""), c, GM_ARRAY_LEN(c));
    LLVMValueRef k = jit_to_int(g, n, g->i32, true),
                 half = LLVMBuildAShr(g->b, k, jit_const(g, k, 1), "");
    r = LLVMBuildFMul(g->b, r, power_of_two(g, half), "");
    return LLVMBuildFMul(g->b, r, power_of_two(g, LLVMBuildSub(g->b, k, half, "")), "");
}

LLVMValueRef jit_lg2(struct jit_gen *g, LLVMValueRef x)
{
    /* 2 / ln(2) / (2 n + 1): log2 of m = (1 + s) / (1 - s) in odd powers of s */
    static const double c[] = { 0.320598897975325, 0.412198583111132, 0.577078016355585,
                                0.961796693925976, 2.88539008177793 };
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef smallest = jit_real(g, x, 0x1p-126), tiny = less(g, x, smallest);
    LLVMValueRef scaled =
        jit_select(g, tiny, LLVMBuildFMul(g->b, x, jit_real(g, x, 0x1p24), ""), x);
    LLVMValueRef bits = jit_as_int(g, scaled);
    /* Split so that the mantissa lies around 1: sqrt(1/2) .. sqrt(2). */
    LLVMValueRef offset = LLVMBuildSub(g->b, bits, jit_const(g, bits, 0x3f3504f3), "");
    LLVMValueRef e = LLVMBuildAShr(g->b, offset, jit_const(g, bits, 23), "");
    LLVMValueRef m = LLVMBuildSub(g->b, bits, LLVMBuildShl(g->b, e, jit_const(g, e, 23), ""), "");
    m = LLVMBuildBitCast(g->b, m, t, "");
    LLVMValueRef one = jit_real(g, x, 1);
    LLVMValueRef s =
        LLVMBuildFDiv(g->b, LLVMBuildFSub(g->b, m, one, ""), LLVMBuildFAdd(g->b, m, one, ""), "");
    LLVMValueRef p = polynomial(g, LLVMBuildFMul(g->b, s, s, ""), c, GM_ARRAY_LEN(c));
    LLVMValueRef whole = LLVMBuildSIToFP(g->b, e, t, "");
    whole = jit_select(g, tiny, LLVMBuildFSub(g->b, whole, jit_real(g, x, 24), ""), whole);
    LLVMValueRef r = jit_fma(g, s, p, whole), zero = jit_real(g, x, 0),
                 inf = jit_real(g, x, __builtin_inf());
    LLVMValueRef nan = jit_real(g, x, __builtin_nan(""));
    r = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOEQ, x, inf, ""), inf, r);
    r = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealULT, x, zero, ""), nan, r);
    return jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOEQ, x, zero, ""),
                      jit_real(g, x, -__builtin_inf()), r);
}

LLVMValueRef jit_sin_cos(struct jit_gen *g, LLVMValueRef x, bool cosine)
{
    static const double sine[] = { 2.75573192e-6, -1.98412698e-4, 8.33333333e-3, -1.66666667e-1,
                                   1.0 };
    static const double cosine_of[] = { 2.48015873e-5, -1.38888889e-3, 4.16666667e-2, -0.5, 1.0 };
    LLVMTypeRef t = LLVMTypeOf(x);
    /* As the hardware does it: x / 2 pi in f32, rounded towards zero, and of that the fraction. */
    LLVMValueRef wide = LLVMBuildFPExt(g->b, x, jit_like(x, g->f64), "");
    LLVMTypeRef t64 = LLVMTypeOf(wide);
    LLVMValueRef turns =
        jit_as_int(g, LLVMBuildFMul(g->b, wide, jit_real(g, wide, (double)0.15915494f), ""));
    turns = LLVMBuildAnd(g->b, turns, jit_const(g, turns, ~UINT64_C(0x1fffffff)), "");
    turns = LLVMBuildBitCast(g->b, turns, t64, "");
    LLVMValueRef part = LLVMBuildFSub(g->b, turns, jit_call1(g, "llvm.roundeven", turns), "");
    part = LLVMBuildFMul(g->b, part, jit_real(g, wide, 4), "");
    LLVMValueRef quarter = jit_call1(g, "llvm.roundeven", part);
    LLVMValueRef r = LLVMBuildFSub(g->b, part, quarter, "");
    r = LLVMBuildFPTrunc(
        g->b, LLVMBuildFMul(g->b, r, jit_real(g, wide, 1.57079632679489655800), ""), t, "");
    LLVMValueRef q = jit_to_int(g, quarter, g->i32, true);
    if (cosine)
        q = LLVMBuildAdd(g->b, q, jit_const(g, q, 1), "");
    LLVMValueRef r2 = LLVMBuildFMul(g->b, r, r, "");
    LLVMValueRef s = LLVMBuildFMul(g->b, polynomial(g, r2, sine, GM_ARRAY_LEN(sine)), r, "");
    LLVMValueRef c = polynomial(g, r2, cosine_of, GM_ARRAY_LEN(cosine_of));
    LLVMValueRef odd = LLVMBuildAnd(g->b, q, jit_const(g, q, 1), "");
    LLVMValueRef v =
        jit_select(g, LLVMBuildICmp(g->b, LLVMIntNE, odd, jit_const(g, q, 0), ""), c, s);
    LLVMValueRef sign =
        LLVMBuildShl(g->b, LLVMBuildAnd(g->b, q, jit_const(g, q, 2), ""), jit_const(g, q, 30), "");
    v = LLVMBuildBitCast(g->b, LLVMBuildXor(g->b, jit_as_int(g, v), sign, ""), t, "");
    if (cosine)
        return v;
    LLVMValueRef flushed = LLVMBuildFCmp(g->b, LLVMRealOLT, jit_call1(g, "llvm.fabs", turns),
                                         jit_real(g, wide, 0x1p-126), "");
    return jit_select(g, flushed, jit_call2(g, "llvm.copysign", jit_real(g, x, 0), x), v);
}

LLVMValueRef jit_tanh(struct jit_gen *g, LLVMValueRef x)
{
    static const double series[] = { -5.39682540e-2, 1.33333333e-1, -3.33333333e-1, 1.0 };
    LLVMValueRef size = jit_call1(g, "llvm.fabs", x), one = jit_real(g, x, 1);
    LLVMValueRef power =
        jit_ex2(g, LLVMBuildFMul(g->b, size, jit_real(g, x, 2.88539008177793), ""));
    LLVMValueRef big =
        LLVMBuildFDiv(g->b, jit_real(g, x, 2), LLVMBuildFAdd(g->b, power, one, ""), "");
    big = jit_call2(g, "llvm.copysign", LLVMBuildFSub(g->b, one, big, ""), x);
    LLVMValueRef small = LLVMBuildFMul(
        g->b, polynomial(g, LLVMBuildFMul(g->b, x, x, ""), series, GM_ARRAY_LEN(series)), x, "");
    return jit_select(g, less(g, size, jit_real(g, x, 0.25)), small, big);
}
