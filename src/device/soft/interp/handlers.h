/*
 * The vector handlers: one line each, included several times with different macros (enum, bodies,
 * table, selection).
 *
 *   V1(OP, TYPE, VARIANT, FLAGS, D, A, expression of a)              D, A ..: C types of the lanes
 *   V2(OP, TYPE, VARIANT, FLAGS, D, A, B, expression of a, b) V3(OP, TYPE, VARIANT, FLAGS, D, A, B,
 *   C, expression of a, b, c)
 *   VC(OP, TYPE, VARIANT, FLAGS, A, condition on a, b)               result: predicate
 *
 * OP, TYPE: the instruction (a B type stands for U and S of that size, too). VARIANT: its mode,
 * comparison, or for cvt the source type and rounding (INTERP_VARIANT_* in select.c). FLAGS: N,
 * FTZ, SAT, FTZSAT, WRAP. The expressions are evaluated for all lanes, also those that do not run:
 * they must be defined for every value.
 *
 * What is missing here runs lane by lane through the scalar forms.
 */
#ifndef V1
#define V1(...)
#endif
#ifndef V2
#define V2(...)
#endif
#ifndef V3
#define V3(...)
#endif
#ifndef VC
#define VC(...)
#endif

/* Moves and logic. */
V1(MOV, B16, NONE, N, u16, u16, a)
V1(MOV, B32, NONE, N, u32, u32, a)
V1(MOV, B64, NONE, N, u64, u64, a)
V2(PACK, B32, NONE, N, u32, u16, u16, (u32)a | (u32)b << 16)
V2(PACK, B64, NONE, N, u64, u32, u32, (u64)a | (u64)b << 32)
V2(AND, B16, NONE, N, u16, u16, u16, a &b)
V2(AND, B32, NONE, N, u32, u32, u32, a &b)
V2(AND, B64, NONE, N, u64, u64, u64, a &b)
V2(OR, B16, NONE, N, u16, u16, u16, a | b)
V2(OR, B32, NONE, N, u32, u32, u32, a | b)
V2(OR, B64, NONE, N, u64, u64, u64, a | b)
V2(XOR, B16, NONE, N, u16, u16, u16, a ^ b)
V2(XOR, B32, NONE, N, u32, u32, u32, a ^ b)
V2(XOR, B64, NONE, N, u64, u64, u64, a ^ b)
V1(NOT, B16, NONE, N, u16, u16, (u16)~a)
V1(NOT, B32, NONE, N, u32, u32, ~a)
V1(NOT, B64, NONE, N, u64, u64, ~a)
V2(SHL, B16, NONE, N, u16, u16, u32, b < 16 ? (u16)((u32)a << (b & 15)) : 0)
V2(SHL, B32, NONE, N, u32, u32, u32, b < 32 ? a << (b & 31) : 0)
V2(SHL, B64, NONE, N, u64, u64, u32, b < 64 ? a << (b & 63) : 0)
V2(SHR, B16, NONE, N, u16, u16, u32, b < 16 ? (u16)((u32)a >> (b & 15)) : 0)
V2(SHR, B32, NONE, N, u32, u32, u32, b < 32 ? a >> (b & 31) : 0)
V2(SHR, B64, NONE, N, u64, u64, u32, b < 64 ? a >> (b & 63) : 0)
V2(SHR, S16, NONE, N, s16, s16, u32, (s16)(a >> (b < 15 ? b : 15)))
V2(SHR, S32, NONE, N, s32, s32, u32, a >> (b < 31 ? b : 31))
V2(SHR, S64, NONE, N, s64, s64, u32, a >> (b < 63 ? b : 63))
V3(SHF, B32, L, N, u32, u32, u32, u32, (u32)(((u64)b << 32 | a) << (c < 32 ? c : 32) >> 32))
V3(SHF, B32, L, WRAP, u32, u32, u32, u32, (u32)(((u64)b << 32 | a) << (c & 31) >> 32))
V3(SHF, B32, R, N, u32, u32, u32, u32, (u32)(((u64)b << 32 | a) >> (c < 32 ? c : 32)))
V3(SHF, B32, R, WRAP, u32, u32, u32, u32, (u32)(((u64)b << 32 | a) >> (c & 31)))
V1(POPC, B32, NONE, N, u32, u32, (u32)__builtin_popcount(a))
V1(POPC, B64, NONE, N, u32, u64, (u32)__builtin_popcountll(a))
V1(CLZ, B32, NONE, N, u32, u32, a ? (u32)__builtin_clz(a | 1) : 32)
V1(CLZ, B64, NONE, N, u32, u64, a ? (u32)__builtin_clzll(a | 1) : 64)

/* Integer arithmetic. */
V2(ADD, B16, NONE, N, u16, u16, u16, (u16)(a + b))
V2(ADD, B32, NONE, N, u32, u32, u32, a + b)
V2(ADD, B64, NONE, N, u64, u64, u64, a + b)
V2(SUB, B16, NONE, N, u16, u16, u16, (u16)(a - b))
V2(SUB, B32, NONE, N, u32, u32, u32, a - b)
V2(SUB, B64, NONE, N, u64, u64, u64, a - b)
V2(MUL, B16, LO, N, u16, u16, u16, (u16)((u32)a *b))
V2(MUL, B32, LO, N, u32, u32, u32, a *b)
V2(MUL, B64, LO, N, u64, u64, u64, a *b)
V2(MUL, U16, HI, N, u16, u16, u16, (u16)((u32)a *b >> 16))
V2(MUL, S16, HI, N, s16, s16, s16, (s16)((s32)a *b >> 16))
V2(MUL, U32, HI, N, u32, u32, u32, (u32)((u64)a *b >> 32))
V2(MUL, S32, HI, N, s32, s32, s32, (s32)((s64)a *b >> 32))
V2(MUL, U64, HI, N, u64, u64, u64, (u64)((unsigned __int128)a *b >> 64))
V2(MUL, S64, HI, N, s64, s64, s64, (s64)((__int128)a *b >> 64))
V2(MUL, U16, WIDE, N, u32, u16, u16, (u32)a *b)
V2(MUL, S16, WIDE, N, s32, s16, s16, (s32)a *b)
V2(MUL, U32, WIDE, N, u64, u32, u32, (u64)a *b)
V2(MUL, S32, WIDE, N, s64, s32, s32, (s64)a *b)
V3(MAD, B16, LO, N, u16, u16, u16, u16, (u16)((u32)a *b + c))
V3(MAD, B32, LO, N, u32, u32, u32, u32, a *b + c)
V3(MAD, B64, LO, N, u64, u64, u64, u64, a *b + c)
V3(MAD, U32, HI, N, u32, u32, u32, u32, (u32)((u64)a *b >> 32) + c)
V3(MAD, S32, HI, N, u32, s32, s32, u32, (u32)((s64)a *b >> 32) + c)
V3(MAD, U16, WIDE, N, u32, u16, u16, u32, (u32)a *b + c)
V3(MAD, S16, WIDE, N, u32, s16, s16, u32, (u32)((s32)a *b) + c)
V3(MAD, U32, WIDE, N, u64, u32, u32, u64, (u64)a *b + c)
V3(MAD, S32, WIDE, N, u64, s32, s32, u64, (u64)((s64)a *b) + c)
V2(DIV, U32, NONE, N, u32, u32, u32, div_u32(a, b))
V2(DIV, S32, NONE, N, s32, s32, s32, div_s32(a, b))
V2(DIV, U64, NONE, N, u64, u64, u64, b ? a / b : UINT64_MAX)
V2(DIV, S64, NONE, N, s64, s64, s64, b == 0 ? -1 : b == -1 ? (s64)(0 - (u64)a) : a / b)
V2(REM, U32, NONE, N, u32, u32, u32, b ? a - div_u32(a, b) * b : ~0u)
V2(REM, S32, NONE, N, s32, s32, s32, b ? (s32)((u32)a - (u32)div_s32(a, b) * (u32)b) : -1)
V2(REM, U64, NONE, N, u64, u64, u64, b ? a % b : ~(u64)0)
V2(REM, S64, NONE, N, s64, s64, s64, b == 0 ? -1 : b == -1 ? 0 : a % b)
V1(NEG, S16, NONE, N, u16, u16, (u16)(0 - a))
V1(NEG, S32, NONE, N, u32, u32, 0 - a)
V1(NEG, S64, NONE, N, u64, u64, 0 - a)
V1(ABS, S16, NONE, N, u16, s16, (u16)(a < 0 ? 0 - a : a))
V1(ABS, S32, NONE, N, u32, s32, a < 0 ? 0 - (u32)a : (u32)a)
V1(ABS, S64, NONE, N, u64, s64, a < 0 ? 0 - (u64)a : (u64)a)
#define INTERP_MINMAX(TYPE, T)                                                                     \
    V2(MIN, TYPE, NONE, N, T, T, T, a < b ? a : b)                                                 \
    V2(MAX, TYPE, NONE, N, T, T, T, a > b ? a : b)
INTERP_MINMAX(U16, u16)
INTERP_MINMAX(S16, s16)
INTERP_MINMAX(U32, u32)
INTERP_MINMAX(S32, s32)
INTERP_MINMAX(U64, u64)
INTERP_MINMAX(S64, s64)
#undef INTERP_MINMAX

/* Floating point, to nearest. */
#define INTERP_F32_2(OP, e, flushed)                                                               \
    V2(OP, F32, NONE, N, f32, f32, f32, e(a, b))                                                   \
    V2(OP, F32, NONE, FTZ, f32, f32, f32, flushed(ftz(a), ftz(b)))                                 \
    V2(OP, F32, NONE, SAT, f32, f32, f32, sat(e(a, b)))                                            \
    V2(OP, F32, NONE, FTZSAT, f32, f32, f32, sat(flushed(ftz(a), ftz(b))))
#define INTERP_F32_3(OP)                                                                           \
    V3(OP, F32, NONE, N, f32, f32, f32, f32, __builtin_fmaf(a, b, c))                              \
    V3(OP, F32, NONE, FTZ, f32, f32, f32, f32, ftz_fma(ftz(a), ftz(b), ftz(c)))                    \
    V3(OP, F32, NONE, SAT, f32, f32, f32, f32, sat(__builtin_fmaf(a, b, c)))                       \
    V3(OP, F32, NONE, FTZSAT, f32, f32, f32, f32, sat(ftz_fma(ftz(a), ftz(b), ftz(c))))
#define INTERP_ADD(x, y)     ((x) + (y))
#define INTERP_SUB(x, y)     ((x) - (y))
#define INTERP_MUL(x, y)     ((x) * (y))
#define INTERP_ADD_FTZ(x, y) ftz((x) + (y)) /* a small sum is exact */
#define INTERP_SUB_FTZ(x, y) ftz((x) - (y))
INTERP_F32_2(ADD, INTERP_ADD, INTERP_ADD_FTZ)
INTERP_F32_2(SUB, INTERP_SUB, INTERP_SUB_FTZ)
INTERP_F32_2(MUL, INTERP_MUL, ftz_mul)
INTERP_F32_3(FMA)
INTERP_F32_3(MAD)
V2(DIV, F32, NONE, N, f32, f32, f32, a / b)
V2(DIV, F32, NONE, FTZ, f32, f32, f32, ftz_div(ftz(a), ftz(b)))
V2(DIV, F32, APPROX, N, f32, f32, f32, div_approx(a, b))
V2(DIV, F32, APPROX, FTZ, f32, f32, f32, div_approx_ftz(ftz(a), ftz(b)))
V1(RCP, F32, NONE, N, f32, f32, 1.0f / a)
V1(RCP, F32, NONE, FTZ, f32, f32, ftz_div(1.0f, ftz(a)))
V1(SQRT, F32, NONE, N, f32, f32, __builtin_sqrtf(a))
V1(SQRT, F32, NONE, FTZ, f32, f32, __builtin_sqrtf(ftz(a)))
V1(RSQRT, F32, NONE, N, f32, f32, 1.0f / __builtin_sqrtf(a))
V1(RSQRT, F32, NONE, FTZ, f32, f32, 1.0f / __builtin_sqrtf(ftz(a)))
V1(NEG, F32, NONE, N, u32, u32, a ^ 0x80000000u)
V1(NEG, F32, NONE, FTZ, f32, f32, -ftz(a))
V1(ABS, F32, NONE, N, u32, u32, a & 0x7fffffffu)
V1(ABS, F32, NONE, FTZ, f32, f32, __builtin_fabsf(ftz(a)))
V2(MIN, F32, NONE, N, f32, f32, f32, min_f32(a, b))
V2(MIN, F32, NONE, FTZ, f32, f32, f32, min_f32(ftz(a), ftz(b)))
V2(MAX, F32, NONE, N, f32, f32, f32, max_f32(a, b))
V2(MAX, F32, NONE, FTZ, f32, f32, f32, max_f32(ftz(a), ftz(b)))
V2(ADD, F64, NONE, N, f64, f64, f64, a + b)
V2(SUB, F64, NONE, N, f64, f64, f64, a - b)
V2(MUL, F64, NONE, N, f64, f64, f64, a *b)
V3(FMA, F64, NONE, N, f64, f64, f64, f64, __builtin_fma(a, b, c))
V3(MAD, F64, NONE, N, f64, f64, f64, f64, __builtin_fma(a, b, c))
V2(DIV, F64, NONE, N, f64, f64, f64, a / b)
V1(RCP, F64, NONE, N, f64, f64, 1.0 / a)
V1(SQRT, F64, NONE, N, f64, f64, __builtin_sqrt(a))
V1(NEG, F64, NONE, N, u64, u64, a ^ 0x8000000000000000u)
V1(ABS, F64, NONE, N, u64, u64, a & 0x7fffffffffffffffu)
V2(MIN, F64, NONE, N, f64, f64, f64, min_f64(a, b))
V2(MAX, F64, NONE, N, f64, f64, f64, max_f64(a, b))
#undef INTERP_F32_2
#undef INTERP_F32_3

/* Comparison into a predicate. */
#define INTERP_EQUALITY(TYPE, T)                                                                   \
    VC(SETP, TYPE, EQ, N, T, a == b)                                                               \
    VC(SETP, TYPE, NE, N, T, a != b)
#define INTERP_ORDER(TYPE, T)                                                                      \
    VC(SETP, TYPE, LT, N, T, a < b)                                                                \
    VC(SETP, TYPE, LE, N, T, a <= b)                                                               \
    VC(SETP, TYPE, GT, N, T, a > b)                                                                \
    VC(SETP, TYPE, GE, N, T, a >= b)
#define INTERP_FLOAT_ORDER(TYPE, FLAGS, T, f)                                                      \
    VC(SETP, TYPE, EQ, FLAGS, T, f(a) == f(b))                                                     \
    VC(SETP, TYPE, NE, FLAGS, T, (f(a) < f(b)) + (f(a) > f(b)))                                    \
    VC(SETP, TYPE, LT, FLAGS, T, f(a) < f(b))                                                      \
    VC(SETP, TYPE, LE, FLAGS, T, f(a) <= f(b))                                                     \
    VC(SETP, TYPE, GT, FLAGS, T, f(a) > f(b))                                                      \
    VC(SETP, TYPE, GE, FLAGS, T, f(a) >= f(b))                                                     \
    VC(SETP, TYPE, EQU, FLAGS, T, !((f(a) < f(b)) + (f(a) > f(b))))                                \
    VC(SETP, TYPE, NEU, FLAGS, T, f(a) != f(b))                                                    \
    VC(SETP, TYPE, LTU, FLAGS, T, !(f(a) >= f(b)))                                                 \
    VC(SETP, TYPE, LEU, FLAGS, T, !(f(a) > f(b)))                                                  \
    VC(SETP, TYPE, GTU, FLAGS, T, !(f(a) <= f(b)))                                                 \
    VC(SETP, TYPE, GEU, FLAGS, T, !(f(a) < f(b)))                                                  \
    VC(SETP, TYPE, NUM, FLAGS, T, (a == a) & (b == b))                                             \
    VC(SETP, TYPE, NAN, FLAGS, T, (a != a) | (b != b))
INTERP_EQUALITY(B16, u16)
INTERP_EQUALITY(B32, u32)
INTERP_EQUALITY(B64, u64)
INTERP_ORDER(U16, u16)
INTERP_ORDER(S16, s16)
INTERP_ORDER(U32, u32)
INTERP_ORDER(S32, s32)
INTERP_ORDER(U64, u64)
INTERP_ORDER(S64, s64)
INTERP_FLOAT_ORDER(F32, N, f32, same)
INTERP_FLOAT_ORDER(F32, FTZ, f32, ftz)
INTERP_FLOAT_ORDER(F64, N, f64, same)
#undef INTERP_EQUALITY
#undef INTERP_ORDER
#undef INTERP_FLOAT_ORDER

/* Conversion. */
V1(CVT, B16, FROM_B32, N, u16, u32, (u16)a)
V1(CVT, B16, FROM_B64, N, u16, u64, (u16)a)
V1(CVT, B32, FROM_B64, N, u32, u64, (u32)a)
V1(CVT, B32, FROM_U16, N, u32, u16, a)
V1(CVT, B32, FROM_S16, N, s32, s16, a)
V1(CVT, B64, FROM_U16, N, u64, u16, a)
V1(CVT, B64, FROM_S16, N, s64, s16, a)
V1(CVT, B64, FROM_U32, N, u64, u32, a)
V1(CVT, B64, FROM_S32, N, s64, s32, a)
V1(CVT, B32, FROM_B32, N, u32, u32, a)
V1(CVT, B64, FROM_B64, N, u64, u64, a)
V1(CVT, F32, FROM_U16, N, f32, u16, (f32)a)
V1(CVT, F32, FROM_S16, N, f32, s16, (f32)a)
V1(CVT, F32, FROM_U32, N, f32, u32, (f32)a)
V1(CVT, F32, FROM_S32, N, f32, s32, (f32)a)
V1(CVT, F32, FROM_U64, N, f32, u64, (f32)a)
V1(CVT, F32, FROM_S64, N, f32, s64, (f32)a)
V1(CVT, F64, FROM_U32, N, f64, u32, (f64)a)
V1(CVT, F64, FROM_S32, N, f64, s32, (f64)a)
V1(CVT, F64, FROM_U64, N, f64, u64, (f64)a)
V1(CVT, F64, FROM_S64, N, f64, s64, (f64)a)
V1(CVT, F64, FROM_F32, N, f64, f32, (f64)a)
V1(CVT, F32, FROM_F64, N, f32, f64, (f32)a)
V1(CVT, F32, FROM_F32_NI, N, f32, f32, one_nan(__builtin_rintf(a)))
V1(CVT, F32, FROM_F32_ZI, N, f32, f32, one_nan(__builtin_truncf(a)))
V1(CVT, F32, FROM_F32_MI, N, f32, f32, one_nan(__builtin_floorf(a)))
V1(CVT, F32, FROM_F32_PI, N, f32, f32, one_nan(__builtin_ceilf(a)))
V1(CVT, F64, FROM_F64_NI, N, f64, f64, __builtin_rint(a))
V1(CVT, F64, FROM_F64_ZI, N, f64, f64, __builtin_trunc(a))
V1(CVT, F64, FROM_F64_MI, N, f64, f64, __builtin_floor(a))
V1(CVT, F64, FROM_F64_PI, N, f64, f64, __builtin_ceil(a))
V1(CVT, S32, FROM_F32_ZI, N, s32, f32, s32_of_f64((f64)a, 0))
V1(CVT, U32, FROM_F32_ZI, N, u32, f32, u32_of_f64((f64)a, 0))
V1(CVT, S32, FROM_F32_NI, N, s32, f32, s32_of_f64((f64)__builtin_rintf(a), 0))
V1(CVT, S32, FROM_F32_MI, N, s32, f32, s32_of_f64((f64)__builtin_floorf(a), 0))
V1(CVT, S32, FROM_F32_PI, N, s32, f32, s32_of_f64((f64)__builtin_ceilf(a), 0))
V1(CVT, U32, FROM_F32_NI, N, u32, f32, u32_of_f64((f64)__builtin_rintf(a), 0))
V1(CVT, S32, FROM_F64_ZI, N, s32, f64, s32_of_f64(a, INT32_MIN))
V1(CVT, U32, FROM_F64_ZI, N, u32, f64, u32_of_f64(a, 0x80000000u))
V1(CVT, S32, FROM_F64_NI, N, s32, f64, s32_of_f64(__builtin_rint(a), INT32_MIN))

#undef V1
#undef V2
#undef V3
#undef VC
