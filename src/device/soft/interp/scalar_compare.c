/*
 * Comparison and selection, one lane at a time; and the look-up of scalar forms.
 */
#include <math.h>

#include "device/soft/interp/format.h"
#include "device/soft/interp/scalar.h"

enum order { LESS, EQUAL, GREATER, UNORDERED };

static bool holds(uint8_t cmp, enum order o)
{
    bool unordered = o == UNORDERED;
    switch (cmp) {
    case IR_CMP_EQ:
        return o == EQUAL;
    case IR_CMP_NE:
        return o == LESS || o == GREATER;
    case IR_CMP_LT:
        return o == LESS;
    case IR_CMP_LE:
        return o == LESS || o == EQUAL;
    case IR_CMP_GT:
        return o == GREATER;
    case IR_CMP_GE:
        return o == GREATER || o == EQUAL;
    case IR_CMP_EQU:
        return o == EQUAL || unordered;
    case IR_CMP_NEU:
        return o != EQUAL;
    case IR_CMP_LTU:
        return o == LESS || unordered;
    case IR_CMP_LEU:
        return o != GREATER;
    case IR_CMP_GTU:
        return o == GREATER || unordered;
    case IR_CMP_GEU:
        return o != LESS;
    case IR_CMP_NUM:
        return !unordered;
    default: /* NAN */
        return unordered;
    }
}

static enum order order_of_double(double a, double b)
{
    return a < b ? LESS : a > b ? GREATER : a == b ? EQUAL : UNORDERED;
}

static double compared(const struct ir_instr *i, uint8_t type, uint64_t bits)
{
    switch (type) {
    case IR_F16:
    case IR_BF16: {
        uint16_t half = (uint16_t)bits, exponent = type == IR_F16 ? 0x7c00 : 0x7f80;
        if ((i->flags & IR_F_FTZ) && !(half & exponent))
            half &= 0x8000;
        return (double)interp_half_to_float(type, half);
    }
    case IR_F32:
        return (double)(i->flags & IR_F_FTZ ? interp_ftz(interp_f32(bits)) : interp_f32(bits));
    default:
        return interp_f64(bits);
    }
}

static bool compare(const struct ir_instr *i, uint8_t type, uint64_t a, uint64_t b)
{
    enum order o;
    if (ir_types[type].class == 'F') {
        o = order_of_double(compared(i, type, a), compared(i, type, b));
    } else {
        a = interp_extend(type, a);
        b = interp_extend(type, b);
        bool less = ir_type_is_signed(type) ? (int64_t)a < (int64_t)b : a < b;
        o = a == b ? EQUAL : less ? LESS : GREATER;
    }
    return holds(i->cmp, o);
}

static bool combined(const struct ir_instr *i, bool r, uint64_t c)
{
    switch (i->boolop) {
    case IR_BOOL_AND:
        return r && (c & 1);
    case IR_BOOL_OR:
        return r || (c & 1);
    case IR_BOOL_XOR:
        return r != (c & 1);
    default:
        return r;
    }
}

static uint64_t scalar_setp(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t c = i->boolop == IR_BOOL_NONE ? 0 : s[2];
    bool r = compare(i, i->type, s[0], s[1]);
    *p = combined(i, !r, c);
    return combined(i, r, c);
}

static uint64_t set_result(uint8_t type, bool r)
{
    switch (type) {
    case IR_F32:
        return r ? 0x3f800000u : 0;
    case IR_F64:
        return r ? UINT64_C(0x3ff0000000000000) : 0;
    case IR_F16:
        return r ? 0x3c00u : 0;
    case IR_BF16:
        return r ? 0x3f80u : 0;
    default:
        return r ? interp_extend(type, UINT64_MAX) : 0;
    }
}

static uint64_t scalar_set(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    bool r = compare(i, i->type2, s[0], s[1]);
    return set_result(i->type, combined(i, r, i->boolop == IR_BOOL_NONE ? 0 : s[2]));
}

static uint64_t scalar_selp(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    return s[2] & 1 ? s[0] : s[1];
}

static uint64_t scalar_slct(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    bool first = i->type2 == IR_F32 ? compared(i, IR_F32, s[2]) >= 0 : (int32_t)s[2] >= 0;
    return first ? s[0] : s[1];
}

static uint64_t scalar_testp(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    double v = i->type == IR_F32 ? (double)interp_f32(s[0]) : interp_f64(s[0]);
    int class = i->type == IR_F32 ? fpclassify(interp_f32(s[0])) : fpclassify(v);
    switch (i->mode) {
    case IR_TESTP_FINITE:
        return class != FP_INFINITE && class != FP_NAN;
    case IR_TESTP_INFINITE:
        return class == FP_INFINITE;
    case IR_TESTP_NUMBER:
        return class != FP_NAN;
    case IR_TESTP_NOTANUMBER:
        return class == FP_NAN;
    case IR_TESTP_NORMAL: /* zero counts as normal */
        return class == FP_NORMAL || class == FP_ZERO;
    default:
        return class == FP_SUBNORMAL;
    }
}

interp_scalar *interp_scalar_find_compare(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_SETP:
        return i->type == IR_F16X2 || i->type == IR_BF16X2 ? NULL : scalar_setp;
    case IR_OP_SET:
        return i->type2 == IR_F16X2 || i->type2 == IR_BF16X2 ? NULL : scalar_set;
    case IR_OP_SELP:
        return scalar_selp;
    case IR_OP_SLCT:
        return scalar_slct;
    case IR_OP_TESTP:
        return scalar_testp;
    default:
        return NULL;
    }
}

interp_scalar *interp_scalar_find(const struct ir_instr *i)
{
    interp_scalar *f = interp_scalar_find_compare(i);
    if (!f)
        f = interp_scalar_find_bits(i);
    if (!f && i->op == IR_OP_CVT)
        f = interp_scalar_cvt;
    if (!f && ir_types[i->type].class == 'F')
        return interp_scalar_find_float(i);
    return f ? f : interp_scalar_find_int(i);
}
