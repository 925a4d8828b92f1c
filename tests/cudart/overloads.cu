/*
 * C++'s overloads of mathematics, called without and with std::, of float and double, by the same
 * lines on the host and in a kernel: each is there, and comes to the same within a few units of the
 * last place.
 */
#include <common_functions.h>
#include <cuda_surface_types.h>
#include <cuda_texture_types.h>
#include <device_double_functions.h>
#include <host_config.h>
#include <sm_20_atomic_functions.h>
#include <sm_32_intrinsics.h>
#include <sm_35_intrinsics.h>
#include <sm_60_atomic_functions.h>
#include <sm_61_intrinsics.h>
#include <surface_functions.h>
#include <surface_indirect_functions.h>
#include <surface_types.h>
#include <texture_indirect_functions.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#ifndef __CUDA_ARCH__
/* cuRAND's headers declare these once more, for the host's code alone. */
extern const dim3 blockDim;
extern const uint3 threadIdx;
#endif

#define NUMBERS 96

template <class T> __host__ __device__ int results(T x, T y, double *o)
{
    int n = 0, e = 0, q = 0;
    T whole;
#define PUT(expression) o[n++] = (double)(expression)
    PUT(acosh(1 + x));
    PUT(asinh(x));
    PUT(atanh(x / 100));
    PUT(cbrt(x));
    PUT(erf(x));
    PUT(erfc(x));
    PUT(exp2(x));
    PUT(expm1(x));
    PUT(lgamma(x));
    PUT(log1p(x));
    PUT(log2(x));
    PUT(logb(x));
    PUT(nearbyint(x));
    PUT(rint(y));
    PUT(round(x));
    PUT(tgamma(x));
    PUT(trunc(x));
    PUT(ilogb(x));
    PUT(lrint(y));
    PUT(lround(x));
    PUT(llrint(x));
    PUT(llround(y));
    PUT(copysign(x, -y));
    PUT(fdim(x, y));
    PUT(fmax(x, y));
    PUT(fmin(x, y));
    PUT(hypot(x, y));
    PUT(nextafter(x, y));
    PUT(remainder(x, y));
    PUT(scalbn(x, 3));
    PUT(scalbln(x, 3l));
    PUT(fma(x, y, x));
    PUT(remquo(x, y, &q) + (T)(q & 7));
    PUT(frexp(x, &e) + (T)e);
    PUT(modf(x, &whole) + whole);
    PUT(std::fmax(x, std::round(y)));
    PUT(std::log2(std::exp2(x)) + std::erf(y));
    PUT(sin(x) + cos(y) + tan(x) + atan2(x, y) + pow(x, y) + exp(y) + log(x));
    PUT(sqrt(x) + fabs(-x) + floor(x) + ceil(y) + fmod(x, y) + abs(y - 10));
    PUT(isnan(x) + 2 * isinf(y) + 4 * isfinite(x) + 8 * signbit(-x) + 16 * isnormal(y));
    PUT(isnan(nan("")) + isnan(nanf("")));
    PUT(j0((double)x) + j1((double)y));
    PUT(y0((double)x) + y1((double)y));
    PUT(jn(2, (double)x * 10) + yn(3, (double)y * 10));
    PUT(jn(7, -(double)x) + yn(-1, (double)x) + jn(20, (double)y));
    if (sizeof(T) == sizeof(float))
        PUT(j0f((float)x) + j1f((float)x) + y0f((float)y) + y1f((float)y) + jnf(2, 3) + ynf(2, 4));
    return n;
}

__global__ void compute(float f, double d, double *of, double *od)
{
    results<float>(f, f * 0.75f, of);
    results<double>(d, d * 0.75, od);
}

static int compare(const char *type, const double *host, const double *device, int n, double unit)
{
    int failures = 0;
    for (int i = 0; i < n; i++)
        if (!(std::fabs(host[i] - device[i]) <= unit * (1 + std::fabs(host[i])))) {
            printf("%s %d: %.17g on the host, %.17g in the kernel\n", type, i, host[i], device[i]);
            failures++;
        }
    return failures;
}

int main()
{
    int failures = 0;
    double *device, host[NUMBERS];
    if (cudaMallocManaged(&device, 2 * NUMBERS * sizeof(double)))
        return 1;
    for (double x : { 0.5, 1.25, 3.7, 7.5, 12.0 }) {
        memset(device, 0, 2 * NUMBERS * sizeof(double));
        compute<<<1, 1>>>((float)x, x, device, device + NUMBERS);
        cudaError_t r = cudaDeviceSynchronize();
        if (r) {
            printf("%s\n", cudaGetErrorString(r));
            failures++;
        }
        int n = results<float>((float)x, (float)x * 0.75f, host);
        failures += compare("float", host, device, n, 2e-6);
        n = results<double>(x, x * 0.75, host);
        failures += compare("double", host, device + NUMBERS, n, 1e-14);
    }
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
