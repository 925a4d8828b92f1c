/*
 * Floating point formats by integer arithmetic; format.h has the contracts.
 */
#include "device/soft/interp/format.h"

#include <math.h>

#include "device/soft/interp/scalar.h"

const struct interp_format interp_format_f16 = { 16, 5, 10 };
const struct interp_format interp_format_bf16 = { 16, 8, 7 };
const struct interp_format interp_format_tf32 = { 19, 8, 10 };
const struct interp_format interp_format_f32 = { 32, 8, 23 };
const struct interp_format interp_format_f64 = { 64, 11, 52 };

const struct interp_format *interp_format_of(uint8_t type)
{
    switch (type) {
    case IR_F16:
    case IR_F16X2:
        return &interp_format_f16;
    case IR_BF16:
    case IR_BF16X2:
        return &interp_format_bf16;
    case IR_F32:
        return &interp_format_f32;
    default:
        return &interp_format_f64;
    }
}

static int format_bias(const struct interp_format *f)
{
    return (1 << (f->exponent_bits - 1)) - 1;
}

static uint64_t format_infinity(const struct interp_format *f)
{
    return ((UINT64_C(1) << f->exponent_bits) - 1) << f->fraction_bits;
}

struct interp_number interp_unpack(const struct interp_format *f, uint64_t bits)
{
    uint64_t fraction = bits & ((UINT64_C(1) << f->fraction_bits) - 1);
    int biased = (int)(bits >> f->fraction_bits & ((1u << f->exponent_bits) - 1));
    struct interp_number n = { .negative = bits >> (f->bits - 1) & 1, .mantissa = fraction };
    if (biased == (1 << f->exponent_bits) - 1) {
        n.class = fraction ? INTERP_NOT_A_NUMBER : INTERP_INFINITE;
        return n;
    }
    n.class = fraction || biased ? INTERP_FINITE : INTERP_ZERO;
    if (biased)
        n.mantissa |= UINT64_C(1) << f->fraction_bits;
    n.exponent = GM_MAX(biased, 1) - format_bias(f) - f->fraction_bits;
    return n;
}

/* Whether the magnitude `kept` is rounded up. `half` is the first bit that was cut off, `more`
 * whether a bit behind it was set. */
static bool rounds_up(enum ir_round round, bool negative, uint64_t kept, bool half, bool more)
{
    switch (round) {
    case IR_ROUND_Z:
        return false;
    case IR_ROUND_M:
        return negative && (half || more);
    case IR_ROUND_P:
        return !negative && (half || more);
    case IR_ROUND_NA:
        return half;
    default:
        return half && (more || (kept & 1));
    }
}

uint64_t interp_pack(const struct interp_format *f, struct interp_number n, enum ir_round round)
{
    uint64_t sign = (uint64_t)n.negative << (f->bits - 1);
    uint64_t infinity = format_infinity(f);
    if (n.class == INTERP_NOT_A_NUMBER)
        return (UINT64_C(1) << (f->bits - 1)) - 1;
    if (n.class == INTERP_INFINITE)
        return sign | infinity;
    if (n.class == INTERP_ZERO || n.mantissa == 0)
        return sign;

    int lead = __builtin_clzll(n.mantissa);
    uint64_t m = n.mantissa << lead;       /* value = m * 2^exponent, the top bit set */
    int exponent = n.exponent - lead + 63; /* of that top bit */
    int smallest = 1 - format_bias(f);
    int keep = f->fraction_bits + 1;
    if (exponent < smallest)
        keep -= smallest - exponent;
    uint64_t kept = 0;
    bool half = false, more = true;
    if (keep > 0) {
        int drop = 64 - keep; /* at least 11 */
        kept = m >> drop;
        half = m >> (drop - 1) & 1;
        more = n.sticky || (m & ((UINT64_C(1) << (drop - 1)) - 1)) != 0;
    } else if (keep == 0) {
        half = true;
        more = n.sticky || m << 1 != 0;
    }
    kept += rounds_up(round, n.negative, kept, half, more);
    uint64_t bits = kept;
    if (exponent >= smallest)
        /* The leading one adds the missing unit to the exponent. */
        bits += (uint64_t)(exponent - smallest) << f->fraction_bits;
    if (exponent > format_bias(f) || bits >= infinity) {
        bool to_infinity = round == IR_ROUND_N || round == IR_ROUND_NA || round == IR_ROUND_NONE ||
                           (round == IR_ROUND_M && n.negative) ||
                           (round == IR_ROUND_P && !n.negative);
        bits = to_infinity ? infinity : infinity - 1;
    }
    return sign | bits;
}

uint64_t interp_reformat(const struct interp_format *to, const struct interp_format *from,
                         uint64_t bits, enum ir_round round)
{
    return interp_pack(to, interp_unpack(from, bits), round);
}

float interp_half_to_float(uint8_t type, uint16_t bits)
{
    if (type == IR_BF16)
        return interp_f32((uint32_t)bits << 16);
    uint32_t magnitude = bits & 0x7fffu;
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    if (magnitude >= 0x7c00u) /* infinity, NaN */
        return interp_f32(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u)
        return interp_f32(sign | ((magnitude << 13) + (112u << 23)));
    float value = (float)magnitude * 0x1p-24f;
    return sign ? -value : value;
}

uint16_t interp_half_from_double(uint8_t type, double value)
{
    return (uint16_t)interp_reformat(interp_format_of(type), &interp_format_f64,
                                     interp_f64_bits(value), IR_ROUND_N);
}

/* Rounds to odd. `rounded` is the double nearest to an exact value that differs from it by
 * `error`. */
static double to_odd(double rounded, double error)
{
    uint64_t bits = interp_f64_bits(rounded);
    if (error == 0 || bits & 1 || !isfinite(rounded))
        return rounded;
    /* Move to the neighbour on the side of the error; `rounded` is not 0 here. */
    bool up = (error > 0) == (rounded > 0);
    return interp_f64(up ? bits + 1 : bits - 1);
}

double interp_odd_add(double a, double b)
{
    double sum = a + b;
    double b_part = sum - a;
    double error = (a - (sum - b_part)) + (b - b_part);
    return isfinite(sum) ? to_odd(sum, error) : sum;
}

double interp_odd_fma(double a, double b, double c)
{
    return interp_odd_add(a * b, c); /* the product of two 16-bit floats is exact */
}
