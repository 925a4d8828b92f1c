/*
 * Kernels as programs have them against loops in C, one thread, in one process, taking turns: the
 * ratio of the medians of processor time, and whether both computed the same.
 *
 *   kernel_set [--rounds N] [--jit PATH] [NAME ...]
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/kernel_set.h"
#include "bench/measure.h"
#include "device/soft/loader/compiler.h"

#define ROW_ENTRIES 16 /* of spmv */

/* What a kernel gets: pointers into the window, then numbers. */
enum args { ARGS_IN_OUT, ARGS_TWO_IN, ARGS_BYTES, ARGS_ROWS, ARGS_TRIAD };

static const struct kernel {
    const char *name;
    void (*loop)(struct set_data *d);
    enum args args;
    int n;
    bool square; /* n x n elements */
    uint32_t grid[3], block[3];
    int results;
} kernels[] = {
    { "reduction", set_reduction, ARGS_IN_OUT, 1 << 20, false, { 256, 1, 1 }, { 256, 1, 1 }, 0 },
    { "sgemm", set_sgemm, ARGS_TWO_IN, 256, true, { 16, 16, 1 }, { 16, 16, 1 }, 256 * 256 },
    { "sgemm32", set_sgemm, ARGS_TWO_IN, 256, true, { 8, 8, 1 }, { 32, 32, 1 }, 256 * 256 },
    { "transpose", set_transpose, ARGS_IN_OUT, 512, true, { 16, 16, 1 }, { 32, 8, 1 }, 512 * 512 },
    { "bitonic",
      set_bitonic,
      ARGS_IN_OUT,
      1 << 17,
      false,
      { 1 << 8, 1, 1 },
      { 256, 1, 1 },
      1 << 17 },
    { "convolution",
      set_convolution,
      ARGS_TWO_IN,
      512,
      true,
      { 32, 32, 1 },
      { 16, 16, 1 },
      512 * 512 },
    { "histogram", set_histogram, ARGS_BYTES, 1 << 20, false, { 64, 1, 1 }, { 256, 1, 1 }, 0 },
    { "spmv", set_spmv, ARGS_ROWS, 1 << 14, false, { 64, 1, 1 }, { 256, 1, 1 }, 1 << 14 },
    { "triad", set_triad, ARGS_TRIAD, 1 << 14, false, { 64, 1, 1 }, { 256, 1, 1 }, 1 << 14 },
    { "triad", set_triad, ARGS_TRIAD, 1 << 23, false, { 1 << 15, 1, 1 }, { 256, 1, 1 }, 1 << 23 },
    { "jacobi", set_jacobi, ARGS_IN_OUT, 512, true, { 16, 64, 1 }, { 32, 8, 1 }, 512 * 512 },
    { "scan", set_scan, ARGS_IN_OUT, 1 << 18, false, { 1 << 10, 1, 1 }, { 256, 1, 1 }, 1 << 18 },
};

static void make_data(const struct kernel *k, struct launch *l, struct set_data *d)
{
    size_t count = (size_t)k->n * (k->square              ? (size_t)k->n
                                   : k->args == ARGS_ROWS ? ROW_ENTRIES
                                                          : 1);
    uint32_t seed = 1;
    memset(d, 0, sizeof(*d));
    d->n = k->n;
    d->a = launch_alloc(l, count * sizeof(float));
    d->b = launch_alloc(l, count * sizeof(float));
    d->c = launch_alloc(l, count * sizeof(float));
    d->bytes = launch_alloc(l, (size_t)k->n);
    d->row = launch_alloc(l, ((size_t)k->n + 1) * sizeof(int));
    d->column = launch_alloc(l, count * sizeof(int));
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        d->a[i] = (float)(seed >> 8) / (float)(1 << 24);
        d->b[i] = (float)(seed >> 16) / (float)(1 << 16);
        d->column[i] = (int)((seed >> 8) % (uint32_t)k->n);
        if (i < (size_t)k->n)
            d->bytes[i] = (unsigned char)(seed >> 24);
    }
    for (int i = 0; i <= k->n; i++)
        d->row[i] = i * ROW_ENTRIES;
}

static void set_parameters(const struct kernel *k, struct launch *l, const struct set_data *d,
                           void *out)
{
    l->params_size = 0;
    switch (k->args) {
    case ARGS_BYTES:
        LAUNCH_PARAM(l, void *, d->bytes);
        break;
    case ARGS_ROWS:
        LAUNCH_PARAM(l, void *, d->row);
        LAUNCH_PARAM(l, void *, d->column);
        LAUNCH_PARAM(l, void *, d->b);
        LAUNCH_PARAM(l, void *, d->a);
        break;
    default:
        LAUNCH_PARAM(l, void *, d->a);
        if (k->args != ARGS_IN_OUT)
            LAUNCH_PARAM(l, void *, d->b);
        break;
    }
    LAUNCH_PARAM(l, void *, out);
    if (k->args == ARGS_TRIAD)
        LAUNCH_PARAM(l, float, 1.5f);
    LAUNCH_PARAM(l, int, k->n);
}

/* The largest relative difference between kernel and loop; of sums over all where the pieces
 * differ. */
static double difference(const struct kernel *k, const struct set_data *d, const float *out)
{
    double worst = 0, sum[2] = { 0, 0 };
    for (int i = 0; i < k->results; i++)
        worst =
            fmax(worst, fabs((double)out[i] - (double)d->c[i]) / fmax(fabs((double)d->c[i]), 1e-6));
    if (k->results)
        return worst;
    for (int i = 0; i < 256; i++) {
        sum[0] += k->args == ARGS_BYTES ? (double)((const unsigned *)out)[i] * i : (double)out[i];
        sum[1] += k->args == ARGS_BYTES ? (double)d->counts[i] * i : (double)d->c[i];
    }
    return fabs(sum[0] - sum[1]) / fabs(sum[1]);
}

static void bench(struct soft_compiler *c, const struct kernel *k, const char *text, size_t size,
                  int rounds)
{
    struct soft_job job = { .text = text, .text_size = size, .entry = k->name };
    double compiled[ROUNDS_MAX], loop[ROUNDS_MAX];
    struct launch l;
    struct set_data d;
    bool unsupported;
    char why[512];
    memcpy(job.options.ntid, k->block, sizeof(job.options.ntid));
    uint64_t begin = gm_now_ns();
    struct soft_code *code = soft_compiler_compile(c, &job, &unsupported, why, sizeof(why));
    double ms = (double)(gm_now_ns() - begin) / 1e6;
    if (!code) {
        fprintf(stderr, "%s: %s\n", k->name, why);
        exit(1);
    }
    launch_init(&l);
    make_data(k, &l, &d);
    float *out = launch_alloc(&l, (size_t)k->n * (k->square ? (size_t)k->n : 1) * sizeof(float));
    set_parameters(k, &l, &d, out);
    for (int r = 0; r < rounds; r++) {
        begin = gm_thread_cpu_ns();
        k->loop(&d);
        loop[r] = (double)(gm_thread_cpu_ns() - begin);
        begin = gm_thread_cpu_ns();
        if (launch_run(&l, code, k->grid, k->block, 8192) != SOFT_DONE)
            fprintf(stderr, "%s: fault\n", k->name);
        compiled[r] = (double)(gm_thread_cpu_ns() - begin);
    }
    double ours = median_of(compiled, rounds), best = median_of(loop, rounds);
    printf(
        "%-12s n=%-8d gmux %9.1f us, C %9.1f us, ratio %.2f, difference %.1e; ready in %.0f ms\n",
        k->name, k->n, ours / 1e3, best / 1e3, best / ours, difference(k, &d, out), ms);
    code->destroy(code);
    launch_finish(&l);
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
                                             { "jit", required_argument, NULL, 'j' },
                                             { NULL, 0, NULL, 0 } };
    struct soft_compiler_config config = { .helper = GMUX_JIT_PATH, .cache_dir = "" };
    struct soft_compiler *c;
    int rounds = 9, o;
    size_t size;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (o == 'r')
            rounds = atoi(optarg);
        else if (o == 'j')
            config.helper = optarg;
        else
            return 1;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || soft_compiler_create(&c, &config) < 0)
        return 1;
    char *text = read_text(KERNEL_SET_PTX, &size);
    for (size_t k = 0; k < GM_ARRAY_LEN(kernels); k++) {
        bool wanted = optind == argc;
        for (int a = optind; a < argc; a++)
            wanted |= strcmp(argv[a], kernels[k].name) == 0;
        if (wanted)
            bench(c, &kernels[k], text, size, rounds);
    }
    free(text);
    soft_compiler_destroy(c);
    return 0;
}
