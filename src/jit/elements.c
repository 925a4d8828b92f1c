/*
 * Several elements that have an order (relaxed, volatile and so on), of 16 bytes at most, are
 * accessed in one piece. A GPU does that, and programs count on it: CUB publishes a value together
 * with its state. LLVM has no atomic vectors; of 16 bytes they are one instruction all the same,
 * which processors with AVX make in one piece.
 */
#include "jit/elements.h"

#include "device/soft/ir/lanes.h"

bool jit_is_ordered(const struct jit_gen *g)
{
    return g->i->order != IR_ORDER_WEAK && g->i->space != IR_SPACE_SHARED &&
           g->i->space != IR_SPACE_LOCAL;
}

static bool is_whole(const struct jit_gen *g, const struct jit_access *x)
{
    return x->count > 1 && x->size <= IR_WHOLE_BYTES && jit_is_ordered(g);
}

/* Gives a load or store of one element, or of 8 bytes at most, the order that the instruction has:
 * the compiler neither merges nor drops it. */
static void set_order(const struct jit_gen *g, LLVMValueRef access, bool store)
{
    LLVMAtomicOrdering order = LLVMAtomicOrderingMonotonic;
    if (!jit_is_ordered(g))
        return;
    switch (g->i->order) {
    case IR_ORDER_ACQUIRE:
    case IR_ORDER_RELEASE:
    case IR_ORDER_ACQ_REL:
        order = store ? LLVMAtomicOrderingRelease : LLVMAtomicOrderingAcquire;
        break;
    case IR_ORDER_SC:
        order = LLVMAtomicOrderingSequentiallyConsistent;
        break;
    default:
        break;
    }
    LLVMSetVolatile(access, 1);
    LLVMSetOrdering(access, order);
}

static LLVMTypeRef elements(const struct jit_access *x)
{
    return LLVMVectorType(x->element, x->count);
}

static LLVMTypeRef in_memory(const struct jit_gen *g, const struct jit_access *x)
{
    return x->size == IR_WHOLE_BYTES ? elements(x) : LLVMIntTypeInContext(g->context, x->size * 8);
}

/* Gives an access of 16 bytes its order, of which only the compiler needs to know; but a store that
 * is seen by all in one order is waited for. */
static void order_vector(const struct jit_gen *g, LLVMValueRef access)
{
    LLVMSetVolatile(access, 1);
    LLVMSetAlignment(access, IR_WHOLE_BYTES);
    LLVMAtomicOrdering order = g->i->order == IR_ORDER_SC ? LLVMAtomicOrderingSequentiallyConsistent
                                                          : LLVMAtomicOrderingAcquireRelease;
    if (g->i->order != IR_ORDER_RELAXED && g->i->order != IR_ORDER_VOLATILE)
        LLVMBuildFence(g->b, order, false, "");
}

static void load_whole(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                       LLVMValueRef *values)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, in_memory(g, x), p, "");
    if (x->size == IR_WHOLE_BYTES) {
        order_vector(g, v);
    } else {
        LLVMSetAlignment(v, x->size);
        set_order(g, v, false);
        v = LLVMBuildBitCast(g->b, v, elements(x), "");
    }
    for (unsigned k = 0; k < x->count; k++)
        values[k] = LLVMBuildExtractElement(g->b, v, jit_c32(g, k), "");
}

static void store_whole(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                        const LLVMValueRef *values)
{
    LLVMValueRef v = LLVMGetPoison(elements(x));
    for (unsigned k = 0; k < x->count; k++)
        v = LLVMBuildInsertElement(g->b, v, values[k], jit_c32(g, k), "");
    if (x->size < IR_WHOLE_BYTES) {
        v = LLVMBuildStore(g->b, LLVMBuildBitCast(g->b, v, in_memory(g, x), ""), p);
        LLVMSetAlignment(v, x->size);
        set_order(g, v, true);
        return;
    }
    if (g->i->order != IR_ORDER_RELAXED && g->i->order != IR_ORDER_VOLATILE)
        LLVMBuildFence(g->b, LLVMAtomicOrderingRelease, false, "");
    order_vector(g, LLVMBuildStore(g->b, v, p));
}

static LLVMValueRef element(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                            unsigned k)
{
    return k ? jit_byte_pointer(g, p, jit_c64(g, k * x->esize)) : p;
}

void jit_load_elements(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                       LLVMValueRef *values)
{
    if (is_whole(g, x)) {
        load_whole(g, x, p, values);
        return;
    }
    for (unsigned k = 0; k < x->count; k++) {
        values[k] = LLVMBuildLoad2(g->b, x->element, element(g, x, p, k), "");
        LLVMSetAlignment(values[k], x->esize);
        set_order(g, values[k], false);
    }
}

void jit_store_elements(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                        const LLVMValueRef *values)
{
    if (is_whole(g, x)) {
        store_whole(g, x, p, values);
        return;
    }
    for (unsigned k = 0; k < x->count; k++) {
        LLVMValueRef s = LLVMBuildStore(g->b, values[k], element(g, x, p, k));
        LLVMSetAlignment(s, x->esize);
        set_order(g, s, true);
    }
}
