/*
 * Launches that come faster than a device takes them, on one stream and several, among other
 * operations: each happens once, in order, with its own function, shape and parameters. Kernels
 * fold their number, their shape and a constant of their own into a word, so that everything that
 * goes wrong with one shows in the end.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define FACTOR  6364136223846793005ull
#define STREAMS 4

/* What is folded in: value + constant + 3 * blocks + 5 * threads + 7 * dynamic shared memory. */
#define FOLD                                                                                       \
    "    .reg .pred %p;\n"                                                                         \
    "    .reg .b32 %r<12>;\n"                                                                      \
    "    .reg .b64 %rd<12>;\n"
#define REST                                                                                       \
    "    cvta.to.global.u64 %rd1, %rd1;\n"                                                         \
    "    mov.u32 %r1, %ctaid.x;\n"                                                                 \
    "    mov.u32 %r2, %tid.x;\n"                                                                   \
    "    or.b32 %r1, %r1, %r2;\n"                                                                  \
    "    setp.ne.u32 %p, %r1, 0;\n"                                                                \
    "    @%p bra end;\n"                                                                           \
    "    mov.u32 %r3, %nctaid.x;\n"                                                                \
    "    mul.lo.u32 %r3, %r3, 3;\n"                                                                \
    "    mov.u32 %r4, %ntid.x;\n"                                                                  \
    "    mul.lo.u32 %r4, %r4, 5;\n"                                                                \
    "    mov.u32 %r5, %dynamic_smem_size;\n"                                                       \
    "    mul.lo.u32 %r5, %r5, 7;\n"                                                                \
    "    add.u32 %r3, %r3, %r4;\n"                                                                 \
    "    add.u32 %r3, %r3, %r5;\n"                                                                 \
    "    cvt.u64.u32 %rd3, %r3;\n"                                                                 \
    "    add.u64 %rd2, %rd2, %rd3;\n"                                                              \
    "    ld.global.u64 %rd4, [%rd1];\n"                                                            \
    "    mul.lo.u64 %rd4, %rd4, 6364136223846793005;\n"                                            \
    "    add.u64 %rd4, %rd4, %rd2;\n"                                                              \
    "    st.global.u64 [%rd1], %rd4;\n"                                                            \
    "end:\n"                                                                                       \
    "    ret;\n"                                                                                   \
    "}\n"

static const char ptx[] =
    ".version 6.4\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".visible .entry fold_0(.param .u64 p, .param .u64 v)\n{\n" FOLD "    ld.param.u64 %rd1, [p];\n"
    "    ld.param.u64 %rd2, [v];\n" REST
    ".visible .entry fold_1(.param .u32 v, .param .u64 p)\n{\n" FOLD "    ld.param.u64 %rd1, [p];\n"
    "    ld.param.u32 %r6, [v];\n"
    "    cvt.u64.u32 %rd2, %r6;\n"
    "    add.u64 %rd2, %rd2, 1000;\n" REST
    ".visible .entry fold_2(.param .align 8 .b8 many[1040])\n{\n" FOLD
    "    ld.param.u64 %rd1, [many+1032];\n"
    "    ld.param.u64 %rd2, [many];\n"
    "    ld.param.u64 %rd5, [many+1024];\n"
    "    add.u64 %rd2, %rd2, %rd5;\n"
    "    add.u64 %rd2, %rd2, 2000;\n" REST
    ".visible .entry fold_3(.param .align 8 .b8 few[272])\n{\n" FOLD
    "    ld.param.u64 %rd1, [few+264];\n"
    "    ld.param.u64 %rd2, [few];\n"
    "    ld.param.u64 %rd5, [few+256];\n"
    "    add.u64 %rd2, %rd2, %rd5;\n"
    "    add.u64 %rd2, %rd2, 3000;\n" REST;

/* Blocks come in pairs, and the size of a cluster is folded in, too. */
static const char cluster_ptx[] = ".version 7.8\n"
                                  ".target sm_90\n"
                                  ".address_size 64\n"
                                  ".visible .entry fold_pairs(.param .u64 p, .param .u64 v)\n"
                                  ".explicitcluster\n"
                                  ".reqnctapercluster 2, 1, 1\n"
                                  "{\n" FOLD "    ld.param.u64 %rd1, [p];\n"
                                  "    ld.param.u64 %rd2, [v];\n"
                                  "    mov.u32 %r6, %cluster_nctaid.x;\n"
                                  "    mul.lo.u32 %r6, %r6, 13;\n"
                                  "    cvt.u64.u32 %rd5, %r6;\n"
                                  "    add.u64 %rd2, %rd2, %rd5;\n" REST;

/* A word on the device, and what has been folded into it so far. */
struct folded {
    CUdeviceptr at;
    CUstream stream;
    uint64_t want;
};

static CUmodule module;
static CUfunction folds[4];
static uint32_t dice;

static uint32_t roll(uint32_t sides)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % sides;
}

static void load(void)
{
    static const char *const names[] = { "fold_0", "fold_1", "fold_2", "fold_3" };
    OK(cuModuleLoadData(&module, ptx));
    for (unsigned i = 0; i < COUNT(names); i++)
        OK(cuModuleGetFunction(&folds[i], module, names[i]));
}

static void start(struct folded *f, unsigned count)
{
    dice = 1;
    for (unsigned i = 0; i < count; i++) {
        f[i].want = 0;
        OK(cuMemAlloc(&f[i].at, 8));
        OK(cuMemsetD8(f[i].at, 0, 8));
        OK(cuStreamCreate(&f[i].stream, CU_STREAM_NON_BLOCKING));
    }
    OK(cuCtxSynchronize());
}

static void check(const struct folded *f)
{
    uint64_t got;
    OK(cuStreamSynchronize(f->stream));
    OK(cuMemcpyDtoH(&got, f->at, 8));
    if (tap_computes())
        EQ(got, f->want);
}

static void finish(struct folded *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        check(&f[i]);
        OK(cuStreamDestroy(f[i].stream));
        OK(cuMemFree(f[i].at));
    }
}

static void fold_shaped(struct folded *f, unsigned which, unsigned blocks, unsigned threads,
                        unsigned shared)
{
    uint64_t value = roll(1 << 20), many[130] = { 0 };
    uint32_t small = (uint32_t)value;
    void *plain[] = { &f->at, &value }, *turned[] = { &small, &f->at }, *packed[] = { many };
    void **params = which == 0 ? plain : which == 1 ? turned : packed;
    unsigned last = which == 2 ? 129 : 33;
    many[0] = value;
    many[last - 1] = 11 * value;
    many[last] = f->at;
    uint64_t sum = which < 2 ? value : 12 * value;
    OK(cuLaunchKernel(folds[which], blocks, 1, 1, threads, 1, 1, shared, f->stream, params, NULL));
    f->want = f->want * FACTOR + sum + 1000 * which + 3 * blocks + 5 * threads + 7 * shared;
}

static void fold(struct folded *f)
{
    fold_shaped(f, roll(8) ? roll(2) : roll(4), 1 + roll(3), 1 + roll(40),
                roll(3) ? 0 : 16 * roll(100));
}

static void in_order(void)
{
    struct folded f;
    start(&f, 1);
    for (int i = 0; i < 5000; i++)
        fold(&f);
    finish(&f, 1);
}

static void on_several_streams(void)
{
    struct folded f[STREAMS];
    start(f, STREAMS);
    for (int i = 0; i < 300; i++) {
        struct folded *one = &f[roll(STREAMS)];
        for (unsigned n = roll(40); n > 0; n--)
            fold(one);
    }
    finish(f, STREAMS);
}

static void CUDA_CB count_up(void *arg)
{
    ++*(int *)arg;
}

/* One stream goes on with the other one's word, behind it. */
static void follow(struct folded *a, struct folded *b, CUevent e)
{
    struct folded both = { .at = a->at, .stream = b->stream, .want = a->want };
    OK(cuEventRecord(e, a->stream));
    OK(cuStreamWaitEvent(b->stream, e, 0));
    for (unsigned n = roll(10); n > 0; n--)
        fold(&both);
    OK(cuEventRecord(e, b->stream));
    OK(cuStreamWaitEvent(a->stream, e, 0));
    a->want = both.want;
}

static void among_other_operations(void)
{
    struct folded f[STREAMS];
    CUevent e;
    int calls = 0, want = 0;
    start(f, STREAMS);
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 600; i++) {
        unsigned a = roll(STREAMS), b = roll(STREAMS);
        for (unsigned n = roll(30); n > 0; n--)
            fold(&f[a]);
        switch (roll(12)) {
        case 0:
            OK(cuMemsetD32Async(f[a].at, 0, 2, f[a].stream));
            f[a].want = 0;
            break;
        case 1:
            if (a != b) {
                follow(&f[a], &f[b], e);
                OK(cuEventRecord(e, f[a].stream));
                OK(cuStreamWaitEvent(f[b].stream, e, 0));
                OK(cuMemcpyDtoDAsync(f[b].at, f[a].at, 8, f[b].stream));
                OK(cuEventRecord(e, f[b].stream)); /* or `a` would be ahead of the copy */
                OK(cuStreamWaitEvent(f[a].stream, e, 0));
                f[b].want = f[a].want;
            }
            break;
        case 2:
            OK(cuLaunchHostFunc(f[0].stream, count_up, &calls));
            want++;
            break;
        case 3:
            check(&f[a]);
            break;
        default:
            break;
        }
    }
    finish(f, STREAMS);
    EQ(calls, want);
    OK(cuEventDestroy(e));
}

static void modules_come_and_go(void)
{
    struct folded f;
    start(&f, 1);
    for (int i = 0; i < 20; i++) {
        for (int n = 0; n < 200; n++)
            fold(&f);
        OK(cuStreamSynchronize(f.stream));
        OK(cuModuleUnload(module));
        load();
    }
    finish(&f, 1);
}

/* Modules are unloaded and loaded while kernels of another one are launched. */
static void other_modules_come_and_go(void)
{
    struct folded f;
    CUmodule other;
    start(&f, 1);
    for (int i = 0; i < 20; i++) {
        for (int n = 0; n < 100; n++)
            fold(&f);
        OK(cuModuleLoadData(&other, tap_ptx));
        for (int n = 0; n < 100; n++)
            fold(&f);
        OK(cuModuleUnload(other));
    }
    finish(&f, 1);
}

static void much_shared_memory(void)
{
    struct folded f;
    int most;
    OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    if (most < 60000)
        tap_skip("no block has more than 48 KiB of shared memory");
    OK(cuFuncSetAttribute(folds[0], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    start(&f, 1);
    for (int i = 0; i < 1000; i++)
        fold_shaped(&f, roll(2), 1 + roll(3), 1 + roll(32), 0);
    for (int i = 0; i < 200; i++)
        fold_shaped(&f, 0, 1, 1, i % 3 ? 60000 : 16);
    finish(&f, 1);
}

static void a_refused_one_harms_no_other(void)
{
    struct folded f;
    start(&f, 1);
    for (int i = 0; i < 1000; i++) {
        fold(&f);
        if (i % 100 == 50)
            IS(cuLaunchKernel(folds[0], 1, 1, 1, 2048, 1, 1, 0, f.stream,
                              (void *[]) { &f.at, &f.want }, NULL),
               CUDA_ERROR_INVALID_VALUE);
    }
    finish(&f, 1);
}

static void clusters(void)
{
    struct folded f;
    CUmodule pairs;
    CUfunction function;
    int known = 0;
    OK(cuDeviceGetAttribute(&known, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    if (!known)
        tap_skip("this device has no clusters");
    OK(cuModuleLoadData(&pairs, cluster_ptx));
    OK(cuModuleGetFunction(&function, pairs, "fold_pairs"));
    start(&f, 1);
    for (int i = 0; i < 2000; i++) {
        uint64_t value = roll(1 << 20);
        unsigned blocks = 2 * (1 + roll(4)), threads = 1 + roll(64);
        if (roll(i < 1000 ? 2 : 8)) {
            fold(&f);
            continue;
        }
        OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, f.stream,
                          (void *[]) { &f.at, &value }, NULL));
        f.want = f.want * FACTOR + value + 13 * 2 + 3 * blocks + 5 * threads;
    }
    finish(&f, 1);
    OK(cuModuleUnload(pairs));
}

/* A stream ends with work that is still to be done. */
static void streams_end_early(void)
{
    for (int i = 0; i < 20; i++) {
        struct folded f;
        start(&f, 1);
        for (unsigned n = 1 + roll(300); n > 0; n--)
            fold(&f);
        OK(cuStreamDestroy(f.stream));
        OK(cuCtxSynchronize());
        OK(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
        finish(&f, 1);
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(load),
        TEST(in_order),
        TEST(on_several_streams),
        TEST(among_other_operations),
        TEST(modules_come_and_go),
        TEST(other_modules_come_and_go),
        TEST(much_shared_memory),
        TEST(a_refused_one_harms_no_other),
        TEST(clusters),
        TEST(streams_end_early),
    };
    return tap_main(tests, COUNT(tests));
}
