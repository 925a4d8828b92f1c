/*
 * What the compiler needs to know about a function before it can turn warps into vector code:
 * control flow, order of blocks, divergence, which registers are equal over a warp, where masks and
 * blends are needed, barrier regions. One call runs all passes over one entry; the result is
 * immutable and independent of the module's life except that it speaks in its indices. The passes:
 *   order.c     predecessors, dominators, loops, order of blocks
 *   same.c      registers that all definitions give the same value
 *   live.c      liveness
 *   shape.c     uniform, affine, varying; ranges.c: can a 32-bit index wrap? low.c: lower bits
 *   pattern.c   lanes that differ by constants, but not by a stride
 *   frontier.c  thread frontiers, divergence of branches; alternates with shape.c until both are
 *               stable
 *   region.c    barrier regions
 *
 * The execution scheme that the results are for ("thread frontiers"): each block has a waiting set
 * of lanes, empty at first. After block B ran with mask M, its lanes are added to the waiting sets
 * of the successors that they take; then the first block in priority order among {B's successors
 * and F(B)} that has a non-empty waiting set runs, with all of its waiting lanes. F(B), the
 * frontier, are the blocks where lanes may be waiting while B runs. If F(B) is empty, B runs with
 * all lanes that are alive and its control flow is plain scalar control flow.
 *
 * Threads that wait for each other need turns. For kernels in which they may, lanes that would look
 * again, or that come to a barrier, are parked (options.polls): they stay out of the waiting sets
 * until no other lane of the warp can run. The warp is left then, whatever its lanes wait at, and
 * has its next turn after the block's other warps. Lanes at barriers go on in that turn if every
 * lane of the block that is alive is at one.
 */
#ifndef GMUX_SOFT_IR_ANALYSIS_H
#define GMUX_SOFT_IR_ANALYSIS_H

#include "device/soft/ir/ir.h"

/* What is known about the launches that the code is for; all zero: nothing. */
struct ir_analyse_options {
    uint32_t ntid[3]; /* block size, or 0 0 0. (.reqntid of the entry is used by itself.) */
    uint32_t lanes;   /* of a warp; 0: 32 */
    /* Promise of the caller: no warp straddles rows of the block (ntid.x is a multiple of 32, or
     * ntid.y = ntid.z = 1). Implied where ntid says so. Without it and without ntid, tid.x is
     * varying. */
    bool rows;
    /* Promise of the caller: nctaid.d * ntid.d < 2^31 in each dimension d, so that ctaid.d * ntid.d
     * + tid.d does not wrap. (Only launches of over 2 G threads in a row break it.) */
    bool small_grid;
    /* By block, or NULL: headers of loops that wait for other threads. Lanes that come back to one
     * are parked there, and so are those at barriers, which may then be in divergent code. */
    const bool *polls;
    /* With polls, by block: begins with an instruction for which lanes of the warp meet. Those that
     * come before others are parked there. */
    const bool *meets;
};

enum ir_shape {
    IR_UNIFORM, /* one value for all lanes that run: a scalar */
    IR_AFFINE, /* base + lane * stride, modulo 2^(width of the register); base = the value that lane
                  0 would have */
    IR_VARYING, /* a vector */
    IR_PATTERN, /* base + a constant of the lane's: ir_analysis.patterns */
};

struct ir_reg_info {
    uint8_t shape; /* enum ir_shape; holds for every definition of the register */
    /* AFFINE only: the value derives from a widening (cvt.u64.u32, mul.wide ..) of an affine value
     * that may wrap inside the warp there; then base + lane * stride is wrong. Code must either
     * test the sources of those widenings at run time (ir_instr_info.widen tells where and how) and
     * have a vector form to fall back on, or treat the register as varying. */
    uint8_t may_wrap;
    /* All warps of the block that have reached the same point on the same path have the same scalar
     * (UNIFORM), the same base (AFFINE) or the same vector (VARYING). */
    uint8_t block_uniform;
    /* UNIFORM with a value that is known now: `value`, with bits as in ir_src.bits */
    uint8_t is_const;
    uint32_t defs;       /* number of instructions that write it */
    uint32_t single_def; /* that instruction if defs == 1, else IR_NONE */
    /* like single_def, or one of several definitions that all compute one value (same.c); else
     * IR_NONE */
    uint32_t any_def;
    int64_t stride; /* AFFINE */
    uint64_t value;
    uint32_t pattern; /* PATTERN, and AFFINE if known: index in ir_analysis.patterns + 1; else 0 */
};

#define IR_LANES_MAX 32

/* Lane l's value is b + at[l]; b is the same for all lanes and a multiple of 1 << align
 * (pattern.c). */
struct ir_pattern {
    int32_t at[IR_LANES_MAX];
    uint8_t align;
};

enum ir_widen {
    IR_WIDEN_NONE,
    IR_WIDEN_UNSIGNED, /* affine only if base + lane * stride of the narrow source stays in [0, 2^w)
                        * for lanes 0 .. 31
                        */
    IR_WIDEN_SIGNED,   /* ... in [-2^(w-1), 2^(w-1)) */
};

struct ir_instr_info {
    /* The destination must be blended with its old value under the mask, because lanes on another
     * path still need the old one. Bit d: dst[d]; bit 4: dst_pred. A guarded instruction blends by
     * its guard in any case. */
    uint8_t blend;
    uint8_t widen; /* enum ir_widen: the result is affine if source `widen_src` does not wrap; NONE
                      if proven */
    uint8_t widen_src; /* index in src */
    uint8_t address;   /* enum ir_shape of the address of memory instructions (base + symbol +
                          displacement) */
    uint8_t address_may_wrap;
    int64_t address_stride;
};

/* A list in ir_analysis.pool. */
struct ir_list {
    uint32_t first, count;
};

struct ir_block_info {
    uint32_t priority; /* position in `order`; IR_NONE: unreachable, ignore the block */
    uint32_t idom;     /* immediate dominator (block) within the function, IR_NONE for its entry */
    uint32_t ipdom;    /* immediate post-dominator, IR_NONE: the exit */
    /* header of the innermost natural loop of its function that contains it, or IR_NONE */
    uint32_t loop;
    uint32_t loop_depth;
    /* first block of the function that contains it, if that function stays apart; else 0 */
    uint32_t function;
    struct ir_list preds;    /* blocks; reachable ones only */
    struct ir_list frontier; /* blocks, in priority order; see above */
    /* It ends with a conditional branch (or brx) on which lanes may disagree. */
    bool divergent;
    /* It ends with a conditional branch with one side that only returns; then it is never
     * `divergent`. Lanes that take that side leave the alive mask, the others go on, and the
     * returning block need not exist for it. (The guard may be uniform; then all leave or none
     * does.) exit_taken: the side that returns is the branch target (succ 0), else the fall-through
     * (succ 1). The same holds for a guarded ret or exit, whose one successor is where the other
     * lanes go on. */
    bool early_exit;
    bool exit_taken;
    bool only_returns; /* contains only ret or exit, perhaps after branches without effect */
    bool barrier;      /* ends with a barrier at which warps wait */
    /* its frontier is not empty: it runs with a mask, not with all lanes that are alive */
    bool masked;
    bool polls; /* options.polls */
    bool meets; /* options.meets */
    bool parks; /* lanes may be parked at its beginning */
};

/* The blocks reachable from `start` without crossing a barrier. Region 0 starts at the function's
 * entry, the others at resume points: successors of blocks that end with a barrier. */
struct ir_region {
    uint32_t start;        /* block */
    struct ir_list blocks; /* in priority order; a block may be in several regions */
    /* registers that must survive the barrier (none for region 0), ascending */
    struct ir_list live_in;
    /* All warps of the block agree on all branches and exits inside (their guards are
     * block_uniform). So several warps may run as one, and all of them leave the region at the same
     * barrier. */
    bool jammable;
};

struct ir_analysis {
    uint32_t fn;
    uint32_t block_count, instr_count, reg_count, order_count, region_count;
    struct ir_block_info *blocks; /* by block */
    struct ir_instr_info *instrs; /* by instruction */
    struct ir_reg_info *regs;     /* by register */
    uint32_t *order;  /* reachable blocks by priority: reverse post-order, loops contiguous */
    uint32_t *resume; /* by block: region that starts after this block's barrier, or IR_NONE */
    struct ir_region *regions;
    uint32_t *pool;
    struct ir_pattern *patterns;
    uint32_t pattern_count;
    /* liveness: bit r of the words from b * live_words on */
    uint32_t live_words;
    uint64_t *live_in, *live_out;
    /* The region scheme does not hold for this function, so the interpreter runs it. It has a
     * barrier in a block whose frontier is not empty (lanes of one warp may wait at different
     * barriers), a guarded barrier, or one that is not for all threads of the block (bar.arrive, a
     * thread count). */
    bool divergent_barrier;
    uint32_t divergent_barrier_line;
    bool has_barrier;
    /* options.polls were given: the whole function is one region, and live_in is what parked lanes
     * need. */
    bool parking;
    bool irreducible;
    /* The analysis relied on options.small_grid: code made from it must not run for larger grids.
     */
    bool used_small_grid;
};

/*
 * Analyses entry `fn` of `m`. 0, -ENOMEM, or -E2BIG: more work than the limits on time and memory
 * allow (reachable blocks over IR_ANALYSE_MAX_BLOCKS, blocks x registers over 2^30, steps over
 * 2^31); then only the interpreter can run it. *out is the caller's.
 */
#define IR_ANALYSE_MAX_BLOCKS 16384
GM_MUST_CHECK int ir_analyse(const struct ir_module *m, uint32_t fn,
                             const struct ir_analyse_options *opt, struct ir_analysis **out);
void ir_analysis_destroy(struct ir_analysis *a);

/* Whether there is a loop in which a thread may wait for another one of its block: 0, 1 or -ENOMEM.
 * polls[block], all false before: it is the header of such a loop. */
GM_MUST_CHECK int ir_find_polls(const struct ir_fn *fn, const struct ir_analysis *a, bool *polls);
/* How often a warp's lanes go back to such loops in a turn before they give it up; half as many in
 * the next turn if that was in vain, and so on down to one. */
#define IR_PATIENCE 128u

/* Whether lanes that go from one block to the other are parked. */
static inline bool ir_parks(const struct ir_analysis *a, uint32_t from, uint32_t to)
{
    if (!a->parking)
        return false;
    return a->blocks[from].barrier ||
           (a->blocks[to].polls && a->blocks[from].priority >= a->blocks[to].priority);
}

/* Whether they may be. */
static inline bool ir_may_park(const struct ir_analysis *a, uint32_t from, uint32_t to)
{
    return a->blocks[to].meets || ir_parks(a, from, to);
}

/* The block's k-th successor; IR_NONE: it has fewer. */
static inline uint32_t ir_successor(const struct ir_fn *f, uint32_t block, uint32_t k)
{
    const struct ir_block *b = &f->blocks[block];
    return k < b->succ_count ? f->succ[b->succ_first + k] : IR_NONE;
}

static inline bool ir_live_in(const struct ir_analysis *a, uint32_t block, uint32_t reg)
{
    return a->live_in[(uint64_t)block * a->live_words + reg / 64] >> (reg % 64) & 1;
}
static inline bool ir_live_out(const struct ir_analysis *a, uint32_t block, uint32_t reg)
{
    return a->live_out[(uint64_t)block * a->live_words + reg / 64] >> (reg % 64) & 1;
}

struct _IO_FILE;
void ir_analysis_print(const struct ir_module *m, const struct ir_analysis *a,
                       struct _IO_FILE *out);

#endif
