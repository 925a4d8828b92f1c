/*
 * Loads and stores of shared memory by lanes that differ by constants (device/soft/ir/pattern.c):
 * butterflies of a sort or a Fourier transform, `s[tid ^ 1]`, `s[2 * tid - (tid & 3)]`. Between the
 * first and the last of the lanes' elements lies at most what the guard zone covers. It is loaded
 * as a whole, and a shuffle that is known now gives each lane its element; for a store the elements
 * go to their places in it, and it is stored as a whole. No other thread sees that: blocks are run
 * by one. Gathers take longer, and longer still where scattered elements are read again.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"

#define OFFSET_MAX (1 << 20)

struct span {
    unsigned elements;        /* a power of two */
    int64_t from;             /* first byte, relative to lane 0's */
    int index[JIT_LANES_MAX]; /* index of each lane's element */
};

/* Finds where the lanes' accesses are, relative to a multiple of 1 << align that all lanes share.
 * */
static bool find_lanes(const struct jit_gen *g, int64_t at[JIT_LANES_MAX], unsigned *align)
{
    const struct ir_address *a = &g->i->address;
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    const struct ir_pattern *p = a->base == IR_NONE ? NULL : jit_pattern_of(g, a->base);
    bool affine = info->address == IR_AFFINE && !info->address_may_wrap;
    int64_t stride = info->address_stride, offset = a->displacement;
    if (info->address != IR_PATTERN && !affine)
        return false;
    if (stride > SOFT_SHARED_GUARD || stride < 0 || offset < -OFFSET_MAX || offset > OFFSET_MAX)
        return false;
    *align = p && a->symbol == IR_NONE ? p->align : 0;
    for (unsigned l = 0; l < g->lanes; l++)
        at[l] = offset + (p ? (int64_t)p->at[l] : stride * (int64_t)l);
    return true;
}

static bool find_span(const struct jit_gen *g, unsigned size, struct span *s)
{
    int64_t at[JIT_LANES_MAX] = { 0 }, low, high;
    unsigned align;
    if (!find_lanes(g, at, &align))
        return false;
    low = high = at[0];
    for (unsigned l = 1; l < g->lanes; l++) {
        low = GM_MIN(low, at[l]);
        high = GM_MAX(high, at[l]);
    }
    s->elements = 1;
    while (s->elements * size <= high - low && s->elements * size < SOFT_SHARED_GUARD)
        s->elements *= 2;
    /* Whole aligned pieces if the span is no longer than one, so that several accesses share what
     * is loaded. */
    int64_t whole = GM_MIN(INT64_C(1) << align, (int64_t)(s->elements * size));
    int64_t from = low >= 0 ? low / whole * whole : low;
    if (high - from < s->elements * size)
        low = from;
    s->from = low - at[0];
    for (unsigned l = 0; l < g->lanes; l++) {
        if ((at[l] - low) % size)
            return false;
        s->index[l] = (int)((at[l] - low) / size);
    }
    return high - low < s->elements * size && s->elements <= 8 * g->lanes;
}

/* No two lanes have the same element. */
static bool is_distinct(const struct jit_gen *g, const struct span *s)
{
    bool taken[8 * JIT_LANES_MAX] = { false };
    for (unsigned l = 0; l < g->lanes; l++) {
        if (taken[s->index[l]])
            return false;
        taken[s->index[l]] = true;
    }
    return true;
}

bool jit_has_pattern(const struct jit_gen *g, bool store, unsigned size)
{
    struct span s;
    return g->i->space == IR_SPACE_SHARED && !g->by_lane && find_span(g, size, &s) &&
           (!store || is_distinct(g, &s));
}

/* Where the span begins, masked as a whole. */
static LLVMValueRef place(struct jit_gen *g, const struct span *s, unsigned size,
                          LLVMValueRef active)
{
    LLVMValueRef address = jit_address(g, false);
    if (size > 1)
        jit_check_shared_alignment(g, address, active, size);
    LLVMValueRef from = LLVMConstInt(g->i32, (uint64_t)s->from, 1);
    return jit_shared_span(g, LLVMBuildAdd(g->b, jit_low32(g, address), from, ""), size);
}

static LLVMValueRef load_span(struct jit_gen *g, const struct span *s, LLVMTypeRef element,
                              unsigned size, LLVMValueRef p)
{
    LLVMValueRef all = LLVMBuildLoad2(g->b, LLVMVectorType(element, s->elements), p, "");
    LLVMSetAlignment(all, size);
    return all;
}

static LLVMValueRef pick_lanes(struct jit_gen *g, const struct span *s, LLVMValueRef all)
{
    return jit_shuffle(g, all, LLVMGetPoison(LLVMTypeOf(all)), s->index, g->lanes);
}

LLVMValueRef jit_load_pattern(struct jit_gen *g, LLVMTypeRef element, unsigned size,
                              LLVMValueRef active)
{
    struct span s;
    (void)find_span(g, size, &s);
    return pick_lanes(g, &s, load_span(g, &s, element, size, place(g, &s, size, active)));
}

void jit_store_pattern(struct jit_gen *g, LLVMValueRef value, unsigned size, LLVMValueRef active)
{
    struct span s;
    (void)find_span(g, size, &s);
    LLVMValueRef p = place(g, &s, size, active);
    LLVMValueRef all = load_span(g, &s, LLVMGetElementType(LLVMTypeOf(value)), size, p);
    int spread[8 * JIT_LANES_MAX], blend[8 * JIT_LANES_MAX];
    value = jit_select(g, jit_lanes(g, active), value, pick_lanes(g, &s, all));
    for (unsigned n = 0; n < s.elements; n++) {
        spread[n] = -1;
        blend[n] = (int)n;
    }
    for (unsigned l = 0; l < g->lanes; l++) {
        spread[s.index[l]] = (int)l;
        blend[s.index[l]] = (int)(s.elements + (unsigned)s.index[l]);
    }
    value = jit_shuffle(g, value, LLVMGetPoison(LLVMTypeOf(value)), spread, s.elements);
    LLVMSetAlignment(LLVMBuildStore(g->b, jit_shuffle(g, all, value, blend, s.elements), p), size);
}
