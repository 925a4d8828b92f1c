/*
 * The end of a barrier region: registers that live on go to the warp's save area.
 */
#include "jit/gen.h"

/* Whether the register gets a value anywhere in the current region. */
static bool written_in_region(const struct jit_gen *g, uint32_t reg)
{
    const struct ir_region *r = &g->a->regions[g->region];
    for (uint32_t k = 0; k < r->blocks.count; k++) {
        const struct ir_block *b = &g->fn->blocks[g->a->pool[r->blocks.first + k]];
        for (uint32_t n = 0; n < b->count; n++) {
            const struct ir_instr *i = &g->fn->instrs[b->first + n];
            if (i->dst_pred == reg)
                return true;
            for (unsigned d = 0; d < i->dst_count; d++)
                if (i->dst[d] == reg)
                    return true;
        }
    }
    return false;
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
        if (in_list(g, &g->a->regions[g->region].live_in, reg) && !written_in_region(g, reg))
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
