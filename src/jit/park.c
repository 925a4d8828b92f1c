/*
 * Kernels in which threads may wait for each other without a barrier, or with one in divergent
 * code. A warp's function is the whole kernel. Lanes that would wait are parked (analysis.h); when
 * no other lane can run, the function saves what they need and returns, so that the block's other
 * warps have their turn. In the next one every parked lane goes on: it looks once more, or passes a
 * barrier that all threads of the block have come to.
 *
 * Lanes that have parted meet again behind the branch on GPUs before Volta, and often on later
 * ones; programs count on that. A loop that looks as if it waited may do work (a list without
 * locks): its lanes are not parked at once, as the others would go on without them, but when they
 * have gone back a number of times in the turn. Where that is in vain the number becomes less from
 * turn to turn.
 */
#include "jit/gen.h"

/* The warp's sets of parked lanes are arrays in its save area (jit_gen.place says where in them).
 */
enum parked {
    PARKED_LANES,      /* those that will look again */
    PARKED_AT_BARRIER, /* those that wait at a barrier behind the block's way there */
    PARKED_FREED,      /* where lanes meet: those that wait for no others any more, in this turn */
    PARKED_COUNT
};

uint32_t jit_lay_out_parked(struct jit_gen *g, uint32_t at)
{
    if (!g->a->parking)
        return at;
    g->region = 0;
    jit_choose_chains(g);
    g->parked_at = (at + JIT_PIECE_BYTES - 1) / JIT_PIECE_BYTES * JIT_PIECE_BYTES;
    return g->parked_at + PARKED_COUNT * jit_pieces(g) * JIT_PIECE_BYTES;
}

/* Address of a field of the warp's save area. */
static LLVMValueRef saved(struct jit_gen *g, uint32_t offset)
{
    return jit_at_offset(g, g->b, g->w->save, offset);
}

static LLVMValueRef piece_of(struct jit_gen *g, enum parked array, uint32_t piece)
{
    return saved(g, g->parked_at + ((uint32_t)array * jit_pieces(g) + piece) * JIT_PIECE_BYTES);
}

static LLVMValueRef set_of(struct jit_gen *g, enum parked array, uint32_t block)
{
    uint32_t at = (uint32_t)array * jit_pieces(g) * JIT_PIECE + g->place[block];
    return saved(g, g->parked_at + at * (uint32_t)sizeof(uint32_t));
}

LLVMValueRef jit_parked_here(struct jit_gen *g)
{
    return set_of(g, PARKED_LANES, g->at_block);
}

LLVMValueRef jit_freed_here(struct jit_gen *g)
{
    return set_of(g, PARKED_FREED, g->at_block);
}

/* Registers that may be read before they are written are 0 then. */
static void clear_registers(struct jit_gen *g, LLVMValueRef save)
{
    const struct ir_region *region = &g->a->regions[0];
    for (uint32_t k = 0; k < region->live_in.count; k++) {
        uint32_t reg = g->a->pool[region->live_in.first + k];
        if (g->save_offset[reg] == IR_NONE || !ir_live_in(g->a, region->start, reg))
            continue;
        bool vec = jit_shape(g, reg) == IR_VARYING;
        unsigned size = ir_types[g->fn->regs[reg].type].size;
        LLVMTypeRef t = LLVMIntTypeInContext(g->context, 8 * GM_MAX(size, 1u));
        if (g->fn->regs[reg].type == IR_PRED)
            t = vec ? g->i32 : g->i8;
        else if (vec)
            t = jit_vec(g, t);
        LLVMValueRef at = jit_at_offset(g, g->b, save, g->save_offset[reg]);
        LLVMSetAlignment(LLVMBuildStore(g->b, LLVMConstNull(t), at), 1);
        if (jit_may_wrap(g, reg))
            jit_clear_wrapped(g, save, reg);
    }
}

void jit_clear_parked(struct jit_gen *g, LLVMValueRef save)
{
    LLVMTypeRef piece = LLVMVectorType(g->i32, JIT_PIECE);
    for (uint32_t k = 0; k < PARKED_FREED * jit_pieces(g); k++)
        LLVMBuildStore(g->b, LLVMConstNull(piece),
                       jit_at_offset(g, g->b, save, g->parked_at + k * JIT_PIECE_BYTES));
    clear_registers(g, save);
}

/* Where to note lanes that go from the current block to `block` and are parked there. */
static LLVMValueRef parked(struct jit_gen *g, uint32_t block)
{
    bool barrier = g->a->blocks[g->at_block].barrier;
    return set_of(g, barrier ? PARKED_AT_BARRIER : PARKED_LANES, block);
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

/* What the first word of the save area says, when the warp has had a turn. */
#define BEGUN 1u
#define STUCK 2u /* at its end there was no lane but those that wait for others of the warp */

/* The blocks that have a place in the piece and where lanes may be parked, by place; IR_NONE: none.
 * False: there are none. */
static bool parking_blocks(const struct jit_gen *g, uint32_t piece, uint32_t *blocks)
{
    bool any = false;
    for (uint32_t k = 0; k < JIT_PIECE; k++)
        blocks[k] = IR_NONE;
    for (uint32_t n = 0; n < g->a->order_count; n++) {
        uint32_t b = g->a->order[n];
        if (!g->a->blocks[b].parks || g->place[b] / JIT_PIECE != piece)
            continue;
        blocks[g->place[b] % JIT_PIECE] = b;
        any = true;
    }
    return any;
}

static LLVMValueRef load_piece(struct jit_gen *g, enum parked array, uint32_t piece)
{
    return LLVMBuildLoad2(g->b, LLVMVectorType(g->i32, JIT_PIECE), piece_of(g, array, piece), "");
}

/* -1 for the places in the piece that begin with bar.warp.sync and gather lanes, else 0; NULL:
 * there are none. */
static LLVMValueRef syncs_of(struct jit_gen *g, uint32_t piece)
{
    uint32_t blocks[JIT_PIECE];
    LLVMValueRef all[JIT_PIECE];
    bool any = false;
    parking_blocks(g, piece, blocks);
    for (uint32_t k = 0; k < JIT_PIECE; k++) {
        uint32_t b = blocks[k];
        bool sync = b != IR_NONE && g->a->blocks[b].meets &&
                    g->fn->instrs[g->fn->blocks[b].first].op == IR_OP_BARWARP;
        all[k] = LLVMConstInt(g->i32, sync ? UINT32_MAX : 0, 0);
        any |= sync;
    }
    return any ? LLVMConstVector(all, JIT_PIECE) : NULL;
}

LLVMValueRef jit_parked_at_syncs(struct jit_gen *g)
{
    LLVMValueRef all = LLVMConstNull(LLVMVectorType(g->i32, JIT_PIECE));
    for (uint32_t k = 0; k < jit_pieces(g); k++) {
        LLVMValueRef syncs = syncs_of(g, k);
        if (syncs)
            all = LLVMBuildOr(g->b, all,
                              LLVMBuildAnd(g->b, load_piece(g, PARKED_LANES, k), syncs, ""), "");
    }
    return jit_call1(g, "llvm.vector.reduce.or", all);
}

/* They wait to run, and find when they do that they need not look for others. */
void jit_free_at_syncs(struct jit_gen *g, LLVMValueRef lanes)
{
    LLVMTypeRef piece = LLVMVectorType(g->i32, JIT_PIECE);
    LLVMValueRef zero = LLVMConstNull(g->i32);
    LLVMValueRef each = LLVMBuildInsertElement(g->b, LLVMGetPoison(piece), lanes, zero, "");
    each = LLVMBuildShuffleVector(g->b, each, LLVMGetPoison(piece), LLVMConstNull(piece), "");
    for (uint32_t k = 0; k < jit_pieces(g); k++) {
        LLVMValueRef syncs = syncs_of(g, k);
        if (!syncs)
            continue;
        LLVMValueRef parked = load_piece(g, PARKED_LANES, k),
                     waiting = jit_waiting_piece(g, g->b, k);
        LLVMValueRef go = LLVMBuildAnd(g->b, LLVMBuildAnd(g->b, parked, syncs, ""), each, "");
        LLVMValueRef freed = load_piece(g, PARKED_FREED, k);
        LLVMBuildStore(g->b, LLVMBuildXor(g->b, parked, go, ""), piece_of(g, PARKED_LANES, k));
        LLVMBuildStore(g->b, LLVMBuildOr(g->b, freed, go, ""), piece_of(g, PARKED_FREED, k));
        LLVMValueRef had = LLVMBuildLoad2(g->b, piece, waiting, "");
        LLVMBuildStore(g->b, LLVMBuildOr(g->b, had, go, ""), waiting);
    }
}

/* All bits of a piece if the condition holds, else none. */
static LLVMValueRef all_if(struct jit_gen *g, LLVMValueRef condition)
{
    LLVMTypeRef piece = LLVMVectorType(g->i32, JIT_PIECE);
    LLVMValueRef bits = LLVMBuildSExt(g->b, condition, g->i32, ""),
                 zero = LLVMConstInt(g->i32, 0, 0);
    LLVMValueRef one = LLVMBuildInsertElement(g->b, LLVMGetPoison(piece), bits, zero, "");
    return LLVMBuildShuffleVector(g->b, one, LLVMGetPoison(piece), LLVMConstNull(piece), "");
}

/* Lanes that are parked in the piece become lanes that wait to run. */
static void unpark(struct jit_gen *g, uint32_t piece, LLVMValueRef stuck, LLVMValueRef release)
{
    uint32_t blocks[JIT_PIECE];
    if (!parking_blocks(g, piece, blocks))
        return;
    LLVMValueRef lanes = load_piece(g, PARKED_LANES, piece);
    LLVMValueRef at_barrier = load_piece(g, PARKED_AT_BARRIER, piece);
    LLVMValueRef go = LLVMBuildAnd(g->b, at_barrier, release, "");
    LLVMValueRef waiting = LLVMBuildOr(g->b, lanes, go, "");
    LLVMBuildStore(g->b, LLVMConstNull(LLVMTypeOf(lanes)), piece_of(g, PARKED_LANES, piece));
    LLVMBuildStore(g->b, LLVMBuildXor(g->b, at_barrier, go, ""),
                   piece_of(g, PARKED_AT_BARRIER, piece));
    LLVMBuildStore(g->b, LLVMBuildAnd(g->b, lanes, stuck, ""), piece_of(g, PARKED_FREED, piece));
    if (g->chains) {
        LLVMSetVolatile(LLVMBuildStore(g->b, waiting, jit_waiting_piece(g, g->b, piece)),
                        !g->large);
        return;
    }
    for (uint32_t k = 0; k < JIT_PIECE; k++) {
        LLVMValueRef at = LLVMConstInt(g->i32, k, 0);
        if (blocks[k] != IR_NONE)
            jit_store_waiting(g, blocks[k], LLVMBuildExtractElement(g->b, waiting, at, ""));
    }
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
    stuck = all_if(g, stuck);
    release = all_if(g, release);
    for (uint32_t k = 0; k < jit_pieces(g); k++)
        unpark(g, k, stuck, release);
    LLVMBasicBlockRef next = jit_new_block(g, "go.on");
    LLVMBuildCondBr(g->b, begun, next, g->entry[0]);
    jit_position(g, next);
    for (uint32_t n = 0; n < a->order_count; n++) {
        if (!a->blocks[a->order[n]].parks)
            continue;
        if (g->chains) {
            LLVMBuildBr(g->b, g->chain[a->order[n]]);
            return;
        }
        next = jit_new_block(g, "");
        LLVMValueRef some =
            LLVMBuildICmp(g->b, LLVMIntNE, jit_load_waiting(g, a->order[n]), zero, "");
        LLVMBuildCondBr(g->b, some, g->entry[a->order[n]], next);
        jit_position(g, next);
    }
    LLVMBuildBr(g->b, g->done);
}

/* -1 for the blocks where lanes are parked that look again by themselves, else 0. */
static LLVMValueRef looks_again(const struct jit_gen *g, const uint32_t *blocks)
{
    LLVMValueRef all[JIT_PIECE];
    for (uint32_t k = 0; k < JIT_PIECE; k++) {
        const struct ir_block_info *b = blocks[k] != IR_NONE ? &g->a->blocks[blocks[k]] : NULL;
        all[k] = LLVMConstInt(g->i32, b && (b->polls || !b->meets) ? UINT32_MAX : 0, 0);
    }
    return LLVMConstVector(all, JIT_PIECE);
}

static void emit_end(struct jit_gen *g)
{
    const struct ir_analysis *a = g->a;
    const struct ir_list *live = &a->regions[g->region].live_in;
    LLVMValueRef at_barrier = LLVMConstNull(LLVMVectorType(g->i32, JIT_PIECE));
    LLVMValueRef again = at_barrier;
    for (uint32_t k = 0; k < live->count; k++)
        if (g->save_offset[a->pool[live->first + k]] != IR_NONE)
            jit_save_register(g, a->pool[live->first + k]);
    for (uint32_t k = 0; k < jit_pieces(g); k++) {
        uint32_t blocks[JIT_PIECE];
        if (!parking_blocks(g, k, blocks))
            continue;
        LLVMValueRef lanes = load_piece(g, PARKED_LANES, k);
        lanes = LLVMBuildAnd(g->b, lanes, looks_again(g, blocks), "");
        again = LLVMBuildOr(g->b, again, lanes, "");
        at_barrier = LLVMBuildOr(g->b, at_barrier, load_piece(g, PARKED_AT_BARRIER, k), "");
    }
    LLVMValueRef stuck = LLVMBuildIsNull(g->b, jit_call1(g, "llvm.vector.reduce.or", again), "");
    LLVMBuildStore(g->b,
                   LLVMBuildSelect(g->b, stuck, LLVMConstInt(g->i32, STUCK, 0),
                                   LLVMConstInt(g->i32, BEGUN, 0), ""),
                   saved(g, 0));
    end_patience(g);
    LLVMBuildStore(g->b, jit_call1(g, "llvm.vector.reduce.or", at_barrier),
                   saved(g, JIT_SAVE_AT_BARRIER));
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
