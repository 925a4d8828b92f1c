/*
 * Runs PTX cases on the software device and prints TAP. With --tier=both each case runs
 * interpreted, compiled and, if it has several blocks, changing over in between; what the three
 * leave must be equal bit for bit as well.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "soft.h"

static unsigned number;
static unsigned failed;
static enum soft_isa isa = SOFT_ISA_NATIVE; /* what compiled code may use */
static bool large;                          /* it is made as that of large kernels */
static bool chains;                         /* ... of kernels with many ways between blocks */
static uint16_t lanes;                      /* so many to a warp; 0: as ever */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void report(bool ok, const char *path, const char *tier, const char *what, bool skip)
{
    printf("%sok %u - %s %s", ok ? "" : "not ", ++number, base_name(path), tier);
    if (skip)
        printf(" # SKIP %s", what);
    printf("\n");
    if (!ok) {
        failed++;
        printf("# %s\n", what);
    }
    fflush(stdout);
}

/* What a way of running leaves in a case, for comparing. */
struct outcome {
    bool there;
    enum ptx_fault fault;
    uint8_t *data[PTX_ARGS_MAX];
};

static void outcome_take(struct outcome *o, const struct ptx_case *c, enum ptx_fault fault)
{
    o->there = true;
    o->fault = fault;
    for (size_t k = 0; k < c->arg_count; k++) {
        o->data[k] = malloc(c->args[k].bytes + 1);
        if (!o->data[k])
            abort();
        memcpy(o->data[k], c->args[k].data, c->args[k].bytes);
    }
}

static void outcome_finish(struct outcome *o, const struct ptx_case *c)
{
    for (size_t k = 0; o->there && k < c->arg_count; k++)
        free(o->data[k]);
}

static bool is_nan(enum ptx_type type, const uint8_t *p)
{
    float f;
    double d;
    memcpy(&f, p, sizeof(f));
    if (type == PTX_F32)
        return f != f;
    if (type != PTX_F64)
        return false;
    memcpy(&d, p, sizeof(d));
    return d != d;
}

/* Bit for bit, but for NaNs and for what the case says may be anything. */
static bool same_outcome(const struct ptx_case *c, const struct outcome *a, const struct outcome *b,
                         char *why, size_t why_size)
{
    if (a->fault != b->fault || a->fault != PTX_FAULT_NONE)
        return true; /* ptx_case_check() knows which fault it must be */
    for (size_t k = 0; k < c->arg_count; k++) {
        const struct ptx_arg *arg = &c->args[k];
        size_t size = ptx_type_size[arg->type];
        for (size_t n = 0; n < arg->count; n++) {
            const uint8_t *x = a->data[k] + n * size, *y = b->data[k] + n * size;
            if (memcmp(x, y, size) == 0 || (is_nan(arg->type, x) && is_nan(arg->type, y)) ||
                (arg->is_checked && arg->ignored[n]))
                continue;
            snprintf(why, why_size, "%s[%zu] is not what the interpreter leaves", arg->name, n);
            return false;
        }
    }
    return true;
}

/* Runs the case with `code` and compares with what is expected, and with `reference` if that is
 * there. */
static struct outcome run_code(struct soft_bench *s, const struct soft_code *code,
                               struct ptx_case *c, const char *path, const char *name,
                               const struct outcome *reference)
{
    struct outcome o = { 0 };
    char why[512] = "";
    enum ptx_fault fault = PTX_FAULT_NONE;
    bool ok = soft_bench_case(s, code, c, &fault, why, sizeof(why));
    if (ok) {
        outcome_take(&o, c, fault);
        ok = ptx_case_check(c, fault, why, sizeof(why));
        if (ok && reference->there && !c->estimate)
            ok = same_outcome(c, reference, &o, why, sizeof(why));
    }
    report(ok, path, name, why, false);
    return o;
}

static struct soft_code *make_code(struct soft_bench *s, enum soft_tier tier,
                                   const struct ptx_case *c, const char *path, const char *name)
{
    char why[512] = "";
    bool unsupported = false;
    struct soft_job_options options = {
        .isa = isa, .large = large, .chains = chains, .lanes = lanes
    };
    memcpy(options.ntid, c->block, sizeof(options.ntid)); /* as the device has it compiled */
    if (tier == SOFT_TIER_JIT && c->skip_jit) {
        report(true, path, name, "not for the compiler", true);
        return NULL;
    }
    struct soft_code *code = soft_bench_code(s, tier, &options, c->text, c->text_size, c->kernel,
                                             &unsupported, why, sizeof(why));
    if (!code)
        report(false, path, name, why, false);
    return code;
}

/* In up to three ways: interpreted, compiled, and changing over in the middle of the launch. */
static void run_case(struct soft_bench *s, const char *path, bool interp, bool jit)
{
    char why[512];
    struct outcome reference = { 0 }, other;
    struct soft_code *interpreted = NULL, *compiled = NULL;
    struct ptx_case *c = ptx_case_load(path, why, sizeof(why));
    if (!c) {
        report(false, path, "", why, false);
        return;
    }
    if (interp && (interpreted = make_code(s, SOFT_TIER_INTERP, c, path, "interpreted")))
        reference = run_code(s, interpreted, c, path, "interpreted", &reference);
    if (jit && (compiled = make_code(s, SOFT_TIER_JIT, c, path, "compiled"))) {
        other = run_code(s, compiled, c, path, "compiled", &reference);
        outcome_finish(&other, c);
    }
    if (interpreted && compiled && c->grid[0] * c->grid[1] * c->grid[2] > 1) {
        struct soft_code *both = soft_bench_switch(interpreted, compiled);
        other = run_code(s, both, c, path, "switched", &reference);
        outcome_finish(&other, c);
        both->destroy(both);
    }
    outcome_finish(&reference, c);
    if (interpreted)
        interpreted->destroy(interpreted);
    if (compiled)
        compiled->destroy(compiled);
    ptx_case_destroy(c);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "tier", required_argument, NULL, 't' },
        { "every", required_argument, NULL, 'e' },
        { "isa", required_argument, NULL, 'i' },
        { "large", no_argument, NULL, 'l' },
        { "lanes", required_argument, NULL, 'n' },
        { "chains", no_argument, NULL, 'c' },
        { NULL, 0, NULL, 0 },
    };
    bool interp = true, jit = false, wrong = false;
    size_t every = 1;
    for (int o; (o = getopt_long(argc, argv, "t:e:i:ln:c", options, NULL)) != -1;) {
        wrong = wrong || (o != 't' && o != 'e' && o != 'i' && o != 'l' && o != 'n' && o != 'c');
        if (o == 'i') {
            isa = strcmp(optarg, "base") == 0 ? SOFT_ISA_BASE : SOFT_ISA_AVX2;
            wrong = wrong || (isa == SOFT_ISA_AVX2 && strcmp(optarg, "v3") != 0);
        }
        large |= o == 'l';
        chains |= o == 'c';
        if (o == 'n')
            lanes = (uint16_t)strtoul(optarg, NULL, 0);
        if (o == 'e')
            every = strtoul(optarg, NULL, 0);
        if (o == 't') {
            interp = strcmp(optarg, "interp") == 0 || strcmp(optarg, "both") == 0;
            jit = strcmp(optarg, "jit") == 0 || strcmp(optarg, "both") == 0;
            wrong = wrong || (!interp && !jit);
        }
    }
    if (wrong || optind == argc || every == 0) {
        fprintf(stderr, "usage: run [--tier=interp|jit|both] [--every=N] [--isa=base|v3] "
                        "[--large] [--chains] [--lanes=8|16] CASE.ptx|DIRECTORY ...\n");
        return 2;
    }
    struct soft_bench *s = soft_bench_create();
    if (jit && !soft_bench_has_jit(s)) {
        if (!interp) {
            printf("1..0 # SKIP no compiler here\n");
            return 0;
        }
        jit = false;
    }
    struct ptx_paths paths = { 0 };
    for (int k = optind; k < argc; k++)
        ptx_paths_add(&paths, argv[k]);
    for (size_t k = 0; k < paths.count; k += every)
        run_case(s, paths.at[k], interp, jit);
    printf("1..%u\n", number);
    ptx_paths_finish(&paths);
    soft_bench_destroy(s);
    return failed != 0;
}
