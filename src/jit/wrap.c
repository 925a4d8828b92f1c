/*
 * Instructions whose result is affine on condition (affine.c).
 */
#include "jit/gen.h"

/* i1: the last lane's value of a narrow affine register is not in the range of its type, as lane
 * 0's is too near to its end. */
static LLVMValueRef leaves_range(struct jit_gen *g, bool sign, uint32_t reg)
{
    unsigned bits = 8 * (unsigned)ir_types[g->fn->regs[reg].type].size;
    if (bits >= 64)
        return LLVMConstNull(g->i1);
    int64_t least = sign ? -(INT64_C(1) << (bits - 1)) : 0, most = least + (INT64_C(1) << bits) - 1;
    int64_t span = g->a->regs[reg].stride * (int64_t)(g->lanes - 1);
    if (span > most - least || span < least - most)
        return LLVMConstInt(g->i1, 1, 0);
    LLVMTypeRef narrow = jit_int(g, bits / 8);
    LLVMValueRef first = jit_resize(g, jit_get(g, reg), narrow, sign);
    LLVMValueRef end = LLVMConstInt(narrow, (uint64_t)((span < 0 ? least : most) - span), 1);
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT, more = sign ? LLVMIntSGT : LLVMIntUGT;
    return LLVMBuildICmp(g->b, span < 0 ? less : more, first, end, "");
}

/* i1: the result of the current instruction is out of line. */
static LLVMValueRef result_wraps(struct jit_gen *g)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    LLVMValueRef any = LLVMConstNull(g->i1);
    for (unsigned k = 0; k < g->i->src_count; k++) {
        const struct ir_src *s = &g->i->src[k];
        if (s->kind != IR_SRC_REG)
            continue;
        any = LLVMBuildOr(g->b, any, jit_wraps(g, s->index), "");
        if (info->widen != IR_WIDEN_NONE && k == info->widen_src &&
            jit_shape(g, s->index) == IR_AFFINE)
            any = LLVMBuildOr(g->b, any, leaves_range(g, info->widen == IR_WIDEN_SIGNED, s->index),
                              "");
    }
    return any;
}

void jit_emit_affine(struct jit_gen *g, void (*emit)(struct jit_gen *g))
{
    uint32_t reg = g->i->dst[0];
    struct jit_wrapped *w = jit_wrapped(g, reg);
    LLVMValueRef bad = result_wraps(g);
    if (!g->checks_all && !g->guard) {
        jit_go_other(g, bad);
        emit(g);
        LLVMBuildStore(g->b, LLVMConstNull(g->i1), w->is);
        jit_forget_lanes(g, reg);
        return;
    }
    LLVMBasicBlockRef apart = jit_new_block(g, "wraps"), join = jit_new_block(g, "");
    if (g->guard) /* the guard is the same for all lanes, or the register would not be affine */
        bad = LLVMBuildSelect(g->b, g->guard, bad, jit_wraps(g, reg), "");
    LLVMBasicBlockRef straight = jit_new_block(g, "");
    LLVMValueRef branch = LLVMBuildCondBr(g->b, bad, apart, straight);
    LLVMSetMetadata(branch, g->prof_kind, g->unlikely);
    jit_position(g, straight);
    if (!g->guard)
        jit_forget_lanes(g, reg);
    LLVMBuildBr(g->b, join);
    jit_position(g, apart);
    if (g->guard) /* the old value, which stays if the guard does not hold */
        jit_store_lanes(g, reg, jit_affine_lanes(g, reg, jit_get(g, reg)));
    g->by_lane = true;
    emit(g);
    g->by_lane = false;
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
    emit(g);
    LLVMBuildStore(g->b, bad, w->is);
}
