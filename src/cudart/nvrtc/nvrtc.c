/*
 * The functions of NVRTC's interface.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/include/nvrtc.h"
#include "cudart/nvrtc/nvrtc.h"

#define API __attribute__((visibility("default")))

static const char *const texts[] = {
    [NVRTC_SUCCESS] = "NVRTC_SUCCESS",
    [NVRTC_ERROR_OUT_OF_MEMORY] = "NVRTC_ERROR_OUT_OF_MEMORY",
    [NVRTC_ERROR_PROGRAM_CREATION_FAILURE] = "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
    [NVRTC_ERROR_INVALID_INPUT] = "NVRTC_ERROR_INVALID_INPUT",
    [NVRTC_ERROR_INVALID_PROGRAM] = "NVRTC_ERROR_INVALID_PROGRAM",
    [NVRTC_ERROR_INVALID_OPTION] = "NVRTC_ERROR_INVALID_OPTION",
    [NVRTC_ERROR_COMPILATION] = "NVRTC_ERROR_COMPILATION",
    [NVRTC_ERROR_BUILTIN_OPERATION_FAILURE] = "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    [NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION] =
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    [NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION] =
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    [NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID] = "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    [NVRTC_ERROR_INTERNAL_ERROR] = "NVRTC_ERROR_INTERNAL_ERROR",
    [NVRTC_ERROR_TIME_FILE_WRITE_FAILED] = "NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
    [NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED] = "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED",
    [NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED] = "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED",
    [NVRTC_ERROR_PCH_CREATE] = "NVRTC_ERROR_PCH_CREATE",
    [NVRTC_ERROR_CANCELLED] = "NVRTC_ERROR_CANCELLED",
    [NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED] = "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED",
};

/* The architectures for which clang 19 writes PTX; newer GPUs run that of 90. */
static const int archs[] = { 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90 };
#define ARCHS ((int)(sizeof(archs) / sizeof(archs[0])))

API const char *nvrtcGetErrorString(nvrtcResult result)
{
    size_t i = (size_t)result;
    return i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : "NVRTC_ERROR unknown";
}

API nvrtcResult nvrtcVersion(int *major, int *minor)
{
    if (!major || !minor)
        return NVRTC_ERROR_INVALID_INPUT;
    *major = NVRTC_VERSION / 1000;
    *minor = NVRTC_VERSION % 1000 / 10;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcGetNumSupportedArchs(int *numArchs)
{
    if (!numArchs)
        return NVRTC_ERROR_INVALID_INPUT;
    *numArchs = ARCHS;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcGetSupportedArchs(int *supportedArchs)
{
    if (!supportedArchs)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(supportedArchs, archs, sizeof(archs));
    return NVRTC_SUCCESS;
}

/* Whether the name stays inside of the compilation's folder. */
static bool is_relative(const char *name)
{
    if (!*name || *name == '/')
        return false;
    for (const char *part = name, *end;; part = end + 1) {
        end = strchrnul(part, '/');
        if (end - part == 2 && strncmp(part, "..", 2) == 0)
            return false;
        if (!*end)
            return true;
    }
}

static void destroy(struct _nvrtcProgram *p)
{
    for (size_t i = 0; i < p->headers_count; i++) {
        free(p->headers[i].name);
        free(p->headers[i].text);
    }
    for (size_t i = 0; i < p->names_count; i++) {
        free(p->names[i].expression);
        free(p->names[i].lowered);
    }
    free(p->headers);
    free(p->names);
    free(p->source);
    free(p->name);
    free(p->log);
    free(p->ptx);
    free(p);
}

API nvrtcResult nvrtcCreateProgram(nvrtcProgram *prog, const char *src, const char *name,
                                   int numHeaders, const char *const *headers,
                                   const char *const *includeNames)
{
    if (!prog || !src || numHeaders < 0 || (numHeaders && (!headers || !includeNames)))
        return NVRTC_ERROR_INVALID_INPUT;
    size_t count = (size_t)numHeaders;
    for (size_t i = 0; i < count; i++)
        if (!headers[i] || !includeNames[i] || !is_relative(includeNames[i]))
            return NVRTC_ERROR_INVALID_INPUT;
    struct _nvrtcProgram *p = calloc(1, sizeof(*p));
    if (!p)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    p->source = strdup(src);
    p->name = strdup(name && *name ? name : "default_program");
    p->log = strdup("");
    p->headers = calloc(count + 1, sizeof(*p->headers));
    bool whole = p->source && p->name && p->log && p->headers;
    for (size_t i = 0; whole && i < count; i++) {
        p->headers_count++;
        p->headers[i].name = strdup(includeNames[i]);
        p->headers[i].text = strdup(headers[i]);
        whole = p->headers[i].name && p->headers[i].text;
    }
    if (!whole) {
        destroy(p);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    *prog = p;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcDestroyProgram(nvrtcProgram *prog)
{
    if (!prog || !*prog)
        return NVRTC_ERROR_INVALID_PROGRAM;
    destroy(*prog);
    *prog = NULL;
    return NVRTC_SUCCESS;
}

/* What the caller can read if a compilation did not begin. */
static nvrtcResult refuse(struct _nvrtcProgram *p, nvrtcResult result, const char *why,
                          const char *what)
{
    size_t size = strlen(why) + strlen(what) + 16;
    char *log = malloc(size);
    if (!log)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    (void)snprintf(log, size, "libnvrtc: %s%s\n", why, what);
    free(p->log);
    p->log = log;
    return result;
}

API nvrtcResult nvrtcCompileProgram(nvrtcProgram prog, int numOptions, const char *const *options)
{
    if (!prog)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (numOptions < 0 || (numOptions && !options))
        return NVRTC_ERROR_INVALID_INPUT;
    free(prog->ptx);
    prog->ptx = NULL;
    prog->compiled = false;
    for (size_t i = 0; i < prog->names_count; i++) {
        free(prog->names[i].lowered);
        prog->names[i].lowered = NULL;
    }
    if (prog->callback && prog->callback(prog->payload, NULL) == 1)
        return NVRTC_ERROR_CANCELLED;
    struct rtc_arguments a;
    const char *wrong = "";
    int r = rtc_translate(&a, options, (size_t)numOptions, &wrong);
    nvrtcResult result;
    if (r == -EINVAL)
        result = refuse(prog, NVRTC_ERROR_INVALID_OPTION, "unrecognized option ", wrong);
    else if (r || (r = rtc_compile(prog, &a)) < 0)
        result = r == -ENOMEM ? NVRTC_ERROR_OUT_OF_MEMORY
                              : refuse(prog, NVRTC_ERROR_INTERNAL_ERROR, "", strerror(-r));
    else
        result = r ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
    prog->compiled = result == NVRTC_SUCCESS;
    prog->real_architecture = a.real_architecture;
    free(a.at);
    free(a.macros);
    return result;
}

static nvrtcResult size_of(const char *text, size_t *size)
{
    if (!size)
        return NVRTC_ERROR_INVALID_INPUT;
    *size = text ? strlen(text) + 1 : 0;
    return NVRTC_SUCCESS;
}

static nvrtcResult copy_of(const char *text, char *to)
{
    if (!to)
        return NVRTC_ERROR_INVALID_INPUT;
    if (text)
        memcpy(to, text, strlen(text) + 1);
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcGetPTXSize(nvrtcProgram prog, size_t *ptxSizeRet)
{
    return prog && prog->ptx ? size_of(prog->ptx, ptxSizeRet) : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcResult nvrtcGetPTX(nvrtcProgram prog, char *ptx)
{
    return prog && prog->ptx ? copy_of(prog->ptx, ptx) : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcResult nvrtcGetCUBINSize(nvrtcProgram prog, size_t *cubinSizeRet)
{
    if (!prog || !prog->ptx)
        return NVRTC_ERROR_INVALID_PROGRAM;
    return size_of(prog->real_architecture ? prog->ptx : NULL, cubinSizeRet);
}

API nvrtcResult nvrtcGetCUBIN(nvrtcProgram prog, char *cubin)
{
    if (!prog || !prog->ptx)
        return NVRTC_ERROR_INVALID_PROGRAM;
    return copy_of(prog->real_architecture ? prog->ptx : NULL, cubin);
}

static nvrtcResult size_of_none(nvrtcProgram prog, size_t *size)
{
    return prog && prog->ptx ? size_of(NULL, size) : NVRTC_ERROR_INVALID_PROGRAM;
}

static nvrtcResult copy_of_none(nvrtcProgram prog, char *to)
{
    return prog && prog->ptx ? copy_of(NULL, to) : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcResult nvrtcGetLTOIRSize(nvrtcProgram prog, size_t *LTOIRSizeRet)
{
    return size_of_none(prog, LTOIRSizeRet);
}

API nvrtcResult nvrtcGetLTOIR(nvrtcProgram prog, char *LTOIR)
{
    return copy_of_none(prog, LTOIR);
}

API nvrtcResult nvrtcGetOptiXIRSize(nvrtcProgram prog, size_t *optixirSizeRet)
{
    return size_of_none(prog, optixirSizeRet);
}

API nvrtcResult nvrtcGetOptiXIR(nvrtcProgram prog, char *optixir)
{
    return copy_of_none(prog, optixir);
}

API nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram prog, size_t *logSizeRet)
{
    return prog ? size_of(prog->log, logSizeRet) : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcResult nvrtcGetProgramLog(nvrtcProgram prog, char *log)
{
    return prog ? copy_of(prog->log, log) : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcResult nvrtcAddNameExpression(nvrtcProgram prog, const char *const name_expression)
{
    if (!prog)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!name_expression || strpbrk(name_expression, ";\n"))
        return NVRTC_ERROR_INVALID_INPUT;
    if (prog->compiled)
        return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    struct rtc_name *more = reallocarray(prog->names, prog->names_count + 1, sizeof(*prog->names));
    if (!more)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    prog->names = more;
    more[prog->names_count] = (struct rtc_name) { .expression = strdup(name_expression) };
    if (!more[prog->names_count].expression)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    prog->names_count++;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcGetLoweredName(nvrtcProgram prog, const char *const name_expression,
                                    const char **lowered_name)
{
    if (!prog)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!name_expression || !lowered_name)
        return NVRTC_ERROR_INVALID_INPUT;
    if (!prog->compiled)
        return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    for (size_t i = 0; i < prog->names_count; i++)
        if (strcmp(prog->names[i].expression, name_expression) == 0 && prog->names[i].lowered) {
            *lowered_name = prog->names[i].lowered;
            return NVRTC_SUCCESS;
        }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

/* Only remembered. */
static _Atomic size_t pch_heap_size = (size_t)256 << 20;

API nvrtcResult nvrtcGetPCHHeapSize(size_t *ret)
{
    if (!ret)
        return NVRTC_ERROR_INVALID_INPUT;
    *ret = pch_heap_size;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcSetPCHHeapSize(size_t size)
{
    pch_heap_size = size;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcGetPCHCreateStatus(nvrtcProgram prog)
{
    return prog ? NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcResult nvrtcGetPCHHeapSizeRequired(nvrtcProgram prog, size_t *size)
{
    if (!prog)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!size)
        return NVRTC_ERROR_INVALID_INPUT;
    *size = 0;
    return NVRTC_SUCCESS;
}

API nvrtcResult nvrtcSetFlowCallback(nvrtcProgram prog, int (*callback)(void *, void *),
                                     void *payload)
{
    if (!prog)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!callback)
        return NVRTC_ERROR_INVALID_INPUT;
    prog->callback = callback;
    prog->payload = payload;
    return NVRTC_SUCCESS;
}
