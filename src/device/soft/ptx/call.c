/*
 * Operands of calls: results, the function or a register with its address, arguments, prototype.
 */
#include "device/soft/ptx/parse.h"

/* `_` stands for a result that is not used: IR_SRC_NONE. */
static bool parse_call_operand(struct ptx_parser *p, struct ir_src *out, bool result)
{
    struct ptx_token t = p->token;
    struct ptx_name name;
    *out = (struct ir_src) { 0 };
    if (t.kind == PTX_INT || ptx_token_is(&t, '-')) {
        bool minus = ptx_accept(p, '-');
        uint64_t value;
        if (!ptx_expect_uint(p, UINT64_MAX, &value, "constant"))
            return false;
        *out = (struct ir_src) { .kind = IR_SRC_IMM, .bits = minus ? 0 - value : value };
        return true;
    }
    if (t.kind == PTX_F32 || t.kind == PTX_F64) {
        *out = (struct ir_src) { .kind = IR_SRC_IMM, .bits = t.value };
        ptx_advance(p);
        return true;
    }
    if (!ptx_expect_ident(p, &t, "argument"))
        return false;
    if (result && ptx_text_is(&t, "_"))
        return true;
    bool known = ptx_lookup(p, &t, &name);
    if (known && !ptx_take_element(p, &t, &name))
        return false;
    if (!known || (name.kind != PTX_NAME_REG && name.kind != PTX_NAME_TEMP))
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is no register or .param variable", PTX_TEXT(&t));
    if (name.kind == PTX_NAME_REG)
        *out = ir_src_reg(name.index);
    else
        *out = (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = name.index | IR_TEMP };
    return true;
}

static bool add_call_operand(struct ptx_parser *p, struct ir_src src, uint32_t *count)
{
    struct ir_raw_fn *raw = p->raw;
    struct ir_src *added = IR_PUSH(raw->args, raw->arg_count, raw->arg_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = src;
    ++*count;
    return true;
}

static bool parse_call_operands(struct ptx_parser *p, uint32_t *count, bool results)
{
    *count = 0;
    if (!ptx_expect(p, '('))
        return false;
    if (ptx_accept(p, ')'))
        return !p->why.error;
    do {
        struct ptx_name vector;
        struct ir_src src;
        if (ptx_accept_vector(p, &vector)) {
            for (unsigned k = 0; k < vector.width; k++)
                if (!add_call_operand(p, ir_src_reg(vector.index + k), count))
                    return false;
        } else if (!parse_call_operand(p, &src, results) || !add_call_operand(p, src, count)) {
            return false;
        }
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ')');
}

/* Parses what follows the operands of a call through a register: a prototype, a list of targets, or
 * a variable that holds them. */
static bool parse_call_prototype(struct ptx_parser *p, struct ir_raw_call *call)
{
    const struct ir_raw_fn *raw = p->raw;
    struct ptx_token name;
    struct ptx_name found;
    if (!ptx_expect(p, ',') || !ptx_expect_ident(p, &name, "prototype"))
        return false;
    if (!ptx_lookup(p, &name, &found))
        return ptx_fail(p, -EINVAL, &name, "'%.*s' is not declared", PTX_TEXT(&name));
    if (found.kind == PTX_NAME_LACKING)
        return ptx_refuse_lacking(p, &name, &found);
    if (found.kind != PTX_NAME_PROTO && found.kind != PTX_NAME_SYMBOL)
        return ptx_fail(p, -EINVAL, &name, "'%.*s' is no prototype", PTX_TEXT(&name));
    call->signature = found.kind == PTX_NAME_PROTO ? raw->prototypes[found.index] : 0;
    if (call->signature)
        return true;
    for (uint32_t k = 0; k < call->ret_count + call->arg_count; k++)
        if (raw->args[call->arg_first + k].kind == IR_SRC_IMM ||
            raw->args[call->arg_first + k].kind == IR_SRC_NONE)
            return ptx_fail(p, -ENOTSUP, &name,
                            "a constant in a call without a prototype, or _, is not supported");
    call->signature = ir_signature(raw, raw->args ? raw->args + call->arg_first : NULL,
                                   call->ret_count, call->ret_count + call->arg_count);
    return true;
}

/* call (ret), f, (a, b);  call f, (a);  call f;  call (ret), %rd1, (a, b), prototype; */
bool ptx_parse_call(struct ptx_parser *p, struct ir_instr *i)
{
    struct ir_raw_fn *raw = p->raw;
    struct ir_raw_call call = { .arg_first = raw->arg_count, .line = i->line, .column = i->column };
    struct ptx_token name;
    struct ptx_name found;
    if (ptx_token_is(&p->token, '(') &&
        (!parse_call_operands(p, &call.ret_count, true) || !ptx_expect(p, ',')))
        return false;
    if (!ptx_expect_ident(p, &name, "function name"))
        return false;
    if (!ptx_lookup(p, &name, &found))
        return ptx_fail(p, -EINVAL, &name, "'%.*s' is not declared", PTX_TEXT(&name));
    if (found.kind == PTX_NAME_LACKING)
        return ptx_refuse_lacking(p, &name, &found);
    bool by_address = found.kind == PTX_NAME_REG;
    if (!by_address && (found.kind != PTX_NAME_FN || p->m->fns[found.index].is_entry))
        return ptx_fail(p, -EINVAL, &name, "'%.*s' is no device function", PTX_TEXT(&name));
    if (by_address && ir_types[raw->regs[found.index].type].size != 8)
        return ptx_fail(p, -EINVAL, &name, "'%.*s' does not hold an address", PTX_TEXT(&name));
    call.callee = by_address ? IR_NONE : found.index;
    call.pointer = by_address ? found.index : IR_NONE;
    struct ptx_mark operands = ptx_here(p);
    if (ptx_accept(p, ',')) {
        if (by_address && !ptx_token_is(&p->token, '('))
            ptx_return_to(p, &operands);
        else if (!parse_call_operands(p, &call.arg_count, false))
            return false;
    }
    if (by_address && !parse_call_prototype(p, &call))
        return false;
    struct ir_raw_call *added = IR_PUSH(raw->calls, raw->call_count, raw->call_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = call;
    i->target = raw->call_count - 1;
    return true;
}
