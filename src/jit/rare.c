/*
 * Loads and stores of one lane after the other, for processors without sets of lanes: what hardly
 * ever runs, such as the accesses behind a check that fails at the edge of memory only, and stores
 * to places anywhere, for which those processors have no instruction. LLVM would make a branch for
 * each lane; a loop over the lanes is shorter by far, and most of a kernel's accesses have such a
 * form beside the fast one. Addresses and values go by way of memory.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"

LLVMValueRef jit_row_place(struct jit_gen *g, unsigned k)
{
    if (!g->places)
        g->places =
            jit_alloca(g, LLVMArrayType(g->i64, (IR_MAX_DST + 1) * JIT_LANES_MAX), "places");
    return jit_at_offset(g, g->b, g->places, k * JIT_ROW);
}

static LLVMValueRef lane_of(struct jit_gen *g, LLVMTypeRef t, unsigned k, LLVMValueRef lane)
{
    return LLVMBuildGEP2(g->b, t, jit_row_place(g, k), &lane, 1, "");
}

static void put_row(struct jit_gen *g, unsigned k, LLVMValueRef v)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, v, jit_row_place(g, k)), 8);
}

static LLVMValueRef get_row(struct jit_gen *g, unsigned k, LLVMTypeRef element)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, jit_vec(g, element), jit_row_place(g, k), "");
    LLVMSetAlignment(v, 8);
    return v;
}

/* A global address is checked when its lane comes. */
static bool is_checked_late(const struct jit_gen *g)
{
    return g->i->space == IR_SPACE_GLOBAL || g->i->space == IR_SPACE_CONST;
}

static void check_lane(struct jit_gen *g, LLVMValueRef address, LLVMValueRef lane, unsigned size)
{
    LLVMBasicBlockRef fault = jit_new_block(g, "fault");
    jit_branch_unlikely(g, jit_outside_window(g, address, size), fault);
    LLVMBasicBlockRef next = LLVMGetInsertBlock(g->b);
    jit_position(g, fault);
    jit_emit_fault(g, address, LLVMBuildShl(g->b, LLVMConstInt(g->i32, 1, 0), lane, ""), size);
    jit_position(g, next);
}

void jit_access_by_lane(struct jit_gen *g, struct jit_access *x)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    bool late = is_checked_late(g);
    bool line = late && info->address == IR_AFFINE && !info->address_may_wrap;
    LLVMValueRef address = x->address ? x->address : jit_address(g, !line), at;
    struct jit_lane_loop l;
    if (!line)
        put_row(g, 0, late ? address : jit_host_vector(g, address, x->active, x->size));
    for (unsigned k = 0; k < x->count; k++)
        put_row(g, 1 + k, x->store ? x->value[k] : LLVMConstNull(jit_vec(g, x->element)));
    jit_lanes_begin_turned(g, &l, x->active, x->store ? jit_store_turn(g, x->size) : 0);
    if (line) {
        LLVMValueRef stride = LLVMConstInt(g->i64, (uint64_t)info->address_stride, 1);
        at = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, l.lane, g->i64, ""), stride, "");
        at = LLVMBuildAdd(g->b, address, at, "");
    } else {
        at = LLVMBuildLoad2(g->b, g->i64, lane_of(g, g->i64, 0, l.lane), "");
    }
    if (late)
        check_lane(g, at, l.lane, x->size);
    for (unsigned k = 0; k < x->count; k++) {
        LLVMValueRef place = LLVMConstInt(g->i64, k * x->esize, 0),
                     here = lane_of(g, x->element, 1 + k, l.lane);
        place = LLVMBuildIntToPtr(g->b, LLVMBuildAdd(g->b, at, place, ""), g->ptr, "");
        LLVMValueRef v = LLVMBuildLoad2(g->b, x->element, x->store ? here : place, "");
        LLVMSetAlignment(v, x->esize);
        LLVMSetAlignment(LLVMBuildStore(g->b, v, x->store ? place : here), x->esize);
    }
    jit_lanes_end(g, &l);
    for (unsigned k = 0; k < x->count && !x->store; k++)
        LLVMBuildStore(g->b, get_row(g, 1 + k, x->element), x->value[k]);
}
