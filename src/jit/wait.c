/*
 * The sets of lanes that wait at blocks, and which regions share the tests that find the next one.
 *
 * Where lanes part, a block is left for each one where lanes may wait. In most kernels it tests
 * these itself, in order of priority, and LLVM knows of each set what it holds. Kernels with many
 * such blocks would have ways from nearly each one to each other, and LLVM a phi for each value
 * that lives there with an operand for each way: time goes with their product. There the blocks
 * share one row of tests, a chain, and enter it at their own first candidate: what is not in a
 * block's frontier has no lanes that wait. The sets are an array in memory, in order of priority,
 * and a link of the chain tests a piece of it at once. Reading them is volatile, so that LLVM
 * neither looks for what they hold through all blocks nor makes the ways between the blocks again.
 * Values stay in registers; only large kernels (frame.c) keep those in memory, too.
 */
#include "jit/gen.h"

#include <stdlib.h>
#include <string.h>

/* Operands of a region's phis, from which on it has chains. */
#define OPERANDS_MIN 30000u

/* Notes where lanes of the block may wait. */
static void note_waits(struct jit_gen *g, uint32_t b)
{
    const struct ir_block_info *info = &g->a->blocks[b];
    const struct ir_block *block = &g->fn->blocks[b];
    bool parts = jit_has_mask(g, b) || info->divergent || info->early_exit;
    g->waits[b] |= jit_has_mask(g, b) || info->parks;
    for (uint32_t f = 0; f < info->frontier.count; f++)
        g->waits[g->a->pool[info->frontier.first + f]] = true;
    for (uint32_t s = 0; s < block->succ_count && parts; s++)
        g->waits[g->fn->succ[block->succ_first + s]] = true;
}

void jit_choose_chains(struct jit_gen *g)
{
    const struct ir_region *region = &g->a->regions[g->region];
    g->chains = g->large || g->options->chains || jit_count_operands(g, region) >= OPERANDS_MIN;
    memset(g->waits, 0, g->fn->block_count * sizeof(*g->waits));
    for (uint32_t k = 0; k < region->blocks.count && g->chains; k++)
        note_waits(g, g->a->pool[region->blocks.first + k]);
    g->place_count = 0;
    for (uint32_t k = 0; k < region->blocks.count; k++) {
        uint32_t b = g->a->pool[region->blocks.first + k];
        if (g->chains ? g->waits[b] : g->a->blocks[b].parks)
            g->place[b] = g->place_count++;
    }
}

LLVMValueRef jit_waiting_piece(struct jit_gen *g, LLVMBuilderRef b, uint32_t piece)
{
    return jit_at_offset(g, b, g->frame.base, g->waiting_at + piece * JIT_PIECE_BYTES);
}

uint32_t jit_pieces(const struct jit_gen *g)
{
    return (g->place_count + JIT_PIECE - 1) / JIT_PIECE;
}

void jit_begin_waiting(struct jit_gen *g)
{
    const struct ir_region *region = &g->a->regions[g->region];
    LLVMTypeRef piece = LLVMVectorType(g->i32, JIT_PIECE);
    if (g->chains)
        g->waiting_at = jit_place_array(g, JIT_PIECE_BYTES, jit_pieces(g));
    /* A frame that is kept has been left without lanes that wait. */
    for (uint32_t k = 0; k < jit_pieces(g) && g->chains; k++)
        jit_clear_at_first(g, piece, g->waiting_at + k * JIT_PIECE_BYTES);
    for (uint32_t k = 0; k < region->blocks.count; k++) {
        uint32_t b = g->a->pool[region->blocks.first + k];
        if (g->waits[b]) {
            g->waiting[b] = jit_at_offset(g, g->prelude, g->frame.base,
                                          g->waiting_at + g->place[b] * (uint32_t)sizeof(uint32_t));
            continue;
        }
        g->waiting[b] = jit_alloca(g, g->i32, "");
        LLVMBuildStore(g->prelude, LLVMConstInt(g->i32, 0, 0), g->waiting[b]);
    }
}

static bool is_volatile(const struct jit_gen *g, uint32_t block)
{
    return g->waits[block] && !g->large;
}

LLVMValueRef jit_load_waiting(struct jit_gen *g, uint32_t block)
{
    LLVMValueRef lanes = LLVMBuildLoad2(g->b, g->i32, g->waiting[block], "");
    LLVMSetVolatile(lanes, is_volatile(g, block));
    return lanes;
}

void jit_store_waiting(struct jit_gen *g, uint32_t block, LLVMValueRef lanes)
{
    LLVMSetVolatile(LLVMBuildStore(g->b, lanes, g->waiting[block]), is_volatile(g, block));
}

/* Says where no lanes wait, of the places at which the candidates will look: else LLVM would follow
 * these sets back through all blocks to where they were left empty. */
void jit_say_empty(struct jit_gen *g, const uint32_t *list, uint32_t count)
{
    bool *known = g->chains || g->a->parking ? NULL : calloc(g->fn->block_count, sizeof(*known));
    for (uint32_t k = 0; k < count && known; k++)
        known[list[k]] = true;
    for (uint32_t k = 0; k < count && known; k++) {
        const struct ir_list *f = &g->a->blocks[list[k]].frontier;
        for (uint32_t n = 0; n < f->count; n++) {
            uint32_t at = g->a->pool[f->first + n];
            if (!known[at] && g->waiting[at])
                jit_store_waiting(g, at, LLVMConstNull(g->i32));
            known[at] = true;
        }
    }
    free(known);
}
