/*
 * Runs PTX cases on the software device and prints TAP. With --tier=both each case runs in both tiers and their outputs
 * must be equal bit for bit as well, unless the case has a tolerance.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "soft.h"

static unsigned number;
static unsigned failed;

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

static void run_tier(struct soft_bench *s, enum soft_tier tier, struct ptx_case *c, const char *path)
{
    const char *name = tier == SOFT_TIER_JIT ? "compiled" : "interpreted";
    char why[512] = "";
    bool unsupported = false;
    enum ptx_fault fault;
    if (tier == SOFT_TIER_JIT && c->skip_jit) {
        report(true, path, name, "not for the compiler", true);
        return;
    }
    struct soft_job_options options = { 0 };
    memcpy(options.ntid, c->block, sizeof(options.ntid)); /* as the device has it compiled */
    if (!soft_bench_case(s, tier, &options, c, &fault, &unsupported, why, sizeof(why))) {
        report(unsupported, path, name, why, unsupported);
        return;
    }
    report(ptx_case_check(c, fault, why, sizeof(why)), path, name, why, false);
}

static void run_case(struct soft_bench *s, const char *path, bool interp, bool jit)
{
    char why[512];
    struct ptx_case *c = ptx_case_load(path, why, sizeof(why));
    if (!c) {
        report(false, path, "", why, false);
        return;
    }
    if (interp)
        run_tier(s, SOFT_TIER_INTERP, c, path);
    if (jit)
        run_tier(s, SOFT_TIER_JIT, c, path);
    ptx_case_destroy(c);
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "tier", required_argument, NULL, 't' }, { NULL, 0, NULL, 0 } };
    bool interp = true, jit = false, wrong = false;
    for (int o; (o = getopt_long(argc, argv, "t:", options, NULL)) != -1;) {
        wrong = wrong || o != 't';
        if (o == 't') {
            interp = strcmp(optarg, "interp") == 0 || strcmp(optarg, "both") == 0;
            jit = strcmp(optarg, "jit") == 0 || strcmp(optarg, "both") == 0;
            wrong = wrong || (!interp && !jit);
        }
    }
    if (wrong || optind == argc) {
        fprintf(stderr, "usage: run [--tier=interp|jit|both] CASE.ptx|DIRECTORY ...\n");
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
    printf("1..%zu\n", paths.count * (unsigned)(interp + jit));
    for (size_t k = 0; k < paths.count; k++)
        run_case(s, paths.at[k], interp, jit);
    ptx_paths_finish(&paths);
    soft_bench_destroy(s);
    return failed != 0;
}
