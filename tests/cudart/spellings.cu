/*
 * What nvcc reads only because the preprocessor's output is a text of its own for it: spaces in the
 * brackets of launches, directives in macros.
 */
#include <cstdio>
#include <iostream>
#include <vector>

#include "check.h"

#define UNROLL #pragma unroll
#define REGISTER(name) "%" #name
#define REGISTER_BEHIND(name) #name
#define LAUNCH(grid, block) << <grid, block >> >

__device__ __managed__ int base = 7;

template <class T> struct box {
    T v;
};

template <class T> std::ostream &operator<<(std::ostream &o, const box<T> &b)
{
    return o << b.v;
}

/* An operator with explicit arguments has the same characters as a launch. */
struct names {
    friend std::ostream &operator<< <int>(std::ostream &, const box<int> &);
};

__global__ void fill(int *out, int n)
{
    int sum = base;
    UNROLL
    for (int i = 0; i < 4; i++)
        sum += i * n;
    out[threadIdx.x] = (int)threadIdx.x + sum;
}

/* One % before a letter is that of a register. */
__global__ void lanes(int *out)
{
    int lane, low, again, more;
    asm volatile("mov.u32 %0, %laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, " REGISTER(laneid) ";" : "=r"(again));
    asm volatile("mov.u32 %0, %" REGISTER_BEHIND(laneid) ";" : "=r"(more));
    asm("{ .reg .u16 %low;\n\t"
        "  .reg .u16 %%high;\n\t"
        "  mov.b32 {%low, %%high}, %1;\n\t"
        "  cvt.u32.u16 %0, %low; }"
        : "=r"(low)
        : "r"(lane + 0x50000));
    out[threadIdx.x] = low + (again != lane) + (more != lane);
}

template <class T> __global__ void fill_typed(T *out, T v)
{
    out[threadIdx.x] = v >> 1 > 4 ? v << 1 : v;
}

int main()
{
    int *out;
    std::vector<std::vector<int> > shifts { { 64 >> 3 >> 1 } };
    OK(cudaMallocManaged(&out, 32 * sizeof(*out)));
    fill<< <1, 32>> >(out, 2);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 19 && out[31] == 50);
    fill_typed<int> << < dim3(1, (1 + 1) / 2), shifts[0][0] * 8, 0, 0 >>> (out, 10);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 20 && out[31] == 20);
    fill_typed LAUNCH(1, sizeof(box<int>) << 3)(out, 3L ? 3 : 4);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 3 && out[31] == 3);
    lanes<<<1, 32>>>(out);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 0 && out[31] == 31);
    char text[] = "k<< <1, 1>> >(x)", quote = '"';
    CHECK(sizeof(text) == 17 && quote == 34 && 1'000 == 1000 && __LINE__ == 80);
    std::cout << box<int> { 5 } << "\n";
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
