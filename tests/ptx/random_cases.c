/*
 * Random kernels in two ways, whose outputs must be equal bit for bit.
 *
 *     random_cases [--from=SEED] [--count=N] [--seconds=S] [--against=interp|jit|driver] [--print]
 *                  [--reduce] [--large] [--chains] [--lanes=8|16]
 *
 * The reference is the interpreter with its scalar forms only. `interp` compares each set of vector
 * handlers that this CPU has with it, `jit` compiled code, and changing over to it in the middle of
 * the launch; `driver` the libcuda.so.1 that the loader finds, a GPU's for example. --print writes
 * the kernel of the first seed to standard output instead; --reduce writes a smaller one for each
 * that differs.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "driver.h"
#include "random_ptx.h"
#include "soft.h"

#define THREADS_MAX (3 * 512u)

static bool large;     /* compiled code is made as that of large kernels */
static bool chains;    /* ... of kernels with many ways between blocks */
static uint16_t lanes; /* of a warp of compiled code; 0: as ever */

struct memory {
    uint32_t out[THREADS_MAX * RANDOM_WORDS_OUT];
    uint32_t atoms[RANDOM_WORDS_ATOM];
    enum ptx_fault fault;
};

static struct soft_code *make_code(struct soft_bench *s, const struct random_kernel *k,
                                   enum soft_tier tier, const char *isa, bool *unsupported,
                                   char *why, size_t why_size)
{
    struct soft_job_options options = { .large = large, .chains = chains, .lanes = lanes };
    memcpy(options.ntid, k->block, sizeof(options.ntid));
    setenv("GMUX_INTERP_ISA", isa, 1);
    return soft_bench_code(s, tier, &options, k->text, strlen(k->text), "k", unsupported, why,
                           why_size);
}

static void fill_in(uint32_t in[RANDOM_WORDS_IN])
{
    uint32_t x = 12345;
    for (uint32_t n = 0; n < RANDOM_WORDS_IN; n++)
        in[n] = (x = x * 1664525u + 1013904223u) >> (n % 5 * 6);
}

static void fill_memory(struct memory *m)
{
    memset(m->out, 0xa5, sizeof(m->out));
    memset(m->atoms, 0x5a, sizeof(m->atoms));
}

static bool run_one(struct soft_bench *s, const struct random_kernel *k,
                    const struct soft_code *code, struct memory *m, char *why, size_t why_size)
{
    uint8_t params[64];
    if (!soft_bench_place(s, k->text, strlen(k->text), "k", why, why_size))
        return false;
    uint32_t *in = soft_bench_alloc(s, RANDOM_WORDS_IN * 4),
             *out = soft_bench_alloc(s, sizeof(m->out)),
             *atoms = soft_bench_alloc(s, sizeof(m->atoms));
    fill_in(in);
    fill_memory(m);
    memcpy(out, m->out, sizeof(m->out));
    memcpy(atoms, m->atoms, sizeof(m->atoms));
    memcpy(params + soft_bench_param(s, 0), &in, 8);
    memcpy(params + soft_bench_param(s, 1), &out, 8);
    memcpy(params + soft_bench_param(s, 2), &atoms, 8);
    m->fault = soft_bench_launch(s, code, k->grid, k->block, 0, params, NULL, 0);
    memcpy(m->out, out, sizeof(m->out));
    memcpy(m->atoms, atoms, sizeof(m->atoms));
    return true;
}

static bool run_on_driver(const struct random_kernel *k, struct memory *m, char *why,
                          size_t why_size)
{
    static uint32_t in[RANDOM_WORDS_IN];
    struct driver_launch l = { .text = k->text,
                               .kernel = "k",
                               .grid = k->grid,
                               .block = k->block,
                               .args = { { in, sizeof(in), false },
                                         { m->out, sizeof(m->out), false },
                                         { m->atoms, sizeof(m->atoms), false } },
                               .arg_count = 3 };
    fill_in(in);
    fill_memory(m);
    return driver_run(&l, &m->fault, why, why_size);
}

static bool equal(const struct memory *a, const struct memory *b, char *why, size_t why_size)
{
    if (a->fault != PTX_FAULT_NONE || b->fault != PTX_FAULT_NONE) {
        snprintf(why, why_size, "faults: %s, %s", ptx_fault_name[a->fault],
                 ptx_fault_name[b->fault]);
        return false;
    }
    for (size_t k = 0; k < GM_ARRAY_LEN(a->out); k++)
        if (a->out[k] != b->out[k]) {
            snprintf(why, why_size, "thread %zu word %zu: 0x%08x, 0x%08x", k / RANDOM_WORDS_OUT,
                     k % RANDOM_WORDS_OUT, a->out[k], b->out[k]);
            return false;
        }
    for (size_t k = 0; k < GM_ARRAY_LEN(a->atoms); k++)
        if (a->atoms[k] != b->atoms[k]) {
            snprintf(why, why_size, "atomic word %zu: 0x%08x, 0x%08x", k, a->atoms[k], b->atoms[k]);
            return false;
        }
    return true;
}

/* One way of running a kernel against the reference. 0 equal, 1 different, 2 there is no code. */
static int compare_one(struct soft_bench *s, const struct random_kernel *k,
                       const struct soft_code *code, const struct memory *reference, char *why,
                       size_t why_size)
{
    static struct memory other;
    if (code && run_one(s, k, code, &other, why, why_size) &&
        equal(reference, &other, why, why_size))
        return 0;
    return code ? 1 : 2;
}

static int compare_driver(const struct random_kernel *k, const struct memory *reference, char *why,
                          size_t why_size)
{
    static struct memory other;
    return !run_on_driver(k, &other, why, why_size) || !equal(reference, &other, why, why_size);
}

enum against { VECTORS, COMPILED, DRIVER };

/* One kernel in all ways. 0 equal, 1 different, 2 the compiler cannot do it. In the last two cases
 * `way` is the one that it was, and `why` says more. */
static int compare(struct soft_bench *s, const struct random_kernel *k, enum against against,
                   const char **way, char *why, size_t size)
{
    static const char *const isas[] = { "base", "v3", "v4" };
    static struct memory reference;
    bool unsupported = false;
    struct soft_code *scalar = make_code(s, k, SOFT_TIER_INTERP, "scalar", &unsupported, why, size),
                     *code;
    int result = 1;
    if (!scalar || !run_one(s, k, scalar, &reference, why, size)) {
        *way = "reference";
    } else if (against == DRIVER) {
        *way = "on the driver";
        result = compare_driver(k, &reference, why, size);
    } else if (against == COMPILED) {
        *way = "compiled";
        code = make_code(s, k, SOFT_TIER_JIT, "", &unsupported, why, size);
        result = compare_one(s, k, code, &reference, why, size);
        if (result == 0) {
            *way = "switched";
            struct soft_code *both = soft_bench_switch(scalar, code);
            result = compare_one(s, k, both, &reference, why, size);
            if (both)
                both->destroy(both);
        }
        /* A compiler that needs too long on a busy machine leaves the kernel to the interpreter. */
        result = result == 2 && !unsupported && !strstr(why, "took more than") ? 1 : result;
        if (code)
            code->destroy(code);
    } else {
        result = 0;
        for (unsigned n = 0; result == 0 && n < GM_ARRAY_LEN(isas); n++) {
            *way = isas[n];
            code = make_code(s, k, SOFT_TIER_INTERP, isas[n], &unsupported, why, size);
            result = compare_one(s, k, code, &reference, why, size) ? 1 : 0;
            if (code)
                code->destroy(code);
        }
    }
    if (scalar)
        scalar->destroy(scalar);
    return result;
}

static void print_case(const struct random_kernel *k, const char *text)
{
    printf("// kernel: k\n// grid: %u\n// block: %u %u %u\n%s", k->grid[0], k->block[0],
           k->block[1], k->block[2], text);
}

struct reduction {
    struct soft_bench *s;
    const struct random_kernel *kernel;
    enum against against;
    char why[512];
};

/* Not where the smaller kernel is wrong in itself. */
static bool still_differs(void *arg, const char *text)
{
    struct reduction *r = arg;
    const char *way;
    struct random_kernel less = *r->kernel;
    less.text = (char *)(uintptr_t)text;
    return compare(r->s, &less, r->against, &way, r->why, sizeof(r->why)) == 1 &&
           strstr(r->why, " word ");
}

static void reduce(struct soft_bench *s, const struct random_kernel *k, enum against against)
{
    struct reduction r = { .s = s, .kernel = k, .against = against };
    char *less = random_reduce(k->text, still_differs, &r);
    still_differs(&r, less);
    printf("# the smaller one: %s\n", r.why);
    print_case(k, less);
    free(less);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "vector handlers", "compiled code", "the driver" };
    static const struct option options[] = {
        { "from", required_argument, NULL, 'f' },    { "count", required_argument, NULL, 'c' },
        { "seconds", required_argument, NULL, 's' }, { "against", required_argument, NULL, 'a' },
        { "print", no_argument, NULL, 'p' },         { "reduce", no_argument, NULL, 'r' },
        { "large", no_argument, NULL, 'l' },         { "lanes", required_argument, NULL, 'n' },
        { "chains", no_argument, NULL, 'k' },        { NULL, 0, NULL, 0 },
    };
    uint64_t from = 1, count = 100, failed = 0, skipped = 0, until = UINT64_MAX, done = 0;
    enum against against = VECTORS;
    bool print = false, reducing = false;
    for (int o; (o = getopt_long(argc, argv, "f:c:s:a:prln:k", options, NULL)) != -1;) {
        if (o == 'f')
            from = strtoull(optarg, NULL, 0);
        else if (o == 'c')
            count = strtoull(optarg, NULL, 0);
        else if (o == 's')
            until = gm_now_ns() + strtoull(optarg, NULL, 0) * GM_NS_PER_S;
        else if (o == 'a')
            against = strcmp(optarg, "jit") == 0      ? COMPILED
                      : strcmp(optarg, "driver") == 0 ? DRIVER
                                                      : VECTORS;
        else if (o == 'l')
            large = true;
        else if (o == 'k')
            chains = true;
        else if (o == 'n')
            lanes = (uint16_t)strtoul(optarg, NULL, 0);
        else if (o == 'p')
            print = true;
        else if (o == 'r')
            reducing = true;
        else
            return 2;
    }
    if (print) {
        struct random_kernel k = random_kernel_make(from, against == DRIVER);
        print_case(&k, k.text);
        free(k.text);
        return 0;
    }
    struct soft_bench *s = soft_bench_create();
    if (against == COMPILED && !soft_bench_has_jit(s)) {
        printf("1..0 # SKIP no compiler here\n");
        soft_bench_destroy(s);
        return 0;
    }
    if (against == DRIVER && !driver_open()) {
        printf("1..0 # SKIP no device\n");
        soft_bench_destroy(s);
        return 0;
    }
    for (; done < count && gm_now_ns() < until; done++) {
        struct random_kernel k = random_kernel_make(from + done, against == DRIVER);
        const char *way = "";
        char why[512] = "";
        int r = compare(s, &k, against, &way, why, sizeof(why));
        if (r)
            printf("# seed %llu, %s: %s\n", (unsigned long long)(from + done), way, why);
        if (reducing && r == 1)
            reduce(s, &k, against);
        free(k.text);
        failed += r == 1;
        skipped += r == 2;
        fflush(stdout);
    }
    printf("1..1\n%sok 1 - %llu random kernels against %s: %llu different, %llu not supported\n",
           failed ? "not " : "", (unsigned long long)done, names[against],
           (unsigned long long)failed, (unsigned long long)skipped);
    soft_bench_destroy(s);
    return failed != 0;
}
