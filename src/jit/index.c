/*
 * Loads from an array at an index that is another in each lane. Programs compute such an address as
 * a pointer that all lanes share and an index of 32 bits times the element's size. 32 addresses of
 * 64 bits are twice the registers that the indices are.
 *
 * With AVX-512 the processor gathers by indices; these are compared with the first and the last one
 * that is in place, which hang on the pointer only. Without, each address would have to be taken
 * out of its register: there the smallest and the largest index are checked, and the indices go to
 * memory, from where each lane's load has it.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"
#include "jit/target.h"

/* base + extended(index) * scale */
struct indexed {
    uint32_t base, index; /* registers */
    uint64_t scale;
    bool sign;
};

static bool writes(const struct ir_instr *i, uint32_t reg)
{
    for (unsigned d = 0; d < i->dst_count; d++)
        if (i->dst[d] == reg)
            return true;
    return i->dst_pred == reg;
}

/* The last instruction before `at` in its block that writes the register; IR_NONE: none does. */
static uint32_t last_write(const struct jit_gen *g, uint32_t reg, uint32_t at)
{
    uint32_t first = g->fn->blocks[g->at_block].first;
    while (at > first)
        if (writes(&g->fn->instrs[--at], reg))
            return at;
    return IR_NONE;
}

/* A product of an index and the size, which is `reg` before instruction `at`. */
static bool find_product(const struct jit_gen *g, uint32_t reg, uint32_t at, struct indexed *x)
{
    uint32_t mul = last_write(g, reg, at);
    if (mul == IR_NONE)
        return false;
    const struct ir_instr *i = &g->fn->instrs[mul];
    if (i->op != IR_OP_MUL || i->mode != IR_MUL_WIDE || i->guard != IR_NONE ||
        ir_types[i->type].size != 4 || i->src[0].kind != IR_SRC_REG ||
        i->src[1].kind != IR_SRC_IMM || !gm_is_pow2(i->src[1].bits) || i->src[1].bits > 8)
        return false;
    x->index = i->src[0].index;
    x->scale = i->src[1].bits;
    x->sign = ir_type_is_signed((enum ir_type)i->type);
    uint32_t again = last_write(g, x->index, g->at_instr);
    return ir_types[g->fn->regs[x->index].type].size == 4 && jit_shape(g, x->index) == IR_VARYING &&
           (again == IR_NONE || again < mul);
}

/* The current instruction's address is of that form. */
static bool find_indexed(const struct jit_gen *g, struct indexed *x)
{
    const struct ir_address *a = &g->i->address;
    uint32_t add =
        a->base == IR_NONE || a->symbol != IR_NONE ? IR_NONE : last_write(g, a->base, g->at_instr);
    if (add == IR_NONE)
        return false;
    const struct ir_instr *i = &g->fn->instrs[add];
    if (i->op != IR_OP_ADD || ir_types[i->type].size != 8 || i->guard != IR_NONE ||
        ir_type_is_float((enum ir_type)i->type) || i->src[0].kind != IR_SRC_REG ||
        i->src[1].kind != IR_SRC_REG)
        return false;
    for (unsigned k = 0; k < 2; k++) {
        x->base = i->src[k].index;
        uint32_t again = last_write(g, x->base, g->at_instr);
        if (jit_shape(g, x->base) == IR_UNIFORM && ir_types[g->fn->regs[x->base].type].size == 8 &&
            (again == IR_NONE || again < add) && find_product(g, i->src[1 - k].index, add, x))
            return true;
    }
    return false;
}

/* Address of one lane's element. */
static LLVMValueRef address_of(struct jit_gen *g, const struct indexed *x, LLVMValueRef base,
                               LLVMValueRef index)
{
    index =
        x->sign ? LLVMBuildSExt(g->b, index, g->i64, "") : LLVMBuildZExt(g->b, index, g->i64, "");
    LLVMValueRef scale = LLVMConstInt(g->i64, x->scale, 0);
    return LLVMBuildAdd(g->b, base, LLVMBuildMul(g->b, index, scale, ""), "");
}

/* i1: the elements from the smallest to the largest index are all in place. */
static LLVMValueRef is_good(struct jit_gen *g, const struct indexed *x, LLVMValueRef base,
                            LLVMValueRef index, unsigned size)
{
    const char *min = x->sign ? "llvm.vector.reduce.smin" : "llvm.vector.reduce.umin",
               *max = x->sign ? "llvm.vector.reduce.smax" : "llvm.vector.reduce.umax";
    LLVMValueRef low = address_of(g, x, base, jit_call1(g, min, index)),
                 high = address_of(g, x, base, jit_call1(g, max, index));
    LLVMValueRef bad =
        LLVMBuildOr(g->b, jit_outside_window(g, low, size), jit_outside_window(g, high, size), "");
    return LLVMBuildNot(g->b, bad, "");
}

/* The elements at displacement `at` from each lane's, as a vector. */
static LLVMValueRef load_elements(struct jit_gen *g, const struct jit_access *x,
                                  const struct indexed *n, LLVMValueRef base, LLVMValueRef memory)
{
    LLVMValueRef all = LLVMGetPoison(jit_vec(g, x->element));
    for (unsigned l = 0; l < g->lanes; l++) {
        LLVMValueRef at = LLVMConstInt(g->i64, l, 0);
        LLVMValueRef index =
            LLVMBuildLoad2(g->b, g->i32, LLVMBuildGEP2(g->b, g->i32, memory, &at, 1, ""), "");
        LLVMSetVolatile(index, 1); /* read from there, and not taken out of the vector */
        LLVMValueRef p = LLVMBuildIntToPtr(g->b, address_of(g, n, base, index), g->ptr, "");
        LLVMValueRef v = LLVMBuildLoad2(g->b, x->element, p, "");
        LLVMSetAlignment(v, x->esize);
        all = LLVMBuildInsertElement(g->b, all, v, LLVMConstInt(g->i32, l, 0), "");
    }
    return all;
}

/* Indices from `low` to `low` + `span`, both scalars of 32 bits, are of elements that are in place.
 */
struct range {
    LLVMValueRef low, span;
    LLVMValueRef none; /* i1: no index is */
};

static LLVMValueRef clamp(struct jit_gen *g, const char *name, LLVMValueRef v, int64_t limit)
{
    LLVMValueRef args[] = { v, jit_c64(g, (uint64_t)limit) };
    return jit_intrinsic(g, name, &g->i64, 1, args, 2);
}

/* Which indices are good for elements from `base` on. Processors extend an index by its sign, so
 * the largest is that of 31 bits for all. It hangs on scalars only, so that LLVM computes it
 * outside of loops. */
static struct range good_indices(struct jit_gen *g, const struct jit_access *x,
                                 const struct indexed *n, LLVMValueRef base)
{
    LLVMValueRef shift = jit_c64(g, (uint64_t)__builtin_ctzll(n->scale)), far, bent, empty;
    LLVMValueRef at = LLVMBuildSub(g->b, base, jit_cached(g, JIT_WINDOW_BASE), "");
    LLVMValueRef last = LLVMBuildNot(g->b, jit_cached(g, JIT_WINDOW_BAD), "");
    last = LLVMBuildSub(g->b, LLVMBuildSub(g->b, last, jit_c64(g, x->size - 1), ""), at, "");
    far = LLVMBuildAdd(g->b, at, jit_c64(g, 1ull << 62), ""); /* the differences do not wrap */
    far = LLVMBuildICmp(g->b, LLVMIntSLT, far, jit_c64(g, 0), "");
    bent = LLVMBuildAnd(g->b, at, jit_c64(g, x->size - 1), "");
    bent = LLVMBuildICmp(g->b, LLVMIntNE, bent, jit_c64(g, 0), "");
    LLVMValueRef low = LLVMBuildNeg(g->b, LLVMBuildAShr(g->b, at, shift, ""), ""),
                 high = LLVMBuildAShr(g->b, last, shift, "");
    low = clamp(g, "llvm.smax", low, n->sign ? INT32_MIN : 0);
    high = clamp(g, "llvm.smin", high, INT32_MAX);
    empty = LLVMBuildICmp(g->b, LLVMIntSGT, low, high, "");
    struct range r = { .low = LLVMBuildTrunc(g->b, low, g->i32, ""),
                       .span =
                           LLVMBuildTrunc(g->b, LLVMBuildSub(g->b, high, low, ""), g->i32, "") };
    r.none = LLVMBuildOr(g->b, LLVMBuildOr(g->b, far, bent, ""), empty, "");
    return r;
}

static LLVMValueRef has_bad_index(struct jit_gen *g, const struct jit_access *x,
                                  const struct indexed *n, LLVMValueRef base, LLVMValueRef index)
{
    struct range r = good_indices(g, x, n, base);
    LLVMValueRef from = LLVMBuildSub(g->b, index, jit_splat(g, r.low), "");
    LLVMValueRef lanes = LLVMBuildICmp(g->b, LLVMIntUGT, from, jit_splat(g, r.span), "");
    lanes = LLVMBuildAnd(g->b, jit_bits(g, lanes), x->active, "");
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, lanes, jit_c32(g, 0), "");
    return LLVMBuildOr(g->b, some, r.none, "");
}

static LLVMValueRef gather_elements(struct jit_gen *g, const struct jit_access *x,
                                    const struct indexed *n, LLVMValueRef base, LLVMValueRef index)
{
    LLVMTypeRef t = jit_vec(g, x->element), types[] = { t, jit_vec(g, g->ptr) };
    LLVMValueRef from = LLVMBuildIntToPtr(g->b, base, g->ptr, "");
    LLVMValueRef at = LLVMBuildGEP2(g->b, jit_int(g, (unsigned)n->scale), from, &index, 1, "");
    LLVMValueRef args[] = { at, jit_c32(g, x->esize), jit_lanes(g, x->active), LLVMConstNull(t) };
    return jit_intrinsic(g, "llvm.masked.gather", types, 2, args, 4);
}

bool jit_load_indexed(struct jit_gen *g, struct jit_access *x)
{
    bool gathers = g->target->avx512 && !g->large && x->esize >= 4;
    struct indexed n;
    if (x->store || (!jit_has_followers(g) && !gathers) ||
        (g->i->space != IR_SPACE_GLOBAL && g->i->space != IR_SPACE_CONST) || !find_indexed(g, &n) ||
        n.scale % x->size != 0)
        return false;
    LLVMValueRef index = jit_followed(g, jit_reg(g, n.index, IR_U32, true), x->active);
    LLVMValueRef displacement = LLVMConstInt(g->i64, (uint64_t)g->i->address.displacement, 1);
    LLVMValueRef base = LLVMBuildAdd(g->b, jit_reg(g, n.base, IR_U64, false), displacement, "");
    LLVMBasicBlockRef slow = jit_new_block(g, "slow"), join = jit_new_block(g, "");
    LLVMValueRef memory = NULL;
    jit_branch_unlikely(g,
                        gathers ? has_bad_index(g, x, &n, base, index)
                                : LLVMBuildNot(g->b, is_good(g, &n, base, index, x->size), ""),
                        slow);
    if (!gathers) {
        memory = jit_alloca(g, jit_vec(g, g->i32), "lanes");
        LLVMBuildStore(g->b, index, memory);
    }
    for (unsigned k = 0; k < x->count; k++) {
        LLVMValueRef from = LLVMBuildAdd(g->b, base, jit_c64(g, k * x->esize), "");
        LLVMBuildStore(g->b,
                       gathers ? gather_elements(g, x, &n, from, index)
                               : load_elements(g, x, &n, from, memory),
                       x->value[k]);
    }
    LLVMBuildBr(g->b, join);
    jit_position(g, slow);
    jit_access_by_lane(g, x);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
    return true;
}
