/*
 * Takes binary floating point numbers apart and puts them together with explicit rounding, as
 * conversions and the 16-bit types need it. Does not use the floating point environment.
 */
#ifndef GMUX_SOFT_INTERP_FORMAT_H
#define GMUX_SOFT_INTERP_FORMAT_H

#include "device/soft/ir/ir.h"

struct interp_format {
    uint8_t bits;
    uint8_t exponent_bits;
    uint8_t fraction_bits;
};

extern const struct interp_format interp_format_f16, interp_format_bf16, interp_format_tf32,
    interp_format_f32, interp_format_f64;

/* The format of a float type, or of one half of a packed type. */
const struct interp_format *interp_format_of(uint8_t type);

enum interp_class {
    INTERP_ZERO,
    INTERP_FINITE, /* (-1)^negative * mantissa * 2^exponent, mantissa != 0 */
    INTERP_INFINITE,
    INTERP_NOT_A_NUMBER,
};

struct interp_number {
    enum interp_class class;
    bool negative;
    bool sticky; /* a nonzero bit lies below the mantissa */
    int exponent;
    uint64_t mantissa;
};

struct interp_number interp_unpack(const struct interp_format *f, uint64_t bits);

/* Rounds to the format. `round` is IR_ROUND_N, _Z, _M, _P or _NA. A NaN becomes the canonical
 * NaN. */
uint64_t interp_pack(const struct interp_format *f, struct interp_number n, enum ir_round round);

/* Converts from one format to another. */
uint64_t interp_reformat(const struct interp_format *to, const struct interp_format *from,
                         uint64_t bits, enum ir_round round);

/* A 16-bit float as float, exactly. `type`: IR_F16 or IR_BF16. */
float interp_half_to_float(uint8_t type, uint16_t bits);
/* Rounds a double to a 16-bit float. `value` is exact, or was rounded to odd (interp_odd_*). */
uint16_t interp_half_from_double(uint8_t type, double value);

/* a + b and a * b + c in double precision, rounded to odd: rounding that once more to a narrower
 * format gives the correctly rounded result. Operands are exact values of 16-bit floats. */
double interp_odd_add(double a, double b);
double interp_odd_fma(double a, double b, double c);

#endif
