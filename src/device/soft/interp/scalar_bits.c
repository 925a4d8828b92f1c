/*
 * Bits: logic, shifts, fields, permutations, one lane at a time.
 */
#include "device/soft/interp/scalar.h"

static unsigned type_bits(const struct ir_instr *i)
{
    return 8u * ir_types[i->type].size;
}

static uint64_t scalar_logic(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    switch (i->op) {
    case IR_OP_AND:
        return s[0] & s[1];
    case IR_OP_OR:
        return s[0] | s[1];
    case IR_OP_XOR:
        return s[0] ^ s[1];
    case IR_OP_NOT:
        return i->type == IR_PRED ? s[0] ^ 1 : ~s[0];
    default: /* CNOT */
        return interp_extend(i->type, s[0]) == 0;
    }
}

static uint64_t scalar_move(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    return s[0];
}

/* Shifts. An amount beyond the width gives what shifting one by one would. */
static uint64_t scalar_shift(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned bits = type_bits(i);
    uint32_t amount = (uint32_t)s[1];
    uint64_t a = interp_extend(i->type, s[0]);
    if (i->op == IR_OP_SHL)
        return amount >= bits ? 0 : a << amount;
    if (ir_type_is_signed(i->type))
        return (uint64_t)((int64_t)a >> GM_MIN(amount, 63u));
    return amount >= bits ? 0 : a >> amount;
}

static uint64_t scalar_shf(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t both = (s[1] << 32) | (uint32_t)s[0];
    uint32_t amount = (uint32_t)s[2];
    amount = i->flags & IR_F_WRAP ? amount & 31 : GM_MIN(amount, 32u);
    return (uint32_t)(i->mode == IR_SHF_L ? both << amount >> 32 : both >> amount);
}

static uint64_t scalar_lop3(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint32_t a = (uint32_t)s[0], b = (uint32_t)s[1], c = (uint32_t)s[2], r = 0;
    for (unsigned k = 0; k < 8; k++)
        if (s[3] >> k & 1)
            r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

static uint64_t scalar_prmt(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t bytes = (s[1] << 32) | (uint32_t)s[0];
    unsigned control = (unsigned)s[2] & 3;
    uint32_t r = 0;
    for (unsigned k = 0; k < 4; k++) {
        unsigned from;
        bool sign = false;
        switch (i->mode) {
        case IR_PRMT_F4E:
            from = control + k;
            break;
        case IR_PRMT_B4E:
            from = (control + 8 - k) & 7;
            break;
        case IR_PRMT_RC8:
            from = control;
            break;
        case IR_PRMT_ECL:
            from = GM_MAX(k, control);
            break;
        case IR_PRMT_ECR:
            from = GM_MIN(k, control);
            break;
        case IR_PRMT_RC16:
            from = (control & 1) * 2 + (k & 1);
            break;
        default:
            from = (unsigned)(s[2] >> (4 * k)) & 7;
            sign = s[2] >> (4 * k + 3) & 1;
            break;
        }
        uint32_t byte = (uint32_t)(bytes >> (8 * from)) & 0xff;
        if (sign)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * k);
    }
    return r;
}

static uint64_t low_ones(unsigned n)
{
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* A position in a bit field. 32-bit instructions read 8 bits of it; the hardware composes 64-bit
 * ones from other instructions. */
static unsigned place(const struct ir_instr *i, uint64_t v)
{
    return type_bits(i) == 32 ? v & 0xff : GM_MIN((uint32_t)v, 64u);
}

static uint64_t scalar_bfe(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned bits = type_bits(i), position = place(i, s[1]), length = place(i, s[2]);
    uint64_t a = s[0] & low_ones(bits);
    bool negative = false;
    if (ir_type_is_signed(i->type) && length > 0)
        negative = a >> GM_MIN(position + length - 1, bits - 1) & 1;
    unsigned present = position >= bits ? 0 : GM_MIN(length, bits - position);
    uint64_t field = present ? a >> position & low_ones(present) : 0;
    return negative ? field | ~low_ones(present) : field;
}

static uint64_t scalar_bfi(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned bits = type_bits(i), position = place(i, s[2]), length = place(i, s[3]);
    unsigned present = position >= bits ? 0 : GM_MIN(length, bits - position);
    uint64_t mask = present ? low_ones(present) << position : 0;
    return (s[1] & ~mask) | (present ? s[0] << position & mask : 0);
}

static uint64_t scalar_bfind(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned bits = type_bits(i);
    uint64_t a = interp_extend(i->type, s[0]);
    if (ir_type_is_signed(i->type) && (int64_t)a < 0)
        a = ~a;
    if (a == 0)
        return UINT32_MAX;
    uint32_t position = 63 - (uint32_t)__builtin_clzll(a);
    return i->flags & IR_F_SHIFTAMT ? bits - 1 - position : position;
}

static uint64_t scalar_brev(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = s[0], r = 0;
    for (unsigned k = 0; k < 64; k++)
        r |= (a >> k & 1) << (63 - k);
    return r >> (64 - type_bits(i));
}

static uint64_t scalar_count(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned bits = type_bits(i);
    uint64_t a = s[0] & low_ones(bits);
    if (i->op == IR_OP_POPC)
        return (uint64_t)__builtin_popcountll(a);
    return a ? (uint64_t)__builtin_clzll(a) - (64 - bits) : bits;
}

static uint64_t scalar_bmsk(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint32_t a = (uint32_t)s[0], b = (uint32_t)s[1];
    bool clamp = !(i->flags & IR_F_WRAP);
    unsigned first = a & 31, sum = first + (b & 31);
    uint32_t from_first = clamp && a >= 32 ? 0 : UINT32_MAX << first;
    bool over = sum >= 32 || (clamp && (a >= 32 || b >= 32));
    uint32_t from_end = over ? 0 : UINT32_MAX << sum;
    return from_first & ~from_end;
}

static uint64_t scalar_szext(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint32_t a = (uint32_t)s[0], b = (uint32_t)s[1];
    unsigned n = b & 31;
    bool whole = b >= 32 && !(i->flags & IR_F_WRAP);
    uint32_t above = whole ? 0 : UINT32_MAX << n;
    bool negative = i->type == IR_S32 && !whole && n != 0 && (a >> (n - 1) & 1);
    return (a & ~above) | (negative ? above : 0);
}

static uint64_t scalar_fns(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint32_t mask = (uint32_t)s[0], base = (uint32_t)s[1];
    int64_t offset = (int32_t)s[2];
    if (offset == INT32_MIN)
        return 0;
    if (base > 31)
        return UINT32_MAX;
    if (offset == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int step = offset > 0 ? 1 : -1;
    int64_t left = (offset > 0 ? offset : -offset) - 1;
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && left-- == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

static uint64_t scalar_pack(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned part = type_bits(i) / GM_MAX(i->src_count, 1u);
    uint64_t r = 0;
    for (unsigned k = 0; k < i->src_count; k++)
        r |= (s[k] & low_ones(part)) << (k * part);
    return r;
}

interp_scalar *interp_scalar_find_bits(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_MOV:
        return scalar_move;
    case IR_OP_PACK:
        return scalar_pack;
    case IR_OP_AND:
    case IR_OP_OR:
    case IR_OP_XOR:
    case IR_OP_NOT:
    case IR_OP_CNOT:
        return scalar_logic;
    case IR_OP_SHL:
    case IR_OP_SHR:
        return scalar_shift;
    case IR_OP_SHF:
        return scalar_shf;
    case IR_OP_LOP3:
        return scalar_lop3;
    case IR_OP_PRMT:
        return scalar_prmt;
    case IR_OP_BFE:
        return scalar_bfe;
    case IR_OP_BFI:
        return scalar_bfi;
    case IR_OP_BFIND:
        return scalar_bfind;
    case IR_OP_BREV:
        return scalar_brev;
    case IR_OP_CLZ:
    case IR_OP_POPC:
        return scalar_count;
    case IR_OP_BMSK:
        return scalar_bmsk;
    case IR_OP_SZEXT:
        return scalar_szext;
    case IR_OP_FNS:
        return scalar_fns;
    default:
        return NULL;
    }
}
