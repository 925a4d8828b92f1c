/*
 * What the benchmarks of compiled kernels have in common. Part of soft_kernels.c and kernel_set.c.
 */
#ifndef GMUX_BENCH_MEASURE_H
#define GMUX_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/jit/launch.h"

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

#endif
