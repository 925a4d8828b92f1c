/*
 * Compiled kernels against the best C loops, one thread, in one process, taking turns: medians of
 * processor time and their ratio. And how long code takes to get ready, compiled and from the
 * cache.
 *
 *   soft_kernels [--jit PATH] [--isa native|avx2] [--rounds N] [--bodies N]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/measure.h"
#include "bench/nbody_kernel.h"
#include "device/soft/loader/compiler.h"

#define TILE 32 /* of matmul */

static void bench_vecadd(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { 256, 1, 1 };
    double rates[ROUNDS_MAX];
    struct launch l;
    double ms;
    size_t size;
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
    char *text = read_text(VECADD_PTX, &size);
    struct soft_code *code = measure_compile(c, text, size, "vecadd", isa, block, &ms);
    const uint32_t grid[3] = { ((uint32_t)n + 255) / 256, 1, 1 };
    int times = GM_MAX(1, (4 << 20) / n);
    for (int r = 0; r < rounds; r++) {
        uint64_t begin = gm_thread_cpu_ns();
        for (int k = 0; k < times; k++)
            if (launch_run(&l, code, grid, block, 0) != SOFT_DONE)
                fprintf(stderr, "vecadd: fault\n");
        rates[r] = 12.0 * n * times / (double)(gm_thread_cpu_ns() - begin);
    }
    printf("vecadd n=%d: gmux %.1f GB/s, ready in %.1f ms\n", n, median_of(rates, rounds), ms);
    code->destroy(code);
    launch_finish(&l);
}

static void bench_matmul(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { TILE, TILE, 1 };
    double rates[ROUNDS_MAX];
    struct launch l;
    double ms;
    size_t size;
    uint32_t seed = 3;
    launch_init(&l);
    float *z = launch_alloc(&l, (size_t)n * n * 4), *x = launch_alloc(&l, (size_t)n * n * 4),
          *y = launch_alloc(&l, (size_t)n * n * 4);
    for (int i = 0; i < n * n; i++) {
        x[i] = measure_noise(&seed);
        y[i] = measure_noise(&seed);
    }
    LAUNCH_PARAM(&l, void *, x);
    LAUNCH_PARAM(&l, void *, y);
    LAUNCH_PARAM(&l, void *, z);
    LAUNCH_PARAM(&l, int, n);
    char *text = read_text(MATMUL_PTX, &size);
    struct soft_code *code = measure_compile(c, text, size, "matmul", isa, block, &ms);
    const uint32_t grid[3] = { (uint32_t)n / TILE, (uint32_t)n / TILE, 1 };
    for (int r = 0; r < rounds; r++) {
        uint64_t begin = gm_thread_cpu_ns();
        if (launch_run(&l, code, grid, block, 64 << 10) != SOFT_DONE)
            fprintf(stderr, "matmul: fault\n");
        rates[r] = 2.0 * n * n * n / (double)(gm_thread_cpu_ns() - begin);
    }
    printf("matmul n=%d: gmux %.1f GFLOP/s, ready in %.1f ms\n", n, median_of(rates, rounds), ms);
    code->destroy(code);
    launch_finish(&l);
}

static void bench_mandelbrot(struct soft_compiler *c, uint32_t isa, int n, int rounds)
{
    static const uint32_t block[3] = { 32, 8, 1 };
    double rates[ROUNDS_MAX];
    struct launch l;
    double ms;
    size_t size;
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
    char *text = read_text(MANDELBROT_PTX, &size);
    struct soft_code *code = measure_compile(c, text, size, "mandelbrot", isa, block, &ms);
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
        rates[r] = iterations / (double)took;
    }
    printf("mandelbrot n=%d: gmux %.2f Giter/s, ready in %.1f ms\n", n, median_of(rates, rounds),
           ms);
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
        double times[ROUNDS_MAX];
        struct soft_job job = { .entry = kernels[k].entry, .options = { .isa = isa } };
        job.text = read_text(kernels[k].path, &job.text_size);
        struct soft_code *code = soft_compiler_compile(c, &job, &unsupported, why, sizeof(why));
        for (int r = 0; r < ROUNDS_MAX; r++) {
            if (code)
                code->destroy(code);
            uint64_t begin = gm_now_ns();
            code = soft_compiler_lookup(c, &job);
            times[r] = (double)(gm_now_ns() - begin) / 1e6;
        }
        printf("%s from the cache: %s%.3f ms\n", kernels[k].entry, code ? "" : "MISS ",
               median_of(times, ROUNDS_MAX));
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
    bench_nbody_f32(c, isa, n, rounds, false);
    bench_nbody_f32(c, isa, n, rounds, true);
    bench_nbody_f64(c, isa, n, rounds, false);
    bench_vecadd(c, isa, 64 << 10, rounds);
    bench_vecadd(c, isa, 16 << 20, rounds);
    bench_mandelbrot(c, isa, 512, rounds);
    bench_matmul(c, isa, 512, rounds);
    soft_compiler_destroy(c);
    bench_cache(config.helper, isa);
    return 0;
}
