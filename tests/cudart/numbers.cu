/*
 * Numbers of 8 and 16 bits, and integers packed in a word, in kernels: conversions against the nearest of all values that the
 * formats have, found by search, with ties to even; packed operations against plain C on each part. The formats are those of
 * the OCP 8-bit specification and IEEE 754; the functions those of the CUDA Math API.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

/* Programs look for the guards of the toolkit's headers (helper_cuda.h of the CUDA samples). */
#if !defined(__DRIVER_TYPES_H__) || !defined(__CUDA_RUNTIME_H__) || !defined(__CUDA_RUNTIME_API_H__) ||                \
    !defined(__VECTOR_TYPES_H__) || !defined(__VECTOR_FUNCTIONS_H__) || !defined(__CUDA_FP16_H__) ||                   \
    !defined(__CUDA_BF16_H__) || !defined(__CUDA_FP8_H__)
#error "a guard is not there"
#endif

/* The value of a number with `exponent` bits of exponent and `fraction` ones of fraction. */
static double value(unsigned bits, int exponent, int fraction, bool has_infinity)
{
    unsigned m = bits & ((1u << fraction) - 1), e = bits >> fraction & ((1u << exponent) - 1);
    int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1;
    double sign = bits >> (exponent + fraction) & 1 ? -1 : 1;
    if ((int)e == top && (has_infinity || m == (1u << fraction) - 1))
        return has_infinity && m == 0 ? sign * INFINITY : NAN;
    return sign * (e ? ldexp(1 + ldexp(m, -fraction), (int)e - bias) : ldexp(m, 1 - bias - fraction));
}

/* The number that lies nearest, of those that are neither infinite nor NaN. */
static unsigned nearest(double d, int exponent, int fraction, bool has_infinity)
{
    unsigned best = 0;
    if (fabs(d) > 1e6) /* far beyond all of them */
        d = copysign(1e6, d);
    for (unsigned i = 0; i < 1u << (exponent + fraction); i++) {
        double v = value(i, exponent, fraction, has_infinity);
        if (!isfinite(v))
            break;
        double now = fabs(fabs(d) - v), before = fabs(fabs(d) - value(best, exponent, fraction, has_infinity));
        if (now < before || (now == before && !(i & 1)))
            best = i;
    }
    return best | (signbit(d) ? 1u << (exponent + fraction) : 0);
}

struct eights {
    unsigned char e4m3, e5m2, beyond4, beyond5;
    float back4, back5;
};

__global__ void to_eight(const float *in, eights *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float f = in[i];
    __nv_fp8_e4m3 a(f);
    __nv_fp8x2_e5m2 b(make_float2(0, f));
    out[i] = { a.__x,
               (unsigned char)(b.__x >> 8),
               __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E4M3),
               __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2),
               (float)a,
               ((float2)b).y };
}

static void eight_bits()
{
    enum { N = 4096 };
    float *in;
    eights *out;
    CHECK(cudaMallocManaged(&in, N * sizeof(*in)) == cudaSuccess);
    CHECK(cudaMallocManaged(&out, N * sizeof(*out)) == cudaSuccess);
    for (int i = 0; i < N; i++) { /* every value, the middles between neighbours, and what is just beside them */
        double low = value((unsigned)i / 8 % 128, 4, 3, false), high = value((unsigned)i / 8 % 128 + 1, 4, 3, false);
        if (i >= 2048) {
            low = value((unsigned)i / 8 % 128, 5, 2, true);
            high = value((unsigned)i / 8 % 128 + 1, 5, 2, true);
        }
        double middle = isfinite(high) && isfinite(low) ? (low + high) / 2 : 1e6 * (i & 7);
        float f = (float)(i & 1 ? low : middle);
        if (i & 2)
            f = nextafterf(f, i & 4 ? INFINITY : 0);
        in[i] = i & 8 ? -f : f;
    }
    to_eight<<<N / 64, 64>>>(in, out);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        unsigned want4 = nearest(in[i], 4, 3, false), want5 = nearest(in[i], 5, 2, true);
        if (isnan(in[i])) {
            wrong += (out[i].e4m3 & 0x7f) != 0x7f || (out[i].e5m2 & 0x7f) <= 0x7c;
            continue;
        }
        wrong += out[i].e4m3 != want4 || out[i].e5m2 != want5;
        wrong += out[i].back4 != value(want4, 4, 3, false) || out[i].back5 != value(want5, 5, 2, true);
        /* half a step beyond the largest is a tie, which goes to the even neighbour: up for e5m2, down for e4m3 */
        wrong += out[i].beyond4 != (fabs(in[i]) > 464 ? (want4 & 0x80) | 0x7f : want4);
        wrong += out[i].beyond5 != (fabs(in[i]) >= 61440 ? (want5 & 0x80) | 0x7c : want5);
    }
    CHECK(wrong == 0);
    CHECK(cudaFree(in) == cudaSuccess && cudaFree(out) == cudaSuccess);
}

struct once {
    unsigned short from_int, from_double, bf_int, bf_double;
    int rn, rz, ru, rd, large, none;
    unsigned below;
    long long none_long;
};

/* What double rounding would get wrong, and the limits of integers. */
__global__ void round_once(int i, double d, float bf, once *out)
{
    out->from_int = __half_as_ushort(__int2half_rn(i));
    out->from_double = __half_as_ushort(__double2half(d));
    out->bf_int = __bfloat16_as_ushort(__int2bfloat16_rn((1 << 30) + (1 << 22) + 1));
    out->bf_double = __bfloat16_as_ushort(__double2bfloat16(1 + 0x1p-8 + 0x1p-40));
    __nv_bfloat16 h = __float2bfloat16(bf);
    out->rn = __bfloat162int_rn(h);
    out->rz = __bfloat162int_rz(h);
    out->ru = __bfloat162int_ru(h);
    out->rd = __bfloat162int_rd(h);
    out->large = __bfloat162int_rz(__float2bfloat16(1e30f));
    out->none = __half2int_rn(__ushort_as_half(0x7fff));
    out->below = __half2uint_rd(__float2half(-3));
    out->none_long = __half2ll_rn(__ushort_as_half(0x7fff));
}

static void sixteen_bits()
{
    once *o;
    CHECK(cudaMallocManaged(&o, sizeof(*o)) == cudaSuccess);
    round_once<<<1, 1>>>(2049, 1 + 0x1p-11 + 0x1p-40, -2.5f, o);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(o->from_int == 0x6800);    /* 2049 lies between 2048 and 2050 */
    CHECK(o->from_double == 0x3c01); /* just above the middle of 1 and the next */
    CHECK(o->bf_int == 0x4e81 && o->bf_double == 0x3f81);
    CHECK(o->rn == -2 && o->rz == -2 && o->ru == -2 && o->rd == -3);
    CHECK(o->large == INT_MAX && o->none == 0 && o->below == 0 && o->none_long == LLONG_MIN);
    CHECK(cudaFree(o) == cudaSuccess);
}

struct parts {
    unsigned most, least, sum, bounded, halves_u, three;
    bool high, low, word;
    int wrapped, relu;
};

__global__ void packed(unsigned a, unsigned b, unsigned c, parts *o)
{
    o->most = __vimax3_s16x2(a, b, c);
    o->least = __vimin3_u16x2(a, b, c);
    o->sum = __viaddmin_s16x2(a, b, c);
    o->bounded = __viaddmax_s16x2_relu(a, b, c);
    o->halves_u = __vibmax_u16x2(a, b, &o->high, &o->low);
    o->three = __vimin3_u32(a, b, c);
    o->wrapped = __viaddmax_s32(INT_MAX, 1, -5);
    o->relu = __vibmin_s32(-7, 3, &o->word) + __vimax_s32_relu(-7, -3);
}

/* Halves, each (high, low): a (-2, 7), b (5, -32768), c (-3, -1). */
static void packed_integers()
{
    parts *o;
    CHECK(cudaMallocManaged(&o, sizeof(*o)) == cudaSuccess);
    packed<<<1, 1>>>(0xfffe0007, 0x00058000, 0xfffdffff, o);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(o->most == 0x00050007 && o->least == 0x00050007);
    CHECK(o->sum == 0xfffd8007 && o->bounded == 0x00030000);
    CHECK(o->halves_u == 0xfffe8000 && o->high && !o->low);
    CHECK(o->three == 0x00058000 && o->wrapped == -5 && o->relu == -7 && o->word);
    CHECK(cudaFree(o) == cudaSuccess);
}

struct cells {
    unsigned sum, most;
    int least;
    unsigned long long wide;
    float real;
    unsigned bits, swapped, published, flag;
};

__global__ void cells_at_once(cells *c)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_atomic_fetch_add(&c->sum, i, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_fetch_max(&c->most, i, __NV_ATOMIC_ACQ_REL);
    __nv_atomic_fetch_min(&c->least, -(int)i, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_sub(&c->wide, 1ull << 40, __NV_ATOMIC_SEQ_CST);
    __nv_atomic_fetch_add(&c->real, 0.5f, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_xor(&c->bits, 1u << i % 32, __NV_ATOMIC_RELAXED);
    unsigned seen = __nv_atomic_load_n(&c->swapped, __NV_ATOMIC_RELAXED);
    while (!__nv_atomic_compare_exchange_n(&c->swapped, &seen, seen + 3, true, __NV_ATOMIC_RELEASE, __NV_ATOMIC_RELAXED))
        continue;
    if (i == 0) {
        c->published = 42;
        __nv_atomic_store_n(&c->flag, 1, __NV_ATOMIC_RELEASE);
    }
}

static void atomics()
{
    cells *c;
    CHECK(cudaMallocManaged(&c, sizeof(*c)) == cudaSuccess);
    memset(c, 0, sizeof(*c));
    cells_at_once<<<8, 32>>>(c);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(c->sum == 255 * 128 && c->most == 255 && c->least == -255);
    CHECK(c->wide == 0 - (256ull << 40) && c->real == 128 && c->bits == 0);
    CHECK(c->swapped == 768 && c->published == 42 && c->flag == 1);
    CHECK(cudaFree(c) == cudaSuccess);
}

/* Thrust's reductions copy from volatile numbers. */
template <class T> static T copied(T number)
{
    const volatile T from = number;
    return from;
}

int main()
{
    CHECK((float)copied(__half(2.5f)) == 2.5f && (float)copied(__nv_bfloat16(-3)) == -3);
    eight_bits();
    sixteen_bits();
    packed_integers();
    atomics();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
