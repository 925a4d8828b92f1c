/*
 * Whole PTX files, each entry in all ways that the software device has, with arguments made up
 * here: what the ways leave in memory must be the same. Nothing says what is right; only that
 * interpreted code, code compiled for the block's size and for any, and a launch that changes over,
 * agree.
 *
 *     corpus [--limit=MS] [--races] FILE.ptx ...
 *
 * A pointer (a parameter of 64 bits) points to a buffer of small integers, of f32 or of f64
 * numbers, in turn; other parameters are small numbers. Many kernels end with a fault on such
 * arguments: then it must be the same fault, and nothing else is compared. A kernel made for blocks
 * of another shape may have threads that write the same word: where results differ, the launch is
 * watched for such a race, which is no difference. Output is TAP with the numbers of each outcome;
 * --races: it is well if every launch is found to have a race.
 */
#include <float.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/ir.h"
#include "device/soft/ptx/ptx.h"
#include "races.h"
#include "soft.h"

/* Kernels take small numbers for sizes, and what they reach from an argument must not be another
 * one: then blocks would read what others write. */
#define BUFFER_BYTES (2u << 20)
#define PARAMS_MAX   32764

enum fill { FILL_INTS, FILL_F32, FILL_F64, FILL_COUNT };
enum outcome { SAME, FAULTED, ENDLESS, NOT_COMPILED, NOT_RUN, RACE, DIFFERENT, OUTCOME_COUNT };

static const char *const outcome_name[] = { "same",    "same fault", "endless",  "not compiled",
                                            "not run", "race",       "different" };

struct corpus {
    struct soft_bench *bench;
    const char *text;
    size_t size;
    const struct ir_module *m;
    const struct ir_fn *fn;
    const char *entry;
    uint32_t grid[3], block[3], shared;
    uint8_t params[PARAMS_MAX];
    uint8_t *initial, *reference; /* of all that is placed */
    size_t bytes;
    unsigned counts[OUTCOME_COUNT];
};

static void fill_buffer(uint8_t *p, size_t bytes, enum fill fill)
{
    for (size_t k = 0; k < bytes / 8; k++) {
        uint32_t n = (uint32_t)(k * 2654435761u) >> 26; /* 0 .. 63 */
        float f[2] = { 0.25f + (float)n / 64, 1.5f - (float)n / 128 };
        double d = 0.5 + (double)n / 64;
        uint32_t i[2] = { n, (n * 7 + 3) % 64 };
        memcpy(p + 8 * k,
               fill == FILL_INTS  ? (void *)i
               : fill == FILL_F32 ? (void *)f
                                  : (void *)&d,
               8);
    }
}

/* A structure by value gets pointers in some of its words. */
static bool make_argument(struct corpus *c, uint8_t *at, const struct ir_param *p, uint64_t bytes,
                          enum fill fill)
{
    float f = 0.75f;
    double d = 0.75;
    uint32_t n = fill == FILL_INTS ? 64 : 33;
    bool is_real = ir_type_is_float(p->type);
    if (bytes < 8) {
        memcpy(at, is_real && bytes == 4 ? (void *)&f : (void *)&n, bytes);
        return true;
    }
    if (bytes == 8 && is_real) {
        memcpy(at, &d, 8);
        return true;
    }
    for (uint64_t k = 0; k + 8 <= bytes; k += 8) {
        uint64_t value = n;
        if (k % 16 == 0 && k < 128) {
            uint8_t *buffer = soft_bench_alloc(c->bench, BUFFER_BYTES);
            if (!buffer)
                return false;
            fill_buffer(buffer, BUFFER_BYTES, fill);
            value = (uint64_t)(uintptr_t)buffer;
        }
        memcpy(at + k, &value, 8);
    }
    return true;
}

/* Module and arguments into the window, and what they are at first. */
static bool place(struct corpus *c, enum fill fill, char *why, size_t why_size)
{
    if (!soft_bench_place(c->bench, c->text, c->size, c->entry, why, why_size))
        return false;
    memset(c->params, 0, sizeof(c->params));
    for (uint32_t k = 0; k < c->fn->param_count; k++) {
        const struct ir_param *p = &c->m->params[c->fn->param_first + k];
        if (!make_argument(c, c->params + soft_bench_param(c->bench, k), p,
                           c->m->symbols[p->symbol].size, fill)) {
            snprintf(why, why_size, "arguments do not fit");
            return false;
        }
    }
    uint8_t *memory = soft_bench_memory(c->bench, &c->bytes);
    free(c->initial);
    free(c->reference);
    c->initial = malloc(c->bytes + 1);
    c->reference = malloc(c->bytes + 1);
    if (!c->initial || !c->reference)
        abort();
    memcpy(c->initial, memory, c->bytes);
    return true;
}

static enum ptx_fault launch(struct corpus *c, const struct soft_code *code)
{
    size_t bytes;
    uint8_t *memory = soft_bench_memory(c->bench, &bytes);
    memcpy(memory, c->initial, c->bytes);
    soft_bench_wipe_rest(c->bench);
    return soft_bench_launch(c->bench, code, c->grid, c->block, c->shared, c->params, NULL, 0);
}

static bool same_number(const uint8_t *a, const uint8_t *b)
{
    float x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return memcmp(a, b, 4) == 0 || (x != x && y != y);
}

/* Where memory is not as the interpreter left it. Words that are NaNs in both are equal. With an
 * estimate in it (rsqrt.approx, which compiled code begins with the CPU's) f32 numbers may be a
 * little apart; small integers, as which some buffers begin, are subnormal ones. */
static bool same_memory(const struct corpus *c, bool estimate, char *why, size_t why_size)
{
    size_t bytes;
    const uint8_t *memory = soft_bench_memory(c->bench, &bytes);
    for (size_t k = 0; k + 4 <= c->bytes; k += 4) {
        float x, y;
        const uint8_t *a = c->reference + k, *b = memory + k;
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        float apart = x > y ? x - y : y - x, size = x > 0 ? x : -x;
        if (same_number(a, b) || (estimate && apart <= 1e-4f * GM_MAX(size, FLT_MIN)))
            continue;
        snprintf(why, why_size, "byte %zu: %02x%02x%02x%02x and not %02x%02x%02x%02x (%g, %g)", k,
                 b[3], b[2], b[1], b[0], a[3], a[2], a[1], a[0], (double)y, (double)x);
        return false;
    }
    return true;
}

static enum outcome compare(struct corpus *c, const struct soft_code *code, enum ptx_fault expected,
                            char *why, size_t why_size)
{
    enum ptx_fault fault = launch(c, code);
    bool estimate = strstr(c->text, "rsqrt.approx") != NULL;
    if (fault == PTX_FAULT_ENDLESS)
        return ENDLESS;
    if (fault != expected) {
        snprintf(why, why_size, "fault %s and not %s", ptx_fault_name[fault],
                 ptx_fault_name[expected]);
        return DIFFERENT;
    }
    if (fault != PTX_FAULT_NONE)
        return FAULTED;
    return same_memory(c, estimate, why, why_size) ? SAME : DIFFERENT;
}

/* What differs has no result of its own if threads race for it: the launch is watched for that. */
static bool has_race(struct corpus *c, char *why, size_t why_size)
{
    bool unsupported;
    if (!races_can_find(c->fn))
        return false;
    setenv("GMUX_INTERP_ISA", "scalar", 1);
    struct soft_code *code = soft_bench_code(c->bench, SOFT_TIER_INTERP, NULL, c->text, c->size,
                                             c->entry, &unsupported, why, why_size);
    unsetenv("GMUX_INTERP_ISA");
    struct races *races = races_create(c->bench);
    if (code)
        launch(c, code);
    struct race first = races_first(races);
    if (first.found)
        snprintf(why, why_size, "threads %u and %u of a block race", first.threads[0],
                 first.threads[1]);
    races_destroy(races);
    if (code)
        code->destroy(code);
    return first.found;
}

/* One entry with one block size. */
static void run_entry(struct corpus *c)
{
    char why[512] = "";
    bool unsupported = false;
    struct soft_job_options options = { 0 };
    struct soft_code *code[4] = { NULL }; /* interpreted, compiled, for any block, switched */
    static const char *const name[] = { "interpreted", "compiled", "for any block", "switched" };
    memcpy(options.ntid, c->block, sizeof(options.ntid));
    enum outcome all = NOT_RUN;
    code[0] = soft_bench_code(c->bench, SOFT_TIER_INTERP, NULL, c->text, c->size, c->entry,
                              &unsupported, why, sizeof(why));
    if (code[0]) {
        all = NOT_COMPILED;
        code[1] = soft_bench_code(c->bench, SOFT_TIER_JIT, &options, c->text, c->size, c->entry,
                                  &unsupported, why, sizeof(why));
    }
    if (code[1]) {
        code[2] = soft_bench_code(c->bench, SOFT_TIER_JIT, NULL, c->text, c->size, c->entry,
                                  &unsupported, why, sizeof(why));
        code[3] = soft_bench_switch(code[0], code[1]);
        all = FAULTED;
    }
    for (enum fill fill = 0; code[1] && fill < FILL_COUNT && all < RACE; fill++) {
        if (!place(c, fill, why, sizeof(why))) {
            all = NOT_RUN;
            break;
        }
        enum ptx_fault fault = launch(c, code[0]);
        size_t bytes;
        memcpy(c->reference, soft_bench_memory(c->bench, &bytes), c->bytes);
        if (fault == PTX_FAULT_ENDLESS) {
            all = ENDLESS;
            break;
        }
        for (unsigned k = 1; k < 4 && all < RACE; k++) {
            enum outcome one = code[k] ? compare(c, code[k], fault, why, sizeof(why)) : SAME;
            if (one == DIFFERENT && has_race(c, why, sizeof(why)))
                one = RACE;
            if (one == DIFFERENT || one == RACE)
                printf("# %s, %s, %ux%u, fill %d: %s\n", c->entry, name[k], c->block[0],
                       c->block[1], (int)fill, why);
            all = one == SAME && all == FAULTED ? SAME : one != SAME && one != FAULTED ? one : all;
        }
    }
    if (all == NOT_COMPILED || all == NOT_RUN)
        printf("# %s: %s: %s\n", c->entry, outcome_name[all], why);
    c->counts[all]++;
    for (unsigned k = 4; k-- > 0;)
        if (code[k])
            code[k]->destroy(code[k]);
}

/* Kernels that know one dimension only would race with themselves in blocks of two. */
static bool has_rows(const struct ir_fn *fn)
{
    for (uint32_t k = 0; k < fn->instr_count; k++)
        for (unsigned s = 0; s < fn->instrs[k].src_count; s++)
            if (fn->instrs[k].src[s].kind == IR_SRC_SREG &&
                fn->instrs[k].src[s].index == IR_SREG_TID_Y)
                return true;
    return false;
}

/* The size that the kernel asks for; else one with a partial warp, or with rows that are half a
 * warp wide. */
static void run_blocks(struct corpus *c)
{
    static const uint32_t lines[][3] = { { 128, 1, 1 }, { 80, 1, 1 } },
                          rows[][3] = { { 32, 8, 1 }, { 16, 16, 1 } };
    bool two = has_rows(c->fn);
    c->grid[0] = 3;
    c->grid[1] = two ? 2 : 1;
    c->grid[2] = 1;
    c->shared = 16u << 10;
    for (unsigned k = 0; k < 2; k++) {
        memcpy(c->block, two ? rows[k] : lines[k], sizeof(c->block));
        if (c->fn->reqntid[0]) {
            for (unsigned d = 0; d < 3; d++)
                c->block[d] = GM_MAX(c->fn->reqntid[d], 1u);
            k = 2;
        }
        run_entry(c);
        fflush(stdout);
    }
}

static bool run_file(struct corpus *c, const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "r");
    ssize_t size = f ? getdelim(&text, &room, 0, f) : -1;
    struct ir_module *m = NULL;
    struct ptx_error error = { 0 };
    if (f)
        fclose(f);
    bool ok = size > 0 && ptx_parse(text, (size_t)size, &m, &error) == 0;
    if (!ok)
        printf("# %s: %u:%u: %s\n", path, error.line, error.column,
               size > 0 ? error.text : "cannot be read");
    c->text = text;
    c->size = ok ? (size_t)size : 0;
    c->m = m;
    for (uint32_t k = 0; ok && k < m->fn_count; k++) {
        c->fn = &m->fns[k];
        c->entry = m->strings + c->fn->name;
        if (c->fn->is_entry)
            run_blocks(c);
    }
    if (m)
        ir_module_destroy(m);
    free(text);
    return ok;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "limit", required_argument, NULL, 'l' },
                                             { "races", no_argument, NULL, 'r' },
                                             { NULL, 0, NULL, 0 } };
    struct corpus *c = calloc(1, sizeof(*c));
    unsigned not_loaded = 0, launched = 0;
    bool races = false;
    if (!c)
        abort();
    c->bench = soft_bench_create();
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o != 'l' && o != 'r')
            return 2;
        if (o == 'r')
            races = true;
        else
            soft_bench_limit(c->bench, (unsigned)strtoul(optarg, NULL, 0));
    }
    if (!soft_bench_has_jit(c->bench)) {
        printf("1..0 # SKIP no compiler here\n");
        return 0;
    }
    for (int k = optind; k < argc; k++)
        not_loaded += !run_file(c, argv[k]);
    for (unsigned k = 0; k < OUTCOME_COUNT; k++)
        launched += c->counts[k];
    bool wrong = not_loaded || (races ? c->counts[RACE] != launched : c->counts[DIFFERENT] != 0);
    printf("1..1\n%sok 1 - kernels in all ways:", wrong ? "not " : "");
    for (unsigned k = 0; k < OUTCOME_COUNT; k++)
        printf(" %u %s,", c->counts[k], outcome_name[k]);
    printf(" %u files not loaded\n", not_loaded);
    soft_bench_destroy(c->bench);
    free(c->initial);
    free(c->reference);
    free(c);
    return wrong;
}
