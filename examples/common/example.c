#include "example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void ex_check(CUresult r, const char *call, const char *file, int line)
{
    const char *name = NULL;
    const char *text = NULL;
    if (r == CUDA_SUCCESS)
        return;
    cuGetErrorName(r, &name);
    cuGetErrorString(r, &text);
    fprintf(stderr, "%s:%d: %s: %s (%d): %s\n", file, line, call, name ? name : "?", (int)r,
            text ? text : "?");
    exit(1);
}

struct ex_device ex_open(int ordinal, const char *ptx)
{
    struct ex_device d = { 0 };
    char log[4096] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof(log) };

    EX_CHECK(cuInit(0));
    EX_CHECK(cuDeviceGet(&d.device, ordinal));
    EX_CHECK(cuDevicePrimaryCtxRetain(&d.context, d.device));
    EX_CHECK(cuCtxSetCurrent(d.context));
    CUresult r = cuModuleLoadDataEx(&d.module, ptx, 2, options, values);
    if (r != CUDA_SUCCESS && log[0])
        fprintf(stderr, "%s\n", log);
    EX_CHECK(r);
    return d;
}

CUfunction ex_function(const struct ex_device *d, const char *name)
{
    CUfunction f;
    EX_CHECK(cuModuleGetFunction(&f, d->module, name));
    return f;
}

void ex_close(struct ex_device *d)
{
    EX_CHECK(cuModuleUnload(d->module));
    EX_CHECK(cuDevicePrimaryCtxRelease(d->device));
}

double ex_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void ex_gate(void)
{
    if (!getenv("EX_GATE"))
        return;
    printf("ready\n");
    fflush(stdout);
    (void)getchar();
}

bool ex_option(const char *arg, const char *name, long min, long max, long *value)
{
    size_t n = strlen(name);
    while (*arg == '-')
        arg++;
    if (strncmp(arg, name, n) != 0 || arg[n] != '=')
        return false;
    char *end;
    long v = strtol(arg + n + 1, &end, 10);
    if (end == arg + n + 1 || *end || v < min || v > max) {
        fprintf(stderr, "%s: a number from %ld to %ld is needed\n", name, min, max);
        exit(2);
    }
    *value = v;
    return true;
}

bool ex_flag(const char *arg, const char *name)
{
    while (*arg == '-')
        arg++;
    return strcmp(arg, name) == 0;
}

float ex_random(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *state = x;
    return (float)(x >> 8) / 16777216.0f;
}
