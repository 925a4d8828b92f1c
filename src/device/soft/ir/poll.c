/*
 * Finds loops in which a thread may wait for another one of its block without a barrier: locks,
 * flags. Lanes of a warp run path by path and warps one after the other, so that such a thread
 * would keep the other one from running: it has to give up its turn.
 *
 * A poll is a read of memory inside a loop by an instruction that says that others write there at
 * the same time: an ordered or volatile load, or an atomic operation that has the same effect when
 * it is made again: a compare-and-swap against or exchange with a constant, a bit that is set (a
 * lock), a sum with 0. If what it read decides a branch in a loop, that loop waits.
 * (Compare-and-swap of what was read before is no poll: when it fails, another thread has got on.)
 */
#include <stdlib.h>

#include "device/soft/ir/analysis.h"

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

static bool is_poll(const struct ir_analysis *a, const struct ir_instr *i)
{
    if (i->op == IR_OP_LD)
        return i->order != IR_ORDER_WEAK && i->space != IR_SPACE_LOCAL &&
               i->space != IR_SPACE_PARAM;
    return i->op == IR_OP_ATOM && i->dst_count != 0 && repeats(a, i);
}

/* Marks what the instruction writes; true if that is news. */
static bool mark_results(const struct ir_instr *i, uint32_t *line, uint32_t value)
{
    bool news = false;
    for (unsigned d = 0; d <= i->dst_count; d++) {
        uint32_t reg = d == i->dst_count ? i->dst_pred : i->dst[d];
        if (reg == IR_NONE || line[reg])
            continue;
        line[reg] = value;
        news = true;
    }
    return news;
}

/* Line of the poll that a source of the instruction comes from, or 0. */
static uint32_t source_line(const struct ir_instr *i, const uint32_t *line)
{
    if (i->op == IR_OP_LD || i->op == IR_OP_ATOM)
        return 0;
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG && line[i->src[k].index])
            return line[i->src[k].index];
    return 0;
}

/* Marks the headers of the loops around the block. (What is not around it, but beside, does no
 * harm.) */
static void mark_loops(const struct ir_analysis *a, uint32_t block, bool *polls)
{
    uint32_t header = a->blocks[block].loop;
    while (header != IR_NONE) {
        polls[header] = true;
        uint32_t above = a->blocks[header].idom;
        header = above == IR_NONE ? IR_NONE : a->blocks[above].loop;
    }
}

uint32_t ir_find_polls(const struct ir_fn *fn, const struct ir_analysis *a, bool *polls)
{
    uint32_t *line = calloc(fn->reg_count + 1u,
                            sizeof(*line)); /* by register: line of the poll that it comes from */
    uint32_t found = 0;
    bool news = true;
    if (!line)
        return UINT32_MAX;
    while (news) {
        news = false;
        for (uint32_t k = 0; k < a->order_count; k++) {
            const struct ir_block *b = &fn->blocks[a->order[k]];
            if (a->blocks[a->order[k]].loop == IR_NONE)
                continue;
            for (uint32_t n = 0; n < b->count; n++) {
                const struct ir_instr *i = &fn->instrs[b->first + n];
                uint32_t from = is_poll(a, i) ? i->line : source_line(i, line);
                if (from)
                    news |= mark_results(i, line, from);
                bool branches = (ir_ops[i->op].properties & IR_P_TERMINATOR) && i->guard != IR_NONE;
                if (!branches || !line[i->guard])
                    continue;
                mark_loops(a, a->order[k], polls);
                found = found ? found : line[i->guard];
            }
        }
    }
    free(line);
    return found;
}
