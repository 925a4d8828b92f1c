/*
 * The module: one function per barrier region, the cold functions that report faults, and the
 * description that the loader reads.
 */
#include "jit/gen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/clones.h"
#include "jit/target.h"

/* Kernels of so many instructions go into the loops over warps (block.c), without and with
 * barriers: a call costs as much as small ones do, and what is the same for all warps is computed
 * once. */
#define INLINE_SIMPLE 120u
#define INLINE_PHASED 600u
/* Longer kernels have no second version for warps of which all lanes run: it would take too long to
 * compile. */
#define WHOLE_MAX 1000u
/* Operands of phis, beyond which LLVM takes seconds (frame.c). What is longer than that needs more
 * stack without registers than there is. */
#define OPERANDS_MAX 100000u
#define LARGE_MAX    17000u

static void init_types(struct jit_gen *g)
{
    LLVMContextRef c = g->context;
    g->i1 = LLVMInt1TypeInContext(c);
    g->i8 = LLVMInt8TypeInContext(c);
    g->i16 = LLVMInt16TypeInContext(c);
    g->i32 = LLVMInt32TypeInContext(c);
    g->i64 = LLVMInt64TypeInContext(c);
    g->f16 = LLVMHalfTypeInContext(c);
    g->f32 = LLVMFloatTypeInContext(c);
    g->f64 = LLVMDoubleTypeInContext(c);
    g->ptr = LLVMPointerTypeInContext(c, 0);
    g->nothing = LLVMVoidTypeInContext(c);
    g->prof_kind = LLVMGetMDKindIDInContext(c, "prof", 4);
    g->invariant_kind = LLVMGetMDKindIDInContext(c, "invariant.load", 14);
    LLVMMetadataRef weights[] = { LLVMMDStringInContext2(c, "branch_weights", 14),
                                  LLVMValueAsMetadata(LLVMConstInt(g->i32, 1, 0)),
                                  LLVMValueAsMetadata(LLVMConstInt(g->i32, 100000, 0)) };
    g->unlikely = LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, weights, 3));
    g->invariant = LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0));
}

/* Gives registers that live over a barrier their places: vectors first, so that they are aligned.
 * Where the frame is kept they have theirs in it. */
static void lay_out_save_area(struct jit_gen *g)
{
    const struct ir_analysis *a = g->a;
    uint32_t at = JIT_SAVE_HEAD;
    for (int scalars = 0; scalars < 2; scalars++) {
        for (uint32_t r = 0; r < a->region_count && !jit_keeps_frame(g); r++) {
            for (uint32_t k = 0; k < a->regions[r].live_in.count; k++) {
                uint32_t reg = a->pool[a->regions[r].live_in.first + k];
                bool bits = g->fn->regs[reg].type == IR_PRED; /* saved as an integer */
                bool vec = !bits && (jit_shape(g, reg) == IR_VARYING || jit_may_wrap(g, reg));
                if (g->save_offset[reg] != IR_NONE || vec == (scalars == 1) ||
                    a->regs[reg].is_const || jit_is_again(g, reg))
                    continue;
                uint32_t size = (uint32_t)ir_types[g->fn->regs[reg].type].size;
                g->save_offset[reg] = at;
                if (!vec)
                    at += 8;
                else if (jit_may_wrap(g, reg))
                    at += jit_wrapped_bytes(g, reg);
                else
                    at += (size * g->lanes + 15) & ~15u;
            }
        }
    }
    at = jit_lay_out_parked(g, at);
    uint32_t align = jit_keeps_frame(g) ? SOFT_SAVE_ALIGN : 64;
    g->save_bytes = a->region_count > 1 || a->parking ? (at + align - 1) & ~(align - 1) : 0;
}

/* i32 fault_scalar(block, first thread, address, lanes, alignment - 1): notes the first of the
 * lanes as the culprit. */
static void emit_fault_scalar(struct jit_gen *g)
{
    LLVMTypeRef params[] = { g->ptr, g->i32, g->i64, g->i32, g->i64 };
    g->fault_scalar_type = LLVMFunctionType(g->i32, params, 5, 0);
    g->fault_scalar = jit_add_function(g, "fault_scalar", g->fault_scalar_type, false);
    jit_set_attribute(g, g->fault_scalar, "cold");
    jit_set_attribute(g, g->fault_scalar, "noinline");
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->context, g->fault_scalar, ""));
    LLVMValueRef block = LLVMGetParam(g->fault_scalar, 0),
                 address = LLVMGetParam(g->fault_scalar, 2);
    LLVMValueRef count[] = { LLVMGetParam(g->fault_scalar, 3), LLVMConstInt(g->i1, 0, 0) };
    LLVMValueRef lane = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, count, 2);
    LLVMValueRef thread = LLVMBuildAdd(g->b, LLVMGetParam(g->fault_scalar, 1), lane, "");
    LLVMBuildStore(g->b, address,
                   jit_at_offset(g, g->b, block, offsetof(struct soft_block, fault_address)));
    LLVMBuildStore(g->b, thread,
                   jit_at_offset(g, g->b, block, offsetof(struct soft_block, fault_thread)));
    LLVMValueRef low = LLVMBuildAnd(g->b, address, LLVMGetParam(g->fault_scalar, 4), "");
    LLVMValueRef aligned = LLVMBuildICmp(g->b, LLVMIntEQ, low, LLVMConstInt(g->i64, 0, 0), "");
    LLVMBuildRet(
        g->b, LLVMBuildSelect(
                  g->b, aligned, LLVMConstInt(g->i32, (uint64_t)JIT_FAULT(SOFT_FAULT_ADDRESS), 1),
                  LLVMConstInt(g->i32, (uint64_t)JIT_FAULT(SOFT_FAULT_MISALIGNED), 1), ""));
}

/* The function for a vector of addresses, one for each lane. */
static void emit_fault_vector(struct jit_gen *g)
{
    LLVMTypeRef params[] = { g->ptr, g->i32, jit_vec(g, g->i64), g->i32, g->i64 };
    g->fault_vector_type = LLVMFunctionType(g->i32, params, 5, 0);
    g->fault_vector = jit_add_function(g, "fault_vector", g->fault_vector_type, false);
    jit_set_attribute(g, g->fault_vector, "cold");
    jit_set_attribute(g, g->fault_vector, "noinline");
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->context, g->fault_vector, ""));
    LLVMValueRef bits = LLVMGetParam(g->fault_vector, 3);
    LLVMValueRef count[] = { bits, LLVMConstInt(g->i1, 0, 0) };
    LLVMValueRef lane = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, count, 2);
    lane = LLVMBuildAnd(g->b, lane, LLVMConstInt(g->i32, 31, 0), "");
    LLVMValueRef args[] = { LLVMGetParam(g->fault_vector, 0), LLVMGetParam(g->fault_vector, 1),
                            jit_pick(g, LLVMGetParam(g->fault_vector, 2), lane), bits,
                            LLVMGetParam(g->fault_vector, 4) };
    LLVMBuildRet(g->b, LLVMBuildCall2(g->b, g->fault_scalar_type, g->fault_scalar, args, 5, ""));
}

/* Makes a vector of lanes at once, if the processor has registers for those. On such processors
 * LLVM 19 never ends on the union or difference of two sets of lanes that come from integers, if
 * all three live on. */
static LLVMValueRef restore_predicate(struct jit_gen *g, bool vec, LLVMValueRef p)
{
    if (!vec)
        return LLVMBuildTrunc(g->b, LLVMBuildLoad2(g->b, g->i8, p, ""), g->i1, "");
    if (g->target->avx512)
        return LLVMBuildLoad2(g->b, jit_vec(g, g->i1), p, "");
    return jit_lanes(g, LLVMBuildLoad2(g->b, g->i32, p, ""));
}

/* Computes the register again, once in a region. */
static void emit_again(struct jit_gen *g, uint32_t reg)
{
    uint32_t at = g->a->regs[reg].any_def;
    if (g->w->regs[reg].again)
        return;
    g->w->regs[reg].again = true;
    const struct ir_instr *i = &g->fn->instrs[at];
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG)
            emit_again(g, i->src[k].index);
    g->at_instr = at;
    g->i = i;
    g->guard = NULL;
    g->mask = jit_all_lanes(g);
    g->masked = false;
    jit_emit_instr(g);
}

/* Gives registers that live into the region and are named there their values; no other register has
 * one. What lives through it stays in the save area. */
static void restore_registers(struct jit_gen *g, const struct ir_region *region)
{
    LLVMBuilderRef kept = g->b;
    g->b = g->prelude;
    for (uint32_t k = 0; k < region->live_in.count; k++) {
        uint32_t reg = g->a->pool[region->live_in.first + k];
        if (!jit_is_named(g, reg) && !g->a->parking)
            continue;
        if (!g->a->regs[reg].is_const && g->save_offset[reg] == IR_NONE) {
            if (!jit_keeps_frame(g) || jit_is_again(g, reg))
                emit_again(g, reg);
            continue;
        }
        enum ir_type type = (enum ir_type)g->fn->regs[reg].type;
        LLVMTypeRef t = type == IR_F16 ? g->i16 : jit_type(g, type);
        bool vec = jit_shape(g, reg) == IR_VARYING;
        LLVMValueRef v;
        if (!g->w->regs[reg].slot)
            g->w->regs[reg].slot = jit_register_slot(g, reg, vec ? jit_vec(g, t) : t);
        if (g->a->regs[reg].is_const) {
            struct ir_src s = { .kind = IR_SRC_IMM, .bits = g->a->regs[reg].value };
            v = jit_src(g, &s, type, vec);
        } else {
            LLVMValueRef p = jit_at_offset(g, g->b, g->w->save, g->save_offset[reg]);
            if (type == IR_PRED) {
                v = restore_predicate(g, vec, p);
            } else {
                v = LLVMBuildLoad2(g->b, vec ? jit_vec(g, t) : t, p, "");
                LLVMSetAlignment(v, vec ? 16 : 2);
            }
        }
        LLVMBuildStore(g->b, v, g->w->regs[reg].slot);
        if (jit_may_wrap(g, reg))
            jit_restore_wrapped(g, reg);
    }
    g->b = kept;
}

/* Thread indices of the warp: scalars of lane 0 where a warp lies in one row of the block, else
 * vectors. */
static void emit_thread_indices(struct jit_gen *g)
{
    LLVMBuilderRef b = g->prelude;
    LLVMValueRef nx = jit_cached(g, JIT_NTID_X), ny = jit_cached(g, JIT_NTID_Y);
    bool known = g->ntid[0] != 0;
    if (known && g->ntid[1] == 1 && g->ntid[2] == 1) {
        g->w->tid[0] = g->w->first;
        g->w->tid[1] = g->w->tid[2] = LLVMConstInt(g->i32, 0, 0);
        return;
    }
    if (known && g->ntid[0] % g->lanes == 0) {
        LLVMValueRef row = LLVMBuildUDiv(b, g->w->first, nx, "");
        g->w->tid[0] = LLVMBuildURem(b, g->w->first, nx, "");
        g->w->tid[1] = LLVMBuildURem(b, row, ny, "");
        g->w->tid[2] = LLVMBuildUDiv(b, row, ny, "");
        return;
    }
    LLVMBuilderRef kept = g->b;
    g->b = b;
    LLVMValueRef linear = LLVMBuildAdd(b, jit_splat(g, g->w->first), jit_ramp(g, g->i32, 1), "");
    LLVMValueRef row, plane;
    nx = jit_splat(g, nx);
    ny = jit_splat(g, ny);
    if (known) {
        row = LLVMBuildUDiv(b, linear, nx, "");
        plane = LLVMBuildUDiv(b, row, ny, "");
    } else {
        /* Thread numbers are small: half a thread more makes the rounded quotient of floats exact.
         */
        LLVMTypeRef vf = jit_vec(g, g->f32), vi = jit_vec(g, g->i32);
        LLVMValueRef half = jit_real(g, LLVMGetUndef(vf), 0.5);
        LLVMValueRef x = LLVMBuildFAdd(b, LLVMBuildSIToFP(b, linear, vf, ""), half, "");
        row = LLVMBuildFPToSI(b, LLVMBuildFDiv(b, x, LLVMBuildSIToFP(b, nx, vf, ""), ""), vi, "");
        x = LLVMBuildFAdd(b, LLVMBuildSIToFP(b, row, vf, ""), half, "");
        plane = LLVMBuildFPToSI(b, LLVMBuildFDiv(b, x, LLVMBuildSIToFP(b, ny, vf, ""), ""), vi, "");
    }
    g->w->tid[0] = LLVMBuildSub(b, linear, LLVMBuildMul(b, row, nx, ""), "");
    g->w->tid[1] = LLVMBuildSub(b, row, LLVMBuildMul(b, plane, ny, ""), "");
    g->w->tid[2] = plane;
    g->b = kept;
}

static void reset_function_state(struct jit_gen *g)
{
    for (unsigned c = 0; c < jit_copies(g); c++)
        memset(g->warps[c].regs, 0, g->fn->reg_count * sizeof(*g->warps[c].regs));
    memset(g->waiting, 0, g->fn->block_count * sizeof(*g->waiting));
    memset(g->entry, 0, g->fn->block_count * sizeof(*g->entry));
    memset(g->whole_entry, 0, g->fn->block_count * sizeof(*g->whole_entry));
    memset(g->join, 0, g->fn->block_count * sizeof(*g->join));
    memset(g->symbol, 0, g->m->symbol_count * sizeof(*g->symbol));
    memset(g->cached, 0, sizeof(g->cached));
    g->matrices = g->operands = g->samples = g->places = g->faulted = NULL;
}

/* Sets up one of the function's warps. The arguments describe the first of them. */
static void begin_warp(struct jit_gen *g, unsigned copy)
{
    LLVMValueRef further = LLVMConstInt(g->i32, copy * g->lanes, 0);
    g->w->first = LLVMGetParam(g->function, 1);
    g->w->save = LLVMGetParam(g->function, 2);
    if (copy == 0)
        return;
    g->w->first = LLVMBuildAdd(g->prelude, g->w->first, further, "");
    g->w->save = jit_at_offset(g, g->prelude, g->w->save, (uint64_t)copy * g->save_bytes);
}

static void emit_region(struct jit_gen *g, uint32_t r)
{
    const struct ir_region *region = &g->a->regions[r];
    g->region = r;
    reset_function_state(g);
    g->function = g->regions[r];
    g->block = LLVMGetParam(g->function, 0);
    g->ctaid_x = LLVMGetParam(g->function, 4);

    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(g->context, g->function, "start");
    for (uint32_t k = 0; k < region->blocks.count; k++) {
        uint32_t block = g->a->pool[region->blocks.first + k];
        char name[24];
        snprintf(name, sizeof(name), "b%u", block);
        g->entry[block] = LLVMAppendBasicBlockInContext(g->context, g->function, name);
        if (g->has_whole)
            g->whole_entry[block] = LLVMAppendBasicBlockInContext(g->context, g->function, "whole");
    }
    g->done = LLVMAppendBasicBlockInContext(g->context, g->function, "done");
    LLVMBasicBlockRef begin = LLVMAppendBasicBlockInContext(g->context, g->function, "begin");

    LLVMPositionBuilderAtEnd(g->prelude, start);
    jit_look_at_region(g);
    jit_choose_chains(g);
    jit_begin_frame(g);
    LLVMValueRef jump = LLVMBuildBr(g->prelude, begin);
    LLVMPositionBuilderBefore(g->prelude, jump);
    g->alive = jit_lanes_slot(g);
    LLVMBuildStore(g->prelude, g->full[r].begins ? jit_all_lanes(g) : LLVMGetParam(g->function, 3),
                   g->alive);
    jit_begin_waiting(g);
    for (unsigned c = 0; c < jit_copies(g); c++) {
        g->w = &g->warps[c];
        begin_warp(g, c);
        emit_thread_indices(g);
        restore_registers(g, region);
    }
    g->w = &g->warps[0];
    if (g->chains)
        jit_emit_chain(g);
    if (g->a->parking) {
        jit_emit_turn(g, begin);
    } else {
        LLVMPositionBuilderAtEnd(g->b, begin);
        jit_enter(g, region->start);
        LLVMPositionBuilderAtEnd(g->b, g->done);
        LLVMBuildRet(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_DONE, 1));
    }
    jit_emit_blocks(g);
    jit_finish_frame(g);
}

static void emit_info(struct jit_gen *g)
{
    const struct soft_object_info info = {
        .magic = SOFT_JOB_MAGIC,
        .abi = SOFT_ABI_VERSION,
        .save_bytes = g->save_bytes * (SOFT_WARP / g->lanes),
        .local_bytes = g->fn->local_bytes,
        .ntid = { g->options->ntid[0], g->options->ntid[1], g->options->ntid[2] },
        .row = g->row.blocks,
    };
    LLVMValueRef bytes =
        LLVMConstStringInContext2(g->context, (const char *)&info, sizeof(info), 1);
    LLVMValueRef v = LLVMAddGlobal(g->module, LLVMTypeOf(bytes), SOFT_INFO_SYMBOL);
    LLVMSetInitializer(v, bytes);
    LLVMSetGlobalConstant(v, 1);
    LLVMSetAlignment(v, 8);
}

/* Some lanes of a warp may return in the region, and others go on. */
static bool lanes_leave(const struct jit_gen *g, const struct ir_region *r)
{
    for (uint32_t k = 0; k < r->blocks.count; k++) {
        uint32_t b = g->a->pool[r->blocks.first + k];
        const struct ir_block *block = &g->fn->blocks[b];
        const struct ir_instr *last = &g->fn->instrs[block->first + block->count - 1];
        bool returns = last->op == IR_OP_RET || last->op == IR_OP_EXIT;
        if (g->a->blocks[b].early_exit ||
            (returns && (g->a->blocks[b].masked || last->guard != IR_NONE)))
            return true;
    }
    return false;
}

/* Regions behind this one begin without lanes that have left before. True if that is news. */
static bool pass_on(struct jit_gen *g, uint32_t r)
{
    const struct ir_list *blocks = &g->a->regions[r].blocks;
    bool changed = false;
    for (uint32_t k = 0; k < blocks->count && !g->full[r].stays; k++) {
        uint32_t next = g->a->resume[g->a->pool[blocks->first + k]];
        if (next == IR_NONE || !g->full[next].begins)
            continue;
        g->full[next].begins = g->full[next].stays = false;
        changed = true;
    }
    return changed;
}

/* Finds out which regions run with all lanes of each warp. */
static void look_at_warps(struct jit_gen *g)
{
    uint64_t threads = g->ntid[0] ? ir_threads(ir_thread_dims(g->fn), g->ntid) : 0;
    bool changed = true;
    g->threads = threads <= UINT16_MAX ? (uint32_t)threads : 0;
    g->full_warps = g->threads && g->threads % g->lanes == 0;
    g->has_whole = !g->large && !g->a->parking && g->fn->instr_count <= WHOLE_MAX;
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        g->full[r].begins = g->full_warps && !g->a->parking;
        g->full[r].stays = g->full[r].begins && !lanes_leave(g, &g->a->regions[r]);
    }
    while (changed) {
        changed = false;
        for (uint32_t r = 0; r < g->a->region_count; r++)
            changed |= pass_on(g, r);
    }
}

static void generate(struct jit_gen *g)
{
    jit_find_locals(g);
    g->large = g->options->large || jit_has_gatherings(g) || jit_promotes_long(g) ||
               (g->fn->instr_count <= LARGE_MAX && jit_is_large(g, OPERANDS_MAX));
    jit_choose_apart(g);
    look_at_warps(g);
    LLVMTypeRef params[] = { g->ptr, g->i32, g->ptr, g->i32, g->i32 };
    g->region_type = LLVMFunctionType(g->i32, params, 5, 0);
    g->flushes = jit_kernel_flushes(g->fn);
    for (uint32_t r = 0; r < g->fn->reg_count; r++)
        g->save_offset[r] = IR_NONE;
    lay_out_save_area(g);
    jit_choose_copies(g);
    jit_choose_row(g);
    jit_check_meetings(g);
    emit_fault_scalar(g);
    emit_fault_vector(g);
    for (uint32_t r = 0; r < g->a->region_count; r++) {
        char name[24];
        snprintf(name, sizeof(name), "region%u", r);
        g->regions[r] = jit_add_function(g, name, g->region_type, false);
    }
    bool in_line = !g->large && !g->a->parking &&
                   g->fn->instr_count <= (g->a->region_count == 1 ? INLINE_SIMPLE : INLINE_PHASED);
    for (uint32_t r = 0; r < g->a->region_count; r++)
        jit_set_attribute(g, g->regions[r], in_line ? "alwaysinline" : "noinline");
    for (uint32_t r = 0; r < g->a->region_count && !g->failed; r++)
        emit_region(g, r);
    g->i = NULL;
    if (!g->failed)
        jit_emit_block(g);
    emit_info(g);
}

/* An array of pointers or numbers; room for one even if none is needed. */
static void *array(size_t count, size_t size)
{
    return calloc(count + 1, size);
}

int jit_generate(struct jit_gen *g)
{
    int r = 0;
    bool memory = true;
    g->w = &g->warps[0];
    for (unsigned c = 0; c < JIT_COPIES_MAX; c++) {
        g->warps[c].regs = array(g->fn->reg_count, sizeof(*g->warps[c].regs));
        memory &= g->warps[c].regs != NULL;
    }
    g->other = array((size_t)g->fn->instr_count * JIT_COPIES_MAX, sizeof(*g->other));
    g->live_count = array(g->fn->block_count, sizeof(*g->live_count));
    g->crosses = array(g->a->live_words, sizeof(*g->crosses));
    g->named = array(g->a->live_words, sizeof(*g->named));
    g->written = array(g->a->live_words, sizeof(*g->written));
    g->save_offset = array(g->fn->reg_count, sizeof(*g->save_offset));
    g->waiting = array(g->fn->block_count, sizeof(*g->waiting));
    g->entry = array(g->fn->block_count, sizeof(*g->entry));
    g->whole_entry = array(g->fn->block_count, sizeof(*g->whole_entry));
    g->waits = array(g->fn->block_count, sizeof(*g->waits));
    g->place = array(g->fn->block_count, sizeof(*g->place));
    g->chain = array(g->fn->block_count, sizeof(*g->chain));
    g->join = array(g->fn->block_count, sizeof(*g->join));
    g->symbol = array(g->m->symbol_count, sizeof(*g->symbol));
    g->regions = array(g->a->region_count, sizeof(*g->regions));
    g->full = array(g->a->region_count, sizeof(*g->full));
    if (!memory || !g->live_count || !g->crosses || !g->named || !g->written || !g->other ||
        !g->save_offset || !g->waiting || !g->entry || !g->whole_entry || !g->join || !g->waits ||
        !g->place || !g->chain || !g->symbol || !g->regions || !g->full) {
        r = -ENOMEM;
    } else if (g->a->divergent_barrier) {
        jit_unsupported(g, "line %u: barrier in divergent code", g->a->divergent_barrier_line);
        r = -ENOTSUP;
    } else {
        init_types(g);
        g->b = LLVMCreateBuilderInContext(g->context);
        g->prelude = LLVMCreateBuilderInContext(g->context);
        generate(g);
        LLVMDisposeBuilder(g->b);
        LLVMDisposeBuilder(g->prelude);
        r = g->failed ? -ENOTSUP : 0;
    }
    for (unsigned c = 0; c < JIT_COPIES_MAX; c++)
        free(g->warps[c].regs);
    free(g->other);
    free(g->live_count);
    free(g->crosses);
    free(g->named);
    free(g->written);
    free(g->save_offset);
    free(g->waiting);
    free(g->entry);
    free(g->whole_entry);
    free(g->join);
    free(g->waits);
    free(g->place);
    free(g->chain);
    free(g->symbol);
    free(g->regions);
    free(g->full);
    return r;
}
