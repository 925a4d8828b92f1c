/*
 * Kernels' code linked at run time by nvJitLink: that what comes out runs, also from inputs of a
 * kind that has to be found out, without a context, and by the names that NVIDIA's header has; and
 * what is said of mistakes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <nvJitLink.h>

#include "check.h"

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
static const char kernel[] = HEAD ".extern .func (.param .b32 r) twice (.param .b32 a);\n"
                                  ".visible .entry k(.param .u64 out)\n"
                                  "{\n"
                                  ".reg .b32 %r<3>;\n.reg .b64 %p<2>;\n"
                                  "ld.param.u64 %p1, [out];\n"
                                  "mov.u32 %r1, 21;\n"
                                  "{\n.param .b32 a0;\nst.param.b32 [a0], %r1;\n.param .b32 r0;\n"
                                  "call.uni (r0), twice, (a0);\nld.param.b32 %r2, [r0];\n}\n"
                                  "st.global.u32 [%p1], %r2;\nret;\n}\n";
static const char function[] = HEAD ".visible .func (.param .b32 r) twice (.param .b32 a)\n"
                                    "{\n"
                                    ".reg .b32 %r<2>;\n"
                                    "ld.param.b32 %r1, [a];\nadd.s32 %r1, %r1, %r1;\n"
                                    "st.param.b32 [r], %r1;\nret;\n}\n";

static void run(const void *image)
{
    CUmodule module;
    CUfunction f;
    CUdeviceptr out;
    int n = 0;
    void *arguments[] = { &out };
    CHECK(cuModuleLoadData(&module, image) == CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&f, module, "k") == CUDA_SUCCESS);
    CHECK(cuMemAlloc(&out, sizeof(n)) == CUDA_SUCCESS);
    CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
    CHECK(cuMemcpyDtoH(&n, out, sizeof(n)) == CUDA_SUCCESS && n == 42);
    CHECK(cuMemFree(out) == CUDA_SUCCESS && cuModuleUnload(module) == CUDA_SUCCESS);
}

/* The linked image, which the caller frees. */
static void *image_of(nvJitLinkHandle l)
{
    size_t size = 0, log = 1;
    CHECK(nvJitLinkGetLinkedCubinSize(l, &size) == NVJITLINK_SUCCESS && size > 0);
    void *image = calloc(1, size + 1);
    CHECK(nvJitLinkGetLinkedCubin(l, image) == NVJITLINK_SUCCESS);
    CHECK(nvJitLinkGetErrorLogSize(l, &log) == NVJITLINK_SUCCESS && log == 0);
    return image;
}

static void whole(void)
{
    const char *options[] = { "-arch=sm_80", "-maxrregcount=64", "-lineinfo", "-O3", "-ftz=1" };
    nvJitLinkHandle l = NULL;
    CHECK(nvJitLinkCreate(&l, 5, options) == NVJITLINK_SUCCESS && l);
    CHECK(nvJitLinkAddData(l, NVJITLINK_INPUT_PTX, kernel, sizeof(kernel), "k") ==
          NVJITLINK_SUCCESS);
    CHECK(nvJitLinkAddData(l, NVJITLINK_INPUT_ANY, function, strlen(function), NULL) ==
          NVJITLINK_SUCCESS);
    CHECK(nvJitLinkComplete(l) == NVJITLINK_SUCCESS);
    void *image = image_of(l);
    CHECK(nvJitLinkDestroy(&l) == NVJITLINK_SUCCESS && !l);
    CUdevice device;
    CUcontext context = NULL, current = NULL;
    CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current);
    CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    run(image);
    /* What was linked is an input of another link, here from a file. */
    char path[] = "/tmp/gmux-nvjitlink.XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    CHECK(f && fputs(image, f) >= 0 && fclose(f) == 0);
    CHECK(nvJitLinkCreate(&l, 1, options) == NVJITLINK_SUCCESS);
    CHECK(nvJitLinkAddFile(l, NVJITLINK_INPUT_CUBIN, path) == NVJITLINK_SUCCESS);
    CHECK(nvJitLinkComplete(l) == NVJITLINK_SUCCESS);
    free(image);
    image = image_of(l);
    run(image);
    free(image);
    (void)remove(path);
    CHECK(nvJitLinkAddFile(l, NVJITLINK_INPUT_PTX, path) == NVJITLINK_ERROR_INVALID_INPUT);
    CHECK(nvJitLinkDestroy(&l) == NVJITLINK_SUCCESS);
}

static void mistakes(void)
{
    static const struct {
        const char *option;
        nvJitLinkResult result;
    } tries[] = {
        { "-O3", NVJITLINK_ERROR_MISSING_ARCH },
        { "-arch=compute_80", NVJITLINK_ERROR_UNRECOGNIZED_ARCH },
        { "-arch=sm_", NVJITLINK_ERROR_UNRECOGNIZED_ARCH },
        { "-no-such-option", NVJITLINK_ERROR_UNRECOGNIZED_OPTION },
        { "-maxrregcount=", NVJITLINK_ERROR_UNRECOGNIZED_OPTION },
    };
    const char *arch = "-arch=sm_90a";
    nvJitLinkHandle l = NULL;
    size_t size = 0;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        const char *option = tries[i].option;
        CHECK(nvJitLinkCreate(&l, 1, &option) == tries[i].result && !l);
    }
    CHECK(nvJitLinkCreate(NULL, 1, &arch) == NVJITLINK_ERROR_INVALID_INPUT);
    CHECK(nvJitLinkDestroy(&l) == NVJITLINK_ERROR_INVALID_INPUT);
    CHECK(nvJitLinkCreate(&l, 1, &arch) == NVJITLINK_SUCCESS);
    CHECK(nvJitLinkAddData(l, NVJITLINK_INPUT_PTX, NULL, 4, "") == NVJITLINK_ERROR_NULL_INPUT);
    CHECK(nvJitLinkAddData(l, NVJITLINK_INPUT_LTOIR, "x", 1, "") ==
          NVJITLINK_ERROR_UNRECOGNIZED_INPUT);
    CHECK(nvJitLinkGetLinkedCubinSize(l, &size) == NVJITLINK_ERROR_INVALID_INPUT);
    CHECK(nvJitLinkGetLinkedPtxSize(l, &size) == NVJITLINK_ERROR_LTO_NOT_ENABLED);
    CHECK(nvJitLinkAddData(l, NVJITLINK_INPUT_PTX, kernel, sizeof(kernel), "alone") ==
          NVJITLINK_SUCCESS);
    CHECK(nvJitLinkComplete(l) != NVJITLINK_SUCCESS);
    CHECK(nvJitLinkGetErrorLogSize(l, &size) == NVJITLINK_SUCCESS && size > 1);
    char *log = calloc(1, size + 1);
    CHECK(nvJitLinkGetErrorLog(l, log) == NVJITLINK_SUCCESS);
    CHECK(strlen(log) + 1 == size && strstr(log, "twice"));
    free(log);
    CHECK(nvJitLinkDestroy(&l) == NVJITLINK_SUCCESS);
}

static void names(void)
{
    static const char *const functions[] = {
        "Create",           "Destroy",         "AddData",        "AddFile",    "Complete",
        "GetLinkedCubin",   "GetLinkedPtx",    "GetErrorLog",    "GetInfoLog", "GetLinkedCubinSize",
        "GetLinkedPtxSize", "GetErrorLogSize", "GetInfoLogSize",
    };
    unsigned major = 0, minor = 0;
    char name[80], version[40];
    CHECK(nvJitLinkVersion(&major, &minor) == NVJITLINK_SUCCESS && major >= 12);
    (void)snprintf(version, sizeof(version), "libnvJitLink.so.%u", major);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        for (unsigned m = 0; m <= minor; m++) {
            (void)snprintf(name, sizeof(name), "__nvJitLink%s_%u_%u", functions[i], major, m);
            CHECK(dlvsym(RTLD_DEFAULT, name, version));
        }
}

int main(void)
{
    names();
    whole();
    mistakes();
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
