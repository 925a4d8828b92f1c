/*
 * Frames of functions that may be called again while they run. Register `stack` points to a frame.
 * It contains the function's .local variables; .param variables whose address it takes, or that are
 * no number; and what it needs after the call that it is making. The callee's frame begins behind
 * that.
 */
#include "device/soft/ir/outline.h"

#include <errno.h>

/* --- which ------------------------------------------------------------------------------------ */

/* The call graph: who calls whom directly, and which functions a call by address may mean. */
struct ir_reach {
    struct ir_outliner *o;
    uint32_t *first; /* by body: its edges */
    struct ir_edge {
        uint32_t callee, first_rank, ranks; /* a function, or ranks */
    } * edges;
    uint32_t edge_count, edge_cap;
    uint32_t *todo, todo_count;
    uint32_t *seen; /* by body: 1 + the body from which it was reached */
};

static bool add_edges(struct ir_reach *r, const struct ir_raw_fn *raw)
{
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        if (raw->instrs[n].op != IR_OP_CALL)
            continue;
        const struct ir_raw_call *call = &raw->calls[raw->instrs[n].target];
        struct ir_edge *e = IR_PUSH(r->edges, r->edge_count, r->edge_cap);
        if (!e)
            return ir_call_no_memory(r->o->in);
        *e = (struct ir_edge) { .callee = call->callee };
        if (call->callee == IR_NONE)
            e->ranks = ir_functions_find(&r->o->in->functions, call->signature, &e->first_rank);
    }
    return true;
}

static void visit(struct ir_reach *r, uint32_t fn, uint32_t from)
{
    uint32_t body = r->o->body_of[fn];
    if (r->seen[body] == from + 1)
        return;
    r->seen[body] = from + 1;
    r->todo[r->todo_count++] = body;
}

static bool reaches_itself(struct ir_reach *r, uint32_t from)
{
    r->todo_count = 0;
    uint32_t body = from;
    for (;;) {
        for (uint32_t k = r->first[body]; k < r->first[body + 1]; k++) {
            const struct ir_edge *e = &r->edges[k];
            if (e->callee != IR_NONE)
                visit(r, e->callee, from);
            for (uint32_t n = 0; n < e->ranks; n++)
                visit(r, r->o->in->functions.ranked[e->first_rank + n].fn, from);
            if (!ir_call_charge(r->o->in, &r->o->here, 1 + e->ranks / 16))
                return false;
        }
        if (r->seen[from] == from + 1 || r->todo_count == 0)
            return r->seen[from] == from + 1;
        body = r->todo[--r->todo_count];
    }
}

static bool find_again(struct ir_reach *r)
{
    struct ir_outliner *o = r->o;
    for (uint32_t b = 0; b < o->body_count; b++) {
        r->first[b] = r->edge_count;
        if (!add_edges(r, &o->in->raws[o->bodies[b].fn]))
            return false;
        r->first[b + 1] = r->edge_count;
    }
    for (uint32_t b = 0; b < o->body_count; b++) {
        struct ir_outlined *body = &o->bodies[b];
        body->again = reaches_itself(r, b);
        if (o->in->why->error)
            return false;
        if (!body->again)
            continue;
        o->to->uses_stack = true;
        body->live = ir_live_over_calls(&o->in->raws[body->fn], &body->words);
        if (!body->live)
            return ir_refuse(o->in->why, -ENOTSUP, o->in->m->fns[body->fn].line, 1,
                             "a recursive function of that size is not supported");
    }
    return true;
}

bool ir_find_frames(struct ir_outliner *o)
{
    struct ir_reach r = { .o = o };
    r.first = calloc((size_t)o->body_count + 2, sizeof(*r.first));
    r.todo = calloc((size_t)o->body_count + 1, sizeof(*r.todo));
    r.seen = calloc((size_t)o->body_count + 1, sizeof(*r.seen));
    bool right = (r.first && r.todo && r.seen) || ir_call_no_memory(o->in);
    right = right && find_again(&r);
    free(r.first);
    free(r.todo);
    free(r.seen);
    free(r.edges);
    return right &&
           (!o->to->uses_stack || ir_call_register(o->in, o->to, &o->here, IR_B64, &o->to->stack));
}

/* --- variables -------------------------------------------------------------------------------- */

/* Finds the variables that promote.c may leave in memory. */
static void find_memory(const struct ir_raw_fn *raw, bool *memory)
{
    for (uint32_t t = 0; t < raw->temp_count; t++)
        memory[t] =
            ir_bits_type(raw->temps[t].size) == IR_VOID || raw->temps[t].align < raw->temps[t].size;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_SYMBOL && (i->src[k].index & IR_TEMP))
                memory[i->src[k].index & ~IR_TEMP] = true;
        uint32_t symbol = i->address.symbol;
        if (symbol == IR_NONE || !(symbol & IR_TEMP))
            continue;
        bool access = i->op == IR_OP_LD || i->op == IR_OP_ST;
        if (!access || ir_types[i->type].size != raw->temps[symbol & ~IR_TEMP].size)
            memory[symbol & ~IR_TEMP] = true;
    }
}

bool ir_place_in_frame(struct ir_outliner *o, struct ir_outlined *b)
{
    const struct ir_raw_fn *raw = &o->in->raws[b->fn];
    bool *memory = calloc((size_t)raw->temp_count + 1, sizeof(*memory));
    if (!memory)
        return ir_call_no_memory(o->in);
    find_memory(raw, memory);
    uint64_t at = raw->frame_bytes;
    for (uint32_t t = 0; t < raw->temp_count; t++) {
        struct ir_temp *temp = &o->to->temps[b->temps[t]];
        if (!memory[t])
            continue;
        at = (at + temp->align - 1) / temp->align * temp->align;
        temp->on_stack = true;
        temp->frame_at = (uint32_t)at;
        at += temp->size;
        if (at > IR_MAX_LOCAL_BYTES)
            break;
    }
    free(memory);
    b->save_at = (at + 7) & ~UINT64_C(7);
    return at <= IR_MAX_LOCAL_BYTES ||
           ir_call_refuse(o->in, &o->here, -ENOTSUP, "too much local memory");
}

bool ir_outline_emit(struct ir_outliner *o, enum ir_op op, enum ir_type type, uint32_t dst,
                     struct ir_src a, struct ir_src b)
{
    struct ir_instr i;
    ir_instr_init(&i, op, o->here.line, o->here.column);
    i.type = (uint8_t)type;
    i.dst_count = 1;
    i.dst[0] = dst;
    i.src_count = b.kind == IR_SRC_NONE ? 1 : 2;
    i.src[0] = a;
    i.src[1] = b;
    return ir_call_emit(o->in, o->to, &i);
}

/* Finds where a variable is: *src is a value as wide as the instruction's. */
static bool find_variable(struct ir_outliner *o, struct ir_instr *i, struct ir_src *src)
{
    uint32_t place, narrow;
    if (!ir_call_register(o->in, o->to, &o->here, IR_B64, &place) ||
        !ir_outline_emit(o, IR_OP_ADD, IR_U64, place, ir_src_reg(o->to->stack), *src))
        return false;
    *src = ir_src_reg(place);
    if (ir_types[i->type].size == 8)
        return true;
    struct ir_instr cvt;
    ir_instr_init(&cvt, IR_OP_CVT, i->line, i->column);
    cvt.type = IR_U32;
    cvt.type2 = IR_U64;
    cvt.src_count = cvt.dst_count = 1;
    cvt.src[0] = *src;
    if (!ir_call_register(o->in, o->to, &o->here, IR_B32, &narrow))
        return false;
    cvt.dst[0] = narrow;
    *src = ir_src_reg(narrow);
    return ir_call_emit(o->in, o->to, &cvt);
}

static bool is_local(const struct ir_outliner *o, uint32_t symbol)
{
    return symbol != IR_NONE && !(symbol & IR_TEMP) &&
           o->in->m->symbols[symbol].space == IR_SPACE_LOCAL;
}

bool ir_emit_in_frame(struct ir_outliner *o, const struct ir_instr *original)
{
    struct ir_instr i = *original;
    for (unsigned k = 0; k < i.src_count; k++)
        if (i.src[k].kind == IR_SRC_SYMBOL &&
            ((i.src[k].index & IR_TEMP) ? o->to->temps[i.src[k].index & ~IR_TEMP].on_stack
                                        : is_local(o, i.src[k].index)) &&
            !find_variable(o, &i, &i.src[k]))
            return false;
    uint32_t symbol = i.address.symbol;
    if (is_local(o, symbol) ||
        (symbol != IR_NONE && (symbol & IR_TEMP) && o->to->temps[symbol & ~IR_TEMP].on_stack))
        i.address.base = o->to->stack;
    return ir_call_emit(o->in, o->to, &i);
}
