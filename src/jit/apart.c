/*
 * Functions for loads and stores at generic addresses. It takes some hundred instructions to find
 * out which space each lane's address is in. A kernel that nvcc compiled without optimisation
 * accesses nearly all of its variables so, thousands of times, and most of the time that LLVM took
 * for it was for these. A large kernel therefore has one function for each kind of access, and
 * calls it. Values go by way of memory: a row for each element.
 */
#include "jit/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel with as many of these accesses has functions for them, too: in line they take LLVM a
 * second, but run faster, as one check serves several accesses. */
#define GENERIC_MIN 400u

void jit_choose_apart(struct jit_gen *g)
{
    uint32_t generic = 0;
    for (uint32_t n = 0; n < g->fn->instr_count; n++) {
        const struct ir_instr *i = &g->fn->instrs[n];
        generic += (i->op == IR_OP_LD || i->op == IR_OP_ST) && i->space == IR_SPACE_GENERIC;
    }
    g->apart = g->large || generic >= GENERIC_MIN;
}

bool jit_is_apart(const struct jit_gen *g, const struct jit_access *x)
{
    return g->apart && g->i->space == IR_SPACE_GENERIC && !x->address;
}

/* The function's code: the access as it would stand in the kernel, of addresses and lanes that are
 * its parameters. Returns 0 or what a region returns of a fault. */
static void emit_function(struct jit_gen *g, LLVMValueRef f, const struct jit_access *of,
                          void (*emit)(struct jit_gen *g, struct jit_access *x))
{
    struct jit_gen *outer = malloc(sizeof(*outer));
    struct jit_access x = *of;
    if (!outer) {
        jit_unsupported(g, "out of memory");
        return;
    }
    *outer = *g;
    g->b = LLVMCreateBuilderInContext(g->context);
    g->prelude = LLVMCreateBuilderInContext(g->context);
    g->function = f;
    g->block = LLVMGetParam(f, 0);
    g->w->first = LLVMGetParam(f, 1);
    g->faulted = g->places = NULL;
    memset(g->cached, 0, sizeof(g->cached));
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(g->context, f, "start"),
                      body = LLVMAppendBasicBlockInContext(g->context, f, "body");
    LLVMPositionBuilderAtEnd(g->prelude, start);
    LLVMPositionBuilderBefore(g->prelude, LLVMBuildBr(g->prelude, body));
    jit_position(g, body);
    x.address = LLVMGetParam(f, 2);
    x.active = LLVMGetParam(f, 3);
    for (unsigned k = 0; k < x.count; k++) {
        LLVMValueRef row = jit_at_offset(g, g->b, LLVMGetParam(f, 4), k * JIT_ROW);
        if (x.store) {
            x.value[k] = LLVMBuildLoad2(g->b, jit_vec(g, x.element), row, "");
            LLVMSetAlignment(x.value[k], 8);
        } else {
            x.value[k] = jit_alloca(g, jit_vec(g, x.element), "");
            LLVMBuildStore(g->b, LLVMConstNull(jit_vec(g, x.element)), x.value[k]);
        }
    }
    emit(g, &x);
    for (unsigned k = 0; k < x.count && !x.store; k++) {
        LLVMValueRef row = jit_at_offset(g, g->b, LLVMGetParam(f, 4), k * JIT_ROW);
        LLVMValueRef v = LLVMBuildLoad2(g->b, jit_vec(g, x.element), x.value[k], "");
        LLVMSetAlignment(LLVMBuildStore(g->b, v, row), 8);
    }
    LLVMBuildRet(g->b, LLVMConstInt(g->i32, 0, 0));
    LLVMDisposeBuilder(g->b);
    LLVMDisposeBuilder(g->prelude);
    outer->failed = g->failed;
    memcpy(outer->reason, g->reason, sizeof(outer->reason));
    *g = *outer;
    free(outer);
}

void jit_access_apart(struct jit_gen *g, struct jit_access *x,
                      void (*emit)(struct jit_gen *g, struct jit_access *x))
{
    LLVMTypeRef params[] = { g->ptr, g->i32, x->same ? g->i64 : jit_vec(g, g->i64), g->i32,
                             g->ptr };
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 5, 0);
    char name[64];
    snprintf(name, sizeof(name), "%s%s_%u_%u_%u", x->store ? "put" : "get", x->same ? "_same" : "",
             (unsigned)x->type, x->count, x->store ? jit_store_turn(g, x->size) : 0);
    LLVMValueRef f = LLVMGetNamedFunction(g->module, name);
    if (!f) {
        f = jit_add_function(g, name, type, false);
        jit_set_attribute(g, f, "noinline");
        emit_function(g, f, x, emit);
    }
    for (unsigned k = 0; k < x->count && x->store; k++)
        LLVMSetAlignment(LLVMBuildStore(g->b, x->value[k], jit_row_place(g, 1 + k)), 8);
    LLVMValueRef args[] = { g->block, g->w->first, jit_address(g, !x->same), x->active,
                            jit_row_place(g, 1) };
    LLVMValueRef r = LLVMBuildCall2(g->b, type, f, args, 5, "");
    LLVMValueRef bad = LLVMBuildICmp(g->b, LLVMIntNE, r, LLVMConstInt(g->i32, 0, 0), "");
    jit_branch_unlikely(g, bad, jit_faulted(g, r));
    for (unsigned k = 0; k < x->count && !x->store; k++) {
        LLVMValueRef v = LLVMBuildLoad2(g->b, jit_vec(g, x->element), jit_row_place(g, 1 + k), "");
        LLVMSetAlignment(v, 8);
        LLVMBuildStore(g->b, v, x->value[k]);
    }
}
