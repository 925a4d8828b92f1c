/*
 * Barrier regions: what one call of compiled code runs for one warp, from the kernel's start or a
 * barrier to the next barrier. A block may belong to several regions. Around a barrier in a loop,
 * for example, there is the region that enters the loop and the one that resumes inside it.
 */
#include "device/soft/ir/analyse.h"

static void flag_barrier(struct ir_analysis *a, const struct ir_instr *i)
{
    if (!a->divergent_barrier)
        a->divergent_barrier_line = i->line;
    a->divergent_barrier = true;
}

/* Where lanes are parked, a barrier may be anywhere, but there may be only one kind: a plain
 * barrier of all threads. */
static bool is_common_barrier(const struct ir_instr *i, const struct ir_instr **first)
{
    if (!*first)
        *first = i;
    return i->mode == IR_BAR_SYNC && i->guard == IR_NONE && i->src_count == 1 &&
           i->src[0].kind == IR_SRC_IMM && i->src[0].bits == (*first)->src[0].bits;
}

static void check_barriers(struct ir_analyser *an)
{
    struct ir_analysis *a = an->a;
    const struct ir_instr *first = NULL;
    for (uint32_t n = 0; n < a->order_count; n++) {
        const struct ir_block *b = &an->fn->blocks[a->order[n]];
        for (uint32_t k = 0; k < b->count; k++) {
            const struct ir_instr *i = &an->fn->instrs[b->first + k];
            if (i->op != IR_OP_BAR)
                continue;
            a->has_barrier = true;
            if (a->parking) {
                if (!is_common_barrier(i, &first))
                    flag_barrier(a, i);
                continue;
            }
            bool is_red = i->mode != IR_BAR_SYNC && i->mode != IR_BAR_ARRIVE;
            bool counted = i->src_count > 1u + is_red;
            if (i->mode == IR_BAR_ARRIVE || counted || i->guard != IR_NONE ||
                a->blocks[a->order[n]].masked)
                flag_barrier(a, i);
        }
    }
}

/* Whether all warps of the thread block agree on all branches and exits of the block. */
static bool agrees(const struct ir_analyser *an, uint32_t block)
{
    const struct ir_instr *i = ir_last(an->fn, block);
    const struct ir_reg_info *regs = an->a->regs;
    if (!(ir_ops[i->op].properties & IR_P_TERMINATOR))
        return true;
    if (i->guard != IR_NONE && !regs[i->guard].block_uniform)
        return false;
    return i->op != IR_OP_BRX || i->src[0].kind != IR_SRC_REG ||
           regs[i->src[0].index].block_uniform;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Whether parked lanes need the register. */
static bool lives_parked(const struct ir_analysis *a, uint32_t reg)
{
    for (uint32_t n = 0; n < a->order_count; n++)
        if (a->blocks[a->order[n]].parks && ir_live_in(a, a->order[n], reg))
            return true;
    return false;
}

static int fill_region(struct ir_analyser *an, struct ir_region *r, uint8_t *seen, uint32_t *stack)
{
    const struct ir_fn *fn = an->fn;
    struct ir_analysis *a = an->a;
    uint32_t depth = 0;
    memset(seen, 0, fn->block_count);
    r->jammable = true;
    r->blocks.first = an->pool_count;
    seen[r->start] = 1;
    stack[depth++] = r->start;
    while (depth > 0) {
        uint32_t b = stack[--depth];
        if (!ir_pool_push(an, a->blocks[b].priority))
            return -ENOMEM;
        r->jammable &= agrees(an, b);
        if (a->blocks[b].barrier && !a->parking)
            continue;
        for (uint32_t s = 0; s < fn->blocks[b].succ_count; s++) {
            uint32_t t = fn->succ[fn->blocks[b].succ_first + s];
            if (!seen[t]) {
                seen[t] = 1;
                stack[depth++] = t;
            }
        }
    }
    r->blocks.count = an->pool_count - r->blocks.first;
    qsort(a->pool + r->blocks.first, r->blocks.count, sizeof(*a->pool), by_number);
    for (uint32_t k = 0; k < r->blocks.count; k++)
        a->pool[r->blocks.first + k] = a->order[a->pool[r->blocks.first + k]];
    r->live_in.first = an->pool_count;
    for (uint32_t reg = 0; reg < a->reg_count; reg++)
        if ((a->parking ? lives_parked(a, reg) : r->start != 0 && ir_live_in(a, r->start, reg)) &&
            !ir_pool_push(an, reg))
            return -ENOMEM;
    r->live_in.count = an->pool_count - r->live_in.first;
    return ir_spend(an, fn->block_count + a->reg_count) ? 0 : -E2BIG;
}

/* Numbers the regions by where they start: the entry first, then the resume points by priority. */
static int number_regions(struct ir_analyser *an, uint32_t *region_at)
{
    const struct ir_fn *fn = an->fn;
    struct ir_analysis *a = an->a;
    for (uint32_t b = 0; b < fn->block_count; b++)
        region_at[b] = a->resume[b] = IR_NONE;
    region_at[0] = 0; /* 0 only marks the place; the numbers follow below */
    for (uint32_t n = 0; n < a->order_count && !a->parking; n++)
        if (a->blocks[a->order[n]].barrier)
            region_at[fn->succ[fn->blocks[a->order[n]].succ_first]] = 0;
    uint32_t count = 0;
    for (uint32_t n = 0; n < a->order_count; n++)
        if (region_at[a->order[n]] == 0)
            region_at[a->order[n]] = count++;
    a->regions = calloc(count, sizeof(*a->regions));
    if (!a->regions)
        return -ENOMEM;
    a->region_count = count;
    for (uint32_t n = 0; n < a->order_count; n++) {
        uint32_t b = a->order[n];
        if (region_at[b] != IR_NONE)
            a->regions[region_at[b]].start = b;
        if (a->blocks[b].barrier && !a->parking)
            a->resume[b] = region_at[fn->succ[fn->blocks[b].succ_first]];
    }
    return 0;
}

int ir_find_regions(struct ir_analyser *an)
{
    struct ir_analysis *a = an->a;
    uint32_t blocks = an->fn->block_count;
    uint32_t *tables = malloc((size_t)blocks * 2 * sizeof(*tables));
    uint8_t *seen = malloc(blocks);
    a->resume = malloc((size_t)blocks * sizeof(*a->resume));
    int rc = tables && seen && a->resume ? 0 : -ENOMEM;
    if (rc == 0) {
        check_barriers(an);
        rc = number_regions(an, tables);
    }
    for (uint32_t r = 0; r < a->region_count && rc == 0; r++)
        rc = fill_region(an, &a->regions[r], seen, tables + blocks);
    free(tables);
    free(seen);
    return rc;
}
