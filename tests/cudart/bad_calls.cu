/*
 * Calls every function of the runtime API with arguments drawn from lists of good and bad ones
 * (calls.h, written by bad_calls.py): bad_calls FIRST ROUNDS SEED DESCRIPTOR. Before a call its
 * number is written to the descriptor, so that who started this knows which one crashed or hung.
 * BAD_CALLS_SHOW=NUMBER prints that call's arguments.
 */
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <type_traits>
#include <unistd.h>
#include <vector>

__global__ void kernel(int *p, int n)
{
    if (p)
        *p = n;
}
__device__ int variable[16];

static std::mt19937 rng;
static unsigned draw(unsigned n)
{
    return rng() % n;
}

enum { ROOM = 1 << 16 };
static char text[ROOM], room[ROOM]; /* host memory that is read, that is written */
static std::vector<uintptr_t> handles = { 0, 1, 2, 3, 0xdead0000beefull, ~(uintptr_t)0 };
static std::vector<void *> pointers = { nullptr, variable };
static bool shown;
static bool dead;    /* a handle among the arguments is none, or destroyed */
static bool nothing; /* the call may have nothing to do, and then not look at its handles */
static size_t living;

static uintptr_t draw_handle()
{
    size_t n = draw(handles.size());
    dead = dead || n >= living || (n >= 3 && n < 6);
    return handles[n];
}
static void *draw_pointer(bool wild)
{
    void *p = wild && !draw(10) ? (void *)1 : pointers[draw(pointers.size())];
    nothing = nothing || !p;
    return p;
}
static const void *draw_symbol()
{
    return draw(3) ? draw_pointer(true) : draw(2) ? (const void *)kernel : (const void *)variable;
}
static unsigned long long draw_size()
{
    static const unsigned long long sizes[] = { 0,          1,          4,     16,
                                                64,         100,        4096,  ROOM,
                                                1ull << 33, 1ull << 63, ~0ull, ~0ull - 4095 };
    unsigned long long size = sizes[draw(sizeof(sizes) / sizeof(*sizes))];
    nothing = nothing || !size;
    return size;
}
static int draw_int()
{
    static const int ints[] = {
        0, 0, 1, 1, 2, 3, 4, 5, 6, 8, 16, 32, 100, -1, -2, 0x7fffffff, (int)0x80000000
    };
    return ints[draw(sizeof(ints) / sizeof(*ints))];
}
static dim3 draw_dim()
{
    static const unsigned n[] = { 0, 1, 1, 1, 2, 32, 1024, 1025, 65536, ~0u };
    return dim3(n[draw(10)], n[draw(10)], n[draw(10)]);
}
static void called(void *)
{
}
static void called_stream(cudaStream_t, cudaError_t, void *)
{
}
static cudaHostFn_t draw_function()
{
    return draw(3) ? called : nullptr;
}
static cudaStreamCallback_t draw_callback()
{
    return draw(3) ? called_stream : nullptr;
}
static const char *draw_text()
{
    static const char *const texts[] = { nullptr,           "",    "cuInit", "0000:01:00.0",
                                         "/nowhere/at/all", "%s%n" };
    return texts[draw(6)];
}
static void **draw_arguments()
{
    static int *p, n = 5;
    static void *good[] = { &p, &n, nullptr };
    return draw(4) ? good : nullptr;
}
static void *draw_out()
{
    return draw(4) ? room + 64 * draw(100) : nullptr;
}
/* A structure: zeroes, bytes of 0xff, or words from the lists. */
template <typename T> static void fill(T *t)
{
    bool before = dead;
    memset((void *)t, draw(2) ? 0 : 0xff, sizeof(T));
    if (draw(3))
        for (size_t i = 0; i + 8 <= sizeof(T); i += 8) {
            uint64_t w = draw(3) == 0 ? draw_handle()
                         : draw(2)    ? draw_size()
                                      : (uint64_t)(uintptr_t)draw_pointer(false);
            memcpy((char *)t + i, &w, 8);
        }
    if constexpr (std::is_same_v<T, cudaLaunchConfig_t>) { /* a list of the program's own must be there */
        static cudaLaunchAttribute list[16];
        memset(list, draw(2) ? 0 : 0xff, sizeof(list));
        t->attrs = list;
        t->numAttrs = draw(17);
    }
    dead = before;
}
template <typename T> static T draw_struct()
{
    T t;
    fill(&t);
    nothing = true;
    return t;
}
template <typename T> static const T *draw_in()
{
    static T t[16];
    for (T &one : t)
        fill(&one);
    return draw(4) ? t : nullptr;
}

static void show(const char *name, const void *p)
{
    if (shown)
        fprintf(stderr, " %s=%p", name, p);
}
template <typename T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, int> = 0>
static void show(const char *name, T v)
{
    if (shown)
        fprintf(stderr, " %s=%lld", name, (long long)v);
}
template <typename R, typename... A> static void show(const char *, R (*)(A...))
{
}
static void show(const char *name, dim3 d)
{
    if (shown)
        fprintf(stderr, " %s=%ux%ux%u", name, d.x, d.y, d.z);
}
template <typename T, std::enable_if_t<std::is_class_v<T>, int> = 0>
static void show(const char *, const T &)
{
}

#include "calls.h"

/* Living, freed and destroyed things for the lists. */
static void gather()
{
    for (int i = 0; i < 2; i++) {
        void *p, *host, *managed;
        cudaStream_t s;
        cudaEvent_t e;
        cudaGraph_t g;
        cudaGraphNode_t n;
        cudaGraphExec_t x;
        cudaArray_t a;
        cudaMemPool_t pool;
        cudaChannelFormatDesc d = cudaCreateChannelDesc<float>();
        cudaMemPoolProps props = {};
        props.allocType = cudaMemAllocationTypePinned;
        props.location.type = cudaMemLocationTypeDevice;
        cudaMalloc(&p, ROOM), cudaMallocHost(&host, ROOM), cudaMallocManaged(&managed, ROOM);
        cudaStreamCreate(&s), cudaEventCreate(&e), cudaGraphCreate(&g, 0),
            cudaGraphAddEmptyNode(&n, g, nullptr, 0);
        cudaGraphInstantiate(&x, g, 0), cudaMallocArray(&a, &d, 16, 16),
            cudaMemPoolCreate(&pool, &props);
        for (void *q : { p, host, managed, (void *)((char *)p + ROOM), (void *)((char *)p + 1) })
            pointers.push_back(q);
        for (void *h :
             { (void *)s, (void *)e, (void *)g, (void *)n, (void *)x, (void *)a, (void *)pool })
            handles.push_back((uintptr_t)h);
        living = i ? living : handles.size();
        if (i)
            cudaFree(p), cudaFreeHost(host), cudaFree(managed), cudaStreamDestroy(s),
                cudaEventDestroy(e), cudaGraphExecDestroy(x), cudaGraphDestroy(g), cudaFreeArray(a),
                cudaMemPoolDestroy(pool);
    }
    pointers.push_back(text), pointers.push_back(room);
}

/* What was captured, bound or limited by a call is taken back. */
static void settle()
{
    cudaGraph_t g;
    for (uintptr_t h : handles)
        if (h > 3)
            cudaStreamEndCapture((cudaStream_t)h, &g);
    cudaDeviceSynchronize();
    cudaGetLastError();
}

int main(int argc, char **argv)
{
    unsigned word[4] = { 0, 4, 1, 2 }, count = sizeof(calls) / sizeof(*calls), failures = 0;
    for (int i = 1; i < argc && i <= 4; i++)
        word[i - 1] = (unsigned)strtoul(argv[i], nullptr, 10);
    const char *wanted = getenv("BAD_CALLS_SHOW");
    gather();
    for (unsigned i = word[0]; i < count * word[1]; i++) {
        rng.seed(word[2] * 1000003 + i);
        if (word[3] != 2 && write((int)word[3], &i, sizeof(i)) != sizeof(i))
            return 2;
        shown = wanted && strtoul(wanted, nullptr, 10) == i;
        if (shown)
            fprintf(stderr, "%s", calls[i % count].name);
        if (calls[i % count].call()) {
            printf("%s succeeds (%u)\n", calls[i % count].name, i);
            failures++;
        }
        if (i % 16 == 15)
            settle();
    }
    int *p = nullptr, n = 0;
    settle();
    if (cudaMalloc(&p, sizeof(n)) == cudaSuccess)
        kernel<<<1, 1>>>(p, 77);
    if (cudaMemcpy(&n, p, sizeof(n), cudaMemcpyDeviceToHost) != cudaSuccess || n != 77) {
        printf("no kernel runs after all that: %s\n", cudaGetErrorString(cudaGetLastError()));
        failures++;
    }
    return failures != 0;
}
