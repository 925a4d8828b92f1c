/*
 * Runs the passes of the analysis in order, and prints their result.
 */
#include "device/soft/ir/analyse.h"

#include <inttypes.h>
#include <stdio.h>

#define ANALYSE_BUDGET (1ull << 31)

static void count_definition(struct ir_analysis *a, uint32_t reg, uint32_t at)
{
    if (reg == IR_NONE)
        return;
    a->regs[reg].single_def = a->regs[reg].defs++ == 0 ? at : IR_NONE;
}

static void count_definitions(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    struct ir_analysis *a = an->a;
    for (uint32_t r = 0; r < fn->reg_count; r++)
        a->regs[r] = (struct ir_reg_info) { .single_def = IR_NONE,
                                            .shape = IR_SHAPE_UNKNOWN,
                                            .block_uniform = true };
    for (uint32_t n = 0; n < a->order_count; n++) {
        const struct ir_block *b = &fn->blocks[a->order[n]];
        for (uint32_t at = b->first; at < b->first + b->count; at++) {
            for (unsigned d = 0; d < fn->instrs[at].dst_count; d++)
                count_definition(a, fn->instrs[at].dst[d], at);
            count_definition(a, fn->instrs[at].dst_pred, at);
        }
    }
    /* It has no value at all, so any shape will do. */
    for (uint32_t r = 0; r < fn->reg_count; r++)
        if (a->regs[r].defs == 0)
            a->regs[r].shape = IR_UNIFORM;
}

static int analyse(struct ir_analyser *an)
{
    struct ir_analysis *a = an->a;
    const struct ir_fn *fn = an->fn;
    a->block_count = fn->block_count;
    a->instr_count = fn->instr_count;
    a->reg_count = fn->reg_count;
    a->blocks = calloc(fn->block_count, sizeof(*a->blocks));
    a->instrs = calloc(fn->instr_count, sizeof(*a->instrs));
    a->regs = calloc((size_t)fn->reg_count + 1, sizeof(*a->regs));
    a->order = calloc(fn->block_count, sizeof(*a->order));
    if (!a->blocks || !a->instrs || !a->regs || !a->order)
        return -ENOMEM;
    int rc = ir_order_blocks(an);
    if (rc)
        return rc;
    count_definitions(an);
    rc = ir_find_same(an);
    if (rc == 0)
        rc = ir_compute_liveness(an);
    if (rc == 0)
        rc = ir_compute_ranges(an);
    if (rc == 0)
        rc = ir_compute_low(an);
    if (rc == 0)
        rc = ir_find_frontiers(an);
    if (rc == 0)
        rc = ir_find_patterns(an);
    if (rc == 0)
        rc = ir_find_regions(an);
    return rc;
}

int ir_analyse(const struct ir_module *m, uint32_t fn, const struct ir_analyse_options *opt,
               struct ir_analysis **out)
{
    struct ir_analyser an = { .m = m, .fn = &m->fns[fn], .opt = *opt, .budget = ANALYSE_BUDGET };
    *out = NULL;
    if (!an.opt.lanes)
        an.opt.lanes = 32;
    if (an.opt.ntid[0]) {
        an.opt.ntid[1] = GM_MAX(an.opt.ntid[1], 1u);
        an.opt.ntid[2] = GM_MAX(an.opt.ntid[2], 1u);
    }
    an.a = calloc(1, sizeof(*an.a));
    if (!an.a)
        return -ENOMEM;
    an.a->fn = fn;
    int rc = analyse(&an);
    free(an.frontier);
    free(an.news);
    free(an.pinned);
    free(an.warp_branch);
    free(an.parks);
    free(an.ranges);
    free(an.low);
    free(an.same);
    if (rc)
        ir_analysis_destroy(an.a);
    else
        *out = an.a;
    return rc;
}

void ir_analysis_destroy(struct ir_analysis *a)
{
    if (!a)
        return;
    free(a->blocks);
    free(a->instrs);
    free(a->regs);
    free(a->order);
    free(a->resume);
    free(a->regions);
    free(a->pool);
    free(a->patterns);
    free(a->live_in);
    free(a->live_out);
    free(a);
}

/* --- printing --------------------------------------------------------------------------------- */

static void print_list(const struct ir_analysis *a, const char *label, struct ir_list list,
                       const char *prefix, FILE *out)
{
    if (list.count == 0)
        return;
    fprintf(out, " %s", label);
    for (uint32_t k = 0; k < list.count; k++)
        fprintf(out, "%s%s%u", k ? "," : "=", prefix, a->pool[list.first + k]);
}

static void print_block(const struct ir_analysis *a, uint32_t b, FILE *out)
{
    const struct ir_block_info *info = &a->blocks[b];
    fprintf(out, "B%u", b);
    print_list(a, "preds", info->preds, "B", out);
    if (info->idom != IR_NONE)
        fprintf(out, " idom=B%u", info->idom);
    if (info->ipdom != IR_NONE)
        fprintf(out, " ipdom=B%u", info->ipdom);
    if (info->loop != IR_NONE)
        fprintf(out, " loop=B%u depth=%u", info->loop, info->loop_depth);
    print_list(a, "frontier", info->frontier, "B", out);
    fprintf(out, "%s%s%s%s\n", info->divergent ? " divergent" : "",
            info->early_exit ? " early-exit" : "", info->only_returns ? " returns" : "",
            info->barrier ? " barrier" : "");
}

static const char *const shapes[] = { "uniform", "affine", "varying", "pattern" };

static void print_reg(const struct ir_analysis *a, uint32_t r, FILE *out)
{
    const struct ir_reg_info *info = &a->regs[r];
    fprintf(out, "r%u %s", r, shapes[info->shape]);
    if (info->shape == IR_AFFINE)
        fprintf(out, " stride=%" PRId64 "%s", info->stride, info->may_wrap ? " may-wrap" : "");
    if (info->is_const)
        fprintf(out, " const=%" PRId64, (int64_t)info->value);
    fprintf(out, "%s\n", info->block_uniform ? " block" : "");
}

void ir_analysis_print(const struct ir_module *m, const struct ir_analysis *a, FILE *out)
{
    const struct ir_fn *fn = &m->fns[a->fn];
    fprintf(out, "%s%s%s%s\n", ir_name(m, fn->name),
            a->divergent_barrier ? " divergent-barrier" : "", a->irreducible ? " irreducible" : "",
            a->used_small_grid ? " small-grid" : "");
    for (uint32_t n = 0; n < a->order_count; n++)
        print_block(a, a->order[n], out);
    for (uint32_t r = 0; r < a->reg_count; r++)
        print_reg(a, r, out);
    for (uint32_t i = 0; i < a->instr_count; i++) {
        const struct ir_instr_info *info = &a->instrs[i];
        const struct ir_instr *instr = &fn->instrs[i];
        bool memory = (ir_ops[instr->op].properties & (IR_P_LOAD | IR_P_STORE)) &&
                      instr->address.base != IR_NONE;
        if (!info->blend && !info->widen && !memory)
            continue;
        fprintf(out, "line %u %s", instr->line, ir_ops[instr->op].text);
        if (info->blend)
            fprintf(out, " blend=%#x", info->blend);
        if (info->widen)
            fprintf(out, " widen-%s", info->widen == IR_WIDEN_SIGNED ? "signed" : "unsigned");
        if (memory)
            fprintf(out, " address-%s/%" PRId64 "%s", shapes[info->address], info->address_stride,
                    info->address_may_wrap ? " may-wrap" : "");
        fputs("\n", out);
    }
    for (uint32_t r = 0; r < a->region_count; r++) {
        fprintf(out, "region %u start=B%u%s", r, a->regions[r].start,
                a->regions[r].jammable ? " jammable" : "");
        print_list(a, "blocks", a->regions[r].blocks, "B", out);
        print_list(a, "live-in", a->regions[r].live_in, "r", out);
        fputs("\n", out);
    }
}
