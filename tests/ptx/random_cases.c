/*
 * Random kernels in two ways, whose outputs must be equal bit for bit.
 *
 *     random_cases [--from=SEED] [--count=N] [--seconds=S] [--against=interp|jit] [--print]
 *                  [--large] [--chains] [--lanes=8|16]
 *
 * The reference is the interpreter with its scalar forms only. `interp` compares each set of vector
 * handlers that this
 * CPU has with it, `jit` compiled code, and changing over to it in the middle of the launch.
 * --print writes the kernel of the first seed to standard output instead.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

static bool run_one(struct soft_bench *s, const struct random_kernel *k,
                    const struct soft_code *code, struct memory *m, char *why, size_t why_size)
{
    uint8_t params[64];
    if (!soft_bench_place(s, k->text, strlen(k->text), "k", why, why_size))
        return false;
    uint32_t *in = soft_bench_alloc(s, RANDOM_WORDS_IN * 4),
             *out = soft_bench_alloc(s, sizeof(m->out)),
             *atoms = soft_bench_alloc(s, sizeof(m->atoms));
    uint32_t x = 12345;
    for (uint32_t n = 0; n < RANDOM_WORDS_IN; n++)
        in[n] = (x = x * 1664525u + 1013904223u) >> (n % 5 * 6);
    memset(out, 0xa5, sizeof(m->out));
    memset(atoms, 0x5a, sizeof(m->atoms));
    memcpy(params + soft_bench_param(s, 0), &in, 8);
    memcpy(params + soft_bench_param(s, 1), &out, 8);
    memcpy(params + soft_bench_param(s, 2), &atoms, 8);
    m->fault = soft_bench_launch(s, code, k->grid, k->block, 0, params, NULL, 0);
    memcpy(m->out, out, sizeof(m->out));
    memcpy(m->atoms, atoms, sizeof(m->atoms));
    return true;
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

/* One way of running a seed against the reference. Prints what is wrong. 0 equal, 1 different, 2
 * there is no code. */
static int compare_one(struct soft_bench *s, const struct random_kernel *k,
                       const struct soft_code *code, const struct memory *reference,
                       const char *name, uint64_t seed, char *why, size_t why_size)
{
    static struct memory other;
    if (code && run_one(s, k, code, &other, why, why_size) &&
        equal(reference, &other, why, why_size))
        return 0;
    printf("# seed %llu, %s: %s\n", (unsigned long long)seed, name, why);
    return code ? 1 : 2;
}

/* One seed in all ways. 0 equal, 1 different, 2 the compiler cannot do it. */
static int compare(struct soft_bench *s, uint64_t seed, bool jit)
{
    static const char *const isas[] = { "base", "v3", "v4" };
    static struct memory reference;
    char why[512] = "";
    bool unsupported = false;
    struct random_kernel k = random_kernel_make(seed);
    struct soft_code *scalar = make_code(s, &k, SOFT_TIER_INTERP, "scalar", &unsupported, why,
                                         sizeof(why)),
                     *code;
    int result = 1;
    if (!scalar || !run_one(s, &k, scalar, &reference, why, sizeof(why))) {
        printf("# seed %llu: reference: %s\n", (unsigned long long)seed, why);
    } else if (jit) {
        code = make_code(s, &k, SOFT_TIER_JIT, "", &unsupported, why, sizeof(why));
        result = compare_one(s, &k, code, &reference, "compiled", seed, why, sizeof(why));
        if (result == 0) {
            struct soft_code *both = soft_bench_switch(scalar, code);
            result = compare_one(s, &k, both, &reference, "switched", seed, why, sizeof(why));
            both->destroy(both);
        }
        /* A compiler that needs too long on a busy machine leaves the kernel to the interpreter. */
        result = result == 2 && !unsupported && !strstr(why, "took more than") ? 1 : result;
        if (code)
            code->destroy(code);
    } else {
        result = 0;
        for (unsigned n = 0; result == 0 && n < GM_ARRAY_LEN(isas); n++) {
            code = make_code(s, &k, SOFT_TIER_INTERP, isas[n], &unsupported, why, sizeof(why));
            result = compare_one(s, &k, code, &reference, isas[n], seed, why, sizeof(why)) ? 1 : 0;
            if (code)
                code->destroy(code);
        }
    }
    if (scalar)
        scalar->destroy(scalar);
    free(k.text);
    return result;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "from", required_argument, NULL, 'f' },
        { "count", required_argument, NULL, 'c' },
        { "seconds", required_argument, NULL, 's' },
        { "against", required_argument, NULL, 'a' },
        { "print", no_argument, NULL, 'p' },
        { "large", no_argument, NULL, 'l' },
        { "lanes", required_argument, NULL, 'n' },
        { "chains", no_argument, NULL, 'k' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t from = 1, count = 100, failed = 0, skipped = 0, until = UINT64_MAX, done = 0;
    bool jit = false, print = false;
    for (int o; (o = getopt_long(argc, argv, "f:c:s:a:pln:k", options, NULL)) != -1;) {
        if (o == 'f')
            from = strtoull(optarg, NULL, 0);
        else if (o == 'c')
            count = strtoull(optarg, NULL, 0);
        else if (o == 's')
            until = gm_now_ns() + strtoull(optarg, NULL, 0) * GM_NS_PER_S;
        else if (o == 'a')
            jit = strcmp(optarg, "jit") == 0;
        else if (o == 'l')
            large = true;
        else if (o == 'k')
            chains = true;
        else if (o == 'n')
            lanes = (uint16_t)strtoul(optarg, NULL, 0);
        else if (o == 'p')
            print = true;
        else
            return 2;
    }
    if (print) {
        struct random_kernel k = random_kernel_make(from);
        printf("// kernel: k\n// grid: %u\n// block: %u %u %u\n%s", k.grid[0], k.block[0],
               k.block[1], k.block[2], k.text);
        free(k.text);
        return 0;
    }
    struct soft_bench *s = soft_bench_create();
    if (jit && !soft_bench_has_jit(s)) {
        printf("1..0 # SKIP no compiler here\n");
        soft_bench_destroy(s);
        return 0;
    }
    for (; done < count && gm_now_ns() < until; done++) {
        int r = compare(s, from + done, jit);
        failed += r == 1;
        skipped += r == 2;
        fflush(stdout);
    }
    printf("1..1\n%sok 1 - %llu random kernels against %s: %llu different, %llu not supported\n",
           failed ? "not " : "", (unsigned long long)done,
           jit ? "compiled code" : "vector handlers", (unsigned long long)failed,
           (unsigned long long)skipped);
    soft_bench_destroy(s);
    return failed != 0;
}
