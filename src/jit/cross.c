/*
 * Instructions in which lanes see each other's values: shuffles, votes, matches, reductions over a
 * warp.
 */
#include "jit/gen.h"

#include "device/soft/exec/helpers.h"
#include "jit/target.h"

/* True if the source is known now. */
static bool constant(const struct jit_gen *g, const struct ir_src *s, uint32_t *out)
{
    if (s->kind == IR_SRC_IMM) {
        *out = (uint32_t)s->bits;
        return true;
    }
    if (s->kind == IR_SRC_REG && g->a->regs[s->index].is_const) {
        *out = (uint32_t)g->a->regs[s->index].value;
        return true;
    }
    return false;
}

/* Lane that `lane` reads from; false if that is out of range, and then it reads its own value. */
static bool source_lane(uint8_t mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *from)
{
    uint32_t clamp = c & 31, segment = c >> 8 & 31, last = (lane & segment) | (clamp & ~segment);
    int64_t j;
    bool ok;
    b &= 31;
    switch (mode) {
    case IR_SHFL_UP:
        j = (int64_t)lane - b;
        ok = j >= (int64_t)last;
        break;
    case IR_SHFL_DOWN:
        j = (int64_t)lane + b;
        ok = j <= (int64_t)last;
        break;
    case IR_SHFL_BFLY:
        j = (int64_t)(lane ^ b);
        ok = j <= (int64_t)last;
        break;
    default:
        j = (int64_t)((lane & segment) | (b & ~segment & 31));
        ok = j <= (int64_t)last;
        break;
    }
    *from = ok ? (uint32_t)j : lane;
    return ok;
}

/* What lanes read from others, which may not be `here`: then PTX leaves open what they read, and as
 * on an H200 it is 0. */
static LLVMValueRef zero_unless(struct jit_gen *g, LLVMValueRef here, LLVMValueRef v)
{
    return jit_select(g, here, v, LLVMConstNull(LLVMTypeOf(v)));
}

static void emit_constant_shuffle(struct jit_gen *g, LLVMValueRef v, uint32_t b, uint32_t c)
{
    int order[JIT_LANES_MAX];
    LLVMValueRef in_range[JIT_LANES_MAX];
    for (uint32_t lane = 0; lane < g->lanes; lane++) {
        uint32_t from;
        bool ok = source_lane(g->i->mode, lane, b, c, &from);
        order[lane] = (int)(from & 31);
        in_range[lane] = LLVMConstInt(g->i1, ok, 0);
    }
    LLVMValueRef r = jit_shuffle(g, v, LLVMGetPoison(LLVMTypeOf(v)), order, g->lanes);
    LLVMValueRef here = jit_lanes(g, jit_active(g));
    here = jit_shuffle(g, here, LLVMGetPoison(LLVMTypeOf(here)), order, g->lanes);
    jit_set(g, 0, zero_unless(g, here, r));
    jit_set(g, 4, LLVMConstVector(in_range, g->lanes));
}

/* v[index] of each lane; index is 0 .. 31. */
static LLVMValueRef permute(struct jit_gen *g, LLVMValueRef v, LLVMValueRef index)
{
    if (!g->target->avx512) {
        LLVMValueRef memory = jit_alloca(g, jit_vec(g, g->i32), "");
        LLVMBuildStore(g->b, v, memory);
        LLVMValueRef at = LLVMBuildSExt(g->b, index, jit_vec(g, g->i64), "");
        LLVMTypeRef types[] = { jit_vec(g, g->i32), jit_vec(g, g->ptr) };
        LLVMValueRef args[] = { LLVMBuildGEP2(g->b, g->i32, memory, &at, 1, ""),
                                LLVMConstInt(g->i32, 4, 0), LLVMConstAllOnes(jit_vec(g, g->i1)),
                                LLVMConstNull(jit_vec(g, g->i32)) };
        return jit_intrinsic(g, "llvm.masked.gather", types, 2, args, 4);
    }
    LLVMValueRef half[2], r[2];
    int order[JIT_LANES_MAX];
    for (int h = 0; h < 2; h++) {
        for (int k = 0; k < 16; k++)
            order[k] = 16 * h + k;
        half[h] = jit_shuffle(g, v, LLVMGetPoison(LLVMTypeOf(v)), order, 16);
        r[h] = jit_shuffle(g, index, LLVMGetPoison(LLVMTypeOf(index)), order, 16);
    }
    for (int h = 0; h < 2; h++) {
        LLVMValueRef args[] = { half[0], r[h], half[1] };
        r[h] = jit_intrinsic(g, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, args, 3);
    }
    for (unsigned k = 0; k < g->lanes; k++)
        order[k] = k;
    return jit_shuffle(g, r[0], r[1], order, g->lanes);
}

static void emit_shuffle(struct jit_gen *g)
{
    const struct ir_instr *i = g->i;
    uint32_t b_known, c_known;
    LLVMValueRef v = jit_src(g, &i->src[0], IR_B32, true);
    if (constant(g, &i->src[1], &b_known) && constant(g, &i->src[2], &c_known)) {
        emit_constant_shuffle(g, v, b_known, c_known);
        return;
    }
    LLVMValueRef lane = jit_ramp(g, g->i32, 1), limit = jit_const(g, lane, 31);
    LLVMValueRef b = LLVMBuildAnd(g->b, jit_src(g, &i->src[1], IR_U32, true), limit, "");
    LLVMValueRef c = jit_src(g, &i->src[2], IR_U32, true);
    LLVMValueRef clamp = LLVMBuildAnd(g->b, c, limit, "");
    LLVMValueRef segment =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, c, jit_const(g, c, 8), ""), limit, "");
    LLVMValueRef outside = LLVMBuildNot(g->b, segment, ""),
                 own = LLVMBuildAnd(g->b, lane, segment, "");
    LLVMValueRef last = LLVMBuildOr(g->b, own, LLVMBuildAnd(g->b, clamp, outside, ""), ""), j, ok;
    switch (i->mode) {
    case IR_SHFL_UP:
        j = LLVMBuildSub(g->b, lane, b, "");
        ok = LLVMBuildICmp(g->b, LLVMIntSGE, j, last, "");
        break;
    case IR_SHFL_DOWN:
        j = LLVMBuildAdd(g->b, lane, b, "");
        ok = LLVMBuildICmp(g->b, LLVMIntSLE, j, last, "");
        break;
    case IR_SHFL_BFLY:
        j = LLVMBuildXor(g->b, lane, b, "");
        ok = LLVMBuildICmp(g->b, LLVMIntSLE, j, last, "");
        break;
    default:
        j = LLVMBuildOr(g->b, own, LLVMBuildAnd(g->b, b, outside, ""), "");
        ok = LLVMBuildICmp(g->b, LLVMIntSLE, j, last, "");
        break;
    }
    j = LLVMBuildAnd(g->b, jit_select(g, ok, j, lane), limit, "");
    LLVMValueRef running = LLVMBuildLShr(g->b, jit_splat(g, jit_active(g)), j, "");
    running = LLVMBuildTrunc(g->b, running, jit_vec(g, g->i1), "");
    jit_set(g, 0, zero_unless(g, running, permute(g, v, j)));
    jit_set(g, 4, ok);
}

static LLVMValueRef equal(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, a, b, "");
}

/* What an instruction gives to the lanes that run it; NULL where it gives nothing. */
struct across {
    LLVMValueRef value, pred;
};

/* Computes it from the values of `members`, bits of lanes. */
typedef struct across across_fn(struct jit_gen *g, LLVMValueRef members);

static LLVMValueRef zeroed(struct jit_gen *g, LLVMTypeRef element)
{
    LLVMTypeRef t = jit_vec(g, element);
    LLVMValueRef cell = jit_alloca(g, t, "");
    LLVMBuildStore(g->b, LLVMConstNull(t), cell);
    return cell;
}

static void blend(struct jit_gen *g, LLVMValueRef cell, LLVMTypeRef element, LLVMValueRef lanes,
                  LLVMValueRef v)
{
    LLVMValueRef old = LLVMBuildLoad2(g->b, jit_vec(g, element), cell, "");
    LLVMBuildStore(g->b, jit_select(g, lanes, jit_resize(g, v, element, false), old), cell);
}

/* Lanes that name different members are groups of their own, as the labels of a cooperative group
 * are: a loop computes each group's result. Members take part whatever they name themselves: PTX
 * leaves that open, and programs count on it. `k` is the source that has the members, if any. */
static void emit_by_group(struct jit_gen *g, unsigned k, across_fn *run)
{
    LLVMValueRef active = jit_active(g);
    const struct ir_src *mask = k < g->i->src_count ? &g->i->src[k] : NULL;
    bool value = g->i->dst_count && g->i->dst[0] != IR_NONE, pred = g->i->dst_pred != IR_NONE;
    if (!mask || !jit_src_varies(g, mask)) {
        LLVMValueRef all =
            mask ? LLVMBuildAnd(g->b, active, jit_src(g, mask, IR_U32, false), "") : active;
        struct across r = run(g, all);
        if (value)
            jit_set(g, 0, r.value);
        if (pred)
            jit_set(g, 4, r.pred);
        return;
    }
    LLVMTypeRef type =
        value && g->i->op == IR_OP_VOTE && g->i->mode != IR_VOTE_BALLOT ? g->i1 : g->i32;
    LLVMValueRef named = jit_src(g, mask, IR_U32, true);
    LLVMValueRef values = zeroed(g, type), preds = zeroed(g, g->i1);
    struct jit_lane_loop l;
    jit_lanes_begin(g, &l, active);
    LLVMValueRef members = jit_pick(g, named, l.lane);
    LLVMValueRef group =
        LLVMBuildAnd(g->b, active, jit_bits(g, equal(g, named, jit_splat(g, members))), "");
    LLVMValueRef left = LLVMBuildLoad2(g->b, g->i32, l.left, "");
    LLVMBuildStore(g->b, LLVMBuildAnd(g->b, left, LLVMBuildNot(g->b, group, ""), ""), l.left);
    struct across r = run(g, LLVMBuildAnd(g->b, active, members, ""));
    LLVMValueRef lanes = jit_lanes(g, group);
    if (value)
        blend(g, values, type, lanes, r.value);
    if (pred)
        blend(g, preds, g->i1, lanes, r.pred);
    jit_lanes_end(g, &l);
    if (value)
        jit_set(g, 0, LLVMBuildLoad2(g->b, jit_vec(g, type), values, ""));
    if (pred)
        jit_set(g, 4, LLVMBuildLoad2(g->b, jit_vec(g, g->i1), preds, ""));
}

static struct across vote(struct jit_gen *g, LLVMValueRef m)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0);
    LLVMValueRef bits =
        LLVMBuildAnd(g->b, jit_bits(g, jit_src(g, &g->i->src[0], IR_PRED, true)), m, "");
    switch (g->i->mode) {
    case IR_VOTE_BALLOT:
        return (struct across) { bits, NULL };
    case IR_VOTE_ALL:
        return (struct across) { equal(g, bits, m), NULL };
    case IR_VOTE_ANY:
        return (struct across) { LLVMBuildNot(g->b, equal(g, bits, zero), ""), NULL };
    default:
        return (struct across) { LLVMBuildOr(g->b, equal(g, bits, m), equal(g, bits, zero), ""),
                                 NULL };
    }
}

static struct across match(struct jit_gen *g, LLVMValueRef m)
{
    enum ir_type t = ir_types[g->i->type].size == 8 ? IR_B64 : IR_B32;
    LLVMValueRef v = jit_src(g, &g->i->src[0], t, true), result = zeroed(g, g->i32);
    struct jit_lane_loop l;
    jit_lanes_begin(g, &l, m);
    LLVMValueRef same = equal(g, v, jit_splat(g, jit_pick(g, v, l.lane)));
    LLVMValueRef bits = LLVMBuildAnd(g->b, jit_bits(g, same), m, "");
    LLVMValueRef all = LLVMBuildLoad2(g->b, jit_vec(g, g->i32), result, "");
    LLVMBuildStore(g->b, jit_select(g, jit_lanes(g, bits), bits, all), result);
    /* One round for each value: the other lanes that have it are done. */
    LLVMValueRef left = LLVMBuildLoad2(g->b, g->i32, l.left, "");
    LLVMBuildStore(g->b, LLVMBuildAnd(g->b, left, LLVMBuildNot(g->b, bits, ""), ""), l.left);
    jit_lanes_end(g, &l);
    all = LLVMBuildLoad2(g->b, jit_vec(g, g->i32), result, "");
    if (g->i->mode != IR_VOTE_ALL)
        return (struct across) { all, NULL };
    LLVMValueRef one = equal(g, all, jit_splat(g, m));
    all = jit_select(g, one, jit_splat(g, m), LLVMConstNull(jit_vec(g, g->i32)));
    return (struct across) { all, one };
}

static struct across redux(struct jit_gen *g, LLVMValueRef m)
{
    LLVMValueRef v = jit_src(g, &g->i->src[0], IR_U32, true);
    LLVMValueRef r = jit_reduce(g, v, m, g->i->mode, g->i->type == IR_S32);
    if (r)
        return (struct across) { r, NULL };
    jit_unsupported(g, "this form of redux");
    return (struct across) { v, NULL };
}

static struct across elect(struct jit_gen *g, LLVMValueRef m)
{
    LLVMValueRef args[] = { m, LLVMConstInt(g->i1, 0, 0) };
    LLVMValueRef leader = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2);
    return (struct across) { leader, equal(g, jit_ramp(g, g->i32, 1), jit_splat(g, leader)) };
}

/* A call of the host's function; all products of a kernel region use the same room for it. */
static void emit_mma(struct jit_gen *g)
{
    LLVMTypeRef row = jit_vec(g, g->i32), params[] = { g->i32, g->i32, g->ptr, g->ptr };
    LLVMTypeRef type = LLVMFunctionType(g->nothing, params, 4, 0);
    LLVMValueRef results[4];
    if (!g->matrices)
        g->matrices = jit_alloca(g, LLVMArrayType(row, 11), "matrices");
    for (unsigned k = 0; k < 7; k++) {
        LLVMValueRef at = LLVMConstInt(g->i32, k, 0);
        LLVMBuildStore(g->b, jit_src(g, &g->i->src[k], IR_B32, true),
                       LLVMBuildGEP2(g->b, row, g->matrices, &at, 1, ""));
    }
    LLVMValueRef at = LLVMConstInt(g->i32, 7, 0),
                 out = LLVMBuildGEP2(g->b, row, g->matrices, &at, 1, "");
    LLVMValueRef args[] = { LLVMConstInt(g->i32, g->i->mode, 0),
                            LLVMConstInt(g->i32, g->i->mode2, 0), g->matrices, out };
    LLVMBuildCall2(g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, mma)), args, 4,
                   "");
    for (unsigned k = 0; k < 4; k++) {
        at = LLVMConstInt(g->i32, k, 0);
        results[k] = LLVMBuildLoad2(g->b, row, LLVMBuildGEP2(g->b, row, out, &at, 1, ""), "");
    }
    for (unsigned k = 0; k < 4; k++)
        jit_set(g, k, results[k]);
}

bool jit_emit_cross(struct jit_gen *g)
{
    switch (g->i->op) {
    case IR_OP_SHFL:
        emit_shuffle(g);
        return true;
    case IR_OP_VOTE:
        emit_by_group(g, 1, vote);
        return true;
    case IR_OP_MATCH:
        emit_by_group(g, 1, match);
        return true;
    case IR_OP_REDUX:
        emit_by_group(g, 1, redux);
        return true;
    case IR_OP_ACTIVEMASK:
        jit_set(g, 0, jit_active(g));
        return true;
    case IR_OP_ELECT:
        emit_by_group(g, 0, elect);
        return true;
    case IR_OP_MMA:
        emit_mma(g);
        return true;
    default:
        return false;
    }
}
