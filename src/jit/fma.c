/*
 * Multiply-add with one rounding. Processors without such an instruction would call the C library
 * for each lane, which compiled code cannot do. There f32 goes through f64, whose product of two
 * f32 is exact: the sum is rounded to odd (its last bit set wherever something was lost), and what
 * that becomes as f32 is what one rounding would have given, since f64 has more than two bits to
 * spare (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
 */
#include "jit/gen.h"

#include "jit/target.h"

static LLVMValueRef is_negative(struct jit_gen *g, LLVMValueRef v)
{
    return LLVMBuildFCmp(g->b, LLVMRealOLT, v, jit_real(g, v, 0), "");
}

static LLVMValueRef sum_to_odd(struct jit_gen *g, LLVMValueRef a, LLVMValueRef c)
{
    LLVMValueRef s = LLVMBuildFAdd(g->b, a, c, ""), of_c = LLVMBuildFSub(g->b, s, a, "");
    LLVMValueRef lost =
        LLVMBuildFAdd(g->b, LLVMBuildFSub(g->b, a, LLVMBuildFSub(g->b, s, of_c, ""), ""),
                      LLVMBuildFSub(g->b, c, of_c, ""), "");
    LLVMValueRef bits = jit_as_int(g, s), one = jit_const(g, bits, 1);
    LLVMValueRef inexact = LLVMBuildFCmp(g->b, LLVMRealONE, lost, jit_real(g, lost, 0), "");
    LLVMValueRef even = LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildAnd(g->b, bits, one, ""),
                                      jit_const(g, bits, 0), "");
    LLVMValueRef outward =
        LLVMBuildICmp(g->b, LLVMIntEQ, is_negative(g, lost), is_negative(g, s), "");
    LLVMValueRef odd =
        LLVMBuildAdd(g->b, bits, jit_select(g, outward, one, jit_const(g, bits, UINT64_MAX)), "");
    bits = jit_select(g, LLVMBuildAnd(g->b, inexact, even, ""), odd, bits);
    return LLVMBuildBitCast(g->b, bits, LLVMTypeOf(s), "");
}

LLVMValueRef jit_fma(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMTypeRef wide = jit_like(a, g->f64);
    if (g->target->fma)
        return jit_call3(g, "llvm.fma", a, b, c);
    if (LLVMTypeOf(a) == wide) {
        jit_leave(g);
        return a;
    }
    LLVMValueRef product = LLVMBuildFMul(g->b, LLVMBuildFPExt(g->b, a, wide, ""),
                                         LLVMBuildFPExt(g->b, b, wide, ""), "");
    LLVMValueRef sum = sum_to_odd(g, product, LLVMBuildFPExt(g->b, c, wide, ""));
    return LLVMBuildFPTrunc(g->b, sum, LLVMTypeOf(a), "");
}
