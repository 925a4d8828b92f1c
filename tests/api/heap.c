/*
 * malloc of kernels. What NVIDIA's driver answers of it is in tests/expected (device_heap); that
 * host calls refuse its memory, when its size may be set and how long it lasts is the CUDA C++
 * Programming Guide's, "Dynamic Global Memory Allocation".
 */
#include "tap.h"

#include <string.h>

#define BLOCKS  48
#define THREADS 96

/* take: each thread's memory of `bytes`, the first 200 filled with its number, and where that is.
 * give: another kernel's threads, in the reverse order, look at it and free it; each says how many
 * bytes were right. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 size);\n"
    ".extern .func free(.param .b64 p);\n"
    ".visible .entry take(.param .u64 at, .param .u32 bytes)\n{\n"
    " .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<4>;\n"
    " ld.param.u64 %d1, [at]; ld.param.u32 %r4, [bytes]; cvt.u64.u32 %d5, %r4; min.u32 %r4, %r4, "
    "200;\n"
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, "
    "%r3;\n"
    " { .param .b64 s; .param .b64 r; st.param.b64 [s], %d5; call (r), malloc, (s); ld.param.b64 "
    "%d2, [r]; }\n"
    " mad.wide.u32 %d1, %r1, 8, %d1; st.global.u64 [%d1], %d2; setp.eq.u64 %p1, %d2, 0; @%p1 ret;\n"
    " mov.u32 %r5, 0;\n"
    "next: cvt.u64.u32 %d3, %r5; add.u64 %d3, %d2, %d3; st.u8 [%d3], %r1;\n"
    " add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r4; @%p2 bra next; ret;\n}\n"
    ".visible .entry give(.param .u64 at, .param .u32 bytes, .param .u64 right)\n{\n"
    " .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .pred %p<4>;\n"
    " ld.param.u64 %d1, [at]; ld.param.u32 %r4, [bytes]; ld.param.u64 %d4, [right];\n"
    " min.u32 %r4, %r4, 200;\n"
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r9, %nctaid.x;\n"
    " sub.u32 %r9, %r9, %r1; sub.u32 %r9, %r9, 1; mad.lo.u32 %r1, %r9, %r2, %r3;\n"
    " mad.wide.u32 %d1, %r1, 8, %d1; mad.wide.u32 %d4, %r1, 4, %d4; ld.global.u64 %d2, [%d1];\n"
    " mov.u32 %r5, 0; mov.u32 %r6, 0; and.b32 %r7, %r1, 255; setp.eq.u64 %p1, %d2, 0; @%p1 bra "
    "out;\n"
    "next: cvt.u64.u32 %d3, %r5; add.u64 %d3, %d2, %d3; ld.u8 %r8, [%d3]; setp.eq.u32 %p3, %r8, "
    "%r7;\n"
    " @%p3 add.u32 %r6, %r6, 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r4; @%p2 bra next;\n"
    " { .param .b64 p; st.param.b64 [p], %d2; call free, (p); }\n"
    "out: st.global.u32 [%d4], %r6; ret;\n}\n";

struct heap {
    CUmodule module;
    CUfunction take, give;
    CUdeviceptr at, right;
};

static struct heap load(void)
{
    struct heap h;
    OK(cuModuleLoadData(&h.module, ptx));
    OK(cuModuleGetFunction(&h.take, h.module, "take"));
    OK(cuModuleGetFunction(&h.give, h.module, "give"));
    OK(cuMemAlloc(&h.at, BLOCKS * THREADS * 8));
    OK(cuMemAlloc(&h.right, BLOCKS * THREADS * 4));
    return h;
}

static void unload(struct heap *h)
{
    OK(cuMemFree(h->at));
    OK(cuMemFree(h->right));
    OK(cuModuleUnload(h->module));
}

static void take(struct heap *h, unsigned blocks, unsigned threads, uint32_t bytes)
{
    void *params[] = { &h->at, &bytes };
    OK(cuLaunchKernel(h->take, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
}

/* How many of the blocks' threads had all their bytes. */
static unsigned give(struct heap *h, unsigned blocks, unsigned threads, uint32_t bytes)
{
    static uint32_t right[BLOCKS * THREADS];
    void *params[] = { &h->at, &bytes, &h->right };
    unsigned good = 0;
    OK(cuLaunchKernel(h->give, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(right, h->right, sizeof(right)));
    for (unsigned i = 0; i < blocks * threads; i++)
        good += right[i] == (bytes < 200 ? bytes : 200);
    return good;
}

static uint64_t first_pointer(struct heap *h)
{
    uint64_t p;
    OK(cuMemcpyDtoH(&p, h->at, sizeof(p)));
    return p;
}

static void need_kernels(void)
{
    if (!tap_computes())
        tap_skip("a device that computes nothing");
}

/* Warps of many blocks beside each other, in sizes of all kinds: nobody gets what another one has.
 * After the first ones compiled code takes over. */
static void many_at_once(void)
{
    static const uint32_t sizes[] = { 1, 8, 24, 100, 128, 333, 640, 15, 400, 7, 96, 512 };
    need_kernels();
    struct heap h = load();
    for (unsigned round = 0; round < 36; round++) {
        uint32_t bytes = sizes[round % COUNT(sizes)];
        take(&h, BLOCKS, THREADS, bytes);
        EQ(give(&h, BLOCKS, THREADS, bytes), BLOCKS * THREADS);
    }
    unload(&h);
}

/* More than there is: some get none, and what they have is theirs; given back, it is there again.
 */
static void used_up(void)
{
    need_kernels();
    struct heap h = load();
    const uint32_t bytes = 100000; /* there are at least 8 MiB, and 256 under gmux on a GPU */
    take(&h, BLOCKS, THREADS, bytes);
    unsigned first = give(&h, BLOCKS, THREADS, bytes);
    TRUE(first > 50 && first < BLOCKS * THREADS);
    take(&h, BLOCKS, THREADS, bytes);
    EQ(give(&h, BLOCKS, THREADS, bytes), first);
    unload(&h);
}

/* It is no memory of the host's calls. (NVIDIA's driver lets cuMemsetD8 do it.) */
static void refused_to_the_host(void)
{
    need_kernels();
    char byte = 0;
    struct heap h = load();
    take(&h, 1, 1, 64);
    CUdeviceptr p = first_pointer(&h);
    TRUE(p != 0);
    TRUE(cuMemcpyDtoH(&byte, p, 1) != CUDA_SUCCESS);
    TRUE(cuMemcpyHtoD(p, &byte, 1) != CUDA_SUCCESS);
    TRUE(cuMemcpyDtoD(p, h.at, 1) != CUDA_SUCCESS);
    TRUE(tap_gpu() || cuMemsetD8(p, 0, 1) != CUDA_SUCCESS);
    TRUE(cuMemFree(p) != CUDA_SUCCESS);
    EQ(give(&h, 1, 1, 64), 1);
    unload(&h);
}

/* Two modules have one heap, which lasts as long as the context. */
static void of_the_context(void)
{
    need_kernels();
    struct heap h = load(), other = load();
    take(&h, 2, 32, 48);
    OK(cuMemcpyDtoD(other.at, h.at, 2 * 32 * 8));
    unload(&h);
    EQ(give(&other, 2, 32, 48), 64);
    unload(&other);
}

/* The size may change until a kernel has called malloc. */
static void size(void)
{
    need_kernels();
    CUcontext c;
    size_t value;
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20));
    struct heap h = load();
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4 << 20));
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 128 << 20));
    take(&h, BLOCKS, THREADS, 20000);
    EQ(give(&h, BLOCKS, THREADS, 20000), BLOCKS * THREADS);
    if (!tap_gpu()) /* under gmux all programs have one */
        IS(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    TRUE(tap_gpu() || value == 128 << 20);
    OK(cuCtxDestroy(c));
}

/* But for what a context has for itself. */
static bool near(size_t a, size_t b)
{
    return (a > b ? a - b : b - a) < 1 << 20;
}

/* The heap is the client's memory like any other, and goes with its context. */
static void charged(void)
{
    need_kernels();
    if (tap_gpu() || !tap_alone())
        tap_skip("where others' allocations show");
    CUcontext c;
    size_t before, within, after, total;
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20));
    OK(cuMemGetInfo(&within, &total));
    TRUE(near(before, within));
    struct heap h = load();
    OK(cuMemGetInfo(&within, &total));
    TRUE(before - within >= 64 << 20 && before - within < 72 << 20);
    unload(&h);
    OK(cuCtxDestroy(c));
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuMemGetInfo(&after, &total));
    TRUE(near(after, before));
    OK(cuCtxDestroy(c));
}

/* No room for it: the module is not loaded. */
static void no_room(void)
{
    need_kernels();
    if (tap_gpu() || !tap_alone())
        tap_skip("takes the device's whole memory");
    CUcontext c;
    CUmodule m;
    size_t free_bytes, total;
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuMemGetInfo(&free_bytes, &total));
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20));
    CUdeviceptr all;
    OK(cuMemAlloc(&all, free_bytes - (4 << 20)));
    IS(cuModuleLoadData(&m, ptx), CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
    OK(cuMemFree(all));
    struct heap h = load();
    take(&h, 1, 32, 48);
    EQ(give(&h, 1, 32, 48), 32);
    OK(cuCtxDestroy(c));
}

/* A library's kernels take from the primary context's. */
static void of_a_library(void)
{
    need_kernels();
    CUlibrary l;
    CUkernel kernel;
    struct heap h = load();
    OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, l, "take"));
    uint32_t bytes = 80;
    void *params[] = { &h.at, &bytes };
    OK(cuLaunchKernel((CUfunction)kernel, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    EQ(give(&h, 2, 32, 80), 64);
    OK(cuLibraryUnload(l));
    unload(&h);
}

int main(void)
{
    const struct tap_test tests[] = {
        TEST(many_at_once),   TEST(used_up),      TEST(refused_to_the_host),
        TEST(of_the_context), TEST(size),         TEST(charged),
        TEST(no_room),        TEST(of_a_library),
    };
    return tap_main(tests, COUNT(tests));
}
