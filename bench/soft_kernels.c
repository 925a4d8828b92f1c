/*
 * Compiled kernels against the best C loops, one thread, in one process, taking turns: medians of
 * processor time and their ratio. And how long code takes to get ready, compiled and from the
 * cache.
 *
 *   soft_kernels [--jit PATH] [--isa native|avx2] [--rounds N] [--bodies N]
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/measure.h"
#include "bench/nbody_loops.h"
#include "device/soft/loader/compiler.h"

#define ROUNDS_MAX 101
#define TILE       32 /* of matmul */

struct series {
    const char *name;
    double values[ROUNDS_MAX];
};

static double median(struct series *s, int rounds)
{
    return median_of(s->values, rounds);
}

static struct soft_code *compile(struct soft_compiler *c, const char *path, const char *entry,
                                 uint32_t isa, const uint32_t block[3], double *ms)
{
    struct soft_job job = { .entry = entry, .options = { .isa = isa } };
    bool unsupported;
    char why[512];
    job.text = read_text(path, &job.text_size);
    memcpy(job.options.ntid, block, sizeof(job.options.ntid));
    uint64_t begin = gm_now_ns();
    struct soft_code *code = soft_compiler_compile(c, &job, &unsupported, why, sizeof(why));
    *ms = (double)(gm_now_ns() - begin) / 1e6;
    if (!code) {
        fprintf(stderr, "%s: %s\n", entry, why);
        exit(1);
    }
    return code;
}

static float *floats(int n)
{
    float *p = aligned_alloc(64, (size_t)n * sizeof(float));
    if (!p)
        launch_die("memory");
    return p;
}

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

static void bench_nbody(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { 256, 1, 1 };
    struct series jit = { .name = "gmux" };
    struct series loops[] = {
        { .name = "over j" }, { .name = "16 i" }, { .name = "32 i" }, { .name = "64 i" }
    };
    nbody_loop *const functions[] = { nbody_loop_over_j, nbody_loop_16, nbody_loop_32,
                                      nbody_loop_64 };
    struct nbody_loop_data d = { n,         floats(n), floats(n), floats(n), floats(n),
                                 floats(n), floats(n), floats(n), 0.01f };
    struct launch l;
    uint32_t seed = 1;
    double ms;

    launch_init(&l);
    float *out = launch_alloc(&l, (size_t)n * 16), *in = launch_alloc(&l, (size_t)n * 16);
    float *velocity = launch_alloc(&l, (size_t)n * 16);
    for (int i = 0; i < n; i++) {
        in[4 * i] = d.x[i] = noise(&seed);
        in[4 * i + 1] = d.y[i] = noise(&seed);
        in[4 * i + 2] = d.z[i] = noise(&seed);
        in[4 * i + 3] = d.m[i] = noise(&seed) + 1;
    }
    LAUNCH_PARAM(&l, void *, out);
    LAUNCH_PARAM(&l, void *, in);
    LAUNCH_PARAM(&l, void *, velocity);
    LAUNCH_PARAM(&l, int, n);
    LAUNCH_PARAM(&l, float, 1.0f);
    LAUNCH_PARAM(&l, float, 1.0f);
    LAUNCH_PARAM(&l, float, d.softening2);
    struct soft_code *code = compile(c, NBODY_PTX, "nbody_f32", isa, block, &ms);
    const uint32_t grid[3] = { (uint32_t)n / 256, 1, 1 };
    double work = 20.0 * n * n;
    for (int r = 0; r < rounds; r++) {
        memset(velocity, 0, (size_t)n * 16);
        uint64_t begin = gm_thread_cpu_ns();
        if (launch_run(&l, code, grid, block, 4096) != SOFT_DONE)
            fprintf(stderr, "nbody: fault\n");
        jit.values[r] = work / (double)(gm_thread_cpu_ns() - begin);
        for (size_t k = 0; k < GM_ARRAY_LEN(loops); k++) {
            begin = gm_thread_cpu_ns();
            functions[k](&d, 0, n);
            loops[k].values[r] = work / (double)(gm_thread_cpu_ns() - begin);
        }
    }
    double worst = 0;
    for (int i = 0; i < n; i++) {
        double size = fabs((double)d.ax[i]) + fabs((double)d.ay[i]) + fabs((double)d.az[i]);
        double error = fabs((double)velocity[4 * i] - d.ax[i]) +
                       fabs((double)velocity[4 * i + 1] - d.ay[i]) +
                       fabs((double)velocity[4 * i + 2] - d.az[i]);
        worst = GM_MAX(worst, error / (size + 1));
    }
    double best = 0, own = median(&jit, rounds), own_peak = jit.values[rounds - 1], peak = 0;
    printf("nbody n=%d: gmux %.1f GFLOP/s", n, own);
    for (size_t k = 0; k < GM_ARRAY_LEN(loops); k++) {
        double m = median(&loops[k], rounds);
        printf(", C %s %.1f", loops[k].name, m);
        best = GM_MAX(best, m);
        peak = GM_MAX(peak, loops[k].values[rounds - 1]);
    }
    printf("; ratio of medians %.3f, of the best rounds %.1f / %.1f = %.3f; difference %.1e; ready "
           "in %.1f ms\n",
           own / best, own_peak, peak, own_peak / peak, worst, ms);
    code->destroy(code);
    launch_finish(&l);
}

static void bench_vecadd(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { 256, 1, 1 };
    struct series jit = { .name = "gmux" };
    struct launch l;
    double ms;
    launch_init(&l);
    float *x = launch_alloc(&l, (size_t)n * 4), *y = launch_alloc(&l, (size_t)n * 4),
          *z = launch_alloc(&l, (size_t)n * 4);
    for (int i = 0; i < n; i++) {
        x[i] = (float)i;
        y[i] = (float)(2 * i);
    }
    LAUNCH_PARAM(&l, void *, x);
    LAUNCH_PARAM(&l, void *, y);
    LAUNCH_PARAM(&l, void *, z);
    LAUNCH_PARAM(&l, int, n);
    struct soft_code *code = compile(c, VECADD_PTX, "vecadd", isa, block, &ms);
    const uint32_t grid[3] = { ((uint32_t)n + 255) / 256, 1, 1 };
    int times = GM_MAX(1, (4 << 20) / n);
    for (int r = 0; r < rounds; r++) {
        uint64_t begin = gm_thread_cpu_ns();
        for (int k = 0; k < times; k++)
            if (launch_run(&l, code, grid, block, 0) != SOFT_DONE)
                fprintf(stderr, "vecadd: fault\n");
        jit.values[r] = 12.0 * n * times / (double)(gm_thread_cpu_ns() - begin);
    }
    printf("vecadd n=%d: gmux %.1f GB/s, ready in %.1f ms\n", n, median(&jit, rounds), ms);
    code->destroy(code);
    launch_finish(&l);
}

static void bench_matmul(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { TILE, TILE, 1 };
    struct series jit = { .name = "gmux" };
    struct launch l;
    double ms;
    uint32_t seed = 3;
    launch_init(&l);
    float *z = launch_alloc(&l, (size_t)n * n * 4), *x = launch_alloc(&l, (size_t)n * n * 4),
          *y = launch_alloc(&l, (size_t)n * n * 4);
    for (int i = 0; i < n * n; i++) {
        x[i] = noise(&seed);
        y[i] = noise(&seed);
    }
    LAUNCH_PARAM(&l, void *, x);
    LAUNCH_PARAM(&l, void *, y);
    LAUNCH_PARAM(&l, void *, z);
    LAUNCH_PARAM(&l, int, n);
    struct soft_code *code = compile(c, MATMUL_PTX, "matmul", isa, block, &ms);
    const uint32_t grid[3] = { (uint32_t)n / TILE, (uint32_t)n / TILE, 1 };
    for (int r = 0; r < rounds; r++) {
        uint64_t begin = gm_thread_cpu_ns();
        if (launch_run(&l, code, grid, block, 64 << 10) != SOFT_DONE)
            fprintf(stderr, "matmul: fault\n");
        jit.values[r] = 2.0 * n * n * n / (double)(gm_thread_cpu_ns() - begin);
    }
    printf("matmul n=%d: gmux %.1f GFLOP/s, ready in %.1f ms\n", n, median(&jit, rounds), ms);
    code->destroy(code);
    launch_finish(&l);
}

static void bench_mandelbrot(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { 32, 8, 1 };
    struct series jit = { .name = "gmux" };
    struct launch l;
    double ms;
    launch_init(&l);
    int *counts = launch_alloc(&l, (size_t)n * n * 4);
    LAUNCH_PARAM(&l, void *, counts);
    LAUNCH_PARAM(&l, int, n);
    LAUNCH_PARAM(&l, int, n);
    LAUNCH_PARAM(&l, float, -2.2f);
    LAUNCH_PARAM(&l, float, -1.5f);
    LAUNCH_PARAM(&l, float, 3.0f / (float)n);
    LAUNCH_PARAM(&l, float, 3.0f / (float)n);
    LAUNCH_PARAM(&l, int, 1000);
    struct soft_code *code = compile(c, MANDELBROT_PTX, "mandelbrot", isa, block, &ms);
    const uint32_t grid[3] = { (uint32_t)n / 32, (uint32_t)n / 8, 1 };
    double iterations = 0;
    for (int r = 0; r < rounds; r++) {
        uint64_t begin = gm_thread_cpu_ns();
        if (launch_run(&l, code, grid, block, 0) != SOFT_DONE)
            fprintf(stderr, "mandelbrot: fault\n");
        uint64_t took = gm_thread_cpu_ns() - begin;
        if (r == 0)
            for (int i = 0; i < n * n; i++)
                iterations += counts[i];
        jit.values[r] = iterations / (double)took;
    }
    printf("mandelbrot n=%d: gmux %.2f Giter/s, ready in %.1f ms\n", n, median(&jit, rounds), ms);
    code->destroy(code);
    launch_finish(&l);
}

/* From key to runnable code, out of the cache on disk. */
static void bench_cache(const char *helper, uint32_t isa)
{
    static const struct {
        const char *path, *entry;
    } kernels[] = { { VECADD_PTX, "vecadd" },
                    { MATMUL_PTX, "matmul" },
                    { NBODY_PTX, "nbody_f32" } };
    char directory[] = "/tmp/gmux-bench-XXXXXX", command[64], why[512];
    if (!mkdtemp(directory))
        launch_die("directory");
    struct soft_compiler_config config = { .helper = helper, .cache_dir = directory };
    struct soft_compiler *c;
    bool unsupported;
    if (soft_compiler_create(&c, &config) < 0)
        launch_die("compiler");
    for (size_t k = 0; k < GM_ARRAY_LEN(kernels); k++) {
        struct series s = { .name = "cache" };
        struct soft_job job = { .entry = kernels[k].entry, .options = { .isa = isa } };
        job.text = read_text(kernels[k].path, &job.text_size);
        struct soft_code *code = soft_compiler_compile(c, &job, &unsupported, why, sizeof(why));
        for (int r = 0; r < ROUNDS_MAX; r++) {
            if (code)
                code->destroy(code);
            uint64_t begin = gm_now_ns();
            code = soft_compiler_lookup(c, &job);
            s.values[r] = (double)(gm_now_ns() - begin) / 1e6;
        }
        printf("%s from the cache: %s%.3f ms\n", kernels[k].entry, code ? "" : "MISS ",
               median(&s, ROUNDS_MAX));
        if (code)
            code->destroy(code);
    }
    soft_compiler_destroy(c);
    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    if (system(command) != 0)
        fprintf(stderr, "%s is left\n", directory);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "jit", required_argument, NULL, 'j' },
        { "isa", required_argument, NULL, 'i' },
        { "rounds", required_argument, NULL, 'r' },
        { "bodies", required_argument, NULL, 'n' },
        { NULL, 0, NULL, 0 },
    };
    struct soft_compiler_config config = { .helper = GMUX_JIT_PATH, .cache_dir = "" };
    struct soft_compiler *c;
    uint32_t isa = SOFT_ISA_NATIVE;
    int rounds = 9, n = 8192, o;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (o == 'j')
            config.helper = optarg;
        else if (o == 'i')
            isa = strcmp(optarg, "avx2") == 0 ? SOFT_ISA_AVX2 : SOFT_ISA_NATIVE;
        else if (o == 'r')
            rounds = atoi(optarg);
        else if (o == 'n')
            n = (atoi(optarg) + 255) / 256 * 256;
        else
            return 1;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || soft_compiler_create(&c, &config) < 0)
        return 1;
    bench_nbody(c, isa, n, rounds);
    bench_vecadd(c, isa, 64 << 10, rounds);
    bench_vecadd(c, isa, 16 << 20, rounds);
    bench_mandelbrot(c, isa, 512, rounds);
    bench_matmul(c, isa, 512, rounds);
    soft_compiler_destroy(c);
    bench_cache(config.helper, isa);
    return 0;
}
