/*
 * What runs before main(): static variables whose initial values need the device, as a kernel's
 * results, and addresses of __managed__ variables in initial values and in constants of functions.
 */
#include <cstdio>

#include "check.h"

__device__ int total = 1;

__global__ void add(int n)
{
    total += n;
}

struct result {
    int value = -1;
    result()
    {
        add<<<1, 1>>>(5);
        OK(cudaMemcpyFromSymbol(&value, total, sizeof(value)));
    }
};
static result early;

__managed__ int a = 1, b = 2;
__managed__ int many[4] = { 1, 2, 3, 4 };

#pragma pack(push, 1)
struct row {
    char name;
    int *first, *last;
    long size;
};
#pragma pack(pop)

int *variable = &a;
inline int *shared = &b;
extern const row table[2];
const row table[2] = { { 'p', &a, &b, 1 }, { 'q', many, many + 3, 4 } };
static int *const constant = &b;
static int *const *const chain[] = { &constant, nullptr };
template <class T> struct holder {
    static T *place;
};
template <class T> T *holder<T>::place = many + 1;

/* Read from the variables above before main(). */
static int sum = *variable + *table[1].last + *holder<int>::place;

__global__ void change()
{
    a += 10;
    b += 20;
    many[2] += 30;
}

static row make(long size)
{
    const row made[] = { { 'a', &a, &a, 0 }, { 'b', &b, many + 2, 7 } };
    row r = made[1];
    r.size += size;
    return r;
}

static int *pick(int i)
{
    static int *const places[] = { &a, &b, many };
    return places[i];
}

int main(int argc, char **)
{
    CHECK(early.value == 6);
    CHECK(sum == 1 + 4 + 2);
    change<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    CHECK(*variable == 11 && variable == &a && *shared == 22);
    CHECK(*table[0].first == 11 && *table[0].last == 22 && table[0].size == 1);
    CHECK(table[1].first == many && *table[1].last == 4 && table[1].name == 'q');
    CHECK(**chain[0] == 22 && !chain[argc > 0]);
    row r = make(argc);
    CHECK(*r.first == 22 && *r.last == 33 && r.size == 7 + argc);
    CHECK(*pick(argc - 1) == 11 && *pick(argc) == 22 && pick(argc + 1) == many);
    int *list[] = { &a, &b, many, many + 2 }, got = 0;
    for (int *p : list)
        got += *p;
    for (int *p : { &a, &b })
        got += *p;
    CHECK(got == 11 + 22 + 1 + 33 + 11 + 22);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
