/*
 * The state of one analysis, which its passes share. Passes return 0, -ENOMEM or -E2BIG.
 */
#ifndef GMUX_SOFT_IR_ANALYSE_H
#define GMUX_SOFT_IR_ANALYSE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/analysis.h"

/* An interval that contains the value of a 32-bit register, seen as s32, in all lanes that run. */
struct ir_range {
    int64_t low, high;
    uint8_t known; /* enum ir_range_known */
    uint8_t grows; /* how often it was widened */
    bool grid;     /* it relies on options.small_grid */
};
enum ir_range_known {
    IR_RANGE_UNKNOWN, /* nothing computed yet */
    IR_RANGE_KNOWN,
    IR_RANGE_ANY,
};

/* What a register's lower bits are, of which there are as many as number a warp's lanes. */
enum ir_low {
    IR_LOW_UNKNOWN, /* nothing computed yet, or it only depends on itself */
    IR_LOW_ZERO,    /* 0 in all lanes */
    IR_LOW_LANE,    /* the lane's number */
    IR_LOW_ANY,
};

/* A shape of ir_reg_info while the analysis runs: nothing is known yet. */
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
    uint32_t order_words, row_words;
    uint64_t *frontier; /* by priority: a row, and behind it, if lanes are parked, another one of
                           the blocks behind barriers where they are */
    uint8_t
        *news; /* by priority: the row or the branch has changed, and not all has followed yet */
    uint64_t *pinned; /* by block: registers live in somewhere in its frontier (live_words words) */
    uint64_t *parks;  /* where lanes may be parked: as one of `frontier` */
    bool *warp_branch; /* by block: only some warps of the thread block run it */
    bool *pure_return; /* by block: only_returns */
    /* ranges.c */
    struct ir_range *ranges;
    uint8_t *low;   /* low.c; enum ir_low by register */
    uint64_t *same; /* same.c; one bit per register */
};

/* Whether all definitions of the register compute the same value, so that none needs a blend. */
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

/* Visits all instructions in the order of their blocks, until none changes anything any more:
 * visit() says whether its one did. 0, or -E2BIG if the budget is spent. */
static inline int ir_until_stable(struct ir_analyser *an,
                                  bool (*visit)(struct ir_analyser *an, const struct ir_instr *i))
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < an->a->order_count; n++) {
            const struct ir_block *b = &an->fn->blocks[an->a->order[n]];
            if (!ir_spend(an, b->count))
                return -E2BIG;
            for (uint32_t k = 0; k < b->count; k++)
                changed |= visit(an, &an->fn->instrs[b->first + k]);
        }
    }
    return 0;
}

static inline const struct ir_instr *ir_last(const struct ir_fn *fn, uint32_t block)
{
    return &fn->instrs[fn->blocks[block].first + fn->blocks[block].count - 1];
}

static inline bool ir_reachable(const struct ir_analysis *a, uint32_t block)
{
    return a->blocks[block].priority != IR_NONE;
}

/* Whether a branch has more than one way to go. */
static inline bool ir_is_conditional(const struct ir_instr *i)
{
    return i->op == IR_OP_BRX || (i->op == IR_OP_BRA && i->guard != IR_NONE);
}

/* pool.c. Appends to the pool. False: no memory (noted in the analyser). */
bool ir_pool_push(struct ir_analyser *an, uint32_t value);

int ir_order_blocks(struct ir_analyser *an);     /* order.c */
int ir_find_same(struct ir_analyser *an);        /* same.c */
int ir_compute_liveness(struct ir_analyser *an); /* live.c */
int ir_find_frontiers(struct ir_analyser *an);   /* frontier.c: with shapes */
int ir_find_regions(struct ir_analyser *an);     /* region.c */

/* shape.c. One round over all instructions, with the divergence that is known now. 1: something
 * changed. */
int ir_shape_round(struct ir_analyser *an);
/* Finds shapes of addresses, widenings and blends. Called when all shapes are stable. */
void ir_shape_finish(struct ir_analyser *an);
/* pattern.c. Called when shapes and blends are final and ranges still exist. */
int ir_find_patterns(struct ir_analyser *an);
/* The block size known for this analysis, from the options or .reqntid; 0: it is not known. */
static inline uint32_t ir_known_ntid(const struct ir_analyser *an, unsigned dim)
{
    return an->opt.ntid[0] ? an->opt.ntid[dim] : an->fn->reqntid[dim];
}
/* Whether no warp straddles rows of the block. */
static inline bool ir_rows(const struct ir_analyser *an)
{
    uint32_t x = ir_known_ntid(an, 0), y = ir_known_ntid(an, 1), z = ir_known_ntid(an, 2);
    if (x == 0)
        return an->opt.rows;
    return x % an->opt.lanes == 0 || (y <= 1 && z <= 1);
}

int ir_compute_ranges(struct ir_analyser *an); /* ranges.c */
/* Whether the values of `src` (32 bits, affine) are lane 0's plus lane * stride in all lanes,
 * without wrapping. */
bool ir_cannot_wrap(struct ir_analyser *an, const struct ir_src *src, bool is_signed);

int ir_compute_low(struct ir_analyser *an); /* low.c */
enum ir_low ir_low_of(struct ir_analyser *an, const struct ir_src *s);

#endif
