/*
 * Every example kernel, compiled for each instruction set that there is, against the same thing
 * written in C; and what the compiler client does with good and bad jobs.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/soft/loader/compiler.h"
#include "launch.h"

static struct soft_compiler *compiler;
static struct launch l;

static char *read_text(const char *name, size_t *size)
{
    char path[512];
    const char *root = getenv("GMUX_EXAMPLES");
    cr_assert_not_null(root);
    snprintf(path, sizeof(path), "%s/%s/kernel.ptx", root, name);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    char *text = malloc(1 << 20);
    cr_assert_not_null(text);
    *size = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static void setup(void)
{
    struct soft_compiler_config config = { .cache_dir = "" };
    cr_assert_eq(soft_compiler_create(&compiler, &config), 0);
    launch_init(&l);
}

static void teardown(void)
{
    launch_finish(&l);
    soft_compiler_destroy(compiler);
}

static bool isa_here(uint32_t isa)
{
#if defined(__x86_64__)
    return isa == SOFT_ISA_NATIVE || (isa == SOFT_ISA_AVX2 && __builtin_cpu_supports("avx2"));
#else
    return isa == SOFT_ISA_NATIVE;
#endif
}

static struct soft_code *compile(const char *name, const char *entry, uint32_t isa,
                                 const uint32_t block[3])
{
    struct soft_job job = { .entry = entry, .options = { .isa = isa } };
    bool unsupported;
    char why[512] = "";
    char *text = read_text(name, &job.text_size);
    job.text = text;
    if (block)
        memcpy(job.options.ntid, block, sizeof(job.options.ntid));
    struct soft_code *code = soft_compiler_compile(compiler, &job, &unsupported, why, sizeof(why));
    free(text);
    cr_assert_not_null(code, "%s: %s", entry, why);
    cr_assert_str_eq(code->tier, "compiled");
    return code;
}

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

#define FOR_ISAS(isa)                                                                              \
    for (uint32_t isa = SOFT_ISA_NATIVE; isa <= SOFT_ISA_AVX2; isa++)                              \
        if (isa_here(isa))

TestSuite(examples, .init = setup, .fini = teardown, .timeout = 60);

/* Sizes at which the last warp is full, partly there, and whole warps of the last block are not. */
Test(examples, vecadd)
{
    static const int sizes[] = { 1, 31, 32, 33, 255, 256, 1000, 4096 };
    const uint32_t block[3] = { 256, 1, 1 };
    float *a = launch_alloc(&l, 4096 * 4), *b = launch_alloc(&l, 4096 * 4),
          *c = launch_alloc(&l, 4100 * 4);
    uint32_t seed = 1;
    for (int i = 0; i < 4096; i++) {
        a[i] = noise(&seed);
        b[i] = noise(&seed);
    }
    FOR_ISAS(isa)
    for (int any = 0; any < 2; any++) {
        struct soft_code *code = compile("vecadd", "vecadd", isa, any ? NULL : block);
        for (size_t k = 0; k < GM_ARRAY_LEN(sizes); k++) {
            int n = sizes[k];
            const uint32_t grid[3] = { (uint32_t)(n + 255) / 256, 1, 1 };
            for (int i = 0; i < 4100; i++)
                c[i] = -7;
            l.params_size = 0;
            LAUNCH_PARAM(&l, void *, a);
            LAUNCH_PARAM(&l, void *, b);
            LAUNCH_PARAM(&l, void *, c);
            LAUNCH_PARAM(&l, int, n);
            cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_DONE);
            for (int i = 0; i < 4100; i++)
                cr_assert_eq(c[i], i < n ? a[i] + b[i] : -7, "n %d, element %d", n, i);
        }
        code->destroy(code);
    }
}

Test(examples, reduction)
{
    static const uint32_t blocks[][3] = {
        { 256, 1, 1 }, { 32, 1, 1 }, { 1024, 1, 1 }, { 96, 1, 1 }
    };
    enum { N = 100003 };
    float *in = launch_alloc(&l, N * 4), *out = launch_alloc(&l, 4);
    uint32_t seed = 2;
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += in[i] = noise(&seed);
    FOR_ISAS(isa)
    for (size_t k = 0; k < GM_ARRAY_LEN(blocks); k++) {
        struct soft_code *code = compile("reduction", "reduce_sum", isa, blocks[k]);
        const uint32_t grid[3] = { 7, 1, 1 };
        *out = 0;
        l.params_size = 0;
        LAUNCH_PARAM(&l, void *, in);
        LAUNCH_PARAM(&l, void *, out);
        LAUNCH_PARAM(&l, int, N);
        cr_assert_eq(launch_run(&l, code, grid, blocks[k], 128), SOFT_DONE);
        cr_assert_lt(fabs(*out - sum), 0.05, "isa %u block %u: %f, not %f", isa, blocks[k][0],
                     (double)*out, sum);
        code->destroy(code);
    }
}

static unsigned mandelbrot_point(float cx, float cy, int limit)
{
    float x = 0, y = 0;
    int i = 0;
    /* As the PTX has it: which products are fused matters at the rim. */
    while (i < limit) {
        float yy = y * y;
        if (fmaf(x, x, yy) > 4.0f)
            break;
        float t = cx + (x * x - yy);
        y = fmaf(x + x, y, cy);
        x = t;
        i++;
    }
    return (unsigned)i;
}

Test(examples, mandelbrot)
{
    static const uint32_t blocks[][3] = { { 16, 16, 1 }, { 32, 4, 1 }, { 64, 1, 1 } };
    enum { WIDTH = 150, HEIGHT = 70, LIMIT = 300 };
    unsigned *out = launch_alloc(&l, WIDTH * HEIGHT * 4);
    const float x0 = -2, y0 = -1.2f, dx = 3.0f / WIDTH, dy = 2.4f / HEIGHT;
    LAUNCH_PARAM(&l, void *, out);
    LAUNCH_PARAM(&l, int, WIDTH);
    LAUNCH_PARAM(&l, int, HEIGHT);
    LAUNCH_PARAM(&l, float, x0);
    LAUNCH_PARAM(&l, float, y0);
    LAUNCH_PARAM(&l, float, dx);
    LAUNCH_PARAM(&l, float, dy);
    LAUNCH_PARAM(&l, int, LIMIT);
    FOR_ISAS(isa)
    for (size_t k = 0; k < GM_ARRAY_LEN(blocks) * 2; k++) {
        const uint32_t *block = blocks[k / 2];
        struct soft_code *code = compile("mandelbrot", "mandelbrot", isa, k % 2 ? NULL : block);
        const uint32_t grid[3] = { (WIDTH + block[0] - 1) / block[0],
                                   (HEIGHT + block[1] - 1) / block[1], 1 };
        memset(out, 0xff, WIDTH * HEIGHT * 4);
        cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_DONE);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                cr_assert_eq(
                    out[y * WIDTH + x],
                    mandelbrot_point(fmaf((float)x, dx, x0), fmaf((float)y, dy, y0), LIMIT),
                    "isa %u block %u: point %d %d", isa, block[0], x, y);
        code->destroy(code);
    }
}

Test(examples, matmul)
{
    enum { N = 96 };
    const uint32_t block[3] = { 32, 32, 1 }, grid[3] = { N / 32, N / 32, 1 };
    float *a = launch_alloc(&l, N * N * 4), *b = launch_alloc(&l, N * N * 4),
          *c = launch_alloc(&l, N * N * 4);
    uint32_t seed = 5;
    for (int i = 0; i < N * N; i++) {
        a[i] = noise(&seed);
        b[i] = noise(&seed);
    }
    LAUNCH_PARAM(&l, void *, a);
    LAUNCH_PARAM(&l, void *, b);
    LAUNCH_PARAM(&l, void *, c);
    LAUNCH_PARAM(&l, int, N);
    FOR_ISAS(isa)
    {
        struct soft_code *code = compile("matmul", "matmul", isa, block);
        memset(c, 0, N * N * 4);
        cr_assert_eq(launch_run(&l, code, grid, block, 8192), SOFT_DONE);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < N; k++)
                    sum += (double)a[i * N + k] * b[k * N + j];
                cr_assert_lt(fabs(sum - c[i * N + j]), 1e-4);
            }
        code->destroy(code);
    }
}

#define DEFINE_NBODY(type, name, tolerance)                                                        \
    Test(examples, name)                                                                           \
    {                                                                                              \
        enum { N = 512 };                                                                          \
        const uint32_t block[3] = { 256, 1, 1 }, grid[3] = { N / 256, 1, 1 };                      \
        type *out = launch_alloc(&l, N * 4 * sizeof(type)),                                        \
             *in = launch_alloc(&l, N * 4 * sizeof(type));                                         \
        type *v = launch_alloc(&l, N * 4 * sizeof(type));                                          \
        uint32_t seed = 9;                                                                         \
        for (int i = 0; i < 4 * N; i++)                                                            \
            in[i] = (type)noise(&seed) + (i % 4 == 3 ? 1 : 0);                                     \
        LAUNCH_PARAM(&l, void *, out);                                                             \
        LAUNCH_PARAM(&l, void *, in);                                                              \
        LAUNCH_PARAM(&l, void *, v);                                                               \
        LAUNCH_PARAM(&l, int, N);                                                                  \
        LAUNCH_PARAM(&l, type, (type)0.5);                                                         \
        LAUNCH_PARAM(&l, type, (type)1);                                                           \
        LAUNCH_PARAM(&l, type, (type)0.01);                                                        \
        FOR_ISAS(isa)                                                                              \
        {                                                                                          \
            struct soft_code *code = compile("nbody", #name, isa, block);                          \
            memset(v, 0, N * 4 * sizeof(type));                                                    \
            cr_assert_eq(launch_run(&l, code, grid, block, 256 * 4 * sizeof(type)), SOFT_DONE);    \
            for (int i = 0; i < N; i++) {                                                          \
                double a[3] = { 0 };                                                               \
                for (int j = 0; j < N; j++) {                                                      \
                    double d[3], d2 = (double)(type)0.01;                                          \
                    for (int c = 0; c < 3; c++) {                                                  \
                        d[c] = (double)in[4 * j + c] - (double)in[4 * i + c];                      \
                        d2 += d[c] * d[c];                                                         \
                    }                                                                              \
                    double inv = 1 / sqrt(d2), s = (double)in[4 * j + 3] * inv * inv * inv;        \
                    for (int c = 0; c < 3; c++)                                                    \
                        a[c] += d[c] * s;                                                          \
                }                                                                                  \
                for (int c = 0; c < 3; c++) {                                                      \
                    cr_assert_lt(fabs(a[c] * 0.5 - (double)v[4 * i + c]),                          \
                                 tolerance *(1 + fabs(a[c])));                                     \
                    cr_assert_lt(                                                                  \
                        fabs((double)in[4 * i + c] + a[c] * 0.25 - (double)out[4 * i + c]),        \
                        tolerance *(1 + fabs(a[c])));                                              \
                }                                                                                  \
            }                                                                                      \
            code->destroy(code);                                                                   \
        }                                                                                          \
    }
DEFINE_NBODY(float, nbody_f32, 1e-4)
DEFINE_NBODY(double, nbody_f64, 1e-12)

/* An address outside of the window ends the block and is reported with its thread, whatever form
 * the access has. */
Test(examples, addresses_are_checked)
{
    const uint32_t block[3] = { 64, 1, 1 }, grid[3] = { 1, 1, 1 };
    float *a = launch_alloc(&l, 4096);
    uint64_t end = LAUNCH_WINDOW + LAUNCH_WINDOW_SIZE;
    const struct {
        uint64_t b;
        uint64_t fault;
        uint32_t thread;
        enum soft_outcome outcome;
    } cases[] = {
        { end - 64 * 4, 0, 0, SOFT_DONE },
        { end - 63 * 4, end, 63, SOFT_FAULT_ADDRESS },
        { end - 5 * 4, end, 5, SOFT_FAULT_ADDRESS },
        { LAUNCH_WINDOW - 8, LAUNCH_WINDOW - 8, 0, SOFT_FAULT_ADDRESS },
        { 16, 16, 0, SOFT_FAULT_ADDRESS },
        { UINT64_MAX - 15, UINT64_MAX - 15, 0, SOFT_FAULT_ADDRESS },
        { LAUNCH_WINDOW + 2, LAUNCH_WINDOW + 2, 0, SOFT_FAULT_MISALIGNED },
    };
    FOR_ISAS(isa)
    {
        struct soft_code *code = compile("vecadd", "vecadd", isa, block);
        for (size_t k = 0; k < GM_ARRAY_LEN(cases); k++) {
            l.params_size = 0;
            LAUNCH_PARAM(&l, void *, a);
            LAUNCH_PARAM(&l, uint64_t, cases[k].b);
            LAUNCH_PARAM(&l, void *, a);
            LAUNCH_PARAM(&l, int, 64);
            cr_assert_eq(launch_run(&l, code, grid, block, 0), cases[k].outcome, "case %zu", k);
            if (cases[k].outcome == SOFT_DONE)
                continue;
            cr_assert_eq(l.block.fault_address, cases[k].fault, "case %zu: %llx", k,
                         (unsigned long long)l.block.fault_address);
            cr_assert_eq(l.block.fault_thread, cases[k].thread, "case %zu", k);
        }
        code->destroy(code);
    }
}

/* One call runs several blocks: a fault is that of the block where it happens. */
Test(examples, faults_in_a_row_of_blocks)
{
    const uint32_t block[3] = { 64, 1, 1 }, grid[3] = { 5, 1, 1 };
    float *a = launch_alloc(&l, 4096);
    uint64_t end = LAUNCH_WINDOW + LAUNCH_WINDOW_SIZE;
    FOR_ISAS(isa)
    {
        struct soft_code *code = compile("vecadd", "vecadd", isa, block);
        cr_assert_gt(code->row, 3);
        for (uint32_t n = 0; n < 5; n++) {
            l.params_size = 0;
            LAUNCH_PARAM(&l, void *, a);
            LAUNCH_PARAM(&l, uint64_t, end - (64 * n + 7) * 4);
            LAUNCH_PARAM(&l, void *, a);
            LAUNCH_PARAM(&l, int, 5 * 64);
            cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_FAULT_ADDRESS);
            cr_assert_eq(l.block.ctaid[0], n);
            cr_assert_eq(l.block.fault_thread, 7);
        }
        code->destroy(code);
    }
}

/* Code for one block size refuses to run another. */
Test(examples, block_size_is_checked)
{
    const uint32_t made[3] = { 64, 1, 1 }, run[3] = { 128, 1, 1 }, grid[3] = { 1, 1, 1 };
    struct soft_code *code = compile("vecadd", "vecadd", SOFT_ISA_NATIVE, made);
    LAUNCH_PARAM(&l, uint64_t, 0);
    LAUNCH_PARAM(&l, uint64_t, 0);
    LAUNCH_PARAM(&l, uint64_t, 0);
    LAUNCH_PARAM(&l, int, 0);
    cr_assert_eq(launch_run(&l, code, grid, run, 0), SOFT_FAULT_UNSUPPORTED);
    cr_assert_eq(launch_run(&l, code, grid, made, 0), SOFT_DONE);
    code->destroy(code);
}

static void refuse(const char *text, const char *entry, const char *expected)
{
    struct soft_job job = { .text = text, .text_size = strlen(text), .entry = entry };
    bool unsupported;
    char why[512] = "";
    cr_assert_null(soft_compiler_compile(compiler, &job, &unsupported, why, sizeof(why)));
    cr_assert_not_null(strstr(why, expected), "%s", why);
    cr_assert_null(strchr(why, '\n'));
}

/* Bad jobs fail with a reason and the next good one succeeds. */
Test(examples, bad_jobs)
{
    refuse("", "k", "");
    refuse("nonsense", "k", "1:1");
    refuse(".version 8.5\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n", "other",
           "no entry");
    char *deep = malloc(1 << 20);
    memset(deep, '{', (1 << 20) - 1);
    deep[(1 << 20) - 1] = 0;
    refuse(deep, "k", "");
    free(deep);
    struct soft_code *code = compile("vecadd", "vecadd", SOFT_ISA_NATIVE, NULL);
    code->destroy(code);
}

struct count {
    int done, failed;
};

static void count_done(void *arg, struct soft_code *code, bool unsupported, const char *reason)
{
    struct count *c = arg;
    if (code)
        code->destroy(code);
    else
        c->failed++;
    c->done++;
}

/* Every submitted job gets its callback, also when the compiler goes away first. */
Test(examples, destroy_with_jobs_waiting)
{
    struct soft_compiler_config config = { .cache_dir = "" };
    struct soft_compiler *c;
    struct count count = { 0, 0 };
    struct soft_job job = { .entry = "nbody_f32" };
    char *text = read_text("nbody", &job.text_size);
    job.text = text;
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    for (int k = 0; k < 20; k++)
        cr_assert_eq(soft_compiler_submit(c, &job, count_done, &count), 0);
    soft_compiler_destroy(c);
    cr_assert_eq(count.done, 20);
    cr_assert_gt(count.failed, 0);
    free(text);
}

/* The second process finds the object that the first one made. */
Test(examples, cache)
{
    char directory[] = "/tmp/gmux-jit-test-XXXXXX", command[64];
    cr_assert_not_null(mkdtemp(directory));
    struct soft_compiler_config config = { .cache_dir = directory };
    struct soft_job job = { .entry = "vecadd" };
    char *text = read_text("vecadd", &job.text_size), why[512];
    struct soft_compiler *c;
    bool unsupported;
    job.text = text;
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    cr_assert_null(soft_compiler_lookup(c, &job));
    struct soft_code *code = soft_compiler_compile(c, &job, &unsupported, why, sizeof(why));
    cr_assert_not_null(code, "%s", why);
    code->destroy(code);
    soft_compiler_destroy(c);
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    code = soft_compiler_lookup(c, &job);
    cr_assert_not_null(code);
    code->destroy(code);
    job.options.ntid[0] = 32;
    job.options.ntid[1] = job.options.ntid[2] = 1;
    cr_assert_null(soft_compiler_lookup(c, &job));
    soft_compiler_destroy(c);
    free(text);
    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}
