/*
 * The approximate functions of f32, by the formulas of jit/approx.c: interpreted and compiled code
 * compute the same bits. (rsqrt is exact here; compiled, it begins with the CPU's estimate.)
 */
#include <math.h>

#include "device/soft/interp/format.h"
#include "device/soft/interp/scalar.h"

/* Horner, highest power first. */
static float polynomial(float x, const float *c, unsigned n)
{
    float r = c[0];
    for (unsigned k = 1; k < n; k++)
        r = fmaf(r, x, c[k]);
    return r;
}

static float power_of_two(int32_t k)
{
    return interp_f32((uint32_t)(k + 127) << 23);
}

static float ex2(float x)
{
    static const float c[] = { 1.52527338040598403e-5f, 1.54035303933816100e-4f,
                               1.33335581464284434e-3f, 9.61812910762847716e-3f,
                               5.55041086648215800e-2f, 2.40226506959100712e-1f,
                               6.93147180559945309e-1f, 1.0f };
    x = x < -160 ? -160 : x > 130 ? 130 : x; /* NaN stays */
    float n = roundevenf(x), r = polynomial(x - n, c, GM_ARRAY_LEN(c));
    int32_t k = n == n ? (int32_t)n : 0, half = k >> 1;
    return r * power_of_two(half) * power_of_two(k - half);
}

static float lg2(float x)
{
    static const float c[] = { 0.320598897975325f, 0.412198583111132f, 0.577078016355585f,
                               0.961796693925976f, 2.88539008177793f };
    bool tiny = x < 0x1p-126f;
    uint32_t bits = (uint32_t)interp_f32_bits(tiny ? x * 0x1p24f : x);
    int32_t e = (int32_t)(bits - 0x3f3504f3) >> 23;
    float m = interp_f32(bits - ((uint32_t)e << 23)), s = (m - 1) / (m + 1);
    float whole = tiny ? (float)e - 24 : (float)e;
    if (x == 0)
        return -INFINITY;
    if (!(x >= 0))
        return NAN;
    return x == INFINITY ? INFINITY : fmaf(s, polynomial(s * s, c, GM_ARRAY_LEN(c)), whole);
}

/* As the hardware does it: x / (2 pi) in f32, rounded towards zero, and then its fraction. */
static float sin_cos(float x, bool cosine)
{
    static const float sine[] = { 2.75573192e-6f, -1.98412698e-4f, 8.33333333e-3f, -1.66666667e-1f,
                                  1.0f };
    static const float cosine_of[] = { 2.48015873e-5f, -1.38888889e-3f, 4.16666667e-2f, -0.5f,
                                       1.0f };
    uint64_t turns = interp_f64_bits((double)x * (double)0.15915494f) & ~UINT64_C(0x1fffffff);
    if (!cosine && fabs(interp_f64(turns)) < 0x1p-126) /* a subnormal result is flushed */
        return copysignf(0, x);
    double fraction = interp_f64(turns) - roundeven(interp_f64(turns));
    double quarter = roundeven(fraction * 4);
    float r = (float)((fraction * 4 - quarter) * 1.57079632679489655800);
    uint32_t q = (fraction == fraction ? (uint32_t)(int32_t)quarter : 0) + cosine;
    float v = q & 1 ? polynomial(r * r, cosine_of, GM_ARRAY_LEN(cosine_of))
                    : polynomial(r * r, sine, GM_ARRAY_LEN(sine)) * r;
    return q & 2 ? -v : v;
}

static float hyperbolic(float x)
{
    static const float series[] = { -5.39682540e-2f, 1.33333333e-1f, -3.33333333e-1f, 1.0f };
    float size = fabsf(x);
    if (size < 0.25f)
        return polynomial(x * x, series, GM_ARRAY_LEN(series)) * x;
    return copysignf(1 - 2 / (ex2(size * 2.88539008177793f) + 1), x);
}

float interp_approx(uint16_t op, float x)
{
    switch (op) {
    case IR_OP_RSQRT:
        return 1.0f / sqrtf(x);
    case IR_OP_SIN:
    case IR_OP_COS:
        return sin_cos(x, op == IR_OP_COS);
    case IR_OP_EX2:
        return ex2(x);
    case IR_OP_LG2:
        return lg2(x);
    default:
        return hyperbolic(x);
    }
}
