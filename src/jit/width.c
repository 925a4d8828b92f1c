/*
 * How many lanes the code treats as a warp: 32, as the hardware does, or fewer. Only instructions
 * that look at other lanes, or at a lane's number, can tell the difference, and threads that count
 * on their warp going in step (step.c).
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
 * Loops that access memory anywhere have 16 lanes: 32 addresses are four or eight registers, and
 * each lane is loaded by itself or by a gather, so 16 are enough.
 *
 * With AVX2 32 values are four of sixteen registers. A loop whose values do not fit into them
 * spends its time on loads and stores of the stack: it has half the lanes, or a quarter. Where
 * loops access memory side by side it is the other way round, as each access has a check of its
 * own.
 */
#include "jit/gen.h"
#include "jit/target.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "device/soft/ir/clones.h"

/* Instructions for registers, more than which take LLVM over a second. */
#define LENGTH_MAX 14000u
/* LLVM's optimiser leaves at least one of so many instructions, not counting those for our
 * variables: 0.30 of one kernel in 204, of large ones 0.67 and more. */
#define SHORTENED       4u
#define SHORTENED_LARGE 2u

/* AVX2 has so many. */
#define REGISTERS      16u
#define REGISTER_BYTES 32u
/* A loop with so many instructions for each access is bound by them, and not by memory. */
#define WORK_MIN 8u

/* Nothing tells one lane of a warp from another: the code may have any number of them. */
static bool lanes_are_alike(const struct ir_fn *fn)
{
    for (uint32_t k = 0; k < fn->instr_count; k++)
        if (ir_sees_lanes(&fn->instrs[k]))
            return false;
    return !jit_goes_in_step(fn);
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

/* Bytes of a register in each lane, where it is a vector. */
static unsigned bytes_of(const struct jit_gen *g, uint32_t reg)
{
    enum ir_type t = (enum ir_type)g->fn->regs[reg].type;
    return jit_shape(g, reg) == IR_VARYING && t != IR_PRED ? (unsigned)ir_types[t].size : 0;
}

/* Counts a register that is live from here on (backwards), if it was not. */
static unsigned begin_life(const struct jit_gen *g, bool *live, uint32_t reg)
{
    if (reg == IR_NONE || live[reg])
        return 0;
    live[reg] = true;
    return bytes_of(g, reg);
}

/* The most that is live at once in a block, in bytes of each lane. */
static unsigned most_live(const struct jit_gen *g, uint32_t b, bool *live)
{
    const struct ir_block *block = &g->fn->blocks[b];
    unsigned now = 0, most;
    for (uint32_t reg = 0; reg < g->fn->reg_count; reg++) {
        live[reg] = ir_live_out(g->a, b, reg);
        now += live[reg] ? bytes_of(g, reg) : 0;
    }
    most = now;
    for (uint32_t n = block->first + block->count; n-- > block->first;) {
        const struct ir_instr *i = &g->fn->instrs[n];
        for (unsigned d = 0; d < i->dst_count; d++)
            if (i->dst[d] != IR_NONE && live[i->dst[d]] && i->guard == IR_NONE) {
                live[i->dst[d]] = false;
                now -= bytes_of(g, i->dst[d]);
            }
        now += begin_life(g, live, i->address.base);
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_REG)
                now += begin_life(g, live, i->src[k].index);
        most = GM_MAX(most, now);
    }
    return most;
}

/* What the kernel's loops do. */
struct loops {
    unsigned accesses, anywhere; /* loads and stores of what lanes do not share; of global memory,
                                    of them at addresses in no order */
    unsigned global;             /* all loads and stores of global memory */
    unsigned work;               /* other instructions on vectors */
    unsigned live;               /* the most that is live at once, in bytes of each lane */
};

static void look_at_instr(const struct jit_gen *g, uint32_t n, struct loops *l)
{
    const struct ir_instr *i = &g->fn->instrs[n];
    const struct ir_instr_info *info = &g->a->instrs[n];
    if (i->op != IR_OP_LD && i->op != IR_OP_ST) {
        l->work += i->dst_count && i->dst[0] != IR_NONE && bytes_of(g, i->dst[0]);
        return;
    }
    l->accesses += i->space != IR_SPACE_PARAM && info->address != IR_UNIFORM;
    if (i->space == IR_SPACE_GLOBAL || i->space == IR_SPACE_CONST || i->space == IR_SPACE_GENERIC) {
        l->global++;
        l->anywhere += info->address == IR_VARYING;
    }
}

static struct loops look_at_loops(const struct jit_gen *g)
{
    struct loops l = { 0 };
    GM_AUTO_FREE bool *live = calloc(g->fn->reg_count + 1u, sizeof(*live));
    for (uint32_t b = 0; live && b < g->fn->block_count; b++) {
        const struct ir_block *block = &g->fn->blocks[b];
        if (g->a->blocks[b].priority == IR_NONE || !g->a->blocks[b].loop_depth)
            continue;
        l.live = GM_MAX(l.live, most_live(g, b, live));
        for (uint32_t n = block->first; n < block->first + block->count; n++)
            look_at_instr(g, n, &l);
    }
    return l;
}

/* No two lanes store to one place by one instruction: whose value stays there depends on how many
 * lanes store at once (device/soft/ir/lanes.h). */
static bool stores_lie_apart(struct jit_gen *g)
{
    for (uint32_t n = 0; n < g->fn->instr_count; n++) {
        const struct ir_instr *i = &g->fn->instrs[n];
        g->at_instr = n;
        if (i->op == IR_OP_ST && jit_store_turn(g, i->src_count * (unsigned)ir_types[i->type].size))
            return false;
    }
    return true;
}

unsigned jit_lanes_for_loops(struct jit_gen *g)
{
    unsigned lanes = g->lanes;
    if (lanes < 32 || !g->target->avx2 || !lanes_are_alike(g->fn) || !stores_lie_apart(g))
        return lanes;
    struct loops l = look_at_loops(g);
    if (2 * l.anywhere > l.global)
        return 16;
    if (g->target->avx512)
        return lanes;
    while (l.work >= WORK_MIN * l.accesses && lanes > JIT_LANES_MIN &&
           l.live * lanes > REGISTERS * REGISTER_BYTES)
        lanes /= 2;
    return lanes;
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

static bool is_slot(LLVMValueRef v)
{
    return LLVMIsAAllocaInst(v) != NULL;
}

/* The instruction makes, reads or writes a variable of ours, which LLVM turns into values. */
static bool is_of_slot(LLVMValueRef i)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(i);
    return is_slot(i) || (op == LLVMLoad && is_slot(LLVMGetOperand(i, 0))) ||
           (op == LLVMStore && is_slot(LLVMGetOperand(i, 1)));
}

/* `fresh`: the module is not optimised yet. */
static uint64_t length_of(const struct jit_gen *g, bool fresh)
{
    uint64_t n = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(g->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                n += fresh && is_of_slot(i) ? 0 : registers_for(g, i);
    return n;
}

/* The lanes with which a module that has this length with g->lanes is not too long. */
static unsigned lanes_for(const struct jit_gen *g, uint64_t length)
{
    unsigned lanes = g->lanes;
    for (; length > LENGTH_MAX && lanes > JIT_LANES_MIN && lanes_are_alike(g->fn); length /= 2)
        lanes /= 2;
    return lanes;
}

unsigned jit_lanes_for_length(const struct jit_gen *g)
{
    return lanes_for(g, length_of(g, true) / (g->large ? SHORTENED_LARGE : SHORTENED));
}

unsigned jit_fewer_lanes(const struct jit_gen *g)
{
    return lanes_for(g, g->frame_over ? 2 * LENGTH_MAX : length_of(g, false));
}
