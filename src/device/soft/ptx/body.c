/*
 * Function bodies: scopes, declarations, labels, guards. Scopes are a counter and a stack of marks,
 * not recursion, so that the text cannot choose how deep our stack goes.
 */
#include "device/soft/ptx/parse.h"

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

/* name: .callprototype (results) _ (parameters) .noreturn; or name: .calltargets f, g; The
 * signature of the latter is that of the call; which functions it names is not needed. */
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
        /* The function cannot run, but that a call names the prototype is no error. */
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
    /* The function's own scope: its parameters, and the outermost level of its body. */
    uint32_t outer = p->depth;
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
            /* After a faulty declaration nothing can be said about the statements that use its
             * name. */
            if (start.token.kind == PTX_DOT ? !ptx_set_aside(p) : !ptx_recover_statement(p, &start))
                return false;
            if (start.token.kind == PTX_DOT) {
                ptx_return_to(p, &start);
                return ptx_skip_body(p, outer);
            }
        }
    }
}
