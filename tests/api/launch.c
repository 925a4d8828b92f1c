/* Launches: what they compute, both ways to pass parameters, what is refused at the call. */
#include "heavy.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static void results(void)
{
    enum { N = 10000 };
    static uint32_t out[N];
    CUdeviceptr p;
    unsigned n = N;
    OK(cuMemAlloc(&p, sizeof(out)));
    OK(cuMemsetD8(p, 0xff, sizeof(out)));
    void *params[] = { &p, &n };
    OK(cuLaunchKernel(tap_function("store_index"), (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL,
                      params, NULL));
    OK(cuMemcpyDtoH(out, p, sizeof(out)));
    if (tap_computes())
        for (uint32_t i = 0; i < N; i++)
            EQ(out[i], i);
    OK(cuMemFree(p));
}

/* As CUDA 3 had it. */
static void set_call_by_call(void)
{
    static uint32_t out[64];
    CUdeviceptr p;
    CUstream s;
    CUfunction f = tap_function("store_index");
    OK(cuMemAlloc(&p, sizeof(out)));
    OK(cuStreamCreate(&s, 0));
    OK(cuFuncSetBlockShape(f, 16, 1, 1));
    OK(cuFuncSetSharedSize(f, 0));
    OK(cuParamSetSize(f, 12));
    OK(cuParamSetv(f, 0, &p, sizeof(p)));
    OK(cuParamSeti(f, 8, 64));
    for (int way = 0; way < 3; way++) {
        uint32_t count = way == 0 ? 16 : 64;
        OK(cuMemsetD8(p, 0xff, sizeof(out)));
        OK(way == 0   ? cuLaunch(f)
           : way == 1 ? cuLaunchGrid(f, 4, 1)
                      : cuLaunchGridAsync(f, 4, 1, s));
        OK(cuCtxSynchronize());
        OK(cuMemcpyDtoH(out, p, sizeof(out)));
        for (uint32_t i = 0; i < 64 && tap_computes(); i++)
            EQ(out[i], i < count ? i : 0xffffffff);
    }
    /* What is set stays; some of it can be set anew. */
    OK(cuParamSeti(f, 8, 5));
    OK(cuMemsetD8(p, 0xff, sizeof(out)));
    OK(cuLaunch(f));
    OK(cuMemcpyDtoH(out, p, sizeof(out)));
    if (tap_computes())
        EQ(out[5], 0xffffffff);
    IS(cuFuncSetBlockShape(f, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    if (!tap_genuine()) { /* which writes there, and ends with a signal (580.159.04) */
        IS(cuParamSetv(f, 1 << 20, &p, 8), CUDA_ERROR_INVALID_VALUE);
        IS(cuParamSetf(f, -4, 1.0f), CUDA_ERROR_INVALID_VALUE);
    }
    IS(cuLaunchGrid(f, 0, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunch(NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
}

static void mixed_parameters(void)
{
    uint8_t a = 200;
    uint64_t b = 1ull << 40, sum = 0;
    uint16_t c = 60000;
    uint32_t d = 4000000000u, e[3] = { 1, 2, 3 };
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 8));
    OK(cuMemsetD8(p, 0, 8));
    void *params[] = { &a, &b, &c, &d, e, &p };
    OK(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&sum, p, 8));
    if (tap_computes())
        EQ(sum, 200 + (1ull << 40) + 60000 + 4000000000ull + 6);

    /* These parameters, packed by the program. */
    uint8_t packed[48] = { 0 };
    size_t size = sizeof(packed);
    memcpy(packed + 0, &a, 1);
    memcpy(packed + 8, &b, 8);
    memcpy(packed + 16, &c, 2);
    memcpy(packed + 20, &d, 4);
    memcpy(packed + 24, e, 12);
    memcpy(packed + 40, &p, 8);
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    OK(cuMemsetD8(p, 0, 8));
    OK(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    sum = 0;
    OK(cuMemcpyDtoH(&sum, p, 8));
    if (tap_computes())
        EQ(sum, 200 + (1ull << 40) + 60000 + 4000000000ull + 6);
    IS(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
       CUDA_ERROR_INVALID_VALUE);
    size += 4;
    IS(cuLaunchKernel(tap_function("mixed"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    OK(cuMemFree(p));
}

static void refused(void)
{
    CUfunction f = tap_function("nothing"), g = tap_function("store_index");
    IS(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 0, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 32, 32, 2, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel(f, 2, 3, 4, 8, 8, 8, 1024, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}

static void stale_stream(void)
{
    CUstream s;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamDestroy(s));
    IS(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL),
       CUDA_ERROR_INVALID_HANDLE);
    IS(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x77, NULL,
                      NULL),
       CUDA_ERROR_INVALID_HANDLE);
}

static void launch_bounds(void)
{
    CUfunction f = tap_function("bounded");
    int most = 0;
    OK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    if (!tap_computes())
        tap_skip("the null device reads no bounds");
    EQ(most, 64);
    OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    IS(cuLaunchKernel(f, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

/* More of it than contexts have from the beginning. */
static void local_memory(void)
{
    enum { N = 64, WORDS = 5120 };
    uint32_t out[N] = { 0 };
    CUdeviceptr p;
    int bytes = 0;
    CUfunction f = tap_function("deep");
    OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f));
    OK(cuMemAlloc(&p, sizeof(out)));
    void *params[] = { &p };
    OK(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(out, p, sizeof(out)));
    OK(cuMemFree(p));
    if (!tap_computes())
        return;
    TRUE(bytes >= WORDS * 4);
    for (uint32_t i = 0; i < N; i++)
        EQ(out[i], WORDS * i + WORDS * (WORDS - 1) / 2);
}

/* The linker may be told how many to spend. */
static void few_registers(const char *ptx)
{
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *value = (void *)(uintptr_t)40, *image;
    CUlinkState link;
    size_t size;
    CUmodule m;
    CUfunction f;
    int registers = 0, small = 0;
    OK(cuLinkCreate(1, &option, &value, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, strlen(ptx) + 1, "heavy", 0,
                     NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&m, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&f, m, "heavy"));
    OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    OK(cuFuncGetAttribute(&small, CU_FUNC_ATTRIBUTE_NUM_REGS, tap_function("store_index")));
    TRUE(registers <= 40 && registers > small && small > 0 && small <= 16);
    OK(cuModuleUnload(m));
}

/* So many registers that a block of the largest size does not find enough: as many values are read,
 * one after the other, as are then written, the last one first. */
static void registers(void)
{
    char *ptx = heavy_text("", 120);
    int most = 0, registers = 0, all = 0;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    OK(cuModuleLoadData(&m, ptx));
    if (tap_computes())
        few_registers(ptx);
    free(ptx);
    OK(cuModuleGetFunction(&f, m, "heavy"));
    OK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    TRUE(!tap_computes() || registers >= 64);
    OK(cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 0));
    OK(cuMemAlloc(&p, 4));
    void *params[] = { &p };
    OK(cuLaunchKernel(f, 1, 1, 1, (unsigned)most, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    if (most < 1024) {
        TRUE(registers * 1024 > all);
        IS(cuLaunchKernel(f, 1, 1, 1, (unsigned)most + 1, 1, 1, 0, NULL, params, NULL),
           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        IS(cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 0, NULL, params, NULL),
           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    }
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
    if (most >= 1024)
        tap_skip("this device has registers for all blocks");
}

/* --- clusters --------------------------------------------------------------------------------- */

static void need_clusters(void)
{
    int has = 0;
    OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    if (!has)
        tap_skip("this device has no clusters");
}

static CUresult in_clusters(CUfunction f, unsigned grid, unsigned x, unsigned y, unsigned z)
{
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                            .value.clusterDim = { x, y, z } };
    const CUlaunchConfig config = { grid, 1, 1, 32, 1, 1, 0, NULL, &a, 1 };
    return cuLaunchKernelEx(&config, f, NULL, NULL);
}

static void clusters(void)
{
    CUfunction f = tap_function("nothing");
    need_clusters();
    OK(in_clusters(f, 4, 2, 1, 1));
    OK(in_clusters(f, 4, 2, 1, 1));
    OK(in_clusters(f, 16, 8, 1, 1));
    OK(in_clusters(f, 3, 1, 1, 1));
    OK(cuCtxSynchronize());
}

/* A refused shape is refused at the call, and is no more than that. */
static void check_refused_shape(CUresult got, CUresult want)
{
    OK(cuCtxSynchronize());
    OK(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    EQ(got, want);
}

static void clusters_that_do_not_divide_the_grid(void)
{
    need_clusters();
    check_refused_shape(in_clusters(tap_function("nothing"), 3, 2, 1, 1),
                        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void clusters_that_are_higher_than_the_grid(void)
{
    need_clusters();
    check_refused_shape(in_clusters(tap_function("nothing"), 4, 1, 2, 1),
                        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void clusters_that_are_too_large(void)
{
    need_clusters();
    check_refused_shape(in_clusters(tap_function("nothing"), 32, 32, 1, 1),
                        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void clusters_that_need_permission(void)
{
    need_clusters();
    check_refused_shape(in_clusters(tap_function("nothing"), 16, 16, 1, 1),
                        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void clusters_without_height(void)
{
    need_clusters();
    check_refused_shape(in_clusters(tap_function("nothing"), 4, 2, 0, 1),
                        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static CUfunction compiled_for_pairs(CUmodule *m)
{
    static const char ptx[] =
        ".version 7.8\n.target sm_90\n.address_size 64\n"
        ".visible .entry pairs()\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{\nret;\n}\n";
    CUfunction f;
    need_clusters();
    OK(cuModuleLoadData(m, ptx));
    OK(cuModuleGetFunction(&f, *m, "pairs"));
    return f;
}

static void compiled_clusters_in_an_odd_grid(void)
{
    CUmodule m;
    CUfunction f = compiled_for_pairs(&m);
    OK(cuLaunchKernel(f, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    OK(in_clusters(f, 4, 2, 1, 1));
    CUresult r = cuLaunchKernel(f, 3, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    check_refused_shape(r, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuModuleUnload(m));
}

static void compiled_clusters_of_another_size(void)
{
    CUmodule m;
    CUfunction f = compiled_for_pairs(&m);
    check_refused_shape(in_clusters(f, 4, 4, 1, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuModuleUnload(m));
}

/* --- a cooperative launch, programmatic dependence -------------------------------------------- */

static void cooperative(void)
{
    CUfunction f = tap_function("nothing");
    int can = 0, each = 0, multiprocessors = 0;
    OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    if (!can) {
        CUresult r = cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL);
        IS(r, CUDA_ERROR_NOT_SUPPORTED);
        tap_skip("this device has no cooperative launches");
    }
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, 32, 0));
    OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    unsigned most = (unsigned)(each * multiprocessors);
    OK(cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL));
    OK(cuLaunchCooperativeKernel(f, most, 1, 1, 32, 1, 1, 0, NULL, NULL));
    IS(cuLaunchCooperativeKernel(f, most + 1, 1, 1, 32, 1, 1, 0, NULL, NULL),
       CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    IS(cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, NULL),
       CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE); /* natively, too: 580.159.04 */
    IS(cuLaunchCooperativeKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

/* Blocks that meet: each says that it is there, and after the barrier sees all others. The barrier
 * is written as the headers of cooperative groups have it, or called by the name that the device
 * runtime has for it. */
#define MEET_VERSION ".version 7.0\n.target sm_70\n.address_size 64\n"
#define MEET_HEAD                                                                                  \
    ".visible .entry meet(.param .u64 p)\n{\n"                                                     \
    " .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .pred %p<8>;\n"                                    \
    " ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, "        \
    "%tid.x;\n"                                                                                    \
    " mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; mov.u32 %r20, 0;\n"                     \
    "round: add.u32 %r20, %r20, 1;\n"                                                              \
    " setp.eq.u32 %p1, %r3, 0; @%p1 st.global.u32 [%rd2], %r20;\n"
#define MEET_TAIL                                                                                  \
    " mov.u32 %r10, 0; mov.u32 %r11, 0;\n"                                                         \
    "sum: mul.wide.u32 %rd6, %r10, 4; add.u64 %rd6, %rd1, %rd6; ld.volatile.global.u32 %r12, "     \
    "[%rd6];\n"                                                                                    \
    " setp.ge.u32 %p4, %r12, %r20; selp.u32 %r13, 1, 0, %p4; add.u32 %r11, %r11, %r13;\n"          \
    " add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, %r2; @%p5 bra sum;\n"                          \
    " setp.lt.u32 %p6, %r20, 3; setp.eq.u32 %p7, %r11, %r2; and.pred %p6, %p6, %p7; @%p6 bra "     \
    "round;\n"                                                                                     \
    " mul.wide.u32 %rd7, %r2, 4; add.u64 %rd7, %rd2, %rd7; @%p1 st.global.u32 [%rd7], %r11; "      \
    "ret;\n}\n"

static const char meet_inline[] = MEET_VERSION MEET_HEAD
    " mov.u32 %r4, %envreg2; mov.u32 %r5, %envreg1; mov.b64 %rd3, {%r4, %r5};\n"
    " setp.ne.u64 %p2, %rd3, 0; @%p2 bra there; trap;\n"
    "there: barrier.sync 0; @!%p1 bra met;\n"
    " sub.u32 %r6, 0x80000001, %r2; setp.eq.u32 %p3, %r1, 0; selp.u32 %r6, %r6, 1, %p3;\n"
    " atom.add.release.gpu.u32 %r7, [%rd3+4], %r6;\n"
    "wait: ld.acquire.gpu.u32 %r8, [%rd3+4]; xor.b32 %r8, %r8, %r7;\n"
    " setp.ge.s32 %p3, %r8, 0; @%p3 bra wait;\n"
    "met: barrier.sync 0;\n" MEET_TAIL;
static const char meet_by_name[] = MEET_VERSION
    ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 "
    "flags);\n" MEET_HEAD " { .param .b32 s; .param .b64 h; st.param.b32 [s], 1;\n"
    "   call (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd3, [h]; }\n"
    " { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %rd3; st.param.b32 [f], 0;\n"
    "   call (r), cudaCGSynchronize, (h, f); ld.param.b32 %r9, [r]; }\n" MEET_TAIL;

static void meet(const char *text)
{
    static uint32_t seen[1024];
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    int each = 0, multiprocessors = 0;
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&f, m, "meet"));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, 64, 0));
    OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuMemAlloc(&p, sizeof(seen)));
    void *params[] = { &p };
    unsigned most = (unsigned)(each * multiprocessors);
    const unsigned sizes[] = { 1, 2, most < COUNT(seen) / 2 ? most : COUNT(seen) / 2 };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        OK(cuMemsetD8(p, 0, sizeof(seen)));
        OK(cuLaunchCooperativeKernel(f, sizes[i], 1, 1, 64, 1, 1, 0, NULL, params));
        OK(cuMemcpyDtoH(seen, p, sizeof(seen)));
        for (unsigned b = 0; b < sizes[i]; b++) {
            EQ(seen[b], 3);
            EQ(seen[sizes[i] + b], sizes[i]);
        }
    }
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

static void grid_barrier(void)
{
    if (!tap_computes())
        tap_skip("a device that computes nothing");
    meet(meet_inline);
}

/* NVIDIA's driver wants its library linked for that. */
static void grid_barrier_by_name(void)
{
    if (!tap_computes() || tap_gpu() || tap_genuine())
        tap_skip("a device that has the device runtime in a library");
    meet(meet_by_name);
}

/* Each thread, by its number in the grid: the grid's size and who it is. */
static void grid_numbers(void)
{
    static const char text[] = MEET_VERSION
        ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
        ".extern .func (.param .b32 r) cudaCGGetSize(.param .b64 t, .param .b64 g, .param .b64 "
        "handle);\n"
        ".extern .func (.param .b32 r) cudaCGGetRank(.param .b64 t, .param .b64 g, .param .b64 "
        "handle);\n"
        ".visible .entry numbers(.param .u64 p)\n{\n"
        " .reg .b32 %r<32>; .reg .b64 %rd<16>; .local .align 8 .b8 at[16];\n"
        " ld.param.u64 %rd1, [p]; mov.u64 %rd2, at; cvta.local.u64 %rd2, %rd2; add.u64 %rd3, %rd2, "
        "4; st.local.u64 "
        "[at], 0;\n"
        " { .param .b32 s; .param .b64 h; st.param.b32 [s], 1;\n"
        "   call (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd4, [h]; }\n"
        " { .param .b64 t; .param .b64 g; .param .b64 h; .param .b32 r;\n"
        "   st.param.b64 [t], %rd2; st.param.b64 [g], %rd3; st.param.b64 [h], %rd4;\n"
        "   call (r), cudaCGGetSize, (t, g, h); ld.param.b32 %r1, [r]; }\n"
        " ld.local.u32 %r2, [at]; ld.local.u32 %r3, [at+4];\n"
        " { .param .b64 t; .param .b64 g; .param .b64 h; .param .b32 r;\n"
        "   st.param.b64 [t], %rd2; st.param.b64 [g], 0; st.param.b64 [h], %rd4;\n"
        "   call (r), cudaCGGetRank, (t, g, h); ld.param.b32 %r4, [r]; }\n"
        " ld.local.u32 %r5, [at]; or.b32 %r1, %r1, %r4; mad.wide.u32 %rd5, %r5, 16, %rd1;\n"
        " mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %tid.x; mov.u32 %r9, %tid.z;\n"
        " mad.lo.u32 %r6, %r7, 10, %r6; mad.lo.u32 %r8, %r9, 10, %r8; mad.lo.u32 %r6, %r6, 100, "
        "%r8;\n"
        " st.global.v4.u32 [%rd5], {%r1, %r2, %r3, %r6}; ret;\n}\n";
    if (!tap_computes() || tap_gpu() || tap_genuine())
        tap_skip("a device that has the device runtime in a library");
    uint32_t out[3 * 2 * 4 * 3][4];
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&f, m, "numbers"));
    OK(cuMemAlloc(&p, sizeof(out)));
    void *params[] = { &p };
    OK(cuLaunchCooperativeKernel(f, 3, 2, 1, 4, 1, 3, 0, NULL, params));
    OK(cuMemcpyDtoH(out, p, sizeof(out)));
    for (unsigned i = 0; i < COUNT(out); i++) {
        unsigned thread = i % 12, block = i / 12;
        EQ(out[i][0], 0);
        EQ(out[i][1], COUNT(out));
        EQ(out[i][2], 1);
        EQ(out[i][3], 100 * (block % 3 + 10 * (block / 3)) + thread % 4 + 10 * (thread / 4));
    }
    /* Not cooperative: there is no such grid. */
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(out, p, sizeof(out[0])));
    EQ(out[0][0], 1);
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

/* A kernel that may begin before the one ahead of it has ended, and needs nothing of that: nobody
 * sees a difference. */
static void programmatic_dependence(void)
{
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                            .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig config = { 1, 1, 1, 64, 1, 1, 0, NULL, &a, 1 };
    uint32_t n = 64, out[64] = { 0 };
    CUdeviceptr p;
    OK(cuMemAlloc(&p, sizeof(out)));
    OK(cuMemsetD8(p, 0xff, sizeof(out)));
    void *params[] = { &p, &n };
    OK(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 100; i++)
        OK(cuLaunchKernelEx(&config, tap_function("store_index"), params, NULL));
    OK(cuStreamSynchronize(config.hStream));
    OK(cuMemcpyDtoH(out, p, sizeof(out)));
    for (uint32_t i = 0; tap_computes() && i < n; i++)
        EQ(out[i], i);
    OK(cuStreamDestroy(config.hStream));
    OK(cuMemFree(p));
}

static void extended(void)
{
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0 };
    CUlaunchConfig config = { .gridDimX = 1,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = 1,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .attrs = &attribute,
                              .numAttrs = 1 };
    OK(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL));
    config.numAttrs = 0;
    OK(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL));
    config.gridDimX = 0;
    IS(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    config.gridDimX = 1;
    config.numAttrs = 1;
    attribute.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY; /* a stream's */
    attribute.value.syncPolicy = CU_SYNC_POLICY_SPIN;
    IS(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    attribute.value.memSyncDomain = 7;
    IS(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    attribute.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    OK(cuLaunchKernelEx(&config, tap_function("nothing"), NULL, NULL));
    OK(cuCtxSynchronize());
}

/* Many more launches than a ring has room for, in order. */
static void many(void)
{
    CUfunction f = tap_function("add_to");
    CUdeviceptr p;
    uint32_t by = 1, sum = 0;
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 0, 1));
    void *params[] = { &p, &by };
    for (int i = 0; i < 30000; i++)
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&sum, p, 4));
    if (tap_computes())
        EQ(sum, 30000);
    OK(cuMemFree(p));
}

static void globals_in_kernels(void)
{
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    uint32_t got[2] = { 0 };
    if (!tap_computes())
        tap_skip("needs a device that computes");
    OK(cuModuleLoadData(&m, tap_ptx));
    OK(cuModuleGetFunction(&f, m, "read_globals"));
    OK(cuMemAlloc(&p, 8));
    void *params[] = { &p };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(got, p, 8));
    EQ(got[0], 43);
    EQ(got[1], 30);
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

static void pinned_memory_in_kernels(void)
{
    CUdeviceptr d;
    uint32_t *h, n = 100;
    OK(cuMemHostAlloc((void **)&h, 400, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&d, h, 0));
    void *params[] = { &d, &n };
    OK(cuLaunchKernel(tap_function("store_index"), 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    if (tap_computes())
        EQ(h[99], 99);
    OK(cuMemFreeHost(h));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(results),
        TEST(mixed_parameters),
        TEST(refused),
        TEST(stale_stream),
        TEST(launch_bounds),
        TEST(extended),
        TEST(many),
        TEST(globals_in_kernels),
        TEST(pinned_memory_in_kernels),
        TEST(local_memory),
        TEST(set_call_by_call),
        TEST(registers),
        TEST(clusters),
        TEST(clusters_that_do_not_divide_the_grid),
        TEST(clusters_that_are_higher_than_the_grid),
        TEST(clusters_that_are_too_large),
        TEST(clusters_that_need_permission),
        TEST(clusters_without_height),
        TEST(compiled_clusters_in_an_odd_grid),
        TEST(compiled_clusters_of_another_size),
        TEST(cooperative),
        TEST(grid_barrier),
        TEST(grid_barrier_by_name),
        TEST(grid_numbers),
        TEST(programmatic_dependence),
    };
    return tap_main(tests, COUNT(tests));
}
