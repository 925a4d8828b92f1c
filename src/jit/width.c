/*
 * How many lanes the code treats as a warp: 32, as the hardware does, or fewer. Only instructions
 * that look at other lanes, or at a lane's number, can tell the difference.
 *
 * Blocks that are 16 threads wide are common (16 x 16). A warp of 32 lanes then holds two rows of
 * the block: neither thread index is a base and a stride over its lanes, so that each access of
 * memory would be a gather. With 16 lanes a warp is one row again.
 *
 * A vector of 32 lanes is two to four registers of the processor, so each PTX instruction is as
 * many of its own. In short kernels these fill each other's gaps. In long ones they only make the
 * code long, and what LLVM takes for it grows faster than the code does; nor are there registers
 * for so much. So a kernel whose code comes out too long is made again with half the lanes, or a
 * quarter; so is one that needs more stack than there is.
 *
 * With AVX2 32 addresses are eight registers of sixteen. A kernel whose loops access memory
 * anywhere has 16 lanes there from the beginning.
 */
#include "jit/gen.h"
#include "jit/target.h"

/* Instructions for registers, more than which take LLVM over a second. */
#define LENGTH_MAX 14000u

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

/* No instruction tells one lane of a warp from another: the code may have any number of them. */
static bool lanes_are_alike(const struct ir_fn *fn)
{
    for (uint32_t k = 0; k < fn->instr_count; k++)
        if (tells_lanes_apart(&fn->instrs[k]))
            return false;
    return true;
}

unsigned jit_choose_lanes(const struct jit_gen *g)
{
    const uint32_t *ntid = g->ntid;
    bool rows = ntid[0] % 32 != 0 && ntid[0] % 16 == 0 && (ntid[1] > 1 || ntid[2] > 1);
    unsigned lanes = rows ? 16 : 32;
    if (g->options->lanes && g->options->lanes < lanes)
        lanes = GM_MAX(g->options->lanes, JIT_LANES_MIN);
    return lanes == 32 || lanes_are_alike(g->fn) ? lanes : 32;
}

/* Most of what the kernel's loops access in global memory is anywhere. */
static bool gathers(const struct jit_gen *g)
{
    unsigned anywhere = 0, all = 0;
    for (uint32_t b = 0; b < g->fn->block_count; b++) {
        const struct ir_block *block = &g->fn->blocks[b];
        if (g->a->blocks[b].priority == IR_NONE || !g->a->blocks[b].loop_depth)
            continue;
        for (uint32_t n = block->first; n < block->first + block->count; n++) {
            const struct ir_instr *i = &g->fn->instrs[n];
            if ((i->op != IR_OP_LD && i->op != IR_OP_ST) ||
                (i->space != IR_SPACE_GLOBAL && i->space != IR_SPACE_CONST &&
                 i->space != IR_SPACE_GENERIC))
                continue;
            all++;
            anywhere += g->a->instrs[n].address == IR_VARYING;
        }
    }
    return 2 * anywhere > all;
}

unsigned jit_lanes_for_access(const struct jit_gen *g)
{
    bool narrow = g->lanes == 32 && g->target->avx2 && !g->target->avx512 && gathers(g);
    return narrow && lanes_are_alike(g->fn) ? 16 : g->lanes;
}

/* How many registers of the processor a value takes. */
static unsigned registers_of(const struct jit_gen *g, LLVMTypeRef t)
{
    unsigned bytes = g->target->avx512 ? 64 : g->target->avx2 ? 32 : 16;
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return 1;
    uint64_t bits = LLVMGetVectorSize(t) * (uint64_t)jit_bit_width(LLVMGetElementType(t));
    return (unsigned)((bits / 8 + bytes - 1) / bytes);
}

/* For the instruction's result and for each operand: the most of these. */
static unsigned registers_for(const struct jit_gen *g, LLVMValueRef i)
{
    unsigned most = registers_of(g, LLVMTypeOf(i));
    for (int k = 0; k < LLVMGetNumOperands(i); k++)
        most = GM_MAX(most, registers_of(g, LLVMTypeOf(LLVMGetOperand(i, (unsigned)k))));
    return most;
}

static uint64_t length_of(const struct jit_gen *g)
{
    uint64_t n = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(g->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                n += registers_for(g, i);
    return n;
}

unsigned jit_fewer_lanes(const struct jit_gen *g)
{
    unsigned lanes = g->lanes;
    uint64_t n = g->frame_over ? 2 * LENGTH_MAX : length_of(g);
    for (; n > LENGTH_MAX && lanes > JIT_LANES_MIN && lanes_are_alike(g->fn); n /= 2)
        lanes /= 2;
    return lanes;
}
