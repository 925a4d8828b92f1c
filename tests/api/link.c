/* Linking: one text becomes an image that can be loaded; errors come with a log; several become one
 * where there is a linker. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void run_and_check(const void *image)
{
    CUmodule m;
    CUfunction f;
    OK(cuModuleLoadData(&m, image));
    OK(cuModuleGetFunction(&f, m, "store_index"));
    OK(cuModuleUnload(m));
}

static char *text(void)
{
    return (char *)(uintptr_t)tap_ptx; /* NOLINT: the interface forgot const */
}

static void one_text(void)
{
    char info[4096] = "?", error[4096] = "?";
    CUjit_option options[] = { CU_JIT_WALL_TIME,
                               CU_JIT_INFO_LOG_BUFFER,
                               CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_ERROR_LOG_BUFFER,
                               CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_LOG_VERBOSE };
    void *values[] = { NULL, info, (void *)sizeof(info), error, (void *)sizeof(error), (void *)1 };
    CUlinkState link;
    void *image = NULL;
    size_t size = 0;
    float ms = -1;
    OK(cuLinkCreate(COUNT(options), options, values, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, text(), strlen(tap_ptx) + 1, "tap.ptx", 0, NULL,
                     NULL));
    OK(cuLinkComplete(link, &image, &size));
    TRUE(image != NULL);
    TRUE(size > 100);
    memcpy(&ms, (void *)&values[0], sizeof(ms));
    TRUE(ms > 0);
    EQ(error[0], 0);
    char *copy = malloc(size); /* as programs do that keep it */
    TRUE(copy != NULL);
    memcpy(copy, image, size);
    run_and_check(image);
    OK(cuLinkDestroy(link));
    run_and_check(copy);
    free(copy);
}

static void from_file(void)
{
    char path[] = "/tmp/gmux-link-XXXXXX";
    CUlinkState link;
    void *image;
    size_t size;
    int fd = mkstemp(path);
    TRUE(fd >= 0);
    TRUE(write(fd, tap_ptx, strlen(tap_ptx)) == (ssize_t)strlen(tap_ptx));
    TRUE(write(fd, "", 1) == 1);
    OK(cuLinkCreate(0, NULL, NULL, &link));
    CUresult r = cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL);
    (void)close(fd);
    (void)unlink(path);
    OK(r);
    OK(cuLinkComplete(link, &image, &size));
    run_and_check(image);
    OK(cuLinkDestroy(link));
    OK(cuLinkCreate(0, NULL, NULL, &link));
    IS(cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
    OK(cuLinkDestroy(link));
}

/* The genuine library finds it when the text is added, gmux when the link is completed: programs
 * look at both. */
static void bad_text(void)
{
    static char bad[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { "
                        "no_such.thing %r1; ret; }\n";
    char error[4096] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { error, (void *)sizeof(error) };
    CUlinkState link;
    void *image;
    size_t size;
    if (!tap_computes())
        tap_skip("a device that does not read the text");
    OK(cuLinkCreate(COUNT(options), options, values, &link));
    CUresult r = cuLinkAddData(link, CU_JIT_INPUT_PTX, bad, sizeof(bad), "bad.ptx", 0, NULL, NULL);
    if (r == CUDA_SUCCESS)
        r = cuLinkComplete(link, &image, &size);
    IS(r, CUDA_ERROR_INVALID_PTX);
    TRUE(strlen(error) > 0);
    OK(cuLinkDestroy(link));
}

static char caller[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                       ".extern .func (.param .b32 r) callee (.param .b32 x);\n"
                       ".visible .entry store(.param .u64 p)\n{\n"
                       " .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
                       " ld.param.u64 %rd1, [p]; mov.u32 %r1, 20;\n"
                       " { .param .b32 a; .param .b32 b; st.param.b32 [a+0], %r1;\n"
                       "   call.uni (b), callee, (a); ld.param.b32 %r2, [b+0]; }\n"
                       " cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], %r2; ret;\n}\n";
static char callee[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .func (.param .b32 r) callee (.param .b32 x)\n{\n"
    " .reg .b32 %r<3>;\n"
    " ld.param.b32 %r1, [x+0]; add.s32 %r2, %r1, 22; st.param.b32 [r+0], %r2; ret;\n}\n";

static void several(void)
{
    CUlinkState link;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    void *image;
    size_t size;
    uint32_t word = 0;
    if (!tap_computes())
        tap_skip("a device that computes nothing");
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, sizeof(caller), "caller", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, callee, sizeof(callee), "callee", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&m, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&f, m, "store"));
    OK(cuMemAlloc(&p, 4));
    void *params[] = { &p };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&word, p, 4));
    EQ(word, 42);
    OK(cuModuleUnload(m));
    OK(cuMemFree(p));
}

/* What the compiler says about a text: only when it compiles it, and that it does once for each
 * text, as long as its cache lasts. So this one has a name that was never there. */
static void verbose(void)
{
    char info[8192] = "", name[64], unique[512];
    CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_LOG_VERBOSE };
    void *values[] = { info, (void *)sizeof(info), (void *)1 };
    CUlinkState link;
    struct timespec now;
    void *image;
    size_t size;
    if (!tap_gpu())
        tap_skip("a device that says nothing of what it compiles");
    clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(name, sizeof(name), "only_once_%d_%lld_%ld", (int)getpid(),
                   (long long)now.tv_sec, now.tv_nsec);
    int n = snprintf(
        unique, sizeof(unique),
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry %s()\n{\nret;\n}\n", name);
    OK(cuLinkCreate(COUNT(options), options, values, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, unique, (size_t)n + 1, "unique", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, callee, sizeof(callee), "callee", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    if (!strstr(info, "ptxas info") || !strstr(info, name))
        tap_fail(__FILE__, __LINE__, "of %s there is said: %s", name, info);
    OK(cuLinkDestroy(link));
}

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* Each text has a static variable and a function of the same names; weak ones are there twice,
 * common ones have the size of the largest, and what is .extern is somewhere else. */
static char one[] =
    HEAD ".global .u32 own = 1;\n"
         ".visible .global .u32 shown = 10;\n"
         ".weak .global .u32 weak = 100;\n"
         ".common .global .align 8 .b8 common[8];\n"
         ".extern .const .align 4 .b8 table[];\n"
         ".extern .shared .align 16 .b8 dynamic[];\n"
         ".func (.reg .u32 r) same() { mov.u32 r, 1000; ret; }\n"
         ".weak .func (.param .b32 r) both() { st.param.b32 [r], 5; ret; }\n"
         ".extern .func (.param .b32 r) other (.param .b32 x);\n"
         ".visible .entry sum(.param .u64 p)\n{\n"
         " .reg .b32 %r<16>; .reg .b64 %rd<4>;\n"
         " ld.param.u64 %rd1, [p];\n"
         " ld.global.u32 %r1, [own]; ld.global.u32 %r2, [shown]; ld.global.u32 %r3, [weak];\n"
         " ld.const.u32 %r4, [table+4];\n"
         " call.uni (%r5), same, ();\n"
         " { .param .b32 b; call.uni (b), both, (); ld.param.b32 %r6, [b]; }\n"
         " { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\n"
         "   call.uni (b), other, (a); ld.param.b32 %r7, [b]; }\n"
         " st.shared.u32 [dynamic+4], %r7; ld.shared.u32 %r7, [dynamic+4];\n"
         " st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.u32 [%rd1+8], %r3;\n"
         " st.global.u32 [%rd1+12], %r4; st.global.u32 [%rd1+16], %r5;\n"
         " st.global.u32 [%rd1+20], %r6; st.global.u32 [%rd1+24], %r7; ret;\n}\n";
static char two[] =
    HEAD ".global .u32 own = 2;\n"
         ".extern .global .u32 shown;\n"
         ".weak .global .u32 weak = 200;\n"
         ".common .global .align 8 .b8 common[64];\n"
         ".visible .const .align 4 .u32 table[2] = {7, 8};\n"
         ".visible .global .u64 where = generic(shown);\n"
         ".func (.reg .u32 r) same() { mov.u32 r, 2000; ret; }\n"
         ".weak .func (.param .b32 r) both() { st.param.b32 [r], 5; ret; }\n"
         ".visible .func (.param .b32 r) other (.param .b32 x)\n{\n"
         " .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
         " ld.param.b32 %r1, [x]; ld.global.u32 %r2, [own]; ld.global.u64 %rd1, [where];\n"
         " ld.u32 %r3, [%rd1]; call.uni (%r4), same, ();\n"
         " add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;\n"
         " st.param.b32 [r], %r1; ret;\n}\n";

static void link_of(char *const *texts, size_t count, char *log, size_t log_size, CUlinkState *link,
                    void **image, CUresult *r)
{
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)log_size };
    static const char *const names[] = { "first", "second", "third" };
    size_t size;
    OK(cuLinkCreate(COUNT(options), options, values, link));
    *r = CUDA_SUCCESS;
    for (size_t i = 0; i < count && *r == CUDA_SUCCESS; i++)
        *r = cuLinkAddData(*link, CU_JIT_INPUT_PTX, texts[i], strlen(texts[i]) + 1, names[i], 0,
                           NULL, NULL);
    if (*r == CUDA_SUCCESS)
        *r = cuLinkComplete(*link, image, &size);
}

static void names(void)
{
    char *const texts[] = { one, two };
    static const uint32_t want[7] = { 1, 10, 100, 8, 1000, 5, 10 + 2 + 10 + 2000 };
    uint32_t got[7] = { 0 };
    char log[4096] = "";
    CUlinkState link;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p, common;
    void *image;
    size_t size;
    CUresult r;
    if (!tap_computes())
        tap_skip("a device that computes nothing");
    link_of(texts, 2, log, sizeof(log), &link, &image, &r);
    if (r != CUDA_SUCCESS)
        tap_fail(__FILE__, __LINE__, "%d: %s", r, log);
    OK(cuModuleLoadData(&m, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetGlobal(&common, &size, m, "common"));
    EQ(size, 64);
    OK(cuModuleGetFunction(&f, m, "sum"));
    OK(cuMemAlloc(&p, sizeof(got)));
    void *params[] = { &p };
    for (int run = 0; run < 3; run++) {
        OK(cuMemsetD8(p, 0, sizeof(got)));
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 64, NULL, params, NULL));
        OK(cuMemcpyDtoH(got, p, sizeof(got)));
        for (size_t i = 0; i < COUNT(want); i++)
            EQ(got[i], want[i]);
    }
    OK(cuModuleUnload(m));
    OK(cuMemFree(p));
}

/* A kernel is for the architecture of its own text: CUB looks for the code that it compiled for the
 * one that it is told. */
static void architectures(void)
{
    static char early[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry early()\n{\nret;\n}\n";
    static char late[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry late()\n{\nret;\n}\n";
    char *const texts[] = { early, late, callee };
    char log[4096] = "";
    CUlinkState link;
    CUmodule m;
    CUfunction f;
    void *image;
    CUresult r;
    int version;
    if (!tap_computes() || tap_gpu())
        tap_skip("a device that does not read the text, or a linker that was not asked");
    link_of(texts, COUNT(texts), log, sizeof(log), &link, &image, &r);
    OK(r);
    OK(cuModuleLoadData(&m, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&f, m, "early"));
    OK(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    EQ(version, 70);
    OK(cuModuleGetFunction(&f, m, "late"));
    OK(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    EQ(version, 75);
    OK(cuModuleUnload(m));
}

static void refused(char *const *texts, size_t count, CUresult error, const char *said)
{
    char log[4096] = "";
    CUlinkState link;
    void *image;
    CUresult r;
    if (!tap_computes())
        tap_skip("a device that does not read the text");
    link_of(texts, count, log, sizeof(log), &link, &image, &r);
    EQ(r, error);
    if (!strstr(log, said))
        tap_fail(__FILE__, __LINE__, "said: %s", log);
    OK(cuLinkDestroy(link));
}

static void missing(void)
{
    char *const texts[] = { caller };
    refused(texts, 1, CUDA_ERROR_UNKNOWN, "Undefined reference to 'callee' in 'first'");
    CUmodule m;
    EQ(cuModuleLoadData(&m, caller), CUDA_ERROR_INVALID_PTX); /* without a linker */
}

/* nvptx-tools, issue 48, has the words that NVIDIA's library answers. */
static void twice(void)
{
    char *const texts[] = { caller, callee, callee };
    refused(texts, 3, CUDA_ERROR_UNKNOWN,
            "Multiple definition of 'callee' in 'third', first defined in 'second'");
}

/* An archive of the host's, as the toolkit's device runtime is one. */
static void library(void)
{
    const char *path = getenv("CUDADEVRT");
    CUlinkState link;
    CUmodule m;
    CUfunction f;
    void *image;
    size_t size;
    if (!tap_gpu() || !path)
        tap_skip("CUDADEVRT does not name a libcudadevrt.a, or there is no GPU");
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, text(), strlen(tap_ptx) + 1, "tap.ptx", 0, NULL,
                     NULL));
    IS(cuLinkAddData(link, CU_JIT_INPUT_LIBRARY, text(), strlen(tap_ptx), "none", 0, NULL, NULL),
       CUDA_ERROR_INVALID_IMAGE);
    OK(cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&m, image));
    OK(cuModuleGetFunction(&f, m, "add_to"));
    OK(cuModuleUnload(m));
    OK(cuLinkDestroy(link));
}

/* A text is taken where a fat binary should be. */
static void text_as_fat_binary(void)
{
    CUlinkState link;
    void *image;
    size_t size;
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_FATBINARY, text(), strlen(tap_ptx) + 1, NULL, 0, NULL,
                     NULL));
    OK(cuLinkComplete(link, &image, &size));
    run_and_check(image);
    OK(cuLinkDestroy(link));
}

/* A link without inputs has an image. After machine code that cannot be read it has none. */
static void nothing(void)
{
    CUlinkState link;
    CUmodule m;
    void *image;
    size_t size;
    if (!tap_computes())
        tap_skip("a device that does not read the text");
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&m, image));
    OK(cuModuleUnload(m));
    OK(cuLinkDestroy(link));
    OK(cuLinkCreate(0, NULL, NULL, &link));
    IS(cuLinkAddData(link, CU_JIT_INPUT_OBJECT, text(), strlen(tap_ptx), NULL, 0, NULL, NULL),
       CUDA_ERROR_UNKNOWN);
    IS(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, text(), strlen(tap_ptx), NULL, 0, NULL, NULL),
       CUDA_ERROR_INVALID_IMAGE);
    IS(cuLinkAddData(link, CU_JIT_INPUT_PTX, text(), strlen(tap_ptx) + 1, NULL, 0, NULL, NULL),
       CUDA_ERROR_INVALID_IMAGE);
    IS(cuLinkComplete(link, &image, &size), CUDA_ERROR_INVALID_IMAGE);
    OK(cuLinkDestroy(link));
}

static void wrong(void)
{
    CUlinkState link;
    CUjit_option bad = (CUjit_option)1000;
    void *value = NULL;
    IS(cuLinkCreate(0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuLinkCreate(1, &bad, &value, &link), CUDA_ERROR_INVALID_VALUE);
    OK(cuLinkCreate(0, NULL, NULL, &link));
    IS(cuLinkAddData(link, CU_JIT_INPUT_PTX, NULL, 10, NULL, 0, NULL, NULL),
       CUDA_ERROR_INVALID_VALUE);
    TRUE(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, text(), strlen(tap_ptx), NULL, 0, NULL, NULL) !=
         CUDA_SUCCESS);
    OK(cuLinkDestroy(link));
    if (!tap_genuine()) /* which follows it */
        IS(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(one_text),
        TEST(from_file),
        TEST(bad_text),
        TEST(several),
        TEST(names),
        TEST(architectures),
        TEST(missing),
        TEST(twice),
        TEST(verbose),
        TEST(library),
        TEST(wrong),
        TEST(nothing),
        TEST(text_as_fat_binary),
    };
    return tap_main(tests, COUNT(tests));
}
