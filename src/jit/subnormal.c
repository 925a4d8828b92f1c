/*
 * Subnormal f32 numbers. PTX has them unless an instruction says .ftz: then a subnormal operand or
 * result becomes a zero of the same sign. Flushing each operand and result takes three
 * instructions, more than the arithmetic itself. The processor does it for nothing, but for all
 * arithmetic of a thread. So a kernel in which each instruction that could see the difference says
 * .ftz runs with the processor set that way (MXCSR, x86-64); others flush one by one.
 */
#include "jit/gen.h"

#define MXCSR_DEFAULT 0x1f80 /* all exceptions masked, round to nearest */
#define MXCSR_FLUSH   0x8040 /* flush results to zero, take operands as zero */

LLVMValueRef jit_flush(struct jit_gen *g, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    LLVMValueRef bits = jit_as_int(g, v);
    LLVMValueRef exponent = LLVMBuildAnd(g->b, bits, jit_const(g, bits, 0x7f800000), "");
    LLVMValueRef zero = LLVMBuildAnd(g->b, bits, jit_const(g, bits, 0x80000000), "");
    LLVMValueRef tiny =
        LLVMBuildICmp(g->b, LLVMIntEQ, exponent, LLVMConstNull(LLVMTypeOf(bits)), "");
    return LLVMBuildBitCast(g->b, jit_select(g, tiny, zero, bits), t, "");
}

/* Instructions that move bits, or that flush by themselves whatever the processor does. */
static bool only_moves(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_MOV:
    case IR_OP_PACK:
    case IR_OP_UNPACK:
    case IR_OP_LD:
    case IR_OP_LDU:
    case IR_OP_ST:
    case IR_OP_SELP:
    case IR_OP_SHFL:
    case IR_OP_ABS:
    case IR_OP_NEG:
    case IR_OP_COPYSIGN:
    case IR_OP_TESTP:
        return true;
    default:
        return false;
    }
}

/* An instruction that computes the same, or what it should, while the processor flushes. */
static bool may_flush(const struct ir_instr *i)
{
    bool type = ir_types[i->type].class == 'F', type2 = ir_types[i->type2].class == 'F';
    if ((!type && !type2) || only_moves(i))
        return true;
    if (i->op == IR_OP_CVT) {
        if (i->type == IR_F64 || i->type2 == IR_F64 || i->type == IR_BF16 || i->type2 == IR_BF16)
            return false;
        /* An integer is no subnormal number, and those of f16 are normal ones as f32. */
        if (!type2 || i->type2 == IR_F16)
            return true;
    }
    bool single = (!type || i->type == IR_F32) && (!type2 || i->type2 == IR_F32);
    return single && (i->flags & IR_F_FTZ) && i->op != IR_OP_ATOM && i->op != IR_OP_RED;
}

bool jit_kernel_flushes(const struct ir_fn *fn)
{
#if defined(__x86_64__)
    bool any = false;
    for (uint32_t k = 0; k < fn->instr_count; k++) {
        if (!may_flush(&fn->instrs[k]))
            return false;
        any |= (fn->instrs[k].flags & IR_F_FTZ) != 0;
    }
    return any;
#else
    (void)fn;
    return false;
#endif
}

void jit_set_flushing(struct jit_gen *g, bool on)
{
    LLVMValueRef word = LLVMBuildAlloca(g->b, g->i32, "mxcsr");
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, MXCSR_DEFAULT | (on ? MXCSR_FLUSH : 0), 0), word);
    jit_intrinsic(g, "llvm.x86.sse.ldmxcsr", NULL, 0, &word, 1);
}
