/*
 * Thread frontiers: for each block the places where lanes may be waiting while it runs. analysis.h
 * explains the execution scheme, and how frontiers grow follows from it. After block B, the
 * candidates are F(B) and B's successors. If candidate N runs next, it was the first in priority
 * order that had lanes, so any others that have lanes come after it: F(N) contains all candidates
 * of lower priority than N. If B's branch does not diverge, its lanes go to one successor only.
 *
 * A conditional branch with one side that only returns is left out: lanes that go there leave, and
 * nobody waits for them.
 *
 * Lanes that are parked at a barrier are not among those that can run next. They go on in a turn of
 * their own, when all lanes of the warp that are alive have come to barriers, be it to different
 * ones: then no lane is anywhere else, such as in a loop that it polls in. So a row has a second
 * half, the blocks behind barriers where lanes are parked. Where the last lanes to come are, it
 * names all the others, and when they go on, these blocks are all the candidates that there are.
 *
 * Divergence depends on shapes, and shapes on frontiers (through blends). Both only grow, so they
 * are computed in turn until they are stable.
 */
#include "device/soft/ir/analyse.h"

/* What has to be computed again where a row has changed. */
#define NEWS_FOR_FLOW 1u
#define NEWS_FOR_PINS 2u
#define NEWS_FOR_ALL  3u

static uint64_t *row(const struct ir_analyser *an, uint32_t block)
{
    return an->frontier + (size_t)an->a->blocks[block].priority * an->row_words;
}

/* --- early exits ------------------------------------------------------------------------------ */

/* Finds blocks that contain only a return, or branches to such a block. */
static void find_returns(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    /* Backwards in priority order, so that the target of a branch is known already. Back edges are
     * the exception, but they never lead only to a return. */
    for (uint32_t n = an->a->order_count; n-- > 0;) {
        uint32_t b = an->a->order[n];
        const struct ir_instr *i = ir_last(fn, b);
        bool only = fn->blocks[b].count == 1 && i->guard == IR_NONE;
        if (only && i->op == IR_OP_BRA)
            only = an->a->blocks[i->target].only_returns;
        else
            only = only && (i->op == IR_OP_RET || i->op == IR_OP_EXIT);
        an->a->blocks[b].only_returns = only;
    }
}

static void find_early_exits(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    for (uint32_t n = 0; n < an->a->order_count; n++) {
        uint32_t b = an->a->order[n];
        const struct ir_instr *i = ir_last(fn, b);
        struct ir_block_info *info = &an->a->blocks[b];
        info->barrier = ir_is_barrier(i);
        if (i->guard == IR_NONE)
            continue;
        const uint32_t *succ = fn->succ + fn->blocks[b].succ_first;
        if (i->op == IR_OP_RET || i->op == IR_OP_EXIT) {
            info->early_exit = true;
            info->exit_taken = true;
        } else if (i->op == IR_OP_BRA && an->a->blocks[succ[0]].only_returns) {
            info->early_exit = true;
            info->exit_taken = true;
        } else if (i->op == IR_OP_BRA && an->a->blocks[succ[1]].only_returns) {
            info->early_exit = true;
        }
    }
}

/* --- frontiers -------------------------------------------------------------------------------- */

/* Whether lanes that take this successor of an early exit leave. */
static bool is_exit_side(const struct ir_analyser *an, uint32_t block, uint32_t s)
{
    const struct ir_block_info *info = &an->a->blocks[block];
    if (!info->early_exit || ir_last(an->fn, block)->op != IR_OP_BRA)
        return false;
    return s == (info->exit_taken ? 0 : 1);
}

/* F(next) |= candidates after next. */
static bool spread(struct ir_analyser *an, const uint64_t *candidates, uint32_t next_priority)
{
    uint64_t *to = an->frontier + (size_t)next_priority * an->row_words;
    bool changed = false;
    /* Nobody waits for parked lanes; they may be before `next`. */
    for (uint32_t w = 0; w < an->row_words && an->a->parking; w++) {
        uint64_t bits = candidates[w] & an->parks[w];
        if (w == next_priority / 64)
            bits &= ~(1ull << next_priority % 64);
        changed |= (bits & ~to[w]) != 0;
        to[w] |= bits;
    }
    for (uint32_t w = next_priority / 64; w < an->order_words; w++) {
        uint64_t bits = candidates[w];
        if (w == next_priority / 64)
            bits &= next_priority % 64 == 63 ? 0 : ~0ull << (next_priority % 64 + 1);
        changed |= (bits & ~to[w]) != 0;
        to[w] |= bits;
    }
    an->news[next_priority] |= changed ? NEWS_FOR_ALL : 0;
    return changed;
}

/* Lanes may be parked at the block with that priority while others run it. */
static bool add_itself(struct ir_analyser *an, uint32_t n)
{
    uint64_t *own = an->frontier + (size_t)n * an->row_words + n / 64, bit = 1ull << n % 64;
    if (*own & bit)
        return false;
    *own |= bit;
    an->news[n] |= NEWS_FOR_ALL;
    return true;
}

/* Lanes are parked where others are parked already, so some may be there while these run. Where
 * lanes meet, some may miss lanes that are elsewhere, while others do not. */
static bool spread_to_self(struct ir_analyser *an, uint32_t block)
{
    const uint64_t *here = row(an, block);
    bool changed = false, any = false;
    for (uint32_t w = 0; w < an->row_words && an->a->blocks[block].meets; w++)
        any |= here[w] != 0;
    if (any)
        changed = add_itself(an, an->a->blocks[block].priority);
    for (uint32_t w = 0; w < an->order_words && an->a->parking; w++)
        for (uint64_t bits = here[w] & an->parks[w]; bits; bits &= bits - 1)
            changed |= add_itself(an, w * 64 + (uint32_t)__builtin_ctzll(bits));
    return changed;
}

/* Spreads from each candidate that can run next: those not after `last`, the last candidate that
 * certainly has lanes. */
static bool spread_all(struct ir_analyser *an, const uint64_t *candidates, uint32_t last)
{
    bool changed = false;
    for (uint32_t w = 0; w <= last / 64; w++) {
        for (uint64_t bits = candidates[w]; bits; bits &= bits - 1) {
            uint32_t n = w * 64 + (uint32_t)__builtin_ctzll(bits);
            if (n <= last)
                changed |= spread(an, candidates, n);
            if (!ir_spend(an, an->row_words))
                return false;
        }
    }
    return changed;
}

/* All lanes that are alive are parked at the candidates' barriers, and go on, at once or when other
 * warps have come. */
static bool spread_released(struct ir_analyser *an, uint64_t *candidates)
{
    const uint64_t *at_barrier = candidates + an->order_words;
    memcpy(candidates, at_barrier, an->order_words * sizeof(*candidates));
    memset(candidates + an->order_words, 0, an->order_words * sizeof(*candidates));
    return spread_all(an, candidates, an->a->order_count - 1);
}

/* The block's lanes are parked at the barrier that ends it. */
static bool flow_barrier(struct ir_analyser *an, uint32_t block, uint64_t *candidates)
{
    uint32_t p = an->a->blocks[an->fn->succ[an->fn->blocks[block].succ_first]].priority;
    bool changed = spread_to_self(an, block);
    memcpy(candidates, row(an, block), an->row_words * sizeof(*candidates));
    candidates[an->order_words + p / 64] |= 1ull << p % 64;
    changed |= spread_all(an, candidates, an->a->order_count - 1);
    changed |= spread_released(an, candidates);
    return changed;
}

static bool flow_block(struct ir_analyser *an, uint32_t block, uint64_t *candidates)
{
    const struct ir_fn *fn = an->fn;
    const struct ir_block *b = &fn->blocks[block];
    const struct ir_block_info *info = &an->a->blocks[block];
    const uint64_t *here = row(an, block);
    bool changed = spread_to_self(an, block), any = false, parked = false;
    uint32_t last = 0;
    memcpy(candidates, here, an->row_words * sizeof(*candidates));
    for (uint32_t s = 0; s < b->succ_count; s++) {
        if (is_exit_side(an, block, s))
            continue;
        uint32_t p = an->a->blocks[fn->succ[b->succ_first + s]].priority;
        /* Two ways to one place: lanes of the second may be parked where those of the first run. */
        if (candidates[p / 64] >> (p % 64) & 1 &&
            ir_may_park(an->a, block, fn->succ[b->succ_first + s]))
            changed |= add_itself(an, p);
        candidates[p / 64] |= 1ull << (p % 64);
        last = GM_MAX(last, p);
        any = true;
        parked |= ir_may_park(an->a, block, fn->succ[b->succ_first + s]);
        if (!info->divergent) {
            changed |= spread_all(an, candidates, parked ? an->a->order_count - 1 : p);
            parked = false;
            memcpy(candidates, here, an->row_words * sizeof(*candidates));
        }
    }
    /* If all lanes may leave (return, early exit), lanes that wait elsewhere come next. */
    bool leaves = !any || info->early_exit || parked;
    if (info->divergent)
        changed |= spread_all(an, candidates, leaves ? an->a->order_count - 1 : last);
    if (!any || info->early_exit)
        changed |= spread_all(an, here, an->a->order_count - 1);
    return changed;
}

static int flow(struct ir_analyser *an, uint64_t *candidates)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < an->a->order_count; n++) {
            if (!(an->news[n] & NEWS_FOR_FLOW))
                continue;
            an->news[n] &= (uint8_t)~NEWS_FOR_FLOW;
            uint32_t block = an->a->order[n];
            bool parks = an->a->parking && an->a->blocks[block].barrier;
            changed |=
                parks ? flow_barrier(an, block, candidates) : flow_block(an, block, candidates);
            if (!ir_spend(an, an->row_words))
                return -E2BIG;
        }
    }
    return 0;
}

/* A word of the blocks where lanes may be, whatever they wait for. */
static uint64_t either_half(const struct ir_analyser *an, uint32_t block, uint32_t word)
{
    const uint64_t *here = row(an, block);
    return here[word] | (an->a->parking ? here[an->order_words + word] : 0);
}

/* Collects registers that lanes waiting in the frontier of a block still need. */
static void pin(struct ir_analyser *an, uint32_t block)
{
    struct ir_analysis *a = an->a;
    uint64_t *pinned = an->pinned + (size_t)block * a->live_words;
    for (uint32_t w = 0; w < an->order_words; w++)
        for (uint64_t bits = either_half(an, block, w); bits; bits &= bits - 1) {
            uint32_t other = a->order[w * 64 + (uint32_t)__builtin_ctzll(bits)];
            const uint64_t *live = a->live_in + (size_t)other * a->live_words;
            for (uint32_t k = 0; k < a->live_words; k++)
                pinned[k] |= live[k];
            if (!ir_spend(an, a->live_words))
                return;
        }
}

static void pin_all(struct ir_analyser *an)
{
    for (uint32_t n = 0; n < an->a->order_count; n++) {
        if (an->news[n] & NEWS_FOR_PINS)
            pin(an, an->a->order[n]);
        an->news[n] &= (uint8_t)~NEWS_FOR_PINS;
    }
}

/* --- divergence ------------------------------------------------------------------------------- */

static bool find_divergence(struct ir_analyser *an)
{
    bool changed = false;
    for (uint32_t n = 0; n < an->a->order_count; n++) {
        struct ir_block_info *info = &an->a->blocks[an->a->order[n]];
        const struct ir_instr *i = ir_last(an->fn, an->a->order[n]);
        if (info->divergent || info->early_exit || !ir_is_conditional(i))
            continue;
        bool varies = i->guard != IR_NONE && an->a->regs[i->guard].shape == IR_VARYING;
        if (i->op == IR_OP_BRX && i->src[0].kind == IR_SRC_REG) {
            uint8_t shape = an->a->regs[i->src[0].index].shape;
            varies |= shape == IR_VARYING || shape == IR_AFFINE;
        }
        info->divergent = varies;
        an->news[n] |= varies ? NEWS_FOR_FLOW : 0;
        changed |= varies;
    }
    return changed;
}

/* Marks what runs between a branch on which warps disagree and the place where they meet again. */
static bool mark_warp_branch(struct ir_analyser *an, uint32_t block, uint32_t *stack)
{
    const struct ir_fn *fn = an->fn;
    uint32_t stop = an->a->blocks[block].ipdom, depth = 0;
    uint8_t *seen = calloc(fn->block_count, 1);
    bool changed = false;
    if (!seen) {
        an->no_memory = true;
        return false;
    }
    stack[depth++] = block;
    while (depth > 0) {
        uint32_t b = stack[--depth];
        for (uint32_t s = 0; s < fn->blocks[b].succ_count; s++) {
            uint32_t t = fn->succ[fn->blocks[b].succ_first + s];
            if (t == stop || seen[t])
                continue;
            seen[t] = 1;
            changed |= !an->warp_branch[t];
            an->warp_branch[t] = true;
            stack[depth++] = t;
        }
        ir_spend(an, 1 + fn->blocks[b].succ_count);
    }
    ir_spend(an, fn->block_count / 16);
    free(seen);
    return changed;
}

static bool warps_disagree(const struct ir_analyser *an, const struct ir_instr *i)
{
    bool disagree = i->guard != IR_NONE && !an->a->regs[i->guard].block_uniform;
    if (i->op == IR_OP_BRX && i->src[0].kind == IR_SRC_REG)
        disagree |= !an->a->regs[i->src[0].index].block_uniform;
    return disagree;
}

static bool find_warp_branches(struct ir_analyser *an, bool *known, uint32_t *stack)
{
    bool changed = false;
    for (uint32_t n = 0; n < an->a->order_count; n++) {
        uint32_t b = an->a->order[n];
        const struct ir_instr *i = ir_last(an->fn, b);
        if (known[b] || !ir_is_conditional(i) || an->a->blocks[b].early_exit ||
            !warps_disagree(an, i))
            continue;
        known[b] = true;
        changed |= mark_warp_branch(an, b, stack);
    }
    return changed;
}

/* --- together --------------------------------------------------------------------------------- */

/* A register that depends only on itself ("x = x + tid" without an initial value) has no value. It
 * gets one here, so that shapes agree. */
static bool settle_unknown(struct ir_analyser *an)
{
    bool changed = false;
    for (uint32_t r = 0; r < an->a->reg_count; r++)
        if (an->a->regs[r].shape == IR_SHAPE_UNKNOWN) {
            an->a->regs[r].shape = IR_UNIFORM;
            changed = true;
        }
    return changed;
}

static int iterate(struct ir_analyser *an, uint64_t *candidates, bool *known, uint32_t *stack)
{
    for (;;) {
        int rc;
        while ((rc = ir_shape_round(an)) > 0)
            ;
        if (rc < 0)
            return rc;
        bool changed = find_divergence(an);
        if (changed) {
            rc = flow(an, candidates);
            if (rc == 0)
                pin_all(an);
        }
        changed |= find_warp_branches(an, known, stack);
        if (rc < 0)
            return rc;
        if (an->no_memory)
            return -ENOMEM;
        if (an->budget == 0)
            return -E2BIG;
        if (!changed && !settle_unknown(an))
            return 0;
    }
}

static int publish(struct ir_analyser *an)
{
    struct ir_analysis *a = an->a;
    for (uint32_t n = 0; n < a->order_count; n++) {
        struct ir_block_info *info = &a->blocks[a->order[n]];
        info->frontier.first = an->pool_count;
        for (uint32_t w = 0; w < an->order_words; w++)
            for (uint64_t bits = either_half(an, a->order[n], w); bits; bits &= bits - 1)
                if (!ir_pool_push(an, a->order[w * 64 + (uint32_t)__builtin_ctzll(bits)]))
                    return -ENOMEM;
        info->frontier.count = an->pool_count - info->frontier.first;
        info->masked = info->frontier.count > 0;
    }
    return 0;
}

/* Finds the places where lanes may be parked. */
static void find_parking(struct ir_analyser *an)
{
    struct ir_analysis *a = an->a;
    a->parking = an->opt.polls != NULL;
    for (uint32_t n = 0; n < a->order_count && a->parking; n++) {
        a->blocks[a->order[n]].polls = an->opt.polls[a->order[n]];
        a->blocks[a->order[n]].meets = an->opt.meets && an->opt.meets[a->order[n]];
    }
    for (uint32_t n = 0; n < a->order_count && a->parking; n++) {
        const struct ir_block *b = &an->fn->blocks[a->order[n]];
        for (uint32_t s = 0; s < b->succ_count; s++) {
            struct ir_block_info *to = &a->blocks[an->fn->succ[b->succ_first + s]];
            if (!ir_may_park(a, a->order[n], an->fn->succ[b->succ_first + s]))
                continue;
            to->parks = true;
            if (to->meets || !a->blocks[a->order[n]].barrier)
                an->parks[to->priority / 64] |= 1ull << to->priority % 64;
        }
    }
    /* The second half of each row holds nothing else. */
    for (uint32_t w = an->order_words; w < an->row_words; w++)
        an->parks[w] = ~0ull;
}

int ir_find_frontiers(struct ir_analyser *an)
{
    struct ir_analysis *a = an->a;
    uint32_t blocks = an->fn->block_count;
    an->order_words = (a->order_count + 63) / 64;
    an->row_words = an->opt.polls ? 2 * an->order_words : an->order_words;
    an->frontier = calloc((size_t)a->order_count * an->row_words + 1, sizeof(uint64_t));
    an->news = malloc(a->order_count + 1u);
    an->pinned = calloc((size_t)blocks * a->live_words + 1, sizeof(uint64_t));
    an->warp_branch = calloc(blocks, sizeof(bool));
    an->parks = calloc(an->row_words + 1u, sizeof(uint64_t));
    bool *known = calloc(blocks, sizeof(bool));
    uint32_t *stack = malloc((size_t)blocks * sizeof(*stack));
    uint64_t *candidates = calloc(an->row_words + 1u, sizeof(uint64_t));
    int rc = -ENOMEM;
    if (an->frontier && an->news && an->pinned && an->warp_branch && an->parks && known && stack &&
        candidates) {
        memset(an->news, NEWS_FOR_ALL, a->order_count);
        find_returns(an);
        find_early_exits(an);
        find_parking(an);
        rc = iterate(an, candidates, known, stack);
    }
    free(known);
    free(stack);
    free(candidates);
    if (rc == 0) {
        ir_shape_finish(an);
        rc = publish(an);
    }
    return rc;
}
