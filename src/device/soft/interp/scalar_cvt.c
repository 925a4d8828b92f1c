/*
 * cvt: every type to every other, one lane at a time.
 *
 * All numbers go through the exact (sign, mantissa, exponent) form of format.h; rounding happens
 * once.
 */
#include <math.h>

#include "device/soft/interp/format.h"
#include "device/soft/interp/scalar.h"

static bool is_float(uint8_t t)
{
    return ir_types[t].class == 'F';
}

static uint64_t flush(const struct ir_instr *i, uint8_t type, uint64_t bits)
{
    return (i->flags & IR_F_FTZ) && type == IR_F32 ? interp_ftz_bits((uint32_t)bits) : bits;
}

static struct interp_number number_of_int(uint8_t type, uint64_t bits)
{
    uint64_t v = interp_extend(type, bits);
    bool negative = ir_type_is_signed(type) && (int64_t)v < 0;
    struct interp_number n = { .class = INTERP_FINITE,
                               .negative = negative,
                               .mantissa = negative ? 0 - v : v };
    if (v == 0)
        n.class = INTERP_ZERO;
    return n;
}

/* Rounds to an integral value. The exponent becomes 0 if anything was cut off, and the class ZERO
 * if nothing is left. */
static struct interp_number round_integral(struct interp_number n, enum ir_round round)
{
    if (n.class != INTERP_FINITE || n.exponent >= 0)
        return n;
    unsigned drop = (unsigned)-n.exponent;
    uint64_t kept = drop > 63 ? 0 : n.mantissa >> drop;
    uint64_t cut = drop > 63 ? n.mantissa : n.mantissa & ((UINT64_C(1) << drop) - 1);
    uint64_t half =
        drop > 63 ? UINT64_MAX : UINT64_C(1) << (drop - 1); /* mantissas are below 2^53 */
    bool up;
    switch (round) {
    case IR_ROUND_NI:
    case IR_ROUND_N:
        up = cut > half || (cut == half && (kept & 1));
        break;
    case IR_ROUND_MI:
    case IR_ROUND_M:
        up = cut && n.negative;
        break;
    case IR_ROUND_PI:
    case IR_ROUND_P:
        up = cut && !n.negative;
        break;
    default:
        up = false;
        break;
    }
    n.mantissa = kept + up;
    n.exponent = 0;
    if (n.mantissa == 0)
        n.class = INTERP_ZERO;
    return n;
}

/* Clamps to the type's range; NaN gives 0. */
static uint64_t int_of_number(uint8_t type, struct interp_number n)
{
    unsigned bits = 8u * ir_types[type].size;
    bool is_signed = ir_type_is_signed(type);
    uint64_t top = is_signed    ? (UINT64_C(1) << (bits - 1)) - 1
                   : bits == 64 ? UINT64_MAX
                                : (UINT64_C(1) << bits) - 1;
    uint64_t limit = n.negative ? (is_signed ? top + 1 : 0) : top;
    uint64_t magnitude;
    switch (n.class) {
    case INTERP_ZERO:
    case INTERP_NOT_A_NUMBER:
        return 0;
    case INTERP_INFINITE:
        magnitude = limit;
        break;
    default:
        magnitude = n.mantissa;
        if (n.exponent > 0)
            magnitude =
                n.exponent > __builtin_clzll(magnitude) ? UINT64_MAX : magnitude << n.exponent;
        magnitude = GM_MIN(magnitude, limit);
        break;
    }
    return n.negative ? 0 - magnitude : magnitude;
}

static uint64_t int_to_int(const struct ir_instr *i, uint64_t bits)
{
    uint64_t v = interp_extend(i->type2, bits);
    if (i->flags & IR_F_SAT)
        return int_of_number(i->type, number_of_int(i->type2, v));
    return interp_extend(i->type, v);
}

/* Applies .sat and .relu to a finished float of `type`. */
static uint64_t clamp_float(const struct ir_instr *i, uint8_t type, uint64_t bits)
{
    const struct interp_format *f = interp_format_of(type);
    struct interp_number n = interp_unpack(f, bits);
    struct interp_number one = { .class = INTERP_FINITE, .mantissa = 1 };
    uint64_t one_bits = interp_pack(f, one, IR_ROUND_N);
    if (i->flags & IR_F_SAT) {
        if (n.class == INTERP_NOT_A_NUMBER || n.negative)
            return 0;
        return GM_MIN(bits, one_bits);
    }
    if ((i->flags & IR_F_RELU) && n.negative && n.class != INTERP_NOT_A_NUMBER)
        return 0;
    return bits;
}

static bool is_integral_round(uint8_t round)
{
    return round == IR_ROUND_NI || round == IR_ROUND_ZI || round == IR_ROUND_MI ||
           round == IR_ROUND_PI;
}

static uint64_t to_float(const struct ir_instr *i, uint8_t type, struct interp_number n)
{
    enum ir_round round = (enum ir_round)i->round;
    if (is_integral_round(i->round)) {
        n = round_integral(n, round);
        round = IR_ROUND_N;
    }
    bool tiny =
        (i->flags & IR_F_FTZ) && type == IR_F32 && n.class == INTERP_FINITE &&
        interp_is_flushed(ldexp(n.negative ? -(double)n.mantissa : (double)n.mantissa, n.exponent),
                          round);
    uint64_t bits =
        tiny ? (uint64_t)n.negative << 31 : interp_pack(interp_format_of(type), n, round);
    return clamp_float(i, type, bits);
}

/* Converts a NaN. Conversions from and to f64 keep what they can of its fraction and make it quiet;
 * others give the canonical NaN. Conversions that only widen or move leave it as it is. */
static uint64_t convert_nan(const struct ir_instr *i, uint8_t type, uint64_t bits)
{
    const struct interp_format *from = interp_format_of(i->type2), *to = interp_format_of(type);
    bool moves = !is_integral_round(i->round) && !(i->flags & IR_F_FTZ) && i->type2 == type;
    if (moves && (type == IR_F32 || type == IR_F64))
        return bits;
    if (i->type2 == IR_BF16 && type == IR_F32 && !(i->flags & IR_F_FTZ))
        return bits << 16;
    uint64_t canonical = (UINT64_C(1) << (to->bits - 1)) - 1;
    if (i->type2 != IR_F64 && type != IR_F64)
        return canonical;
    if (i->flags & IR_F_FTZ && i->type2 == IR_F32) /* flushing makes the NaN canonical first */
        bits = INTERP_NAN_F32;
    uint64_t fraction = bits << (64 - from->fraction_bits) >> (64 - to->fraction_bits);
    uint64_t sign = (bits >> (from->bits - 1) & 1) << (to->bits - 1);
    uint64_t quiet = UINT64_C(1) << (to->fraction_bits - 1);
    return sign | (canonical >> to->fraction_bits << to->fraction_bits) | quiet | fraction;
}

/* Converts one value of type2 to `type` (to the element type of a packed destination). */
static uint64_t convert(const struct ir_instr *i, uint8_t type, uint64_t bits)
{
    if (type != IR_F16) /* for f16 results .ftz is about the result's exponents */
        bits = flush(i, i->type2, bits);
    if (!is_float(i->type2))
        return is_float(type) ? to_float(i, type, number_of_int(i->type2, bits))
                              : int_to_int(i, bits);
    struct interp_number n = interp_unpack(interp_format_of(i->type2), bits);
    bool nan = n.class == INTERP_NOT_A_NUMBER;
    if (nan && is_float(type))
        return clamp_float(i, type, convert_nan(i, type, bits));
    if (is_float(type))
        return to_float(i, type, n);
    /* As a 64-bit integer, and from f64, a NaN becomes the sign bit alone. */
    if (nan && (i->type2 == IR_F64 || ir_types[type].size == 8))
        return interp_extend(type, UINT64_C(1) << (8 * ir_types[type].size - 1));
    return int_of_number(type, round_integral(n, (enum ir_round)i->round));
}

/* cvt.rna.tf32.f32: the result is an f32 whose low 13 bits of fraction are cut off. */
static uint64_t to_tf32(const struct ir_instr *i, uint64_t bits)
{
    struct interp_number n = interp_unpack(&interp_format_f32, bits);
    bool nan = n.class == INTERP_NOT_A_NUMBER;
    uint64_t r = interp_pack(&interp_format_tf32, n, (enum ir_round)i->round) << 13;
    if (nan)
        r = i->round == IR_ROUND_NA ? bits & 0xffffe000u : 0x7fffe000u;
    if ((i->flags & IR_F_SAT) && (r & 0x7f800000u) == 0x7f800000u)
        r -= 0x2000; /* infinity becomes the largest number; so does a NaN on an H200 */
    return (i->flags & IR_F_RELU) && n.negative && !nan ? 0 : r;
}

/* --- values of 8 bits, in pairs --------------------------------------------------------------- */

struct byte_format {
    int fraction, least; /* bits; exponent of the smallest normal number */
    double most;
    bool has_infinity;
};

static struct byte_format byte_format(uint8_t type)
{
    return type == IR_E4M3X2 ? (struct byte_format) { 3, -6, 448.0, false }
                             : (struct byte_format) { 2, -14, 57344.0, true };
}

/* Rounds to nearest even. A number that is too large becomes the largest number; NaN becomes
 * 0x7f. */
static uint64_t to_byte(const struct ir_instr *i, double v)
{
    struct byte_format f = byte_format(i->type);
    if (v != v)
        return 0x7f;
    bool negative = signbit(v);
    if (negative && (i->flags & IR_F_RELU))
        return 0;
    int exponent;
    double magnitude = fabs(v);
    if (magnitude == 0)
        return negative ? 0x80 : 0;
    (void)frexp(fmin(magnitude, f.most), &exponent);
    exponent = exponent - 1 < f.least ? f.least : exponent - 1;
    double steps = ldexp(fmin(magnitude, 2 * f.most), f.fraction - exponent), whole = floor(steps);
    double rest = steps - whole;
    whole += rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0);
    if (ldexp(whole, exponent - f.fraction) > f.most)
        return (negative ? 0x80 : 0) | (f.has_infinity ? 0x7b : 0x7e);
    /* Encodings count on across exponents: the number's bits are its distance, in steps, from the
     * smallest exponent. */
    uint64_t bits = (uint64_t)whole + ((uint64_t)(exponent - f.least) << f.fraction);
    return bits | (negative ? 0x80 : 0);
}

static double of_byte(uint8_t type, uint8_t bits)
{
    struct byte_format f = byte_format(type);
    int e = (bits & 0x7f) >> f.fraction, m = bits & ((1 << f.fraction) - 1);
    int top = f.has_infinity ? 31 : 15;
    double v = ldexp(e ? m + (1 << f.fraction) : m, (e ? e - 1 : 0) + f.least - f.fraction);
    if (e == top && (f.has_infinity || m == 7))
        v = m && !(f.has_infinity && m == 0) ? NAN : INFINITY;
    return bits & 0x80 ? -v : v;
}

static double real_of(uint8_t type, uint64_t bits)
{
    return type == IR_F32 ? (double)interp_f32(bits)
                          : (double)interp_half_to_float(IR_F16, (uint16_t)bits);
}

static uint64_t half_of_byte(const struct ir_instr *i, uint8_t bits)
{
    double v = of_byte(i->type2, bits);
    if (v != v)
        return INTERP_NAN_HALF;
    return (i->flags & IR_F_RELU) && signbit(v) ? 0 : interp_half_from_double(IR_F16, v);
}

/* Converts two values, the upper one first: two f32, or the halves of a register. */
static uint64_t to_bytes(const struct ir_instr *i, const uint64_t *s)
{
    bool pair = i->type2 == IR_F16X2;
    uint64_t high = to_byte(i, real_of(i->type2, pair ? s[0] >> 16 : s[0]));
    return high << 8 | to_byte(i, real_of(i->type2, pair ? s[0] : s[1]));
}

uint64_t interp_scalar_cvt(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    if (i->type == IR_E4M3X2 || i->type == IR_E5M2X2)
        return to_bytes(i, s);
    if (i->type2 == IR_E4M3X2 || i->type2 == IR_E5M2X2)
        return half_of_byte(i, (uint8_t)(s[0] >> 8)) << 16 | half_of_byte(i, (uint8_t)s[0]);
    if (i->type == IR_F16X2 || i->type == IR_BF16X2) { /* the first source goes to the upper half */
        uint8_t half = i->type == IR_F16X2 ? IR_F16 : IR_BF16;
        return convert(i, half, s[0]) << 16 | (convert(i, half, s[1]) & 0xffff);
    }
    if (i->type == IR_B32 && i->type2 == IR_F32) /* tf32 */
        return to_tf32(i, s[0]);
    return convert(i, i->type, s[0]);
}
