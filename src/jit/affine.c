/*
 * Affine registers whose lanes may not be lane 0's value plus a stride after all.
 *
 * Addresses come from 32-bit indices that are widened. An index may wrap around between two lanes
 * of a warp, although no program means it to; then the 64-bit values are not in line. Such a
 * register is kept as lane 0's value with a bit that says that it is out of line, and, where that
 * is set, a vector of what the lanes have. The bit comes from a few scalar instructions where the
 * index is widened, and is handed on by those that compute with it; the vector is computed in a
 * branch that is hardly ever taken.
 */
#include "jit/gen.h"

bool jit_may_wrap(const struct jit_gen *g, uint32_t reg)
{
    return g->a->regs[reg].shape == IR_AFFINE && g->a->regs[reg].may_wrap;
}

static LLVMValueRef no(const struct jit_gen *g)
{
    return LLVMConstNull(g->i1);
}

static LLVMTypeRef vector_type(const struct jit_gen *g, uint32_t reg)
{
    return jit_vec(g, jit_type(g, (enum ir_type)g->fn->regs[reg].type));
}

/* In the warp's save area of a register that lives over a barrier: lane 0's value, the bit, the
 * lanes. */
#define SAVED_BIT   8u
#define SAVED_LANES 64u

static LLVMValueRef saved(struct jit_gen *g, LLVMBuilderRef b, uint32_t reg, uint32_t offset)
{
    LLVMValueRef at = LLVMConstInt(g->i64, g->save_offset[reg] + offset, 0);
    return LLVMBuildGEP2(b, g->i8, g->w->save, &at, 1, "");
}

uint32_t jit_wrapped_bytes(const struct jit_gen *g, uint32_t reg)
{
    return SAVED_LANES + (uint32_t)ir_types[g->fn->regs[reg].type].size * g->lanes;
}

static struct jit_wrapped *wrapped(struct jit_gen *g, uint32_t reg)
{
    struct jit_wrapped *w = &g->w->regs[reg].wrapped;
    if (w->is)
        return w;
    w->is = jit_register_slot(g, reg, g->i1);
    if (g->save_offset[reg] == IR_NONE)
        w->lanes = jit_register_slot(g, reg, vector_type(g, reg));
    else
        w->lanes = saved(g, g->prelude, reg, SAVED_LANES);
    return w;
}

LLVMValueRef jit_wraps(struct jit_gen *g, uint32_t reg)
{
    if (!jit_may_wrap(g, reg))
        return no(g);
    return LLVMBuildLoad2(g->b, g->i1, wrapped(g, reg)->is, "");
}

static LLVMValueRef load_lanes(struct jit_gen *g, uint32_t reg)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, vector_type(g, reg), wrapped(g, reg)->lanes, "");
    LLVMSetAlignment(v, 16);
    return v;
}

static void store_lanes(struct jit_gen *g, uint32_t reg, LLVMValueRef v)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, v, wrapped(g, reg)->lanes), 16);
}

LLVMValueRef jit_affine_lanes(struct jit_gen *g, uint32_t reg)
{
    LLVMValueRef first = jit_get(g, reg), ramp;
    if (jit_shape(g, reg) == IR_PATTERN)
        ramp = jit_pattern_lanes(g, LLVMTypeOf(first), reg);
    else
        ramp = jit_ramp(g, LLVMTypeOf(first), g->a->regs[reg].stride);
    LLVMValueRef line = LLVMBuildAdd(g->b, jit_splat(g, first), ramp, "");
    if (!jit_may_wrap(g, reg))
        return line;
    LLVMValueRef lanes = load_lanes(g, reg);
    return LLVMBuildSelect(g->b, jit_wraps(g, reg), lanes, line, "");
}

/* i1: the last lane's value of a narrow affine register is not in the range of its type. */
static LLVMValueRef leaves_range(struct jit_gen *g, bool sign, uint32_t reg)
{
    unsigned size = (unsigned)ir_types[g->fn->regs[reg].type].size;
    LLVMValueRef first = jit_resize(g, jit_get(g, reg), g->i64, sign);
    LLVMValueRef span =
        LLVMConstInt(g->i64, (uint64_t)(g->a->regs[reg].stride * (int64_t)(g->lanes - 1)), 1);
    LLVMValueRef last = LLVMBuildAdd(g->b, first, span, "");
    LLVMValueRef again =
        jit_resize(g, LLVMBuildTrunc(g->b, last, jit_int(g, size), ""), g->i64, sign);
    return LLVMBuildICmp(g->b, LLVMIntNE, last, again, "");
}

/* i1: the result of the current instruction is out of line. */
static LLVMValueRef result_wraps(struct jit_gen *g)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    LLVMValueRef any = no(g);
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

/* Of no consequence from here on. Said so because LLVM would else bring the last value there was
 * along through all blocks. */
static void forget_lanes(struct jit_gen *g, uint32_t reg)
{
    struct jit_wrapped *w = wrapped(g, reg);
    if (g->save_offset[reg] == IR_NONE)
        LLVMBuildStore(g->b, LLVMGetPoison(vector_type(g, reg)), w->lanes);
}

void jit_emit_affine(struct jit_gen *g, void (*emit)(struct jit_gen *g))
{
    uint32_t reg = g->i->dst[0];
    struct jit_wrapped *w = wrapped(g, reg);
    LLVMValueRef bad = result_wraps(g);
    if (!g->checks_all && !g->guard) {
        jit_go_other(g, bad);
        emit(g);
        LLVMBuildStore(g->b, no(g), w->is);
        forget_lanes(g, reg);
        return;
    }
    LLVMBasicBlockRef apart = jit_new_block(g, "wraps"), join = jit_new_block(g, "");
    if (g->guard) /* the same for all lanes, or the register would not be affine */
        bad = LLVMBuildSelect(g->b, g->guard, bad, jit_wraps(g, reg), "");
    LLVMBasicBlockRef straight = jit_new_block(g, "");
    LLVMValueRef branch = LLVMBuildCondBr(g->b, bad, apart, straight);
    LLVMSetMetadata(branch, g->prof_kind, g->unlikely);
    jit_position(g, straight);
    if (!g->guard)
        forget_lanes(g, reg);
    LLVMBuildBr(g->b, join);
    jit_position(g, apart);
    if (g->guard) /* what stays where it does not hold */
        store_lanes(g, reg, jit_affine_lanes(g, reg));
    g->by_lane = true;
    emit(g);
    g->by_lane = false;
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
    emit(g);
    LLVMBuildStore(g->b, bad, w->is);
}

void jit_set_wrapped(struct jit_gen *g, uint32_t reg, LLVMValueRef v)
{
    if (g->guard)
        v = LLVMBuildSelect(g->b, g->guard, v, load_lanes(g, reg), "");
    store_lanes(g, reg, v);
}

void jit_save_wrapped(struct jit_gen *g, uint32_t reg)
{
    LLVMBuildStore(g->b, LLVMBuildZExt(g->b, jit_wraps(g, reg), g->i8, ""),
                   saved(g, g->b, reg, SAVED_BIT));
}

void jit_restore_wrapped(struct jit_gen *g, uint32_t reg)
{
    LLVMValueRef bit = LLVMBuildLoad2(g->b, g->i8, saved(g, g->b, reg, SAVED_BIT), "");
    LLVMBuildStore(g->b, LLVMBuildTrunc(g->b, bit, g->i1, ""), wrapped(g, reg)->is);
}
