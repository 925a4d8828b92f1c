/*
 * Instructions on values that are rare: compiled code calls the interpreter's form of them, for all
 * lanes at once (struct soft_helpers, compute). What a kernel does in its inner loop deserves
 * better; what it does now and then is no reason to interpret the rest.
 */
#include "jit/gen.h"

#include <string.h>

#include "device/soft/exec/helpers.h"

void jit_leave(struct jit_gen *g)
{
    g->called = true;
}

/* The instruction as constant bytes, without what differs from one place to another. */
static LLVMValueRef description(struct jit_gen *g)
{
    struct ir_instr i;
    memset(&i, 0, sizeof(i));
    i.op = g->i->op;
    i.type = g->i->type;
    i.type2 = g->i->type2;
    i.space = g->i->space;
    i.round = g->i->round;
    i.cmp = g->i->cmp;
    i.boolop = g->i->boolop;
    i.mode = g->i->mode;
    i.mode2 = g->i->mode2;
    i.flags = (uint16_t)(g->i->flags & ~IR_F_GUARD_NOT);
    i.dst_count = g->i->dst_count;
    i.src_count = g->i->src_count;
    for (unsigned k = 0; k < i.src_count; k++)
        if (g->i->src[k].kind == IR_SRC_IMM)
            i.src[k].bits = g->i->src[k].bits;
    LLVMValueRef bytes = LLVMConstStringInContext2(g->context, (const char *)&i, sizeof(i), 1);
    LLVMValueRef v = LLVMAddGlobal(g->module, LLVMTypeOf(bytes), "instruction");
    LLVMSetInitializer(v, bytes);
    LLVMSetGlobalConstant(v, 1);
    LLVMSetLinkage(v, LLVMPrivateLinkage);
    LLVMSetAlignment(v, 8);
    return v;
}

/* A source as the interpreter has it: the bits of the register, zero-extended to 64. */
static LLVMValueRef source(struct jit_gen *g, const struct ir_src *s)
{
    if (s->kind != IR_SRC_REG)
        return jit_src(g, s, IR_U64, true);
    enum ir_type have = (enum ir_type)g->fn->regs[s->index].type;
    return jit_resize(g, jit_as_int(g, jit_src(g, s, ir_type_untyped(have), true)), g->i64, false);
}

static LLVMValueRef row(struct jit_gen *g, LLVMValueRef base, unsigned k)
{
    LLVMValueRef at = LLVMConstInt(g->i64, k * JIT_LANES_MAX * sizeof(uint64_t), 0);
    return LLVMBuildGEP2(g->b, g->i8, base, &at, 1, "");
}

void jit_emit_called(struct jit_gen *g)
{
    LLVMTypeRef params[] = { g->ptr, g->ptr, g->ptr };
    LLVMTypeRef type = LLVMFunctionType(g->nothing, params, 3, 0), lanes = jit_vec(g, g->i64);
    if (!g->operands)
        g->operands =
            jit_alloca(g, LLVMArrayType(g->i64, (IR_MAX_SRC + 2) * JIT_LANES_MAX), "operands");
    for (unsigned k = 0; k < g->i->src_count; k++)
        LLVMSetAlignment(LLVMBuildStore(g->b, source(g, &g->i->src[k]), row(g, g->operands, k)), 8);
    LLVMValueRef out = row(g, g->operands, IR_MAX_SRC);
    LLVMValueRef args[] = { description(g), g->operands, out };
    LLVMBuildCall2(g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, compute)), args,
                   3, "");
    LLVMValueRef result = LLVMBuildLoad2(g->b, lanes, out, "");
    LLVMValueRef second = LLVMBuildLoad2(g->b, lanes, row(g, out, 1), "");
    LLVMSetAlignment(result, 8);
    LLVMSetAlignment(second, 8);
    for (unsigned which = 0; which <= 4; which += 4) {
        uint32_t reg = which ? g->i->dst_pred : g->i->dst_count ? g->i->dst[0] : IR_NONE;
        LLVMValueRef v = which ? second : result;
        if (reg == IR_NONE)
            continue;
        if (g->fn->regs[reg].type == IR_PRED)
            v = LLVMBuildTrunc(g->b, v, jit_vec(g, g->i1), "");
        jit_set(g, which, v);
    }
}
