/*
 * Kernels in which threads may wait for each other without a barrier, or with one in divergent
 * code. A warp's function is the whole kernel. Lanes that would wait are parked (analysis.h); when
 * no other lane can run, the function saves what they need and returns, so that the block's other
 * warps have their turn. In the next one every parked lane goes on: it looks once more, or passes a
 * barrier that all threads of the block have come to.
 *
 * Lanes that have parted meet again behind the branch on a GPU, and programs count on that. A loop
 * that looks as if it waited may do work (a list without locks): its lanes are not parked at once,
 * as the others would go on without them, but when they have gone back a number of times in the
 * turn. Where that is in vain the number becomes less from turn to turn.
 */
#include "jit/gen.h"

uint32_t jit_lay_out_parked(struct jit_gen *g, uint32_t at)
{
    for (uint32_t n = 0; n < g->a->order_count && g->a->parking; n++) {
        if (!g->a->blocks[g->a->order[n]].parks)
            continue;
        g->parking[g->a->order[n]].offset = at;
        at += 8;
    }
    return at;
}

/* Where to note lanes that go from the current block to `block` and are parked there. */
static LLVMValueRef parked(struct jit_gen *g, uint32_t block)
{
    const struct jit_parking *p = &g->parking[block];
    return g->a->blocks[g->at_block].barrier ? p->at_barrier : p->lanes;
}

/* Lanes may wait at the block while the current one runs. */
static bool may_wait(const struct jit_gen *g, uint32_t block)
{
    const struct ir_list *f = &g->a->blocks[g->at_block].frontier;
    uint32_t low = 0, high = f->count, priority = g->a->blocks[block].priority;
    if (g->a->parking || g->whole)
        return g->a->parking;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->a->blocks[g->a->pool[f->first + middle]].priority < priority)
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->count && g->a->pool[f->first + low] == block;
}

static LLVMValueRef load(struct jit_gen *g, LLVMValueRef from)
{
    return LLVMBuildLoad2(g->b, g->i32, from, "");
}

bool jit_is_patient(const struct jit_gen *g, uint32_t block)
{
    return ir_parks(g->a, g->at_block, block) && !g->a->blocks[g->at_block].barrier;
}

/* Lanes go back in a loop that may wait for others. Returns those that are parked: all or none. */
static LLVMValueRef go_back(struct jit_gen *g, uint32_t block, LLVMValueRef lanes)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), left = load(g, g->patience);
    LLVMValueRef out = LLVMBuildICmp(g->b, LLVMIntEQ, left, zero, "");
    LLVMValueRef stays = LLVMBuildSelect(g->b, out, zero, lanes, "");
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, stays, zero, "");
    left = LLVMBuildSub(g->b, left, LLVMBuildZExt(g->b, some, g->i32, ""), "");
    LLVMBuildStore(g->b, left, g->patience);
    jit_store_waiting(g, block, LLVMBuildOr(g->b, jit_load_waiting(g, block), stays, ""));
    return LLVMBuildSelect(g->b, out, lanes, zero, "");
}

void jit_add_waiting(struct jit_gen *g, uint32_t block, LLVMValueRef lanes, bool first)
{
    if (!ir_parks(g->a, g->at_block, block)) {
        if (!first || may_wait(g, block))
            lanes = LLVMBuildOr(g->b, jit_load_waiting(g, block), lanes, "");
        jit_store_waiting(g, block, lanes);
        return;
    }
    if (jit_is_patient(g, block))
        lanes = go_back(g, block, lanes);
    LLVMValueRef set = parked(g, block);
    LLVMBuildStore(g->b, LLVMBuildOr(g->b, load(g, set), lanes, ""), set);
}

/* Address of a field of the warp's save area. */
static LLVMValueRef saved(struct jit_gen *g, uint32_t offset)
{
    return jit_at_offset(g, g->b, g->w->save, offset);
}

/* What the first word of the save area says, when the warp has had a turn. */
#define BEGUN 1u
#define STUCK 2u /* at its end there was no lane but those that wait for others of the warp */

/* Lanes that are parked at the block become lanes that wait to run. */
static void unpark(struct jit_gen *g, uint32_t block, LLVMValueRef begun, LLVMValueRef stuck,
                   LLVMValueRef release)
{
    struct jit_parking *p = &g->parking[block];
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0);
    p->lanes = jit_lanes_slot(g);
    p->at_barrier = jit_lanes_slot(g);
    LLVMValueRef lanes = LLVMBuildSelect(g->b, begun, load(g, saved(g, p->offset)), zero, "");
    LLVMValueRef stay = LLVMBuildSelect(g->b, begun, load(g, saved(g, p->offset + 4)), zero, "");
    LLVMValueRef both = LLVMBuildOr(g->b, lanes, stay, "");
    jit_store_waiting(g, block, LLVMBuildSelect(g->b, release, both, lanes, ""));
    LLVMBuildStore(g->b, LLVMBuildSelect(g->b, release, zero, stay, ""), p->at_barrier);
    LLVMBuildStore(g->b, zero, p->lanes);
    if (!g->a->blocks[block].meets)
        return;
    p->freed = jit_lanes_slot(g);
    LLVMBuildStore(g->b, LLVMBuildSelect(g->b, stuck, lanes, zero, ""), p->freed);
}

static void begin_patience(struct jit_gen *g, LLVMValueRef begun)
{
    LLVMValueRef most = LLVMConstInt(g->i32, IR_PATIENCE, 0);
    LLVMValueRef times =
        LLVMBuildSelect(g->b, begun, load(g, saved(g, JIT_SAVE_PATIENCE)), most, "");
    g->patience = jit_lanes_slot(g);
    LLVMBuildStore(g->b, times, g->patience);
    LLVMBuildStore(g->b, times, saved(g, JIT_SAVE_PATIENCE));
}

static void end_patience(struct jit_gen *g)
{
    LLVMValueRef one = LLVMConstInt(g->i32, 1, 0), had = load(g, saved(g, JIT_SAVE_PATIENCE));
    LLVMValueRef half = LLVMBuildSub(g->b, had, LLVMBuildLShr(g->b, had, one, ""), "");
    LLVMValueRef out =
        LLVMBuildICmp(g->b, LLVMIntEQ, load(g, g->patience), LLVMConstInt(g->i32, 0, 0), "");
    LLVMValueRef next = LLVMBuildSelect(g->b, out, half, LLVMConstInt(g->i32, IR_PATIENCE, 0), "");
    LLVMBuildStore(g->b, next, saved(g, JIT_SAVE_PATIENCE));
}

static void emit_begin(struct jit_gen *g)
{
    const struct ir_analysis *a = g->a;
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), state = load(g, saved(g, 0));
    LLVMValueRef begun = LLVMBuildICmp(g->b, LLVMIntNE, state, zero, "");
    LLVMValueRef stuck = LLVMBuildICmp(g->b, LLVMIntEQ, state, LLVMConstInt(g->i32, STUCK, 0), "");
    LLVMValueRef release =
        LLVMBuildICmp(g->b, LLVMIntNE, load(g, saved(g, JIT_SAVE_RELEASE)), zero, "");
    begin_patience(g, begun);
    for (uint32_t n = 0; n < a->order_count; n++)
        if (a->blocks[a->order[n]].parks)
            unpark(g, a->order[n], begun, stuck, release);
    LLVMBasicBlockRef next = jit_new_block(g, "go.on");
    LLVMBuildCondBr(g->b, begun, next, g->entry[0]);
    jit_position(g, next);
    for (uint32_t n = 0; n < a->order_count; n++) {
        if (!a->blocks[a->order[n]].parks)
            continue;
        next = jit_new_block(g, "");
        LLVMValueRef some =
            LLVMBuildICmp(g->b, LLVMIntNE, jit_load_waiting(g, a->order[n]), zero, "");
        LLVMBuildCondBr(g->b, some, g->entry[a->order[n]], next);
        jit_position(g, next);
    }
    LLVMBuildBr(g->b, g->done);
}

static void emit_end(struct jit_gen *g)
{
    const struct ir_analysis *a = g->a;
    const struct ir_list *live = &a->regions[g->region].live_in;
    LLVMValueRef at_barrier = LLVMConstInt(g->i32, 0, 0), look_again = at_barrier;
    for (uint32_t k = 0; k < live->count; k++)
        if (g->save_offset[a->pool[live->first + k]] != IR_NONE)
            jit_save_register(g, a->pool[live->first + k]);
    for (uint32_t n = 0; n < a->order_count; n++) {
        const struct jit_parking *p = &g->parking[a->order[n]];
        if (!a->blocks[a->order[n]].parks)
            continue;
        LLVMValueRef here = load(g, p->at_barrier);
        LLVMValueRef lanes = load(g, p->lanes);
        at_barrier = LLVMBuildOr(g->b, at_barrier, here, "");
        if (a->blocks[a->order[n]].polls || !a->blocks[a->order[n]].meets)
            look_again = LLVMBuildOr(g->b, look_again, lanes, "");
        LLVMBuildStore(g->b, lanes, saved(g, p->offset));
        LLVMBuildStore(g->b, here, saved(g, p->offset + 4));
    }
    LLVMValueRef stuck = LLVMBuildICmp(g->b, LLVMIntEQ, look_again, LLVMConstInt(g->i32, 0, 0), "");
    LLVMBuildStore(g->b,
                   LLVMBuildSelect(g->b, stuck, LLVMConstInt(g->i32, STUCK, 0),
                                   LLVMConstInt(g->i32, BEGUN, 0), ""),
                   saved(g, 0));
    end_patience(g);
    LLVMBuildStore(g->b, at_barrier, saved(g, JIT_SAVE_AT_BARRIER));
    LLVMBuildStore(g->b, load(g, g->alive), saved(g, JIT_SAVE_ALIVE));
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1));
}

void jit_emit_turn(struct jit_gen *g, LLVMBasicBlockRef begin)
{
    jit_position(g, begin);
    emit_begin(g);
    jit_position(g, g->done);
    emit_end(g);
}
