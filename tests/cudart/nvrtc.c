/*
 * Kernels compiled at run time: the calls' answers, headers, options, names, what is said of
 * mistakes, and that what comes out runs. With NVIDIA's libnvrtc in the place of ours it passes,
 * too, but for what stands under OURS.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda.h>
#include <nvrtc.h>

#include "check.h"

#ifndef OURS
#define OURS 1
#endif

static const char source[] =
    "#include \"inner/scale.h\"\n"
    "__constant__ int offset;\n"
    "namespace n {\n"
    "template <typename T, int N> __global__ void add(T *out)\n"
    "{ out[threadIdx.x] += scale(N) + offset + ADDED; }\n"
    "}\n"
    "#define MAKE(T) template __global__ void n::add<T, 1>(T *)\n"
    "MAKE(float);\n"
    "extern \"C\" __global__ void plain(int *out) { out[threadIdx.x] = (int)threadIdx.x; }\n";

static const char *log_of(nvrtcProgram p)
{
    static char *log;
    size_t size = 0;
    free(log);
    CHECK(nvrtcGetProgramLogSize(p, &size) == NVRTC_SUCCESS && size > 0);
    log = calloc(1, size + 1);
    CHECK(nvrtcGetProgramLog(p, log) == NVRTC_SUCCESS && strlen(log) + 1 == size);
    return log;
}

static char *ptx_of(nvrtcProgram p)
{
    size_t size = 0;
    CHECK(nvrtcGetPTXSize(p, &size) == NVRTC_SUCCESS && size > 1);
    char *ptx = calloc(1, size + 1);
    CHECK(nvrtcGetPTX(p, ptx) == NVRTC_SUCCESS && strlen(ptx) + 1 == size);
    return ptx;
}

static void run(const char *ptx, const char *add, const char *offset)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction plain, added;
    CUdeviceptr out, constant;
    size_t size;
    int seven = 7, result[32] = { 0 };
    CHECK(!cuInit(0) && !cuDeviceGet(&device, 0) && !cuDevicePrimaryCtxRetain(&context, device) &&
          !cuCtxSetCurrent(context));
    CHECK(!cuModuleLoadData(&module, ptx));
    CHECK(!cuModuleGetFunction(&plain, module, "plain"));
    CHECK(!cuModuleGetFunction(&added, module, add));
    CHECK(!cuModuleGetGlobal(&constant, &size, module, offset) && size == sizeof(seven));
    CHECK(!cuMemcpyHtoD(constant, &seven, sizeof(seven)));
    CHECK(!cuMemAlloc(&out, sizeof(result)));
    void *arguments[] = { &out };
    CHECK(!cuLaunchKernel(plain, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    CHECK(!cuLaunchKernel(added, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    CHECK(!cuMemcpyDtoH(result, out, sizeof(result)));
    for (int i = 0; i < 32; i++)
        CHECK(result[i] == i + 3 * 5 + 7 + 100);
    CHECK(!cuMemFree(out) && !cuModuleUnload(module) && !cuDevicePrimaryCtxRelease(device));
}

static void whole(void)
{
    const char *headers[] = { "#include \"three.h\"\n__device__ int scale(int x) { return x * "
                              "THREE; }\n",
                              "#define THREE 3\n" };
    const char *names[] = { "inner/scale.h", "three.h" };
    const char *const options[] = { "--gpu-architecture=compute_75",
                                    "-DADDED=100",
                                    "-std=c++17",
                                    "--fmad=false",
                                    "-default-device",
                                    "-I",
                                    "/nonexistent" };
    nvrtcProgram p;
    const char *add = NULL, *offset = NULL, *none = NULL;
    CHECK(nvrtcCreateProgram(&p, source, "whole.cu", 2, headers, names) == NVRTC_SUCCESS);
    CHECK(nvrtcAddNameExpression(p, "n::add<int, 5>") == NVRTC_SUCCESS);
    CHECK(nvrtcAddNameExpression(p, "&offset") == NVRTC_SUCCESS);
    CHECK(nvrtcGetLoweredName(p, "&offset", &none) ==
          NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    CHECK(nvrtcCompileProgram(p, 7, options) == NVRTC_SUCCESS);
    if (*log_of(p))
        printf("%s", log_of(p));
    CHECK(nvrtcAddNameExpression(p, "plain") == NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    CHECK(nvrtcGetLoweredName(p, "n::add<int, 5>", &add) == NVRTC_SUCCESS);
    CHECK(nvrtcGetLoweredName(p, "&offset", &offset) == NVRTC_SUCCESS);
    CHECK(nvrtcGetLoweredName(p, "plain", &none) == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    CHECK(add && strcmp(add, "_ZN1n3addIiLi5EEEvPT_") == 0);
    char *ptx = ptx_of(p);
    CHECK(!strstr(ptx, "gmux_name"));
    CHECK(strstr(ptx, ".entry _ZN1n3addIfLi1EEEvPT_("));
    size_t size = 1;
    CHECK(nvrtcGetCUBINSize(p, &size) == NVRTC_SUCCESS && size == 0);
    if (add && offset)
        run(ptx, add, offset);
    free(ptx);
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS && !p);
}

static void mistakes(void)
{
    nvrtcProgram p = NULL;
    int major, minor;
    size_t size;
    const char *const unknown[] = { "--no-such-option" }, *const output[] = { "-o/tmp/x" };
    const char *header = "", *const outside[] = { "a/../../b.h" }, *const root[] = { "/b.h" };
    CHECK(nvrtcVersion(&major, &minor) == NVRTC_SUCCESS && (major == 12 || major == 13));
    CHECK(nvrtcVersion(&major, NULL) == NVRTC_ERROR_INVALID_INPUT);
    CHECK(dlvsym(RTLD_DEFAULT, "nvrtcVersion", major == 12 ? "libnvrtc.so.12" : "libnvrtc.so.13"));
    CHECK(nvrtcCreateProgram(&p, NULL, NULL, 0, NULL, NULL) == NVRTC_ERROR_INVALID_INPUT);
    CHECK(nvrtcCreateProgram(&p, "", NULL, -1, NULL, NULL) == NVRTC_ERROR_INVALID_INPUT);
#if OURS
    CHECK(nvrtcCreateProgram(&p, "", NULL, 1, &header, outside) == NVRTC_ERROR_INVALID_INPUT);
    CHECK(nvrtcCreateProgram(&p, "", NULL, 1, &header, root) == NVRTC_ERROR_INVALID_INPUT);
#endif
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcCompileProgram(NULL, 0, NULL) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcCreateProgram(&p, "\n__global__ void k(int *p) { *p = undefined; }\n", "wrong.cu", 0,
                             NULL, NULL) == NVRTC_SUCCESS);
    CHECK(nvrtcGetPTXSize(p, &size) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcCompileProgram(p, 1, unknown) == NVRTC_ERROR_INVALID_OPTION);
    CHECK(strstr(log_of(p), "--no-such-option"));
    CHECK(nvrtcCompileProgram(p, 1, output) == NVRTC_ERROR_INVALID_OPTION);
    CHECK(nvrtcCompileProgram(p, 0, NULL) == NVRTC_ERROR_COMPILATION);
    CHECK(strstr(log_of(p), "wrong.cu(2): error: ") && strstr(log_of(p), "undefined"));
#if OURS
    CHECK(!strstr(log_of(p), "/tmp/"));
    (void)setenv("GMUX_CLANG", "/nonexistent/clang", 1);
    CHECK(nvrtcCompileProgram(p, 0, NULL) == NVRTC_ERROR_COMPILATION);
    CHECK(strstr(log_of(p), "/nonexistent/clang"));
    (void)unsetenv("GMUX_CLANG");
#endif
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
    CHECK(strcmp(nvrtcGetErrorString(NVRTC_ERROR_COMPILATION), "NVRTC_ERROR_COMPILATION") == 0);
    CHECK(nvrtcGetErrorString((nvrtcResult)-1) && nvrtcGetErrorString((nvrtcResult)999));
}

/* Programs that bring the standard's headers along, also by option; and that learn from the log
 * which file is missing, as libraries around NVRTC do. */
static void own_headers(void)
{
    static const char text[] =
        "#include <limits>\n#include <cassert>\n"
        "static __constant__ int hidden;\n"
        "__global__ void k(int64_t *p)\n"
        "{ assert(hidden); *p = std::numeric_limits<int>::max() + hidden; }\n";
    const char *headers[] = {
        "#pragma once\nnamespace std { template <class T> struct numeric_limits; template <> "
        "struct "
        "numeric_limits<int> { static constexpr int max() { return 2147483647; } }; }\n",
        "#pragma once\nnamespace mine { typedef long long int64_t; }\nusing namespace mine;\n",
        "#pragma once\n#define assert(condition)\n",
        "#pragma once\n",
    };
    const char *names[] = { "limits", "stdint.h", "cassert", "math.h" };
    const char *const options[] = { "-default-device", "-include=stdint.h", "-include=math.h" };
    nvrtcProgram p;
    CHECK(nvrtcCreateProgram(&p, text, "own.cu", 4, headers, names) == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(p, 3, options) == NVRTC_SUCCESS);
    if (*log_of(p))
        printf("%s", log_of(p));
    char *ptx = ptx_of(p);
    /* The host may write it, although nothing here does. */
    CHECK(strstr(ptx, "ld.const"));
    free(ptx);
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
    const char *outer[] = { "\n#include <far/away.h>\n" }, *name[] = { "near/by.h" };
    CHECK(nvrtcCreateProgram(&p, "#include <near/by.h>", "own.cu", 1, outer, name) ==
          NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(p, 1, options) == NVRTC_ERROR_COMPILATION);
    const char *log = log_of(p);
    log = strstr(log, "by.h(2): catastrophic error: cannot open source file \"far/away.h\"");
    CHECK(log && !strstr(log + 1, "by.h(2)"));
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
}

/* Compiles where functions are the device's by default. */
static void default_device(const char *text)
{
    const char *const options[] = { "-default-device", "-std=c++17", "--pch", "-pch-dir=/tmp" };
    nvrtcProgram p;
    CHECK(nvrtcCreateProgram(&p, text, "d.cu", 0, NULL, NULL) == NVRTC_SUCCESS);
    CHECK(nvrtcAddNameExpression(p, "k<float>") == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(p, 4, options) == NVRTC_SUCCESS);
    if (*log_of(p))
        printf("%s", log_of(p));
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
}

/* The standard's headers, which are the host's. */
static void host_headers(void)
{
    default_device("#include <tuple>\n#include <string>\n#include <cstdio>\n"
                   "#include <algorithm>\n#include <cxxabi.h>\n"
                   "int seven() { return 7; }\n"
                   "template <class T> __global__ void k(int *p)\n"
                   "{ *p = std::get<0>(std::make_tuple(std::max(seven(), 1))); printf(\"\"); }\n");
}

/* A kernel that is declared as a friend before, and a type that is complete only where a template
 * is instantiated. */
static void read_late(void)
{
    default_device("class late;\n"
                   "template <class T> struct shy {\n"
                   "    template <class U> friend __global__ void k(int *);\n"
                   "private:\n    int n = 6;\n};\n"
                   "template <class T> __global__ void k(int *p)\n"
                   "{ late l; shy<T> s; *p = l.more(s.n); }\n"
                   "class late { public: int more(int n) { return n + 1; } };\n");
}

/* `typename` left out, in two places of one line and where the first addition shows another. */
static void read_types(void)
{
    default_device("template <class T> struct q { typedef T type; typedef int in; };\n"
                   "template <class T> int size() { return sizeof(q<T>::type); }\n"
                   "#line 7 \"elsewhere.h\"\n"
                   "template <class T> __global__ void k(int *p)\n"
                   "{ *p = sizeof(q<T>::type) + q<T>::in(3) + size<T>(); }\n");
}

/* NVRTC has no types of the standard's headers: programs define them, or include a header. */
static void own_numbers(void)
{
    default_device("typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n"
                   "template <class T> __global__ void k(int64_t *p) { *p = (uint64_t)*p; }\n");
    default_device("#include <stdint.h>\n#include <cstdint>\n#include <random>\n"
                   "template <class T> __global__ void k(int64_t *p)\n"
                   "{ *p = (std::int64_t)(std::uint64_t)(uint64_t)*p; }\n");
}

/* Names that our own headers use are a program's to define and to take back, for the headers that
 * it brings and for those it has included by option. */
static void own_macros(void)
{
    static const char text[] =
        "#if !defined(early) || defined(gone) || N != 5 || !defined(NDEBUG) || bare != 1\n"
        "#error\n#endif\n"
        "template <class T> __global__ void k(int32_t *p) { *p = random(pair) + swap; }\n";
    const char *header = "#if pair == 3\n#define early\n#endif\n", *name = "early.h";
    const char *const options[] = { "-default-device",
                                    "-include=early.h",
                                    "-Dint32_t=int",
                                    "-Dpair=3",
                                    "-Dbare",
                                    "--define-macro=random(x)=((x) == 3 ? 6 : 0)",
                                    "-D",
                                    "swap=8",
                                    "-Dgone",
                                    "-U",
                                    "gone",
                                    "-DN=4",
                                    "-UN",
                                    "-DN=5",
                                    "-DNDEBUG" };
    nvrtcProgram p;
    CHECK(nvrtcCreateProgram(&p, text, "m.cu", 1, &header, &name) == NVRTC_SUCCESS);
    CHECK(nvrtcAddNameExpression(p, "k<float>") == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(p, sizeof(options) / sizeof(options[0]), options) == NVRTC_SUCCESS);
    if (*log_of(p))
        printf("%s", log_of(p));
    char *ptx = ptx_of(p);
    CHECK(strstr(ptx, " 14;"));
    free(ptx);
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
}

/* Libraries around NVRTC find out by warnings which headers a program includes, and take each out
 * of the log, up to the blank line behind it. */
static void messages_apart(void)
{
    const char *headers[] = { "#include <two.h>\n#warning first\n", "#warning second\n" };
    const char *names[] = { "one.h", "two.h" };
    nvrtcProgram p;
    CHECK(nvrtcCreateProgram(&p, "#include <one.h>\nint x = nothing;\n", "main.cu", 2, headers,
                             names) == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(p, 0, NULL) == NVRTC_ERROR_COMPILATION);
    const char *log = log_of(p), *second = strstr(log, "two.h(1): warning");
    const char *first = second ? strstr(second, "\n\n") : NULL;
    const char *error = first ? strstr(first + 2, "\n\n") : NULL;
    CHECK(second == log);
    CHECK(error && strncmp(first + 2, "one.h(2): warning", 17) == 0);
    CHECK(error && strncmp(error + 2, "main.cu(2): error: ", 19) == 0);
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
}

#if OURS
static int cancel(void *payload, void *unused)
{
    (void)unused;
    ++*(int *)payload;
    return 1;
}

/* Kinds of code that are not made, headers that are not kept, a compilation that is cancelled. */
static void rare(void)
{
    nvrtcProgram p;
    size_t size = 7;
    int calls = 0;
    CHECK(nvrtcCreateProgram(&p, "__global__ void f() {}", "f.cu", 0, NULL, NULL) == NVRTC_SUCCESS);
    CHECK(nvrtcGetLTOIRSize(p, &size) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcSetFlowCallback(p, NULL, &calls) == NVRTC_ERROR_INVALID_INPUT);
    CHECK(nvrtcCompileProgram(p, 0, NULL) == NVRTC_SUCCESS && calls == 0);
    CHECK(nvrtcGetLTOIRSize(p, &size) == NVRTC_SUCCESS && size == 0);
    size = 7;
    CHECK(nvrtcGetOptiXIRSize(p, &size) == NVRTC_SUCCESS && size == 0);
    CHECK(nvrtcGetPCHCreateStatus(p) == NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED);
    CHECK(nvrtcSetPCHHeapSize(1 << 20) == NVRTC_SUCCESS &&
          nvrtcGetPCHHeapSize(&size) == NVRTC_SUCCESS && size == 1 << 20);
    CHECK(nvrtcSetFlowCallback(p, cancel, &calls) == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(p, 0, NULL) == NVRTC_ERROR_CANCELLED && calls == 1);
    CHECK(nvrtcGetPTXSize(p, &size) == NVRTC_ERROR_INVALID_PROGRAM);
    CHECK(nvrtcDestroyProgram(&p) == NVRTC_SUCCESS);
    CHECK(strcmp(nvrtcGetErrorString(NVRTC_ERROR_CANCELLED), "NVRTC_ERROR_CANCELLED") == 0);
}
#endif

int main(void)
{
    int count = 0, archs[64];
    CHECK(nvrtcGetNumSupportedArchs(&count) == NVRTC_SUCCESS && count > 0 && count < 64);
    CHECK(nvrtcGetSupportedArchs(archs) == NVRTC_SUCCESS && archs[count - 1] >= 90);
    mistakes();
#if OURS
    rare();
#endif
    whole();
    own_headers();
    messages_apart();
    host_headers();
    read_late();
    read_types();
    own_numbers();
    own_macros();
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
