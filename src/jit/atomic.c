/*
 * Atomic operations: one lane after the other, but where all lanes go to one place one operation
 * does what theirs come to, as if no other thread had come between them.
 */
#include "jit/gen.h"

#include "device/soft/exec/helpers.h"
#include "device/soft/ir/phase.h"
#include "jit/target.h"

/* (a & mask) + (b & mask), of which the bits of the mask: a field that wraps by itself. */
static LLVMValueRef masked_sum(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, uint64_t mask)
{
    LLVMValueRef m = jit_const(g, a, mask);
    return LLVMBuildAnd(
        g->b, LLVMBuildAdd(g->b, LLVMBuildAnd(g->b, a, m, ""), LLVMBuildAnd(g->b, b, m, ""), ""), m,
        "");
}

/* old + v, or of a vector ((old + v[0]) + v[1]) and so on. */
static LLVMValueRef sum_up(struct jit_gen *g, LLVMValueRef old, LLVMValueRef v, bool flushed)
{
    const unsigned count = jit_is_vec(v) ? g->lanes : 1;
    for (unsigned l = 0; l < count; l++) {
        old = LLVMBuildFAdd(g->b, old, jit_is_vec(v) ? jit_pick(g, v, jit_c32(g, l)) : v, "");
        old = flushed ? jit_flush(g, old) : old;
    }
    return old;
}

static bool is_half(enum ir_type t)
{
    return ir_type_is_float(t) && t != IR_F32 && t != IR_F64;
}

/* The new value of a memory cell; NULL for operations that this function does not make. */
static LLVMValueRef combine(struct jit_gen *g, LLVMValueRef old, LLVMValueRef v)
{
    bool real = ir_type_is_float(g->i->type), sign = ir_type_is_signed(g->i->type);
    LLVMValueRef cond;
    switch (g->i->mode) {
    case IR_ATOM_ADD:
        if (is_half((enum ir_type)g->i->type))
            return jit_add_halves(g, old, v);
        return real ? sum_up(g, old, v, false) : LLVMBuildAdd(g->b, old, v, "");
    case IR_ATOM_AND:
        return LLVMBuildAnd(g->b, old, v, "");
    case IR_ATOM_OR:
        return LLVMBuildOr(g->b, old, v, "");
    case IR_ATOM_XOR:
        return LLVMBuildXor(g->b, old, v, "");
    case IR_ATOM_EXCH:
        return v;
    case IR_ATOM_PHASE: { /* as ir_phase_add() */
        const uint64_t each = IR_PHASE_PENDING << IR_PHASE_EXPECTED;
        LLVMValueRef sum = LLVMBuildOr(g->b, masked_sum(g, old, v, IR_PHASE_PENDING),
                                       masked_sum(g, old, v, each), "");
        sum = LLVMBuildOr(g->b, sum,
                          masked_sum(g, old, v, IR_PHASE_BYTES | IR_PHASE_AGE | IR_PHASE_BIT), "");
        LLVMValueRef expected =
            LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, sum, jit_const(g, sum, IR_PHASE_EXPECTED), ""),
                         jit_const(g, sum, IR_PHASE_PENDING), "");
        LLVMValueRef next = LLVMBuildXor(g->b, LLVMBuildOr(g->b, sum, expected, ""),
                                         jit_const(g, sum, IR_PHASE_BIT), "");
        cond = LLVMBuildICmp(g->b, LLVMIntEQ,
                             LLVMBuildAnd(g->b, sum, jit_const(g, sum, IR_PHASE_COUNTS), ""),
                             LLVMConstNull(LLVMTypeOf(sum)), "");
        return jit_select(g, cond, next, sum);
    }
    case IR_ATOM_MIN:
        if (real)
            return NULL;
        return jit_call2(g, sign ? "llvm.smin" : "llvm.umin", old, v);
    case IR_ATOM_MAX:
        if (real)
            return NULL;
        return jit_call2(g, sign ? "llvm.smax" : "llvm.umax", old, v);
    case IR_ATOM_INC:
        cond = LLVMBuildICmp(g->b, LLVMIntUGE, old, v, "");
        return jit_select(g, cond, LLVMConstNull(LLVMTypeOf(v)),
                          LLVMBuildAdd(g->b, old, LLVMConstInt(LLVMTypeOf(v), 1, 0), ""));
    case IR_ATOM_DEC:
        cond =
            LLVMBuildOr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, old, LLVMConstNull(LLVMTypeOf(v)), ""),
                        LLVMBuildICmp(g->b, LLVMIntUGT, old, v, ""), "");
        return jit_select(g, cond, v,
                          LLVMBuildSub(g->b, old, LLVMConstInt(LLVMTypeOf(v), 1, 0), ""));
    default:
        return NULL;
    }
}

static LLVMAtomicRMWBinOp rmw_operation(const struct ir_instr *i, bool *there)
{
    bool sign = ir_type_is_signed(i->type);
    *there = true;
    switch (i->mode) {
    case IR_ATOM_ADD:
        return LLVMAtomicRMWBinOpAdd;
    case IR_ATOM_AND:
        return LLVMAtomicRMWBinOpAnd;
    case IR_ATOM_OR:
        return LLVMAtomicRMWBinOpOr;
    case IR_ATOM_XOR:
        return LLVMAtomicRMWBinOpXor;
    case IR_ATOM_EXCH:
        return LLVMAtomicRMWBinOpXchg;
    case IR_ATOM_MIN:
        return sign ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case IR_ATOM_MAX:
        return sign ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case IR_ATOM_INC:
        return LLVMAtomicRMWBinOpUIncWrap;
    case IR_ATOM_DEC:
        return LLVMAtomicRMWBinOpUDecWrap;
    default:
        *there = false;
        return LLVMAtomicRMWBinOpXchg;
    }
}

/* A block runs on one thread, so that its shared memory needs no atomic instructions. */
static LLVMValueRef operate_alone(struct jit_gen *g, LLVMTypeRef t, LLVMValueRef place,
                                  LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef p = LLVMBuildGEP2(g->b, g->i8, jit_cached(g, JIT_SHARED), &place, 1, ""), new;
    LLVMValueRef old = LLVMBuildLoad2(g->b, t, p, "");
    if (g->i->mode == IR_ATOM_CAS)
        new = jit_select(g, LLVMBuildICmp(g->b, LLVMIntEQ, old, a, ""), b, old);
    else
        new = combine(g, old, a);
    if (!new) {
        jit_unsupported(g, "this form of atom");
        return old;
    }
    LLVMBuildStore(g->b, new, p);
    return old;
}

/* Adds one number, or a vector's numbers one after the other, to a number in global memory. Returns
 * what was there. As on hardware, f32 sums are flushed, and so are their operands. */
static LLVMValueRef add_real(struct jit_gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef v)
{
    const unsigned size = (unsigned)ir_types[g->i->type].size;
    const bool flushed = g->i->type == IR_F32, half = is_half((enum ir_type)g->i->type);
    LLVMTypeRef bits = jit_int(g, size);
    LLVMValueRef first = LLVMBuildLoad2(g->b, bits, p, ""), old, ends[2], sum, r;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), head = jit_new_block(g, "sum"),
                      next = jit_new_block(g, "");
    v = flushed ? jit_flush(g, v) : v;
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(first, size);
    LLVMBuildBr(g->b, head);
    jit_position(g, head);
    old = LLVMBuildPhi(g->b, bits, "");
    if (half) {
        sum = jit_add_halves(g, old, v);
    } else {
        sum = LLVMBuildBitCast(g->b, old, t, "");
        sum = sum_up(g, flushed ? jit_flush(g, sum) : sum, v, flushed);
    }
    r = LLVMBuildAtomicCmpXchg(g->b, p, old, LLVMBuildBitCast(g->b, sum, bits, ""),
                               LLVMAtomicOrderingSequentiallyConsistent,
                               LLVMAtomicOrderingMonotonic, 0);
    ends[0] = first;
    ends[1] = LLVMBuildExtractValue(g->b, r, 0, "");
    LLVMAddIncoming(old, ends, (LLVMBasicBlockRef[]) { before, LLVMGetInsertBlock(g->b) }, 2);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, r, 1, ""), next, head);
    jit_position(g, next);
    return LLVMBuildBitCast(g->b, old, t, "");
}

/* `p`: a pointer, or a place in shared memory. Returns what was there. */
static LLVMValueRef operate(struct jit_gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef a,
                            LLVMValueRef b)
{
    bool there;
    if (g->i->space == IR_SPACE_SHARED)
        return operate_alone(g, t, p, a, b);
    if (g->i->mode == IR_ATOM_CAS) {
        LLVMValueRef r =
            LLVMBuildAtomicCmpXchg(g->b, p, a, b, LLVMAtomicOrderingSequentiallyConsistent,
                                   LLVMAtomicOrderingSequentiallyConsistent, 0);
        return LLVMBuildExtractValue(g->b, r, 0, "");
    }
    if (ir_type_is_float(g->i->type) && g->i->mode == IR_ATOM_ADD)
        return add_real(g, t, p, a);
    LLVMAtomicRMWBinOp op = rmw_operation(g->i, &there);
    if (!there || (ir_type_is_float(g->i->type) && g->i->mode != IR_ATOM_EXCH)) {
        jit_unsupported(g, "this form of atom");
        return a;
    }
    return LLVMBuildAtomicRMW(g->b, op, p, a, LLVMAtomicOrderingSequentiallyConsistent, 0);
}

/* A vector in memory, of which lanes are read one by one. (A lane of a register, its number known
 * only at run time, costs a store of the whole vector each time.) */
struct laid_out {
    LLVMValueRef value, memory; /* value: constant, or the same for all lanes; else memory */
    LLVMTypeRef element;
};

static struct laid_out lay_out(struct jit_gen *g, LLVMValueRef v)
{
    struct laid_out x = { .element =
                              jit_is_vec(v) ? LLVMGetElementType(LLVMTypeOf(v)) : LLVMTypeOf(v) };
    if (!jit_is_vec(v) || LLVMIsConstant(v)) {
        x.value = v;
        return x;
    }
    x.memory = jit_alloca(g, LLVMTypeOf(v), "lanes");
    LLVMBuildStore(g->b, v, x.memory);
    return x;
}

static LLVMValueRef lane_pointer(struct jit_gen *g, const struct laid_out *x, LLVMValueRef lane)
{
    return LLVMBuildGEP2(g->b, x->element, x->memory, &lane, 1, "");
}

static LLVMValueRef lane_value(struct jit_gen *g, const struct laid_out *x, LLVMValueRef lane)
{
    if (x->memory) { /* volatile: read from there, and not taken out of the vector, which is slower
                      */
        LLVMValueRef v = LLVMBuildLoad2(g->b, x->element, lane_pointer(g, x, lane), "");
        LLVMSetVolatile(v, 1);
        return v;
    }
    return jit_is_vec(x->value) ? jit_pick(g, x->value, lane) : x->value;
}

/* An atomic of one lane after the other. */
struct atomic {
    LLVMTypeRef type;
    struct laid_out place, a, b, old;
    LLVMValueRef places; /* those of shared memory, before they are laid out; NULL: they are */
    bool result;
};

static void operate_lane(struct jit_gen *g, const struct atomic *x, LLVMValueRef lane,
                         LLVMValueRef place)
{
    LLVMValueRef r =
        operate(g, x->type, place, lane_value(g, &x->a, lane), lane_value(g, &x->b, lane));
    if (x->result)
        LLVMBuildStore(g->b, r, lane_pointer(g, &x->old, lane));
}

static void operate_lanes(struct jit_gen *g, const struct atomic *x, LLVMValueRef active)
{
    struct jit_lane_loop l;
    jit_lanes_begin(g, &l, active);
    operate_lane(g, x, l.lane, lane_value(g, &x->place, l.lane));
    jit_lanes_end(g, &l);
}

#define AT_ONCE                                                                                    \
    8 /* places that are read before they are used: a load waits for stores whose place is not     \
         known */
#define TAKEN 4 /* of those that are taken out of a register */

/* The places of lanes from `lane` on, in pairs. (With a truncation in place of the AND, LLVM would
 * take out each by itself.) */
static void take_places(struct jit_gen *g, LLVMValueRef places, unsigned lane,
                        LLVMValueRef place[TAKEN])
{
    LLVMValueRef pairs = LLVMBuildBitCast(g->b, places, LLVMVectorType(g->i64, g->lanes / 2), "");
    for (unsigned n = 0; n < TAKEN; n += 2) {
        LLVMValueRef pair = jit_pick(g, pairs, jit_c32(g, (lane + n) / 2));
        place[n] = LLVMBuildAnd(g->b, pair, jit_c64(g, UINT32_MAX), "");
        place[n + 1] = LLVMBuildLShr(g->b, pair, jit_c64(g, 32), "");
    }
}

/* If all lanes are active, the loop does not look for the next one, which would take most of the
 * time. */
static void operate_shared(struct jit_gen *g, struct atomic *x, LLVMValueRef active)
{
    LLVMBasicBlockRef all = jit_new_block(g, "all"), some = jit_new_block(g, "some"),
                      join = jit_new_block(g, "");
    LLVMBuildCondBr(g->b, jit_is_full(g, active), all, some);
    jit_position(g, all);
    unsigned at_once = x->places ? TAKEN : AT_ONCE;
    for (unsigned k = 0; k < g->lanes; k += at_once) {
        LLVMValueRef place[AT_ONCE];
        if (x->places)
            take_places(g, x->places, k, place);
        for (unsigned n = 0; n < at_once && !x->places; n++)
            place[n] = lane_value(g, &x->place, jit_c32(g, k + n));
        for (unsigned n = 0; n < at_once; n++)
            operate_lane(g, x, jit_c32(g, k + n), place[n]);
    }
    LLVMBuildBr(g->b, join);
    jit_position(g, some);
    if (x->places)
        x->place = lay_out(g, x->places);
    operate_lanes(g, x, active);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

/* Sums of 16-bit floats where the host has no instructions for them: by the interpreter's function.
 */
static void emit_half_sum(struct jit_gen *g)
{
    enum ir_type bits = ir_type_untyped((enum ir_type)g->i->type);
    LLVMTypeRef params[] = { g->i32, g->ptr, g->i32 }, t = jit_int(g, ir_types[bits].size);
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 3, 0);
    LLVMValueRef active = jit_active(g), old = jit_alloca(g, jit_vec(g, t), "");
    LLVMValueRef v = jit_src(g, &g->i->src[0], bits, true);
    LLVMValueRef p = jit_host_vector(g, jit_address(g, true), active, ir_types[bits].size);
    struct jit_lane_loop l;
    LLVMBuildStore(g->b, LLVMConstNull(jit_vec(g, t)), old);
    jit_lanes_begin(g, &l, active);
    LLVMValueRef args[] = { jit_c32(g, g->i->type), jit_pick(g, p, l.lane),
                            jit_resize(g, jit_pick(g, v, l.lane), g->i32, false) };
    LLVMValueRef r = LLVMBuildCall2(
        g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, add_halves)), args, 3, "");
    LLVMValueRef all = LLVMBuildLoad2(g->b, jit_vec(g, t), old, "");
    r = LLVMBuildInsertElement(g->b, all, jit_resize(g, r, t, false), l.lane, "");
    LLVMBuildStore(g->b, r, old);
    jit_lanes_end(g, &l);
    if (g->i->dst_count && g->i->dst[0] != IR_NONE)
        jit_set(g, 0, LLVMBuildLoad2(g->b, jit_vec(g, t), old, ""));
}

/* Atomics of 128 bits, which the interpreter's function does as well, lane after lane. */
static void emit_128(struct jit_gen *g)
{
    bool compares = g->i->mode == IR_ATOM_CAS;
    unsigned values = compares ? 4 : 2;
    LLVMTypeRef params[] = { g->i32, g->ptr, g->ptr, g->ptr };
    LLVMTypeRef type = LLVMFunctionType(g->nothing, params, 4, 0);
    LLVMValueRef active = jit_active(g), v[4], old[2];
    LLVMValueRef in = jit_alloca(g, LLVMArrayType(g->i64, 4), "values");
    LLVMValueRef out = jit_alloca(g, LLVMArrayType(g->i64, 2), "old");
    LLVMValueRef p = jit_host_vector(g, jit_address(g, true), active, 16);
    for (unsigned k = 0; k < values; k++)
        v[k] = jit_src(g, &g->i->src[k], IR_B64, true);
    for (unsigned k = 0; k < 2; k++) {
        old[k] = jit_alloca(g, jit_vec(g, g->i64), "");
        LLVMBuildStore(g->b, LLVMConstNull(jit_vec(g, g->i64)), old[k]);
    }
    struct jit_lane_loop l;
    jit_lanes_begin(g, &l, active);
    for (unsigned k = 0; k < values; k++) {
        LLVMValueRef at = jit_c32(g, k);
        LLVMBuildStore(g->b, jit_pick(g, v[k], l.lane),
                       LLVMBuildGEP2(g->b, g->i64, in, &at, 1, ""));
    }
    LLVMValueRef args[] = { jit_c32(g, compares), jit_pick(g, p, l.lane), in, out };
    LLVMBuildCall2(g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, atomic_128)),
                   args, 4, "");
    for (unsigned k = 0; k < 2; k++) {
        LLVMValueRef at = jit_c32(g, k), all = LLVMBuildLoad2(g->b, jit_vec(g, g->i64), old[k], "");
        LLVMValueRef r =
            LLVMBuildLoad2(g->b, g->i64, LLVMBuildGEP2(g->b, g->i64, out, &at, 1, ""), "");
        LLVMBuildStore(g->b, LLVMBuildInsertElement(g->b, all, r, l.lane, ""), old[k]);
    }
    jit_lanes_end(g, &l);
    for (unsigned k = 0; k < g->i->dst_count; k++)
        if (g->i->dst[k] != IR_NONE)
            jit_set(g, k, LLVMBuildLoad2(g->b, jit_vec(g, g->i64), old[k], ""));
}

/* The place that all lanes go to, or those of shared memory. NULL: they are found lane by lane. */
static LLVMValueRef find_place(struct jit_gen *g, LLVMValueRef active, unsigned size)
{
    if (g->i->space == IR_SPACE_SHARED)
        return jit_shared_offset(g, active, size);
    if (g->a->instrs[g->at_instr].address != IR_UNIFORM || g->i->space == IR_SPACE_GENERIC)
        return NULL;
    return jit_host_scalar(g, jit_address(g, false), active, size);
}

/* Runs each lane's operation; `place`: of all of them, or NULL. */
static void operate_each(struct jit_gen *g, struct atomic *x, LLVMValueRef active,
                         LLVMValueRef place)
{
    const unsigned size = (unsigned)ir_types[g->i->type].size;
    if (place)
        x->place = lay_out(g, place);
    else if (g->i->space != IR_SPACE_SHARED)
        x->place = lay_out(g, jit_host_vector(g, jit_address(g, true), active, size));
    if (g->i->space == IR_SPACE_SHARED)
        operate_shared(g, x, active);
    else
        operate_lanes(g, x, active);
}

/* --- all lanes at one place ------------------------------------------------------------------- */

/* Whether one operation does what all lanes want; of floating-point numbers in the order of the
 * lanes, as each by itself. */
static bool is_together(const struct jit_gen *g, bool result)
{
    if (g->a->instrs[g->at_instr].address != IR_UNIFORM)
        return false;
    switch (g->i->mode) {
    case IR_ATOM_ADD:
        return !ir_type_is_float(g->i->type) ||
               (!result && !g->large && !is_half((enum ir_type)g->i->type));
    case IR_ATOM_AND:
    case IR_ATOM_OR:
    case IR_ATOM_XOR:
        return !result;
    case IR_ATOM_MIN:
    case IR_ATOM_MAX:
        return !result && !ir_type_is_float(g->i->type);
    default:
        return false;
    }
}

/* What each lane finds where the sum of all was added to `old`. */
static LLVMValueRef found_by_lanes(struct jit_gen *g, LLVMValueRef old, LLVMValueRef v)
{
    LLVMValueRef sum = v, none = LLVMConstNull(LLVMTypeOf(v));
    int order[JIT_LANES_MAX];
    for (unsigned away = 1; away < g->lanes; away *= 2) {
        for (unsigned l = 0; l < g->lanes; l++)
            order[l] = (int)(l < away ? g->lanes : l - away);
        sum = LLVMBuildAdd(g->b, sum, jit_shuffle(g, sum, none, order, g->lanes), "");
    }
    return LLVMBuildAdd(g->b, jit_splat(g, old), LLVMBuildSub(g->b, sum, v, ""), "");
}

static void operate_together(struct jit_gen *g, const struct atomic *x, LLVMValueRef v,
                             LLVMValueRef active, LLVMValueRef place)
{
    const bool sign = ir_type_is_signed(g->i->type);
    LLVMValueRef all = v;
    if (!ir_type_is_float(g->i->type))
        all = jit_reduce(g, v, active, g->i->mode, sign);
    LLVMValueRef old = operate(g, x->type, place, all, all);
    if (!x->result)
        return;
    v = jit_select(g, jit_lanes(g, active), v, LLVMConstNull(LLVMTypeOf(v)));
    LLVMBuildStore(g->b, found_by_lanes(g, old, v), x->old.memory);
}

/* Generic addresses may be of local memory, where each lane has a place of its own; sums of
 * floating-point numbers are worth it only where all lanes take part. */
static void emit_together(struct jit_gen *g, struct atomic *x, LLVMValueRef v, LLVMValueRef active,
                          LLVMValueRef place)
{
    const unsigned size = (unsigned)ir_types[g->i->type].size;
    LLVMBasicBlockRef one = jit_new_block(g, "one"), each = jit_new_block(g, "each"),
                      join = jit_new_block(g, "");
    LLVMValueRef address = jit_address(g, false), good;
    good = ir_type_is_float(g->i->type) ? jit_is_full(g, active)
                                        : LLVMBuildICmp(g->b, LLVMIntNE, active, jit_c32(g, 0), "");
    if (!place)
        good = LLVMBuildAnd(g->b, good,
                            LLVMBuildNot(g->b, jit_outside_window(g, address, size), ""), "");
    LLVMBuildCondBr(g->b, good, one, each);
    jit_position(g, one);
    operate_together(g, x, v, active, place ? place : LLVMBuildIntToPtr(g->b, address, g->ptr, ""));
    LLVMBuildBr(g->b, join);
    jit_position(g, each);
    operate_each(g, x, active, place);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

void jit_emit_atomic(struct jit_gen *g)
{
    enum ir_type type = (enum ir_type)g->i->type;
    unsigned size = (unsigned)ir_types[type].size;
    bool result = g->i->dst_count && g->i->dst[0] != IR_NONE, cas = g->i->mode == IR_ATOM_CAS;
    bool wide = type == IR_B128;
    if (g->i->space == IR_SPACE_LOCAL || g->i->space == IR_SPACE_PARAM ||
        g->i->dst_count > (wide ? 2 : 1)) {
        jit_unsupported(g, "this form of atom");
        return;
    }
    if (wide) {
        emit_128(g);
        return;
    }
    if (is_half(type) && !g->target->half) {
        emit_half_sum(g);
        return;
    }
    if (is_half(type))
        type = ir_type_untyped(type);
    struct atomic x = { .type = jit_type(g, type), .result = result };
    LLVMValueRef active = jit_active(g), a = jit_src(g, &g->i->src[0], type, true);
    x.a = lay_out(g, a);
    x.b = cas ? lay_out(g, jit_src(g, &g->i->src[1], type, true)) : x.a;
    if (result)
        x.old = lay_out(g, jit_splat(g, LLVMBuildFreeze(g->b, LLVMGetPoison(x.type), "")));
    LLVMValueRef place = find_place(g, active, size);
    if (is_together(g, result)) {
        emit_together(g, &x, a, active, place);
    } else {
        if (place && jit_is_vec(place) && g->target->extracts) {
            x.places = place;
            place = NULL;
        }
        operate_each(g, &x, active, place);
    }
    if (result)
        jit_set(g, 0, LLVMBuildLoad2(g->b, jit_vec(g, x.type), x.old.memory, ""));
}
