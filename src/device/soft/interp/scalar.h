/*
 * What each instruction computes, one lane at a time: the reference meaning of the instruction set
 * on this device. The vector handlers (handlers.h) are fast forms of some of these; everything else
 * the interpreter computes here. A unit test compares the two on corner values.
 */
#ifndef GMUX_SOFT_INTERP_SCALAR_H
#define GMUX_SOFT_INTERP_SCALAR_H

#include "device/soft/ir/ir.h"

/* Computes one lane. `s`: the sources as registers hold them, zero-extended (predicates are 0 or
 * 1). Returns the result, extended beyond the destination's type by sign or zeroes. `*p`: the
 * second result, a predicate, where there is one. Has no state and no faults. */
typedef uint64_t interp_scalar(const struct ir_instr *i, const uint64_t *s, bool *p);

/* NULL: the interpreter does not know the instruction, or its result does not depend on values
 * alone (memory, control flow). */
interp_scalar *interp_scalar_find(const struct ir_instr *i);

interp_scalar *interp_scalar_find_int(const struct ir_instr *i);
interp_scalar *interp_scalar_find_float(const struct ir_instr *i);
interp_scalar *interp_scalar_find_bits(const struct ir_instr *i);
interp_scalar *interp_scalar_find_compare(const struct ir_instr *i);
interp_scalar interp_scalar_cvt;

/* The low bytes of `v` as a value of type `t`: extended by its sign if the type is signed. */
static inline uint64_t interp_extend(uint8_t t, uint64_t v)
{
    unsigned drop = 64 - 8u * ir_types[t].size;
    if (ir_types[t].class == 'S')
        return (uint64_t)((int64_t)(v << drop) >> drop);
    return v << drop >> drop;
}

static inline float interp_f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    __builtin_memcpy(&f, &low, sizeof(f));
    return f;
}

static inline uint32_t interp_f32_bits(float f)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline double interp_f64(uint64_t bits)
{
    double f;
    __builtin_memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline uint64_t interp_f64_bits(double f)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &f, sizeof(bits));
    return bits;
}

#define INTERP_NAN_F32  0x7fffffffu
#define INTERP_NAN_F64  0x7fffffffffffffffull
#define INTERP_NAN_HALF 0x7fffu /* f16 and bf16 */

/* Turns a subnormal number into a zero of the same sign. */
static inline uint32_t interp_ftz_bits(uint32_t bits)
{
    return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

static inline float interp_ftz(float f)
{
    return interp_f32((interp_ftz_bits(interp_f32_bits(f))));
}

/* Whether .ftz turns an f32 result, given (nearly) exactly, into zero. What counts is its size when
 * it is rounded as if exponents had no end, as on x86-64. */
static inline bool interp_is_flushed(double exact, enum ir_round round)
{
    double size = exact < 0 ? -exact : exact;
    bool away = exact < 0 ? round == IR_ROUND_M : round == IR_ROUND_P;
    if (round == IR_ROUND_N || round == IR_ROUND_NONE)
        return size < 0x1.ffffffp-127;
    return away ? size <= 0x1.fffffep-127 : size < 0x1p-126;
}

/* .sat: clamps to [0, 1]; NaN becomes +0. */
static inline float interp_sat_f32(float f)
{
    return f > 0.0f ? (f < 1.0f ? f : 1.0f) : 0.0f;
}

static inline double interp_sat_f64(double f)
{
    return f > 0.0 ? (f < 1.0 ? f : 1.0) : 0.0;
}

/* scalar_approx.c: rsqrt, sin, cos, ex2, lg2, tanh. */
float interp_approx(uint16_t op, float x);

#endif
