/*
 * Liveness of registers at block borders: the usual backward data flow over bit sets. It is per
 * lane: a guarded instruction does not end the life of what it writes, because lanes for which the
 * guard does not hold keep the old value. Masks are not considered here: frontier.c finds out which
 * old values waiting lanes need.
 */
#include "device/soft/ir/analyse.h"

static void set_bit(uint64_t *row, uint32_t bit)
{
    row[bit / 64] |= 1ull << (bit % 64);
}

static void clear_bit(uint64_t *row, uint32_t bit)
{
    row[bit / 64] &= ~(1ull << (bit % 64));
}

static void use(uint64_t *gen, uint32_t reg)
{
    if (reg != IR_NONE)
        set_bit(gen, reg);
}

static void define(uint64_t *gen, uint64_t *kill, uint32_t reg)
{
    if (reg == IR_NONE)
        return;
    set_bit(kill, reg);
    clear_bit(gen, reg);
}

/* gen: read before written in the block; kill: written. */
static void summarise(const struct ir_fn *fn, uint32_t block, uint64_t *gen, uint64_t *kill)
{
    const struct ir_block *b = &fn->blocks[block];
    for (uint32_t n = b->count; n-- > 0;) {
        const struct ir_instr *i = &fn->instrs[b->first + n];
        if (i->guard == IR_NONE) {
            for (unsigned d = 0; d < i->dst_count; d++)
                define(gen, kill, i->dst[d]);
            define(gen, kill, i->dst_pred);
        } else {
            for (unsigned d = 0; d < i->dst_count; d++)
                use(gen, i->dst[d]);
            use(gen, i->dst_pred);
        }
        use(gen, i->guard);
        use(gen, i->address.base);
        for (unsigned s = 0; s < i->src_count; s++)
            if (i->src[s].kind == IR_SRC_REG)
                use(gen, i->src[s].index);
    }
}

static bool flow(const struct ir_fn *fn, struct ir_analysis *a, uint32_t b, const uint64_t *gen,
                 const uint64_t *kill)
{
    uint32_t words = a->live_words;
    uint64_t *in = a->live_in + (size_t)b * words, *out = a->live_out + (size_t)b * words;
    for (uint32_t s = 0; s < fn->blocks[b].succ_count; s++) {
        const uint64_t *next = a->live_in + (size_t)fn->succ[fn->blocks[b].succ_first + s] * words;
        for (uint32_t w = 0; w < words; w++)
            out[w] |= next[w];
    }
    bool changed = false;
    for (uint32_t w = 0; w < words; w++) {
        uint64_t now = gen[w] | (out[w] & ~kill[w]);
        changed |= now != in[w];
        in[w] = now;
    }
    return changed;
}

int ir_compute_liveness(struct ir_analyser *an)
{
    const struct ir_fn *fn = an->fn;
    struct ir_analysis *a = an->a;
    size_t words = ((size_t)fn->reg_count + 63) / 64;
    size_t total = words * fn->block_count;
    if (total > (1u << 30) / 64)
        return -E2BIG;
    a->live_words = (uint32_t)words;
    a->live_in = calloc(total + 1, sizeof(uint64_t));
    a->live_out = calloc(total + 1, sizeof(uint64_t));
    uint64_t *gen = calloc(total + 1, sizeof(uint64_t)),
             *kill = calloc(total + 1, sizeof(uint64_t));
    int rc = a->live_in && a->live_out && gen && kill ? 0 : -ENOMEM;
    for (uint32_t b = 0; b < fn->block_count && rc == 0; b++)
        summarise(fn, b, gen + b * words, kill + b * words);
    for (bool changed = true; changed && rc == 0;) {
        changed = false;
        for (uint32_t n = a->order_count; n-- > 0 && rc == 0;) {
            uint32_t b = a->order[n];
            changed |= flow(fn, a, b, gen + b * words, kill + b * words);
            if (!ir_spend(an, words * (fn->blocks[b].succ_count + 1u)))
                rc = -E2BIG;
        }
    }
    free(gen);
    free(kill);
    return rc;
}
