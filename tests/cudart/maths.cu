/*
 * Mathematics of kernels against the host's library in double: floats within the bounds that the CUDA C++ Programming
 * Guide's appendix on mathematical functions gives (in units of the last place), doubles within 4.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4096 };
#define ALL_BITS (1 - 1e-9) /* the inputs are floats; doubles have more bits */
#define FUNCTIONS(X)                                                                                                   \
    X(sin, -50, 50, 2) X(cos, -50, 50, 2) X(tan, -1.5, 1.5, 4) X(asin, -1, 1, 4) X(acos, -1, 1, 4) X(atan, -9, 9, 2)   \
    X(sinh, -9, 9, 3) X(cosh, -9, 9, 2) X(tanh, -9, 9, 3) X(asinh, -99, 99, 3) X(acosh, 1, 99, 4) X(atanh, -1, 1, 3)   \
    X(exp, -80, 80, 2) X(exp2, -99, 99, 2) X(expm1, -9, 9, 2) X(log, 1e-9, 1e9, 2) X(log2, 1e-9, 1e9, 2)               \
    X(log10, 1e-9, 1e9, 3) X(log1p, -0.9, 99, 2) X(cbrt, -99, 99, 2) X(sqrt, 0, 1e9, 1) X(erf, -4, 4, 2)               \
    X(erfc, -3, 9, 4) X(tgamma, -24, 30, 10) X(floor, -99, 99, 0) X(ceil, -99, 99, 0) X(round, -99, 99, 0)             \
    X(rint, -99, 99, 0) X(trunc, -99, 99, 0) X(fabs, -99, 99, 0) X(logb, 1e-9, 1e9, 0)

#define KERNEL(name, low, high, ulps)                                                                                  \
    __global__ void name##_kernel(const double *in, float *f, double *d)                                               \
    {                                                                                                                  \
        int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                                          \
        f[i] = name##f((float)in[i]);                                                                                  \
        d[i] = name(in[i] * ALL_BITS);                                                                                 \
    }
FUNCTIONS(KERNEL)

static double ulps_f(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e9;
    float near = (float)want;
    if (got == near)
        return 0;
    int e;
    (void)frexp(want, &e);
    return fabs(got - want) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static double ulps_d(double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e9;
    int e;
    (void)frexp(want, &e);
    return got == want ? 0 : fabs(got - want) / ldexp(1, e - 53);
}

__global__ void others(double *out)
{
    int e;
    double whole;
    float s, c;
    out[0] = frexp(-40.0, &e) * 100 + e;
    out[1] = modf(-3.25, &whole) * 100 + whole;
    out[2] = ldexp(3.0, 5);
    out[3] = pow(3.0, -2.0) * 81;
    out[4] = fmod(10.5, -4.0);
    out[5] = hypot(3.0, 4.0);
    out[6] = atan2(1.0, -1.0) * 4;
    out[7] = erfinv(erf(0.75));
    out[8] = normcdfinv(normcdf(-1.5));
    sincosf(0.5f, &s, &c);
    out[9] = s * s + c * c;
    out[10] = __double2int_rd(-2.5) * 10 + __double2int_ru(-2.5);
    out[11] = __float2int_rn(2.5f) * 10 + __float2int_rz(2.9f);
    out[12] = rsqrt(0.25);
    out[13] = fma(1e16, 1e16, -1e32) ;
    out[14] = __umulhi(0x80000000u, 6u) + __clz(1) + __ffs(8) + __brev(0x80000000u);
    out[15] = remainder(10.0, 4.0) + norm3d(2.0, 3.0, 6.0) + lgamma(1.0) + copysign(4.0, -0.0);
    out[16] = __fadd_ru(1.0f, 1e-9f) > 1.0f && __fadd_rd(1.0f, 1e-9f) == 1.0f;
    out[17] = frexp(5e-324, &e) * 1000 - e;
}

int main()
{
    static double in[N], d[N];
    static float f[N];
    double *din, *dd;
    float *df;
    int failures = 0;
    cudaMalloc(&din, sizeof(in));
    cudaMalloc(&dd, sizeof(d));
    cudaMalloc(&df, sizeof(f));
#define RUN(name, low, high, bound)                                                                                    \
    {                                                                                                                  \
        double worst_f = 0, worst_d = 0;                                                                               \
        for (int i = 0; i < N; i++)                                                                                    \
            in[i] = (double)(float)((low) > 0 && (high) / (low) > 1e6 ? exp(log(low) + i * log((high) / (low)) / N)    \
                                                                      : (low) + ((high) - (low)) * i / (N - 1));       \
        cudaMemcpy(din, in, sizeof(in), cudaMemcpyHostToDevice);                                                       \
        name##_kernel<<<N / 256, 256>>>(din, df, dd);                                                                  \
        cudaMemcpy(f, df, sizeof(f), cudaMemcpyDeviceToHost);                                                          \
        cudaMemcpy(d, dd, sizeof(d), cudaMemcpyDeviceToHost);                                                          \
        for (int i = 0; i < N; i++) {                                                                                  \
            worst_f = fmax(worst_f, ulps_f(f[i], name(in[i])));                                                        \
            worst_d = fmax(worst_d, ulps_d(d[i], name(in[i] * ALL_BITS)));                                             \
        }                                                                                                              \
        bool good = worst_f <= (bound) + 0.5 && worst_d <= ((bound) > 4 ? (bound) : (bound) ? 4 : 0);                  \
        printf("%-8s float %.2f, double %.2f%s\n", #name, worst_f, worst_d, good ? "" : "  TOO MUCH");                 \
        failures += !good;                                                                                             \
    }
    FUNCTIONS(RUN)
    double out[18];
    const double want[18] = { -62.5 + 6, -25 - 3, 96, 9, 2.5, 5, 3 * M_PI, 0.75, -1.5, 1, -32, 22, 2, fma(1e16, 1e16, -1e32), 3 + 31 + 4 + 1,
                              2 + 7 + 0 - 4, 1, 500 + 1073 };
    others<<<1, 1>>>(dd);
    cudaMemcpy(out, dd, sizeof(out), cudaMemcpyDeviceToHost);
    for (int i = 0; i < 18; i++)
        if (!(fabs(out[i] - want[i]) <= 1e-6 * fabs(want[i]))) {
            printf("others[%d] is %.17g, not %.17g\n", i, out[i], want[i]);
            failures++;
        }
    failures += cudaGetLastError() != cudaSuccess;
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
