/*
 * Numbers of 4, 6 and 8 bits, on the host and in kernels: conversions against a search through all
 * values that a format has; what is out of range, infinite or NaN; integers; packed numbers.
 */
#include <cfloat>
#include <climits>
#include <cmath>
#include <cuda_fp4.h>
#include <vector>

#include "check.h"

/* A GPU leaves the sign of a NaN that is negated, x86 changes it. */
__host__ __device__ static double opposite(double d)
{
    return d == d ? -d : d;
}

#if !defined(__CUDA_FP8_H__) || !defined(__CUDA_FP6_H__) || !defined(__CUDA_FP4_H__)
#error "a guard is not there"
#endif

/* A format: its classes, bits of exponent and of fraction, the largest number, bits of each number
 * in a pair, and whether conversions have a mode of rounding. */
#define FORMAT(name, n, T, T2, T4, E, F, LARGEST, BITS, MODES, ...)                                \
    struct name {                                                                                  \
        typedef T one;                                                                             \
        typedef T2 two;                                                                            \
        typedef T4 four;                                                                           \
        enum { exponent = E, fraction = F, largest = LARGEST, bits = BITS, modes = MODES };        \
        __host__ __device__ static void convert(unsigned *out, double d, enum cudaRoundMode mode)  \
        {                                                                                          \
            (void)mode;                                                                            \
            out[0] = __nv_cvt_double_to_##n(d, __VA_ARGS__);                                       \
            out[1] = __nv_cvt_float_to_##n((float)d, __VA_ARGS__);                                 \
            out[2] = __nv_cvt_double2_to_##n##x2(make_double2(d, opposite(d)), __VA_ARGS__);       \
            out[3] = __nv_cvt_float2_to_##n##x2(make_float2(-(float)d, (float)d), __VA_ARGS__);    \
        }                                                                                          \
        __host__ __device__ static void raw(unsigned *out, unsigned x, enum cudaRoundMode mode)    \
        {                                                                                          \
            unsigned short s = (unsigned short)x;                                                  \
            (void)mode;                                                                            \
            out[0] = __nv_cvt_halfraw_to_##n(__half_raw { s }, __VA_ARGS__);                       \
            out[1] = __nv_cvt_bfloat16raw_to_##n(__nv_bfloat16_raw { s }, __VA_ARGS__);            \
            out[2] = __nv_cvt_halfraw2_to_##n##x2(__half2_raw { 0, s }, __VA_ARGS__) >> BITS;      \
            out[3] = __nv_cvt_bfloat16raw2_to_##n##x2(__nv_bfloat162_raw { s, 0 }, __VA_ARGS__);   \
        }                                                                                          \
    };
FORMAT(e2m1, fp4, __nv_fp4_e2m1, __nv_fp4x2_e2m1, __nv_fp4x4_e2m1, 2, 1, 7, 4, 2, __NV_E2M1, mode)
FORMAT(e2m3, fp6, __nv_fp6_e2m3, __nv_fp6x2_e2m3, __nv_fp6x4_e2m3, 2, 3, 31, 8, 2, __NV_E2M3, mode)
FORMAT(e3m2, fp6, __nv_fp6_e3m2, __nv_fp6x2_e3m2, __nv_fp6x4_e3m2, 3, 2, 31, 8, 2, __NV_E3M2, mode)
FORMAT(e4m3, fp8, __nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, 4, 3, 126, 8, 1, __NV_SATFINITE,
       __NV_E4M3)
FORMAT(e5m2, fp8, __nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, 5, 2, 123, 8, 1, __NV_SATFINITE,
       __NV_E5M2)

static const enum cudaRoundMode modes[] = { cudaRoundNearest, cudaRoundZero };

/* The value of a number. */
template <class F> static double value(unsigned x)
{
    int m = (int)(x & ((1u << F::fraction) - 1));
    int e = (int)(x >> F::fraction & ((1u << F::exponent) - 1));
    int lowest = 2 - (1 << (F::exponent - 1)) - F::fraction; /* what the last bit stands for */
    double v = e ? ldexp(m + (1 << F::fraction), e - 1 + lowest) : ldexp(m, lowest);
    return x >> (F::exponent + F::fraction) & 1 ? -v : v;
}

/* What a double that is NaN becomes: the largest number, or NaN where there is one, with its sign.
 */
template <class F> static unsigned of_nan(double d)
{
    if (F::modes == 2)
        return F::largest;
    return (std::signbit(d) ? 0x80 : 0) | (F::exponent == 5 ? 0x7e : 0x7f);
}

/* The number that lies nearest, of two the even one; or the greatest one that is not above. */
template <class F> static unsigned expected(double d, enum cudaRoundMode mode)
{
    const double a = fabs(d) < 1e6 ? fabs(d) : 1e6;
    unsigned best = 0;
    if (d != d) /* the largest number, or NaN where there is one */
        return F::modes == 2 ? F::largest : (1u << (F::exponent + F::fraction)) - 1;
    for (unsigned x = 1; x <= F::largest; x++) {
        double now = fabs(a - value<F>(x)), before = fabs(a - value<F>(best));
        if (mode == cudaRoundZero ? value<F>(x) <= a : now < before || (now == before && !(x & 1)))
            best = x;
    }
    return best | (std::signbit(d) ? 1u << (F::exponent + F::fraction) : 0);
}

/* Every value and what is halfway to the next one, what is just beside them, and bad numbers. */
template <class F> static std::vector<double> inputs()
{
    std::vector<double> in = { 0,       NAN,   INFINITY, DBL_MAX, FLT_MAX, FLT_TRUE_MIN,
                               FLT_MIN, 65520, 4.9e-324 };
    for (unsigned x = 0; x <= F::largest; x++) {
        const double v = value<F>(x), next = x < F::largest ? value<F>(x + 1) : 1.25 * v;
        for (double d : { v, (v + next) / 2 }) {
            in.insert(in.end(), { d, nextafter(d, 0), nextafter(d, 1e9) });
            in.insert(in.end(), { nextafterf((float)d, 0), nextafterf((float)d, 1e9f) });
        }
    }
    for (size_t i = in.size(); i-- > 0;)
        in.push_back(-in[i]);
    return in;
}

struct converted {
    unsigned by_function[2][4], by_class[2], pairs[2], fours[3];
    double back[4];
};

template <class F> __host__ __device__ void convert(converted *c, double d)
{
    typedef typename F::one T;
    typedef typename F::two T2;
    typedef typename F::four T4;
    const float f = (float)d;
    const T t(f);
    const T2 t2(make_float2(f, -f));
    const T4 t4(make_float4(f, -f, 1, f));
    F::convert(c->by_function[0], d, cudaRoundNearest);
    F::convert(c->by_function[1], d, cudaRoundZero);
    c->by_class[0] = t.__x;
    c->by_class[1] = T(d).__x;
    c->pairs[0] = t2.__x;
    c->pairs[1] = T2(make_double2(d, opposite(d))).__x;
    c->fours[0] = t4.__x;
    c->fours[1] = T4(double4 { d, opposite(d), 1, d }).__x;
    c->fours[2] = T4(__half2(__half(1), __half(2)), __half2(__half(-1), __half(0))).__x;
    const double back[] = { (float)t, (float)(__nv_bfloat16)t, ((float2)t2).y, ((float4)t4).w };
    for (int i = 0; i < 4; i++)
        c->back[i] = back[i];
}

template <class F> __global__ void convert_all(converted *out, const double *in, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        convert<F>(&out[i], in[i]);
}

static bool same(double a, double b)
{
    return a != a ? b != b : a == b && std::signbit(a) == std::signbit(b);
}

/* How many of the results are not what a search finds. */
template <class F> static int wrong(const converted &c, double d)
{
    const int n = F::bits;
    const float f = (float)d;
    const bool number = d == d;
    int w = 0;
    for (int m = 0; m < F::modes; m++) {
        unsigned one = number ? expected<F>(d, modes[m]) : of_nan<F>(d);
        unsigned other = number ? expected<F>(-d, modes[m]) : of_nan<F>(d);
        w += c.by_function[m][0] != one || c.by_function[m][2] != (one | other << n);
        one = expected<F>(f, modes[m]), other = expected<F>(-f, modes[m]);
        w += c.by_function[m][1] != one || c.by_function[m][3] != (other | one << n);
    }
    const unsigned x = number ? expected<F>(d, cudaRoundNearest) : of_nan<F>(d);
    const unsigned y = number ? expected<F>(-d, cudaRoundNearest) : of_nan<F>(d);
    const unsigned s = expected<F>(f, cudaRoundNearest), t = expected<F>(-f, cudaRoundNearest);
    const unsigned one = expected<F>(1, cudaRoundNearest), two = expected<F>(2, cudaRoundNearest);
    w += c.by_class[0] != s || c.by_class[1] != x;
    w += c.pairs[0] != (s | t << n) || c.pairs[1] != (x | y << n);
    w += c.fours[0] != (s | t << n | one << 2 * n | s << 3 * n);
    w += c.fours[1] != (x | y << n | one << 2 * n | x << 3 * n);
    w += c.fours[2] != (one | two << n | expected<F>(-1, cudaRoundNearest) << 2 * n);
    const double v = number || F::modes == 2 ? value<F>(s) : NAN;
    const double minus = number || F::modes == 2 ? value<F>(t) : NAN;
    return w + !(same(c.back[0], v) && same(c.back[1], v) && same(c.back[2], minus) &&
                 same(c.back[3], v));
}

template <class F> static void check_inputs()
{
    const std::vector<double> in = inputs<F>();
    const unsigned n = (unsigned)in.size();
    double *from;
    converted *out;
    OK(cudaMallocManaged(&from, n * sizeof(*from)));
    OK(cudaMallocManaged(&out, n * sizeof(*out)));
    for (unsigned i = 0; i < n; i++)
        from[i] = in[i];
    convert_all<F><<<(n + 63) / 64, 64>>>(out, from, n);
    OK(cudaDeviceSynchronize());
    int on_host = 0, on_device = 0;
    for (unsigned i = 0; i < n; i++) {
        converted here;
        convert<F>(&here, in[i]);
        on_host += wrong<F>(here, in[i]);
        on_device += wrong<F>(out[i], in[i]);
    }
    CHECK(on_host == 0);
    CHECK(on_device == 0);
    OK(cudaFree(from));
    OK(cudaFree(out));
}

template <class F> __global__ void raw_all(unsigned (*out)[2][4])
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    F::raw(out[x][0], x, cudaRoundNearest);
    F::raw(out[x][1], x, cudaRoundZero);
}

/* All numbers of 16 bits. */
template <class F> static void check_raw()
{
    enum { N = 0x10000 };
    unsigned(*out)[2][4];
    OK(cudaMallocManaged(&out, N * sizeof(*out)));
    raw_all<F><<<N / 256, 256>>>(out);
    OK(cudaDeviceSynchronize());
    int on_host = 0, on_device = 0;
    for (unsigned x = 0; x < N; x++) {
        const unsigned short s = (unsigned short)x;
        const float h = (float)__half(__half_raw { s });
        const float b = (float)__nv_bfloat16(__nv_bfloat16_raw { s });
        for (int m = 0; m < F::modes; m++) {
            unsigned here[4], from_half = expected<F>(h, modes[m]),
                              from_bfloat16 = expected<F>(b, modes[m]);
            const unsigned *there = out[x][m];
            F::raw(here, x, modes[m]);
            on_host += here[0] != from_half || here[2] != from_half || here[1] != from_bfloat16 ||
                       here[3] != from_bfloat16;
            on_device += there[0] != from_half || there[2] != from_half ||
                         there[1] != from_bfloat16 || there[3] != from_bfloat16;
        }
    }
    CHECK(on_host == 0);
    CHECK(on_device == 0);
    OK(cudaFree(out));
}

/* An integer to a number and every number to an integer. */
template <class F, class I> __host__ __device__ unsigned of_integer(long long i)
{
    return typename F::one((I)i).__x;
}
template <class F, class I> __host__ __device__ I to_integer(unsigned x)
{
    typename F::one t;
    t.__x = (unsigned char)x;
    return (I)t;
}

template <class F, class I> __global__ void integers(unsigned *of, const long long *in, I *to)
{
    unsigned i = threadIdx.x;
    of[i] = of_integer<F, I>(in[i]);
    to[i] = to_integer<F, I>(i);
}

template <class F, class I> static void check_integers()
{
    enum { N = 256 };
    unsigned *of;
    long long *in;
    I *to;
    OK(cudaMallocManaged(&of, N * sizeof(*of)));
    OK(cudaMallocManaged(&in, N * sizeof(*in)));
    OK(cudaMallocManaged(&to, N * sizeof(*to)));
    for (int i = 0; i < N; i++)
        in[i] = i < 128 ? i - 64 : (LLONG_MIN >> (i & 63)) + i % 3;
    integers<F, I><<<1, N>>>(of, in, to);
    OK(cudaDeviceSynchronize());
    const double least = (I)-1 < (I)1 ? -ldexp(1, 8 * sizeof(I) - 1) : 0;
    int numbers = 0, back = 0;
    for (unsigned i = 0; i < N; i++) {
        const unsigned want = expected<F>((double)(I)in[i], cudaRoundNearest);
        numbers += of_integer<F, I>(in[i]) != want || of[i] != want;
        if ((i & ((1u << (F::exponent + F::fraction)) - 1)) > F::largest)
            continue;
        const double v = fmax(value<F>(i), least);
        const I limit = (I) ~(least < 0 ? 1ull << (8 * sizeof(I) - 1) : 0);
        const I cut = v >= (double)limit ? limit : (I)v;
        back += to_integer<F, I>(i) != cut || to[i] != cut;
    }
    CHECK(numbers == 0);
    CHECK(back == 0);
    OK(cudaFree(of));
    OK(cudaFree(in));
    OK(cudaFree(to));
}

template <class F> static void check_format()
{
    check_inputs<F>();
    check_raw<F>();
    check_integers<F, short>();
    check_integers<F, unsigned short>();
    check_integers<F, int>();
    check_integers<F, unsigned int>();
    check_integers<F, long>();
    check_integers<F, unsigned long>();
    check_integers<F, long long>();
    check_integers<F, unsigned long long>();
    CHECK((to_integer<F, signed char>(F::largest) ==
           (value<F>(F::largest) > 127 ? 127 : (int)value<F>(F::largest))));
    CHECK((to_integer<F, unsigned char>(expected<F>(-1, cudaRoundNearest)) == 0));
    CHECK((to_integer<F, char>(expected<F>(-1, cudaRoundNearest)) == -1));
    CHECK((to_integer<F, bool>(1) && !to_integer<F, bool>(1u << (F::exponent + F::fraction))));
}

/* Bits above a number's own are nothing. */
static void spare_bits()
{
    CHECK(__nv_cvt_fp4_to_halfraw(0xf7, __NV_E2M1).x == 0x4600);
    CHECK(__nv_cvt_fp6_to_halfraw(0xdf, __NV_E2M3).x == 0x4780);
    CHECK(__nv_cvt_fp6_to_halfraw(0xdf, __NV_E3M2).x == 0x4f00);
    CHECK((!to_integer<e2m1, bool>(0xf8) && !to_integer<e2m3, bool>(0xe0)));
    __half2_raw h = __nv_cvt_fp4x2_to_halfraw2(0x2f, __NV_E2M1);
    CHECK(h.x == 0xc600 && h.y == 0x3c00);
}

/* e8m0: powers of two, and rounded up where classes convert. */
__host__ __device__ static int scales()
{
    const float4 f = make_float4(1, 1.5f, -4, NAN);
    const __nv_fp8x4_e8m0 x(f);
    const float4 back = (float4)x;
    const __nv_fp8x2_e8m0 y(make_double2(1e-300, 1e300));
    const __nv_bfloat162 b = (__nv_bfloat162)y;
    const __half2 h = (__half2)y;
    return (x.__x != 0xff81807f) + !(back.x == 1 && back.y == 2 && back.z == 4) +
           (back.w == back.w) + (y.__x != 0xfe00) + (__nv_bfloat162_raw(b).x != 0x40) +
           (__half2_raw(h).x != 0) + (__half2_raw(h).y != 0x7c00) + (__nv_fp8_e8m0(3).__x != 129) +
           (__nv_fp8_e8m0((1ull << 63) + 1).__x != 127 + 64) + (int)__nv_fp8_e8m0(0) +
           ((unsigned char)__nv_fp8_e8m0(1000.0) != 255) + !(bool)__nv_fp8_e8m0(0.0f);
}

__global__ void scales_there(int *wrong)
{
    *wrong = scales();
}

int main()
{
    int *wrong;
    check_format<e2m1>();
    check_format<e2m3>();
    check_format<e3m2>();
    check_format<e4m3>();
    check_format<e5m2>();
    spare_bits();
    OK(cudaMallocManaged(&wrong, sizeof(*wrong)));
    scales_there<<<1, 1>>>(wrong);
    OK(cudaDeviceSynchronize());
    CHECK(scales() == 0 && *wrong == 0);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
