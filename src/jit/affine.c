/*
 * The lanes' values of affine registers, of those too whose lanes may not be lane 0's value plus a
 * stride after all.
 *
 * Addresses come from 32-bit indices that are widened. An index may wrap around between two lanes
 * of a warp, although no program means it to; then the 64-bit values are not in line. Such a
 * register is kept as lane 0's value with a bit that says that it is out of line, and, where that
 * is set, a vector of what the lanes have. The bit comes from a few scalar instructions where the
 * index is widened, and is handed on by those that compute with it; the vector is computed in a
 * branch that is hardly ever taken.
 */
#include "jit/gen.h"

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

struct jit_wrapped *jit_wrapped(struct jit_gen *g, uint32_t reg)
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
        return LLVMConstNull(g->i1);
    return LLVMBuildLoad2(g->b, g->i1, jit_wrapped(g, reg)->is, "");
}

static LLVMValueRef load_lanes(struct jit_gen *g, uint32_t reg)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, vector_type(g, reg), jit_wrapped(g, reg)->lanes, "");
    LLVMSetAlignment(v, 16);
    return v;
}

void jit_store_lanes(struct jit_gen *g, uint32_t reg, LLVMValueRef v)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, v, jit_wrapped(g, reg)->lanes), 16);
}

/* The lanes' differences from lane 0. */
static LLVMValueRef pattern_lanes(struct jit_gen *g, LLVMTypeRef element, uint32_t reg)
{
    const int32_t *at = jit_pattern_of(g, reg)->at;
    LLVMValueRef all[JIT_LANES_MAX];
    for (unsigned l = 0; l < g->lanes; l++)
        all[l] = LLVMConstInt(element, (uint64_t)((int64_t)at[l] - at[0]), 1);
    return LLVMConstVector(all, g->lanes);
}

LLVMValueRef jit_affine_lanes(struct jit_gen *g, uint32_t reg, LLVMValueRef first)
{
    LLVMValueRef ramp;
    if (jit_shape(g, reg) == IR_PATTERN)
        ramp = pattern_lanes(g, LLVMTypeOf(first), reg);
    else
        ramp = jit_ramp(g, LLVMTypeOf(first), g->a->regs[reg].stride);
    LLVMValueRef line = LLVMBuildAdd(g->b, jit_splat(g, first), ramp, "");
    if (!jit_may_wrap(g, reg))
        return line;
    LLVMValueRef lanes = load_lanes(g, reg);
    return LLVMBuildSelect(g->b, jit_wraps(g, reg), lanes, line, "");
}

/* The value does not matter from here on. Otherwise LLVM would carry the last one through all
 * blocks. */
void jit_forget_lanes(struct jit_gen *g, uint32_t reg)
{
    struct jit_wrapped *w = jit_wrapped(g, reg);
    if (g->save_offset[reg] == IR_NONE)
        LLVMBuildStore(g->b, LLVMGetPoison(vector_type(g, reg)), w->lanes);
}

void jit_set_wrapped(struct jit_gen *g, uint32_t reg, LLVMValueRef v)
{
    if (g->guard)
        v = LLVMBuildSelect(g->b, g->guard, v, load_lanes(g, reg), "");
    jit_store_lanes(g, reg, v);
}

void jit_save_wrapped(struct jit_gen *g, uint32_t reg)
{
    LLVMBuildStore(g->b, LLVMBuildZExt(g->b, jit_wraps(g, reg), g->i8, ""),
                   saved(g, g->b, reg, SAVED_BIT));
}

void jit_clear_wrapped(struct jit_gen *g, LLVMValueRef save, uint32_t reg)
{
    LLVMBuildStore(g->b, LLVMConstNull(g->i8),
                   jit_at_offset(g, g->b, save, g->save_offset[reg] + SAVED_BIT));
}

void jit_restore_wrapped(struct jit_gen *g, uint32_t reg)
{
    LLVMValueRef bit = LLVMBuildLoad2(g->b, g->i8, saved(g, g->b, reg, SAVED_BIT), "");
    LLVMBuildStore(g->b, LLVMBuildTrunc(g->b, bit, g->i1, ""), jit_wrapped(g, reg)->is);
}
