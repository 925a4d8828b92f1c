/*
 * Vector handlers. This file is compiled once per instruction set (INTERP_ISA names the table).
 * Handlers are plain loops over 32 lanes, which the compiler turns into vector code.
 *
 * A handler computes all 32 lanes. If no other lane needs its old value (interp_run.full), the
 * results go straight to the destination; else they go to a scratch register, and only the running
 * lanes are copied from there.
 */
#include "device/soft/interp/vector.h"

#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/* Tells the compiler that lanes do not depend on each other, even if a destination is also a
 * source. */
#if defined(__clang__)
#define FOR_LANES(l)                                                                               \
    _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < SOFT_WARP; l++)
#else
#define FOR_LANES(l) _Pragma("GCC ivdep") for (int l = 0; l < SOFT_WARP; l++)
#endif

#define HOT static __attribute__((hot))

static void blend16(const struct interp_run *r, void *to)
{
    u16 *d = to;
    const u16 *from = (const u16 *)r->scratch;
    FOR_LANES(l)
    d[l] = r->lanes[l] ? from[l] : d[l];
}

static void blend32(const struct interp_run *r, void *to)
{
    u32 *d = to;
    const u32 *from = (const u32 *)r->scratch;
    FOR_LANES(l)
    d[l] = r->lanes[l] ? from[l] : d[l];
}

static void blend64(const struct interp_run *r, void *to)
{
    u64 *d = to;
    const u64 *from = r->scratch;
    FOR_LANES(l)
    d[l] = (d[l] & ~(u64)(s64)r->lanes[l]) | (from[l] & (u64)(s64)r->lanes[l]);
}

static inline void *result_at(const struct interp_insn *i, struct interp_run *r)
{
    return GM_LIKELY(r->full) ? (void *)(r->base[0] + i->d) : (void *)r->scratch;
}

static inline void result_done(const struct interp_insn *i, const struct interp_run *r,
                               size_t lane_bytes)
{
    if (GM_LIKELY(r->full))
        return;
    void *to = r->base[0] + i->d;
    if (lane_bytes == 2)
        blend16(r, to);
    else if (lane_bytes == 4)
        blend32(r, to);
    else
        blend64(r, to);
}

/* One bit for each word that is not zero. */
static inline u32 bits_of_lanes(const u32 *t)
{
#if defined(__AVX512F__)
    __m512i low = _mm512_loadu_si512(t), high = _mm512_loadu_si512(t + 16);
    return (u32)_mm512_test_epi32_mask(low, low) | (u32)_mm512_test_epi32_mask(high, high) << 16;
#else
    u32 bits = 0;
    FOR_LANES(l)
    bits |= t[l] ? 1u << l : 0;
    return bits;
#endif
}

static inline f32 ftz(f32 v)
{
    return interp_f32(interp_ftz_bits(interp_f32_bits(v)));
}

/* Flushes a rounded result, of which `exact` is a more exact value. */
static inline f32 ftz_of(f32 v, f64 exact)
{
    return interp_is_flushed(exact, IR_ROUND_N) ? interp_f32(interp_f32_bits(v) & 0x80000000u) : v;
}

static inline f32 ftz_mul(f32 a, f32 b)
{
    return ftz_of(a * b, (f64)a * (f64)b);
}

static inline f32 ftz_div(f32 a, f32 b)
{
    return ftz_of(a / b, (f64)a / (f64)b);
}

/* For large b 1 / b is flushed to zero. */
static inline f32 div_approx(f32 a, f32 b)
{
    return __builtin_fabsf(b) > 0x1p126f ? a * __builtin_copysignf(0, b) : a / b;
}

static inline f32 div_approx_ftz(f32 a, f32 b)
{
    return __builtin_fabsf(b) > 0x1p126f ? a * __builtin_copysignf(0, b) : ftz_div(a, b);
}

static inline f32 ftz_fma(f32 a, f32 b, f32 c)
{
    return ftz_of(__builtin_fmaf(a, b, c), __builtin_fma((f64)a, (f64)b, (f64)c));
}

static inline f32 sat(f32 v)
{
    return interp_sat_f32(v);
}

#define same(v) (v)

/* The number, if one of the two is NaN; of two NaNs always the same one. */
static inline f32 number_f32(f32 a, f32 b, f32 of_numbers)
{
    f32 second = b != b ? interp_f32(INTERP_NAN_F32) : b;
    return a != a ? second : (b != b ? a : of_numbers);
}

/* Numbers that compare equal differ at most in the sign of zero. */
static inline f32 min_f32(f32 a, f32 b)
{
    f32 equal = interp_f32(interp_f32_bits(a) | interp_f32_bits(b));
    return number_f32(a, b, a < b ? a : (b < a ? b : equal));
}

static inline f32 max_f32(f32 a, f32 b)
{
    f32 equal = interp_f32(interp_f32_bits(a) & interp_f32_bits(b));
    return number_f32(a, b, a > b ? a : (b > a ? b : equal));
}

static inline f64 min_f64(f64 a, f64 b)
{
    f64 equal = interp_f64(interp_f64_bits(a) | interp_f64_bits(b));
    f64 less = a < b ? a : (b < a ? b : equal);
    return a != a ? b : (b != b ? a : less);
}

static inline f64 max_f64(f64 a, f64 b)
{
    f64 equal = interp_f64(interp_f64_bits(a) & interp_f64_bits(b));
    f64 more = a > b ? a : (b > a ? b : equal);
    return a != a ? b : (b != b ? a : more);
}

/* In double precision 32-bit quotients are exact: they are at least 2^-32 (relative) away from the
 * next integer. */
static inline u32 div_u32(u32 a, u32 b)
{
    u32 q = (u32)(s64)((f64)a / (f64)(b ? b : 1));
    return b ? q : UINT32_MAX;
}

static inline s32 div_s32(s32 a, s32 b)
{
    s32 q = (s32)(s64)((f64)a / (f64)(b ? b : 1));
    return b ? q : -1;
}

/* Rounding to an integer turns every f32 NaN into the same one. */
static inline f32 one_nan(f32 v)
{
    return v == v ? v : interp_f32(INTERP_NAN_F32);
}

/* Rounds towards zero and clamps. A NaN becomes `nan`: 0 if it was an f32, the sign bit alone if it
 * was an f64. */
static inline s32 s32_of_f64(f64 v, s32 nan)
{
    f64 low = v > -2147483648.0 ? v : -2147483648.0;
    f64 clamped = low < 2147483647.0 ? low : 2147483647.0;
    return v == v ? (s32)clamped : nan;
}

static inline u32 u32_of_f64(f64 v, u32 nan)
{
    f64 low = v > 0.0 ? v : 0.0;
    f64 clamped = low < 4294967295.0 ? low : 4294967295.0;
    return v == v ? (u32)(s64)clamped : nan;
}

#define HANDLER(OP, TYPE, VARIANT, FLAGS)                                                          \
    HOT const struct interp_insn *run_##OP##_##TYPE##_##VARIANT##_##FLAGS(                         \
        const struct interp_insn *i, struct interp_run *r)
#define V1(OP, TYPE, VARIANT, FLAGS, D, A, expression)                                             \
    HANDLER(OP, TYPE, VARIANT, FLAGS)                                                              \
    {                                                                                              \
        const A *as = interp_operand(r, i->s[0]);                                                  \
        D *d = result_at(i, r);                                                                    \
        FOR_LANES(l)                                                                               \
        {                                                                                          \
            A a = as[l];                                                                           \
            d[l] = (expression);                                                                   \
        }                                                                                          \
        result_done(i, r, sizeof(D));                                                              \
        return i + 1;                                                                              \
    }
#define V2(OP, TYPE, VARIANT, FLAGS, D, A, B, expression)                                          \
    HANDLER(OP, TYPE, VARIANT, FLAGS)                                                              \
    {                                                                                              \
        const A *as = interp_operand(r, i->s[0]);                                                  \
        const B *bs = interp_operand(r, i->s[1]);                                                  \
        D *d = result_at(i, r);                                                                    \
        FOR_LANES(l)                                                                               \
        {                                                                                          \
            A a = as[l];                                                                           \
            B b = bs[l];                                                                           \
            d[l] = (expression);                                                                   \
        }                                                                                          \
        result_done(i, r, sizeof(D));                                                              \
        return i + 1;                                                                              \
    }
#define V3(OP, TYPE, VARIANT, FLAGS, D, A, B, C, expression)                                       \
    HANDLER(OP, TYPE, VARIANT, FLAGS)                                                              \
    {                                                                                              \
        const A *as = interp_operand(r, i->s[0]);                                                  \
        const B *bs = interp_operand(r, i->s[1]);                                                  \
        const C *cs = interp_operand(r, i->s[2]);                                                  \
        D *d = result_at(i, r);                                                                    \
        FOR_LANES(l)                                                                               \
        {                                                                                          \
            A a = as[l];                                                                           \
            B b = bs[l];                                                                           \
            C c = cs[l];                                                                           \
            d[l] = (expression);                                                                   \
        }                                                                                          \
        result_done(i, r, sizeof(D));                                                              \
        return i + 1;                                                                              \
    }
#define VC(OP, TYPE, VARIANT, FLAGS, A, condition)                                                 \
    HANDLER(OP, TYPE, VARIANT, FLAGS)                                                              \
    {                                                                                              \
        const A *as = interp_operand(r, i->s[0]);                                                  \
        const A *bs = interp_operand(r, i->s[1]);                                                  \
        u32 t[SOFT_WARP];                                                                          \
        FOR_LANES(l)                                                                               \
        {                                                                                          \
            A a = as[l], b = bs[l];                                                                \
            t[l] = (condition);                                                                    \
        }                                                                                          \
        interp_pred_write(r, i->d, bits_of_lanes(t));                                              \
        return i + 1;                                                                              \
    }
#include "device/soft/interp/handlers.h"

/* selp. s[2]: a predicate, inverted if `value` is all ones. */
#define SELECT(bits, T)                                                                            \
    HOT const struct interp_insn *run_select##bits(const struct interp_insn *i,                    \
                                                   struct interp_run *r)                           \
    {                                                                                              \
        const T *as = interp_operand(r, i->s[0]), *bs = interp_operand(r, i->s[1]);                \
        u32 p = *interp_pred(r, i->s[2]) ^ (u32)i->value;                                          \
        T *d = result_at(i, r);                                                                    \
        FOR_LANES(l)                                                                               \
        d[l] = p >> l & 1 ? as[l] : bs[l];                                                         \
        result_done(i, r, sizeof(T));                                                              \
        return i + 1;                                                                              \
    }
SELECT(16, u16)
SELECT(32, u32)
SELECT(64, u64)

/* mov.b64 {d, s[1]}, s[0]. Either destination may be missing. */
HOT const struct interp_insn *run_unpack64(const struct interp_insn *i, struct interp_run *r)
{
    u64 t[SOFT_WARP];
    memcpy(t, interp_operand(r, i->s[0]), sizeof(t));
    for (int half = 0; half < 2; half++) {
        interp_at at = half ? i->s[1] : i->d;
        if (at == INTERP_NOWHERE)
            continue;
        u32 *d = interp_operand(r, at);
        if (GM_LIKELY(r->full)) {
            FOR_LANES(l)
            d[l] = (u32)(t[l] >> (32 * half));
        } else {
            FOR_LANES(l)
            d[l] = r->lanes[l] ? (u32)(t[l] >> (32 * half)) : d[l];
        }
    }
    return i + 1;
}

#include "device/soft/interp/vector_memory.h"

#define TABLE_NAME_(isa) interp_vector_##isa
#define TABLE_NAME(isa)  TABLE_NAME_(isa)
#define TEXT_(isa)       #isa
#define TEXT(isa)        TEXT_(isa)

const struct interp_vector TABLE_NAME(INTERP_ISA) = {
    .name = TEXT(INTERP_ISA),
    .run = {
#define ENTRY(OP, TYPE, VARIANT, FLAGS)                                                            \
    [INTERP_H_##OP##_##TYPE##_##VARIANT##_##FLAGS] = run_##OP##_##TYPE##_##VARIANT##_##FLAGS,
#define V1(OP, TYPE, VARIANT, FLAGS, ...) ENTRY(OP, TYPE, VARIANT, FLAGS)
#define V2(OP, TYPE, VARIANT, FLAGS, ...) ENTRY(OP, TYPE, VARIANT, FLAGS)
#define V3(OP, TYPE, VARIANT, FLAGS, ...) ENTRY(OP, TYPE, VARIANT, FLAGS)
#define VC(OP, TYPE, VARIANT, FLAGS, ...) ENTRY(OP, TYPE, VARIANT, FLAGS)
#include "device/soft/interp/handlers.h"
        [INTERP_H_SELECT16] = run_select16,
        [INTERP_H_SELECT32] = run_select32,
        [INTERP_H_SELECT64] = run_select64,
        [INTERP_H_UNPACK64] = run_unpack64,
        [INTERP_H_LOAD_GLOBAL32] = run_load_global32,
        [INTERP_H_LOAD_GLOBAL64] = run_load_global64,
        [INTERP_H_LOAD_SHARED32] = run_load_shared32,
        [INTERP_H_LOAD_SHARED64] = run_load_shared64,
        [INTERP_H_STORE_GLOBAL32] = run_store_global32,
        [INTERP_H_STORE_GLOBAL64] = run_store_global64,
        [INTERP_H_STORE_SHARED32] = run_store_shared32,
        [INTERP_H_STORE_SHARED64] = run_store_shared64,
    },
};
