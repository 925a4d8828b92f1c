/*
 * The rarer functions of 16-bit numbers, on the host and in kernels: conversions by direction,
 * against a search through all numbers; results that are bounded; comparisons with NaN.
 */
#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "check.h"

static const unsigned int none = 0x7fff;

template <class T> struct raw_of;
template <> struct raw_of<__half> {
    typedef __half_raw raw;
    typedef __half2 pair;
};
template <> struct raw_of<__nv_bfloat16> {
    typedef __nv_bfloat16_raw raw;
    typedef __nv_bfloat162 pair;
};

template <class T> __host__ __device__ T number(unsigned int bits)
{
    typename raw_of<T>::raw r;
    r.x = (unsigned short)bits;
    return T(r);
}

struct converted {
    float from_float[3], from_int[3], from_uint[3], from_ll[3], from_ull[3], from_short[3];
};

#define THREE(out, name, n, x)                                                                     \
    out[0] = (float)__##name##2##n##_rd(x), out[1] = (float)__##name##2##n##_rz(x),                \
    out[2] = (float)__##name##2##n##_ru(x)
#define CONVERT(T, n)                                                                              \
    __host__ __device__ void convert(converted *c, T, float f, long long i)                        \
    {                                                                                              \
        THREE(c->from_float, float, n, f);                                                         \
        THREE(c->from_int, int, n, (int)i);                                                        \
        THREE(c->from_uint, uint, n, (unsigned int)i);                                             \
        THREE(c->from_ll, ll, n, i);                                                               \
        THREE(c->from_ull, ull, n, (unsigned long long)i);                                         \
        THREE(c->from_short, short, n, (short)i);                                                  \
    }
CONVERT(__half, half)
CONVERT(__nv_bfloat16, bfloat16)

/* The greatest number that is not above `x`, or the smallest one that is not below. */
template <class T> static float nearest(long double x, bool up)
{
    float best = up ? INFINITY : -INFINITY;
    for (unsigned int b = 0; b < 0x10000; b++) {
        float f = (float)number<T>(b);
        if (up ? f >= x && f < best : f <= x && f > best)
            best = f;
    }
    return best;
}

template <class T> static void check_converted(const float *got, long double x)
{
    float down = nearest<T>(x, false), up = nearest<T>(x, true);
    CHECK(got[0] == down);
    CHECK(got[1] == (x < 0 ? up : down));
    CHECK(got[2] == up);
}

static const float floats[] = { 0.0f,      1.0f / 3, -1.0f / 3, 65519.0f, 65520.0f,
                                -70000.0f, 3e-8f,    -3e-8f,    2049.0f,  3.3e38f };
static const long long integers[] = {
    0, 1, -2049, 65505, -70001, (1ll << 40) + 1, -(1ll << 62) - 3, (long long)(~0ull >> 1)
};

template <class T> __global__ void conversions(converted *out, float f, long long i)
{
    convert(out, T(0.0f), f, i);
}

template <class T> static void check_conversions(converted *shared)
{
    for (unsigned int k = 0; k < sizeof(floats) / sizeof(*floats); k++) {
        float f = floats[k];
        long long i = integers[k % (sizeof(integers) / sizeof(*integers))];
        converted host;
        convert(&host, T(0.0f), f, i);
        conversions<T><<<1, 1>>>(shared, f, i);
        OK(cudaDeviceSynchronize());
        const converted *both[] = { &host, shared };
        for (int n = 0; n < 2; n++) {
            check_converted<T>(both[n]->from_float, f);
            check_converted<T>(both[n]->from_int, (int)i);
            check_converted<T>(both[n]->from_uint, (unsigned int)i);
            check_converted<T>(both[n]->from_ll, i);
            check_converted<T>(both[n]->from_ull, (unsigned long long)i);
            check_converted<T>(both[n]->from_short, (short)i);
        }
    }
}

struct pair_results {
    float sums[12];
    bool compared[18];
    unsigned int masks[12];
};

/* The first of two numbers in a pair is a, the second one b. */
template <class T, class V> __host__ __device__ void compute(pair_results *r, T a, T b)
{
    V v(a, b), w(b, a);
    float sums[] = { (float)__hadd_sat(a, b),        (float)__hsub_sat(a, b),
                     (float)__hmul_sat(a, b),        (float)__hfma_sat(a, b, b),
                     (float)__hfma_relu(a, b, b),    (float)__hadd_rn(a, b),
                     __low2float(__hmul2_sat(v, w)), __high2float(__hfma2_relu(v, w, v)),
                     (float)__hmax_nan(a, b),        (float)__hmin_nan(a, b),
                     __low2float(__hcmadd(v, w, v)), __high2float(__lowhigh2highlow(v)) };
    bool compared[] = { __hequ(a, b),   __hneu(a, b),   __hltu(a, b),
                        __hleu(a, b),   __hgtu(a, b),   __hgeu(a, b),
                        __heq(a, b),    __hne(a, b),    __hlt(a, b),
                        __hle(a, b),    __hgt(a, b),    __hge(a, b),
                        __hbequ2(v, v), __hbneu2(v, w), __hbne2(v, w),
                        v == v,         v != w,         __low2float(__hisnan2(v)) == 1 };
    unsigned int masks[] = { __heq2_mask(v, w),  __hne2_mask(v, w),  __hlt2_mask(v, w),
                             __hle2_mask(v, w),  __hgt2_mask(v, w),  __hge2_mask(v, w),
                             __hequ2_mask(v, w), __hneu2_mask(v, w), __hltu2_mask(v, w),
                             __hleu2_mask(v, w), __hgtu2_mask(v, w), __hgeu2_mask(v, w) };
    for (int i = 0; i < 12; i++)
        r->sums[i] = sums[i];
    for (int i = 0; i < 18; i++)
        r->compared[i] = compared[i];
    for (int i = 0; i < 12; i++)
        r->masks[i] = masks[i];
}

template <class T, class V> __global__ void pairs(pair_results *out, T a, T b)
{
    compute<T, V>(out, a, b);
}

static bool same(float a, float b)
{
    return a != a ? b != b : a == b && std::signbit(a) == std::signbit(b);
}

static float bounded(float x)
{
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

/* a and b are small integers, or NaN, so that nothing is rounded. */
static void check_pair(const pair_results *r, float a, float b)
{
    bool nan = a != a || b != b;
    float relu = a * b + b, relu_2 = b * a + b, nans = a + b;
    CHECK(same(r->sums[0], bounded(a + b)) && same(r->sums[1], bounded(a - b)) &&
          same(r->sums[2], bounded(a * b)));
    CHECK(same(r->sums[3], bounded(a * b + b)) && same(r->sums[4], relu <= 0 ? 0 : relu) &&
          same(r->sums[5], a + b));
    CHECK(same(r->sums[6], bounded(a * b)) && same(r->sums[7], relu_2 <= 0 ? 0 : relu_2));
    CHECK(same(r->sums[8], nan ? nans : fmaxf(a, b)) && same(r->sums[9], nan ? nans : fminf(a, b)));
    CHECK(same(r->sums[10], nan ? nans : a) && same(r->sums[11], a));
    const bool wanted[] = { a == b, a < b || a > b, a<b, a <= b, a> b, a >= b };
    const bool turned[] = { a == b, a < b || a > b, b<a, b <= a, b> a, b >= a };
    for (int i = 0; i < 6; i++) {
        CHECK(r->compared[i] == (wanted[i] || nan) && r->compared[6 + i] == wanted[i]);
        CHECK(r->masks[i] == (wanted[i] ? 0xffffu : 0) + (turned[i] ? 0xffff0000u : 0));
        CHECK(r->masks[6 + i] ==
              (wanted[i] || nan ? 0xffffu : 0) + (turned[i] || nan ? 0xffff0000u : 0));
    }
    CHECK(r->compared[12] && r->compared[13] == (a != b || nan) && r->compared[14] == wanted[1]);
    CHECK(r->compared[15] == !nan && r->compared[16] == (a != b || nan) &&
          r->compared[17] == (a != a));
}

template <class T> static void check_pairs(pair_results *shared)
{
    typedef typename raw_of<T>::pair V;
    const T values[] = { T(0.0f), T(1.0f), T(-3.0f), T(2.0f), number<T>(none) };
    for (int i = 0; i < 25; i++) {
        T a = values[i / 5], b = values[i % 5];
        pair_results host;
        compute<T, V>(&host, a, b);
        check_pair(&host, (float)a, (float)b);
        pairs<T, V><<<1, 1>>>(shared, a, b);
        OK(cudaDeviceSynchronize());
        check_pair(shared, (float)a, (float)b);
    }
    T zero = number<T>(0), minus = number<T>(0x8000), one = T(1.0f);
    CHECK(!std::signbit((float)__hmax_nan(minus, zero)) &&
          std::signbit((float)__hmin_nan(zero, minus)));
    CHECK((float)one++ == 1 && (float)++one == 3 && (float)one-- == 3 && (float)--one == 1);
    V v(one, zero);
    CHECK(++v == V(T(2.0f), one) && (v /= V(one, one)) == V(T(2.0f), one));
}

/* What only kernels have: pairs give what two numbers do. */
template <class T, class V> __global__ void functions(int *wrong, T a, T b)
{
    V v(a, b);
    int n = 0;
#define PAIR(name) n += !(h2##name(v) == V(h##name(a), h##name(b)))
    PAIR(sqrt);
    PAIR(rsqrt);
    PAIR(rcp);
    PAIR(exp);
    PAIR(exp2);
    PAIR(exp10);
    PAIR(log);
    PAIR(log2);
    PAIR(log10);
    PAIR(sin);
    PAIR(cos);
    PAIR(tanh);
    PAIR(tanh_approx);
    PAIR(floor);
    PAIR(ceil);
    PAIR(trunc);
    PAIR(rint);
    *wrong = n + !((float)htrunc(T(-1.5f)) == -1 && (float)hsqrt(T(4.0f)) == 2);
}

static void bytes()
{
    const __half2 h = __floats2half2_rn(1.5f, -448.0f);
    const __nv_fp8x2_e4m3 b(h);
    const __half2 back = (__half2)b;
    CHECK(back == h && __nv_fp8x2_e4m3(make_double2(1.5, -448)).__x == b.__x);
    CHECK(__nv_fp8x2_e4m3(__floats2bfloat162_rn(1.5f, -448.0f)).__x == b.__x);
    const __nv_fp8x2_storage_t powers =
        __nv_cvt_float2_to_e8m0x2(make_float2(2, 0.25f), __NV_SATFINITE, cudaRoundZero);
    CHECK(powers == ((127 + 1) | (127 - 2) << 8));
    CHECK(__nv_bfloat162(__nv_cvt_e8m0x2_to_bf162raw(powers)) == __floats2bfloat162_rn(2, 0.25f));
    CHECK(__half2char_rz(__float2half(-300)) == -128 && __half2uchar_rz(__float2half(7.9f)) == 7);
}

enum { ROUNDED = 6, NUMBERS = 0x10000 };

template <class T> __global__ void rounded(float *out)
{
    unsigned int b = blockIdx.x * blockDim.x + threadIdx.x;
    T x = number<T>(b);
    const T y[ROUNDED] = { hexp(x), hexp2(x), hexp10(x), hlog(x), hlog2(x), hlog10(x) };
    for (int f = 0; f < ROUNDED; f++)
        out[b * ROUNDED + f] = (float)y[f];
}

/* The nearest number to each function's value, for all numbers. */
template <class T> static void check_rounded()
{
    float *got;
    OK(cudaMallocManaged(&got, NUMBERS * ROUNDED * sizeof(*got)));
    rounded<T><<<NUMBERS / 256, 256>>>(got);
    OK(cudaDeviceSynchronize());
    int wrong[ROUNDED] = { 0 };
    for (unsigned int b = 0; b < NUMBERS; b++) {
        const double x = (float)number<T>(b);
        const double y[ROUNDED] = { exp(x), exp2(x), exp10(x), log(x), log2(x), log10(x) };
        for (int f = 0; f < ROUNDED; f++) {
            const float is = got[b * ROUNDED + f], wanted = (float)T(y[f]);
            wrong[f] += is != wanted && !(is != is && wanted != wanted);
        }
    }
    for (int f = 0; f < ROUNDED; f++)
        CHECK(wrong[f] == 0);
    OK(cudaFree(got));
}

int main()
{
    void *shared;
    check_rounded<__half>();
    check_rounded<__nv_bfloat16>();
    OK(cudaMallocManaged(&shared, 4096));
    check_conversions<__half>((converted *)shared);
    check_conversions<__nv_bfloat16>((converted *)shared);
    check_pairs<__half>((pair_results *)shared);
    check_pairs<__nv_bfloat16>((pair_results *)shared);
    functions<__half, __half2><<<1, 1>>>((int *)shared, __half(0.75f), __half(3.0f));
    OK(cudaDeviceSynchronize());
    CHECK(*(int *)shared == 0);
    functions<__nv_bfloat16, __nv_bfloat162>
        <<<1, 1>>>((int *)shared, __nv_bfloat16(0.75f), __nv_bfloat16(3.0f));
    OK(cudaDeviceSynchronize());
    CHECK(*(int *)shared == 0);
    bytes();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
