/* Linking: one text becomes an image that can be loaded; errors come with a log; several become one where there is a linker. */
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
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, text(), strlen(tap_ptx) + 1, "tap.ptx", 0, NULL, NULL));
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

/* The genuine library finds it when the text is added, gmux when the link is completed: programs look at both. */
static void bad_text(void)
{
    static char bad[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { no_such.thing %r1; ret; }\n";
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
static char callee[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
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
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, sizeof(caller), "caller", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, callee, sizeof(callee), "callee", 0, NULL, NULL));
    CUresult r = cuLinkComplete(link, &image, &size);
    if (r == CUDA_ERROR_NOT_SUPPORTED) {
        OK(cuLinkDestroy(link));
        tap_skip("no linker");
    }
    OK(r);
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

/* What the compiler says about a text: only when it compiles it, and that it does once for each text, as long as its cache lasts.
 * So this one has a name that was never there. */
static void verbose(void)
{
    char info[8192] = "", name[64], unique[512];
    CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE };
    void *values[] = { info, (void *)sizeof(info), (void *)1 };
    CUlinkState link;
    struct timespec now;
    void *image;
    size_t size;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(name, sizeof(name), "only_once_%d_%lld_%ld", (int)getpid(), (long long)now.tv_sec, now.tv_nsec);
    int n = snprintf(unique, sizeof(unique),
                     ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry %s()\n{\nret;\n}\n", name);
    OK(cuLinkCreate(COUNT(options), options, values, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, unique, (size_t)n + 1, "unique", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, callee, sizeof(callee), "callee", 0, NULL, NULL));
    CUresult r = cuLinkComplete(link, &image, &size);
    if (r == CUDA_ERROR_NOT_SUPPORTED) {
        OK(cuLinkDestroy(link));
        tap_skip("no linker");
    }
    OK(r);
    if (!strstr(info, "ptxas info") || !strstr(info, name))
        tap_fail(__FILE__, __LINE__, "of %s there is said: %s", name, info);
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
    IS(cuLinkAddData(link, CU_JIT_INPUT_PTX, NULL, 10, NULL, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    TRUE(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, text(), strlen(tap_ptx), NULL, 0, NULL, NULL) != CUDA_SUCCESS);
    OK(cuLinkDestroy(link));
    if (!tap_genuine()) /* which follows it */
        IS(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(one_text), TEST(from_file), TEST(bad_text), TEST(several), TEST(verbose), TEST(wrong),
    };
    return tap_main(tests, COUNT(tests));
}
