/*
 * The way from text to object: parse, choose a block size, generate, optimise, emit.
 */
#include "jit/compile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "device/soft/ptx/ptx.h"
#include "jit/gen.h"
#include "jit/target.h"

/* The kernel's block size: what the job says, else what the text demands. All 0: any. */
static void choose_block_size(const struct ir_fn *fn, const struct soft_job_options *options,
                              uint32_t ntid[3])
{
    memcpy(ntid, options->ntid, 3 * sizeof(*ntid));
    if (!ntid[0] && fn->reqntid[0])
        for (int d = 0; d < 3; d++)
            ntid[d] = fn->reqntid[d] ? fn->reqntid[d] : 1;
}

/* LLVM's remarks on the module. It knows the size of a frame when the code is made, and says so
 * where that is more than the function's "warn-stack-size". */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *arg)
{
    struct jit_gen *g = arg;
    char *text = LLVMGetDiagInfoDescription(info);
    const char *frame = strstr(
        text,
        "stack frame size"); /* the text before that is a place in the source, which is not there */
    if (frame) {
        g->frame_over = true;
        snprintf(g->reason, sizeof(g->reason), "%s", frame);
    }
    LLVMDisposeMessage(text);
}

static void discard(struct jit_gen *g)
{
    LLVMDisposeModule(g->module);
    LLVMContextDispose(g->context);
}

/* Makes the module and optimises it, unless it is to be made again with fewer *lanes. discard() is
 * for the caller if it does not fail. */
static int generate(struct jit_gen *g, unsigned *lanes, const char *dump, struct jit_times *times,
                    char *why, size_t why_size)
{
    char *text = NULL;
    uint64_t begin = gm_now_ns();
    g->context = LLVMContextCreate();
    g->module = LLVMModuleCreateWithNameInContext("kernel", g->context);
    LLVMContextSetDiagnosticHandler(g->context, on_diagnostic, g);
    jit_target_prepare(g->target, g->module);
    int r = jit_generate(g);
    times->emit += gm_now_ns() - begin;
    if (r < 0) {
        snprintf(why, why_size, "%s", r == -ENOTSUP ? g->reason : strerror(-r));
    } else {
        if (dump && LLVMPrintModuleToFile(g->module, dump, &text)) {
            fprintf(stderr, "%s: %s\n", dump, text);
            LLVMDisposeMessage(text);
        }
        *lanes = jit_lanes_for_length(g);
        if (*lanes < g->lanes)
            return 0;
        begin = gm_now_ns();
        if (jit_target_optimise(g->target, g->module, g->large, g->in_pieces, why, why_size) < 0)
            r = -EINVAL;
        times->optimise += gm_now_ns() - begin;
        if (r == 0)
            *lanes = jit_fewer_lanes(g);
    }
    if (r < 0)
        discard(g);
    return r;
}

static int finish(struct jit_gen *g, LLVMMemoryBufferRef *object, struct jit_times *times,
                  char *why, size_t why_size)
{
    uint64_t begin = gm_now_ns();
    int r = jit_target_compile(g->target, g->module, g->large, object, why, why_size);
    times->compile = gm_now_ns() - begin;
    if (r < 0)
        return -EINVAL;
    if (g->frame_over) {
        snprintf(why, why_size, "%s", g->reason);
        LLVMDisposeMemoryBuffer(*object);
        return -ENOTSUP;
    }
    return 0;
}

/* If threads of the kernel may wait for each other, also those of a warp for its others in two
 * loops, analyses it again, with turns. */
static int let_wait(struct ir_module *m, struct ir_analyse_options *options, struct ir_analysis **a,
                    char *why, size_t why_size)
{
    uint32_t fn = (*a)->fn, two_loops = jit_find_two_loops(&m->fns[fn], *a);
    GM_AUTO_FREE bool *meets = NULL, *polls = calloc(m->fns[fn].block_count + 1u, sizeof(*polls));
    int waits = polls ? ir_find_polls(&m->fns[fn], *a, polls) : -ENOMEM;
    if (waits < 0)
        return waits;
    if (!waits && !(*a)->divergent_barrier && !two_loops)
        return 0;
    ir_analysis_destroy(*a);
    options->polls = polls;
    int r = ir_analyse(m, fn, options, a);
    if (r == 0 && (jit_gathers(&m->fns[fn], *a) || jit_find_two_loops(&m->fns[fn], *a))) {
        ir_analysis_destroy(*a);
        *a = NULL;
        r = jit_cut_at_gatherings(&m->fns[fn], &polls, &meets);
        options->polls = polls;
        options->meets = meets;
        if (r == 0)
            r = ir_analyse(m, fn, options, a);
    }
    if (r < 0)
        snprintf(why, why_size, "analysis: %s", r == -E2BIG ? "kernel too big" : strerror(-r));
    return r == -E2BIG ? -ENOTSUP : r;
}

static int analyse(struct ir_module *m, uint32_t fn, const struct jit_gen *g,
                   struct ir_analysis **a, struct jit_times *times, char *why, size_t why_size)
{
    struct ir_analyse_options options = { .small_grid = true, .lanes = g->lanes };
    uint64_t begin = gm_now_ns();
    memcpy(options.ntid, g->ntid, sizeof(options.ntid));
    int r = ir_analyse(m, fn, &options, a);
    int joined = r == 0 ? jit_join_ways_back(&m->fns[fn], *a) : 0;
    if (joined) {
        ir_analysis_destroy(*a);
        r = joined < 0 ? joined : ir_analyse(m, fn, &options, a);
    }
    if (r < 0) {
        snprintf(why, why_size, "analysis: %s", r == -E2BIG ? "kernel too big" : strerror(-r));
        return r == -E2BIG ? -ENOTSUP : r;
    }
    r = let_wait(m, &options, a, why, why_size);
    if (r < 0)
        ir_analysis_destroy(*a);
    times->analyse += gm_now_ns() - begin;
    return r;
}

/* Compiles the kernel with g->lanes to a warp. *lanes is a smaller number if the kernel has to be
 * compiled again with that; then the result does not matter. 0 or -errno. */
static int compile_lanes(struct ir_module *m, uint32_t fn, struct jit_gen *g, unsigned *lanes,
                         const char *dump, LLVMMemoryBufferRef *object, struct jit_times *times,
                         char *why, size_t why_size)
{
    struct ir_analysis *analysis;
    *lanes = g->lanes;
    int r = analyse(m, fn, g, &analysis, times, why, why_size);
    if (r < 0)
        return r;
    g->a = analysis;
    *lanes = jit_lanes_for_loops(g);
    if (*lanes < g->lanes) {
        ir_analysis_destroy(analysis);
        return 0;
    }
    r = generate(g, lanes, dump, times, why, why_size);
    if (r == 0) {
        if (*lanes == g->lanes)
            r = finish(g, object, times, why, why_size);
        discard(g);
    }
    if (g->frame_over)
        *lanes = jit_fewer_lanes(g);
    ir_analysis_destroy(analysis);
    return r;
}

static int compile_entry(struct ir_module *m, uint32_t fn, const struct soft_job_options *options,
                         const char *dump, LLVMMemoryBufferRef *object, struct jit_times *times,
                         char *why, size_t why_size)
{
    struct jit_gen first = { .m = m, .fn = &m->fns[fn], .options = options };

    if (first.fn->lacks) {
        snprintf(why, why_size, "%s", ir_name(m, first.fn->lacks));
        return -ENOTSUP;
    }
    first.target = jit_target_get((enum soft_isa)options->isa);
    if (!first.target) {
        snprintf(why, why_size, "no such instruction set on this machine");
        return -EINVAL;
    }
    first.frame_max = options->frame_bytes && options->frame_bytes < SOFT_FRAME_MAX
                          ? options->frame_bytes
                          : SOFT_FRAME_MAX;
    choose_block_size(first.fn, options, first.ntid);
    first.lanes = jit_choose_lanes(&first);
    for (;;) {
        struct jit_gen g = first;
        unsigned lanes;
        int r = compile_lanes(m, fn, &g, &lanes, dump, object, times, why, why_size);
        if (lanes == g.lanes)
            return r;
        first.lanes = lanes;
    }
}

int jit_parse(const char *text, size_t size, struct ir_module **out, struct jit_times *times,
              char *why, size_t why_size)
{
    struct ptx_error error;
    uint64_t begin = gm_now_ns();
    int r = ptx_parse(text, size, out, &error);
    times->parse = gm_now_ns() - begin;
    if (r < 0)
        snprintf(why, why_size, "%u:%u: %s", error.line, error.column, error.text);
    return r;
}

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    if (p && count)
        memcpy(p, from, count * size);
    return p;
}

/* Gives the function copies of what is changed while it is compiled. */
static bool begin_changes(struct ir_fn *fn)
{
    fn->instrs = copy_of(fn->instrs, fn->instr_count, sizeof(*fn->instrs));
    fn->blocks = copy_of(fn->blocks, fn->block_count, sizeof(*fn->blocks));
    fn->succ = copy_of(fn->succ, fn->succ_count, sizeof(*fn->succ));
    return fn->instrs && fn->blocks && fn->succ;
}

static void undo_changes(struct ir_fn *fn, const struct ir_fn *before)
{
    free(fn->instrs);
    free(fn->blocks);
    free(fn->succ);
    *fn = *before;
}

int jit_compile(struct ir_module *m, const char *entry, const struct soft_job_options *options,
                const char *dump, LLVMMemoryBufferRef *object, struct jit_times *times, char *why,
                size_t why_size)
{
    uint32_t fn = ir_module_find_fn(m, entry);
    if (fn == IR_NONE || !m->fns[fn].is_entry) {
        snprintf(why, why_size, "no entry of that name");
        return -ENOENT;
    }
    const struct ir_fn before = m->fns[fn];
    int r = -ENOMEM;
    if (begin_changes(&m->fns[fn]))
        r = compile_entry(m, fn, options, dump, object, times, why, why_size);
    else
        snprintf(why, why_size, "%s", strerror(ENOMEM));
    undo_changes(&m->fns[fn], &before);
    return r;
}
