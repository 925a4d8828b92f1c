/*
 * The lanes' local memory at one address. It lies in pieces (device/soft/ir/spaces.h), those of the
 * lanes side by side: whole pieces are consecutive elements, and of smaller elements each lane has
 * one in its piece. No other thread sees it: lanes that do not run store what is there.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"
#include "jit/target.h"

/* Element `of` a piece that each lane has, from `p` on. */
static LLVMValueRef load_pieces(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p)
{
    const unsigned n = SOFT_LOCAL_PIECE / x->esize;
    LLVMTypeRef wide = LLVMVectorType(x->element, g->lanes * n);
    int order[JIT_LANES_MAX];
    LLVMValueRef all = LLVMBuildLoad2(g->b, wide, p, "");
    LLVMSetAlignment(all, x->esize);
    for (unsigned l = 0; l < g->lanes; l++)
        order[l] = (int)(l * n);
    return jit_shuffle(g, all, LLVMGetPoison(wide), order, g->lanes);
}

/* AVX2's masked store takes longer than all of the lanes' own. */
static void store_each(struct jit_gen *g, LLVMValueRef p, LLVMValueRef v)
{
    for (unsigned l = 0; l < g->lanes; l++)
        LLVMBuildStore(g->b, jit_pick(g, v, jit_c32(g, l)),
                       jit_byte_pointer(g, p, jit_c64(g, (uint64_t)l * SOFT_LOCAL_PIECE)));
}

static void store_pieces(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                         LLVMValueRef v)
{
    const unsigned n = SOFT_LOCAL_PIECE / x->esize, count = g->lanes * n;
    LLVMTypeRef wide = LLVMVectorType(x->element, count);
    LLVMValueRef written[JIT_LANES_MAX * 4];
    int order[JIT_LANES_MAX * 4];
    for (unsigned k = 0; k < count; k++) {
        order[k] = k % n == 0 ? (int)(k / n) : -1;
        written[k] = LLVMConstInt(g->i1, k % n == 0, 0);
    }
    v = jit_shuffle(g, v, LLVMGetPoison(LLVMTypeOf(v)), order, count);
    LLVMTypeRef types[] = { wide, g->ptr };
    LLVMValueRef args[] = { v, p, jit_c32(g, x->esize), LLVMConstVector(written, count) };
    jit_intrinsic(g, "llvm.masked.store", types, 2, args, 4);
}

void jit_access_local(struct jit_gen *g, struct jit_access *x)
{
    const bool whole = x->size == SOFT_LOCAL_PIECE, all = x->active == jit_all_lanes(g);
    LLVMValueRef row = jit_local_row(g, x->active, x->size), lanes = jit_lanes(g, x->active);
    for (unsigned k = 0; k < x->count && (x->store || !whole); k++) {
        LLVMValueRef p = k ? jit_byte_pointer(g, row, jit_c64(g, k * x->esize)) : row;
        LLVMValueRef there = x->store && all ? NULL : load_pieces(g, x, p);
        if (!x->store) {
            LLVMBuildStore(g->b, there, x->value[k]);
            continue;
        }
        x->value[k] = all ? x->value[k] : jit_select(g, lanes, x->value[k], there);
        if (!whole && g->target->avx512)
            store_pieces(g, x, p, x->value[k]);
        else if (!whole)
            store_each(g, p, x->value[k]);
    }
    if (whole)
        jit_access_contiguous(g, x, row);
}
