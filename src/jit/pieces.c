/*
 * Elements side by side: of all lanes, or stores of some. AVX2's masked store takes many times as
 * long as a plain one, and a vector of 32 lanes is four registers. At the edge of a matrix one of
 * these is stored in part and the others as a whole, or not at all.
 */
#include "jit/gen.h"

/* Stores what the active ones of `n` lanes have, from lane `from` on. */
static void store_some(struct jit_gen *g, struct jit_access *x, LLVMValueRef v, LLVMValueRef p,
                       unsigned from, unsigned n)
{
    LLVMValueRef up[JIT_LANES_MAX], lanes = LLVMGetPoison(LLVMVectorType(g->i32, n));
    int first[JIT_LANES_MAX] = { 0 };
    for (unsigned l = 0; l < n; l++)
        up[l] = jit_c32(g, 31 - from - l);
    lanes = LLVMBuildInsertElement(g->b, lanes, x->active, jit_c32(g, 0), "");
    lanes = LLVMBuildShl(g->b, jit_shuffle(g, lanes, LLVMGetPoison(LLVMTypeOf(lanes)), first, n),
                         LLVMConstVector(up, n), "");
    lanes = LLVMBuildICmp(g->b, LLVMIntSLT, lanes, LLVMConstNull(LLVMTypeOf(lanes)), "");
    LLVMValueRef args[] = { v, p, jit_c32(g, x->esize), lanes };
    LLVMTypeRef types[] = { LLVMTypeOf(v), g->ptr };
    jit_intrinsic(g, "llvm.masked.store", types, 2, args, 4);
}

void jit_store_pieces(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    unsigned n = GM_MIN(32u / x->esize, g->lanes);
    int order[JIT_LANES_MAX];
    for (unsigned from = 0; from < g->lanes; from += n) {
        for (unsigned l = 0; l < n; l++)
            order[l] = (int)(from + l);
        LLVMValueRef v = jit_shuffle(g, x->value[0], LLVMGetPoison(LLVMTypeOf(x->value[0])), order,
                                     n),
                     at = jit_byte_pointer(g, p, LLVMConstInt(g->i64, from * x->esize, 0));
        uint64_t full = (UINT64_C(1) << n) - 1;
        LLVMValueRef here = LLVMBuildLShr(g->b, x->active, jit_c32(g, from), "");
        LLVMBasicBlockRef all = jit_new_block(g, "all"), part = jit_new_block(g, "part"),
                          next = jit_new_block(g, "");
        LLVMValueRef choice =
            LLVMBuildSwitch(g->b, LLVMBuildAnd(g->b, here, jit_c32(g, full), ""), part, 2);
        LLVMAddCase(choice, jit_c32(g, 0), next);
        LLVMAddCase(choice, jit_c32(g, full), all);
        jit_position(g, all);
        LLVMSetAlignment(LLVMBuildStore(g->b, v, at), x->esize);
        LLVMBuildBr(g->b, next);
        jit_position(g, part);
        store_some(g, x, v, at, from, n);
        LLVMBuildBr(g->b, next);
        jit_position(g, next);
    }
}

void jit_access_contiguous(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    LLVMTypeRef wide = LLVMVectorType(x->element, g->lanes * x->count);
    int order[JIT_LANES_MAX * IR_MAX_DST];
    if (x->store) {
        /* Interleave: first all pairs (0, 1) and (2, 3) side by side, then by position. */
        LLVMValueRef v = x->value[0];
        for (unsigned k = 1; k < x->count; k *= 2) {
            LLVMValueRef other = k == 1 ? x->value[1] : NULL;
            if (k == 1) {
                for (unsigned n = 0; n < 2 * g->lanes; n++)
                    order[n] = n;
                v = jit_shuffle(g, v, other, order, 2 * g->lanes);
            } else {
                other = jit_shuffle(g, x->value[2], x->value[3], order, 2 * g->lanes);
                for (unsigned n = 0; n < 4 * g->lanes; n++)
                    order[n] = n;
                v = jit_shuffle(g, v, other, order, 4 * g->lanes);
            }
        }
        if (x->count > 1) {
            for (unsigned n = 0; n < g->lanes * x->count; n++)
                order[n] = (int)(n % x->count * g->lanes + n / x->count);
            v = jit_shuffle(g, v, LLVMGetPoison(wide), order, g->lanes * x->count);
        }
        LLVMSetAlignment(LLVMBuildStore(g->b, v, p), x->esize);
        return;
    }
    LLVMValueRef v = LLVMBuildLoad2(g->b, wide, p, "");
    LLVMSetAlignment(v, x->esize);
    for (unsigned k = 0; k < x->count; k++) {
        for (unsigned n = 0; n < g->lanes; n++)
            order[n] = (int)(n * x->count + k);
        LLVMBuildStore(g->b,
                       x->count == 1 ? v : jit_shuffle(g, v, LLVMGetPoison(wide), order, g->lanes),
                       x->value[k]);
    }
}
