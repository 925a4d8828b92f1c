/*
 * The function that runs a thread block: loops over its warps, which call the functions of the
 * barrier regions.
 *
 * Without barriers each warp runs to its end. With barriers there are phases: in each, every warp
 * runs one region, up to the next barrier or its end. Warps nearly always take the same way; then a
 * region has one loop over all of them.
 */
#include "jit/gen.h"

#include <stdlib.h>
#include <string.h>

#include "device/soft/exec/helpers.h"

/* More regions have no loops of their own. */
#define REGIONS_MAX 200u

/* Head of a warp's save area. */
#define SAVE_NEXT  0 /* i32: region to run next, or JIT_DONE */
#define SAVE_ALIVE JIT_SAVE_ALIVE

/* State of the wrapper while it is emitted. */
struct wrapper {
    LLVMValueRef f, block, threads, warps, save, stride, ctaid_x;
    LLVMBasicBlockRef fault; /* returns the outcome in `result` */
    LLVMValueRef result;     /* alloca i32: what a region returned */
};

static LLVMValueRef lanes_of_warp(struct jit_gen *g, const struct wrapper *w, LLVMValueRef first)
{
    if (g->full_warps)
        return jit_all_lanes(g);
    LLVMValueRef left = LLVMBuildSub(g->b, w->threads, first, "");
    LLVMValueRef full =
        LLVMBuildICmp(g->b, LLVMIntUGE, left, LLVMConstInt(g->i32, g->lanes, 0), "");
    LLVMValueRef one = LLVMConstInt(g->i32, 1, 0);
    left = LLVMBuildAnd(g->b, left, LLVMConstInt(g->i32, 31, 0), "");
    LLVMValueRef some = LLVMBuildSub(g->b, LLVMBuildShl(g->b, one, left, ""), one, "");
    return LLVMBuildSelect(g->b, full, jit_all_lanes(g), some, "");
}

static LLVMValueRef save_of_warp(struct jit_gen *g, const struct wrapper *w, LLVMValueRef warp)
{
    LLVMValueRef at = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, warp, g->i64, ""), w->stride, "");
    return LLVMBuildGEP2(g->b, g->i8, w->save, &at, 1, "");
}

/* The warp's number; LLVM sees from it how large it can be. */
static LLVMValueRef bounded(struct jit_gen *g, LLVMValueRef warp)
{
    uint32_t mask = 1;
    if (!g->threads)
        return warp;
    while (mask * g->lanes < g->threads)
        mask *= 2;
    return LLVMBuildAnd(g->b, warp, LLVMConstInt(g->i32, mask - 1, 0), "");
}

/* The body, for at = from, from + 1 .. upto - 1, is emitted between begin and end. It runs at least
 * once, so its only branch is behind it. */
struct loop {
    LLVMBasicBlockRef body; /* NULL: it runs once */
    LLVMValueRef counter, at, upto;
};

static struct loop loop_begin(struct jit_gen *g, LLVMValueRef from, LLVMValueRef upto)
{
    struct loop l = { .upto = upto };
    l.counter = jit_alloca(g, g->i32, "");
    LLVMBuildStore(g->b, from, l.counter);
    l.body = jit_new_block(g, "body");
    LLVMBuildBr(g->b, l.body);
    jit_position(g, l.body);
    l.at = LLVMBuildLoad2(g->b, g->i32, l.counter, "at");
    return l;
}

/* A loop of `count` rounds; loop.at is `from` and what follows. */
static struct loop repeat_begin(struct jit_gen *g, LLVMValueRef from, LLVMValueRef count)
{
    if (count == LLVMConstInt(g->i32, 1, 0))
        return (struct loop) { .at = from };
    return loop_begin(g, from, LLVMBuildAdd(g->b, from, count, ""));
}

static void loop_end(struct jit_gen *g, const struct loop *l)
{
    if (!l->body)
        return;
    LLVMBasicBlockRef exit = jit_new_block(g, "exit");
    LLVMValueRef next = LLVMBuildAdd(g->b, l->at, LLVMConstInt(g->i32, 1, 0), "");
    LLVMBuildStore(g->b, next, l->counter);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, next, l->upto, ""), l->body, exit);
    jit_position(g, exit);
}

static LLVMValueRef first_of_warp(struct jit_gen *g, LLVMValueRef warp)
{
    return LLVMBuildMul(g->b, bounded(g, warp), LLVMConstInt(g->i32, g->lanes, 0), "first");
}

/* Notes whose threads run now, in case one of them faults. Atomic, so that LLVM writes it here. */
static void note_block(struct jit_gen *g, const struct wrapper *w, LLVMValueRef x)
{
    LLVMValueRef at = jit_at_offset(g, g->b, w->block, offsetof(struct soft_block, ctaid));
    LLVMValueRef store = LLVMBuildStore(g->b, x, at);
    LLVMSetAlignment(store, 4);
    LLVMSetOrdering(store, LLVMAtomicOrderingMonotonic);
}

/* Without barriers: every warp to its end, of each of the blocks (row.c). */
static void emit_simple_block(struct jit_gen *g, struct wrapper *w)
{
    LLVMValueRef one = LLVMConstInt(g->i32, 1, 0), lines = LLVMConstInt(g->i32, g->row.lines, 0);
    LLVMValueRef blocks = one, warps = LLVMBuildUDiv(g->b, w->warps, lines, "");
    if (g->row.blocks)
        blocks =
            jit_call2(g, "llvm.umax", jit_field(g, offsetof(struct soft_block, row), g->i32), one);
    struct loop line = repeat_begin(g, LLVMConstInt(g->i32, 0, 0), lines);
    struct loop block = repeat_begin(g, w->ctaid_x, blocks);
    if (g->row.blocks)
        note_block(g, w, block.at);
    struct loop warp = repeat_begin(g, LLVMBuildMul(g->b, line.at, warps, ""), warps);
    LLVMValueRef first = first_of_warp(g, warp.at);
    LLVMValueRef args[] = { w->block, first, LLVMConstNull(g->ptr), lanes_of_warp(g, w, first),
                            block.at };
    LLVMValueRef r = LLVMBuildCall2(g->b, g->region_type, g->regions[0], args, 5, "");
    LLVMBuildStore(g->b, r, w->result);
    jit_branch_unlikely(
        g, LLVMBuildICmp(g->b, LLVMIntNE, r, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1), ""),
        w->fault);
    loop_end(g, &warp);
    loop_end(g, &block);
    loop_end(g, &line);
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, SOFT_DONE, 0));
}

/* State of a phase, in allocas. */
struct phase {
    LLVMValueRef at,
        upto; /* i32: the next warp to run; the end of those that run the same region now */
    LLVMValueRef together;        /* i1: all warps are at the same region */
    LLVMValueRef agreed;          /* i32: what warp 0 returned */
    LLVMValueRef waiting;         /* i1: some warp has a region to run in the next phase */
    LLVMBasicBlockRef group, end; /* the next warps' turn; all are done */
    LLVMBasicBlockRef *begin;     /* by region: its loop, for the warps [at, upto) */
};

bool jit_has_one_result(const struct jit_gen *g, uint32_t r, int64_t *result)
{
    const struct ir_list *blocks = &g->a->regions[r].blocks;
    bool any = false;
    for (uint32_t k = 0; k < blocks->count; k++) {
        uint32_t b = g->a->pool[blocks->first + k];
        const struct ir_block *block = &g->fn->blocks[b];
        const struct ir_instr *last = &g->fn->instrs[block->first + block->count - 1];
        bool barrier = g->a->blocks[b].barrier,
             ends = last->op == IR_OP_RET || last->op == IR_OP_EXIT;
        if (!barrier && !ends && !g->a->blocks[b].early_exit)
            continue;
        int64_t here = barrier ? (int64_t)g->a->resume[b] : JIT_DONE;
        if (any && here != *result)
            return false;
        any = true;
        *result = here;
    }
    return any;
}

/* A warp of several that may go different ways has run: what it returned is noted. */
static void note_result(struct jit_gen *g, const struct phase *p, LLVMValueRef at,
                        LLVMValueRef save, LLVMValueRef result)
{
    LLVMBuildStore(g->b, result, jit_at_offset(g, g->b, save, SAVE_NEXT));
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0),
                 is_first = LLVMBuildICmp(g->b, LLVMIntEQ, at, zero, "");
    LLVMValueRef agreed = LLVMBuildLoad2(g->b, g->i32, p->agreed, "");
    agreed = LLVMBuildSelect(g->b, is_first, result, agreed, "");
    LLVMBuildStore(g->b, agreed, p->agreed);
    LLVMValueRef together = LLVMBuildLoad2(g->b, g->i1, p->together, "");
    together = LLVMBuildAnd(g->b, together, LLVMBuildICmp(g->b, LLVMIntEQ, result, agreed, ""), "");
    LLVMBuildStore(g->b, together, p->together);
    LLVMValueRef waiting = LLVMBuildLoad2(g->b, g->i1, p->waiting, "");
    waiting = LLVMBuildOr(g->b, waiting, LLVMBuildICmp(g->b, LLVMIntSGE, result, zero, ""), "");
    LLVMBuildStore(g->b, waiting, p->waiting);
}

/* A loop whose region always has the same result has ended. If all warps ran in it, they all go on
 * together; else only the one that ran is noted. */
static void note_one_result(struct jit_gen *g, const struct wrapper *w, const struct phase *p,
                            int64_t result)
{
    LLVMBasicBlockRef all = jit_new_block(g, "all"), one = jit_new_block(g, "one");
    LLVMBuildCondBr(g->b, LLVMBuildLoad2(g->b, g->i1, p->together, ""), all, one);
    jit_position(g, all);
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, 0, 0), p->at);
    LLVMBuildBr(g->b, result < 0 ? p->end : p->begin[result]);
    jit_position(g, one);
    LLVMValueRef next = LLVMConstInt(g->i32, (uint64_t)result, 1),
                 at = LLVMBuildLoad2(g->b, g->i32, p->at, "");
    LLVMValueRef save = save_of_warp(g, w, LLVMBuildSub(g->b, at, LLVMConstInt(g->i32, 1, 0), ""));
    LLVMBuildStore(g->b, next, jit_at_offset(g, g->b, save, SAVE_NEXT));
    if (result >= 0)
        LLVMBuildStore(g->b, LLVMConstInt(g->i1, 1, 0), p->waiting);
    LLVMBuildBr(g->b, p->group);
}

/* Warps [at, upto) run region `r`, in a loop of their own: what is the same for all of them is
 * computed once. */
static void emit_region_loop(struct jit_gen *g, const struct wrapper *w, const struct phase *p,
                             uint32_t r)
{
    LLVMBasicBlockRef head = jit_new_block(g, "warps"), body = jit_new_block(g, "warp"),
                      after = p->group;
    int64_t only = JIT_DONE;
    bool one_result = jit_has_one_result(g, r, &only);
    if (one_result)
        after = jit_new_block(g, "ran");
    LLVMBuildBr(g->b, head);
    jit_position(g, head);
    LLVMValueRef at = LLVMBuildLoad2(g->b, g->i32, p->at, "");
    LLVMValueRef upto = LLVMBuildLoad2(g->b, g->i32, p->upto, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, at, upto, ""), body, after);
    jit_position(g, body);
    LLVMValueRef first = first_of_warp(g, at);
    LLVMValueRef save = save_of_warp(g, w, at);
    LLVMValueRef alive = jit_all_lanes(g);
    if (!g->full[r].begins)
        alive = LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, save, SAVE_ALIVE), "");
    LLVMValueRef args[] = { w->block, first, save, alive, w->ctaid_x };
    LLVMValueRef result = LLVMBuildCall2(g->b, g->region_type, g->regions[r], args, 5, "");
    LLVMBuildStore(g->b, result, w->result);
    jit_branch_unlikely(
        g, LLVMBuildICmp(g->b, LLVMIntSLT, result, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1), ""),
        w->fault);
    if (!one_result)
        note_result(g, p, at, save, result);
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, at, LLVMConstInt(g->i32, 1, 0), ""), p->at);
    LLVMBuildBr(g->b, head);
    if (one_result) {
        jit_position(g, after);
        note_one_result(g, w, p, only);
    }
}

/* Warp `at` runs its region, and so do all behind it while all are together; then it is the group's
 * turn again. */
static void emit_group(struct jit_gen *g, const struct wrapper *w, const struct phase *p)
{
    LLVMBasicBlockRef none = jit_new_block(g, "none");
    LLVMValueRef at = LLVMBuildLoad2(g->b, g->i32, p->at, "");
    LLVMValueRef after = LLVMBuildAdd(g->b, at, LLVMConstInt(g->i32, 1, 0), "");
    LLVMValueRef together = LLVMBuildLoad2(g->b, g->i1, p->together, "");
    LLVMBuildStore(g->b, LLVMBuildSelect(g->b, together, w->warps, after, ""), p->upto);
    LLVMValueRef next =
        LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, save_of_warp(g, w, at), SAVE_NEXT), "");
    LLVMValueRef choice = LLVMBuildSwitch(g->b, next, none, g->a->region_count);
    jit_position(g, none); /* it is done */
    LLVMBuildStore(g->b, after, p->at);
    LLVMBuildBr(g->b, p->group);
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        LLVMAddCase(choice, LLVMConstInt(g->i32, r, 0), p->begin[r]);
        jit_position(g, p->begin[r]);
        emit_region_loop(g, w, p, r);
    }
}

/* Each warp is at the first region, with all its lanes. */
static void begin_warps(struct jit_gen *g, const struct wrapper *w)
{
    struct loop l = loop_begin(g, LLVMConstInt(g->i32, 0, 0), w->warps);
    LLVMValueRef save = save_of_warp(g, w, l.at);
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, 0, 0), jit_at_offset(g, g->b, save, SAVE_NEXT));
    LLVMBuildStore(g->b, lanes_of_warp(g, w, first_of_warp(g, l.at)),
                   jit_at_offset(g, g->b, save, SAVE_ALIVE));
    loop_end(g, &l);
}

/* Warp `at` runs its region, whichever that is; `save` is its save area. */
static LLVMValueRef emit_choice(struct jit_gen *g, const struct wrapper *w, LLVMValueRef at,
                                LLVMValueRef save, LLVMValueRef region)
{
    LLVMBasicBlockRef none = jit_new_block(g, "none"), ran = jit_new_block(g, "ran");
    LLVMValueRef alive = LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, save, SAVE_ALIVE), "");
    LLVMValueRef args[] = { w->block, first_of_warp(g, at), save, alive, w->ctaid_x };
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1), w->result);
    LLVMValueRef choice = LLVMBuildSwitch(g->b, region, none, g->a->region_count);
    jit_position(g, none); /* it is done */
    LLVMBuildBr(g->b, ran);
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        LLVMBasicBlockRef here = jit_new_block(g, "region");
        LLVMAddCase(choice, LLVMConstInt(g->i32, r, 0), here);
        jit_position(g, here);
        LLVMValueRef result =
            LLVMBuildCall2(g->b, g->region_type, g->regions[r], args, GM_ARRAY_LEN(args), "");
        LLVMBuildStore(g->b, result, w->result);
        LLVMBuildBr(g->b, ran);
    }
    jit_position(g, ran);
    return LLVMBuildLoad2(g->b, g->i32, w->result, "");
}

/* With many barriers: phases, too, in each of which one loop runs every warp's region. A loop for
 * each region takes LLVM as long as the regions themselves. */
static void emit_many_regions(struct jit_gen *g, struct wrapper *w)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), no = LLVMConstInt(g->i1, 0, 0);
    LLVMValueRef waiting = jit_alloca(g, g->i1, "waiting");
    LLVMBasicBlockRef phase = jit_new_block(g, "phase"), end = jit_new_block(g, "end");
    begin_warps(g, w);
    LLVMBuildBr(g->b, phase);
    jit_position(g, phase);
    LLVMBuildStore(g->b, no, waiting);
    struct loop l = loop_begin(g, zero, w->warps);
    LLVMValueRef save = save_of_warp(g, w, l.at), next = jit_at_offset(g, g->b, save, SAVE_NEXT);
    LLVMValueRef result = emit_choice(g, w, l.at, save, LLVMBuildLoad2(g->b, g->i32, next, ""));
    jit_branch_unlikely(
        g, LLVMBuildICmp(g->b, LLVMIntSLT, result, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1), ""),
        w->fault);
    LLVMBuildStore(g->b, result, next);
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSGE, result, zero, "");
    some = LLVMBuildOr(g->b, LLVMBuildLoad2(g->b, g->i1, waiting, ""), some, "");
    LLVMBuildStore(g->b, some, waiting);
    loop_end(g, &l);
    LLVMBuildCondBr(g->b, LLVMBuildLoad2(g->b, g->i1, waiting, ""), phase, end);
    jit_position(g, end);
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, SOFT_DONE, 0));
}

/* With barriers: phases, in each of which every warp runs one region, until all warps are done. */
static void emit_phased_block(struct jit_gen *g, struct wrapper *w)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), no = LLVMConstInt(g->i1, 0, 0),
                 yes = LLVMConstInt(g->i1, 1, 0);
    begin_warps(g, w);
    struct phase p = { .at = jit_alloca(g, g->i32, "at"),
                       .upto = jit_alloca(g, g->i32, "upto"),
                       .together = jit_alloca(g, g->i1, "together"),
                       .agreed = jit_alloca(g, g->i32, "agreed"),
                       .waiting = jit_alloca(g, g->i1, "waiting") };
    LLVMBasicBlockRef phase = jit_new_block(g, "phase"), run = jit_new_block(g, "run"),
                      ran = jit_new_block(g, "ran");
    p.group = jit_new_block(g, "group");
    p.end = jit_new_block(g, "end");
    p.begin = calloc(g->a->region_count, sizeof(*p.begin));
    if (!p.begin) {
        jit_unsupported(g, "out of memory");
        return;
    }
    for (uint32_t r = 0; r < g->a->region_count; r++)
        p.begin[r] = jit_new_block(g, "region");
    LLVMBuildStore(g->b, yes, p.together);
    LLVMBuildStore(g->b, zero, p.agreed);
    LLVMBuildBr(g->b, phase);
    jit_position(g, phase);
    LLVMBuildStore(g->b, zero, p.at);
    LLVMBuildStore(g->b, no, p.waiting);
    LLVMBuildBr(g->b, p.group);
    jit_position(g, p.group);
    LLVMValueRef at = LLVMBuildLoad2(g->b, g->i32, p.at, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, at, w->warps, ""), run, ran);
    jit_position(g, run);
    emit_group(g, w, &p);
    jit_position(g, ran);
    LLVMBuildCondBr(g->b, LLVMBuildLoad2(g->b, g->i1, p.waiting, ""), phase, p.end);
    jit_position(g, p.end);
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, SOFT_DONE, 0));
    free(p.begin);
}

/* All warps take the same way (jam.c): each region has a loop over all of them, several at a time
 * where that is faster. */
static void emit_block_in_step(struct jit_gen *g, struct wrapper *w)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0),
                 no = LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1);
    LLVMBasicBlockRef choose = jit_new_block(g, "choose"), end = jit_new_block(g, "end");
    LLVMBuildStore(g->b, zero, w->result);
    LLVMBuildBr(g->b, choose);
    jit_position(g, choose);
    LLVMValueRef next = LLVMBuildLoad2(g->b, g->i32, w->result, "");
    LLVMValueRef choice = LLVMBuildSwitch(g->b, next, end, g->a->region_count);
    LLVMValueRef counter = jit_alloca(g, g->i32, "");
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        LLVMBasicBlockRef begin = jit_new_block(g, "region"), head = jit_new_block(g, "warps");
        LLVMBasicBlockRef body = jit_new_block(g, "warp");
        LLVMAddCase(choice, LLVMConstInt(g->i32, r, 0), begin);
        jit_position(g, begin);
        LLVMBuildStore(g->b, zero, counter);
        LLVMBuildBr(g->b, head);
        jit_position(g, head);
        LLVMValueRef at = LLVMBuildLoad2(g->b, g->i32, counter, "");
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, at, w->warps, ""), body, choose);
        jit_position(g, body);
        LLVMValueRef first = first_of_warp(g, at);
        LLVMValueRef args[] = { w->block, first, save_of_warp(g, w, at), jit_all_lanes(g),
                                w->ctaid_x };
        if (!g->full[r].begins)
            args[3] = LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, args[2], SAVE_ALIVE), "");
        LLVMValueRef result = LLVMBuildCall2(g->b, g->region_type, g->regions[r], args, 5, "");
        LLVMBuildStore(g->b, result, w->result);
        jit_branch_unlikely(g, LLVMBuildICmp(g->b, LLVMIntSLT, result, no, ""), w->fault);
        LLVMValueRef step = LLVMConstInt(g->i32, g->full[r].copies, 0);
        LLVMBuildStore(g->b, LLVMBuildAdd(g->b, at, step, ""), counter);
        LLVMBuildBr(g->b, head);
    }
    jit_position(g, end);
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, SOFT_DONE, 0));
}

/* i32 in an alloca, += the number of lanes in the set that is at `offset` of a save area. */
static void count_lanes(struct jit_gen *g, LLVMValueRef save, uint64_t offset, LLVMValueRef sum)
{
    LLVMValueRef lanes = LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, save, offset), "");
    LLVMValueRef more = jit_call1(g, "llvm.ctpop", lanes);
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, LLVMBuildLoad2(g->b, g->i32, sum, ""), more, ""), sum);
}

/* With parked lanes: a turn for each warp, again and again until all are done. A warp that is at a
 * barrier goes on in the turn after the one in which the last thread came. */
static void emit_turns(struct jit_gen *g, struct wrapper *w)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0);
    LLVMValueRef release = jit_alloca(g, g->i32, "release"), alive = jit_alloca(g, g->i32, "alive");
    LLVMValueRef at_barrier = jit_alloca(g, g->i32, "at_barrier");
    struct loop l = loop_begin(g, zero, w->warps);
    LLVMValueRef save = save_of_warp(g, w, l.at);
    LLVMBuildStore(g->b, zero, jit_at_offset(g, g->b, save, SAVE_NEXT));
    LLVMBuildStore(g->b, lanes_of_warp(g, w, first_of_warp(g, l.at)),
                   jit_at_offset(g, g->b, save, SAVE_ALIVE));
    LLVMBuildStore(g->b, zero, jit_at_offset(g, g->b, save, JIT_SAVE_AT_BARRIER));
    jit_clear_parked(g, save);
    loop_end(g, &l);
    LLVMBuildStore(g->b, zero, release);

    LLVMBasicBlockRef turn = jit_new_block(g, "turn"), end = jit_new_block(g, "end");
    LLVMBuildBr(g->b, turn);
    jit_position(g, turn);
    LLVMBuildStore(g->b, zero, alive);
    LLVMBuildStore(g->b, zero, at_barrier);
    l = loop_begin(g, zero, w->warps);
    save = save_of_warp(g, w, l.at);
    LLVMBasicBlockRef run = jit_new_block(g, "run"), ran = jit_new_block(g, "ran");
    LLVMValueRef lanes = LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, save, SAVE_ALIVE), "");
    LLVMValueRef stay =
        LLVMBuildLoad2(g->b, g->i32, jit_at_offset(g, g->b, save, JIT_SAVE_AT_BARRIER), "");
    LLVMValueRef released = LLVMBuildLoad2(g->b, g->i32, release, "");
    LLVMBuildStore(g->b, released, jit_at_offset(g, g->b, save, JIT_SAVE_RELEASE));
    stay =
        LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, released, zero, ""), stay, zero, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, lanes, stay, ""), run, ran);
    jit_position(g, run);
    LLVMValueRef args[] = { w->block, first_of_warp(g, l.at), save, lanes, w->ctaid_x };
    LLVMValueRef result = LLVMBuildCall2(g->b, g->region_type, g->regions[0], args, 5, "");
    LLVMBuildStore(g->b, result, w->result);
    jit_branch_unlikely(
        g, LLVMBuildICmp(g->b, LLVMIntSLT, result, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1), ""),
        w->fault);
    LLVMBuildBr(g->b, ran);
    jit_position(g, ran);
    count_lanes(g, save, SAVE_ALIVE, alive);
    count_lanes(g, save, JIT_SAVE_AT_BARRIER, at_barrier);
    loop_end(g, &l);
    LLVMValueRef left = LLVMBuildLoad2(g->b, g->i32, alive, "");
    LLVMValueRef complete =
        LLVMBuildICmp(g->b, LLVMIntEQ, left, LLVMBuildLoad2(g->b, g->i32, at_barrier, ""), "");
    LLVMBuildStore(g->b, LLVMBuildZExt(g->b, complete, g->i32, ""), release);
    LLVMBasicBlockRef look_again = jit_new_block(g, "look.again"), go_on = jit_new_block(g, "on");
    LLVMBuildCondBr(g->b, complete, go_on, look_again);
    jit_position(g, look_again);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), &g->ptr, 1, 0);
    LLVMBuildCall2(g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, give_way)),
                   &w->block, 1, "");
    LLVMBuildBr(g->b, turn);
    jit_position(g, go_on);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, left, zero, ""), turn, end);
    jit_position(g, end);
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, SOFT_DONE, 0));
}

/* Checks what the code relies on: the block's size, and a grid that is small enough for the
 * analysis. */
static void emit_preconditions(struct jit_gen *g, struct wrapper *w)
{
    LLVMValueRef wrong = LLVMConstInt(g->i1, 0, 0);
    for (unsigned d = 0; d < 3; d++) {
        LLVMValueRef n = jit_field(g, offsetof(struct soft_block, ntid) + 4 * d, g->i32);
        if (g->ntid[0])
            wrong = LLVMBuildOr(
                g->b, wrong,
                LLVMBuildICmp(g->b, LLVMIntNE, n, LLVMConstInt(g->i32, g->ntid[d], 0), ""), "");
        if (g->a->used_small_grid) {
            LLVMValueRef c = jit_field(g, offsetof(struct soft_block, nctaid) + 4 * d, g->i32);
            LLVMValueRef all = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, n, g->i64, ""),
                                            LLVMBuildZExt(g->b, c, g->i64, ""), "");
            wrong = LLVMBuildOr(
                g->b, wrong,
                LLVMBuildICmp(g->b, LLVMIntUGE, all, LLVMConstInt(g->i64, 1u << 31, 0), ""), "");
        }
    }
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_FAULT(SOFT_FAULT_UNSUPPORTED), 1),
                   w->result);
    jit_branch_unlikely(g, wrong, w->fault);
}

/* The block's code in a function of its own, so that nothing of it is moved to before or behind the
 * switch. (A block that faults leaves by a signal handler, which starts with the processor's
 * default, and does not come back here.) */
static void emit_flushing_entry(struct jit_gen *g, LLVMTypeRef type, LLVMValueRef block)
{
    jit_set_attribute(g, block, "noinline");
    LLVMValueRef entry = jit_add_function(g, SOFT_ENTRY_SYMBOL, type, true);
    LLVMValueRef args[] = { LLVMGetParam(entry, 0), LLVMGetParam(entry, 1) };
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->context, entry, "start"));
    jit_set_flushing(g, true);
    LLVMValueRef r = LLVMBuildCall2(g->b, type, block, args, 2, "");
    jit_set_flushing(g, false);
    LLVMBuildRet(g->b, r);
}

/* Lets LLVM read this parameter's memory early, and so once for all warps. */
static void mark_readable(struct jit_gen *g, LLVMValueRef f, unsigned param, uint64_t bytes)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("dereferenceable", 15);
    LLVMAddAttributeAtIndex(f, param + 1, LLVMCreateEnumAttribute(g->context, kind, bytes));
    kind = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAddAttributeAtIndex(f, param + 1, LLVMCreateEnumAttribute(g->context, kind, 8));
}

static LLVMValueRef warps_of_block(struct jit_gen *g, LLVMValueRef threads)
{
    LLVMValueRef round = LLVMConstInt(g->i32, g->lanes - 1, 0),
                 lanes = LLVMConstInt(g->i32, g->lanes, 0);
    return LLVMBuildUDiv(g->prelude, LLVMBuildAdd(g->prelude, threads, round, ""), lanes, "");
}

void jit_emit_block(struct jit_gen *g)
{
    LLVMTypeRef params[] = { g->ptr, g->ptr };
    struct wrapper w = { 0 };
    memset(g->cached, 0, sizeof(g->cached));
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 2, 0);
    w.f = jit_add_function(g, g->flushes ? "block" : SOFT_ENTRY_SYMBOL, type, !g->flushes);
    g->function = w.f;
    g->block = w.block = LLVMGetParam(w.f, 1);
    mark_readable(g, w.f, 1, sizeof(struct soft_block));
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(g->context, w.f, "start");
    LLVMBasicBlockRef body = jit_new_block(g, "body");
    w.fault = jit_new_block(g, "fault");
    LLVMPositionBuilderAtEnd(g->prelude, start);
    LLVMValueRef jump = LLVMBuildBr(g->prelude, body);
    LLVMPositionBuilderBefore(g->prelude, jump);
    w.result = jit_alloca(g, g->i32, "result");
    w.threads = g->threads ? LLVMConstInt(g->i32, g->threads, 0)
                           : jit_field(g, offsetof(struct soft_block, threads), g->i32);
    w.warps = warps_of_block(g, w.threads);
    w.save = jit_field(g, offsetof(struct soft_block, save), g->ptr);
    w.stride = LLVMConstInt(g->i64, g->save_bytes, 0);
    w.ctaid_x = jit_field(g, offsetof(struct soft_block, ctaid), g->i32);
    if (g->row.blocks) /* it is written to */
        LLVMSetMetadata(w.ctaid_x, g->invariant_kind, NULL);

    jit_position(g, w.fault);
    LLVMValueRef r = LLVMBuildLoad2(g->b, g->i32, w.result, "");
    LLVMBuildRet(g->b, LLVMBuildSub(g->b, LLVMConstInt(g->i32, (uint64_t)-2, 1), r, ""));
    jit_position(g, body);
    emit_preconditions(g, &w);
    if (g->a->parking)
        emit_turns(g, &w);
    else if (g->a->region_count == 1)
        emit_simple_block(g, &w);
    else if (g->jams)
        emit_block_in_step(g, &w);
    else if (g->a->region_count > REGIONS_MAX)
        emit_many_regions(g, &w);
    else
        emit_phased_block(g, &w);
    if (g->flushes)
        emit_flushing_entry(g, type, w.f);
}
