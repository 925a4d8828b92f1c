/*
 * nvJitLink's interface on top of the driver's cuLink*, which it is like but for its options, which
 * are words, and its needing no context. The driver sees an input's mistakes at the end only, so
 * that is where they are reported.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "cudart/include/nvJitLink.h"

#define API         __attribute__((visibility("default")))
#define LOG_SIZE    16384u
#define OPTIONS_MAX 9u /* that go to the driver */

/* --- options ---------------------------------------------------------------------------------- */

struct options {
    unsigned count;
    CUjit_option name[OPTIONS_MAX];
    void *value[OPTIONS_MAX];
};

struct nvJitLink {
    CUlinkState state;
    CUcontext context; /* of all calls */
    bool retained;     /* the context is device 0's, held for this handle */
    const void *image; /* belongs to `state`; NULL before the end */
    size_t size;
    struct options options; /* the driver writes the logs' sizes there */
    char info[LOG_SIZE], error[LOG_SIZE];
};

static void add_option(struct options *o, CUjit_option name, void *value)
{
    for (unsigned i = 0; i < o->count; i++)
        if (o->name[i] == name) {
            o->value[i] = value;
            return;
        }
    o->name[o->count] = name;
    o->value[o->count++] = value;
}

#define NOTHING (-1) /* an option that means nothing here */

static const struct {
    const char *word; /* with a number behind it if it ends in '=' or is -O */
    int name;         /* for the driver, or NOTHING */
} words[] = {
    { "-maxrregcount=", CU_JIT_MAX_REGISTERS },
    { "-O", CU_JIT_OPTIMIZATION_LEVEL },
    { "-g", CU_JIT_GENERATE_DEBUG_INFO },
    { "-lineinfo", CU_JIT_GENERATE_LINE_INFO },
    { "-verbose", CU_JIT_LOG_VERBOSE },
    { "-lto", NOTHING }, /* whether there is anything to optimise, inputs show */
    { "-time", NOTHING },
    { "-ftz=", NOTHING },
    { "-prec-div=", NOTHING },
    { "-prec-sqrt=", NOTHING },
    { "-fma=", NOTHING },
    { "-kernels-used=", NOTHING },
    { "-variables-used=", NOTHING },
    { "-optimize-unused-variables", NOTHING },
    { "-Xptxas=", NOTHING },
    { "-Xnvvm=", NOTHING },
    { "-split-compile=", NOTHING },
    { "-split-compile-extended=", NOTHING },
    { "-jump-table-density=", NOTHING },
    { "-device-stack-protector=", NOTHING },
    { "-no-cache", NOTHING },
};

static nvJitLinkResult take_architecture(const char *value)
{
    char *end;
    if (strncmp(value, "sm_", 3) != 0)
        return NVJITLINK_ERROR_UNRECOGNIZED_ARCH;
    unsigned long number = strtoul(value + 3, &end, 10);
    end += *end == 'a' || *end == 'f';
    return number && !*end ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_UNRECOGNIZED_ARCH;
}

static nvJitLinkResult take_word(struct options *o, const char *word)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].word);
        bool number = words[i].word[n - 1] == '=' || words[i].word[n - 1] == 'O';
        if (strncmp(word, words[i].word, n) != 0 || (!number && word[n]))
            continue;
        char *end = NULL;
        uintptr_t value = number ? strtoul(word + n, &end, 10) : 1;
        if (words[i].name != NOTHING && number && (!word[n] || *end))
            return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
        if (words[i].name != NOTHING)
            add_option(o, (CUjit_option)words[i].name, (void *)value);
        return NVJITLINK_SUCCESS;
    }
    return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
}

static nvJitLinkResult take_options(struct options *o, uint32_t count, const char **given)
{
    static const char arch[] = "-arch=";
    bool architecture = false;
    for (uint32_t i = 0; i < count; i++) {
        const char *word = given[i];
        nvJitLinkResult r = NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
        if (word && strncmp(word, arch, strlen(arch)) == 0) {
            r = take_architecture(word + strlen(arch));
            architecture = true;
        } else if (word) {
            r = take_word(o, word);
        }
        if (r)
            return r;
    }
    return architecture ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_MISSING_ARCH;
}

/* --- handles ---------------------------------------------------------------------------------- */

/* Finds the context: the current one, or device 0's. */
static bool find_context(struct nvJitLink *l)
{
    if (cuInit(0) || cuCtxGetCurrent(&l->context))
        return false;
    if (!l->context)
        l->retained = cuDevicePrimaryCtxRetain(&l->context, 0) == CUDA_SUCCESS;
    return l->context;
}

static bool enter(nvJitLinkHandle l)
{
    return cuCtxPushCurrent(l->context) == CUDA_SUCCESS;
}

static void leave(void)
{
    CUcontext left;
    (void)cuCtxPopCurrent(&left);
}

API nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *handle)
{
    if (!handle || !*handle)
        return NVJITLINK_ERROR_INVALID_INPUT;
    struct nvJitLink *l = *handle;
    if (l->state && enter(l)) {
        (void)cuLinkDestroy(l->state);
        leave();
    }
    if (l->retained)
        (void)cuDevicePrimaryCtxRelease(0);
    free(l);
    *handle = NULL;
    return NVJITLINK_SUCCESS;
}

API nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t numOptions,
                                    const char **options)
{
    if (!handle || (numOptions && !options))
        return NVJITLINK_ERROR_INVALID_INPUT;
    *handle = NULL;
    struct nvJitLink *l = calloc(1, sizeof(*l));
    if (!l)
        return NVJITLINK_ERROR_INTERNAL;
    struct options *o = &l->options;
    nvJitLinkResult r = take_options(o, numOptions, options);
    if (r) {
        free(l);
        return r;
    }
    add_option(o, CU_JIT_INFO_LOG_BUFFER, l->info);
    add_option(o, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)LOG_SIZE);
    add_option(o, CU_JIT_ERROR_LOG_BUFFER, l->error);
    add_option(o, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)LOG_SIZE);
    CUresult made = CUDA_ERROR_INVALID_CONTEXT;
    if (find_context(l) && enter(l)) {
        made = cuLinkCreate(o->count, o->name, o->value, &l->state);
        leave();
    }
    if (made)
        (void)nvJitLinkDestroy(&l);
    *handle = l;
    return made ? NVJITLINK_ERROR_INTERNAL : NVJITLINK_SUCCESS;
}

/* --- inputs and the link ---------------------------------------------------------------------- */

/* Finds out what the input is. What our NVRTC and this library hand out as a cubin may be text. */
static nvJitLinkResult find_type(nvJitLinkInputType type, const uint8_t *data, size_t size,
                                 CUjitInputType *out)
{
    static const uint8_t fatbin[] = { 0x50, 0xed, 0x55, 0xba };
    bool elf = size > 20 && memcmp(data, "\177ELF", 4) == 0;
    bool any = type == NVJITLINK_INPUT_ANY;
    bool machine = elf && data[18] == 190 && data[19] == 0; /* a GPU's code */
    if (type == NVJITLINK_INPUT_PTX)
        *out = CU_JIT_INPUT_PTX;
    else if (type == NVJITLINK_INPUT_CUBIN || (any && machine))
        *out = elf ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_PTX;
    else if (type == NVJITLINK_INPUT_FATBIN ||
             (any && size > sizeof(fatbin) && memcmp(data, fatbin, sizeof(fatbin)) == 0))
        *out = CU_JIT_INPUT_FATBINARY;
    else if (type == NVJITLINK_INPUT_OBJECT || (any && elf))
        *out = CU_JIT_INPUT_OBJECT;
    else if (type == NVJITLINK_INPUT_LIBRARY ||
             (any && size > 8 && memcmp(data, "!<arch>\n", 8) == 0))
        *out = CU_JIT_INPUT_LIBRARY;
    else if (any)
        *out = CU_JIT_INPUT_PTX;
    else
        return NVJITLINK_ERROR_UNRECOGNIZED_INPUT;
    return NVJITLINK_SUCCESS;
}

static nvJitLinkResult result_of(CUresult r)
{
    switch (r) {
    case CUDA_SUCCESS:
        return NVJITLINK_SUCCESS;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return NVJITLINK_ERROR_PTX_COMPILE;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_FILE_NOT_FOUND:
        return NVJITLINK_ERROR_INVALID_INPUT;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_SOURCE:
        return NVJITLINK_ERROR_UNRECOGNIZED_INPUT;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return NVJITLINK_ERROR_ARCH_MISMATCH;
    default:
        return NVJITLINK_ERROR_INTERNAL;
    }
}

API nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle handle, nvJitLinkInputType inputType,
                                     const void *data, size_t size, const char *name)
{
    CUjitInputType type;
    if (!handle)
        return NVJITLINK_ERROR_INVALID_INPUT;
    if (!data || !size)
        return NVJITLINK_ERROR_NULL_INPUT;
    nvJitLinkResult r = find_type(inputType, data, size, &type);
    if (r)
        return r;
    if (!enter(handle))
        return NVJITLINK_ERROR_INTERNAL;
    r = result_of(cuLinkAddData(handle->state, type, (void *)(uintptr_t)data, size,
                                name ? name : "", 0, NULL, NULL));
    leave();
    return r;
}

API nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle handle, nvJitLinkInputType inputType,
                                     const char *fileName)
{
    if (!handle || !fileName)
        return NVJITLINK_ERROR_INVALID_INPUT;
    FILE *f = fopen(fileName, "re");
    if (!f)
        return NVJITLINK_ERROR_INVALID_INPUT;
    long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *data = size > 0 ? malloc((size_t)size) : NULL;
    nvJitLinkResult r = NVJITLINK_ERROR_INVALID_INPUT;
    if (data && fseek(f, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)size, f) == (size_t)size)
        r = nvJitLinkAddData(handle, inputType, data, (size_t)size, fileName);
    (void)fclose(f);
    free(data);
    return r;
}

API nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle handle)
{
    void *image;
    size_t size;
    if (!handle)
        return NVJITLINK_ERROR_INVALID_INPUT;
    if (!enter(handle))
        return NVJITLINK_ERROR_INTERNAL;
    CUresult r = cuLinkComplete(handle->state, &image, &size);
    leave();
    if (r == CUDA_SUCCESS) {
        handle->image = image;
        handle->size = size;
    }
    return result_of(r);
}

/* --- what came out ---------------------------------------------------------------------------- */

API nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t *size)
{
    if (!handle || !size || !handle->image)
        return NVJITLINK_ERROR_INVALID_INPUT;
    *size = handle->size;
    return NVJITLINK_SUCCESS;
}

API nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void *cubin)
{
    if (!handle || !cubin || !handle->image)
        return NVJITLINK_ERROR_INVALID_INPUT;
    memcpy(cubin, handle->image, handle->size);
    return NVJITLINK_SUCCESS;
}

API nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t *size)
{
    return handle && size ? NVJITLINK_ERROR_LTO_NOT_ENABLED : NVJITLINK_ERROR_INVALID_INPUT;
}

API nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle handle, char *ptx)
{
    return handle && ptx ? NVJITLINK_ERROR_LTO_NOT_ENABLED : NVJITLINK_ERROR_INVALID_INPUT;
}

/* With the zero at its end; 0 where nothing was said. */
static size_t size_of(const char *log)
{
    return *log ? strlen(log) + 1 : 0;
}

static nvJitLinkResult give_size(const char *log, size_t *size)
{
    if (!log || !size)
        return NVJITLINK_ERROR_INVALID_INPUT;
    *size = size_of(log);
    return NVJITLINK_SUCCESS;
}

static nvJitLinkResult give_log(const char *log, char *to)
{
    if (!log || !to)
        return NVJITLINK_ERROR_INVALID_INPUT;
    memcpy(to, log, size_of(log));
    return NVJITLINK_SUCCESS;
}

API nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t *size)
{
    return give_size(handle ? handle->error : NULL, size);
}

API nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle handle, char *log)
{
    return give_log(handle ? handle->error : NULL, log);
}

API nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle handle, size_t *size)
{
    return give_size(handle ? handle->info : NULL, size);
}

API nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle handle, char *log)
{
    return give_log(handle ? handle->info : NULL, log);
}

API nvJitLinkResult nvJitLinkVersion(unsigned int *major, unsigned int *minor)
{
    if (!major || !minor)
        return NVJITLINK_ERROR_INVALID_INPUT;
    *major = NVJITLINK_VERSION / 1000;
    *minor = NVJITLINK_VERSION % 1000 / 10;
    return NVJITLINK_SUCCESS;
}

/* --- names with a version --------------------------------------------------------------------- */

/* NVIDIA's header calls the functions by names that have the version of the header in them. */
#define PASTE(name, major, minor) __##name##_##major##_##minor
#define VERSIONED(name, major, minor)                                                              \
    extern __typeof__(name) PASTE(name, major, minor)                                              \
        __attribute__((alias(#name), visibility("default")));
#define EACH(name)                                                                                 \
    VERSIONED(name, NVJITLINK_MAJOR, 0)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 1)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 2)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 3)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 4)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 5)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 6)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 7)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 8)                                                            \
    VERSIONED(name, NVJITLINK_MAJOR, 9)
/* clang-format off */
EACH(nvJitLinkCreate)
EACH(nvJitLinkDestroy)
EACH(nvJitLinkAddData)
EACH(nvJitLinkAddFile)
EACH(nvJitLinkComplete)
EACH(nvJitLinkGetLinkedCubinSize)
EACH(nvJitLinkGetLinkedCubin)
EACH(nvJitLinkGetLinkedPtxSize)
EACH(nvJitLinkGetLinkedPtx)
EACH(nvJitLinkGetErrorLogSize)
EACH(nvJitLinkGetErrorLog)
EACH(nvJitLinkGetInfoLogSize)
EACH(nvJitLinkGetInfoLog)
/* clang-format on */
