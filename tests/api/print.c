/*
 * Device printf and assert: the text comes to this process's standard output (standard error for
 * assert), at the calls that wait, in order, and not later. Descriptors 1 and 2 are put aside in a
 * file meanwhile.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (8u << 20)

static const char print_ptx[] =
    ".version 6.4\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 args);\n"
    ".extern .func __assertfail (.param .b64 message, .param .b64 file, .param .b32 line, .param "
    ".b64 function,\n"
    "    .param .b64 size);\n"
    ".global .align 1 .b8 format[8] = {37, 117, 58, 32, 37, 117, 10, 0};\n" /* "%u: %u\n" */
    ".global .align 1 .b8 message[5] = {104, 101, 114, 101, 0};\n"          /* "here" */
    /* Each thread prints `number` and its own number in the grid. */
    ".visible .entry say(.param .u32 number)\n"
    "{\n"
    "    .local .align 8 .b8 depot[8];\n"
    "    .reg .b32 %r<8>;\n"
    "    .reg .b64 %rd<6>;\n"
    "    mov.u64 %rd1, depot;\n"
    "    cvta.local.u64 %rd2, %rd1;\n"
    "    ld.param.u32 %r1, [number];\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mov.u32 %r3, %ntid.x;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "    st.local.u32 [%rd1], %r1;\n"
    "    st.local.u32 [%rd1+4], %r5;\n"
    "    mov.u64 %rd3, format;\n"
    "    cvta.global.u64 %rd4, %rd3;\n"
    "    {\n"
    "    .param .b64 param0;\n"
    "    .param .b64 param1;\n"
    "    .param .b32 retval0;\n"
    "    st.param.b64 [param0+0], %rd4;\n"
    "    st.param.b64 [param1+0], %rd2;\n"
    "    call.uni (retval0), vprintf, (param0, param1);\n"
    "    ld.param.b32 %r6, [retval0+0];\n"
    "    }\n"
    "    ret;\n"
    "}\n"
    ".visible .entry fail()\n"
    "{\n"
    "    .reg .b64 %rd<4>;\n"
    "    mov.u64 %rd1, message;\n"
    "    cvta.global.u64 %rd2, %rd1;\n"
    "    {\n"
    "    .param .b64 param0;\n"
    "    .param .b64 param1;\n"
    "    .param .b32 param2;\n"
    "    .param .b64 param3;\n"
    "    .param .b64 param4;\n"
    "    st.param.b64 [param0+0], %rd2;\n"
    "    st.param.b64 [param1+0], %rd2;\n"
    "    st.param.b32 [param2+0], 7;\n"
    "    st.param.b64 [param3+0], %rd2;\n"
    "    st.param.b64 [param4+0], 1;\n"
    "    call.uni __assertfail, (param0, param1, param2, param3, param4);\n"
    "    }\n"
    "    ret;\n"
    "}\n";

static CUfunction say, fail;
static FILE *aside;
static char text[TEXT_MAX];

static void load(void)
{
    CUmodule m;
    if (!tap_computes())
        tap_skip("kernels do not run on this device");
    if (say)
        return;
    OK(cuModuleLoadData(&m, print_ptx));
    OK(cuModuleGetFunction(&say, m, "say"));
    OK(cuModuleGetFunction(&fail, m, "fail"));
    aside = tmpfile();
    TRUE(aside != NULL);
}

/* What goes to `fd` goes to the file, until back(). */
static int away(int fd)
{
    fflush(NULL);
    TRUE(ftruncate(fileno(aside), 0) == 0);
    int saved = dup(fd);
    TRUE(saved >= 0 && dup2(fileno(aside), fd) == fd);
    TRUE(lseek(fileno(aside), 0, SEEK_SET) == 0);
    return saved;
}

/* What has come. */
static const char *back(int fd, int saved)
{
    fflush(NULL);
    dup2(saved, fd);
    close(saved);
    ssize_t n = pread(fileno(aside), text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static CUresult print(unsigned number, unsigned blocks, unsigned threads, CUstream s)
{
    void *params[] = { &number };
    return cuLaunchKernel(say, blocks, 1, 1, threads, 1, 1, 0, s, params, NULL);
}

/* The ways to wait; each makes the text appear. */
static CUresult wait_context(void)
{
    return cuCtxSynchronize();
}
static CUresult wait_stream(void)
{
    return cuStreamSynchronize(NULL);
}
static CUresult wait_event(void)
{
    CUevent e;
    CUresult r = cuEventCreate(&e, 0);
    r = r ? r : cuEventRecord(e, NULL);
    r = r ? r : cuEventSynchronize(e);
    return r ? r : cuEventDestroy(e);
}
static CUresult wait_copy(void)
{
    static char bytes[64];
    CUdeviceptr p;
    CUresult r = cuMemAlloc(&p, sizeof(bytes));
    r = r ? r : cuMemcpyDtoH(bytes, p, sizeof(bytes));
    return r ? r : cuMemFree(p);
}

static void appears_when_waited_for(void)
{
    static const struct {
        const char *name;
        CUresult (*wait)(void);
    } ways[] = { { "cuCtxSynchronize", wait_context },
                 { "cuStreamSynchronize", wait_stream },
                 { "cuEventSynchronize", wait_event },
                 { "cuMemcpyDtoH", wait_copy } };
    load();
    for (unsigned i = 0; i < COUNT(ways); i++) {
        char want[32];
        int saved = away(1);
        CUresult r = print(1000 + i, 1, 1, NULL);
        r = r ? r : ways[i].wait();
        const char *got = back(1, saved);
        snprintf(want, sizeof(want), "%u: 0\n", 1000 + i);
        OK(r);
        if (strcmp(got, want) != 0)
            tap_fail(__FILE__, __LINE__, "after %s there is '%s', not '%s'", ways[i].name, got,
                     want);
    }
}

/* What the host has printed comes first, though it is in a buffer; and all has been written. */
static void behind_what_the_host_printed(void)
{
    static char buffer[4096];
    char got[256];
    load();
    int saved = away(1);
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    printf("host ");
    CUresult r = print(5, 1, 1, NULL);
    r = r ? r : cuCtxSynchronize();
    ssize_t n = pread(fileno(aside), got, sizeof(got) - 1, 0);
    got[n > 0 ? n : 0] = '\0';
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)back(1, saved);
    OK(r);
    if (strcmp(got, "host 5: 0\n") != 0)
        tap_fail(__FILE__, __LINE__, "'%s'", got);
}

/* Standard output that is a stream of the program's own. */
static void where_stdout_is(void)
{
    FILE *real = stdout, *own;
    char *got = NULL;
    size_t size = 0;
    load();
    own = open_memstream(&got, &size);
    TRUE(own != NULL);
    stdout = own;
    CUresult r = print(6, 1, 1, NULL);
    r = r ? r : cuCtxSynchronize();
    stdout = real;
    fclose(own);
    bool same = strcmp(got, "6: 0\n") == 0;
    free(got);
    OK(r);
    TRUE(same);
}

static void launches_keep_their_order(void)
{
    CUresult r = CUDA_SUCCESS;
    load();
    int saved = away(1);
    for (unsigned i = 0; i < 500 && r == CUDA_SUCCESS; i++)
        r = print(i, 1, 1, NULL);
    r = r ? r : cuCtxSynchronize();
    const char *at = back(1, saved);
    OK(r);
    for (unsigned i = 0; i < 500; i++) {
        char want[32];
        int n = snprintf(want, sizeof(want), "%u: 0\n", i);
        if (strncmp(at, want, (size_t)n) != 0)
            tap_fail(__FILE__, __LINE__, "line %u is '%.20s'", i, at);
        at += n;
    }
    EQ(*at, 0);
}

static void every_thread_once(void)
{
    static unsigned char seen[4096];
    unsigned number, thread;
    int length;
    load();
    memset(seen, 0, sizeof(seen));
    int saved = away(1);
    CUresult r = print(7, 32, 128, NULL);
    r = r ? r : cuCtxSynchronize();
    const char *at = back(1, saved);
    OK(r);
    while (sscanf(at, "%u: %u\n%n", &number, &thread, &length) == 2) {
        EQ(number, 7);
        TRUE(thread < sizeof(seen) && !seen[thread]);
        seen[thread] = 1;
        at += length;
    }
    EQ(*at, 0);
    for (size_t i = 0; i < sizeof(seen); i++)
        TRUE(seen[i]);
}

/* More than is kept: some of it is lost, nothing else happens, and the next text comes. */
static void a_flood_is_cut(void)
{
    load();
    int saved = away(1);
    CUresult r = print(123456789, 1024, 128,
                       NULL); /* from twice that NVIDIA's driver does not come back in time */
    r = r ? r : cuCtxSynchronize();
    const char *got = back(1, saved);
    OK(r);
    size_t size = strlen(got);
    TRUE(size > 1000);
    printf("# %zu bytes of a flood came\n", size);
    saved = away(1);
    r = print(5, 1, 1, NULL);
    r = r ? r : cuCtxSynchronize();
    got = back(1, saved);
    OK(r);
    TRUE(strstr(got, "5: 0\n") != NULL);
}

/* Last: there is no device afterwards. PRINT_NO_ASSERT: not at all, because other programs use it.
 */
static void a_failed_assertion_says_where(void)
{
    if (getenv("PRINT_NO_ASSERT"))
        tap_skip("PRINT_NO_ASSERT is set");
    load();
    int saved = away(2);
    CUresult r = cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    r = r ? r : cuCtxSynchronize();
    const char *got = back(2, saved);
    EQ(r, CUDA_ERROR_ASSERT);
    if (!strstr(got, "here:7: here: block: [0,0,0], thread: [0,0,0] Assertion `here` failed.\n"))
        tap_fail(__FILE__, __LINE__, "standard error has '%s'", got);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(appears_when_waited_for),
                                             TEST(behind_what_the_host_printed),
                                             TEST(where_stdout_is),
                                             TEST(launches_keep_their_order),
                                             TEST(every_thread_once),
                                             TEST(a_flood_is_cut),
                                             TEST(a_failed_assertion_says_where) };
    return tap_main(tests, COUNT(tests));
}
