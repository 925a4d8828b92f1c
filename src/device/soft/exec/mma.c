/*
 * Products of small matrices for a whole warp (IR_OP_MMA), for interpreter and compiled code.
 * ptx/mma.c says where the elements lie. Products of narrow floating point numbers, and their sums
 * over K, are computed in double precision, where the products are exact, and rounded once. (A GPU
 * cuts its own sums to fewer bits, in an order that is not documented.)
 */
#include "device/soft/exec/helpers.h"

#include <string.h>

#include "device/soft/ir/ir.h"

#define ROWS    16
#define COLUMNS 8
#define DEPTH   32 /* the largest K, except for bits, which are counted word by word */

static double from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* A number with a sign, `exponent` bits and `fraction` bits, as double. `finite`: the format has no
 * infinities, and only all ones are NaN (e4m3). Without branches, so that loops are vectors. */
static inline double decode(uint32_t bits, unsigned exponent, unsigned fraction, bool finite)
{
    const unsigned width = exponent + fraction, bias = (1u << (exponent - 1)) - 1;
    const uint32_t ones = (1u << width) - 1, infinity = ones >> fraction << fraction,
                   size = bits & ones;
    const bool special = finite ? size == ones : size >= infinity;
    const uint64_t sign = (uint64_t)(bits >> width & 1) << 63,
                   top = special ? UINT64_C(0x7ff) << 52 : (uint64_t)(1023 - bias) << 52;
    const double small =
        (double)(int32_t)size * from_bits((uint64_t)(1023 + 1 - bias - fraction) << 52);
    uint64_t all;
    memcpy(&all, &small, sizeof(all));
    if (size >> fraction)
        all = special ? (uint64_t)size << (52 - fraction) | top
                      : ((uint64_t)size << (52 - fraction)) + top;
    return from_bits(sign | all);
}

/* Element e of each lane's register. */
static void real_elements(uint8_t kind, const uint32_t reg[SOFT_WARP], unsigned e,
                          double out[SOFT_WARP])
{
    switch (kind) {
    case IR_MMA_F16:
        for (unsigned l = 0; l < SOFT_WARP; l++)
            out[l] = decode(reg[l] >> 16 * e, 5, 10, false);
        break;
    case IR_MMA_BF16:
        for (unsigned l = 0; l < SOFT_WARP; l++)
            out[l] = decode(reg[l] >> 16 * e, 8, 7, false);
        break;
    case IR_MMA_E4M3:
        for (unsigned l = 0; l < SOFT_WARP; l++)
            out[l] = decode(reg[l] >> 8 * e, 4, 3, true);
        break;
    case IR_MMA_E5M2:
        for (unsigned l = 0; l < SOFT_WARP; l++)
            out[l] = decode(reg[l] >> 8 * e, 5, 2, false);
        break;
    default: /* TF32: the low 13 bits are ignored */
        for (unsigned l = 0; l < SOFT_WARP; l++)
            out[l] = decode(reg[l] >> 13, 8, 10, false);
        break;
    }
}

static int32_t whole_element(uint8_t kind, uint32_t reg, unsigned e)
{
    switch (kind) {
    case IR_MMA_S8:
        return (int8_t)(reg >> 8 * e);
    case IR_MMA_U8:
        return (uint8_t)(reg >> 8 * e);
    case IR_MMA_S4:
        return (int32_t)(reg >> 4 * e << 28) >> 28;
    default: /* U4 */
        return (int32_t)(reg >> 4 * e & 15);
    }
}

static unsigned elements(uint8_t kind)
{
    switch (kind) {
    case IR_MMA_F16:
    case IR_MMA_BF16:
        return 2;
    case IR_MMA_TF32:
        return 1;
    case IR_MMA_S4:
    case IR_MMA_U4:
        return 8;
    default:
        return 4;
    }
}

typedef const uint32_t (*registers)[SOFT_WARP];

static float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* The bits of an f32 result; a NaN becomes the one that tensor cores give. */
static uint32_t float_bits(double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return f != f ? 0x7fffffffu : bits;
}

static void multiply_real(uint8_t kind_a, uint8_t kind_b, registers in, uint32_t (*out)[SOFT_WARP])
{
    double a[ROWS][DEPTH], b[DEPTH][COLUMNS], c[ROWS][COLUMNS], read[3][SOFT_WARP];
    unsigned each = elements(kind_a);
    for (unsigned e = 0; e < each; e++) {
        for (unsigned k = 0; k < 3; k++)
            real_elements(k < 2 ? kind_a : kind_b, in[k], e, read[k]);
        for (unsigned l = 0; l < SOFT_WARP; l++) {
            a[l / 4][each * (l % 4) + e] = read[0][l];
            a[l / 4 + 8][each * (l % 4) + e] = read[1][l];
            b[each * (l % 4) + e][l / 4] = read[2][l];
        }
    }
    for (unsigned l = 0; l < SOFT_WARP; l++)
        for (unsigned q = 0; q < 4; q++)
            c[l / 4 + 8 * (q / 2)][2 * (l % 4) + q % 2] = (double)as_float(in[3 + q][l]);
    for (unsigned r = 0; r < ROWS; r++) {
        double sum[COLUMNS];
        memcpy(sum, c[r], sizeof(sum));
        for (unsigned k = 0; k < 4 * each; k++)
            for (unsigned n = 0; n < COLUMNS; n++)
                sum[n] += a[r][k] * b[k][n];
        memcpy(c[r], sum, sizeof(sum));
    }
    for (unsigned l = 0; l < SOFT_WARP; l++)
        for (unsigned q = 0; q < 4; q++)
            out[q][l] = float_bits(c[l / 4 + 8 * (q / 2)][2 * (l % 4) + q % 2]);
}

static void multiply_whole(uint8_t kind_a, uint8_t kind_b, registers in, uint32_t (*out)[SOFT_WARP])
{
    int32_t a[ROWS][DEPTH], b[DEPTH][COLUMNS], c[ROWS][COLUMNS] = { { 0 } };
    unsigned each = elements(kind_a);
    for (unsigned l = 0; l < SOFT_WARP; l++) {
        unsigned g = l / 4, t = l % 4;
        for (unsigned e = 0; e < each; e++) {
            a[g][each * t + e] = whole_element(kind_a, in[0][l], e);
            a[g + 8][each * t + e] = whole_element(kind_a, in[1][l], e);
            b[each * t + e][g] = whole_element(kind_b, in[2][l], e);
        }
    }
    for (unsigned r = 0; r < ROWS; r++)
        for (unsigned k = 0; k < 4 * each; k++)
            for (unsigned n = 0; n < COLUMNS; n++)
                c[r][n] += a[r][k] * b[k][n];
    for (unsigned l = 0; l < SOFT_WARP; l++)
        for (unsigned q = 0; q < 4; q++)
            out[q][l] = in[3 + q][l] + (uint32_t)c[l / 4 + 8 * (q / 2)][2 * (l % 4) + q % 2];
}

/* b1 elements: four lanes hold the 128 bits of a row and of a column. */
static void multiply_bits(uint8_t kind, registers in, uint32_t (*out)[SOFT_WARP])
{
    for (unsigned l = 0; l < SOFT_WARP; l++)
        for (unsigned q = 0; q < 4; q++) {
            unsigned row = l / 4, column = 2 * (l % 4) + q % 2, count = 0;
            for (unsigned t = 0; t < 4; t++) {
                uint32_t a = in[q / 2][4 * row + t], b = in[2][4 * column + t];
                count += (unsigned)__builtin_popcount(kind == IR_MMA_B1_AND ? a & b : a ^ b);
            }
            out[q][l] = in[3 + q][l] + count;
        }
}

/* Built once for each set of instructions. */
#define NAME_(isa) soft_helper_mma_##isa
#define NAME(isa)  NAME_(isa)

void NAME(SOFT_ISA)(uint32_t a, uint32_t b, const uint32_t (*in)[SOFT_WARP],
                    uint32_t (*out)[SOFT_WARP])
{
    if (a == IR_MMA_B1_XOR || a == IR_MMA_B1_AND)
        multiply_bits((uint8_t)a, in, out);
    else if (a >= IR_MMA_S8)
        multiply_whole((uint8_t)a, (uint8_t)b, in, out);
    else
        multiply_real((uint8_t)a, (uint8_t)b, in, out);
}
