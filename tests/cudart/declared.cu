/*
 * Functions that are declared for the host and defined for the device, too, or the other way
 * around: nvcc takes them for both. Members of a class and functions of their own, with one
 * declaration and with several.
 */
#include <cstdio>

#include "check.h"

struct number {
    int v;
    explicit number(int x);
    ~number();
    int get() const;
    number &operator+=(int a);
    number &operator+=(const number &a);
    operator float() const;
    static int ofNothing();
};

__device__ inline number::number(int x) : v(x)
{
}

__device__ inline number::~number()
{
}

__device__ inline int number::get() const
{
    return v;
}

inline __device__ __host__ number &number::operator+=(int a)
{
    v += a;
    return *this;
}

inline __device__ __host__ number &number::operator+=(const number &a)
{
    v += a.v;
    return *this;
}

__device__ inline number::operator float() const
{
    return (float)v / 2;
}

__host__ __device__ int number::ofNothing()
{
    return 100;
}

struct other {
    int v;
    __device__ explicit other(int x);
    __device__ int get() const;
};

other::other(int x) : v(x)
{
}

int other::get() const
{
    return v;
}

__host__ __device__ int thrice(int);

int thrice(int x)
{
    return 3 * x;
}

int twice(int);

__host__ __device__ int twice(int x)
{
    return 2 * x;
}

__global__ void compute(int *out)
{
    number n(3), m(10);
    n += 4;
    n += m;
    out[0] = twice(n.get());
    out[1] = (int)((float)n * 4);
    out[2] = number::ofNothing() + thrice(other(5).get());
}

int main()
{
    int *out;
    OK(cudaMallocManaged(&out, 3 * sizeof(*out)));
    compute<<<1, 1>>>(out);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 34 && out[1] == 34 && out[2] == 115);
    CHECK(thrice(2) == 6);
    CHECK(twice(number::ofNothing()) == 200);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
