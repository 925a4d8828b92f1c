/*
 * Moves, logic, shifts, fields, permutations. The meaning of each instruction is that of
 * device/soft/interp/scalar_bits.c.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"

static unsigned width(const struct jit_gen *g)
{
    return 8u * (unsigned)ir_types[g->i->type].size;
}

static LLVMValueRef src(struct jit_gen *g, unsigned k, bool vec)
{
    return jit_src(g, &g->i->src[k], ir_type_untyped((enum ir_type)g->i->type), vec);
}

static LLVMValueRef src32(struct jit_gen *g, unsigned k, bool vec)
{
    return jit_src(g, &g->i->src[k], IR_U32, vec);
}

static LLVMValueRef less(struct jit_gen *g, LLVMValueRef a, uint64_t limit)
{
    return LLVMBuildICmp(g->b, LLVMIntULT, a, jit_const(g, a, limit), "");
}

static LLVMValueRef at_most(struct jit_gen *g, LLVMValueRef a, uint64_t limit)
{
    return jit_call2(g, "llvm.umin", a, jit_const(g, a, limit));
}

static LLVMValueRef zero_like(LLVMValueRef v)
{
    return LLVMConstNull(LLVMTypeOf(v));
}

static void emit_logic(struct jit_gen *g, bool vec)
{
    LLVMValueRef a = src(g, 0, vec), r;
    switch (g->i->op) {
    case IR_OP_AND:
        r = LLVMBuildAnd(g->b, a, src(g, 1, vec), "");
        break;
    case IR_OP_OR:
        r = LLVMBuildOr(g->b, a, src(g, 1, vec), "");
        break;
    case IR_OP_XOR:
        r = LLVMBuildXor(g->b, a, src(g, 1, vec), "");
        break;
    case IR_OP_NOT:
        r = LLVMBuildNot(g->b, a, "");
        break;
    default: /* CNOT */
        r = LLVMBuildZExt(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, a, zero_like(a), ""), LLVMTypeOf(a),
                          "");
        break;
    }
    jit_set(g, 0, r);
}

static void emit_shift(struct jit_gen *g, bool vec)
{
    unsigned bits = width(g);
    LLVMValueRef a = src(g, 0, vec), amount = src32(g, 1, vec), r;
    LLVMTypeRef element = jit_int(g, bits / 8);
    if (g->i->op == IR_OP_SHR && ir_type_is_signed(g->i->type)) {
        amount = jit_resize(g, at_most(g, amount, bits - 1), element, false);
        jit_set(g, 0, LLVMBuildAShr(g->b, a, amount, ""));
        return;
    }
    LLVMValueRef good = less(g, amount, bits);
    amount = jit_resize(g, LLVMBuildAnd(g->b, amount, jit_const(g, amount, bits - 1), ""), element,
                        false);
    r = g->i->op == IR_OP_SHL ? LLVMBuildShl(g->b, a, amount, "")
                              : LLVMBuildLShr(g->b, a, amount, "");
    jit_set(g, 0, jit_select(g, good, r, zero_like(r)));
}

static void emit_funnel(struct jit_gen *g, bool vec)
{
    LLVMValueRef low = src32(g, 0, vec), high = src32(g, 1, vec), amount = src32(g, 2, vec);
    bool left = g->i->mode == IR_SHF_L;
    LLVMValueRef r = jit_call3(g, left ? "llvm.fshl" : "llvm.fshr", high, low, amount);
    if (!(g->i->flags & IR_F_WRAP))
        r = jit_select(g, less(g, amount, 32), r, left ? low : high);
    jit_set(g, 0, r);
}

static void emit_lop3(struct jit_gen *g, bool vec)
{
    LLVMValueRef in[3] = { src32(g, 0, vec), src32(g, 1, vec), src32(g, 2, vec) }, r = NULL;
    if (g->i->src[3].kind != IR_SRC_IMM) {
        jit_unsupported(g, "lop3 with a computed table");
        return;
    }
    r = zero_like(in[0]);
    for (unsigned k = 0; k < 8; k++) {
        if (!(g->i->src[3].bits >> k & 1))
            continue;
        LLVMValueRef term = NULL;
        for (unsigned n = 0; n < 3; n++) {
            LLVMValueRef x = k & (4u >> n) ? in[n] : LLVMBuildNot(g->b, in[n], "");
            term = term ? LLVMBuildAnd(g->b, term, x, "") : x;
        }
        r = LLVMBuildOr(g->b, r, term, "");
    }
    jit_set(g, 0, r);
}

/* Byte number `from` (a vector or scalar of 32 bits, 0 .. 7) of the pair (high, low), in 64 bits.
 */
static LLVMValueRef byte_of(struct jit_gen *g, LLVMValueRef both, LLVMValueRef from)
{
    LLVMValueRef wide = LLVMBuildZExt(g->b, from, LLVMTypeOf(both), "");
    LLVMValueRef amount = LLVMBuildShl(g->b, wide, jit_const(g, wide, 3), "");
    LLVMValueRef byte = LLVMBuildLShr(g->b, both, amount, "");
    return LLVMBuildAnd(g->b, jit_resize(g, byte, g->i32, false), jit_const(g, from, 0xff), "");
}

/* Which byte of the eight goes to byte k of the result. */
static LLVMValueRef byte_index(struct jit_gen *g, LLVMValueRef control, unsigned k)
{
    LLVMValueRef low = LLVMBuildAnd(g->b, control, jit_const(g, control, 3), ""),
                 place = jit_const(g, control, k);
    switch (g->i->mode) {
    case IR_PRMT_F4E:
        return LLVMBuildAdd(g->b, low, place, "");
    case IR_PRMT_B4E:
        low = LLVMBuildSub(g->b, LLVMBuildAdd(g->b, low, jit_const(g, low, 8), ""), place, "");
        return LLVMBuildAnd(g->b, low, jit_const(g, low, 7), "");
    case IR_PRMT_RC8:
        return low;
    case IR_PRMT_ECL:
        return jit_call2(g, "llvm.umax", low, place);
    case IR_PRMT_ECR:
        return jit_call2(g, "llvm.umin", low, place);
    case IR_PRMT_RC16:
        low = LLVMBuildAnd(g->b, low, jit_const(g, low, 1), "");
        low = LLVMBuildShl(g->b, low, jit_const(g, low, 1), "");
        return LLVMBuildAdd(g->b, low, jit_const(g, low, k & 1), "");
    default:
        low = LLVMBuildLShr(g->b, control, jit_const(g, control, 4 * k), "");
        return LLVMBuildAnd(g->b, low, jit_const(g, low, 7), "");
    }
}

static void emit_prmt(struct jit_gen *g, bool vec)
{
    LLVMValueRef low = jit_src(g, &g->i->src[0], IR_U32, vec),
                 high = jit_src(g, &g->i->src[1], IR_U32, vec);
    LLVMValueRef control = src32(g, 2, vec), r = zero_like(control);
    LLVMTypeRef wide = jit_like(low, g->i64);
    LLVMValueRef both = LLVMBuildZExt(g->b, high, wide, "");
    both = LLVMBuildShl(g->b, both, jit_const(g, both, 32), "");
    both = LLVMBuildOr(g->b, both, LLVMBuildZExt(g->b, low, wide, ""), "");
    for (unsigned k = 0; k < 4; k++) {
        LLVMValueRef byte = byte_of(g, both, byte_index(g, control, k));
        if (g->i->mode == IR_MODE_NONE) {
            LLVMValueRef flag =
                LLVMBuildAnd(g->b, control, jit_const(g, control, 8u << (4 * k)), "");
            LLVMValueRef top = LLVMBuildShl(g->b, byte, jit_const(g, byte, 24), "");
            LLVMValueRef sign = LLVMBuildAShr(g->b, top, jit_const(g, byte, 31), "");
            sign = LLVMBuildAnd(g->b, sign, jit_const(g, byte, 0xff), "");
            byte = jit_select(g, LLVMBuildICmp(g->b, LLVMIntNE, flag, zero_like(flag), ""), sign,
                              byte);
        }
        r = LLVMBuildOr(g->b, r, LLVMBuildShl(g->b, byte, jit_const(g, byte, 8 * k), ""), "");
    }
    jit_set(g, 0, r);
}

/* n low ones, n = 0 .. width, of the width of `like`. */
static LLVMValueRef low_ones(struct jit_gen *g, LLVMValueRef n, LLVMValueRef like)
{
    unsigned bits = width(g);
    LLVMValueRef all = LLVMConstAllOnes(LLVMTypeOf(like));
    LLVMValueRef drop = LLVMBuildSub(g->b, jit_const(g, n, bits), n, "");
    LLVMValueRef amount = LLVMBuildAnd(g->b, drop, jit_const(g, drop, bits - 1), "");
    amount = jit_resize(g, amount, jit_int(g, bits / 8), false);
    LLVMValueRef ones = LLVMBuildLShr(g->b, all, amount, "");
    return jit_select(g, LLVMBuildICmp(g->b, LLVMIntEQ, n, zero_like(n), ""), zero_like(like),
                      ones);
}

/* How many bits of a field lie inside the word: min(length, width - position), 0 if it begins
 * behind its end. */
static LLVMValueRef present_bits(struct jit_gen *g, LLVMValueRef position, LLVMValueRef length)
{
    LLVMValueRef bits = jit_const(g, position, width(g));
    LLVMValueRef room = LLVMBuildSub(g->b, bits, jit_call2(g, "llvm.umin", position, bits), "");
    return jit_call2(g, "llvm.umin", length, room);
}

static LLVMValueRef byte_operand(struct jit_gen *g, unsigned k, bool vec)
{
    LLVMValueRef v = src32(g, k, vec);
    return width(g) == 32 ? LLVMBuildAnd(g->b, v, jit_const(g, v, 0xff), "") : at_most(g, v, 64);
}

static LLVMValueRef amount_of(struct jit_gen *g, LLVMValueRef position)
{
    LLVMValueRef amount = LLVMBuildAnd(g->b, position, jit_const(g, position, width(g) - 1), "");
    return jit_resize(g, amount, jit_int(g, width(g) / 8), false);
}

static void emit_bfe(struct jit_gen *g, bool vec)
{
    unsigned bits = width(g);
    LLVMValueRef a = src(g, 0, vec), position = byte_operand(g, 1, vec),
                 length = byte_operand(g, 2, vec);
    LLVMValueRef mask = low_ones(g, present_bits(g, position, length), a);
    LLVMValueRef r =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, a, amount_of(g, position), ""), mask, "");
    if (ir_type_is_signed(g->i->type)) {
        LLVMValueRef last = LLVMBuildAdd(g->b, position, length, "");
        last = at_most(g, LLVMBuildSub(g->b, last, jit_const(g, last, 1), ""), bits - 1);
        last = jit_resize(g, last, jit_int(g, bits / 8), false);
        LLVMValueRef sign = LLVMBuildLShr(g->b, a, last, "");
        sign = LLVMBuildNeg(g->b, LLVMBuildAnd(g->b, sign, jit_const(g, sign, 1), ""), "");
        sign = LLVMBuildAnd(g->b, sign, LLVMBuildNot(g->b, mask, ""), "");
        LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, length, zero_like(length), "");
        r = LLVMBuildOr(g->b, r, jit_select(g, some, sign, zero_like(sign)), "");
    }
    jit_set(g, 0, r);
}

static void emit_bfi(struct jit_gen *g, bool vec)
{
    LLVMValueRef a = src(g, 0, vec), b = src(g, 1, vec);
    LLVMValueRef position = byte_operand(g, 2, vec), length = byte_operand(g, 3, vec);
    LLVMValueRef mask = low_ones(g, present_bits(g, position, length), a),
                 amount = amount_of(g, position);
    mask = LLVMBuildShl(g->b, mask, amount, "");
    LLVMValueRef field = LLVMBuildAnd(g->b, LLVMBuildShl(g->b, a, amount, ""), mask, "");
    jit_set(g, 0,
            LLVMBuildOr(g->b, field, LLVMBuildAnd(g->b, b, LLVMBuildNot(g->b, mask, ""), ""), ""));
}

static LLVMValueRef count_zeros(struct jit_gen *g, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    LLVMValueRef args[] = { v, LLVMConstInt(g->i1, 0, 0) };
    return jit_intrinsic(g, "llvm.ctlz", &t, 1, args, 2);
}

static void emit_count(struct jit_gen *g, bool vec)
{
    LLVMValueRef a = src(g, 0, vec);
    unsigned bits = width(g);
    switch (g->i->op) {
    case IR_OP_POPC:
        jit_set(g, 0, jit_resize(g, jit_call1(g, "llvm.ctpop", a), g->i32, false));
        return;
    case IR_OP_CLZ:
        jit_set(g, 0, jit_resize(g, count_zeros(g, a), g->i32, false));
        return;
    case IR_OP_BREV:
        jit_set(g, 0, jit_call1(g, "llvm.bitreverse", a));
        return;
    default:
        break;
    }
    /* BFIND: the highest bit that differs from the sign */
    if (ir_type_is_signed(g->i->type))
        a = LLVMBuildXor(g->b, a, LLVMBuildAShr(g->b, a, jit_const(g, a, bits - 1), ""), "");
    LLVMValueRef zeros = jit_resize(g, count_zeros(g, a), g->i32, false), r = zeros;
    if (!(g->i->flags & IR_F_SHIFTAMT))
        r = LLVMBuildSub(g->b, jit_const(g, zeros, bits - 1), zeros, "");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, a, zero_like(a), "");
    jit_set(g, 0, jit_select(g, none, LLVMConstAllOnes(LLVMTypeOf(r)), r));
}

/* ~0 << n, 0 for n beyond 31. */
static LLVMValueRef ones_from(struct jit_gen *g, LLVMValueRef n)
{
    LLVMValueRef low = LLVMBuildAnd(g->b, n, jit_const(g, n, 31), "");
    LLVMValueRef r = LLVMBuildShl(g->b, LLVMConstAllOnes(LLVMTypeOf(n)), low, "");
    return jit_select(g, less(g, n, 32), r, zero_like(r));
}

static void emit_bmsk(struct jit_gen *g, bool vec)
{
    LLVMValueRef a = src32(g, 0, vec), b = src32(g, 1, vec), limit = jit_const(g, a, 31);
    LLVMValueRef first = LLVMBuildAnd(g->b, a, limit, "");
    LLVMValueRef sum = LLVMBuildAdd(g->b, first, LLVMBuildAnd(g->b, b, limit, ""), "");
    LLVMValueRef from_first = ones_from(g, first), from_end = ones_from(g, sum);
    if (!(g->i->flags & IR_F_WRAP)) {
        LLVMValueRef a_in = less(g, a, 32);
        from_first = jit_select(g, a_in, from_first, zero_like(a));
        from_end =
            jit_select(g, LLVMBuildAnd(g->b, a_in, less(g, b, 32), ""), from_end, zero_like(a));
    }
    jit_set(g, 0, LLVMBuildAnd(g->b, from_first, LLVMBuildNot(g->b, from_end, ""), ""));
}

static void emit_szext(struct jit_gen *g, bool vec)
{
    LLVMValueRef a = src32(g, 0, vec), b = src32(g, 1, vec);
    LLVMValueRef n = LLVMBuildAnd(g->b, b, jit_const(g, b, 31), "");
    LLVMValueRef above = ones_from(g, g->i->flags & IR_F_WRAP ? n : b);
    LLVMValueRef r = LLVMBuildAnd(g->b, a, LLVMBuildNot(g->b, above, ""), "");
    if (g->i->type == IR_S32) {
        LLVMValueRef last = LLVMBuildAnd(g->b, LLVMBuildSub(g->b, n, jit_const(g, n, 1), ""),
                                         jit_const(g, n, 31), "");
        LLVMValueRef sign = LLVMBuildLShr(g->b, a, last, "");
        sign = LLVMBuildNeg(g->b, LLVMBuildAnd(g->b, sign, jit_const(g, sign, 1), ""), "");
        sign = jit_select(g, LLVMBuildICmp(g->b, LLVMIntNE, n, zero_like(n), ""), sign,
                          zero_like(sign));
        r = LLVMBuildOr(g->b, r, LLVMBuildAnd(g->b, sign, above, ""), "");
    }
    jit_set(g, 0, r);
}

static void emit_pack(struct jit_gen *g, bool vec)
{
    unsigned n = g->i->src_count, part = width(g) / (n ? n : 1);
    enum ir_type t = part == 8 ? IR_B8 : part == 16 ? IR_B16 : IR_B32;
    LLVMValueRef r = NULL;
    for (unsigned k = 0; k < n; k++) {
        LLVMValueRef v =
            jit_resize(g, jit_src(g, &g->i->src[k], t, vec), jit_int(g, width(g) / 8), false);
        v = LLVMBuildShl(g->b, v, jit_const(g, v, k * part), "");
        r = r ? LLVMBuildOr(g->b, r, v, "") : v;
    }
    if (r)
        jit_set(g, 0, r);
}

static void emit_unpack(struct jit_gen *g)
{
    unsigned n = g->i->dst_count, part = width(g) / (n ? n : 1);
    bool vec = jit_src_varies(g, &g->i->src[0]);
    LLVMValueRef v = src(g, 0, vec);
    for (unsigned k = 0; k < n; k++)
        jit_set(g, k,
                jit_resize(g, LLVMBuildLShr(g->b, v, jit_const(g, v, k * part), ""),
                           jit_int(g, part / 8), false));
}

/* Addresses of one space and generic ones differ by a constant. */
static void emit_cvta(struct jit_gen *g, bool vec)
{
    enum ir_type t = (enum ir_type)g->i->type;
    LLVMValueRef v = jit_src(g, &g->i->src[0], t, vec);
    uint64_t base = g->i->space == IR_SPACE_SHARED  ? IR_GENERIC_SHARED
                    : g->i->space == IR_SPACE_LOCAL ? IR_GENERIC_LOCAL
                    : g->i->space == IR_SPACE_PARAM ? IR_GENERIC_PARAM
                                                    : 0;
    if (base && ir_types[t].size == 4) {
        jit_unsupported(g, "32-bit generic addresses");
        return;
    }
    if (base)
        v = LLVMBuildAdd(g->b, v, jit_const(g, v, g->i->mode == IR_CVTA_TO ? 0 - base : base), "");
    jit_set(g, 0, v);
}

/* Constants lie in global memory, and global is whatever is none of the others. */
static void emit_isspacep(struct jit_gen *g, bool vec)
{
    LLVMValueRef v = jit_src(g, &g->i->src[0], IR_U64, vec), r;
    LLVMValueRef space = LLVMBuildLShr(g->b, v, jit_const(g, v, SOFT_SPACE_SHIFT), "");
    uint64_t want = g->i->space == IR_SPACE_SHARED  ? SOFT_SPACE_SHARED
                    : g->i->space == IR_SPACE_LOCAL ? SOFT_SPACE_LOCAL
                                                    : SOFT_SPACE_PARAM;
    switch (g->i->space) {
    case IR_SPACE_SHARED:
    case IR_SPACE_LOCAL:
    case IR_SPACE_PARAM:
        r = LLVMBuildICmp(g->b, LLVMIntEQ, space, jit_const(g, space, want), "");
        break;
    case IR_SPACE_CONST:
        r = LLVMConstNull(jit_like(v, g->i1));
        break;
    default:
        space = LLVMBuildSub(g->b, space, jit_const(g, space, SOFT_SPACE_SHARED), "");
        r = LLVMBuildICmp(g->b, LLVMIntUGT, space,
                          jit_const(g, space, SOFT_SPACE_PARAM - SOFT_SPACE_SHARED), "");
        break;
    }
    jit_set(g, 0, r);
}

bool jit_emit_bits(struct jit_gen *g)
{
    bool vec = jit_wants_vec(g);
    switch (g->i->op) {
    case IR_OP_MOV:
        jit_set(g, 0, src(g, 0, vec));
        return true;
    case IR_OP_PACK:
        emit_pack(g, vec);
        return true;
    case IR_OP_UNPACK:
        emit_unpack(g);
        return true;
    case IR_OP_AND:
    case IR_OP_OR:
    case IR_OP_XOR:
    case IR_OP_NOT:
    case IR_OP_CNOT:
        emit_logic(g, vec);
        return true;
    case IR_OP_SHL:
    case IR_OP_SHR:
        emit_shift(g, vec);
        return true;
    case IR_OP_SHF:
        emit_funnel(g, vec);
        return true;
    case IR_OP_LOP3:
        emit_lop3(g, vec);
        return true;
    case IR_OP_PRMT:
        emit_prmt(g, vec);
        return true;
    case IR_OP_BFE:
        emit_bfe(g, vec);
        return true;
    case IR_OP_BFI:
        emit_bfi(g, vec);
        return true;
    case IR_OP_BFIND:
    case IR_OP_BREV:
    case IR_OP_CLZ:
    case IR_OP_POPC:
        emit_count(g, vec);
        return true;
    case IR_OP_BMSK:
        emit_bmsk(g, vec);
        return true;
    case IR_OP_SZEXT:
        emit_szext(g, vec);
        return true;
    case IR_OP_CVTA:
        emit_cvta(g, vec);
        return true;
    case IR_OP_ISSPACEP:
        emit_isspacep(g, vec);
        return true;
    default:
        return false;
    }
}
