/*
 * __managed__ variables: one object for host and kernels, with its initial value, before the first
 * call of CUDA's and after a reset; read and written through names, pointers, members and references.
 */
#include <cstdio>
#include <cstring>
#include <thread>

#include "check.h"

struct point {
    int x;
    double y[3];
};

__device__ __managed__ int counter = 41;
__managed__ int table[4][3] = { { 1, 2, 3 }, { 4 } };
static __managed__ struct point here = { 7, { 1.5 } };
__managed__ int *pointer;
__managed__ __align__(64) char text[100];
namespace inner
{
__managed__ unsigned long long total;
}
struct holder {
    static __managed__ int member;
};
__managed__ int holder::member = 9;
__device__ int plain = 5;

__global__ void change()
{
    counter++;
    for (int i = 0; i < 4; i++)
        table[i][2] += i * 10;
    here.y[2] = here.x * here.y[0];
    inner::total += sizeof(table) + plain;
    holder::member *= 2;
    if (pointer)
        *pointer = counter;
    for (int i = 0; i < 99; i++)
        text[i] = 'a' + i % 26;
}

static int sum(const int (&row)[3])
{
    return row[0] + row[1] + row[2];
}

int main(int argc, char **)
{
    /* before any call of CUDA's, and from another thread */
    std::thread([] { CHECK(counter == 41 && table[1][0] == 4); }).join();
    int &alias = counter;
    alias = 100;
    int *chosen = argc > 100 ? &table[3][1] : &holder::member;
    CHECK(*chosen == 9 && (size_t)text % 64 == 0);
    pointer = &table[3][1];
    change<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    CHECK(counter == 101 && table[3][1] == 101 && sum(table[0]) == 6 && table[3][2] == 30);
    CHECK(here.y[2] == 10.5 && inner::total == sizeof(table) + 5 && *chosen == 18);
    CHECK(strlen(text) == 99 && text[27] == 'b');
    cudaPointerAttributes a;
    OK(cudaPointerGetAttributes(&a, &counter));
    CHECK(a.type == cudaMemoryTypeManaged && a.devicePointer == &counter);
    int copy = 0, value = 77;
    OK(cudaMemcpyFromSymbol(&copy, counter, sizeof(copy)));
    CHECK(copy == 101);
    OK(cudaMemcpyToSymbol(counter, &value, sizeof(value)));
    OK(cudaDeviceSynchronize());
    CHECK(counter == 77);
    void *p = nullptr;
    size_t size = 0;
    OK(cudaGetSymbolAddress(&p, table));
    OK(cudaGetSymbolSize(&size, table));
    CHECK(p == table && size == sizeof(table));
    /* a reset gives the image back; the next use loads it again */
    OK(cudaDeviceReset());
    CHECK(counter == 41 && inner::total == 0 && holder::member == 9);
    pointer = nullptr;
    change<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    CHECK(counter == 42 && holder::member == 18);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
