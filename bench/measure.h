/*
 * What the benchmarks of compiled kernels have in common. Part of soft_kernels.c, nbody_kernel.c
 * and kernel_set.c.
 */
#ifndef GMUX_BENCH_MEASURE_H
#define GMUX_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/soft/loader/compiler.h"
#include "tests/unit/jit/launch.h"

#define ROUNDS_MAX 101

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare_doubles);
    return values[n / 2];
}

/* A file of up to 1 MiB; the caller frees it. Ends the program if there is none. */
static inline char *read_text(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);
    if (!f || !text)
        launch_die(path);
    *size = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

/* The code of a kernel of `text`, which it frees, and how long it took to get it in *ms. Ends the
 * program if there is none. */
static inline struct soft_code *measure_compile(struct soft_compiler *c, char *text, size_t size,
                                                const char *entry, uint32_t isa,
                                                const uint32_t block[3], double *ms)
{
    struct soft_job job = {
        .text = text, .text_size = size, .entry = entry, .options = { .isa = isa }
    };
    bool unsupported;
    char why[512];
    memcpy(job.options.ntid, block, sizeof(job.options.ntid));
    uint64_t begin = gm_now_ns();
    struct soft_code *code = soft_compiler_compile(c, &job, &unsupported, why, sizeof(why));
    *ms = (double)(gm_now_ns() - begin) / 1e6;
    if (!code) {
        fprintf(stderr, "%s: %s\n", entry, why);
        exit(1);
    }
    free(text);
    return code;
}

/* -0.5 to 0.5. */
static inline float measure_noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

#endif
