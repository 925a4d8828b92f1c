/*
 * Whether a vector of addresses is really lane 0's plus a stride, found out on scalars.
 *
 * Addresses come from 32-bit indices that are widened; where an index may wrap inside the warp, the analysis calls the
 * register affine only on condition, and it is kept as a vector. An access then needs the condition: it follows from
 * the narrow indices, a scalar and a stride each, if they are computed in the same block. That test costs a few
 * scalar instructions, where comparing 32 addresses costs dozens of vector ones.
 */
#include "jit/gen.h"

#define DEPTH_MAX 8

/* lane 0 + 31 * stride stays in the range of the narrow type. */
static LLVMValueRef does_not_wrap(struct jit_gen *g, const struct ir_instr_info *info, uint32_t reg)
{
    bool sign = info->widen == IR_WIDEN_SIGNED;
    unsigned size = (unsigned)ir_types[g->fn->regs[reg].type].size;
    int64_t stride = g->a->regs[reg].stride;
    if (size > 4 || stride > INT32_MAX || stride < INT32_MIN)
        return NULL;
    LLVMValueRef first = jit_resize(g, jit_get(g, reg), g->i64, sign);
    LLVMValueRef span = LLVMConstInt(g->i64, (uint64_t)(stride * (g->lanes - 1)), 1);
    LLVMValueRef last = LLVMBuildAdd(g->b, first, span, "");
    LLVMValueRef again = LLVMBuildTrunc(g->b, last, jit_int(g, size), "");
    again = sign ? LLVMBuildSExt(g->b, again, g->i64, "") : LLVMBuildZExt(g->b, again, g->i64, "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, last, again, "");
}

/* i1, or NULL: cannot be told this way. */
static LLVMValueRef regular(struct jit_gen *g, uint32_t reg, uint32_t before, unsigned depth)
{
    const struct ir_reg_info *r = &g->a->regs[reg];
    const struct ir_block *block = &g->fn->blocks[g->at_block];
    if (jit_shape(g, reg) != IR_VARYING)
        return LLVMConstInt(g->i1, 1, 0);
    if (r->shape != IR_AFFINE || depth == DEPTH_MAX || r->single_def == IR_NONE || r->single_def >= before ||
        r->single_def < block->first)
        return NULL;
    const struct ir_instr *i = &g->fn->instrs[r->single_def];
    const struct ir_instr_info *info = &g->a->instrs[r->single_def];
    if (i->guard != IR_NONE || (info->blend && g->masked) || (ir_ops[i->op].properties & IR_P_LOAD))
        return NULL;
    LLVMValueRef all = LLVMConstInt(g->i1, 1, 0);
    for (unsigned k = 0; k < i->src_count; k++) {
        LLVMValueRef one;
        if (i->src[k].kind != IR_SRC_REG)
            continue;
        if (info->widen != IR_WIDEN_NONE && k == info->widen_src) {
            /* Its value must still be the one that was widened. */
            const struct ir_reg_info *n = &g->a->regs[i->src[k].index];
            if (jit_shape(g, i->src[k].index) == IR_VARYING || n->single_def == IR_NONE ||
                (n->single_def >= r->single_def && n->single_def < before))
                return NULL;
            one = jit_shape(g, i->src[k].index) == IR_AFFINE ? does_not_wrap(g, info, i->src[k].index) : all;
        } else {
            one = regular(g, i->src[k].index, r->single_def, depth + 1);
        }
        if (!one)
            return NULL;
        all = LLVMBuildAnd(g->b, all, one, "");
    }
    return all;
}

LLVMValueRef jit_is_regular(struct jit_gen *g, uint32_t reg)
{
    return regular(g, reg, g->at_instr, 0);
}
