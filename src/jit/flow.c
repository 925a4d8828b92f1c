/*
 * Control flow: blocks, branches and waiting sets (thread frontiers), barriers, and the dispatch of
 * instructions.
 */
#include <stdlib.h>

#include <string.h>

#include "jit/gen.h"

/* How many candidates a block of a large kernel tests itself. */
#define TESTS_MAX 4u

static LLVMValueRef zero32(const struct jit_gen *g)
{
    return LLVMConstInt(g->i32, 0, 0);
}

static const struct ir_block_info *info(const struct jit_gen *g, uint32_t block)
{
    return &g->a->blocks[block];
}

static LLVMValueRef load_alive(struct jit_gen *g)
{
    return LLVMBuildLoad2(g->b, g->i32, g->alive, "");
}

static void remove_alive(struct jit_gen *g, LLVMValueRef lanes)
{
    LLVMBuildStore(g->b, LLVMBuildAnd(g->b, load_alive(g), LLVMBuildNot(g->b, lanes, ""), ""),
                   g->alive);
}

/* Puts the block into its place among those in order of priority. */
static void add_candidate(const struct jit_gen *g, uint32_t *list, uint32_t *count, uint32_t block)
{
    uint32_t at = 0;
    while (at < *count && info(g, list[at])->priority < info(g, block)->priority)
        at++;
    if (at < *count && list[at] == block)
        return;
    memmove(list + at + 1, list + at, (*count - at) * sizeof(*list));
    list[at] = block;
    ++*count;
}

/* All living lanes go to one of the block's versions: to the one for all lanes, if all lanes live.
 * `full`: it is known that they do. */
static void choose_version(struct jit_gen *g, uint32_t block, bool full)
{
    if (g->has_whole && full) {
        LLVMBuildBr(g->b, g->whole_entry[block]);
        return;
    }
    LLVMValueRef lanes = load_alive(g);
    if (g->has_whole) {
        LLVMBasicBlockRef some = jit_new_block(g, "some");
        LLVMBuildCondBr(g->b, jit_is_full(g, lanes), g->whole_entry[block], some);
        jit_position(g, some);
    }
    if (jit_has_mask(g, block))
        jit_store_waiting(g, block, lanes);
    LLVMBuildBr(g->b, g->entry[block]);
}

void jit_enter(struct jit_gen *g, uint32_t block)
{
    choose_version(g, block, g->full[g->region].begins);
}

/* A block with a mask keeps it until its loop is left, since LLVM does not optimise a loop with two
 * ways in. */
LLVMBasicBlockRef jit_waiting_entry(struct jit_gen *g, uint32_t block)
{
    if (!g->has_whole || jit_has_mask(g, block))
        return g->entry[block];
    if (!g->join[block]) {
        LLVMBasicBlockRef kept = LLVMGetInsertBlock(g->b);
        g->join[block] = jit_new_block(g, "join");
        jit_position(g, g->join[block]);
        jit_store_waiting(g, block, zero32(g));
        choose_version(g, block, g->full[g->region].stays);
        jit_position(g, kept);
    }
    return g->join[block];
}

/* Runs the first block in order of priority, of the current block's frontier and `successors`,
 * where lanes wait. `may_be_none`: perhaps nobody is left. */
static void dispatch(struct jit_gen *g, const uint32_t *successors, uint32_t successor_count,
                     bool may_be_none)
{
    const struct ir_list *f = &info(g, g->at_block)->frontier;
    uint32_t *list = calloc(f->count + successor_count + 1, sizeof(*list));
    uint32_t count = 0;
    if (!list) {
        jit_unsupported(g, "out of memory");
        LLVMBuildUnreachable(g->b);
        return;
    }
    if (!g->whole) {
        memcpy(list, g->a->pool + f->first, f->count * sizeof(*list));
        count = f->count;
    }
    for (uint32_t k = 0; k < successor_count; k++) {
        bool parks = ir_parks(g->a, g->at_block, successors[k]);
        may_be_none |= parks;
        if (!parks || jit_is_patient(g, successors[k]))
            add_candidate(g, list, &count, successors[k]);
    }
    jit_say_empty(g, list, count);
    for (uint32_t k = 0; k < count; k++) {
        if (!g->entry[list[k]]) {
            jit_unsupported(g, "control flow over a barrier");
            break;
        }
        if (k + 1 == count && !may_be_none) {
            LLVMBuildBr(g->b, jit_waiting_entry(g, list[k]));
            free(list);
            return;
        }
        if (g->chains && g->chain[list[k]] && k >= (g->large ? TESTS_MAX : 0)) {
            LLVMBuildBr(g->b, g->chain[list[k]]);
            free(list);
            return;
        }
        LLVMBasicBlockRef next = jit_new_block(g, "");
        LLVMValueRef lanes = jit_load_waiting(g, list[k]);
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, lanes, zero32(g), ""),
                        jit_waiting_entry(g, list[k]), next);
        jit_position(g, next);
    }
    LLVMBuildBr(g->b, g->done);
    free(list);
}

/* All lanes of the block go to `to`. */
static void go_to(struct jit_gen *g, uint32_t to)
{
    if (!g->entry[to]) {
        jit_unsupported(g, "control flow over a barrier");
        LLVMBuildUnreachable(g->b);
        return;
    }
    if (g->whole) {
        LLVMBuildBr(g->b, g->whole_entry[to]);
        return;
    }
    if (!g->masked && !jit_has_mask(g, to) && !ir_parks(g->a, g->at_block, to)) {
        LLVMBuildBr(g->b, g->entry[to]);
        return;
    }
    jit_add_waiting(g, to, g->mask, true);
    dispatch(g, &to, 1, false);
}

/* The lanes in `lanes` leave the kernel, the others of the block go to `to` (IR_NONE: there are no
 * others). */
static void leave(struct jit_gen *g, LLVMValueRef lanes, uint32_t to)
{
    if (!g->masked && to == IR_NONE && !g->a->parking) {
        LLVMBuildBr(g->b, g->done);
        return;
    }
    remove_alive(g, lanes);
    if (to == IR_NONE) {
        dispatch(g, NULL, 0, true);
        return;
    }
    if (!g->entry[to]) {
        jit_unsupported(g, "control flow over a barrier");
        LLVMBuildUnreachable(g->b);
        return;
    }
    LLVMValueRef rest = LLVMBuildAnd(g->b, g->mask, LLVMBuildNot(g->b, lanes, ""), "");
    if (g->whole && !jit_has_mask(g, to) &&
        g->i->op != IR_OP_BRA) { /* a guarded return, whose guard was not tested yet */
        LLVMBasicBlockRef some = jit_new_block(g, "");
        LLVMBuildCondBr(g->b, jit_is_full(g, rest), g->whole_entry[to], some);
        jit_position(g, some);
    }
    if (!g->masked && !jit_has_mask(g, to) && !ir_parks(g->a, g->at_block, to)) {
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, rest, zero32(g), ""), g->entry[to],
                        g->done);
        return;
    }
    jit_add_waiting(g, to, rest, true);
    dispatch(g, &to, 1, true);
}

/* Lanes of the block where the guard holds. */
static LLVMValueRef taken_lanes(struct jit_gen *g)
{
    return LLVMBuildAnd(g->b, g->mask, jit_bits(g, jit_as_vec(g, g->guard)), "");
}

/* In the version for all lanes: if all lanes agree on the branch, they stay in this version. What
 * leaves the kernel is asked for last, as most threads of most kernels have work to do. The builder
 * goes on where lanes do not agree. */
static void branch_together(struct jit_gen *g, LLVMValueRef taken, LLVMBasicBlockRef target,
                            LLVMBasicBlockRef next)
{
    uint32_t guard = g->i->guard;
    struct jit_agree a = g->w->regs[guard].agree;
    if (!a.all) {
        a.all = jit_is_full(g, taken);
        a.none = LLVMBuildICmp(g->b, LLVMIntEQ, taken, zero32(g), "");
    } else if (g->i->flags & IR_F_GUARD_NOT) {
        a = (struct jit_agree) { a.none, a.all };
    }
    bool turned = target == g->done;
    LLVMBasicBlockRef some = jit_new_block(g, ""), apart = jit_new_block(g, "apart");
    LLVMBuildCondBr(g->b, turned ? a.none : a.all, turned ? next : target, some);
    jit_position(g, some);
    LLVMBuildCondBr(g->b, turned ? a.all : a.none, turned ? target : next, apart);
    jit_position(g, apart);
}

/* Branches on a scalar condition. Returns the block where it holds; the builder goes on where it
 * does not. */
static LLVMBasicBlockRef split(struct jit_gen *g, LLVMValueRef cond)
{
    LLVMBasicBlockRef yes = jit_new_block(g, ""), no = jit_new_block(g, "");
    LLVMBuildCondBr(g->b, cond, yes, no);
    jit_position(g, no);
    return yes;
}

static void emit_branch(struct jit_gen *g, uint32_t target, uint32_t next)
{
    const struct ir_block_info *b = info(g, g->at_block);
    if (!g->guard || target == next) {
        go_to(g, target);
        return;
    }
    if (!jit_is_vec(g->guard)) {
        /* The side that only returns need not exist as a block. */
        LLVMBasicBlockRef yes = split(g, g->guard);
        if (b->early_exit && !b->exit_taken)
            leave(g, g->mask, IR_NONE);
        else
            go_to(g, next);
        jit_position(g, yes);
        if (b->early_exit && b->exit_taken)
            leave(g, g->mask, IR_NONE);
        else
            go_to(g, target);
        return;
    }
    LLVMValueRef taken = taken_lanes(g);
    LLVMValueRef other = LLVMBuildAnd(g->b, g->mask, LLVMBuildNot(g->b, taken, ""), "");
    bool target_leaves = b->early_exit && b->exit_taken,
         next_leaves = b->early_exit && !b->exit_taken;
    if ((!target_leaves && !g->entry[target]) || (!next_leaves && !g->entry[next])) {
        jit_unsupported(g, "control flow over a barrier");
        LLVMBuildUnreachable(g->b);
        return;
    }
    if (g->whole)
        branch_together(g, taken, target_leaves ? g->done : g->whole_entry[target],
                        next_leaves ? g->done : g->whole_entry[next]);
    if (b->early_exit) {
        leave(g, target_leaves ? taken : other, target_leaves ? next : target);
        return;
    }
    uint32_t both[] = { target, next };
    jit_add_waiting(g, target, taken, true);
    jit_add_waiting(g, next, other, true);
    dispatch(g, both, 2, false);
}

static void emit_return(struct jit_gen *g, uint32_t next)
{
    if (!g->guard) {
        leave(g, g->mask, IR_NONE);
    } else if (!jit_is_vec(g->guard)) {
        LLVMBasicBlockRef yes = split(g, g->guard);
        go_to(g, next);
        jit_position(g, yes);
        leave(g, g->mask, IR_NONE);
    } else {
        leave(g, taken_lanes(g), next);
    }
}

static bool is_among(const uint32_t *list, uint32_t count, uint32_t block)
{
    while (count > 0 && list[count - 1] != block)
        count--;
    return count > 0;
}

/* brx.idx on which lanes disagree. An index outside of the list is undefined in PTX and takes the
 * last target here, as in the interpreter. */
static void emit_divergent_switch(struct jit_gen *g, const uint32_t *succ, uint32_t count)
{
    LLVMValueRef index = jit_src(g, &g->i->src[0], IR_U32, true), left = g->mask;
    for (uint32_t k = 0; k < count; k++) {
        LLVMValueRef here = left;
        if (k + 1 < count) {
            LLVMValueRef same = LLVMBuildICmp(g->b, LLVMIntEQ, index, jit_const(g, index, k), "");
            here = LLVMBuildAnd(g->b, left, jit_bits(g, same), "");
            left = LLVMBuildAnd(g->b, left, LLVMBuildNot(g->b, here, ""), "");
        }
        jit_add_waiting(g, succ[k], here, !is_among(succ, k, succ[k]));
    }
    dispatch(g, succ, count, false);
}

static void emit_indexed_branch(struct jit_gen *g, const struct ir_block *block)
{
    const uint32_t *succ = g->fn->succ + block->succ_first;
    uint32_t count = block->succ_count;
    for (uint32_t k = 0; k < count; k++)
        if (!g->entry[succ[k]])
            jit_unsupported(g, "control flow over a barrier");
    if (g->guard || count == 0)
        jit_unsupported(g, "guarded brx.idx");
    if (g->failed) {
        LLVMBuildUnreachable(g->b);
        return;
    }
    if (jit_src_varies(g, &g->i->src[0])) {
        emit_divergent_switch(g, succ, count);
        return;
    }
    LLVMBasicBlockRef last = jit_new_block(g, "");
    LLVMValueRef s = LLVMBuildSwitch(g->b, jit_src(g, &g->i->src[0], IR_U32, false), last, count);
    jit_position(g, last);
    go_to(g, succ[count - 1]);
    for (uint32_t k = 0; k + 1 < count; k++) {
        LLVMBasicBlockRef at = jit_new_block(g, "");
        LLVMAddCase(s, LLVMConstInt(g->i32, k, 0), at);
        jit_position(g, at);
        go_to(g, succ[k]);
    }
}

/* Emits an instruction that touches memory or leaves the kernel, and a branch around it for when
 * the guard holds for no lane. */
static void emit_effect(struct jit_gen *g, void (*emit)(struct jit_gen *g))
{
    if (!g->guard) {
        emit(g);
        return;
    }
    LLVMBasicBlockRef yes = jit_new_block(g, ""), join = jit_new_block(g, "");
    LLVMValueRef guard = g->guard, some = guard;
    if (jit_is_vec(guard))
        some = LLVMBuildICmp(g->b, LLVMIntNE, jit_active(g), zero32(g), "");
    LLVMBuildCondBr(g->b, some, yes, join);
    jit_position(g, yes);
    if (!jit_is_vec(guard))
        g->guard = NULL;
    emit(g);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
    g->guard = guard;
}

static void emit_fence(struct jit_gen *g)
{
    LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, 0, "");
}

static void emit_instr(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    switch (i->op) {
    case IR_OP_LD:
    case IR_OP_LDU:
        emit_effect(g, jit_emit_load);
        return;
    case IR_OP_ST:
        emit_effect(g, jit_emit_store);
        return;
    case IR_OP_ATOM:
    case IR_OP_RED:
        emit_effect(g, jit_emit_atomic);
        return;
    case IR_OP_HELPER:
        emit_effect(g, jit_emit_helper);
        return;
    case IR_OP_TEX:
        emit_effect(g, jit_emit_texture);
        return;
    case IR_OP_TRAP:
        emit_effect(g, jit_emit_trap);
        return;
    case IR_OP_MEMBAR:
    case IR_OP_FENCE:
        emit_fence(g);
        return;
    case IR_OP_BARWARP:
        return; /* nothing to do: lanes are together wherever PTX allows this instruction */
    case IR_OP_SETP:
    case IR_OP_SET:
        jit_emit_compare(g);
        break;
    case IR_OP_CVT:
        jit_emit_convert(g);
        break;
    default:
        if (!jit_emit_real(g) && !jit_emit_integer(g) && !jit_emit_bits(g) && !jit_emit_cross(g))
            jit_leave(g);
    }
    if (g->called) {
        g->called = false;
        jit_emit_called(g);
    }
    jit_note_agreement(g);
}

void jit_emit_instr(struct jit_gen *g)
{
    if (ir_ops[g->i->op].properties & IR_P_NOP)
        return;
    if (g->i->dst_count == 1 && g->i->dst[0] != IR_NONE && jit_may_wrap(g, g->i->dst[0]))
        jit_emit_affine(g, emit_instr);
    else
        emit_instr(g);
}

static void load_guard(struct jit_gen *g)
{
    g->guard = NULL;
    if (g->i->guard == IR_NONE)
        return;
    g->guard = jit_get(g, g->i->guard);
    if (g->i->flags & IR_F_GUARD_NOT)
        g->guard = LLVMBuildNot(g->b, g->guard, "");
}

static void emit_terminator(struct jit_gen *g, const struct ir_block *block)
{
    const uint32_t first = ir_successor(g->fn, g->at_block, 0);
    switch (g->i->op) {
    case IR_OP_BRA:
        emit_branch(g, first, block->succ_count > 1 ? ir_successor(g->fn, g->at_block, 1) : first);
        return;
    case IR_OP_BRX:
        emit_indexed_branch(g, block);
        return;
    case IR_OP_RET:
    case IR_OP_EXIT:
        emit_return(g, first);
        return;
    default:
        go_to(g, first);
        return;
    }
}

/* Instruction `n` of the block. False: it was the last, and leaves the block. */
static bool emit_nth(struct jit_gen *g, const struct ir_block *block, uint32_t n)
{
    g->at_instr = block->first + n;
    g->i = &g->fn->instrs[g->at_instr];
    load_guard(g);
    bool last = n + 1 == block->count;
    if (last && ir_is_barrier(g->i) && g->a->parking)
        go_to(g, g->fn->succ[block->succ_first]);
    else if (last && ir_is_barrier(g->i))
        jit_emit_barrier(g);
    else if (last && (ir_ops[g->i->op].properties & IR_P_TERMINATOR))
        emit_terminator(g, block);
    else if (g->i->op == IR_OP_BAR)
        jit_unsupported(g, "bar.arrive");
    else
        jit_emit_instr(g);
    return !last || !(ir_is_barrier(g->i) || (ir_ops[g->i->op].properties & IR_P_TERMINATOR));
}

static void emit_end_of_block(struct jit_gen *g, const struct ir_block *block)
{
    if (!g->failed)
        go_to(g, g->fn->succ[block->succ_first]);
    else
        LLVMBuildUnreachable(g->b);
}

/* Emits instructions from place `at` on; an instruction has a place for each of the warps. The
 * instruction that leaves the block is emitted once. */
static void emit_instrs(struct jit_gen *g, const struct ir_block *block, uint32_t at)
{
    uint32_t copies = jit_copies(g);
    bool goes_on = true;
    for (; at < block->count * copies && !g->failed && goes_on; at++) {
        g->w = &g->warps[at % copies];
        if (g->checks_all && g->other[at]) { /* lanes from the first version come in here */
            LLVMBuildBr(g->b, g->other[at]);
            jit_position(g, g->other[at]);
            jit_forget(g, block);
        }
        jit_go_on_in_pieces(g, block->count, at);
        goes_on = emit_nth(g, block, at / copies);
    }
    g->w = &g->warps[0];
    if (goes_on)
        emit_end_of_block(g, block);
}

/* The second version, from the first check of a hull on (hull.c). */
static void emit_other(struct jit_gen *g, const struct ir_block *block)
{
    uint32_t at = 0, end = block->count * jit_copies(g);
    while (at < end && !g->other[at])
        at++;
    if (at < end && !g->failed) {
        jit_position(g, g->other[at]);
        g->other[at] = NULL;
        jit_forget(g, block);
        g->checks_all = true;
        emit_instrs(g, block, at);
        g->checks_all = false;
    }
    memset(g->other, 0, end * sizeof(*g->other));
}

/* Lanes that have to wait for others in front of the block's first instruction are parked. */
static void emit_gathering(struct jit_gen *g, const struct ir_block *block)
{
    g->at_instr = block->first;
    g->i = &g->fn->instrs[block->first];
    load_guard(g);
    g->mask = jit_gather(g, g->mask);
    LLVMBasicBlockRef some = jit_new_block(g, ""), none = jit_new_block(g, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, g->mask, zero32(g), ""), some, none);
    jit_position(g, none);
    dispatch(g, NULL, 0, true);
    jit_position(g, some);
}

static void emit_block(struct jit_gen *g, uint32_t b)
{
    const struct ir_block *block = &g->fn->blocks[b];
    g->at_block = b;
    g->masked = jit_has_mask(g, b) && !g->whole;
    if (g->whole) {
        jit_position(g, g->whole_entry[b]);
        g->mask = jit_all_lanes(g);
    } else {
        jit_position(g, g->entry[b]);
        g->mask = g->masked ? jit_load_waiting(g, b) : load_alive(g);
        if (!g->chains || g->waits[b])
            jit_store_waiting(g, b, zero32(g));
    }
    jit_forget(g, block);
    if (g->masked && info(g, b)->meets)
        emit_gathering(g, block);
    emit_instrs(g, block, 0);
    emit_other(g, block);
}

/* Emits what is in use by now of one of the blocks' versions. False: there was nothing. */
static bool emit_used(struct jit_gen *g, const struct ir_list *blocks, bool whole)
{
    LLVMBasicBlockRef *entry = whole ? g->whole_entry : g->entry;
    bool any = false;
    for (uint32_t k = 0; k < blocks->count && !g->failed; k++) {
        uint32_t b = g->a->pool[blocks->first + k];
        if (LLVMGetBasicBlockTerminator(entry[b]) ||
            !LLVMGetFirstUse(LLVMBasicBlockAsValue(entry[b])))
            continue;
        g->whole = whole;
        emit_block(g, b);
        g->whole = false;
        any = true;
    }
    return any;
}

static void remove_unused(const struct jit_gen *g, const struct ir_list *blocks,
                          const LLVMBasicBlockRef *entry)
{
    for (uint32_t k = 0; k < blocks->count; k++)
        if (!LLVMGetBasicBlockTerminator(entry[g->a->pool[blocks->first + k]]))
            LLVMDeleteBasicBlock(entry[g->a->pool[blocks->first + k]]);
}

void jit_emit_blocks(struct jit_gen *g)
{
    const struct ir_list *blocks = &g->a->regions[g->region].blocks;
    while ((g->has_whole && emit_used(g, blocks, true)) || emit_used(g, blocks, false))
        ;
    if (g->failed)
        return;
    remove_unused(g, blocks, g->entry);
    if (g->has_whole)
        remove_unused(g, blocks, g->whole_entry);
}
