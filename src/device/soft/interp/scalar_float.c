/*
 * Floating point arithmetic, one lane at a time.
 *
 * f32 and f64 use the host's arithmetic, with a directed rounding mode set around the one operation
 * that needs it. (A thread that leaves a block in between, by siglongjmp, does so from a signal
 * handler, which starts with the default environment; interp_run_block() sets it, too.) f16 and
 * bf16 are computed in double precision, rounded to odd, and rounded once more, which gives the
 * correctly rounded result. Approximate functions are in scalar_approx.c.
 */
#include <fenv.h>
#include <math.h>

#include "device/soft/interp/format.h"
#include "device/soft/interp/scalar.h"

static int fenv_mode(enum ir_round round)
{
#if defined(FE_TOWARDZERO) && defined(FE_DOWNWARD) && defined(FE_UPWARD)
    switch (round) {
    case IR_ROUND_Z:
        return FE_TOWARDZERO;
    case IR_ROUND_M:
        return FE_DOWNWARD;
    case IR_ROUND_P:
        return FE_UPWARD;
    default:
        break;
    }
#endif
    return FE_TONEAREST;
}

/* a op b (op c) under a rounding mode. The volatile copies keep the operation between the two
 * changes of mode. */
#define DEFINE_ROUNDED(type, suffix)                                                               \
    static type rounded_##suffix(const struct ir_instr *i, type a0, type b0, type c0)              \
    {                                                                                              \
        int mode = fenv_mode(i->round);                                                            \
        if (mode != FE_TONEAREST)                                                                  \
            fesetround(mode);                                                                      \
        volatile type a = a0, b = b0, c = c0, r = 0;                                               \
        switch (i->op) {                                                                           \
        case IR_OP_ADD:                                                                            \
            r = a + b;                                                                             \
            break;                                                                                 \
        case IR_OP_SUB:                                                                            \
            r = a - b;                                                                             \
            break;                                                                                 \
        case IR_OP_MUL:                                                                            \
            r = a * b;                                                                             \
            break;                                                                                 \
        case IR_OP_MAD:                                                                            \
        case IR_OP_FMA:                                                                            \
            r = __builtin_fma##suffix(a, b, c);                                                    \
            break;                                                                                 \
        case IR_OP_DIV:                                                                            \
            r = a / b;                                                                             \
            break;                                                                                 \
        case IR_OP_RCP:                                                                            \
            r = 1 / a;                                                                             \
            break;                                                                                 \
        case IR_OP_SQRT:                                                                           \
            r = __builtin_sqrt##suffix(a);                                                         \
            break;                                                                                 \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        if (mode != FE_TONEAREST)                                                                  \
            fesetround(FE_TONEAREST);                                                              \
        return r;                                                                                  \
    }

#define __builtin_fmaf32  __builtin_fmaf
#define __builtin_sqrtf32 __builtin_sqrtf
#define __builtin_fmaf64  __builtin_fma
#define __builtin_sqrtf64 __builtin_sqrt
DEFINE_ROUNDED(float, f32)
DEFINE_ROUNDED(double, f64)

static float source_f32(const struct ir_instr *i, uint64_t bits)
{
    float f = interp_f32(bits);
    return i->flags & IR_F_FTZ ? interp_ftz(f) : f;
}

static uint64_t result_f32(const struct ir_instr *i, float f)
{
    if (i->flags & IR_F_FTZ)
        f = interp_ftz(f);
    if (i->flags & IR_F_SAT)
        f = interp_sat_f32(f);
    if (i->flags & IR_F_RELU)
        f = f > 0 ? f : (f == f ? 0.0f : interp_f32(INTERP_NAN_F32));
    return interp_f32_bits(f);
}

static uint64_t scalar_f32_arith(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    float a = source_f32(i, s[0]);
    float b = i->src_count > 1 ? source_f32(i, s[1]) : 0;
    float c = i->src_count > 2 ? source_f32(i, s[2]) : 0;
    float r = rounded_f32(i, a, b, c);
    if (i->op == IR_OP_DIV && (i->flags & IR_F_APPROX) && fabsf(b) > 0x1p126f)
        r = a * copysignf(0, b); /* 1 / b is flushed to zero */
    if ((i->flags & IR_F_FTZ) &&
        interp_is_flushed(rounded_f64(i, a, b, c), (enum ir_round)i->round))
        r = copysignf(0, r);
    return result_f32(i, r);
}

static uint64_t scalar_f32_function(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    return result_f32(i, interp_approx(i->op, source_f32(i, s[0])));
}

static uint64_t scalar_f32_sign(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint32_t a = (uint32_t)s[0];
    if (i->op == IR_OP_COPYSIGN) /* PTX: the sign of the first, the value of the second */
        return (a & 0x80000000u) | ((uint32_t)s[1] & 0x7fffffffu);
    if (i->flags & IR_F_FTZ)
        a = interp_ftz_bits(a);
    return i->op == IR_OP_ABS ? a & 0x7fffffffu : a ^ 0x80000000u;
}

/* min and max of two floats, given as bits of a format. A number wins over NaN, unless .NaN; -0 is
 * below +0. */
static uint64_t min_max(const struct ir_instr *i, const struct interp_format *f, uint64_t a,
                        uint64_t b)
{
    uint64_t sign = UINT64_C(1) << (f->bits - 1), xor_sign = 0;
    uint64_t infinity = ((UINT64_C(1) << f->exponent_bits) - 1) << f->fraction_bits;
    uint64_t nan = sign - 1;
    if (i->flags & IR_F_XORSIGN) {
        xor_sign = (a ^ b) & sign;
        a &= ~sign;
        b &= ~sign;
    }
    bool a_nan = (a & ~sign) > infinity, b_nan = (b & ~sign) > infinity;
    if ((a_nan && b_nan) || ((i->flags & IR_F_NAN) && (a_nan || b_nan)))
        return nan;
    if (a_nan || b_nan)
        return (a_nan ? b : a) ^ xor_sign;
    /* As integers of the same order: the magnitude of negative numbers is flipped. */
    int64_t x = (int64_t)(a & sign ? -(int64_t)(a & ~sign) - 1 : (int64_t)a);
    int64_t y = (int64_t)(b & sign ? -(int64_t)(b & ~sign) - 1 : (int64_t)b);
    bool first = i->op == IR_OP_MIN ? x < y : x > y;
    return (first ? a : b) ^ xor_sign;
}

static uint64_t scalar_f32_minmax(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = (uint32_t)s[0], b = (uint32_t)s[1];
    if (i->flags & IR_F_FTZ) {
        a = interp_ftz_bits((uint32_t)a);
        b = interp_ftz_bits((uint32_t)b);
    }
    return min_max(i, &interp_format_f32, a, b);
}

static uint64_t scalar_f64_minmax(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    return min_max(i, &interp_format_f64, s[0], s[1]);
}

static uint64_t scalar_f64_arith(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    double a = interp_f64(s[0]);
    double b = i->src_count > 1 ? interp_f64(s[1]) : 0;
    double c = i->src_count > 2 ? interp_f64(s[2]) : 0;
    double r = rounded_f64(i, a, b, c);
    if (i->flags & IR_F_SAT)
        r = interp_sat_f64(r);
    return interp_f64_bits(r);
}

/* rcp.approx.ftz.f64 and rsqrt.approx{.ftz}.f64. With .ftz they read and give only the upper
 * half. */
static uint64_t scalar_f64_approx(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = s[0];
    bool ftz = (i->flags & IR_F_FTZ) != 0;
    if (ftz)
        a &= UINT64_C(0xffffffff00000000);
    if (ftz && (a >> 52 & 0x7ff) == 0)
        a &= UINT64_C(1) << 63;
    double r = i->op == IR_OP_RCP ? 1.0 / interp_f64(a) : 1.0 / sqrt(interp_f64(a));
    uint64_t bits = interp_f64_bits(r);
    if (ftz && (bits >> 52 & 0x7ff) == 0)
        bits &= UINT64_C(1) << 63;
    if (ftz)
        bits &= UINT64_C(0xffffffff00000000);
    return bits;
}

static uint64_t scalar_f64_sign(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t sign = UINT64_C(1) << 63;
    if (i->op == IR_OP_COPYSIGN)
        return (s[0] & sign) | (s[1] & ~sign);
    return i->op == IR_OP_ABS ? s[0] & ~sign : s[0] ^ sign;
}

/* One operation on 16-bit floats; `type` is F16 or BF16. */
static uint16_t half_ftz(const struct ir_instr *i, uint8_t type, uint16_t bits)
{
    uint16_t exponent = type == IR_F16 ? 0x7c00 : 0x7f80;
    return (i->flags & IR_F_FTZ) && !(bits & exponent) ? bits & 0x8000 : bits;
}

static uint16_t half_finish(const struct ir_instr *i, uint8_t type, uint16_t bits)
{
    uint16_t infinity = type == IR_F16 ? 0x7c00 : 0x7f80, one = type == IR_F16 ? 0x3c00 : 0x3f80;
    bool nan = (bits & 0x7fff) > infinity;
    if (nan)
        bits = INTERP_NAN_HALF;
    bits = half_ftz(i, type, bits);
    if (i->flags & IR_F_SAT) {
        if (nan || bits & 0x8000)
            bits = 0;
        else if (bits > one)
            bits = one;
    }
    if ((i->flags & IR_F_RELU) && !nan && bits & 0x8000)
        bits = 0;
    return bits;
}

/* Like interp_is_flushed(). f16 has 11 significant bits, and numbers below 2^-14 are subnormal. */
static bool is_half_flushed(const struct ir_instr *i, uint8_t type, double r)
{
    return (i->flags & IR_F_FTZ) && type == IR_F16 && fabs(r) < 0x1.ffep-15;
}

static double half_function(const struct ir_instr *i, double a)
{
    return i->op == IR_OP_EX2 ? exp2(a) : tanh(a);
}

static uint16_t half_op(const struct ir_instr *i, uint8_t type, const uint16_t *s)
{
    uint16_t in[3] = { 0 };
    double v[3] = { 0 }, r;
    for (int k = 0; k < 3 && k < i->src_count; k++) {
        in[k] = half_ftz(i, type, s[k]);
        v[k] = (double)interp_half_to_float(type, in[k]);
    }
    switch (i->op) {
    case IR_OP_ADD:
        r = interp_odd_add(v[0], v[1]);
        break;
    case IR_OP_SUB:
        r = interp_odd_add(v[0], -v[1]);
        break;
    case IR_OP_MUL:
        r = v[0] * v[1];
        break;
    case IR_OP_MAD:
    case IR_OP_FMA:
        r = interp_odd_fma(v[0], v[1], v[2]);
        break;
    case IR_OP_NEG:
    case IR_OP_ABS:
        return half_finish(i, type, i->op == IR_OP_NEG ? in[0] ^ 0x8000 : in[0] & 0x7fff);
    case IR_OP_MIN:
    case IR_OP_MAX:
        return half_finish(i, type, (uint16_t)min_max(i, interp_format_of(type), in[0], in[1]));
    default:
        r = half_function(i, v[0]);
        break;
    }
    if (is_half_flushed(i, type, r))
        r = copysign(0, r);
    return half_finish(i, type, interp_half_from_double(type, r));
}

static uint64_t scalar_half(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint16_t in[3] = { 0 };
    for (int k = 0; k < 3 && k < i->src_count; k++)
        in[k] = (uint16_t)s[k];
    return half_op(i, i->type, in);
}

static uint64_t scalar_half_x2(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint8_t type = i->type == IR_F16X2 ? IR_F16 : IR_BF16;
    uint16_t low[3] = { 0 }, high[3] = { 0 };
    for (int k = 0; k < 3 && k < i->src_count; k++) {
        low[k] = (uint16_t)s[k];
        high[k] = (uint16_t)(s[k] >> 16);
    }
    return half_op(i, type, low) | (uint64_t)half_op(i, type, high) << 16;
}

static interp_scalar *find_half(const struct ir_instr *i)
{
    bool packed = i->type == IR_F16X2 || i->type == IR_BF16X2;
    switch (i->op) {
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
    case IR_OP_MAD:
    case IR_OP_FMA:
    case IR_OP_NEG:
    case IR_OP_ABS:
    case IR_OP_MIN:
    case IR_OP_MAX:
    case IR_OP_EX2:
    case IR_OP_TANH:
        return packed ? scalar_half_x2 : scalar_half;
    default:
        return NULL;
    }
}

interp_scalar *interp_scalar_find_float(const struct ir_instr *i)
{
    bool wide = i->type == IR_F64;
    if (i->type != IR_F32 && !wide)
        return ir_types[i->type].class == 'F' ? find_half(i) : NULL;
    switch (i->op) {
    case IR_OP_RCP:
        if (wide && (i->flags & IR_F_APPROX))
            return scalar_f64_approx;
        return wide ? scalar_f64_arith : scalar_f32_arith;
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
    case IR_OP_MAD:
    case IR_OP_FMA:
    case IR_OP_DIV:
    case IR_OP_SQRT:
        return wide ? scalar_f64_arith : scalar_f32_arith;
    case IR_OP_RSQRT:
        return wide ? scalar_f64_approx : scalar_f32_function;
    case IR_OP_SIN:
    case IR_OP_COS:
    case IR_OP_EX2:
    case IR_OP_LG2:
    case IR_OP_TANH:
        return wide ? NULL : scalar_f32_function;
    case IR_OP_ABS:
    case IR_OP_NEG:
    case IR_OP_COPYSIGN:
        return wide ? scalar_f64_sign : scalar_f32_sign;
    case IR_OP_MIN:
    case IR_OP_MAX:
        return wide ? scalar_f64_minmax : scalar_f32_minmax;
    default:
        return NULL;
    }
}
