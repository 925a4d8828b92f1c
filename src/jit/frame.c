/*
 * Where a function keeps the values of registers between the blocks of the kernel.
 *
 * Mostly in slots that LLVM turns into values. A block that is entered from several sides then has
 * a phi for each register that lives there, and where lanes part, a block is entered from each one
 * that may run before it. Large kernels with many branches would have millions of such operands:
 * LLVM takes minutes and gigabytes for them, and spills most of the values in the end. And for each
 * set of lanes that waits at a block LLVM goes through all blocks behind it, to find where there
 * are phis, and so it does for each register: with thousands of either that takes as long. Such
 * kernels keep what lives from one block to another in memory, in one piece of the stack that LLVM
 * does not take apart, and are compiled with little optimisation. Where warps have turns (park.c),
 * the piece lies in the warp's save area instead: it keeps its contents from turn to turn, and a
 * turn costs no more than what runs in it.
 */
#include "jit/gen.h"

#include <string.h>

#define FRAME_ALIGN SOFT_SAVE_ALIGN

bool jit_keeps_frame(const struct jit_gen *g)
{
    return g->large && g->a->parking;
}

/* For each way from one block to another: the registers and sets of lanes that live there. */
uint64_t jit_count_operands(const struct jit_gen *g, const struct ir_region *region)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < region->blocks.count; k++) {
        uint32_t at = g->a->pool[region->blocks.first + k];
        const struct ir_block *block = &g->fn->blocks[at];
        const struct ir_list *frontier = &g->a->blocks[at].frontier;
        for (uint32_t s = 0; s < block->succ_count; s++)
            n += g->live_count[g->fn->succ[block->succ_first + s]] + frontier->count;
        for (uint32_t f = 0; f < frontier->count; f++)
            n += g->live_count[g->a->pool[frontier->first + f]] + frontier->count;
    }
    return n;
}

bool jit_is_large(const struct jit_gen *g, uint64_t operands)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < g->a->region_count && n <= operands; r++)
        n += jit_count_operands(g, &g->a->regions[r]);
    return n > operands;
}

/* Variables times the places through which LLVM follows each of them, beyond which it takes
 * seconds. */
#define PROMOTIONS_MAX 2000000u

bool jit_promotes_long(const struct jit_gen *g)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        const struct ir_list *blocks = &g->a->regions[r].blocks;
        uint64_t waits = 0;
        for (uint32_t k = 0; k < blocks->count; k++)
            waits += g->a->blocks[g->a->pool[blocks->first + k]].masked;
        n += waits * blocks->count;
    }
    /* Registers live over blocks, of which accesses make several: as many as instructions. */
    uint64_t registers = 0;
    for (uint32_t k = 0; k < g->a->live_words; k++)
        registers += (uint64_t)__builtin_popcountll(g->crosses[k]);
    n += registers * (g->fn->instr_count / g->a->region_count);
    return n > PROMOTIONS_MAX;
}

/* Blocks of more instructions than LONG are made of pieces: for each variable LLVM goes through
 * each block from its beginning to the first access, and there are as many variables as
 * instructions. */
#define LONG  1024
#define PIECE 64

void jit_go_on_in_pieces(struct jit_gen *g, uint32_t instrs, uint32_t at)
{
    if (instrs <= LONG || at % PIECE != PIECE - 1)
        return;
    LLVMBasicBlockRef piece = jit_new_block(g, "");
    LLVMBuildBr(g->b, piece);
    jit_position(g, piece);
    g->in_pieces = true;
}

void jit_find_locals(struct jit_gen *g)
{
    uint32_t words = g->a->live_words;
    memset(g->crosses, 0, words * sizeof(*g->crosses));
    for (uint32_t b = 0; b < g->a->block_count; b++)
        for (uint32_t k = 0; k < words; k++) {
            uint64_t live = g->a->live_in[(size_t)b * words + k];
            g->crosses[k] |= live;
            g->live_count[b] += (uint32_t)__builtin_popcountll(live);
        }
}

/* No block begins with the register live. */
static bool is_local(const struct jit_gen *g, uint32_t reg)
{
    return !(g->crosses[reg / 64] >> (reg % 64) & 1);
}

/* The register is always written before it is read, on every way from the function's beginning, and
 * in all lanes at once. */
static bool is_written_first(const struct jit_gen *g, uint32_t reg)
{
    uint32_t def = g->a->regs[reg].single_def;
    if (is_local(g, reg))
        return true;
    return !g->a->parking && def != IR_NONE && g->fn->instrs[def].guard == IR_NONE &&
           !g->a->instrs[def].blend && !ir_live_in(g->a, g->a->regions[g->region].start, reg);
}

/* The register may be read before it is written, and has no value when the function begins. What
 * lives into a later region comes from the save area. */
static bool is_read_first(const struct jit_gen *g, uint32_t reg)
{
    return g->region == 0 && ir_live_in(g->a, g->a->regions[0].start, reg);
}

/* A frame that is kept is cleared in the warp's first turn. The prelude goes on behind that. */
static void begin_first_turn(struct jit_gen *g)
{
    LLVMBasicBlockRef first = jit_new_block(g, "first"), behind = jit_new_block(g, "prelude");
    LLVMValueRef state = LLVMBuildLoad2(g->prelude, g->i32, LLVMGetParam(g->function, 2), "");
    LLVMBuildCondBr(g->prelude, LLVMBuildIsNull(g->prelude, state, ""), first, behind);
    LLVMPositionBuilderAtEnd(g->prelude, first);
    g->frame.first = LLVMBuildBr(g->prelude, behind);
    LLVMPositionBuilderAtEnd(g->prelude, behind);
}

void jit_clear_at_first(struct jit_gen *g, LLVMTypeRef type, uint32_t at)
{
    LLVMBuilderRef b = g->prelude, first = NULL;
    if (jit_keeps_frame(g)) {
        b = first = LLVMCreateBuilderInContext(g->context);
        LLVMPositionBuilderBefore(b, g->frame.first);
    }
    LLVMBuildStore(b, LLVMConstNull(type), jit_at_offset(g, b, g->frame.base, at));
    if (first)
        LLVMDisposeBuilder(first);
}

static void place_on_stack(struct jit_gen *g)
{
    LLVMTypeRef escape = LLVMFunctionType(g->nothing, &g->ptr, 1, 0);
    g->frame.base = LLVMBuildArrayAlloca(g->prelude, g->i8, LLVMConstInt(g->i64, 0, 0), "frame");
    LLVMSetAlignment(g->frame.base, FRAME_ALIGN);
    /* LLVM does not take the frame apart if somebody might know its address. */
    LLVMValueRef unknown =
        LLVMGetInlineAsm(escape, "", 0, "r", 1, 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMBuildCall2(g->prelude, escape, unknown, &g->frame.base, 1, "");
}

void jit_begin_frame(struct jit_gen *g)
{
    g->frame = (struct jit_frame) { 0 };
    if (!g->large && !g->chains)
        return;
    if (!jit_keeps_frame(g)) {
        place_on_stack(g);
        return;
    }
    g->frame.base = jit_at_offset(g, g->prelude, LLVMGetParam(g->function, 2), g->save_bytes);
    begin_first_turn(g);
}

/* Computes the address again at each use in another block, where it is a part of the access.
 * Otherwise thousands of addresses are computed at the beginning, and spilled. */
static void move_to_uses(struct jit_gen *g, LLVMValueRef address)
{
    LLVMValueRef at = LLVMGetOperand(address, 1);
    LLVMUseRef next;
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = next) {
        LLVMValueRef user = LLVMGetUser(use);
        next = LLVMGetNextUse(use);
        if (LLVMGetInstructionParent(user) == LLVMGetInstructionParent(address))
            continue;
        LLVMPositionBuilderBefore(g->b, user);
        LLVMValueRef own = LLVMBuildGEP2(g->b, g->i8, g->frame.base, &at, 1, "");
        for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(user); k++)
            if (LLVMGetOperand(user, k) == address)
                LLVMSetOperand(user, k, own);
    }
}

static void move_addresses(struct jit_gen *g)
{
    LLVMUseRef next;
    for (LLVMUseRef use = LLVMGetFirstUse(g->frame.base); use; use = next) {
        LLVMValueRef address = LLVMGetUser(use);
        next = LLVMGetNextUse(use);
        if (LLVMIsAGetElementPtrInst(address) && LLVMIsAConstantInt(LLVMGetOperand(address, 1)))
            move_to_uses(g, address);
    }
}

void jit_finish_frame(struct jit_gen *g)
{
    if (!g->frame.base)
        return;
    if (!g->failed)
        move_addresses(g);
    uint32_t bytes = (g->frame.bytes + FRAME_ALIGN - 1) & ~(FRAME_ALIGN - 1);
    if (jit_keeps_frame(g))
        g->save_bytes += bytes;
    else
        LLVMSetOperand(g->frame.base, 0, LLVMConstInt(g->i64, bytes, 0));
    g->frame_over |= bytes > g->frame_max;
    if (bytes > g->frame_max)
        jit_unsupported(g, "stack frame size (%u) exceeds limit (%u)", bytes, g->frame_max);
}

uint32_t jit_place_array(struct jit_gen *g, uint32_t size, uint32_t count)
{
    uint32_t at = (g->frame.bytes + size - 1) / size * size;
    g->frame.bytes = at + size * count;
    return at;
}

LLVMValueRef jit_lanes_slot(struct jit_gen *g)
{
    if (!g->large)
        return jit_alloca(g, g->i32, "");
    return jit_at_offset(g, g->prelude, g->frame.base, jit_place_array(g, 4, 1));
}

LLVMValueRef jit_register_slot(struct jit_gen *g, uint32_t reg, LLVMTypeRef type)
{
    bool vec = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMTypeRef element = vec ? LLVMGetElementType(type) : type;
    if (g->large && is_local(g, reg))
        return jit_alloca(g, type, ""); /* it is always written before it is read */
    if (!g->large) {
        LLVMValueRef slot = jit_alloca(g, type, "");
        /* Clears it also where its value does not matter: else LLVM would follow it through all
         * blocks. */
        if (!is_written_first(g, reg))
            LLVMBuildStore(g->prelude, LLVMConstNull(type), slot);
        return slot;
    }
    uint32_t size = (uint32_t)ir_types[g->fn->regs[reg].type].size * (vec ? g->lanes : 1);
    uint32_t at = jit_place_array(g, element == g->i1 ? 4 : size, 1);
    if (is_read_first(g, reg))
        jit_clear_at_first(g, type, at);
    return jit_at_offset(g, g->prelude, g->frame.base, at);
}
