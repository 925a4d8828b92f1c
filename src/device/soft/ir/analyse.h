/*
 * State of one analysis, shared by its passes. Passes return 0, -ENOMEM or -E2BIG.
 */
#ifndef GMUX_SOFT_IR_ANALYSE_H
#define GMUX_SOFT_IR_ANALYSE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/analysis.h"

/* An interval that holds for the value of a 32-bit register, seen as s32, in all lanes that run. */
struct ir_range {
    int64_t low, high;
    uint8_t known; /* enum ir_range_known */
    uint8_t grows; /* times it was widened */
    bool grid;     /* relies on options.small_grid */
};
enum ir_range_known {
    IR_RANGE_UNKNOWN, /* nothing computed yet */
    IR_RANGE_KNOWN,
    IR_RANGE_ANY,
};

/* ir_reg_info.shape while the analysis runs: nothing known yet. */
#define IR_SHAPE_UNKNOWN 4

/* Predecessors and successors are 32-bit block numbers; a `row` is a set of blocks by priority,
 * order_words words. */
struct ir_analyser {
    const struct ir_module *m;
    const struct ir_fn *fn;
    struct ir_analyse_options opt;
    struct ir_analysis *a;
    uint32_t pool_cap, pool_count;
    uint64_t budget; /* steps left */
    bool no_memory;
    /* frontier.c */
    uint32_t order_words;
    uint64_t *frontier; /* row per priority */
    uint64_t *pinned; /* by block: registers live in somewhere in its frontier (live_words words) */
    uint64_t *parks;  /* row: where lanes may be parked */
    bool *warp_branch; /* by block: runs only for some warps of the thread block */
    bool *pure_return; /* by block: only_returns */
    /* ranges.c */
    struct ir_range *ranges;
    uint64_t *same; /* same.c: bit by register */
};

/* All definitions of the register compute the same value: none needs a blend. */
static inline bool ir_is_same(const struct ir_analyser *an, uint32_t reg)
{
    return an->same[reg / 64] >> (reg % 64) & 1;
}

/* Takes `steps` from the budget; false when it is spent. */
static inline bool ir_spend(struct ir_analyser *an, uint64_t steps)
{
    if (an->budget < steps) {
        an->budget = 0;
        return false;
    }
    an->budget -= steps;
    return true;
}

static inline const struct ir_instr *ir_last(const struct ir_fn *fn, uint32_t block)
{
    return &fn->instrs[fn->blocks[block].first + fn->blocks[block].count - 1];
}

static inline bool ir_reachable(const struct ir_analysis *a, uint32_t block)
{
    return a->blocks[block].priority != IR_NONE;
}

/* A branch with more than one way to go. */
static inline bool ir_is_conditional(const struct ir_instr *i)
{
    return i->op == IR_OP_BRX || (i->op == IR_OP_BRA && i->guard != IR_NONE);
}

/* pool.c: appends to the pool. False: out of memory (noted). */
bool ir_pool_push(struct ir_analyser *an, uint32_t value);

int ir_order_blocks(struct ir_analyser *an);     /* order.c */
int ir_find_same(struct ir_analyser *an);        /* same.c */
int ir_compute_liveness(struct ir_analyser *an); /* live.c */
int ir_find_frontiers(struct ir_analyser *an);   /* frontier.c: with shapes */
int ir_find_regions(struct ir_analyser *an);     /* region.c */

/* shape.c: one round over all instructions with the divergence known now. 1: something changed. */
int ir_shape_round(struct ir_analyser *an);
/* Shapes of addresses, widenings, blends: once all is stable. */
void ir_shape_finish(struct ir_analyser *an);
/* pattern.c: shapes and blends are final, ranges still there. */
int ir_find_patterns(struct ir_analyser *an);
/* Block size known for this analysis: of the options, or .reqntid; 0 if not. */
static inline uint32_t ir_known_ntid(const struct ir_analyser *an, unsigned dim)
{
    return an->opt.ntid[0] ? an->opt.ntid[dim] : an->fn->reqntid[dim];
}
/* No warp straddles rows. */
bool ir_rows(const struct ir_analyser *an);

int ir_compute_ranges(struct ir_analyser *an); /* ranges.c */
/* True if the values of `src` (32 bits, affine) in all lanes are lane 0's plus lane * stride
 * without wrapping. */
bool ir_cannot_wrap(struct ir_analyser *an, const struct ir_src *src, bool is_signed);

#endif
