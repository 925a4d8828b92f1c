/*
 * What is known about registers' values within one block: that accesses through them are good, how
 * they are aligned, on what lanes agree (struct jit_register). It is asked for by the instructions
 * of the block only, so it is enough to forget what is known about the registers that they name: in
 * a kernel of thousands of blocks and registers, going through all of them for each block takes
 * seconds.
 */
#include "jit/gen.h"

static void forget(struct jit_gen *g, uint32_t reg)
{
    for (unsigned c = 0; c < jit_copies(g) && reg != IR_NONE; c++) {
        struct jit_register *x = &g->warps[c].regs[reg];
        x->checked = 0;
        x->agree = (struct jit_agree) { 0 };
        x->hull = (struct jit_hull) { 0 };
        x->run.end = 0;
    }
}

void jit_forget(struct jit_gen *g, const struct ir_block *block)
{
    for (uint32_t n = block->first; n < block->first + block->count; n++) {
        const struct ir_instr *i = &g->fn->instrs[n];
        forget(g, i->guard);
        forget(g, i->address.base);
        forget(g, i->dst_pred);
        for (unsigned d = 0; d < i->dst_count; d++)
            forget(g, i->dst[d]);
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_REG)
                forget(g, i->src[k].index);
    }
}
