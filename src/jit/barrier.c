/*
 * Barrier regions: which registers one names, as only those are read from the warp's save area at
 * its beginning, and its end, where what lives on goes there.
 */
#include "jit/gen.h"

#include <string.h>

static void mark(uint64_t *set, uint32_t reg)
{
    if (reg != IR_NONE)
        set[reg / 64] |= UINT64_C(1) << (reg % 64);
}

static bool is_marked(const uint64_t *set, uint32_t reg)
{
    return set[reg / 64] >> (reg % 64) & 1;
}

static void look_at_instr(struct jit_gen *g, const struct ir_instr *i)
{
    mark(g->named, i->guard);
    mark(g->named, i->address.base);
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG)
            mark(g->named, i->src[k].index);
    mark(g->written, i->dst_pred);
    for (unsigned d = 0; d < i->dst_count; d++)
        mark(g->written, i->dst[d]);
}

void jit_look_at_region(struct jit_gen *g)
{
    const struct ir_region *r = &g->a->regions[g->region];
    memset(g->named, 0, g->a->live_words * sizeof(*g->named));
    memset(g->written, 0, g->a->live_words * sizeof(*g->written));
    for (uint32_t k = 0; k < r->blocks.count; k++) {
        const struct ir_block *b = &g->fn->blocks[g->a->pool[r->blocks.first + k]];
        for (uint32_t n = 0; n < b->count; n++)
            look_at_instr(g, &g->fn->instrs[b->first + n]);
    }
    for (uint32_t k = 0; k < g->a->live_words; k++)
        g->named[k] |= g->written[k];
}

bool jit_is_named(const struct jit_gen *g, uint32_t reg)
{
    return is_marked(g->named, reg);
}

static bool in_list(const struct jit_gen *g, const struct ir_list *l, uint32_t reg)
{
    for (uint32_t k = 0; k < l->count; k++)
        if (g->a->pool[l->first + k] == reg)
            return true;
    return false;
}

void jit_save_register(struct jit_gen *g, uint32_t reg)
{
    LLVMValueRef at = LLVMConstInt(g->i64, g->save_offset[reg], 0);
    LLVMValueRef p = LLVMBuildGEP2(g->b, g->i8, g->w->save, &at, 1, "");
    LLVMValueRef v = jit_get(g, reg);
    bool vec = jit_is_vec(v);
    if (g->fn->regs[reg].type == IR_PRED)
        v = vec ? jit_bits(g, v) : LLVMBuildZExt(g->b, v, g->i8, "");
    LLVMValueRef store = LLVMBuildStore(g->b, v, p);
    if (g->fn->regs[reg].type != IR_PRED)
        LLVMSetAlignment(store, vec ? 16 : 2);
    if (jit_may_wrap(g, reg))
        jit_save_wrapped(g, reg);
}

static void save_registers(struct jit_gen *g, const struct ir_region *resume)
{
    for (uint32_t k = 0; k < resume->live_in.count; k++) {
        uint32_t reg = g->a->pool[resume->live_in.first + k];
        if (g->save_offset[reg] == IR_NONE)
            continue;
        /* What came in and was not changed is in the save area already. */
        if (in_list(g, &g->a->regions[g->region].live_in, reg) && !is_marked(g->written, reg))
            continue;
        jit_save_register(g, reg);
    }
}

/* Leaves the region at a barrier: what lives on goes to the save area. */
void jit_emit_barrier(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    uint32_t next = g->a->resume[g->at_block];
    if (g->guard || i->mode != IR_BAR_SYNC || i->src_count > 1 || next == IR_NONE)
        jit_unsupported(g, "this form of bar");
    else if (i->src_count == 1 && i->src[0].kind != IR_SRC_IMM)
        jit_unsupported(g, "bar with a computed number");
    if (g->failed) {
        LLVMBuildUnreachable(g->b);
        return;
    }
    const struct ir_region *resume = &g->a->regions[next];
    for (unsigned c = 0; c < jit_copies(g); c++) {
        g->w = &g->warps[c];
        save_registers(g, resume);
    }
    g->w = &g->warps[0];
    if (!g->full[next].begins) {
        LLVMValueRef alive = LLVMBuildLoad2(g->b, g->i32, g->alive, "");
        LLVMBuildStore(g->b, alive, jit_at_offset(g, g->b, g->w->save, JIT_SAVE_ALIVE));
    }
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, next, 0));
}
