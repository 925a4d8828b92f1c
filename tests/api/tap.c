/*
 * The harness: TAP lines, checks that leave a test by longjmp, and the PTX text as part of the
 * program, so that a binary can be carried to another machine alone.
 */
#include "tap.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_SECONDS 25

static jmp_buf out_of_test;
static const char *skipped;
static CUmodule module;

void tap_fail(const char *file, int line, const char *format, ...)
{
    va_list ap;
    printf("# %s:%d: ", file, line);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
    longjmp(out_of_test, 1);
}

void tap_skip(const char *why)
{
    skipped = why;
    longjmp(out_of_test, 2);
}

void tap_check_result(const char *file, int line, const char *call, CUresult got, CUresult want)
{
    const char *got_name = "?", *want_name = "?";
    if (got == want)
        return;
    cuGetErrorName(got, &got_name);
    cuGetErrorName(want, &want_name);
    tap_fail(file, line, "%s gives %s (%d), not %s (%d)", call, got_name, (int)got, want_name,
             (int)want);
}

bool tap_computes(void)
{
    char name[128] = "";
    return cuDeviceGetName(name, sizeof(name), 0) == CUDA_SUCCESS && !strstr(name, "null");
}

bool tap_gpu(void)
{
    char name[128] = "";
    return cuDeviceGetName(name, sizeof(name), 0) == CUDA_SUCCESS && !strstr(name, "gmux");
}

static bool has_daemon(void)
{
    int shared = 1;
    (void)cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0);
    return shared;
}

bool tap_ours(void)
{
    /* A library that passes calls through is the genuine one in all but name. */
    return dlsym(RTLD_DEFAULT, "gmux_client_library") != NULL && (!tap_gpu() || has_daemon());
}

bool tap_genuine(void)
{
    return tap_gpu() && !tap_ours();
}

bool tap_alone(void)
{
    return getenv("TAP_ALONE") || !has_daemon();
}

CUmodule tap_module(void)
{
    if (!module)
        OK(cuModuleLoadData(&module, tap_ptx));
    return module;
}

CUfunction tap_function(const char *name)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, tap_module(), name));
    return f;
}

unsigned tap_byte(CUdeviceptr pointer)
{
    unsigned char byte = 0;
    OK(cuMemcpyDtoH(&byte, pointer, 1));
    return byte;
}

void CUDA_CB tap_hold(void *flag)
{
    /* NVIDIA's library may wait for such a function in a call that the test makes before it
     * sets the flag. */
    if (tap_genuine())
        hold_wait_for(flag, 1, 2);
    else
        hold_wait(flag, 1);
}

int tap_main_bare(const struct tap_test *tests, size_t count)
{
    static size_t i; /* not in a register: longjmp */
    static int failed;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%zu\n", count);
    for (i = 0; i < count; i++) {
        alarm(TEST_SECONDS); /* a test that hangs is ended by the signal */
        int how = setjmp(out_of_test);
        if (how == 0)
            tests[i].run();
        failed += how == 1;
        printf("%s %zu - %s%s%s\n", how == 1 ? "not ok" : "ok", i + 1, tests[i].name,
               how == 2 ? " # SKIP " : "", how == 2 ? skipped : "");
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int tap_main(const struct tap_test *tests, size_t count)
{
    CUcontext context;
    CUresult r = cuInit(0);
    if (r != CUDA_SUCCESS || (r = cuDevicePrimaryCtxRetain(&context, 0)) != CUDA_SUCCESS ||
        (r = cuCtxSetCurrent(context)) != CUDA_SUCCESS) {
        printf("Bail out! no context: error %d\n", (int)r);
        return EXIT_FAILURE;
    }
    return tap_main_bare(tests, count);
}
