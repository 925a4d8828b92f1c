/*
 * Makes copies of functions: what is added to the code that gets the copy, how values pass, and the
 * copied code itself.
 */
#include <errno.h>

#include "device/soft/ir/call.h"

bool ir_call_no_memory(struct ir_inliner *in)
{
    return ir_refuse(in->why, -ENOMEM, 0, 0, "out of memory");
}

bool ir_call_refuse(struct ir_inliner *in, const struct ir_raw_call *call, int error,
                    const char *what)
{
    if (call->callee == IR_NONE)
        return ir_refuse(in->why, error, call->line, call->column, "call: %s", what);
    return ir_refuse(in->why, error, call->line, call->column, "call of '%s': %s",
                     ir_name(in->m, in->m->fns[call->callee].name), what);
}

bool ir_call_charge(struct ir_inliner *in, const struct ir_raw_call *call, uint64_t elements)
{
    in->work += elements;
    return in->work <= in->most || ir_call_refuse(in, call, -E2BIG, "too much code after inlining");
}

bool ir_call_emit(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_instr *i)
{
    if (to->instr_count >= IR_MAX_INSTRS)
        return ir_refuse(in->why, -E2BIG, i->line, i->column,
                         "too many instructions after inlining");
    struct ir_instr *added = IR_PUSH(to->instrs, to->instr_count, to->instr_cap);
    if (!added)
        return ir_call_no_memory(in);
    *added = *i;
    return true;
}

bool ir_call_label(struct ir_inliner *in, struct ir_raw_fn *to, uint32_t *out)
{
    uint32_t *label = IR_PUSH(to->labels, to->label_count, to->label_cap);
    if (!label)
        return ir_call_no_memory(in);
    *label = IR_NONE;
    *out = to->label_count - 1;
    return true;
}

static bool add_register(struct ir_inliner *in, struct ir_raw_fn *to,
                         const struct ir_raw_call *call, struct ir_reg reg)
{
    if (to->reg_count >= IR_MAX_REGS)
        return ir_call_refuse(in, call, -E2BIG, "too many registers after inlining");
    struct ir_reg *added = IR_PUSH(to->regs, to->reg_count, to->reg_cap);
    if (!added)
        return ir_call_no_memory(in);
    *added = reg;
    return true;
}

bool ir_call_register(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_raw_call *call,
                      enum ir_type type, uint32_t *out)
{
    *out = to->reg_count;
    return add_register(in, to, call, (struct ir_reg) { .type = (uint8_t)type, .number = IR_NONE });
}

/* Maps each of the callee's temps to one of the caller. */
static bool map_temps(struct ir_inliner *in, struct ir_site *s)
{
    const struct ir_raw_fn *from = s->from;
    struct ir_raw_fn *to = s->to;
    s->temps = malloc(((size_t)from->temp_count + 1) * sizeof(*s->temps));
    if (!s->temps)
        return ir_call_no_memory(in);
    memset(s->temps, 0xff, (size_t)from->temp_count * sizeof(*s->temps));
    for (uint32_t f = 0; s->rets && f < from->formal_count; f++) {
        struct ir_src formal = from->formals[f];
        struct ir_src actual = f < from->formal_rets ? s->rets[f] : s->args[f - from->formal_rets];
        if (formal.kind != IR_SRC_SYMBOL || actual.kind != IR_SRC_SYMBOL)
            continue;
        const struct ir_temp *want = &from->temps[formal.index & ~IR_TEMP];
        struct ir_temp *have = &to->temps[actual.index & ~IR_TEMP];
        if (want->open ? have->size > want->size : have->size < want->size)
            return ir_call_refuse(in, s->call, -EINVAL, "argument does not suit the parameter");
        have->align = GM_MAX(have->align, want->align);
        s->temps[formal.index & ~IR_TEMP] = actual.index & ~IR_TEMP;
    }
    for (uint32_t t = 0; t < from->temp_count; t++) {
        if (s->temps[t] != IR_NONE)
            continue;
        struct ir_temp *added = IR_PUSH(to->temps, to->temp_count, to->temp_cap);
        if (!added)
            return ir_call_no_memory(in);
        *added = from->temps[t];
        s->temps[t] = to->temp_count - 1;
    }
    return true;
}

static void shift_reg(const struct ir_site *s, uint32_t *reg)
{
    if (*reg != IR_NONE)
        *reg += s->reg_base;
}

static void copy_operands(const struct ir_module *m, const struct ir_site *s, struct ir_instr *i)
{
    shift_reg(s, &i->guard);
    shift_reg(s, &i->dst_pred);
    shift_reg(s, &i->address.base);
    for (unsigned d = 0; d < IR_MAX_DST; d++)
        shift_reg(s, &i->dst[d]);
    for (unsigned k = 0; k < i->src_count; k++) {
        struct ir_src *src = &i->src[k];
        if (src->kind == IR_SRC_REG)
            src->index += s->reg_base;
        else if (src->kind == IR_SRC_SYMBOL && (src->index & IR_TEMP))
            src->index = s->temps[src->index & ~IR_TEMP] | IR_TEMP;
        else if (src->kind == IR_SRC_SYMBOL && m->symbols[src->index].space == IR_SPACE_LOCAL)
            src->bits += s->frame_base;
    }
    struct ir_address *a = &i->address;
    if (a->symbol != IR_NONE && (a->symbol & IR_TEMP))
        a->symbol = s->temps[a->symbol & ~IR_TEMP] | IR_TEMP;
    else if (a->symbol != IR_NONE && m->symbols[a->symbol].space == IR_SPACE_LOCAL)
        a->displacement += s->frame_base;
    /* In a device function, a .param address in a register is that of a variable of the call whose
     * address was taken; that variable will be in local memory. (In an entry, .param means the
     * kernel's parameters.) */
    bool by_register = i->space == IR_SPACE_PARAM && a->symbol == IR_NONE;
    if (by_register &&
        (i->op == IR_OP_CVTA || (ir_ops[i->op].properties & (IR_P_LOAD | IR_P_STORE))))
        i->space = IR_SPACE_LOCAL;
}

static bool copy_tables(struct ir_inliner *in, struct ir_site *s)
{
    const struct ir_raw_fn *from = s->from;
    struct ir_raw_fn *to = s->to;
    uint32_t ignored;
    s->reg_base = to->reg_count;
    for (uint32_t r = 0; r < from->reg_count; r++)
        if (!add_register(in, to, s->call, from->regs[r]))
            return false;
    s->label_base = to->label_count;
    for (uint32_t l = 0; l < from->label_count; l++)
        if (!ir_call_label(in, to, &ignored))
            return false;
    s->list_base = to->list_count;
    for (uint32_t l = 0; l < from->list_count; l++) {
        struct ir_raw_list *list = IR_PUSH(to->lists, to->list_count, to->list_cap);
        if (!list)
            return ir_call_no_memory(in);
        *list = from->lists[l];
        list->first += to->target_count;
    }
    for (uint32_t t = 0; t < from->target_count; t++) {
        uint32_t *target = IR_PUSH(to->targets, to->target_count, to->target_cap);
        if (!target)
            return ir_call_no_memory(in);
        *target = from->targets[t] + s->label_base;
    }
    return true;
}

static struct ir_src copy_operand(const struct ir_site *s, struct ir_src src)
{
    if (src.kind == IR_SRC_REG)
        src.index += s->reg_base;
    else if (src.kind == IR_SRC_SYMBOL)
        src.index = s->temps[src.index & ~IR_TEMP] | IR_TEMP;
    return src;
}

/* Copies a call that remains a call. */
static bool copy_call(struct ir_inliner *in, struct ir_site *s, struct ir_instr *i)
{
    struct ir_raw_fn *to = s->to;
    struct ir_raw_call call = s->from->calls[i->target];
    const struct ir_src *operands = s->from->args ? s->from->args + call.arg_first : NULL;
    call.arg_first = to->arg_count;
    shift_reg(s, &call.pointer);
    for (uint32_t k = 0; k < call.ret_count + call.arg_count; k++) {
        struct ir_src *added = IR_PUSH(to->args, to->arg_count, to->arg_cap);
        if (!added)
            return ir_call_no_memory(in);
        *added = copy_operand(s, operands[k]);
    }
    struct ir_raw_call *added = IR_PUSH(to->calls, to->call_count, to->call_cap);
    if (!added)
        return ir_call_no_memory(in);
    *added = call;
    i->target = to->call_count - 1;
    return true;
}

bool ir_call_copy(struct ir_inliner *in, struct ir_site *s, uint32_t end)
{
    const struct ir_raw_fn *from = s->from;
    struct ir_raw_fn *to = s->to;
    uint32_t first = to->instr_count;
    for (uint32_t n = 0; n < from->instr_count; n++) {
        struct ir_instr i = from->instrs[n];
        copy_operands(in->m, s, &i);
        if (i.op == IR_OP_BRA) {
            i.target += s->label_base;
        } else if (i.op == IR_OP_BRX) {
            i.target += s->list_base;
        } else if (i.op == IR_OP_RET) {
            i.op = IR_OP_BRA;
            i.target = end;
        } else if (i.op == IR_OP_CALL && !copy_call(in, s, &i)) {
            return false;
        }
        if (!ir_call_emit(in, to, &i))
            return false;
    }
    for (uint32_t l = 0; l < from->label_count; l++)
        to->labels[s->label_base + l] = first + from->labels[l];
    to->labels[end] = to->instr_count;
    return true;
}

bool ir_call_map(struct ir_inliner *in, struct ir_site *s)
{
    const struct ir_raw_fn *from = s->from;
    return ir_call_charge(in, s->call,
                          (uint64_t)from->reg_count + from->label_count + from->temp_count +
                              from->target_count + from->list_count + from->instr_count) &&
           map_temps(in, s) && copy_tables(in, s);
}

bool ir_call_guard(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_instr *at,
                   uint32_t *over)
{
    struct ir_instr skip;
    *over = IR_NONE;
    if (at->guard == IR_NONE)
        return true;
    ir_instr_init(&skip, IR_OP_BRA, at->line, at->column);
    skip.guard = at->guard;
    skip.flags = (at->flags & IR_F_GUARD_NOT) ^ IR_F_GUARD_NOT;
    if (!ir_call_label(in, to, over))
        return false;
    skip.target = *over;
    return ir_call_emit(in, to, &skip);
}
