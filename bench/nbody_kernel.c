/* Built twice, for floats and, with NBODY_F64, for doubles. */
#include "bench/nbody_kernel.h"

#include <math.h>

#include "bench/measure.h"
#include "bench/nbody_loops.h"

#define LOOPS 4

static const struct {
    const char *name;
    nbody_loop *run;
} loops[LOOPS] = { { "over j", NBODY_NAME(nbody_loop_over_j) },
                   { "16 i", NBODY_NAME(nbody_loop_16) },
                   { "32 i", NBODY_NAME(nbody_loop_32) },
                   { "64 i", NBODY_NAME(nbody_loop_64) } };

static nbody_real *numbers(int n)
{
    nbody_real *p = aligned_alloc(64, (size_t)n * sizeof(*p));
    if (!p)
        launch_die("memory");
    return p;
}

static double size_of(double x, double y, double z)
{
    return fabs(x) + fabs(y) + fabs(z);
}

/* The text, which is freed, with .ftz in every instruction on f32 that the kernel has. */
static char *with_ftz(char *text, size_t *size)
{
    static const char *const operations[] = { "add", "sub", "mul", "fma.rn", "rsqrt.approx" };
    char *out = malloc(2 * *size), *end = out;
    if (!out)
        launch_die("memory");
    for (const char *from = text, *stop = text + *size; from < stop;) {
        size_t name = 0;
        for (size_t k = 0; k < GM_ARRAY_LEN(operations) && !name; k++) {
            size_t length = strlen(operations[k]);
            if ((size_t)(stop - from) > length + 4 && !memcmp(from, operations[k], length) &&
                !memcmp(from + length, ".f32", 4))
                name = length;
        }
        memcpy(end, from, GM_MAX(name, 1u));
        end += GM_MAX(name, 1u);
        from += GM_MAX(name, 1u);
        if (name) {
            memcpy(end, ".ftz", 4);
            end += 4;
        }
    }
    free(text);
    *size = (size_t)(end - out);
    return out;
}

/* How far the kernel's accelerations are from the loops', at most. */
static double worst_difference(const struct nbody_loop_data *d, const nbody_real *velocity)
{
    double worst = 0;
    for (int i = 0; i < d->n; i++) {
        const nbody_real *v = velocity + 4 * i;
        double error = size_of((double)v[0] - (double)d->ax[i], (double)v[1] - (double)d->ay[i],
                               (double)v[2] - (double)d->az[i]);
        worst = GM_MAX(worst,
                       error / (size_of((double)d->ax[i], (double)d->ay[i], (double)d->az[i]) + 1));
    }
    return worst;
}

void NBODY_NAME(bench_nbody)(struct soft_compiler *c, uint32_t isa, int n, int rounds, bool ftz)
{
    static const uint32_t block[3] = { 256, 1, 1 };
    const uint32_t grid[3] = { (uint32_t)n / 256, 1, 1 };
    const char *entry = sizeof(nbody_real) == 8 ? "nbody_f64" : "nbody_f32";
    const size_t bytes = (size_t)n * 4 * sizeof(nbody_real);
    const double work = 20.0 * n * n;
    struct nbody_loop_data d = { n,          numbers(n), numbers(n), numbers(n),      numbers(n),
                                 numbers(n), numbers(n), numbers(n), (nbody_real)0.01 };
    double rates[LOOPS + 1][ROUNDS_MAX], ms;
    uint32_t seed = 1;
    struct launch l;
    launch_init(&l);
    nbody_real *out = launch_alloc(&l, bytes), *in = launch_alloc(&l, bytes);
    nbody_real *velocity = launch_alloc(&l, bytes);
    for (int i = 0; i < n; i++) {
        in[4 * i] = d.x[i] = measure_noise(&seed);
        in[4 * i + 1] = d.y[i] = measure_noise(&seed);
        in[4 * i + 2] = d.z[i] = measure_noise(&seed);
        in[4 * i + 3] = d.m[i] = measure_noise(&seed) + 1;
    }
    LAUNCH_PARAM(&l, void *, out);
    LAUNCH_PARAM(&l, void *, in);
    LAUNCH_PARAM(&l, void *, velocity);
    LAUNCH_PARAM(&l, int, n);
    LAUNCH_PARAM(&l, nbody_real, 1);
    LAUNCH_PARAM(&l, nbody_real, 1);
    LAUNCH_PARAM(&l, nbody_real, d.softening2);
    size_t size;
    char *text = read_text(NBODY_PTX, &size);
    if (ftz)
        text = with_ftz(text, &size);
    struct soft_code *code = measure_compile(c, text, size, entry, isa, block, &ms);
    for (int r = 0; r < rounds; r++) {
        memset(velocity, 0, bytes);
        uint64_t begin = gm_thread_cpu_ns();
        if (launch_run(&l, code, grid, block, 8192) != SOFT_DONE)
            launch_die("nbody: fault");
        rates[LOOPS][r] = work / (double)(gm_thread_cpu_ns() - begin);
        for (int k = 0; k < LOOPS; k++) {
            begin = gm_thread_cpu_ns();
            loops[k].run(&d, 0, n);
            rates[k][r] = work / (double)(gm_thread_cpu_ns() - begin);
        }
    }
    const double own = median_of(rates[LOOPS], rounds);
    double best = 0;
    printf("%s%s n=%d: gmux %.1f GFLOP/s", entry, ftz ? " .ftz" : "", n, own);
    for (int k = 0; k < LOOPS; k++) {
        double m = median_of(rates[k], rounds);
        printf(", C %s %.1f", loops[k].name, m);
        best = GM_MAX(best, m);
    }
    printf("; ratio of medians %.3f; difference %.1e; ready in %.1f ms\n", own / best,
           worst_difference(&d, velocity), ms);
    code->destroy(code);
    launch_finish(&l);
}
