/* Another program faults while this one is idle: its memory, its pinned memory and its module are
 * still there, and work. BYSTANDER_CULPRIT: the program that faults. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define WORDS (16u << 20)

static const char add_to[] = ".version 6.3\n"
                             ".target sm_75\n"
                             ".address_size 64\n"
                             ".visible .entry add_to(.param .u64 out, .param .u32 by)\n"
                             "{\n"
                             "    .reg .b32 %r<4>;\n"
                             "    .reg .b64 %rd<2>;\n"
                             "    ld.param.u64 %rd1, [out];\n"
                             "    ld.param.u32 %r1, [by];\n"
                             "    ld.global.u32 %r2, [%rd1];\n"
                             "    add.s32 %r3, %r2, %r1;\n"
                             "    st.global.u32 [%rd1], %r3;\n"
                             "    ret;\n"
                             "}\n";

static void survives(void)
{
    const char *culprit = getenv("BYSTANDER_CULPRIT");
    if (!culprit || !tap_computes())
        tap_skip("needs a culprit, and a device that computes");
    CUmodule module;
    CUfunction f;
    CUdeviceptr p;
    CUstream s;
    uint32_t by = 5, *pinned, *words = malloc(4 * WORDS);
    void *params[] = { &p, &by };
    TRUE(words != NULL);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
    OK(cuModuleLoadData(&module, add_to));
    OK(cuModuleGetFunction(&f, module, "add_to"));
    OK(cuMemAlloc(&p, 4 * WORDS));
    OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
    OK(cuStreamCreate(&s, 0));
    OK(cuMemcpyHtoD(p, words, 4 * WORDS));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    OK(cuStreamSynchronize(s));
    for (int round = 0; round < 3; round++) {
        TRUE(system(culprit) == 0);
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
        OK(cuMemcpyDtoHAsync(pinned, p, 4096, s));
        OK(cuStreamSynchronize(s));
        EQ(pinned[0], 10 + 5 * (uint32_t)round);
        EQ(pinned[1000], words[1000]);
    }
    uint32_t *back = malloc(4 * WORDS);
    TRUE(back != NULL);
    OK(cuMemcpyDtoH(back, p, 4 * WORDS));
    TRUE(memcmp(back + 1, words + 1, 4 * (WORDS - 1)) == 0);
    OK(cuMemFree(p));
    OK(cuMemFreeHost(pinned));
    free(back);
    free(words);
}

/* Counts in a variable that has its place in another, and adds a constant. */
static const char counts[] = ".version 6.3\n"
                             ".target sm_75\n"
                             ".address_size 64\n"
                             ".visible .global .align 4 .u32 counter = 7;\n"
                             ".visible .global .align 8 .u64 where = generic(counter);\n"
                             ".const .align 4 .u32 constant = 1000;\n"
                             ".visible .entry count(.param .u64 out)\n"
                             "{\n"
                             "    .reg .b32 %r<4>;\n"
                             "    .reg .b64 %rd<3>;\n"
                             "    ld.param.u64 %rd1, [out];\n"
                             "    ld.global.u64 %rd2, [where];\n"
                             "    ld.u32 %r1, [%rd2];\n"
                             "    add.s32 %r1, %r1, 1;\n"
                             "    st.global.u32 [counter], %r1;\n"
                             "    ld.const.u32 %r2, [constant];\n"
                             "    add.s32 %r3, %r1, %r2;\n"
                             "    st.global.u32 [%rd1], %r3;\n"
                             "    ret;\n"
                             "}\n";

static CUmodule load_linked(void)
{
    CUlinkState state;
    CUmodule module;
    void *cubin;
    size_t size;
    OK(cuLinkCreate(0, NULL, NULL, &state));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)counts, sizeof(counts), "counts",
                     0, NULL, NULL));
    OK(cuLinkComplete(state, &cubin, &size));
    OK(cuModuleLoadData(&module, cubin));
    OK(cuLinkDestroy(state));
    return module;
}

/* What kernels and the program have made of variables is there, at the same address: of a text, and
 * of machine code. */
static void keeps_variables(void)
{
    const char *culprit = getenv("BYSTANDER_CULPRIT");
    if (!culprit || !tap_computes())
        tap_skip("needs a culprit, and a device that computes");
    for (unsigned linked = 0; linked < 2; linked++) {
        CUmodule module;
        CUfunction f;
        CUdeviceptr out, counter;
        uint32_t value;
        size_t size;
        void *params[] = { &out };
        if (linked)
            module = load_linked();
        else
            OK(cuModuleLoadData(&module, counts));
        OK(cuModuleGetFunction(&f, module, "count"));
        OK(cuMemAlloc(&out, 4));
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(cuCtxSynchronize());
        TRUE(system(culprit) == 0);
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(cuMemcpyDtoH(&value, out, 4));
        EQ(value, 1009);
        OK(cuModuleGetGlobal(&counter, &size, module, "counter"));
        EQ(size, 4);
        OK(cuMemsetD32(counter, 50, 1));
        OK(cuCtxSynchronize());
        TRUE(system(culprit) == 0);
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(cuMemcpyDtoH(&value, out, 4));
        EQ(value, 1051);
        OK(cuMemcpyDtoH(&value, counter, 4));
        EQ(value, 51);
        OK(cuModuleUnload(module));
        OK(cuMemFree(out));
    }
}

/* Arrays are the executor's, and gone with it: a program that has one hears so, one that had them
 * goes on. The last test: nothing works after it. */
static void loses_arrays(void)
{
    const char *culprit = getenv("BYSTANDER_CULPRIT");
    const CUDA_ARRAY_DESCRIPTOR d = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
    };
    CUarray a;
    CUdeviceptr p;
    float f = 1;
    if (!culprit || !tap_computes())
        tap_skip("needs a culprit, and a device that computes");
    CUresult r = cuArrayCreate(&a, &d);
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        tap_skip("a device without arrays");
    OK(r);
    OK(cuArrayDestroy(a));
    TRUE(system(culprit) == 0);
    OK(cuArrayCreate(&a, &d));
    OK(cuMemcpyHtoA(a, 0, &f, sizeof(f)));
    TRUE(system(culprit) == 0);
    IS(cuMemcpyHtoA(a, 0, &f, sizeof(f)), CUDA_ERROR_LAUNCH_FAILED);
    IS(cuMemAlloc(&p, 4), CUDA_ERROR_LAUNCH_FAILED);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(survives), TEST(keeps_variables),
                                             TEST(loses_arrays) };
    return tap_main(tests, COUNT(tests));
}
