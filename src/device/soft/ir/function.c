/*
 * Addresses of functions. A function whose address a program takes gets a number, and its address
 * contains nothing but that: no memory lies there. A call by address looks the number up among the
 * functions that suit the call (outline.c). So any other value is an error of the kernel, and never
 * a place to which the processor jumps.
 */
#include <errno.h>

#include "device/soft/ir/call.h"

static int compare(const void *va, const void *vb)
{
    const struct ir_ranked *a = va, *b = vb;
    if (a->signature != b->signature)
        return a->signature < b->signature ? -1 : 1;
    return a->fn < b->fn ? -1 : a->fn > b->fn;
}

/* Calls `visit` for each instruction's source that is a function. */
static void each_use(const struct ir_module *m, struct ir_raw_fn *raws,
                     void (*visit)(struct ir_src *, uint32_t *), uint32_t *rank)
{
    for (uint32_t f = 0; f < m->fn_count; f++)
        for (uint32_t n = 0; n < raws[f].instr_count; n++)
            for (unsigned k = 0; k < raws[f].instrs[n].src_count; k++)
                if (raws[f].instrs[n].src[k].kind == IR_SRC_FN)
                    visit(&raws[f].instrs[n].src[k], rank);
}

static void mark(struct ir_src *src, uint32_t *rank)
{
    rank[src->index] = 0;
}

static uint64_t address(const uint32_t *rank, uint32_t fn)
{
    return IR_FUNCTIONS + (uint64_t)rank[fn] * IR_FUNCTION_STEP;
}

static void replace(struct ir_src *src, uint32_t *rank)
{
    *src = (struct ir_src) { .kind = IR_SRC_IMM, .bits = address(rank, src->index) };
}

/* Turns functions in initial values into numbers. */
static void initialise(struct ir_module *m, const uint32_t *rank)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < m->reloc_count; n++) {
        const struct ir_reloc r = m->relocs[n];
        if (!r.to_fn) {
            m->relocs[kept++] = r;
            continue;
        }
        uint64_t value = (address(rank, r.target) + (uint64_t)r.addend) >> r.shift;
        memcpy(m->init_bytes + m->symbols[r.symbol].init + r.offset, &value, r.size);
    }
    m->reloc_count = kept;
}

static void find_wanted(const struct ir_module *m, const struct ir_raw_fn *raws,
                        struct ir_functions *out)
{
    for (uint32_t f = 0; f < m->fn_count; f++)
        for (uint32_t c = 0; c < raws[f].call_count; c++) {
            uint32_t first = 0, count = 0;
            if (raws[f].calls[c].callee == IR_NONE)
                count = ir_functions_find(out, raws[f].calls[c].signature, &first);
            for (uint32_t k = 0; k < count && !out->wanted[out->ranked[first].fn]; k++)
                /* The first one comes last: all are done. */
                out->wanted[out->ranked[first + count - 1 - k].fn] = true;
        }
}

bool ir_number_functions(struct ir_module *m, struct ir_raw_fn *raws, struct ir_problem *why,
                         struct ir_functions *out)
{
    uint32_t *rank = malloc(((size_t)m->fn_count + 1) * sizeof(*rank));
    out->wanted = calloc((size_t)m->fn_count + 1, sizeof(*out->wanted));
    out->ranked = calloc((size_t)m->fn_count + 1, sizeof(*out->ranked));
    if (!rank || !out->wanted || !out->ranked) {
        free(rank);
        return ir_refuse(why, -ENOMEM, 0, 0, "out of memory");
    }
    memset(rank, 0xff, ((size_t)m->fn_count + 1) * sizeof(*rank));
    each_use(m, raws, mark, rank);
    for (uint32_t n = 0; n < m->reloc_count; n++)
        if (m->relocs[n].to_fn)
            rank[m->relocs[n].target] = 0;
    for (uint32_t f = 0; f < m->fn_count; f++) {
        const struct ir_raw_fn *raw = &raws[f];
        bool callable = m->fns[f].is_defined && !m->fns[f].is_entry;
        if (rank[f] == IR_NONE)
            continue;
        uint64_t signature =
            callable ? ir_signature(raw, raw->formals, raw->formal_rets, raw->formal_count) : 0;
        out->ranked[out->count++] = (struct ir_ranked) { .signature = signature, .fn = f };
    }
    qsort(out->ranked, out->count, sizeof(*out->ranked), compare);
    for (uint32_t r = 0; r < out->count; r++) {
        rank[out->ranked[r].fn] = r;
        m->fns[out->ranked[r].fn].address = address(rank, out->ranked[r].fn);
    }
    each_use(m, raws, replace, rank);
    initialise(m, rank);
    find_wanted(m, raws, out);
    free(rank);
    return true;
}

void ir_functions_finish(struct ir_functions *f)
{
    free(f->ranked);
    free(f->wanted);
}

/* The first rank of a signature, or of the next larger one. */
static uint32_t rank_from(const struct ir_functions *f, uint64_t signature)
{
    uint32_t low = 0, high = f->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (f->ranked[middle].signature < signature)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t ir_functions_find(const struct ir_functions *f, uint64_t signature, uint32_t *first)
{
    *first = rank_from(f, signature);
    return (signature == UINT64_MAX ? f->count : rank_from(f, signature + 1)) - *first;
}
