/*
 * Registers, operands and masks: the vocabulary of the instruction emitters.
 */
#include <string.h>

#include "device/soft/exec/helpers.h"
#include "device/soft/ir/clones.h"
#include "device/soft/ir/spaces.h"
#include "jit/gen.h"
#include "jit/target.h"

LLVMValueRef jit_field(struct jit_gen *g, size_t offset, LLVMTypeRef type)
{
    LLVMValueRef at = LLVMConstInt(g->i64, offset, 0);
    LLVMValueRef p = LLVMBuildGEP2(g->prelude, g->i8, g->block, &at, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(g->prelude, type, p, "");
    LLVMSetMetadata(v, g->invariant_kind, g->invariant);
    return v;
}

/* What the pointer leads to may be read early, so once for all warps. */
static void mark_readable(struct jit_gen *g, LLVMValueRef pointer, uint64_t bytes)
{
    if (!bytes)
        return;
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = { { "dereferenceable", bytes }, { "align", 8 } };
    for (size_t k = 0; k < GM_ARRAY_LEN(facts); k++) {
        LLVMMetadataRef value = LLVMValueAsMetadata(LLVMConstInt(g->i64, facts[k].value, 0));
        LLVMValueRef node =
            LLVMMetadataAsValue(g->context, LLVMMDNodeInContext2(g->context, &value, 1));
        LLVMSetMetadata(pointer,
                        LLVMGetMDKindIDInContext(g->context, facts[k].name, strlen(facts[k].name)),
                        node);
    }
}

LLVMValueRef jit_cached(struct jit_gen *g, enum jit_cached what)
{
    LLVMValueRef *v = &g->cached[what];
    if (*v)
        return *v;
    switch (what) {
    case JIT_WINDOW_BASE:
        *v = jit_field(g, offsetof(struct soft_block, window_base), g->i64);
        break;
    case JIT_WINDOW_BAD:
        *v = LLVMBuildNot(g->prelude,
                          jit_field(g, offsetof(struct soft_block, window_mask), g->i64), "");
        break;
    case JIT_SHARED:
        *v = jit_field(g, offsetof(struct soft_block, shared), g->ptr);
        break;
    case JIT_SHARED_GUARD: {
        LLVMValueRef back = LLVMConstInt(g->i64, (uint64_t) - (int64_t)SOFT_SHARED_GUARD, 1);
        *v = LLVMBuildGEP2(g->prelude, g->i8, jit_cached(g, JIT_SHARED), &back, 1, "");
        break;
    }
    case JIT_SHARED_MASK:
        *v = LLVMBuildTrunc(
            g->prelude, jit_field(g, offsetof(struct soft_block, shared_mask), g->i64), g->i32, "");
        break;
    case JIT_LOCAL:
        *v = jit_field(g, offsetof(struct soft_block, local), g->ptr);
        break;
    case JIT_LOCAL_STRIDE:
        *v = jit_field(g, offsetof(struct soft_block, local_stride), g->i64);
        break;
    case JIT_PARAMS:
        *v = jit_field(g, offsetof(struct soft_block, params), g->ptr);
        mark_readable(g, *v, g->fn->param_bytes);
        break;
    case JIT_GLOBALS:
        *v = jit_field(g, offsetof(struct soft_block, globals), g->ptr);
        break;
    case JIT_HELPERS:
        *v = jit_field(g, offsetof(struct soft_block, helpers), g->ptr);
        break;
    case JIT_NTID_X:
    case JIT_NTID_Y:
    case JIT_NTID_Z: {
        unsigned d = (unsigned)(what - JIT_NTID_X);
        *v = g->ntid[d] ? LLVMConstInt(g->i32, g->ntid[d], 0)
                        : jit_field(g, offsetof(struct soft_block, ntid) + 4 * d, g->i32);
        break;
    }
    case JIT_CACHED_COUNT:
        break;
    }
    return *v;
}

LLVMValueRef jit_helper_function(struct jit_gen *g, size_t offset)
{
    LLVMValueRef at = LLVMConstInt(g->i64, offset, 0);
    LLVMValueRef p = LLVMBuildGEP2(g->b, g->i8, jit_cached(g, JIT_HELPERS), &at, 1, "");
    return LLVMBuildLoad2(g->b, g->ptr, p, "");
}

/* How a register is kept. */
static LLVMTypeRef kept_type(const struct jit_gen *g, uint32_t reg)
{
    enum ir_type type = (enum ir_type)g->fn->regs[reg].type;
    LLVMTypeRef t = type == IR_F16 ? g->i16 : jit_type(g, type);
    return jit_shape(g, reg) == IR_VARYING ? jit_vec(g, t) : t;
}

static LLVMValueRef slot_of(struct jit_gen *g, uint32_t reg)
{
    if (!g->w->regs[reg].slot)
        g->w->regs[reg].slot = jit_register_slot(g, reg, kept_type(g, reg));
    return g->w->regs[reg].slot;
}

LLVMValueRef jit_get(struct jit_gen *g, uint32_t reg)
{
    return LLVMBuildLoad2(g->b, kept_type(g, reg), slot_of(g, reg), "");
}

/* Any lane's value, of a register that was taken to be the same in all of them: the first one that
 * runs. */
static LLVMValueRef first_lane(struct jit_gen *g, LLVMValueRef v)
{
    LLVMValueRef args[] = { g->mask, LLVMConstInt(g->i1, 0, 0) };
    LLVMValueRef lane = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2);
    return jit_pick(g, v, LLVMBuildAnd(g->b, lane, LLVMConstInt(g->i32, 31, 0), ""));
}

LLVMValueRef jit_reg(struct jit_gen *g, uint32_t reg, enum ir_type type, bool vec)
{
    enum ir_shape shape = jit_shape(g, reg);
    LLVMValueRef v = vec && (shape == IR_AFFINE || shape == IR_PATTERN)
                         ? jit_affine_lanes(g, reg, jit_get(g, reg))
                         : jit_get(g, reg);
    if (!vec && shape == IR_VARYING)
        v = first_lane(g, v);
    v = jit_resize(g, v, jit_type(g, type), false);
    return vec ? jit_as_vec(g, v) : v;
}

bool jit_src_varies(const struct jit_gen *g, const struct ir_src *s)
{
    if (s->kind == IR_SRC_REG)
        return jit_shape(g, s->index) != IR_UNIFORM;
    return s->kind == IR_SRC_SREG && (s->index <= IR_SREG_TID_Z || ir_tells_lane(s->index));
}

/* Address of a symbol in its space, i64. */
static LLVMValueRef symbol_address(struct jit_gen *g, uint32_t symbol)
{
    if (!ir_symbol_is_placed(g->m, symbol))
        return LLVMConstInt(g->i64, ir_symbol_offset(g->m, g->fn, symbol), 0);
    if (!g->symbol[symbol]) {
        LLVMValueRef globals = jit_cached(g, JIT_GLOBALS), at = LLVMConstInt(g->i64, symbol, 0);
        LLVMValueRef p = LLVMBuildGEP2(g->prelude, g->i64, globals, &at, 1, "");
        g->symbol[symbol] = LLVMBuildLoad2(g->prelude, g->i64, p, "");
        LLVMSetMetadata(g->symbol[symbol], g->invariant_kind, g->invariant);
    }
    return g->symbol[symbol];
}

static LLVMValueRef lane_masks(struct jit_gen *g, uint32_t sreg)
{
    LLVMValueRef all[JIT_LANES_MAX];
    for (unsigned i = 0; i < g->lanes; i++) {
        uint32_t eq = 1u << i, lt = eq - 1;
        uint32_t v = sreg == IR_SREG_LANEMASK_EQ   ? eq
                     : sreg == IR_SREG_LANEMASK_LT ? lt
                     : sreg == IR_SREG_LANEMASK_LE ? lt | eq
                     : sreg == IR_SREG_LANEMASK_GE ? ~lt
                                                   : ~(lt | eq);
        all[i] = LLVMConstInt(g->i32, v, 0);
    }
    return LLVMConstVector(all, g->lanes);
}

/* A value of struct soft_block for a special register, read where it stands first. */
static LLVMValueRef block_field(struct jit_gen *g, uint32_t sreg)
{
    switch (sreg) {
    case IR_SREG_CTAID_X:
        return g->ctaid_x;
    case IR_SREG_CTAID_Y:
    case IR_SREG_CTAID_Z:
        return jit_field(g, offsetof(struct soft_block, ctaid) + 4 * (sreg - IR_SREG_CTAID_X),
                         g->i32);
    case IR_SREG_NCTAID_X:
    case IR_SREG_NCTAID_Y:
    case IR_SREG_NCTAID_Z:
        return jit_field(g, offsetof(struct soft_block, nctaid) + 4 * (sreg - IR_SREG_NCTAID_X),
                         g->i32);
    case IR_SREG_NTID_X:
    case IR_SREG_NTID_Y:
    case IR_SREG_NTID_Z:
        return jit_cached(g, (enum jit_cached)(JIT_NTID_X + (sreg - IR_SREG_NTID_X)));
    case IR_SREG_NWARPID:
        return jit_field(g, offsetof(struct soft_block, warps), g->i32);
    case IR_SREG_DYNAMIC_SMEM:
        return jit_field(g, offsetof(struct soft_block, dynamic_shared), g->i32);
    case IR_SREG_TOTAL_SMEM:
        return jit_field(g, offsetof(struct soft_block, shared_size), g->i32);
    default:
        return NULL;
    }
}

/* Value of a special register; a vector for those that differ between lanes, unless only lane 0 is
 * wanted. */
static LLVMValueRef special(struct jit_gen *g, uint32_t sreg, bool vec)
{
    LLVMValueRef v;
    switch (sreg) {
    case IR_SREG_TID_X:
    case IR_SREG_TID_Y:
    case IR_SREG_TID_Z:
        v = g->w->tid[sreg - IR_SREG_TID_X];
        if (!vec && jit_is_vec(v))
            return LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, 0, 0), "");
        if (vec && !jit_is_vec(v))
            return LLVMBuildAdd(g->b, jit_splat(g, v),
                                jit_ramp(g, g->i32, sreg == IR_SREG_TID_X ? 1 : 0), "");
        return v;
    case IR_SREG_LANEID:
        return vec ? jit_ramp(g, g->i32, 1) : LLVMConstInt(g->i32, 0, 0);
    case IR_SREG_LANEMASK_EQ:
    case IR_SREG_LANEMASK_LE:
    case IR_SREG_LANEMASK_LT:
    case IR_SREG_LANEMASK_GE:
    case IR_SREG_LANEMASK_GT:
        v = lane_masks(g, sreg);
        return vec ? v : LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, 0, 0), "");
    case IR_SREG_WARPID:
        return LLVMBuildLShr(g->b, g->w->first, LLVMConstInt(g->i32, 5, 0), "");
    case IR_SREG_SMID:
        return LLVMConstInt(g->i32, 0, 0);
    case IR_SREG_GRIDID:
        return jit_field(g, offsetof(struct soft_block, grid_id), g->i64);
    case IR_SREG_NSMID:
        return LLVMConstInt(g->i32, 1, 0);
    case IR_SREG_CLOCK64:
    case IR_SREG_CLOCK:
    case IR_SREG_CLOCK_HI:
        v = jit_intrinsic(g, "llvm.readcyclecounter", NULL, 0, NULL, 0);
        v = LLVMBuildSub(g->b, v, jit_field(g, offsetof(struct soft_block, clock_base), g->i64),
                         "");
        if (sreg == IR_SREG_CLOCK_HI)
            v = LLVMBuildLShr(g->b, v, LLVMConstInt(g->i64, 32, 0), "");
        return v;
    case IR_SREG_GLOBALTIMER:
    case IR_SREG_GLOBALTIMER_LO:
    case IR_SREG_GLOBALTIMER_HI:
        v = LLVMBuildCall2(g->b, LLVMFunctionType(g->i64, NULL, 0, 0),
                           jit_helper_function(g, offsetof(struct soft_helpers, wall_ns)), NULL, 0,
                           "");
        if (sreg == IR_SREG_GLOBALTIMER_HI)
            v = LLVMBuildLShr(g->b, v, LLVMConstInt(g->i64, 32, 0), "");
        return v;
    default:
        v = block_field(g, sreg);
        if (!v) {
            jit_unsupported(g, "special register %s", ir_sregs[sreg].text);
            v = LLVMConstInt(g->i32, 0, 0);
        }
        return v;
    }
}

LLVMValueRef jit_src(struct jit_gen *g, const struct ir_src *s, enum ir_type type, bool vec)
{
    LLVMValueRef v;
    switch (s->kind) {
    case IR_SRC_REG:
        v = jit_reg(g, s->index, type, vec);
        break;
    case IR_SRC_SYMBOL:
        v = LLVMBuildAdd(g->b, symbol_address(g, s->index), LLVMConstInt(g->i64, s->bits, 0), "");
        v = jit_resize(g, v, jit_type(g, type), false);
        break;
    case IR_SRC_SREG:
        v = jit_resize(g, special(g, s->index, vec), jit_type(g, type), false);
        break;
    default:
        v = jit_immediate(g, s->bits, type);
        break;
    }
    if (vec)
        v = jit_as_vec(g, v);
    if (s->negated && type == IR_PRED)
        v = LLVMBuildNot(g->b, v, "");
    return v;
}

void jit_set(struct jit_gen *g, unsigned which, LLVMValueRef v)
{
    const struct ir_instr *i = g->i;
    uint32_t reg = which == 4 ? i->dst_pred : i->dst[which];
    if (reg == IR_NONE || g->called)
        return;
    LLVMTypeRef kept = kept_type(g, reg);
    if (g->by_lane) {
        jit_set_wrapped(
            g, reg, jit_as_vec(g, jit_resize(g, v, kept, which < 4 && ir_type_is_signed(i->type))));
        return;
    }
    bool vec = LLVMGetTypeKind(kept) == LLVMVectorTypeKind;
    v = jit_resize(g, v, vec ? LLVMGetElementType(kept) : kept,
                   which < 4 && ir_type_is_signed(i->type));
    if (vec)
        v = jit_as_vec(g, v);
    else if (jit_is_vec(v) && jit_shape(g, reg) != IR_UNIFORM) /* affine, pattern */
        v = LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, 0, 0), "");
    else if (jit_is_vec(v))
        v = first_lane(g, v);
    LLVMValueRef slot = slot_of(g, reg);
    LLVMValueRef keep = NULL; /* where the new value counts */
    if (vec && g->masked && (g->a->instrs[g->at_instr].blend >> which & 1))
        keep = jit_lanes(g, jit_active(g));
    else if (g->guard)
        keep = g->guard;
    if (keep) {
        if (vec && !jit_is_vec(keep))
            keep = jit_splat(g, keep);
        else if (!vec && jit_is_vec(keep))
            keep = first_lane(g, keep);
        v = LLVMBuildSelect(g->b, keep, v, LLVMBuildLoad2(g->b, kept, slot, ""), "");
    }
    LLVMBuildStore(g->b, v, slot);
    g->w->regs[reg].checked = 0; /* the new value's alignment is unknown */
    g->w->regs[reg].agree = (struct jit_agree) { 0 };
}

LLVMValueRef jit_bits(struct jit_gen *g, LLVMValueRef lanes)
{
    LLVMValueRef bits =
        LLVMBuildBitCast(g->b, lanes, LLVMIntTypeInContext(g->context, g->lanes), "");
    return LLVMBuildZExt(g->b, bits, g->i32, "");
}

LLVMValueRef jit_is_full(struct jit_gen *g, LLVMValueRef bits)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, bits, jit_all_lanes(g), "");
}

/* With AVX2 the lanes' bits as signs, which is what its instructions want of a mask: LLVM 19 would
 * take a set of bits that comes from another block apart, bit by bit, and put it together again. */
LLVMValueRef jit_lanes(struct jit_gen *g, LLVMValueRef bits)
{
    if (g->target->avx2 && !g->target->avx512 && !g->large) {
        LLVMValueRef up[JIT_LANES_MAX];
        for (unsigned l = 0; l < g->lanes; l++)
            up[l] = LLVMConstInt(g->i32, 31 - l, 0);
        bits = LLVMBuildShl(g->b, jit_splat(g, bits), LLVMConstVector(up, g->lanes), "");
        return LLVMBuildICmp(g->b, LLVMIntSLT, bits, LLVMConstNull(LLVMTypeOf(bits)), "");
    }
    bits = LLVMBuildTrunc(g->b, bits, LLVMIntTypeInContext(g->context, g->lanes), "");
    return LLVMBuildBitCast(g->b, bits, jit_vec(g, g->i1), "");
}

LLVMValueRef jit_active(struct jit_gen *g)
{
    if (!g->guard)
        return g->mask;
    if (jit_is_vec(g->guard))
        return LLVMBuildAnd(g->b, g->mask, jit_bits(g, g->guard), "");
    return LLVMBuildSelect(g->b, g->guard, g->mask, LLVMConstInt(g->i32, 0, 0), "");
}

LLVMValueRef jit_reduce(struct jit_gen *g, LLVMValueRef v, LLVMValueRef active, unsigned mode,
                        bool sign)
{
    const unsigned bits = LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(v)));
    const uint64_t ones = UINT64_MAX >> (64 - bits), most = ones >> 1;
    const struct {
        unsigned mode;
        const char *plain, *sign;
        uint64_t neutral, sign_neutral;
    } table[] = {
        { IR_ATOM_ADD, "llvm.vector.reduce.add", "llvm.vector.reduce.add", 0, 0 },
        { IR_ATOM_MIN, "llvm.vector.reduce.umin", "llvm.vector.reduce.smin", ones, most },
        { IR_ATOM_MAX, "llvm.vector.reduce.umax", "llvm.vector.reduce.smax", 0, most + 1 },
        { IR_ATOM_AND, "llvm.vector.reduce.and", "llvm.vector.reduce.and", ones, ones },
        { IR_ATOM_OR, "llvm.vector.reduce.or", "llvm.vector.reduce.or", 0, 0 },
        { IR_ATOM_XOR, "llvm.vector.reduce.xor", "llvm.vector.reduce.xor", 0, 0 },
    };
    for (size_t k = 0; k < GM_ARRAY_LEN(table); k++) {
        if (table[k].mode != mode)
            continue;
        LLVMValueRef rest = jit_const(g, v, sign ? table[k].sign_neutral : table[k].neutral);
        return jit_call1(g, sign ? table[k].sign : table[k].plain,
                         jit_select(g, jit_lanes(g, active), v, rest));
    }
    return NULL;
}
