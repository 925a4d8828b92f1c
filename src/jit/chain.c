/*
 * The row of tests that finds the next block where lanes wait, for regions that share one (wait.c).
 */
#include "jit/gen.h"

#include <string.h>

/* Tests the blocks that have a place in the piece, one after the other; lanes wait at one of them
 * at least. `some`: a bit for each. */
static void emit_find(struct jit_gen *g, const uint32_t *blocks, uint32_t count, LLVMValueRef some)
{
    LLVMTypeRef type = LLVMTypeOf(some);
    for (uint32_t k = 0; k + 1 < count; k++) {
        LLVMBasicBlockRef next = jit_new_block(g, "");
        LLVMValueRef bit = LLVMBuildAnd(g->b, some, LLVMConstInt(type, 1u << k, 0), "");
        LLVMBuildCondBr(g->b, LLVMBuildIsNotNull(g->b, bit, ""), jit_waiting_entry(g, blocks[k]),
                        next);
        jit_position(g, next);
    }
    LLVMBuildBr(g->b, jit_waiting_entry(g, blocks[count - 1]));
}

void jit_emit_chain(struct jit_gen *g)
{
    const struct ir_list *list = &g->a->regions[g->region].blocks;
    LLVMTypeRef piece = LLVMVectorType(g->i32, JIT_PIECE);
    LLVMBasicBlockRef next = g->done;
    uint32_t blocks[JIT_PIECE], count = 0;
    memset(g->chain, 0, g->fn->block_count * sizeof(*g->chain));
    for (uint32_t k = list->count; k-- > 0;) {
        uint32_t b = g->a->pool[list->first + k];
        if (!g->waits[b])
            continue;
        count = GM_MAX(count, g->place[b] % JIT_PIECE + 1);
        blocks[g->place[b] % JIT_PIECE] = b;
        if (g->place[b] % JIT_PIECE != 0)
            continue;
        LLVMBasicBlockRef test = jit_new_block(g, "chain"), find = jit_new_block(g, "find");
        jit_position(g, test);
        LLVMValueRef lanes =
            LLVMBuildLoad2(g->b, piece, jit_waiting_piece(g, g->b, g->place[b] / JIT_PIECE), "");
        LLVMSetVolatile(lanes, !g->large);
        LLVMValueRef some = LLVMBuildBitCast(g->b, LLVMBuildIsNotNull(g->b, lanes, ""), g->i16, "");
        LLVMBuildCondBr(g->b, LLVMBuildIsNotNull(g->b, some, ""), find, next);
        jit_position(g, find);
        emit_find(g, blocks, count, some);
        for (uint32_t n = 0; n < count; n++)
            g->chain[blocks[n]] = test;
        count = 0;
        next = test;
    }
}
