/* Modules, libraries, what is in them. */
#include "answers.h"

#include <stdlib.h>

static void modules(void)
{
    CUmodule m;
    CUfunction f, all[40];
    unsigned count = 0;
    CALL(cuModuleLoadData(&m, answers_ptx));
    CALL(cuModuleGetFunction(&f, m, "fill"));
    CALL(cuModuleGetFunction(&f, m, "no_such_kernel"));
    CALL(cuModuleGetFunction(&f, m, ""));
    CALL(cuModuleGetFunction(&f, m, NULL));
    CALL(cuModuleGetFunction(NULL, m, "fill"));
    CALL(cuModuleGetFunction(&f, m, "counter"));
    CALL(cuModuleGetFunctionCount(&count, m));
    NUM(count);
    CALL(cuModuleGetFunctionCount(NULL, m));
    CALL(cuModuleEnumerateFunctions(all, count, m));
    NUM(all[0] != NULL);
    CALL(cuModuleEnumerateFunctions(all, 1, m));
    CALL(cuModuleEnumerateFunctions(all, 40, m));
    CALL(cuModuleEnumerateFunctions(all, 0, m));
    CALL(cuModuleEnumerateFunctions(NULL, 1, m));
    CALL(cuModuleUnload(m));
}

static void bad_images(void)
{
    CUmodule m;
    static char zeros[4096];
    char errors[1000] = "", info[1000] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { errors, (void *)sizeof(errors), info, (void *)sizeof(info) };
    CALL(cuModuleLoadData(&m, zeros));
    CALL(cuModuleLoadData(&m, "this is no image"));
    CALL(cuModuleLoadData(&m, NULL));
    CALL(cuModuleLoadData(NULL, answers_ptx));
    CALL(cuModuleLoadData(
        &m, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { bad; }\n"));
    CALL(cuModuleLoadData(&m, ".version 7.0\n.target sm_70\n.address_size 64\n"));
    CALL(cuModuleLoadData(&m, ".version 7.0\n"));
    CALL(cuModuleLoadData(&m, ".version 99.0\n.target sm_70\n.address_size 64\n"));
    CALL(cuModuleLoadData(&m, ".version 7.0\n.target sm_999\n.address_size 64\n"));
    CALL(cuModuleLoadData(
        &m, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f() { ret; }\n"));
    CALL(cuModuleLoadDataEx(
        &m, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { bad; }\n", 4,
        options, values));
    NUM(strlen(errors) > 0);
    NUM((size_t)values[1] == strlen(errors) || (size_t)values[1] == strlen(errors) + 1);
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 4, options, values));
    CALL(cuModuleLoad(&m, "/nonexistent/file.ptx"));
    CALL(cuModuleLoad(&m, NULL));
    CALL(cuModuleLoad(&m, "/dev/null"));
    CALL(cuModuleLoadFatBinary(&m, zeros));
    CALL(cuModuleLoadFatBinary(&m, NULL));
    CALL(cuModuleUnload(NULL));
}

static void jit_options(void)
{
    CUmodule m;
    CUjit_option option;
    void *value = NULL;
    float wall = -1;
    option = CU_JIT_MAX_REGISTERS;
    value = (void *)32;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    option = CU_JIT_OPTIMIZATION_LEVEL;
    value = (void *)2;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    option = CU_JIT_WALL_TIME;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    memcpy(&wall, &value, sizeof(wall));
    NUM(wall >= 0);
    option = CU_JIT_THREADS_PER_BLOCK;
    value = (void *)128;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    NUM((unsigned)(uintptr_t)value >= 128);
    option = CU_JIT_TARGET_FROM_CUCONTEXT;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    option = CU_JIT_CACHE_MODE;
    value = (void *)CU_JIT_CACHE_OPTION_CA;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    option = CU_JIT_LOG_VERBOSE;
    value = (void *)1;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    option = CU_JIT_NUM_OPTIONS;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    option = (CUjit_option)1000;
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, &option, &value));
    CALL(cuModuleLoadDataEx(&m, answers_ptx, 1, NULL, NULL));
}

static void file(void)
{
    CUmodule m;
    CUfunction f;
    char path[] = "/tmp/answers-XXXXXX";
    int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    fputs(answers_ptx, out);
    fclose(out);
    CALL(cuModuleLoad(&m, path));
    CALL(cuModuleGetFunction(&f, m, "fill"));
    CALL(cuModuleUnload(m));
    remove(path);
}

static void variables(void)
{
    CUmodule m = answers_image();
    CUdeviceptr counter = 0, table, buffer, both, out;
    size_t size = 0;
    unsigned managed = 9;
    CALL(cuModuleGetGlobal(&counter, &size, m, "counter"));
    NUM(size);
    NUM(answers_word(counter));
    CALL(cuModuleGetGlobal(&buffer, &size, m, "buffer"));
    NUM(size);
    NUM(buffer % 16);
    CALL(cuModuleGetGlobal(&table, &size, m, "table"));
    NUM(size);
    NUM(answers_word(table + 8));
    CALL(cuModuleGetGlobal(&both, &size, m, "both"));
    NUM(size);
    CALL(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, both));
    NUM(managed);
    NUM(*(volatile uint32_t *)(uintptr_t)both);
    *(volatile uint32_t *)(uintptr_t)both = 100;
    CALL(cuMemsetD32(table + 4, 77, 1));
    CALL(cuMemsetD32(counter, 43, 1));
    CALL(cuMemAlloc(&out, 64));
    void *params[] = { &out };
    CALL(cuLaunchKernel(answers_function_of("variables"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CALL(cuCtxSynchronize());
    NUM(answers_word(out));
    NUM(answers_word(out + 4));
    NUM(answers_word(out + 8));
    NUM(*(volatile uint32_t *)(uintptr_t)both);
    CALL(cuModuleGetGlobal(NULL, &size, m, "counter"));
    CALL(cuModuleGetGlobal(&counter, NULL, m, "counter"));
    CALL(cuModuleGetGlobal(NULL, NULL, m, "counter"));
    CALL(cuModuleGetGlobal(&counter, &size, m, "nothing"));
    CALL(cuModuleGetGlobal(&counter, &size, m, "no_such"));
    CALL(cuModuleGetGlobal(&counter, &size, m, NULL));
}

static void variable_attributes(void)
{
    CUmodule m = answers_image();
    CUdeviceptr p = 0, base;
    size_t size;
    unsigned type = 9;
    CALL(cuModuleGetGlobal(&p, &size, m, "counter"));
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    NUM(type);
    CALL(cuMemGetAddressRange(&base, &size, p));
    MACHINE(size);
    CALL(cuMemFree(p));
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MAPPED, p));
    NUM(type);
}

static void loading_mode(void)
{
    CUmoduleLoadingMode mode = 0;
    CUfunctionLoadingState state = 0;
    CUfunction f;
    CALL(cuModuleGetLoadingMode(&mode));
    NUM(mode);
    f = answers_function_of("fill");
    CALL(cuFuncIsLoaded(&state, f));
    MACHINE(state);
    CALL(cuFuncLoad(f));
    CALL(cuFuncIsLoaded(&state, f));
    NUM(state);
    CALL(cuFuncIsLoaded(NULL, f));
}

static void references(void)
{
    CUtexref t;
    CUsurfref s;
    CALL(cuModuleGetTexRef(&t, answers_image(), "no_such"));
    CALL(cuModuleGetSurfRef(&s, answers_image(), "no_such"));
    CALL(cuModuleGetTexRef(NULL, answers_image(), "no_such"));
}

static void libraries(void)
{
    CUlibrary lib, of = NULL;
    CUkernel k, all[40];
    CUfunction f;
    CUmodule m;
    CUdeviceptr p;
    size_t size;
    unsigned count = 0;
    const char *name;
    void *unified;
    CALL(cuLibraryLoadData(&lib, answers_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetKernelCount(&count, lib));
    NUM(count);
    CALL(cuLibraryEnumerateKernels(all, count, lib));
    CALL(cuLibraryEnumerateKernels(all, 0, lib));
    CALL(cuLibraryGetKernel(&k, lib, "fill"));
    CALL(cuLibraryGetKernel(&k, lib, "no_such"));
    CALL(cuLibraryGetKernel(&k, lib, NULL));
    CALL(cuLibraryGetKernel(NULL, lib, "fill"));
    CALL(cuLibraryGetKernel(&k, lib, "fill"));
    CALL(cuKernelGetName(&name, k));
    TEXT(name);
    CALL(cuKernelGetLibrary(&of, k));
    NUM(of == lib);
    CALL(cuKernelGetFunction(&f, k));
    CALL(cuFuncGetName(&name, f));
    TEXT(name);
    CALL(cuLibraryGetModule(&m, lib));
    CALL(cuFuncGetModule(&m, f));
    CALL(cuModuleUnload(m));
    CALL(cuLibraryGetGlobal(&p, &size, lib, "counter"));
    NUM(size);
    CALL(cuLibraryGetGlobal(&p, &size, lib, "no_such"));
    CALL(cuLibraryGetGlobal(&p, &size, lib, "both"));
    CALL(cuLibraryGetManaged(&p, &size, lib, "both"));
    NUM(size);
    CALL(cuLibraryGetManaged(&p, &size, lib, "counter"));
    CALL(cuLibraryGetUnifiedFunction(&unified, lib, "fill"));
    CALL(cuLibraryUnload(lib));
    CALL(cuLibraryLoadData(&lib, "nonsense", NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryLoadData(&lib, NULL, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryLoadData(NULL, answers_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryLoadFromFile(&lib, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
}

static void library_launch(void)
{
    CUlibrary lib;
    CUkernel k;
    CUdeviceptr out;
    unsigned n = 64, value = 5;
    void *params[] = { &out, &n, &value };
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *yes = (void *)1;
    CALL(cuLibraryLoadData(&lib, answers_ptx, NULL, NULL, 0, &option, &yes, 1));
    CALL(cuLibraryGetKernel(&k, lib, "fill"));
    CALL(cuMemAlloc(&out, 256));
    CALL(cuLaunchKernel((CUfunction)k, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    CALL(cuCtxSynchronize());
    NUM(answers_word(out + 252));
    CALL(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 0));
    CALL(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 1000));
    CALL(cuLibraryUnload(lib));
}

/* A library outlives contexts, and needs none to be loaded. */
static void library_without_context(void)
{
    CUlibrary lib;
    CUkernel k;
    CUfunction f;
    CUmodule m;
    CUdeviceptr p;
    size_t size;
    int value = 0;
    CALL(cuCtxSetCurrent(NULL));
    CALL(cuLibraryLoadData(&lib, answers_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetKernel(&k, lib, "fill"));
    CALL(cuKernelGetFunction(&f, k));
    CALL(cuLibraryGetModule(&m, lib));
    CALL(cuLibraryGetGlobal(&p, &size, lib, "counter"));
    CALL(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
    NUM(value);
    CALL(cuLibraryUnload(lib));
}

static void linker(void)
{
    CUlinkState s;
    void *image = NULL;
    size_t size = 0;
    CUmodule m;
    CUfunction f;
    CALL(cuLinkCreate(0, NULL, NULL, &s));
    CALL(cuLinkAddData(s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)answers_ptx, strlen(answers_ptx) + 1,
                       "answers", 0, NULL, NULL));
    CALL(cuLinkComplete(s, &image, &size));
    NUM(size > 0);
    CALL(cuModuleLoadData(&m, image));
    CALL(cuModuleGetFunction(&f, m, "fill"));
    CALL(cuLinkDestroy(s));
    CALL(cuLinkCreate(0, NULL, NULL, NULL));
}

const struct answers_case answers_module[] = {
    CASE(modules),
    CASE(bad_images),
    CASE(jit_options),
    CASE(file),
    CASE(variables),
    CASE(references),
    CASE(loading_mode),
    CASE(variable_attributes),
    CASE(libraries),
    CASE(library_launch),
    CASE(linker),
    CASE(library_without_context),
    END,
};
