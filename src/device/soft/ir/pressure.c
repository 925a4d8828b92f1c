/*
 * How many 32-bit registers a thread would need on a GPU: about as many as are alive at once. Only
 * NVIDIA's assembler knows what it makes of a text. Programs ask for the number to choose a block
 * size, and the occupancy of a kernel should depend on its size.
 *
 * Lives are intervals of the text, from a register's first use to its last; a register that enters
 * a loop from outside lives to the loop's end.
 */
#include <stdlib.h>

#include "device/soft/ir/ir.h"

#define OWN   3u /* the stack and what the hardware's calling convention keeps */
#define UNIT  2u
#define LEAST 8u
#define MOST  255u

#define WORK_MOST (1u << 24) /* steps; after that many loops are no longer considered */

struct life {
    uint32_t from, to; /* instructions; from > to: unused */
};

static void touch(struct life *lives, uint32_t reg, uint32_t at)
{
    if (reg == IR_NONE)
        return;
    lives[reg].from = GM_MIN(lives[reg].from, at);
    lives[reg].to = GM_MAX(lives[reg].to, at);
}

static void touch_all(struct life *lives, const struct ir_instr *i, uint32_t at)
{
    for (unsigned d = 0; d < i->dst_count; d++)
        touch(lives, i->dst[d], at);
    touch(lives, i->dst_pred, at);
    touch(lives, i->guard, at);
    touch(lives, i->address.base, at);
    for (unsigned s = 0; s < i->src_count; s++)
        if (i->src[s].kind == IR_SRC_REG)
            touch(lives, i->src[s].index, at);
}

struct loop {
    uint32_t from, to;
};

/* Lists loops by their first instruction, ascending. A loop may be listed twice. */
static uint32_t find_loops(const struct ir_fn *fn, struct loop *loops)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < fn->block_count; b++)
        loops[b] = (struct loop) { fn->blocks[b].first, 0 };
    for (uint32_t b = 0; b < fn->block_count; b++) {
        const struct ir_block *block = &fn->blocks[b];
        for (uint32_t s = 0; s < block->succ_count; s++) {
            uint32_t to = fn->succ[block->succ_first + s];
            if (to <= b)
                loops[to].to = GM_MAX(loops[to].to, block->first + block->count - 1);
        }
    }
    for (uint32_t b = 0; b < fn->block_count; b++)
        if (loops[b].to)
            loops[count++] = loops[b];
    return count;
}

/* Extends a life to the end of each loop that it reaches into but does not begin in. */
static void extend(struct life *l, const struct loop *loops, uint32_t count, uint64_t *work)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (loops[middle].from <= l->from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && loops[low].from <= l->to && *work < WORK_MOST; low++, ++*work)
        l->to = GM_MAX(l->to, loops[low].to);
}

static uint32_t most_alive(const struct ir_fn *fn, const struct life *lives, int32_t *change)
{
    int32_t now = 0, most = 0;
    for (uint32_t r = 0; r < fn->reg_count; r++) {
        int32_t size = fn->regs[r].type == IR_PRED           ? 0
                       : ir_types[fn->regs[r].type].size > 4 ? 2
                                                             : 1;
        if (lives[r].from > lives[r].to)
            continue;
        change[lives[r].from] += size;
        /* A result may take the place of an operand. */
        change[lives[r].to] -= size;
    }
    for (uint32_t n = 0; n < fn->instr_count; n++) {
        now += change[n];
        most = GM_MAX(most, now);
    }
    return (uint32_t)most;
}

uint32_t ir_register_pressure(const struct ir_fn *fn)
{
    struct life *lives = malloc(((size_t)fn->reg_count + 1) * sizeof(*lives));
    struct loop *loops = malloc(((size_t)fn->block_count + 1) * sizeof(*loops));
    int32_t *change = calloc((size_t)fn->instr_count + 1, sizeof(*change));
    uint32_t result = LEAST;
    uint64_t work = 0;
    if (lives && loops && change) {
        for (uint32_t r = 0; r < fn->reg_count; r++)
            lives[r] = (struct life) { UINT32_MAX, 0 };
        for (uint32_t n = 0; n < fn->instr_count; n++)
            touch_all(lives, &fn->instrs[n], n);
        uint32_t count = find_loops(fn, loops);
        for (uint32_t r = 0; r < fn->reg_count; r++)
            if (lives[r].from < lives[r].to)
                extend(&lives[r], loops, count, &work);
        result = most_alive(fn, lives, change) + OWN;
    }
    free(lives);
    free(loops);
    free(change);
    result = (result + UNIT - 1) / UNIT * UNIT;
    if (fn->maxnreg)
        result = GM_MIN(result, fn->maxnreg);
    result = GM_MAX(result, LEAST);
    return GM_MIN(result, MOST);
}
