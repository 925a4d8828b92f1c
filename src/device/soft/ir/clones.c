/*
 * How many threads of a block have to run. Threads that differ only in an index which the kernel
 * does not read are clones: they compute the same and store the same to the same places. A kernel
 * for blocks of 256 x 1 threads is often launched with blocks of 32 x 8 and never reads %tid.y.
 *
 * On a GPU clones run side by side, so that x[i] += y adds y once. Here a block's warps run one
 * after the other, and each clone in another warp would add once more. So only those with index 0
 * run: what they leave in memory is what clones in step leave there.
 *
 * That holds as long as nothing counts threads or tells them apart. Accesses by which threads could
 * wait for each other also keep all of them: which thread comes first could matter there.
 */
#include "device/soft/ir/clones.h"

bool ir_tells_lane(uint32_t sreg)
{
    switch (sreg) {
    case IR_SREG_LANEID:
    case IR_SREG_LANEMASK_EQ:
    case IR_SREG_LANEMASK_LE:
    case IR_SREG_LANEMASK_LT:
    case IR_SREG_LANEMASK_GE:
    case IR_SREG_LANEMASK_GT:
        return true;
    default:
        return false;
    }
}

bool ir_sees_lanes(const struct ir_instr *i)
{
    if (ir_ops[i->op].properties & IR_P_CROSS_LANE)
        return true;
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_SREG &&
            (ir_tells_lane(i->src[k].index) || i->src[k].index == IR_SREG_WARPID ||
             i->src[k].index == IR_SREG_NWARPID))
            return true;
    return false;
}

/* Whether it has an effect, or a result, that depends on how many threads do it or in which
 * order. */
static bool counts_threads(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_LD:
    case IR_OP_ST:
        return i->order != IR_ORDER_WEAK;
    case IR_OP_BAR:
        return i->mode != IR_BAR_SYNC || i->src_count > 1;
    case IR_OP_ATOM:
    case IR_OP_RED:
    case IR_OP_HELPER:
    case IR_OP_MEMBAR:
    case IR_OP_FENCE:
        return true;
    default:
        return ir_sees_lanes(i);
    }
}

unsigned ir_thread_dims(const struct ir_fn *fn)
{
    unsigned dims = 0;
    for (uint32_t n = 0; n < fn->instr_count; n++) {
        const struct ir_instr *i = &fn->instrs[n];
        if (counts_threads(i))
            return 3;
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_SREG && i->src[k].index <= IR_SREG_TID_Z)
                dims = GM_MAX(dims, i->src[k].index - IR_SREG_TID_X + 1u);
    }
    return dims;
}
