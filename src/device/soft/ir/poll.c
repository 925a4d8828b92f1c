/*
 * Finds loops in which a thread may wait for another one of its block without a barrier: locks,
 * flags. Lanes of a warp run path by path and warps one after the other, so that such a thread
 * would keep the other one from running: it has to give up its turn.
 *
 * A poll is a read of memory by an instruction that says that others write there at the same time:
 * an ordered or volatile load, or an atomic operation that has the same effect when it is made
 * again: a compare-and-swap against or exchange with a constant, a bit that is set (a lock), a sum
 * with 0. If what it reads inside of a loop decides whether that loop ends, the loop waits.
 * (Compare-and-swap of what was read before is no poll: when it fails, another thread has got on.
 * Nor is one by which a thread puts its value into a set: it looks for an empty place, or for its
 * own value, at another place each time. Where all are taken it does not count on others.)
 *
 * A branch decides that if lanes may come to it again before they are where its ways meet. What a
 * poll decides besides are the values that these ways leave in registers and in memory, by which a
 * later branch may end the loop: `if (locked) done = true`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/analysis.h"

#define DEPTH_MAX 8          /* instructions between an address and what it comes from */
#define STEPS_MAX (1u << 26) /* instructions to look at; loops that are left then may wait */

struct search {
    const struct ir_fn *fn;
    const struct ir_analysis *a;
    uint64_t steps;
    bool *polls; /* by instruction */
    /* of the current loop: */
    bool *in;         /* by block: it is in the loop, or in a function that may be called there */
    bool *spread;     /* by block: its branch is one that a poll decides */
    bool *decided;    /* by register: a poll decides its value */
    uint32_t written; /* bits, by space: a poll decides what is stored there */
    bool news;
    uint32_t *stack;
    bool *seen; /* by block */
};

static bool is_constant(const struct ir_analysis *a, const struct ir_src *s)
{
    return s->kind == IR_SRC_IMM || (s->kind == IR_SRC_REG && a->regs[s->index].is_const);
}

/* Made twice it does what it does once, with another result. */
static bool repeats(const struct ir_analysis *a, const struct ir_instr *i)
{
    const struct ir_src *s = &i->src[0];
    switch (i->mode) {
    case IR_ATOM_AND:
    case IR_ATOM_OR:
    case IR_ATOM_MIN:
    case IR_ATOM_MAX:
    case IR_ATOM_EXCH:
    case IR_ATOM_CAS:
        return is_constant(a, s);
    default:
        return s->kind == IR_SRC_IMM && s->bits == 0;
    }
}

static bool dominates(struct search *s, uint32_t above, uint32_t below)
{
    const struct ir_block_info *blocks = s->a->blocks;
    while (below != IR_NONE && blocks[below].priority > blocks[above].priority) {
        below = blocks[below].idom;
        s->steps++;
    }
    return below == above;
}

/* Lanes that come from the block to itself without leaving its loop have passed a definition of
 * the register. */
static bool is_renewed(struct search *s, uint32_t block, uint32_t reg)
{
    const struct ir_fn *fn = s->fn;
    uint32_t count = 1, header = s->a->blocks[block].loop;
    memset(s->seen, 0, s->a->block_count);
    s->stack[0] = block;
    while (count) {
        uint32_t at = s->stack[--count];
        const struct ir_block *b = &fn->blocks[at];
        bool writes = false;
        s->steps += b->count + 1u;
        for (uint32_t n = b->first; n < b->first + b->count; n++)
            for (unsigned d = 0; d < fn->instrs[n].dst_count; d++)
                writes |= fn->instrs[n].dst[d] == reg && fn->instrs[n].guard == IR_NONE;
        for (uint32_t k = 0; k < b->succ_count && !writes; k++) {
            uint32_t to = fn->succ[b->succ_first + k];
            if (to == block)
                return false;
            if (s->seen[to] || !dominates(s, header, to))
                continue;
            s->seen[to] = true;
            s->stack[count++] = to;
        }
    }
    return true;
}

/* The register comes from one that is another in each round of the block's loop. */
static bool is_another(struct search *s, uint32_t block, uint32_t reg, unsigned depth)
{
    if (reg == IR_NONE || depth == 0 || s->steps >= STEPS_MAX)
        return false;
    uint32_t def = s->a->regs[reg].single_def;
    if (def == IR_NONE)
        return is_renewed(s, block, reg);
    const struct ir_instr *i = &s->fn->instrs[def];
    if (ir_ops[i->op].properties & IR_P_LOAD)
        return false;
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG && is_another(s, block, i->src[k].index, depth - 1))
            return true;
    return false;
}

/* The compare-and-swap's result is compared with what it would have stored. */
static bool looks_for_its_own(struct search *s, const struct ir_instr *i)
{
    s->steps += s->fn->instr_count;
    for (uint32_t n = 0; n < s->fn->instr_count && i->src[1].kind == IR_SRC_REG; n++) {
        const struct ir_instr *c = &s->fn->instrs[n];
        if (c->op != IR_OP_SETP || (c->cmp != IR_CMP_EQ && c->cmp != IR_CMP_NE) ||
            c->src[0].kind != IR_SRC_REG || c->src[1].kind != IR_SRC_REG)
            continue;
        uint32_t x = c->src[0].index, y = c->src[1].index;
        if ((x == i->dst[0] && y == i->src[1].index) || (y == i->dst[0] && x == i->src[1].index))
            return true;
    }
    return false;
}

static bool inserts(struct search *s, uint32_t block, const struct ir_instr *i)
{
    return i->mode == IR_ATOM_CAS && s->a->blocks[block].loop != IR_NONE && s->steps < STEPS_MAX &&
           looks_for_its_own(s, i) && is_another(s, block, i->address.base, DEPTH_MAX);
}

static bool is_poll(struct search *s, uint32_t block, const struct ir_instr *i)
{
    if (i->op == IR_OP_LD)
        return i->order != IR_ORDER_WEAK && i->space != IR_SPACE_LOCAL &&
               i->space != IR_SPACE_PARAM;
    return i->op == IR_OP_ATOM && i->dst_count != 0 && repeats(s->a, i) && !inserts(s, block, i);
}

/* Notes once for all loops where the function polls. */
static bool find_polls(struct search *s)
{
    bool any = false;
    for (uint32_t k = 0; k < s->a->order_count; k++) {
        const struct ir_block *b = &s->fn->blocks[s->a->order[k]];
        for (uint32_t n = b->first; n < b->first + b->count; n++)
            any |= s->polls[n] = is_poll(s, s->a->order[k], &s->fn->instrs[n]);
    }
    return any;
}

static bool has_poll(struct search *s, uint32_t block)
{
    const struct ir_block *b = &s->fn->blocks[block];
    s->steps += b->count;
    for (uint32_t n = b->first; n < b->first + b->count; n++)
        if (s->polls[n])
            return true;
    return false;
}

/* Adds those blocks that lead to `block` and are in the loop: the header dominates them, and one
 * that leads to the header itself ends a round. */
static void add_before(struct search *s, uint32_t header, uint32_t block, uint32_t *count)
{
    const struct ir_block_info *blocks = s->a->blocks;
    for (uint32_t k = 0; k < blocks[block].preds.count; k++) {
        uint32_t before = s->a->pool[blocks[block].preds.first + k];
        if (s->in[before] || !dominates(s, header, before))
            continue;
        s->in[before] = true;
        s->stack[(*count)++] = before;
    }
}

/* Finds the blocks of the loop. True: there is a poll among them. */
static bool find_blocks(struct search *s, uint32_t header)
{
    const struct ir_analysis *a = s->a;
    uint32_t count = 0;
    bool found = has_poll(s, header);
    memset(s->in, 0, a->block_count);
    s->in[header] = true;
    add_before(s, header, header, &count);
    while (count && s->steps < STEPS_MAX) {
        uint32_t b = s->stack[--count];
        found |= has_poll(s, b);
        add_before(s, header, b, &count);
    }
    for (uint32_t n = 0; n < a->order_count; n++) {
        uint32_t b = a->order[n], function = a->blocks[b].function;
        if (!function || function == a->blocks[header].function)
            continue;
        s->in[b] = true;
        found |= has_poll(s, b);
    }
    return found;
}

static void decide(struct search *s, uint32_t reg)
{
    if (reg == IR_NONE || s->decided[reg])
        return;
    s->decided[reg] = s->news = true;
}

static void decide_memory(struct search *s, const struct ir_instr *i)
{
    uint32_t bit = 1u << (i->op == IR_OP_HELPER ? IR_SPACE_GENERIC : i->space);
    s->news |= !(s->written & bit);
    s->written |= bit;
}

static bool writes_memory(const struct ir_instr *i)
{
    return (ir_ops[i->op].properties & IR_P_STORE) || i->op == IR_OP_HELPER;
}

/* A poll decides what the instruction reads, or whether it runs. */
static bool is_decided(const struct search *s, const struct ir_instr *i)
{
    const uint32_t generic = 1u << IR_SPACE_GENERIC;
    if (i->guard != IR_NONE && s->decided[i->guard])
        return true;
    if (ir_ops[i->op].properties & IR_P_LOAD) {
        if (i->space == IR_SPACE_CONST || i->space == IR_SPACE_PARAM)
            return false;
        return i->space == IR_SPACE_GENERIC ? s->written != 0
                                            : (s->written & (generic | 1u << i->space)) != 0;
    }
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG && s->decided[i->src[k].index])
            return true;
    return false;
}

/* A poll decides which way lanes go from the block. Until they meet again at block `join` (IR_NONE:
 * they may not), it decides what is written. True: they may come to the block again before. */
static bool spread(struct search *s, uint32_t from, uint32_t join)
{
    uint32_t count = 1;
    s->steps += s->a->block_count / 16;
    memset(s->seen, 0, s->a->block_count);
    s->stack[0] = from;
    while (count) {
        uint32_t at = s->stack[--count];
        const struct ir_block *b = &s->fn->blocks[at];
        s->steps += b->count;
        for (uint32_t n = b->first; n < b->first + b->count && (at != from || s->seen[at]); n++) {
            const struct ir_instr *i = &s->fn->instrs[n];
            for (unsigned d = 0; d <= i->dst_count; d++) {
                uint32_t reg = d == i->dst_count ? i->dst_pred : i->dst[d];
                if (reg != IR_NONE && (join == IR_NONE || ir_live_in(s->a, join, reg)))
                    decide(s, reg);
            }
            if (writes_memory(i))
                decide_memory(s, i);
        }
        for (uint32_t k = 0; k < b->succ_count; k++) {
            uint32_t to = s->fn->succ[b->succ_first + k];
            if (to == join || !s->in[to] || s->seen[to])
                continue;
            s->seen[to] = true;
            s->stack[count++] = to;
        }
    }
    return s->seen[from];
}

/* True: from the block lanes go on or round the loop again, as a poll decides. */
static bool look_at(struct search *s, uint32_t header, uint32_t block)
{
    const struct ir_block *b = &s->fn->blocks[block];
    const struct ir_block_info *info = &s->a->blocks[block];
    s->steps += b->count;
    for (uint32_t n = b->first; n < b->first + b->count; n++) {
        const struct ir_instr *i = &s->fn->instrs[n];
        if (!is_decided(s, i) && !s->polls[n])
            continue;
        for (unsigned d = 0; d < i->dst_count; d++)
            decide(s, i->dst[d]);
        decide(s, i->dst_pred);
        if (is_decided(s, i) && writes_memory(i))
            decide_memory(s, i);
        if (!(ir_ops[i->op].properties & IR_P_TERMINATOR) || s->spread[block] || !is_decided(s, i))
            continue;
        s->spread[block] = true;
        if (spread(s, block, info->ipdom) && s->seen[header])
            return true;
    }
    return false;
}

static bool waits(struct search *s, uint32_t header)
{
    if (!find_blocks(s, header))
        return s->steps >= STEPS_MAX;
    s->steps += s->fn->reg_count / 16;
    memset(s->spread, 0, s->a->block_count);
    memset(s->decided, 0, s->fn->reg_count);
    s->written = 0;
    do {
        s->news = false;
        for (uint32_t n = 0; n < s->a->order_count; n++)
            if (s->in[s->a->order[n]] && look_at(s, header, s->a->order[n]))
                return true;
    } while (s->news && s->steps < STEPS_MAX);
    return s->news;
}

int ir_find_polls(const struct ir_fn *fn, const struct ir_analysis *a, bool *polls)
{
    struct search s = { .fn = fn, .a = a };
    int found = -ENOMEM;
    s.polls = calloc(fn->instr_count + 1u, sizeof(*s.polls));
    s.in = calloc(a->block_count + 1u, sizeof(*s.in));
    s.spread = calloc(a->block_count + 1u, sizeof(*s.spread));
    s.seen = calloc(a->block_count + 1u, sizeof(*s.seen));
    s.stack = calloc(a->block_count + 1u, sizeof(*s.stack));
    s.decided = calloc(fn->reg_count + 1u, sizeof(*s.decided));
    if (s.polls && s.in && s.spread && s.seen && s.stack && s.decided) {
        found = 0;
        bool any = find_polls(&s);
        for (uint32_t n = 0; n < a->order_count && any; n++) {
            uint32_t b = a->order[n];
            if (a->blocks[b].loop == b && (s.steps >= STEPS_MAX || waits(&s, b)))
                found = polls[b] = true;
        }
    }
    free(s.polls);
    free(s.in);
    free(s.spread);
    free(s.seen);
    free(s.stack);
    free(s.decided);
    return found;
}
