/*
 * How many lanes the code treats as a warp: 32, as the hardware does, or 16.
 *
 * Blocks that are 16 threads wide are common (16 x 16). A warp of 32 lanes then holds two rows of
 * the block: neither thread index is a base and a stride over its lanes, so that each access of
 * memory would be a gather. With 16 lanes a warp is one row again. Only instructions that look at
 * other lanes, or at a lane's number, can tell the difference.
 */
#include "jit/gen.h"

static bool tells_lanes_apart(const struct ir_instr *i)
{
    if (ir_ops[i->op].properties & IR_P_CROSS_LANE)
        return true;
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_SREG)
            switch (i->src[k].index) {
            case IR_SREG_LANEID:
            case IR_SREG_WARPID:
            case IR_SREG_NWARPID:
            case IR_SREG_LANEMASK_EQ:
            case IR_SREG_LANEMASK_LE:
            case IR_SREG_LANEMASK_LT:
            case IR_SREG_LANEMASK_GE:
            case IR_SREG_LANEMASK_GT:
                return true;
            default:
                break;
            }
    return false;
}

unsigned jit_choose_lanes(const struct ir_fn *fn, const uint32_t ntid[3])
{
    if (ntid[0] % 32 == 0 || ntid[0] % 16 != 0 || (ntid[1] <= 1 && ntid[2] <= 1))
        return 32;
    for (uint32_t k = 0; k < fn->instr_count; k++)
        if (tells_lanes_apart(&fn->instrs[k]))
            return 32;
    return 16;
}
