/*
 * Addresses: from a PTX address to one of the host, checked. Global addresses are tested against
 * the client's window, shared ones are masked into the block's memory, local and parameter ones
 * compared with their size; all are tested for alignment. Since the window is aligned to its size,
 * one AND finds both kinds of wrong global address.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"
#include "jit/target.h"

LLVMValueRef jit_address(struct jit_gen *g, bool vec)
{
    const struct ir_address *a = &g->i->address;
    struct ir_src symbol = { .kind = IR_SRC_SYMBOL,
                             .index = a->symbol,
                             .bits = (uint64_t)a->displacement };
    LLVMValueRef offset = a->symbol == IR_NONE ? jit_c64(g, (uint64_t)a->displacement)
                                               : jit_src(g, &symbol, IR_U64, false);
    if (a->base == IR_NONE)
        return vec ? jit_splat(g, offset) : offset;
    bool narrow = ir_types[g->fn->regs[a->base].type].size == 4;
    LLVMValueRef base = jit_reg(g, a->base, narrow ? IR_U32 : IR_U64, vec);
    if (narrow)
        offset = LLVMBuildTrunc(g->b, offset, g->i32, "");
    LLVMValueRef sum = LLVMBuildAdd(g->b, base, vec ? jit_splat(g, offset) : offset, "");
    return narrow ? LLVMBuildZExt(g->b, sum, jit_like(sum, g->i64), "") : sum;
}

void jit_emit_fault(struct jit_gen *g, LLVMValueRef address, LLVMValueRef lanes, unsigned size)
{
    LLVMValueRef args[] = { g->block, g->w->first, address, lanes, jit_c64(g, size - 1) };
    bool vec = jit_is_vec(address);
    LLVMValueRef r = LLVMBuildCall2(g->b, vec ? g->fault_vector_type : g->fault_scalar_type,
                                    vec ? g->fault_vector : g->fault_scalar, args, 5, "");
    LLVMBuildBr(g->b, jit_faulted(g, r));
}

LLVMBasicBlockRef jit_faulted(struct jit_gen *g, LLVMValueRef r)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    /* One return for all of them: where LLVM inlines the function, each of its variables ends at
     * each return. */
    if (!g->faulted) {
        jit_position(g, jit_new_block(g, "faulted"));
        g->faulted = LLVMBuildPhi(g->b, g->i32, "");
        LLVMBuildRet(g->b, g->faulted);
        jit_position(g, from);
    }
    LLVMAddIncoming(g->faulted, &r, &from, 1);
    return LLVMGetInstructionParent(g->faulted);
}

static void fault_unless(struct jit_gen *g, LLVMValueRef bad, LLVMValueRef address,
                         LLVMValueRef lanes, unsigned size)
{
    LLVMBasicBlockRef fault = jit_new_block(g, "fault");
    jit_branch_unlikely(g, bad, fault);
    LLVMBasicBlockRef next = LLVMGetInsertBlock(g->b);
    jit_position(g, fault);
    jit_emit_fault(g, address, lanes, size);
    jit_position(g, next);
}

static void fault_unless_zero(struct jit_gen *g, LLVMValueRef v, LLVMValueRef address,
                              LLVMValueRef lanes, unsigned size)
{
    fault_unless(g, LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), ""), address,
                 lanes, size);
}

/* Bits that no good global address has, relative to the window's base. */
LLVMValueRef jit_window_bad(struct jit_gen *g, unsigned size)
{
    LLVMValueRef bad = jit_cached(g, JIT_WINDOW_BAD);
    return size > 1 ? LLVMBuildOr(g->b, bad, jit_c64(g, size - 1), "") : bad;
}

/* Lanes of `active` whose bit is set in `bad` lead to a fault. */
static void check_lanes(struct jit_gen *g, LLVMValueRef bad, LLVMValueRef active,
                        LLVMValueRef address, unsigned size)
{
    LLVMValueRef lanes = LLVMBuildAnd(g->b, jit_bits(g, bad), active, "");
    fault_unless_zero(g, lanes, address, lanes, size);
}

static LLVMValueRef is_not_zero(struct jit_gen *g, LLVMValueRef v)
{
    return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

LLVMValueRef jit_outside_window(struct jit_gen *g, LLVMValueRef address, unsigned size)
{
    LLVMValueRef base = jit_cached(g, JIT_WINDOW_BASE), bad = jit_window_bad(g, size);
    if (jit_is_vec(address)) {
        base = jit_splat(g, base);
        bad = jit_splat(g, bad);
    }
    LLVMValueRef offset = LLVMBuildSub(g->b, address, base, "");
    return is_not_zero(g, LLVMBuildAnd(g->b, offset, bad, ""));
}

bool jit_has_followers(const struct jit_gen *g)
{
    return !g->target->avx512 && !g->large;
}

LLVMValueRef jit_followed(struct jit_gen *g, LLVMValueRef v, LLVMValueRef active)
{
    if (!jit_has_followers(g) || active == jit_all_lanes(g))
        return v;
    LLVMValueRef args[] = { active, LLVMConstInt(g->i1, 0, 0) };
    LLVMValueRef lane = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2);
    lane = LLVMBuildAnd(g->b, lane, jit_c32(g, g->lanes - 1), "");
    return jit_select(g, jit_lanes(g, active), v, jit_splat(g, jit_pick(g, v, lane)));
}

/* Global addresses. What all of them have in common is enough to see that they are good; which one
 * is not is found out only where one is not. */
static void check_global(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                         unsigned size)
{
    if (!jit_has_followers(g)) {
        check_lanes(g, jit_outside_window(g, address, size), active, address, size);
        return;
    }
    LLVMBasicBlockRef fault = jit_new_block(g, "fault");
    LLVMValueRef base = jit_splat(g, jit_cached(g, JIT_WINDOW_BASE)), bad = jit_window_bad(g, size);
    LLVMValueRef all = jit_call1(g, "llvm.vector.reduce.or", LLVMBuildSub(g->b, address, base, ""));
    jit_branch_unlikely(g, is_not_zero(g, LLVMBuildAnd(g->b, all, bad, "")), fault);
    LLVMBasicBlockRef next = LLVMGetInsertBlock(g->b);
    jit_position(g, fault);
    /* The window is aligned to its size, so this is the difference as far as it is tested; LLVM
     * does not see that, and would compute it before the branch. */
    LLVMValueRef offset = LLVMBuildXor(g->b, address, base, "");
    LLVMValueRef lanes = is_not_zero(g, LLVMBuildAnd(g->b, offset, jit_splat(g, bad), ""));
    jit_emit_fault(g, address, LLVMBuildAnd(g->b, jit_bits(g, lanes), active, ""), size);
    jit_position(g, next);
}

LLVMValueRef jit_byte_pointer(struct jit_gen *g, LLVMValueRef base, LLVMValueRef offset)
{
    return LLVMBuildGEP2(g->b, g->i8, base, &offset, 1, "");
}

static LLVMValueRef masked(struct jit_gen *g, LLVMValueRef offset, unsigned size)
{
    LLVMValueRef mask = jit_cached(g, JIT_SHARED_MASK);
    if (size > 1)
        mask = LLVMBuildAnd(g->b, mask, jit_c32(g, ~(uint64_t)(size - 1)), "");
    if (jit_is_vec(offset))
        mask = jit_splat(g, mask);
    return LLVMBuildAnd(g->b, offset, mask, "");
}

/* `base` + (offset & mask). Masks fit in 31 bits: sign extension lets x86 use 32-bit indices. */
static LLVMValueRef masked_pointer(struct jit_gen *g, LLVMValueRef base, LLVMValueRef offset,
                                   unsigned size)
{
    offset = masked(g, offset, size);
    return jit_byte_pointer(g, base, LLVMBuildSExt(g->b, offset, jit_like(offset, g->i64), ""));
}

LLVMValueRef jit_shared_pointer(struct jit_gen *g, LLVMValueRef offset, unsigned size)
{
    return masked_pointer(g, jit_cached(g, JIT_SHARED), offset, size);
}

/* Lane 0 need not run: in `if (t > 0) x = s[t - 1]` its address lies in front of shared memory,
 * where the other lanes' are good. So what is masked counts from the guard zone's start. */
LLVMValueRef jit_shared_span(struct jit_gen *g, LLVMValueRef offset, unsigned size)
{
    LLVMValueRef from = LLVMBuildAdd(g->b, offset, jit_c32(g, SOFT_SHARED_GUARD), "");
    return masked_pointer(g, jit_cached(g, JIT_SHARED_GUARD), from, size);
}

LLVMValueRef jit_low32(struct jit_gen *g, LLVMValueRef address)
{
    return LLVMBuildTrunc(g->b, address, jit_like(address, g->i32), "");
}

static LLVMValueRef misaligned(struct jit_gen *g, LLVMValueRef v, unsigned size)
{
    return is_not_zero(g, LLVMBuildAnd(g->b, v, jit_const(g, v, size - 1), ""));
}

/* offset > limit - size, or misaligned; limit is at least size or the comparison wraps to "all
 * bad". */
static LLVMValueRef outside_limit(struct jit_gen *g, LLVMValueRef offset, LLVMValueRef limit,
                                  unsigned size)
{
    LLVMValueRef last = LLVMBuildSub(g->b, limit, jit_c64(g, size), "");
    LLVMValueRef short_of = LLVMBuildICmp(g->b, LLVMIntULT, limit, jit_c64(g, size), "");
    LLVMValueRef bad =
        LLVMBuildICmp(g->b, LLVMIntUGT, offset, jit_is_vec(offset) ? jit_splat(g, last) : last, "");
    if (jit_is_vec(offset))
        short_of = jit_splat(g, short_of);
    bad = LLVMBuildOr(g->b, bad, short_of, "");
    return size > 1 ? LLVMBuildOr(g->b, bad, misaligned(g, offset, size), "") : bad;
}

/* Where the pieces of the lanes' threads begin: soft_local_place() of lane 0. */
static LLVMValueRef local_base(struct jit_gen *g)
{
    LLVMValueRef first = LLVMBuildZExt(g->b, g->w->first, g->i64, "");
    LLVMValueRef lane = LLVMBuildAnd(g->b, first, jit_c64(g, 31), "");
    LLVMValueRef warp = LLVMBuildSub(g->b, first, lane, "");
    LLVMValueRef at = LLVMBuildMul(g->b, warp, jit_cached(g, JIT_LOCAL_STRIDE), "");
    lane = LLVMBuildMul(g->b, lane, jit_c64(g, SOFT_LOCAL_PIECE), "");
    return jit_byte_pointer(g, jit_cached(g, JIT_LOCAL), LLVMBuildAdd(g->b, at, lane, ""));
}

/* How far from there a byte of a thread's local memory lies (i64, scalar or vector). */
static LLVMValueRef local_offset(struct jit_gen *g, LLVMValueRef low)
{
    LLVMValueRef in = LLVMBuildAnd(g->b, low, jit_const(g, low, SOFT_LOCAL_PIECE - 1), "");
    LLVMValueRef piece = LLVMBuildSub(g->b, low, in, "");
    return LLVMBuildAdd(g->b, LLVMBuildMul(g->b, piece, jit_const(g, low, 32), ""), in, "");
}

/* Local memory of each lane's thread at `offset` (<32 x i64>). */
static LLVMValueRef local_pointer(struct jit_gen *g, LLVMValueRef offset)
{
    LLVMValueRef lanes = jit_ramp(g, g->i64, SOFT_LOCAL_PIECE);
    return jit_byte_pointer(g, local_base(g),
                            LLVMBuildAdd(g->b, local_offset(g, offset), lanes, ""));
}

LLVMValueRef jit_local_row(struct jit_gen *g, LLVMValueRef active, unsigned size)
{
    LLVMValueRef stride = jit_cached(g, JIT_LOCAL_STRIDE);
    LLVMValueRef low = LLVMBuildZExt(g->b, jit_low32(g, jit_address(g, false)), g->i64, "");
    uint64_t at = LLVMIsConstant(low) ? LLVMConstIntGetZExtValue(low) : UINT64_MAX;
    if (at % size != 0 || at > g->fn->local_bytes || size > g->fn->local_bytes - at)
        fault_unless(g, outside_limit(g, low, stride, size),
                     LLVMBuildOr(g->b, low, jit_c64(g, SOFT_LOCAL_BASE), ""), active, size);
    return jit_byte_pointer(g, local_base(g), local_offset(g, low));
}

static bool writes(const struct ir_instr *i)
{
    return (ir_ops[i->op].properties & IR_P_STORE) != 0;
}

/* Generic addresses: all four spaces are tried on all lanes, and each lane takes its own. */
static LLVMValueRef generic_vector(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                                   unsigned size)
{
    LLVMTypeRef pointers = jit_vec(g, g->ptr);
    LLVMValueRef low = LLVMBuildZExt(g->b, jit_low32(g, address), jit_vec(g, g->i64), "");
    LLVMValueRef space = LLVMBuildLShr(g->b, address, jit_const(g, address, SOFT_SPACE_SHIFT), "");
    LLVMValueRef is[4];
    for (unsigned k = 1; k < 4; k++)
        is[k] = LLVMBuildICmp(g->b, LLVMIntEQ, space, jit_const(g, space, k), "");
    LLVMValueRef bad = jit_outside_window(g, address, size);
    LLVMValueRef bad_shared =
        size > 1 ? misaligned(g, low, size) : LLVMConstNull(jit_vec(g, g->i1));
    LLVMValueRef bad_local = outside_limit(g, low, jit_cached(g, JIT_LOCAL_STRIDE), size);
    LLVMValueRef bad_param = writes(g->i)
                                 ? LLVMConstAllOnes(jit_vec(g, g->i1))
                                 : outside_limit(g, low, jit_c64(g, g->fn->param_bytes), size);
    bad = jit_select(g, is[SOFT_SPACE_SHARED], bad_shared, bad);
    bad = jit_select(g, is[SOFT_SPACE_LOCAL], bad_local, bad);
    bad = jit_select(g, is[SOFT_SPACE_PARAM], bad_param, bad);
    check_lanes(g, bad, active, address, size);
    LLVMValueRef p = LLVMBuildIntToPtr(g->b, address, pointers, "");
    p = jit_select(g, is[SOFT_SPACE_SHARED], jit_shared_pointer(g, jit_low32(g, address), size), p);
    p = jit_select(g, is[SOFT_SPACE_LOCAL], local_pointer(g, low), p);
    return jit_select(g, is[SOFT_SPACE_PARAM], jit_byte_pointer(g, jit_cached(g, JIT_PARAMS), low),
                      p);
}

LLVMValueRef jit_shared_offset(struct jit_gen *g, LLVMValueRef active, unsigned size)
{
    LLVMValueRef address = jit_address(g, g->a->instrs[g->at_instr].address != IR_UNIFORM);
    if (size > 1 && jit_is_vec(address))
        check_lanes(g, misaligned(g, address, size), active, address, size);
    else if (size > 1)
        jit_check_shared_alignment(g, address, active, size);
    return masked(g, jit_low32(g, address), size);
}

LLVMValueRef jit_host_vector(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                             unsigned size)
{
    LLVMValueRef low;
    if (g->i->space != IR_SPACE_SHARED) /* whose addresses are masked */
        address = jit_followed(g, address, active);
    switch (g->i->space) {
    case IR_SPACE_GLOBAL:
    case IR_SPACE_CONST:
        check_global(g, address, active, size);
        return LLVMBuildIntToPtr(g->b, address, jit_vec(g, g->ptr), "");
    case IR_SPACE_SHARED:
        if (size > 1)
            check_lanes(g, misaligned(g, address, size), active, address, size);
        return jit_shared_pointer(g, jit_low32(g, address), size);
    case IR_SPACE_LOCAL:
        if (g->a->instrs[g->at_instr].address == IR_UNIFORM)
            return jit_byte_pointer(g, jit_local_row(g, active, size),
                                    jit_ramp(g, g->i64, SOFT_LOCAL_PIECE));
        low = LLVMBuildZExt(g->b, jit_low32(g, address), jit_vec(g, g->i64), "");
        check_lanes(g, outside_limit(g, low, jit_cached(g, JIT_LOCAL_STRIDE), size), active,
                    LLVMBuildOr(g->b, low, jit_const(g, low, SOFT_LOCAL_BASE), ""), size);
        return local_pointer(g, low);
    case IR_SPACE_PARAM:
        low = LLVMBuildZExt(g->b, jit_low32(g, address), jit_vec(g, g->i64), "");
        check_lanes(g, outside_limit(g, low, jit_c64(g, g->fn->param_bytes), size), active,
                    LLVMBuildOr(g->b, low, jit_const(g, low, SOFT_PARAM_BASE), ""), size);
        return jit_byte_pointer(g, jit_cached(g, JIT_PARAMS), low);
    default:
        return generic_vector(g, address, active, size);
    }
}

LLVMValueRef jit_span_is_good(struct jit_gen *g, LLVMValueRef address, uint64_t width,
                              unsigned size)
{
    LLVMValueRef span = jit_c64(g, width), from = address, bad;
    if (g->i->space == IR_SPACE_SHARED) {
        /* What is surely there is a constant: the check of a thread's own element then holds at
         * compile time. */
        LLVMValueRef mask = jit_c32(g, ~(soft_shared_reserve(g->fn->shared_static) - 1));
        if (g->fn->uses_dynamic_shared)
            mask = LLVMBuildNot(g->b, jit_cached(g, JIT_SHARED_MASK), "");
        from = jit_low32(g, address);
        span = LLVMBuildTrunc(g->b, span, g->i32, "");
        bad = LLVMBuildOr(g->b, mask, LLVMConstInt(g->i32, size - 1, 0), "");
    } else {
        from = LLVMBuildSub(g->b, address, jit_cached(g, JIT_WINDOW_BASE), "");
        bad = jit_window_bad(g, size);
    }
    LLVMValueRef both = LLVMBuildOr(g->b, from, LLVMBuildAdd(g->b, from, span, ""), "");
    both = LLVMBuildAnd(g->b, both, bad, "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, both, LLVMConstNull(LLVMTypeOf(both)), "");
}

LLVMValueRef jit_placed_pointer(struct jit_gen *g, LLVMValueRef address)
{
    if (g->i->space != IR_SPACE_SHARED)
        return LLVMBuildIntToPtr(g->b, address, g->ptr, "");
    LLVMValueRef offset = LLVMBuildZExt(g->b, jit_low32(g, address), g->i64, "");
    return jit_byte_pointer(g, jit_cached(g, JIT_SHARED), offset);
}

/* The alignment of a shared address is tested once for all accesses in a block that share the base
 * register. */
void jit_check_shared_alignment(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                                unsigned size)
{
    const struct ir_address *a = &g->i->address;
    uint64_t offset = (uint64_t)a->displacement;
    if (a->symbol != IR_NONE)
        offset += ir_symbol_offset(g->m, g->fn, a->symbol);
    bool regular = (offset & (size - 1)) == 0;
    if (a->base == IR_NONE && regular)
        return;
    if (regular && g->w->regs[a->base].checked >= size - 1)
        return;
    fault_unless(g, misaligned(g, address, size), address, active, size);
    if (regular && g->i->guard == IR_NONE)
        g->w->regs[a->base].checked = size - 1;
}

LLVMValueRef jit_host_scalar(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                             unsigned size)
{
    switch (g->i->space) {
    case IR_SPACE_SHARED:
        if (size > 1)
            jit_check_shared_alignment(g, address, active, size);
        return jit_shared_pointer(g, jit_low32(g, address), size);
    case IR_SPACE_PARAM: {
        LLVMValueRef low = LLVMBuildZExt(g->b, jit_low32(g, address), g->i64, "");
        fault_unless(g, outside_limit(g, low, jit_c64(g, g->fn->param_bytes), size),
                     LLVMBuildOr(g->b, low, jit_c64(g, SOFT_PARAM_BASE), ""), active, size);
        return jit_byte_pointer(g, jit_cached(g, JIT_PARAMS), low);
    }
    default:
        fault_unless(g, jit_outside_window(g, address, size), address, active, size);
        return LLVMBuildIntToPtr(g->b, address, g->ptr, "");
    }
}
