/* Modules, libraries, functions and their attributes, globals. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void load_and_find(void)
{
    CUmodule m;
    CUfunction f = NULL, g = NULL;
    unsigned count = 0;
    OK(cuModuleLoadData(&m, tap_ptx));
    OK(cuModuleGetFunction(&f, m, "store_index"));
    OK(cuModuleGetFunction(&g, m, "store_index"));
    TRUE(f == g && f != NULL);
    IS(cuModuleGetFunction(&f, m, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
    IS(cuModuleGetFunction(NULL, m, "store_index"), CUDA_ERROR_INVALID_VALUE);
    IS(cuModuleGetFunction(&f, m, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleGetFunctionCount(&count, m));
    EQ(count, 11);
    CUfunction all[11];
    OK(cuModuleEnumerateFunctions(all, 11, m));
    OK(cuModuleUnload(m));
    if (!tap_genuine()) {
        IS(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
        IS(cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    }
}

static void from_file(void)
{
    char path[] = "/tmp/gmux-api-XXXXXX";
    CUmodule m;
    int fd = mkstemp(path);
    TRUE(fd >= 0 && write(fd, tap_ptx, strlen(tap_ptx)) == (ssize_t)strlen(tap_ptx));
    close(fd);
    CUresult r = cuModuleLoad(&m, path);
    unlink(path);
    OK(r);
    OK(cuModuleUnload(m));
    IS(cuModuleLoad(&m, "/nonexistent/kernel.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

static void bad_images(void)
{
    static const char broken[] = ".version 6.4\n.target sm_60\n.address_size 64\n"
                                 ".visible .entry k() { frobnicate.u32 %r1, %r2; }\n";
    CUmodule m;
    char errors[1024] = "", infos[64] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { errors, (void *)(uintptr_t)sizeof(errors), infos,
                       (void *)(uintptr_t)sizeof(infos) };
    IS(cuModuleLoadData(&m, "this is no image"), CUDA_ERROR_INVALID_IMAGE);
    IS(cuModuleLoadData(&m, ""), CUDA_ERROR_INVALID_IMAGE);
    IS(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuModuleLoadData(NULL, tap_ptx), CUDA_ERROR_INVALID_VALUE);
    if (!tap_computes())
        tap_skip("the null device compiles nothing");
    IS(cuModuleLoadDataEx(&m, broken, COUNT(options), options, values), CUDA_ERROR_INVALID_PTX);
    TRUE(strstr(errors, "frobnicate") != NULL || tap_gpu());
    TRUE(strlen(errors) > 0);
}

/* A kernel that the device cannot run fails when it is launched, and hurts nobody else. */
static void lacking(void)
{
    static const char text[] =
        ".version 8.5\n.target sm_90a\n.address_size 64\n"
        ".visible .entry lacks() { wgmma.fence.sync.aligned; ret; }\n"
        ".visible .entry works(.param .u64 out) { .reg .b64 %d; ld.param.u64 %d, [out];\n"
        " st.global.u32 [%d], 42; ret; }\n";
    CUmodule m;
    CUfunction lacks, works;
    CUdeviceptr p;
    uint32_t word = 0;
    int threads = 0;
    if (!tap_computes() || tap_gpu())
        tap_skip("a device that is the software device");
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&lacks, m, "lacks"));
    OK(cuModuleGetFunction(&works, m, "works"));
    OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, lacks));
    OK(cuMemAlloc(&p, 4));
    void *params[] = { &p };
    IS(cuLaunchKernel(lacks, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuCtxSynchronize());
    OK(cuLaunchKernel(works, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 42);
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

static void jit_options(void)
{
    CUmodule m;
    char errors[256] = "x", infos[256] = "x";
    CUjit_option options[] = { CU_JIT_MAX_REGISTERS,
                               CU_JIT_INFO_LOG_BUFFER,
                               CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_ERROR_LOG_BUFFER,
                               CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_OPTIMIZATION_LEVEL };
    void *values[] = { (void *)(uintptr_t)32,
                       infos,
                       (void *)(uintptr_t)sizeof(infos),
                       errors,
                       (void *)(uintptr_t)sizeof(errors),
                       (void *)(uintptr_t)4 };
    OK(cuModuleLoadDataEx(&m, tap_ptx, COUNT(options), options, values));
    EQ(strlen(errors), 0);
    TRUE((uintptr_t)values[2] < sizeof(infos));
    OK(cuModuleUnload(m));
    IS(cuModuleLoadDataEx(&m, tap_ptx, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    values[0] = NULL;
    IS(cuModuleLoadDataEx(&m, tap_ptx, 1, options, values), CUDA_ERROR_INVALID_VALUE);
}

static void globals(void)
{
    CUmodule m;
    CUdeviceptr p = 0, base = 0;
    size_t size = 0;
    uint32_t word = 0, words[4] = { 0 };
    OK(cuModuleLoadData(&m, tap_ptx));
    OK(cuModuleGetGlobal(&p, &size, m, "counter"));
    EQ(size, 4);
    if (tap_computes()) {
        OK(cuMemcpyDtoH(&word, p, 4));
        EQ(word, 42);
    }
    word = 17;
    OK(cuMemcpyHtoD(p, &word, 4));
    word = 0;
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 17);
    OK(cuModuleGetGlobal(&p, &size, m, "table"));
    EQ(size, 16);
    if (tap_computes()) {
        OK(cuMemcpyDtoH(words, p, 16));
        EQ(words[3], 40);
    }
    OK(cuModuleGetGlobal(&p, NULL, m, "buffer"));
    OK(cuMemGetAddressRange(&base, &size, p + 5));
    OK(cuModuleGetGlobal(NULL, &size, m, "buffer"));
    EQ(size, 256);
    IS(cuModuleGetGlobal(&p, &size, m, "nowhere"), CUDA_ERROR_NOT_FOUND);
    IS(cuModuleGetGlobal(&p, &size, m, ""), CUDA_ERROR_INVALID_VALUE);
    if (!tap_genuine()) /* which really frees it */
        IS(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleUnload(m));
}

/* Nothing defines the variable, and still it has a place: the program fills it by its name. So does
 * PoCL with what OpenCL's kernels get in constant memory. */
static void constants_without_definition(void)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".extern .const .align 4 .b8 arguments[64];\n"
        ".visible .entry third(.param .u64 p)\n{\n .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
        " ld.param.u64 %rd1, [p]; ld.const.u32 %r1, [arguments+8]; st.global.u32 [%rd1], %r1;\n"
        " ret;\n}\n";
    const uint32_t words[16] = { 5, 6, 7 };
    uint32_t third = 0;
    CUmodule m;
    CUfunction f;
    CUdeviceptr arguments, p;
    size_t size = 0;
    if (!tap_computes())
        tap_skip("a device that computes nothing");
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetGlobal(&arguments, &size, m, "arguments"));
    EQ(size, sizeof(words));
    OK(cuMemcpyHtoD(arguments, words, sizeof(words)));
    OK(cuModuleGetFunction(&f, m, "third"));
    OK(cuMemAlloc(&p, sizeof(third)));
    void *params[] = { &p };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&third, p, sizeof(third)));
    EQ(third, 7);
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

/* A program that writes a little beyond an allocation does not change a module's constants. */
static void globals_lie_apart(void)
{
    enum { APART = 64 << 10 };
    CUmodule m;
    CUdeviceptr below, above, p = 0;
    size_t size = 0;
    OK(cuMemAlloc(&below, 4096));
    OK(cuModuleLoadData(&m, tap_ptx));
    OK(cuModuleGetGlobal(&p, &size, m, "table"));
    OK(cuMemAlloc(&above, 4096));
    TRUE(p < below ? below - p > APART : p - below > APART);
    TRUE(p < above ? above - p > APART : p - above > APART);
    OK(cuMemFree(below));
    OK(cuMemFree(above));
    OK(cuModuleUnload(m));
}

static void attributes(void)
{
    CUfunction f = tap_function("uses_shared");
    int v = -1;
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    if (tap_computes())
        EQ(v, 4096);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    TRUE(v >= 64 && v <= 1024);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 20000));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    EQ(v, 20000);
    IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30),
       CUDA_ERROR_INVALID_VALUE);
    IS(cuFuncGetAttribute(&v, (CUfunction_attribute)77, f), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_SHARED));
    IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
}

static void parameters(void)
{
    CUfunction f = tap_function("mixed");
    static const size_t want[][2] = { { 0, 1 },  { 8, 8 },   { 16, 2 },
                                      { 20, 4 }, { 24, 12 }, { 40, 8 } };
    const char *name = NULL;
    CUmodule m = NULL;
    size_t offset, size;
    for (size_t i = 0; i < COUNT(want); i++) {
        OK(cuFuncGetParamInfo(f, i, &offset, &size));
        EQ(offset, want[i][0]);
        EQ(size, want[i][1]);
    }
    IS(cuFuncGetParamInfo(f, COUNT(want), &offset, &size), CUDA_ERROR_INVALID_VALUE);
    IS(cuFuncGetParamInfo(NULL, 0, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncGetName(&name, f));
    EQ(strcmp(name, "mixed"), 0);
    OK(cuFuncGetModule(&m, f));
    TRUE(m == tap_module());
}

static void library(void)
{
    CUlibrary l;
    CUkernel k;
    CUfunction f;
    CUmodule m;
    CUdeviceptr p;
    size_t size;
    unsigned n = 0;
    OK(cuLibraryLoadData(&l, tap_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "nothing"));
    IS(cuLibraryGetKernel(&k, l, "nowhere"), CUDA_ERROR_NOT_FOUND);
    OK(cuLibraryGetKernel(&k, l, "nothing"));
    OK(cuLibraryGetKernelCount(&n, l));
    EQ(n, 11);
    OK(cuKernelGetFunction(&f, k));
    OK(cuLibraryGetModule(&m, l));
    OK(cuLibraryGetGlobal(&p, &size, l, "counter"));
    EQ(size, 4);
    OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuLibraryUnload(l));
}

/* One kernel in fat binaries, which nvcc made from tests/unit/fatbin/data/plain.cu; PTX of 7.5 in
 * all but one. */
extern const char image_none[], image_speed[], image_balance[], image_size[];
extern const char image_machine[];     /* code for 9.0 and no PTX */
extern const char image_machine_75[];  /* the same for 7.5 */
extern const char image_relocatable[]; /* PTX to be linked */

struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *list;
};

/* out[i] = i + 1 */
static void run_plain(CUfunction f)
{
    CUdeviceptr out;
    uint32_t got[64] = { 0 }, n = 64;
    void *params[] = { &out, &n };
    OK(cuMemAlloc(&out, sizeof(got)));
    OK(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(got, out, sizeof(got)));
    OK(cuMemFree(out));
    for (uint32_t i = 0; i < n && tap_computes(); i++)
        EQ(got[i], i + 1);
}

static void fat_binaries(void)
{
    const char *const images[] = { image_none, image_speed, image_balance, image_size };
    CUmodule m;
    CUlibrary l;
    CUfunction f;
    CUkernel k;
    for (size_t i = 0; i < COUNT(images); i++) {
        const struct wrapper wrapper = { 0x466243b1, 1, images[i], NULL };
        OK(cuModuleLoadData(&m, images[i]));
        OK(cuModuleGetFunction(&f, m, "plain"));
        run_plain(f);
        OK(cuModuleUnload(m));
        IS(cuModuleLoadFatBinary(&m, &wrapper), CUDA_ERROR_INVALID_IMAGE);
        OK(cuModuleLoadFatBinary(&m, images[i]));
        OK(cuModuleGetFunction(&f, m, "plain"));
        OK(cuModuleUnload(m));
        OK(cuLibraryLoadData(&l, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
        OK(cuLibraryGetKernel(&k, l, "plain"));
        run_plain((CUfunction)k);
        OK(cuLibraryUnload(l));
    }
}

/* What a program built with -rdc=true registers. */
static void relocatable(void)
{
    static const struct {
        uint32_t magic;
        uint16_t version, header_size;
        uint64_t size;
    } linked = { 0xba55ed50, 1, 16, 0 };
    const void *list[] = { image_relocatable, NULL };
    const struct wrapper wrapper = { 0x466243b1, 2, &linked, list };
    CUlibrary l;
    CUkernel k;
    OK(cuLibraryLoadData(&l, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "plain"));
    run_plain((CUfunction)k);
    OK(cuLibraryUnload(l));
}

/* At least one of the two images is for another GPU. */
static void for_another_gpu(void)
{
    CUmodule m;
    int major = 0;
    char errors[1024] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { errors, (void *)(uintptr_t)sizeof(errors) };
    OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    for (int image = 7; image <= 9; image += 2) {
        if (major == image)
            continue;
        errors[0] = '\0';
        values[1] = (void *)(uintptr_t)sizeof(errors);
        IS(cuModuleLoadDataEx(&m, image == 9 ? image_machine : image_machine_75, COUNT(options),
                              options, values),
           CUDA_ERROR_NO_BINARY_FOR_GPU);
        if (!tap_gpu()) /* takes PTX only */
            TRUE(strstr(errors, "PTX") != NULL);
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(load_and_find),     TEST(from_file),
        TEST(bad_images),        TEST(jit_options),
        TEST(lacking),           TEST(globals),
        TEST(globals_lie_apart), TEST(attributes),
        TEST(parameters),        TEST(library),
        TEST(fat_binaries),      TEST(relocatable),
        TEST(for_another_gpu),   TEST(constants_without_definition),
    };
    return tap_main(tests, COUNT(tests));
}
