/*
 * Integer arithmetic, one lane at a time.
 */
#include "device/soft/interp/scalar.h"

static unsigned type_bits(const struct ir_instr *i)
{
    return 8u * ir_types[i->type].size;
}

static uint64_t all_ones(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* a + b + carry in the type's width; *carry becomes the carry out. */
static uint64_t add_carry(const struct ir_instr *i, uint64_t a, uint64_t b, bool *carry)
{
    unsigned __int128 sum =
        (unsigned __int128)(a & all_ones(type_bits(i))) + (b & all_ones(type_bits(i))) + *carry;
    *carry = (sum >> type_bits(i)) & 1;
    return (uint64_t)sum & all_ones(type_bits(i));
}

/* a + ~b + carry: the carry is 1 if nothing was borrowed. */
static uint64_t sub_carry(const struct ir_instr *i, uint64_t a, uint64_t b, bool *carry)
{
    return add_carry(i, a, ~b, carry);
}

static uint64_t clamp_s32(int64_t v)
{
    return (uint64_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
}

static uint64_t scalar_add(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    if (i->flags & IR_F_SAT)
        return clamp_s32((int64_t)(int32_t)s[0] + (int32_t)s[1]);
    bool carry = false;
    uint64_t r = add_carry(i, s[0], s[1], &carry);
    *p = carry;
    return r;
}

static uint64_t scalar_sub(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    if (i->flags & IR_F_SAT)
        return clamp_s32((int64_t)(int32_t)s[0] - (int32_t)s[1]);
    bool carry = true;
    uint64_t r = sub_carry(i, s[0], s[1], &carry);
    *p = carry;
    return r;
}

static uint64_t scalar_addc(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    bool carry = s[2] & 1;
    uint64_t r = add_carry(i, s[0], s[1], &carry);
    *p = carry;
    return r;
}

static uint64_t scalar_subc(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    bool carry = s[2] & 1;
    uint64_t r = sub_carry(i, s[0], s[1], &carry);
    *p = carry;
    return r;
}

/* The part of a * b that the instruction's mode asks for. */
static uint64_t product(const struct ir_instr *i, uint64_t a, uint64_t b)
{
    unsigned __int128 full;
    a = interp_extend(i->type, a);
    b = interp_extend(i->type, b);
    if (ir_type_is_signed(i->type))
        full = (unsigned __int128)((__int128)(int64_t)a * (int64_t)b);
    else
        full = (unsigned __int128)a * b;
    if (i->mode == IR_MUL_HI)
        return (uint64_t)(full >> type_bits(i)) & all_ones(type_bits(i));
    if (i->mode == IR_MUL_WIDE)
        return (uint64_t)full & all_ones(2 * type_bits(i));
    return (uint64_t)full & all_ones(type_bits(i));
}

static uint64_t scalar_mul(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    return product(i, s[0], s[1]);
}

static uint64_t scalar_mad(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t ab = product(i, s[0], s[1]);
    if (i->mode == IR_MUL_WIDE)
        return (ab + s[2]) & all_ones(2 * type_bits(i));
    if (i->flags & IR_F_SAT)
        return clamp_s32((int64_t)(int32_t)ab + (int32_t)s[2]);
    bool carry = i->op == IR_OP_MADC ? s[3] & 1 : 0;
    uint64_t r = add_carry(i, ab, s[2], &carry);
    *p = carry;
    return r;
}

static uint64_t scalar_mul24(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    bool is_signed = ir_type_is_signed(i->type);
    int64_t a = is_signed ? (int32_t)((uint32_t)s[0] << 8) >> 8 : (int64_t)(s[0] & 0xffffff);
    int64_t b = is_signed ? (int32_t)((uint32_t)s[1] << 8) >> 8 : (int64_t)(s[1] & 0xffffff);
    uint32_t ab = (uint32_t)(i->mode == IR_MUL_HI ? (uint64_t)(a * b) >> 16 : (uint64_t)(a * b));
    if (i->op == IR_OP_MUL24)
        return ab;
    if (i->flags & IR_F_SAT)
        return clamp_s32((int64_t)(int32_t)ab + (int32_t)s[2]);
    return ab + (uint32_t)s[2];
}

static uint64_t scalar_sad(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = interp_extend(i->type, s[0]), b = interp_extend(i->type, s[1]);
    bool less = ir_type_is_signed(i->type) ? (int64_t)a < (int64_t)b : a < b;
    return s[2] + (less ? b - a : a - b);
}

/* Division by zero gives all ones for quotient and remainder, as on the hardware. The one quotient
 * that does not fit wraps. */
static uint64_t scalar_div(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = interp_extend(i->type, s[0]), b = interp_extend(i->type, s[1]);
    bool rem = i->op == IR_OP_REM;
    if (b == 0)
        return UINT64_MAX;
    if (!ir_type_is_signed(i->type))
        return rem ? a % b : a / b;
    if (b == UINT64_MAX)
        return rem ? 0 : 0 - a;
    return (uint64_t)(rem ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

static uint64_t scalar_abs(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = interp_extend(i->type, s[0]);
    return (int64_t)a < 0 ? 0 - a : a;
}

static uint64_t scalar_neg(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    return 0 - s[0];
}

static uint64_t scalar_minmax(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = interp_extend(i->type, s[0]), b = interp_extend(i->type, s[1]);
    bool less = ir_type_is_signed(i->type) ? (int64_t)a < (int64_t)b : a < b;
    uint64_t r = (i->op == IR_OP_MIN) == less ? a : b;
    if ((i->flags & IR_F_RELU) && (int64_t)r < 0)
        r = 0;
    return r;
}

static int64_t lane_of(uint64_t word, unsigned first, unsigned bits, bool is_signed)
{
    unsigned drop = 64 - bits;
    uint64_t v = word >> first << drop;
    return is_signed ? (int64_t)v >> drop : (int64_t)(v >> drop);
}

static uint64_t scalar_dp4a(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    int64_t sum = (int32_t)s[2];
    for (unsigned k = 0; k < 4; k++)
        sum += lane_of(s[0], 8 * k, 8, i->type == IR_S32) *
               lane_of(s[1], 8 * k, 8, i->type2 == IR_S32);
    return (uint32_t)sum;
}

static uint64_t scalar_dp2a(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    unsigned from = i->mode == IR_MUL_HI ? 16 : 0;
    int64_t sum = (int32_t)s[2];
    for (unsigned k = 0; k < 2; k++)
        sum += lane_of(s[0], 16 * k, 16, i->type == IR_S32) *
               lane_of(s[1], from + 8 * k, 8, i->type2 == IR_S32);
    return (uint32_t)sum;
}

interp_scalar *interp_scalar_find_int(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_ADD:
        return scalar_add;
    case IR_OP_SUB:
        return scalar_sub;
    case IR_OP_ADDC:
        return scalar_addc;
    case IR_OP_SUBC:
        return scalar_subc;
    case IR_OP_MUL:
        return scalar_mul;
    case IR_OP_MAD:
    case IR_OP_MADC:
        return scalar_mad;
    case IR_OP_MUL24:
    case IR_OP_MAD24:
        return scalar_mul24;
    case IR_OP_SAD:
        return scalar_sad;
    case IR_OP_DIV:
    case IR_OP_REM:
        return scalar_div;
    case IR_OP_ABS:
        return scalar_abs;
    case IR_OP_NEG:
        return scalar_neg;
    case IR_OP_MIN:
    case IR_OP_MAX:
        return scalar_minmax;
    case IR_OP_DP4A:
        return scalar_dp4a;
    case IR_OP_DP2A:
        return scalar_dp2a;
    default:
        return NULL;
    }
}
