/* Managed variables: the host writes and reads them where the kernel does. */
#include <string.h>

#include "tap.h"

static const char ptx[] = ".version 6.4\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .global .attribute(.managed) .align 4 .u32 counter = 40;\n"
                          ".visible .global .attribute(.managed) .align 8 .b8 table[4096];\n"
                          ".visible .global .align 4 .u32 plain = 5;\n"
                          /* counter += by; table[by] = plain; */
                          ".visible .entry touch(.param .u32 by)\n"
                          "{\n"
                          "    .reg .u32 %r<5>;\n"
                          "    .reg .u64 %rd<5>;\n"
                          "    ld.param.u32 %r1, [by];\n"
                          "    ld.global.u32 %r2, [counter];\n"
                          "    add.u32 %r2, %r2, %r1;\n"
                          "    st.global.u32 [counter], %r2;\n"
                          "    ld.global.u32 %r3, [plain];\n"
                          "    mov.u64 %rd1, table;\n"
                          "    mul.wide.u32 %rd2, %r1, 4;\n"
                          "    add.u64 %rd1, %rd1, %rd2;\n"
                          "    st.global.u32 [%rd1], %r3;\n"
                          "    ret;\n"
                          "}\n";

static volatile uint32_t *words(CUdeviceptr p)
{
    return (volatile uint32_t *)(uintptr_t)p; /* NOLINT: the host's address too */
}

static void touch(CUfunction f, uint32_t by)
{
    void *params[] = { &by };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
}

static void check(CUfunction f, CUdeviceptr counter, CUdeviceptr table)
{
    if (!tap_computes())
        tap_skip("this device computes nothing");
    EQ(words(counter)[0], 40);
    EQ(words(table)[3], 0);
    touch(f, 3);
    EQ(words(counter)[0], 43);
    EQ(words(table)[3], 5);
    words(counter)[0] = 100;
    touch(f, 1000);
    EQ(words(counter)[0], 1100);
    EQ(words(table)[1000], 5);
}

static void library(void)
{
    CUlibrary l;
    CUkernel k;
    CUdeviceptr counter, table, none = 0;
    size_t bytes;
    OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetManaged(&counter, &bytes, l, "counter"));
    EQ(bytes, 4);
    OK(cuLibraryGetManaged(&table, &bytes, l, "table"));
    EQ(bytes, 4096);
    IS(cuLibraryGetManaged(&none, &bytes, l, "plain"), CUDA_ERROR_NOT_FOUND);
    IS(cuLibraryGetManaged(&none, &bytes, l, "nothing"), CUDA_ERROR_NOT_FOUND);
    OK(cuLibraryGetKernel(&k, l, "touch"));
    check((CUfunction)k, counter, table);
    OK(cuLibraryUnload(l));
}

static void module(void)
{
    CUmodule m;
    CUfunction f;
    CUdeviceptr counter, table, plain;
    size_t bytes;
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetGlobal(&counter, &bytes, m, "counter"));
    EQ(bytes, 4);
    OK(cuModuleGetGlobal(&table, &bytes, m, "table"));
    EQ(bytes, 4096);
    OK(cuModuleGetGlobal(&plain, &bytes, m, "plain"));
    OK(cuModuleGetFunction(&f, m, "touch"));
    check(f, counter, table);
    uint32_t seven = 7;
    OK(cuMemcpyHtoD(plain, &seven, sizeof(seven)));
    touch(f, 9);
    EQ(words(table)[9], 7);
    OK(cuModuleUnload(m));
}

/* Each load has variables of its own. */
static void twice(void)
{
    CUmodule m[2];
    CUfunction f;
    CUdeviceptr counter[2];
    size_t bytes;
    for (int i = 0; i < 2; i++) {
        OK(cuModuleLoadData(&m[i], ptx));
        OK(cuModuleGetGlobal(&counter[i], &bytes, m[i], "counter"));
    }
    TRUE(counter[0] != counter[1]);
    OK(cuModuleGetFunction(&f, m[1], "touch"));
    if (tap_computes()) {
        touch(f, 2);
        EQ(words(counter[0])[0], 40);
        EQ(words(counter[1])[0], 42);
    }
    OK(cuModuleUnload(m[0]));
    OK(cuModuleUnload(m[1]));
}

/* It is managed memory, but not memory that cuMemFree would take. */
static void pointer(void)
{
    CUmodule m;
    CUdeviceptr p;
    size_t bytes;
    unsigned managed = 0;
    uint32_t word = 0;
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetGlobal(&p, &bytes, m, "table"));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p + 8));
    EQ(managed, 1);
    OK(cuMemsetD32(p, 77, 16));
    EQ(words(p)[15], 77);
    words(p)[2] = 78;
    OK(cuMemcpyDtoH(&word, p + 8, sizeof(word)));
    EQ(word, 78);
    IS(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleUnload(m));
    TRUE(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p) != CUDA_SUCCESS);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(library), TEST(module), TEST(twice),
                                             TEST(pointer) };
    return tap_main(tests, COUNT(tests));
}
