/*
 * Which values of a function are needed after its calls. outline.c has to know that for recursive
 * functions. The usual backward data flow, over linear code with labels.
 */
#include "device/soft/ir/call.h"

#define MOST_WORDS (1u << 22) /* of bit sets */

struct ir_across {
    const struct ir_raw_fn *raw;
    uint32_t words, block_count;
    uint32_t *first;    /* by block, and the end */
    uint32_t *block_of; /* by instruction, and the end */
    uint64_t *in;       /* one row per block, and one for the end */
    uint64_t *now;      /* one row */
};

static void set_variable(struct ir_across *x, uint32_t reg, bool needed)
{
    if (reg == IR_NONE)
        return;
    if (needed)
        x->now[reg / 64] |= 1ull << (reg % 64);
    else
        x->now[reg / 64] &= ~(1ull << (reg % 64));
}

static void set_operand(struct ir_across *x, const struct ir_src *s, bool needed)
{
    if (s->kind == IR_SRC_REG)
        set_variable(x, s->index, needed);
    else if (s->kind == IR_SRC_SYMBOL && (s->index & IR_TEMP))
        set_variable(x, x->raw->reg_count + (s->index & ~IR_TEMP), needed);
}

/* Whether a store writes the whole variable. */
static bool writes_all(const struct ir_raw_fn *raw, const struct ir_instr *i)
{
    uint64_t bytes = (uint64_t)ir_types[i->type].size * i->src_count;
    return i->op == IR_OP_ST && i->address.displacement == 0 &&
           bytes == raw->temps[i->address.symbol & ~IR_TEMP].size;
}

/* Turns what is needed after the instruction into what is needed before it. */
static void step(struct ir_across *x, const struct ir_instr *i)
{
    const struct ir_raw_fn *raw = x->raw;
    const struct ir_raw_call *call = i->op == IR_OP_CALL ? &raw->calls[i->target] : NULL;
    bool always = i->guard == IR_NONE,
         temp = i->address.symbol != IR_NONE && (i->address.symbol & IR_TEMP);
    for (unsigned d = 0; d < i->dst_count && always; d++)
        set_variable(x, i->dst[d], false);
    if (always)
        set_variable(x, i->dst_pred, false);
    if (temp)
        set_variable(x, raw->reg_count + (i->address.symbol & ~IR_TEMP),
                     !always || !writes_all(raw, i));
    for (uint32_t k = 0; call && always && k < call->ret_count; k++)
        set_operand(x, &raw->args[call->arg_first + k], false);
    for (uint32_t k = 0; call && k < call->arg_count; k++)
        set_operand(x, &raw->args[call->arg_first + call->ret_count + k], true);
    if (call)
        set_variable(x, call->pointer, true);
    set_variable(x, i->guard, true);
    set_variable(x, i->address.base, true);
    for (unsigned k = 0; k < i->src_count; k++)
        set_operand(x, &i->src[k], true);
}

static void join(struct ir_across *x, uint32_t instr)
{
    const uint64_t *row = x->in + (size_t)x->block_of[instr] * x->words;
    for (uint32_t w = 0; w < x->words; w++)
        x->now[w] |= row[w];
}

/* Begins with what is needed behind the last instruction of a block. */
static void begin(struct ir_across *x, uint32_t block)
{
    const struct ir_raw_fn *raw = x->raw;
    uint32_t next = x->first[block + 1], count;
    const struct ir_instr *i = &raw->instrs[next - 1];
    memset(x->now, 0, x->words * sizeof(uint64_t));
    const uint32_t *targets = ir_raw_targets(raw, i, &count);
    for (uint32_t t = 0; t < count; t++)
        join(x, raw->labels[targets[t]]);
    if (i->op == IR_OP_RET)
        join(x, raw->instr_count);
    if (ir_falls_through(i))
        join(x, next);
}

static void flow(struct ir_across *x)
{
    uint64_t *end = x->in + (size_t)x->block_count * x->words;
    for (uint32_t k = 0; k < x->raw->formal_rets; k++)
        set_operand(x, &x->raw->formals[k], true);
    memcpy(end, x->now, x->words * sizeof(*end));
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = x->block_count; b-- > 0;) {
            uint64_t *row = x->in + (size_t)b * x->words;
            begin(x, b);
            for (uint32_t n = x->first[b + 1]; n-- > x->first[b];)
                step(x, &x->raw->instrs[n]);
            changed |= memcmp(row, x->now, x->words * sizeof(*row)) != 0;
            memcpy(row, x->now, x->words * sizeof(*row));
        }
    }
}

static void cut(struct ir_across *x)
{
    const struct ir_raw_fn *raw = x->raw;
    for (uint32_t l = 0; l < raw->label_count; l++)
        x->block_of[raw->labels[l]] = 1;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        bool starts = n == 0 || x->block_of[n] ||
                      (ir_ops[raw->instrs[n - 1].op].properties & IR_P_TERMINATOR);
        if (starts)
            x->first[x->block_count++] = n;
        x->block_of[n] = x->block_count - 1;
    }
    x->first[x->block_count] = raw->instr_count;
    x->block_of[raw->instr_count] = x->block_count;
}

static uint64_t *rows_of_calls(struct ir_across *x, uint32_t calls)
{
    const struct ir_raw_fn *raw = x->raw;
    uint64_t *rows = calloc((size_t)calls * x->words + 1, sizeof(*rows));
    if (!rows)
        return NULL;
    for (uint32_t b = x->block_count; b-- > 0;) {
        begin(x, b);
        for (uint32_t n = x->first[b + 1]; n-- > x->first[b];) {
            const struct ir_instr *i = &raw->instrs[n];
            const struct ir_raw_call *call = i->op == IR_OP_CALL ? &raw->calls[i->target] : NULL;
            for (uint32_t k = 0; call && k < call->ret_count; k++)
                set_operand(x, &raw->args[call->arg_first + k], false);
            if (call)
                memcpy(rows + (size_t)--calls * x->words, x->now, x->words * sizeof(*rows));
            step(x, i);
        }
    }
    return rows;
}

uint64_t *ir_live_over_calls(const struct ir_raw_fn *raw, uint32_t *words)
{
    struct ir_across x = { .raw = raw };
    uint64_t *rows = NULL;
    uint32_t calls = 0;
    x.words = (uint32_t)(((uint64_t)raw->reg_count + raw->temp_count + 63) / 64);
    x.first = calloc((size_t)raw->instr_count + 2, sizeof(*x.first));
    x.block_of = calloc((size_t)raw->instr_count + 2, sizeof(*x.block_of));
    x.now = calloc((size_t)x.words + 1, sizeof(*x.now));
    for (uint32_t n = 0; n < raw->instr_count; n++)
        calls += raw->instrs[n].op == IR_OP_CALL;
    if (x.first && x.block_of && x.now) {
        cut(&x);
        if (((uint64_t)x.block_count + calls + 1) * x.words <= MOST_WORDS)
            x.in = calloc(((size_t)x.block_count + 1) * x.words + 1, sizeof(*x.in));
    }
    if (x.in) {
        flow(&x);
        rows = rows_of_calls(&x, calls);
    }
    *words = x.words;
    free(x.first);
    free(x.block_of);
    free(x.in);
    free(x.now);
    return rows;
}
