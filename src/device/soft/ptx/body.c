/*
 * Function bodies: scopes, declarations, labels, guards, calls. Scopes are a counter and a stack of
 * marks, not recursion, so that the text cannot choose how deep our stack goes.
 */
#include "device/soft/ptx/parse.h"

bool ptx_add_fixup(struct ptx_parser *p, const struct ptx_token *name, uint32_t index,
                   bool in_targets)
{
    struct ptx_fixup *f = IR_PUSH(p->fixups, p->fixup_count, p->fixup_cap);
    if (!f)
        return ptx_out_of_memory(p);
    *f = (struct ptx_fixup) { .name = *name, .index = index, .in_targets = in_targets };
    return true;
}

bool ptx_append_instr(struct ptx_parser *p, const struct ir_instr *i)
{
    struct ir_raw_fn *raw = p->raw;
    if (raw->instr_count >= IR_MAX_INSTRS || p->instr_total >= p->instr_most) {
        struct ptx_token at = { .line = i->line, .column = i->column };
        return ptx_fail(p, -E2BIG, &at, "too many instructions");
    }
    struct ir_instr *added = IR_PUSH(raw->instrs, raw->instr_count, raw->instr_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = *i;
    p->instr_total++;
    return true;
}

static bool define_label(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ir_raw_fn *raw = p->raw;
    uint32_t *label = IR_PUSH(raw->labels, raw->label_count, raw->label_cap);
    if (!label)
        return ptx_out_of_memory(p);
    *label = raw->instr_count;
    return ptx_declare(p, name, name->length, PTX_NAME_LABEL, raw->label_count - 1, 1);
}

/* name: .branchtargets a, b, c; */
static bool parse_branch_targets(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ir_raw_fn *raw = p->raw;
    struct ir_raw_list *list = IR_PUSH(raw->lists, raw->list_count, raw->list_cap);
    if (!list)
        return ptx_out_of_memory(p);
    list->first = raw->target_count;
    uint32_t index = raw->list_count - 1;
    do {
        struct ptx_token label;
        if (!ptx_expect_ident(p, &label, "label"))
            return false;
        uint32_t *target = IR_PUSH(raw->targets, raw->target_count, raw->target_cap);
        if (!target)
            return ptx_out_of_memory(p);
        *target = IR_NONE;
        if (!ptx_add_fixup(p, &label, raw->target_count - 1, true))
            return false;
    } while (ptx_accept(p, ','));
    raw->lists[index].count = raw->target_count - raw->lists[index].first;
    return ptx_declare(p, name, name->length, PTX_NAME_LIST, index, 1) && ptx_expect(p, ';');
}

/* (.param .b32 _, .reg .b64 _): adds them to the signature */
static bool parse_prototype_list(struct ptx_parser *p, uint64_t *signature)
{
    if (!ptx_accept(p, '('))
        return true;
    while (!ptx_accept(p, ')')) {
        struct ptx_variable v;
        uint64_t part;
        uint8_t width = 1;
        if (ptx_accept_dot(p, "reg")) {
            struct ptx_token ignored;
            if (!ptx_parse_register_size(p, &part, &width) ||
                !ptx_expect_ident(p, &ignored, "name"))
                return false;
        } else {
            if (!ptx_accept_dot(p, "param"))
                return ptx_fail(p, -EINVAL, &p->token, "'.param' or '.reg' expected");
            if (!ptx_parse_variable(p, IR_SPACE_PARAM, &v))
                return false;
            part = v.is_unsized ? 0 : v.size;
        }
        while (width-- > 0)
            *signature = ir_signature_add(*signature, part);
        if (!ptx_token_is(&p->token, ')') && !ptx_expect(p, ','))
            return false;
    }
    return !p->why.error;
}

/* name: .callprototype (results) _ (parameters) .noreturn;  name: .calltargets f, g; The latter's
 * signature is what the call passes; which functions it names is not needed. */
static bool parse_prototype(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ir_raw_fn *raw = p->raw;
    uint64_t *signature = IR_PUSH(raw->prototypes, raw->prototype_count, raw->prototype_cap);
    if (!signature)
        return ptx_out_of_memory(p);
    uint32_t index = raw->prototype_count - 1;
    if (ptx_accept_dot(p, "callprototype")) {
        uint64_t s = IR_SIGNATURE_BEGIN;
        struct ptx_token ignored;
        struct ptx_mark start = ptx_here(p);
        bool right = parse_prototype_list(p, &s) && ptx_expect_ident(p, &ignored, "'_'");
        s = ir_signature_add(s, IR_SIGNATURE_RESULTS);
        right = right && parse_prototype_list(p, &s);
        /* The function cannot run, but that a call names the prototype is no mistake. */
        if (!right && !ptx_set_aside(p))
            return false;
        if (!right)
            ptx_return_to(p, &start);
        raw->prototypes[index] = s;
    }
    while (p->token.kind != PTX_END && !ptx_token_is(&p->token, ';'))
        ptx_advance(p);
    return ptx_declare(p, name, name->length, PTX_NAME_PROTO, index, 1) && ptx_expect(p, ';');
}

static bool parse_label(struct ptx_parser *p, const struct ptx_token *name)
{
    if (name->length > PTX_MAX_NAME)
        return ptx_fail(p, -E2BIG, name, "name of %u characters", name->length);
    if (ptx_accept_dot(p, "branchtargets"))
        return parse_branch_targets(p, name);
    if (ptx_is_dot(p, "callprototype") || ptx_is_dot(p, "calltargets"))
        return parse_prototype(p, name);
    return define_label(p, name);
}

static bool parse_directive(struct ptx_parser *p)
{
    bool was;
    if (ptx_accept_dot(p, "reg"))
        return ptx_parse_registers(p);
    if (ptx_accept_dot(p, "param"))
        return ptx_parse_variables(p, IR_SPACE_PARAM, 0);
    if (ptx_accept_dot(p, "local"))
        return ptx_parse_variables(p, IR_SPACE_LOCAL, 0);
    if (ptx_accept_dot(p, "shared"))
        return ptx_parse_variables(p, IR_SPACE_SHARED, 0);
    if (ptx_accept_dot(p, "global"))
        return ptx_parse_variables(p, IR_SPACE_GLOBAL, 0);
    if (ptx_accept_dot(p, "const"))
        return ptx_parse_variables(p, IR_SPACE_CONST, 0);
    if (!ptx_skip_debug(p, &was))
        return false;
    if (was)
        return true;
    bool exists = ptx_lacks_directive(&p->token);
    return ptx_fail(p, exists ? -ENOTSUP : -EINVAL, &p->token,
                    "directive '.%.*s' is not %s in a function", PTX_TEXT(&p->token),
                    exists ? "supported" : "known");
}

/* @%p or @!%p, then an instruction */
static bool parse_guarded(struct ptx_parser *p)
{
    uint32_t guard;
    bool negated = ptx_accept(p, '!');
    struct ptx_token opcode;
    return ptx_parse_register(p, IR_PRED, false, &guard) &&
           ptx_expect_ident(p, &opcode, "instruction") &&
           ptx_parse_instr(p, &opcode, guard, negated);
}

static bool parse_statement(struct ptx_parser *p)
{
    if (p->token.kind == PTX_DOT)
        return parse_directive(p);
    if (ptx_accept(p, '@'))
        return parse_guarded(p);
    if (ptx_accept(p, ';'))
        return true;
    struct ptx_token word;
    if (p->token.kind != PTX_IDENT)
        return ptx_fail(p, -EINVAL, &p->token, "statement expected, not '%.*s'",
                        PTX_TEXT(&p->token));
    word = p->token;
    ptx_advance(p);
    if (ptx_accept(p, ':'))
        return parse_label(p, &word);
    return ptx_parse_instr(p, &word, IR_NONE, false);
}

bool ptx_parse_body(struct ptx_parser *p)
{
    uint32_t outer =
        p->depth; /* the function's own scope: parameters, and the body's outermost level */
    if (!ptx_expect(p, '{'))
        return false;
    for (;;) {
        if (p->token.kind == PTX_END)
            return ptx_fail(p, -EINVAL, &p->token, "function '%s' does not end",
                            ir_name(p->m, p->m->fns[p->fn].name));
        if (ptx_token_is(&p->token, '{')) {
            if (!ptx_scope_begin(p))
                return false;
            ptx_advance(p);
        } else if (ptx_token_is(&p->token, '}')) {
            ptx_advance(p);
            if (p->depth == outer)
                return !p->why.error;
            if (!ptx_scope_end(p))
                return false;
        } else {
            struct ptx_mark start = ptx_here(p);
            if (parse_statement(p))
                continue;
            /* After a declaration nothing can be said about the statements that use what it
             * declares. */
            if (start.token.kind == PTX_DOT ? !ptx_set_aside(p) : !ptx_recover_statement(p, &start))
                return false;
            if (start.token.kind == PTX_DOT) {
                ptx_return_to(p, &start);
                return ptx_skip_body(p, outer);
            }
        }
    }
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool parse_call_operand(struct ptx_parser *p, struct ir_src *out)
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

static bool parse_call_operands(struct ptx_parser *p, uint32_t *count)
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
        } else if (!parse_call_operand(p, &src) || !add_call_operand(p, src, count)) {
            return false;
        }
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ')');
}

/* What stands behind the operands of a call through a register: a prototype, a list of targets, or
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
        if (raw->args[call->arg_first + k].kind == IR_SRC_IMM)
            return ptx_fail(p, -ENOTSUP, &name,
                            "a constant in a call without a prototype is not supported");
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
        (!parse_call_operands(p, &call.ret_count) || !ptx_expect(p, ',')))
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
        else if (!parse_call_operands(p, &call.arg_count))
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
