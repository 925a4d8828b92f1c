/*
 * What nvcc reads only because the preprocessor's output is a text of its own for it: spaces in the
 * brackets of launches, directives in macros. Built-in variables as values of uint3 and dim3,
 * and declared again.
 */
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "check.h"

#define UNROLL                #pragma unroll
#define REGISTER(name)        "%" #name
#define REGISTER_BEHIND(name) #name
#define LAUNCH(grid, block)   << <grid, block >> >

__device__ __managed__ int base = 7;

/* cuRAND's headers declare these two once more. */
extern const dim3 blockDim;
extern const uint3 threadIdx;
extern const int threadIdx_of_another_name;

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

struct sizes {
    unsigned int n;
    __host__ __device__ sizes(dim3 d) : n(d.x + 10 * d.y)
    {
    }
};

struct place {
    unsigned int n;
    __device__ place(uint3 i) : n(i.x + 10 * i.y)
    {
    }
};

__device__ sizes blocks()
{
    return gridDim;
}

__device__ unsigned int sum(int n, sizes s, place p, sizes t)
{
    return n + s.n + 100 * p.n + 1000 * t.n;
}

template <class T> __device__ unsigned int next(T v)
{
    v.x++;
    return v.x;
}

/* Two blocks of 3 * 1 threads. */
__global__ void values(unsigned int *out, bool many)
{
    dim3 d = many ? gridDim : blockDim;
    auto half = blockDim, more = gridDim;
    half.x /= 2;
    more.y++;
    sizes block = blockDim, list[] = { gridDim, sizes(blockDim), gridDim, blockDim };
    unsigned int all[] = { blocks().n,    d.x,     half.x + 10 * more.y,
                           next(gridDim), block.n, list[2].n + 100 * list[1].n };
    if (blockIdx.x == 1 && threadIdx.x == 2)
        for (int i = 0; i < 6; i++)
            out[i] = all[i];
    if (blockIdx.x == 1 && threadIdx.x == 2)
        out[6] = sum(1, gridDim, threadIdx, blockDim) + sum(2, blockDim, blockIdx, gridDim);
}

/* Names of the program's own that are the same stay what they are. */
static unsigned int own(dim3 gridDim, dim3 &blockDim)
{
    dim3 &same = gridDim, *where = &blockDim;
    same.x++;
    where->y += 4;
    return gridDim.x + sizes(blockDim).n;
}

static dim3 &pass(dim3 &gridDim)
{
    return gridDim;
}

static void builtin_values(unsigned int *out)
{
    dim3 gridDim(2), blockDim(3);
    values<<<gridDim, blockDim>>>(out, false);
    OK(cudaDeviceSynchronize());
    const unsigned int wanted[] = {
        12, 3, 21, 3, 13, 12 + 1300, 1 + 12 + 200 + 13000 + 2 + 13 + 100 + 12000
    };
    for (int i = 0; i < 7; i++)
        CHECK(out[i] == wanted[i]);
    values<<<gridDim, blockDim>>>(out, true);
    OK(cudaDeviceSynchronize());
    CHECK(out[1] == 2);
    CHECK(own(gridDim, blockDim) == 3 + 53 && blockDim.y == 5 && gridDim.x == 2);
    CHECK(&pass(gridDim) == &gridDim);
}

int main()
{
    int *out;
    std::vector<std::vector<int>> shifts { { 64 >> 3 >> 1 } };
    OK(cudaMallocManaged(&out, 32 * sizeof(*out)));
    fill<<<1, 32>>>(out, 2);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 19 && out[31] == 50);
    fill_typed<int><<<dim3(1, (1 + 1) / 2), shifts[0][0] * 8, 0, 0>>>(out, 10);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 20 && out[31] == 20);
    fill_typed LAUNCH(1, sizeof(box<int>) << 3)(out, 3L ? 3 : 4);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 3 && out[31] == 3);
    lanes<<<1, 32>>>(out);
    OK(cudaDeviceSynchronize());
    CHECK(out[0] == 0 && out[31] == 31);
    builtin_values((unsigned int *)out);
    char text[] = "k<< <1, 1>> >(x)", quote = '"';
    CHECK(sizeof(text) == 17 && quote == 34 && 1'000 == 1000 && __LINE__ == 166);
    std::cout << box<int> { 5 } << "\n";
    if (failures > 1000)
        printf("%s\n", std::string("an object for the ellipsis"));
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
