/*
 * Calls that cannot be replaced by a copy of the callee: calls of functions that call themselves,
 * perhaps through others, and calls by address. The entry contains one copy of each function that
 * they may mean, and a call is a jump there. Arguments and results pass through variables that
 * caller and callee share. A number says which call it was, and a return is an indexed branch on
 * that number. So neither the interpreter nor the compiler knows anything about calls: lanes that
 * call different functions, or return to different places, diverge and meet as at any other branch.
 * Only the order of blocks treats calls specially (order.c).
 *
 * The registers of a function exist once. A function that may be called again while it runs keeps
 * what it needs in a frame on a stack (frame.c), which is a part of the thread's local memory. A
 * stack that grows too large leaves that memory, with the same error as any other access there.
 */
#include "device/soft/ir/outline.h"

#include <errno.h>

static bool emit_branch(struct ir_outliner *o, uint32_t label, uint32_t guard, enum ir_mode mode)
{
    struct ir_instr i;
    ir_instr_init(&i, IR_OP_BRA, o->here.line, o->here.column);
    i.target = label;
    i.guard = guard;
    i.mode = (uint8_t)mode;
    return ir_call_emit(o->in, o->to, &i);
}

static bool emit_indexed(struct ir_outliner *o, uint32_t index, uint32_t list, enum ir_mode mode)
{
    struct ir_instr i;
    ir_instr_init(&i, IR_OP_BRX, o->here.line, o->here.column);
    i.target = list;
    i.mode = (uint8_t)mode;
    i.src_count = 1;
    i.src[0] = ir_src_reg(index);
    return ir_call_emit(o->in, o->to, &i);
}

static bool emit_bare(struct ir_outliner *o, enum ir_op op, enum ir_mode mode)
{
    struct ir_instr i;
    ir_instr_init(&i, op, o->here.line, o->here.column);
    i.mode = (uint8_t)mode;
    return ir_call_emit(o->in, o->to, &i);
}

static bool emit_constant(struct ir_outliner *o, enum ir_type type, uint32_t dst, uint64_t bits)
{
    return ir_outline_emit(o, IR_OP_MOV, type, dst, ir_src_imm(bits), (struct ir_src) { 0 });
}

static bool new_register(struct ir_outliner *o, enum ir_type type, uint32_t *out)
{
    return ir_call_register(o->in, o->to, &o->here, type, out);
}

/* --- passing values --------------------------------------------------------------------------- */

/* The variable for result or parameter `k` of the class. */
static struct ir_src mail(const struct ir_class *c, uint32_t k)
{
    return (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = (c->mail + k) | IR_TEMP };
}

static bool pass(struct ir_outliner *o, const struct ir_class *c, uint32_t k, struct ir_src other,
                 bool to_mail)
{
    const struct ir_temp *t = &o->to->temps[c->mail + k];
    uint64_t size = t->size;
    if (t->open && other.kind == IR_SRC_SYMBOL)
        size = GM_MIN(size, o->to->temps[other.index & ~IR_TEMP].size);
    return ir_outline_move(o, to_mail ? mail(c, k) : other, to_mail ? other : mail(c, k), size);
}

/* --- which functions -------------------------------------------------------------------------- */

static bool new_class(struct ir_outliner *o, uint32_t fn, uint32_t first_rank, uint32_t ranks)
{
    const struct ir_raw_fn *raw = &o->in->raws[fn];
    struct ir_class *c = IR_PUSH(o->classes, o->class_count, o->class_cap);
    struct ir_raw_list *list = IR_PUSH(o->to->lists, o->to->list_count, o->to->list_cap);
    if (!c || !list)
        return ir_call_no_memory(o->in);
    *c = (struct ir_class) { .model = fn,
                             .first_rank = first_rank,
                             .ranks = ranks,
                             .mail = o->to->temp_count,
                             .dispatch = IR_NONE,
                             .list = o->to->list_count - 1 };
    for (uint32_t k = 0; k < raw->formal_count; k++) {
        const struct ir_src *formal = &raw->formals[k];
        struct ir_temp *t = IR_PUSH(o->to->temps, o->to->temp_count, o->to->temp_cap);
        if (!t)
            return ir_call_no_memory(o->in);
        if (formal->kind == IR_SRC_SYMBOL) {
            *t = raw->temps[formal->index & ~IR_TEMP];
            continue;
        }
        enum ir_type type = raw->regs[formal->index].type;
        if (type == IR_PRED)
            return ir_call_refuse(o->in, &o->here, -ENOTSUP,
                                  "a predicate is passed to a function that is not inlined");
        *t = (struct ir_temp) { .size = ir_types[type].size,
                                .align = ir_types[type].size,
                                .line = o->here.line };
    }
    return new_register(o, IR_B32, &c->link) && new_register(o, IR_B64, &c->pointer);
}

static bool need(struct ir_outliner *o, uint32_t fn)
{
    const struct ir_raw_fn *raw = &o->in->raws[fn];
    if (o->body_of[fn] != IR_NONE)
        return true;
    if (raw->lacks.error) {
        *o->in->why = raw->lacks;
        return false;
    }
    uint32_t first = 0, ranks = 0, class = 0;
    if (o->in->functions.wanted[fn])
        ranks = ir_functions_find(
            &o->in->functions, ir_signature(raw, raw->formals, raw->formal_rets, raw->formal_count),
            &first);
    while (class < o->class_count &&
           (ranks == 0 || o->classes[class].ranks == 0 || o->classes[class].first_rank != first))
        class ++;
    if (class == o->class_count && !new_class(o, fn, first, ranks))
        return false;
    struct ir_outlined *b = IR_PUSH(o->bodies, o->body_count, o->body_cap);
    if (!b)
        return ir_call_no_memory(o->in);
    *b = (struct ir_outlined) { .fn = fn, .class = class };
    o->body_of[fn] = o->body_count - 1;
    return ir_call_label(o->in, o->to, &b->label);
}

/* The class of functions that a call may mean; NULL: there is no such function. */
static struct ir_class *class_of(const struct ir_outliner *o, const struct ir_raw_call *call)
{
    uint32_t first, fn = call->callee;
    if (fn == IR_NONE && ir_functions_find(&o->in->functions, call->signature, &first))
        fn = o->in->functions.ranked[first].fn;
    return fn == IR_NONE ? NULL : &o->classes[o->bodies[o->body_of[fn]].class];
}

static bool need_callees(struct ir_outliner *o, const struct ir_raw_fn *raw)
{
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        if (raw->instrs[n].op != IR_OP_CALL)
            continue;
        const struct ir_raw_call call = raw->calls[raw->instrs[n].target];
        uint32_t first = 0, count = 0;
        o->here = call;
        if (call.callee != IR_NONE && !need(o, call.callee))
            return false;
        if (call.callee == IR_NONE)
            count = ir_functions_find(&o->in->functions, call.signature, &first);
        for (uint32_t k = 0; k < count; k++)
            if (!need(o, o->in->functions.ranked[first + k].fn))
                return false;
        struct ir_class *c = class_of(o, &call);
        if (call.callee == IR_NONE && c && c->dispatch == IR_NONE &&
            !ir_call_label(o->in, o->to, &c->dispatch))
            return false;
    }
    return true;
}

/* --- their code ------------------------------------------------------------------------------- */

static struct ir_src formal_in(const struct ir_site *s, uint32_t k)
{
    struct ir_src formal = s->from->formals[k];
    if (formal.kind == IR_SRC_REG)
        formal.index += s->reg_base;
    else
        formal.index = s->temps[formal.index & ~IR_TEMP] | IR_TEMP;
    return formal;
}

/* Places the copy's variables behind the entry's, or in its frames if it has them. */
static bool place_variables(struct ir_outliner *o, const struct ir_outlined *b, struct ir_site *s)
{
    uint64_t base = ((uint64_t)o->to->frame_bytes + 15) & ~UINT64_C(15);
    if (b->again)
        return true;
    if (base + s->from->frame_bytes > IR_MAX_LOCAL_BYTES)
        return ir_call_refuse(o->in, &o->here, -ENOTSUP, "too much local memory");
    s->frame_base = (uint32_t)base;
    o->to->frame_bytes = (uint32_t)base + s->from->frame_bytes;
    return true;
}

static bool copy_function(struct ir_outliner *o, struct ir_outlined *b)
{
    const struct ir_fn *fn = &o->in->m->fns[b->fn];
    const struct ir_class *c = &o->classes[b->class];
    o->here = (struct ir_raw_call) { .callee = b->fn, .line = fn->line, .column = 1 };
    struct ir_site s = { .to = o->to, .from = &o->in->raws[b->fn], .call = &o->here };
    uint32_t end = IR_NONE, results = s.from->formal_rets;
    if (s.from->formal_count != o->in->raws[c->model].formal_count)
        return ir_call_refuse(o->in, &o->here, -EINVAL, "wrong number of arguments or results");
    bool right = place_variables(o, b, &s) && ir_call_map(o->in, &s) &&
                 new_register(o, IR_B32, &b->link) && ir_call_label(o->in, o->to, &end);
    b->temps = s.temps;
    b->reg_base = s.reg_base;
    o->to->labels[b->label] = b->first = o->to->instr_count;
    right = right && (!b->again || ir_place_in_frame(o, b));
    right = right && ir_outline_emit(o, IR_OP_MOV, IR_B32, b->link, ir_src_reg(c->link),
                                     (struct ir_src) { 0 });
    for (uint32_t k = results; right && k < s.from->formal_count; k++)
        right = pass(o, c, k, formal_in(&s, k), false);
    right = right && ir_call_copy(o->in, &s, end);
    for (uint32_t k = 0; right && k < results; k++)
        right = pass(o, c, k, formal_in(&s, k), true);
    right = right && emit_indexed(o, b->link, c->list, IR_BRANCH_RETURN);
    b->end = o->to->instr_count;
    return right;
}

/* Code that turns a pointer into a rank, and that into the function. */
static bool emit_dispatch(struct ir_outliner *o, struct ir_class *c)
{
    struct ir_raw_fn *to = o->to;
    struct ir_instr i;
    uint32_t at, low, high, rank, wrong, bad = IR_NONE;
    if (!new_register(o, IR_B64, &at) || !new_register(o, IR_B64, &low) ||
        !new_register(o, IR_B64, &high) || !new_register(o, IR_B32, &rank) ||
        !new_register(o, IR_PRED, &wrong) || !ir_call_label(o->in, to, &bad))
        return false;
    to->labels[c->dispatch] = to->instr_count;
    _Static_assert(IR_FUNCTION_STEP == 16, "rotated by 4");
    uint64_t base = IR_FUNCTIONS + (uint64_t)c->first_rank * IR_FUNCTION_STEP;
    if (!ir_outline_emit(o, IR_OP_SUB, IR_U64, at, ir_src_reg(c->pointer), ir_src_imm(base)) ||
        !ir_outline_emit(o, IR_OP_SHR, IR_B64, low, ir_src_reg(at), ir_src_imm(4)) ||
        !ir_outline_emit(o, IR_OP_SHL, IR_B64, high, ir_src_reg(at), ir_src_imm(60)) ||
        !ir_outline_emit(o, IR_OP_OR, IR_B64, at, ir_src_reg(low), ir_src_reg(high)))
        return false;
    ir_instr_init(&i, IR_OP_SETP, o->here.line, o->here.column);
    i.type = IR_U64;
    i.cmp = IR_CMP_GE;
    i.dst_count = 1;
    i.dst[0] = wrong;
    i.src_count = 2;
    i.src[0] = ir_src_reg(at);
    i.src[1] = ir_src_imm(c->ranks);
    if (!ir_call_emit(o->in, to, &i) || !emit_branch(o, bad, wrong, IR_MODE_NONE))
        return false;
    ir_instr_init(&i, IR_OP_CVT, o->here.line, o->here.column);
    i.type = IR_U32;
    i.type2 = IR_U64;
    i.dst_count = i.src_count = 1;
    i.dst[0] = rank;
    i.src[0] = ir_src_reg(at);
    struct ir_raw_list *list = IR_PUSH(to->lists, to->list_count, to->list_cap);
    if (!list)
        return ir_call_no_memory(o->in);
    *list = (struct ir_raw_list) { .first = to->target_count, .count = c->ranks };
    for (uint32_t k = 0; k < c->ranks; k++) {
        uint32_t *target = IR_PUSH(to->targets, to->target_count, to->target_cap);
        if (!target)
            return ir_call_no_memory(o->in);
        *target = o->bodies[o->body_of[o->in->functions.ranked[c->first_rank + k].fn]].label;
    }
    if (!ir_call_emit(o->in, to, &i) || !emit_indexed(o, rank, to->list_count - 1, IR_BRANCH_CALL))
        return false;
    to->labels[bad] = to->instr_count;
    return emit_bare(o, IR_OP_TRAP, IR_TRAP_PC) && emit_bare(o, IR_OP_EXIT, IR_MODE_NONE);
}

static bool append(struct ir_outliner *o)
{
    /* The entry itself may run to its end. */
    if (!emit_bare(o, IR_OP_RET, IR_MODE_NONE))
        return false;
    for (uint32_t b = 0; b < o->body_count; b++)
        if (!copy_function(o, &o->bodies[b]))
            return false;
    for (uint32_t c = 0; c < o->class_count; c++)
        if (o->classes[c].dispatch != IR_NONE && !emit_dispatch(o, &o->classes[c]))
            return false;
    return true;
}

/* --- the calls -------------------------------------------------------------------------------- */

static bool lower_call(struct ir_outliner *o, const struct ir_raw_call *call,
                       struct ir_outlined *caller, const struct ir_src *operands)
{
    struct ir_class *c = class_of(o, call);
    const struct ir_raw_fn *model = c ? &o->in->raws[c->model] : NULL;
    uint32_t results = call->ret_count, count = results + call->arg_count;
    uint64_t frame = 0;
    if (!c)
        return emit_bare(o, IR_OP_TRAP, IR_TRAP_PC) && emit_bare(o, IR_OP_EXIT, IR_MODE_NONE);
    if (results != model->formal_rets || count != model->formal_count)
        return ir_call_refuse(o->in, call, -EINVAL, "wrong number of arguments or results");
    for (uint32_t k = results; k < count; k++)
        if (!pass(o, c, k, operands[k], true))
            return false;
    bool by_address = call->callee == IR_NONE;
    if (by_address && !ir_outline_emit(o, IR_OP_MOV, IR_B64, c->pointer, ir_src_reg(call->pointer),
                                       (struct ir_src) { 0 }))
        return false;
    if (caller && caller->again && !ir_keep(o, caller, &frame))
        return false;
    uint32_t *back = IR_PUSH(c->returns, c->return_count, c->return_cap);
    if (!back)
        return ir_call_no_memory(o->in);
    if (!ir_call_label(o->in, o->to, back) ||
        !emit_constant(o, IR_B32, c->link, c->return_count - 1) ||
        !emit_branch(o, by_address ? c->dispatch : o->bodies[o->body_of[call->callee]].label,
                     IR_NONE, IR_BRANCH_CALL))
        return false;
    o->to->labels[*back] = o->to->instr_count;
    if (caller && caller->again && !ir_take_back(o, caller, frame))
        return false;
    for (uint32_t k = 0; k < results; k++)
        if (operands[k].kind != IR_SRC_NONE && !pass(o, c, k, operands[k], false))
            return false;
    return true;
}

static bool lower_instr(struct ir_outliner *o, const struct ir_instr *i, struct ir_outlined *in)
{
    uint32_t over = IR_NONE;
    if (i->op != IR_OP_CALL)
        return in && in->again ? ir_emit_in_frame(o, i) : ir_call_emit(o->in, o->to, i);
    o->here = o->to->calls[i->target];
    if (!ir_call_guard(o->in, o->to, i, &over) ||
        !lower_call(o, &o->here, in, o->to->args ? o->to->args + o->here.arg_first : NULL))
        return false;
    if (over != IR_NONE)
        o->to->labels[over] = o->to->instr_count;
    return true;
}

static bool lower_all(struct ir_outliner *o, const struct ir_instr *old, uint32_t count,
                      uint32_t *moved)
{
    uint32_t next = 0;
    /* The stack begins behind everything else; that is known when .param variables have their
     * places (finish.c). */
    if (o->to->uses_stack && !emit_constant(o, IR_B64, o->to->stack, 0))
        return false;
    for (uint32_t n = 0; n < count; n++) {
        while (next < o->body_count && n >= o->bodies[next].end)
            next++;
        bool inside = next < o->body_count && n >= o->bodies[next].first;
        moved[n] = o->to->instr_count;
        if (!lower_instr(o, &old[n], inside ? &o->bodies[next] : NULL))
            return false;
    }
    moved[count] = o->to->instr_count;
    return true;
}

/* Turns calls into jumps, and lists for each class where it returns to. */
static bool lower(struct ir_outliner *o)
{
    struct ir_raw_fn *to = o->to;
    uint32_t count = to->instr_count, labels = to->label_count;
    struct ir_instr *old = to->instrs;
    uint32_t *moved = malloc(((size_t)count + 1) * sizeof(*moved));
    to->instrs = NULL;
    to->instr_count = to->instr_cap = 0;
    bool right = moved ? lower_all(o, old, count, moved) : ir_call_no_memory(o->in);
    for (uint32_t l = 0; right && l < labels; l++)
        to->labels[l] = moved[to->labels[l]];
    free(old);
    free(moved);
    for (uint32_t c = 0; right && c < o->class_count; c++) {
        to->lists[o->classes[c].list] =
            (struct ir_raw_list) { .first = to->target_count, .count = o->classes[c].return_count };
        for (uint32_t k = 0; right && k < o->classes[c].return_count; k++) {
            uint32_t *target = IR_PUSH(to->targets, to->target_count, to->target_cap);
            right = target || ir_call_no_memory(o->in);
            if (target)
                *target = o->classes[c].returns[k];
        }
    }
    return right;
}

bool ir_outline_calls(struct ir_inliner *in, struct ir_raw_fn *entry)
{
    struct ir_outliner o = { .in = in, .to = entry };
    o.body_of = malloc(((size_t)in->m->fn_count + 1) * sizeof(*o.body_of));
    bool right = o.body_of || ir_call_no_memory(in);
    for (uint32_t f = 0; right && f < in->m->fn_count; f++)
        o.body_of[f] = IR_NONE;
    right = right && need_callees(&o, entry);
    for (uint32_t b = 0; right && b < o.body_count; b++)
        right = need_callees(&o, &in->raws[o.bodies[b].fn]);
    right = right && ir_find_frames(&o) && append(&o) && lower(&o);
    for (uint32_t b = 0; b < o.body_count; b++) {
        free(o.bodies[b].temps);
        free(o.bodies[b].live);
    }
    for (uint32_t c = 0; c < o.class_count; c++)
        free(o.classes[c].returns);
    free(o.bodies);
    free(o.classes);
    free(o.body_of);
    return right;
}
