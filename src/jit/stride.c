/*
 * Lanes whose elements lie apart by a constant: a column of a tile in shared memory, a field of a
 * structure. Their addresses are lane 0's and constants, so where gathers are slow the elements are
 * loaded and put into the register one by one, which takes less than half of a gather's time; and
 * stored one by one instead of a scatter.
 *
 * That is many instructions, which take LLVM's optimiser long and leave it nothing to do. So it
 * sees a call, of a function for each stride, and that is inlined behind it (target.c).
 */
#include "jit/gen.h"

#include <stdio.h>
#include <string.h>

#include "jit/target.h"

#define SPAN_MAX (1u << 16) /* bytes from the first lane to the last one */

bool jit_is_strided(const struct jit_gen *g, uint32_t at)
{
    const struct ir_instr *i = &g->fn->instrs[at];
    const struct ir_instr_info *info = &g->a->instrs[at];
    const uint64_t by = (uint64_t)info->address_stride, size = ir_types[i->type].size;
    const uint64_t stride = info->address_stride < 0 ? -by : by;
    return info->address == IR_AFFINE && (i->op == IR_OP_ST ? i->src_count : i->dst_count) == 1 &&
           stride % size == 0 && stride <= SPAN_MAX / JIT_LANES_MAX && !g->target->gathers &&
           !g->large && !g->checks_all &&
           (i->space == IR_SPACE_SHARED || i->space == IR_SPACE_GLOBAL ||
            i->space == IR_SPACE_CONST);
}

LLVMValueRef jit_stride_is_good(struct jit_gen *g, const struct jit_access *x, LLVMValueRef address,
                                bool covered)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    bool shared = g->i->space == IR_SPACE_SHARED;
    int64_t span = info->address_stride * (int64_t)(g->lanes - 1);
    if (span < 0) {
        address = LLVMBuildAdd(g->b, address, jit_c64(g, (uint64_t)span), "");
        span = -span;
    }
    LLVMValueRef good = LLVMConstInt(g->i1, 1, 0);
    if (!covered)
        good = jit_span_is_good(g, address, (uint64_t)span, x->size);
    /* shared memory is there for all lanes, but only some may write */
    if (!shared || x->store)
        good = LLVMBuildAnd(g->b, good, jit_is_full(g, x->active), "");
    if (!shared && info->address_may_wrap)
        good =
            LLVMBuildAnd(g->b, good, LLVMBuildNot(g->b, jit_wraps(g, g->i->address.base), ""), "");
    return good;
}

/* The function's code: lanes' elements from `p` on, as a vector, or `v` to there. */
static void emit_lanes(struct jit_gen *g, const struct jit_access *x, LLVMBuilderRef b,
                       LLVMValueRef p, LLVMValueRef v, int64_t stride)
{
    LLVMValueRef all = x->store ? v : LLVMGetPoison(jit_vec(g, x->element));
    for (unsigned l = 0; l < g->lanes; l++) {
        LLVMValueRef at = jit_at_offset(g, b, p, (uint64_t)(stride * l)), one;
        if (x->store) {
            one = LLVMBuildExtractElement(b, all, jit_c32(g, l), "");
            LLVMSetAlignment(LLVMBuildStore(b, one, at), x->esize);
        } else {
            one = LLVMBuildLoad2(b, x->element, at, "");
            LLVMSetAlignment(one, x->esize);
            all = LLVMBuildInsertElement(b, all, one, jit_c32(g, l), "");
        }
    }
    if (x->store)
        LLVMBuildRetVoid(b);
    else
        LLVMBuildRet(b, all);
}

void jit_access_strided(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    int64_t stride = g->a->instrs[g->at_instr].address_stride;
    LLVMTypeRef t = jit_vec(g, x->element), params[] = { g->ptr, t };
    LLVMTypeRef type = LLVMFunctionType(x->store ? LLVMVoidTypeInContext(g->context) : t, params,
                                        x->store ? 2 : 1, 0);
    char name[64];
    snprintf(name, sizeof(name), "%s_%u_%u_%lld", x->store ? "store" : "load", (unsigned)x->type,
             g->lanes, (long long)stride);
    LLVMValueRef f = LLVMGetNamedFunction(g->module, name);
    if (!f) {
        f = jit_add_function(g, name, type, false);
        jit_set_attribute(g, f, "noinline");
        jit_set_attribute(g, f, "willreturn");
        unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6);
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(g->context, memory, x->store ? 2 : 1));
        LLVMAddAttributeAtIndex(
            f, LLVMAttributeFunctionIndex,
            LLVMCreateStringAttribute(g->context, JIT_LATE, strlen(JIT_LATE), "", 0));
        LLVMBuilderRef b = LLVMCreateBuilderInContext(g->context);
        LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(g->context, f, "start"));
        emit_lanes(g, x, b, LLVMGetParam(f, 0), x->store ? LLVMGetParam(f, 1) : NULL, stride);
        LLVMDisposeBuilder(b);
    }
    LLVMValueRef args[] = { p, x->store ? x->value[0] : NULL };
    LLVMValueRef v = LLVMBuildCall2(g->b, type, f, args, x->store ? 2 : 1, "");
    if (!x->store)
        LLVMBuildStore(g->b, v, x->value[0]);
}
