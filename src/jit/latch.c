/*
 * Loops with several ways back to their beginning. The first block that has lanes runs next, so
 * that lanes which went back would run the loop's next round at once, and without those that are
 * still in this one: they would not meet in the round's shuffles and votes, nor ever again in the
 * loop. Here all ways back get one block of their own, the last of the loop, where lanes wait for
 * the round's others. (A source's loop has one. nvcc copies it, if it is short, to the ends of
 * the branches before it.)
 *
 * Loops with several entrances, tangles, stay as they are: their exits need not come last in the
 * order of blocks, so that lanes which have left could run before those that wait in such a block.
 */
#include <errno.h>
#include <stdlib.h>

#include "device/soft/ir/raw.h"
#include "jit/gen.h"

/* Whether lanes leave the block for another function, or come back from one. */
static bool changes_function(const struct ir_fn *fn, uint32_t block)
{
    const struct ir_block *b = &fn->blocks[block];
    uint8_t mode = fn->instrs[b->first + b->count - 1].mode;
    return mode == IR_BRANCH_CALL || mode == IR_BRANCH_RETURN;
}

/* Whether ways from `block` to `header`, if there are any, lead back in a loop that is entered at
 * `header` only. Calls are no such ways. */
static bool is_below(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t header,
                     uint32_t block)
{
    if (changes_function(fn, block))
        return false;
    while (block != IR_NONE && a->blocks[block].priority > a->blocks[header].priority)
        block = a->blocks[block].idom;
    return block == header;
}

/* Where the loop that begins with this block ends, as a priority: the last block from where a way
 * leads back to it. Its own priority: it begins no loop. */
static uint32_t end_of_loop(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t header)
{
    const struct ir_list *preds = &a->blocks[header].preds;
    uint32_t end = a->blocks[header].priority;
    for (uint32_t k = 0; k < preds->count; k++)
        if (is_below(fn, a, header, a->pool[preds->first + k]))
            end = GM_MAX(end, a->blocks[a->pool[preds->first + k]].priority);
    return end;
}

/* Whether lanes may be in the rest of the loop while others begin its next round. */
static bool runs_ahead(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t header)
{
    const struct ir_block_info *info = &a->blocks[header];
    uint32_t end = info->frontier.count ? end_of_loop(fn, a, header) : 0;
    for (uint32_t k = 0; k < info->frontier.count; k++) {
        uint32_t priority = a->blocks[a->pool[info->frontier.first + k]].priority;
        if (priority > info->priority && priority <= end)
            return true;
    }
    return false;
}

bool jit_in_tangle(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t block)
{
    uint32_t here = a->blocks[block].priority;
    for (uint32_t n = here; n < a->order_count && a->irreducible; n++) {
        const struct ir_block *b = &fn->blocks[a->order[n]];
        for (uint32_t s = 0; s < b->succ_count && !changes_function(fn, a->order[n]); s++) {
            uint32_t to = fn->succ[b->succ_first + s];
            if (a->blocks[to].priority <= here && !is_below(fn, a, to, a->order[n]))
                return true;
        }
    }
    return false;
}

/* Has the ways that lead back to `header` lead to block `latch`. */
static void lead_to(struct ir_fn *fn, const struct ir_analysis *a, uint32_t header, uint32_t latch)
{
    for (uint32_t n = a->blocks[header].priority; n < a->order_count; n++) {
        const struct ir_block *b = &fn->blocks[a->order[n]];
        struct ir_instr *last = &fn->instrs[b->first + b->count - 1];
        if (!is_below(fn, a, header, a->order[n]))
            continue;
        for (uint32_t s = 0; s < b->succ_count; s++)
            if (fn->succ[b->succ_first + s] == header)
                fn->succ[b->succ_first + s] = latch;
        if (last->op == IR_OP_BRA && last->target == header)
            last->target = latch;
    }
}

static bool grow(struct ir_fn *fn, uint32_t more)
{
    struct ir_block *blocks = realloc(fn->blocks, (fn->block_count + more) * sizeof(*blocks));
    fn->blocks = blocks ? blocks : fn->blocks;
    uint32_t *succ = realloc(fn->succ, (fn->succ_count + more) * sizeof(*succ));
    fn->succ = succ ? succ : fn->succ;
    struct ir_instr *instrs = realloc(fn->instrs, (fn->instr_count + more) * sizeof(*instrs));
    fn->instrs = instrs ? instrs : fn->instrs;
    return blocks && succ && instrs;
}

static void add_latch(struct ir_fn *fn, const struct ir_analysis *a, uint32_t header)
{
    uint32_t latch = fn->block_count++;
    const struct ir_instr *at = &fn->instrs[fn->blocks[header].first];
    struct ir_instr back;
    lead_to(fn, a, header, latch);
    ir_instr_init(&back, IR_OP_BRA, at->line, at->column);
    back.target = header;
    fn->blocks[latch] = (struct ir_block) {
        .first = fn->instr_count, .count = 1, .succ_first = fn->succ_count, .succ_count = 1
    };
    fn->instrs[fn->instr_count++] = back;
    fn->succ[fn->succ_count++] = header;
}

int jit_join_ways_back(struct ir_fn *fn, const struct ir_analysis *a)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < a->order_count; n++)
        count += runs_ahead(fn, a, a->order[n]);
    if (count && !grow(fn, count))
        return -ENOMEM;
    for (uint32_t n = 0; n < a->order_count && count; n++)
        if (runs_ahead(fn, a, a->order[n]))
            add_latch(fn, a, a->order[n]);
    return (int)count;
}
