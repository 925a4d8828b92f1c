/*
 * Loads from an array at an index that is another in each lane, without AVX-512. Programs compute
 * such an address as a pointer that all lanes share and an index of 32 bits times the element's
 * size. 32 addresses of 64 bits are twice the registers that the indices are, and each of them has
 * to be taken out of its register. Here the smallest and the largest index are checked; the indices
 * go to memory, from where each lane's load has it.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"

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

bool jit_load_indexed(struct jit_gen *g, struct jit_access *x)
{
    struct indexed n;
    if (x->store || !jit_has_followers(g) ||
        (g->i->space != IR_SPACE_GLOBAL && g->i->space != IR_SPACE_CONST) || !find_indexed(g, &n) ||
        n.scale % x->size != 0)
        return false;
    LLVMValueRef index = jit_followed(g, jit_reg(g, n.index, IR_U32, true), x->active);
    LLVMValueRef displacement = LLVMConstInt(g->i64, (uint64_t)g->i->address.displacement, 1);
    LLVMValueRef base = LLVMBuildAdd(g->b, jit_reg(g, n.base, IR_U64, false), displacement, "");
    LLVMBasicBlockRef slow = jit_new_block(g, "slow"), join = jit_new_block(g, "");
    jit_branch_unlikely(g, LLVMBuildNot(g->b, is_good(g, &n, base, index, x->size), ""), slow);
    LLVMValueRef memory = jit_alloca(g, jit_vec(g, g->i32), "lanes");
    LLVMBuildStore(g->b, index, memory);
    for (unsigned k = 0; k < x->count; k++) {
        LLVMValueRef further = LLVMConstInt(g->i64, k * x->esize, 0);
        LLVMBuildStore(g->b, load_elements(g, x, &n, LLVMBuildAdd(g->b, base, further, ""), memory),
                       x->value[k]);
    }
    LLVMBuildBr(g->b, join);
    jit_position(g, slow);
    jit_access_by_lane(g, x);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
    return true;
}
