/*
 * The order in which lanes of a warp store, which tells whose value stays where several store to
 * one place (device/soft/ir/lanes.h). Where it matters the lanes of each group are turned: lane
 * n ^ turn comes as the nth, so that the lowest lane of the last group comes last.
 */
#include "jit/gen.h"

#include "device/soft/ir/lanes.h"

#define STRIDE_SURE 2048 /* with less, no two lanes have the same index of 16 bits or more */

/* It is known now that the current instruction's lanes store to different places. */
static bool lanes_lie_apart(const struct jit_gen *g, unsigned size)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    int64_t stride = GM_MAX(info->address_stride, -info->address_stride);
    if (g->fn->instrs[g->at_instr].space == IR_SPACE_LOCAL)
        return true;
    return info->address == IR_AFFINE && stride >= (int64_t)size &&
           (!info->address_may_wrap || stride < STRIDE_SURE);
}

static unsigned group_of(const struct jit_gen *g, unsigned size)
{
    return GM_MIN(g->lanes, ir_store_group(size));
}

unsigned jit_store_turn(const struct jit_gen *g, unsigned size)
{
    return lanes_lie_apart(g, size) ? 0 : group_of(g, size) - 1;
}

LLVMValueRef jit_turned(struct jit_gen *g, LLVMValueRef v, unsigned turn)
{
    int order[JIT_LANES_MAX];
    for (unsigned l = 0; l < g->lanes; l++)
        order[l] = (int)(l ^ turn);
    return turn ? jit_shuffle(g, v, LLVMGetPoison(LLVMTypeOf(v)), order, g->lanes) : v;
}

LLVMValueRef jit_store_lane(struct jit_gen *g, LLVMValueRef active, unsigned size)
{
    unsigned group = group_of(g, size);
    LLVMValueRef args[] = { active, LLVMConstInt(g->i1, 0, 0) }, lane, first = NULL;
    LLVMValueRef last = LLVMConstInt(g->i32, 31, 0);
    if (group < g->lanes) { /* the last group's first lane, whether that is active or not */
        first = jit_intrinsic(g, "llvm.ctlz", &g->i32, 1, args, 2);
        first = LLVMBuildAnd(g->b, LLVMBuildSub(g->b, last, first, ""),
                             LLVMConstInt(g->i32, 32 - group, 0), "");
        args[0] = LLVMBuildLShr(g->b, active, first, "");
    }
    lane = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2);
    if (first)
        lane = LLVMBuildAdd(g->b, first, lane, "");
    return LLVMBuildAnd(g->b, lane, last, "");
}
