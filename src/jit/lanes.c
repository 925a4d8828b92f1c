/*
 * What is done one lane after the other: calls of host functions, traps.
 */
#include "jit/gen.h"

#include "device/soft/exec/helpers.h"

void jit_lanes_begin(struct jit_gen *g, struct jit_lane_loop *l, LLVMValueRef bits)
{
    jit_lanes_begin_turned(g, l, bits, 0);
}

void jit_lanes_begin_turned(struct jit_gen *g, struct jit_lane_loop *l, LLVMValueRef bits,
                            unsigned turn)
{
    if (turn)
        bits = jit_bits(g, jit_turned(g, jit_lanes(g, bits), turn));
    l->left = jit_alloca(g, g->i32, "left");
    l->head = jit_new_block(g, "lanes");
    l->body = jit_new_block(g, "lane");
    l->exit = jit_new_block(g, "");
    LLVMBuildStore(g->b, bits, l->left);
    LLVMBuildBr(g->b, l->head);
    jit_position(g, l->head);
    LLVMValueRef left = LLVMBuildLoad2(g->b, g->i32, l->left, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, left, jit_c32(g, 0), ""), l->body,
                    l->exit);
    jit_position(g, l->body);
    LLVMValueRef args[] = { left, LLVMConstInt(g->i1, 0, 0) };
    l->lane =
        LLVMBuildAnd(g->b, jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2), jit_c32(g, 31), "");
    LLVMValueRef less = LLVMBuildSub(g->b, left, jit_c32(g, 1), "");
    LLVMBuildStore(g->b, LLVMBuildAnd(g->b, left, less, ""), l->left);
    if (turn)
        l->lane = LLVMBuildXor(g->b, l->lane, jit_c32(g, turn), "");
}

void jit_lanes_end(struct jit_gen *g, struct jit_lane_loop *l)
{
    LLVMBuildBr(g->b, l->head);
    jit_position(g, l->exit);
}

static LLVMValueRef thread_of(struct jit_gen *g, LLVMValueRef lane)
{
    return LLVMBuildAdd(g->b, g->w->first, lane, "");
}

/* The kernel ends here with that outcome. */
static void emit_end(struct jit_gen *g, enum soft_outcome outcome)
{
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_FAULT(outcome), 1));
    jit_position(g, jit_new_block(g, "never"));
}

/* A helper of type soft_helper, at that offset of the table. */
static void emit_call(struct jit_gen *g, size_t offset)
{
    LLVMTypeRef params[] = { g->ptr, g->i32, g->i64, g->i64 };
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 4, 0);
    LLVMValueRef first = jit_src(g, &g->i->src[0], IR_U64, true),
                 second = jit_src(g, &g->i->src[1], IR_U64, true);
    LLVMValueRef result = jit_alloca(g, jit_vec(g, g->i32), "");
    LLVMBasicBlockRef fault = jit_new_block(g, "fault");
    LLVMBuildStore(g->b, LLVMConstNull(jit_vec(g, g->i32)), result);
    struct jit_lane_loop l;
    jit_lanes_begin(g, &l, jit_active(g));
    LLVMValueRef args[] = { g->block, thread_of(g, l.lane), jit_pick(g, first, l.lane),
                            jit_pick(g, second, l.lane) };
    LLVMValueRef r = LLVMBuildCall2(g->b, type, jit_helper_function(g, offset), args, 4, "");
    LLVMValueRef all = LLVMBuildLoad2(g->b, jit_vec(g, g->i32), result, "");
    LLVMBuildStore(g->b, LLVMBuildInsertElement(g->b, all, r, l.lane, ""), result);
    jit_branch_unlikely(
        g, LLVMBuildICmp(g->b, LLVMIntEQ, r, jit_c32(g, (uint32_t)SOFT_HELPER_FAULT), ""), fault);
    jit_lanes_end(g, &l);
    LLVMBasicBlockRef next = LLVMGetInsertBlock(g->b);
    jit_position(g, fault);
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_FAULT(SOFT_FAULT_ADDRESS), 1));
    jit_position(g, next);
    if (g->i->dst_count)
        jit_set(g, 0, LLVMBuildLoad2(g->b, jit_vec(g, g->i32), result, ""));
}

static LLVMValueRef first_active(struct jit_gen *g)
{
    LLVMValueRef args[] = { jit_active(g), LLVMConstInt(g->i1, 0, 0) };
    return LLVMBuildAnd(g->b, jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2), jit_c32(g, 31),
                        "");
}

static void emit_assertion(struct jit_gen *g)
{
    LLVMTypeRef params[] = { g->ptr, g->i32, g->i64, g->i64, g->i32, g->i64 };
    LLVMTypeRef type = LLVMFunctionType(g->nothing, params, 6, 0);
    LLVMValueRef lane = first_active(g);
    LLVMValueRef args[] = { g->block,
                            thread_of(g, lane),
                            jit_pick(g, jit_src(g, &g->i->src[0], IR_U64, true), lane),
                            jit_pick(g, jit_src(g, &g->i->src[1], IR_U64, true), lane),
                            jit_pick(g, jit_src(g, &g->i->src[2], IR_U32, true), lane),
                            jit_pick(g, jit_src(g, &g->i->src[3], IR_U64, true), lane) };
    LLVMBuildCall2(g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, assert_fail)),
                   args, 6, "");
    emit_end(g, SOFT_FAULT_ASSERT);
}

void jit_emit_helper(struct jit_gen *g)
{
    switch (g->i->target) {
    case IR_HELPER_VPRINTF:
        emit_call(g, offsetof(struct soft_helpers, vprintf));
        return;
    case IR_HELPER_CHILD_BYTES:
        emit_call(g, offsetof(struct soft_helpers, child_bytes));
        return;
    case IR_HELPER_CHILD_LAUNCH:
        emit_call(g, offsetof(struct soft_helpers, child_launch));
        return;
    case IR_HELPER_ASSERTFAIL:
        emit_assertion(g);
        return;
    default:
        jit_unsupported(g, "host function %u", g->i->target);
    }
}

void jit_emit_trap(struct jit_gen *g)
{
    LLVMValueRef at = LLVMConstInt(g->i64, offsetof(struct soft_block, fault_thread), 0);
    LLVMBuildStore(g->b, thread_of(g, first_active(g)),
                   LLVMBuildGEP2(g->b, g->i8, g->block, &at, 1, ""));
    emit_end(g, g->i->mode == IR_TRAP_PC ? SOFT_FAULT_PC : SOFT_FAULT_TRAP);
}
