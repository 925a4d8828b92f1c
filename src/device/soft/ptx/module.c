/*
 * Module scope: header directives, variables, and the heads of entries and device functions.
 */
#include "device/soft/ptx/parse.h"

/* --- header ----------------------------------------------------------------------------------- */

static bool parse_version(struct ptx_parser *p)
{
    struct ptx_token t = p->token;
    unsigned major = 0, minor = 0;
    uint32_t i = 0;
    for (; i < t.length && t.text[i] >= '0' && t.text[i] <= '9' && major < 1000; i++)
        major = major * 10 + (unsigned)(t.text[i] - '0');
    bool right = t.kind == PTX_F64 && i + 2 == t.length && t.text[i] == '.' &&
                 t.text[i + 1] >= '0' && t.text[i + 1] <= '9';
    if (!right)
        return ptx_fail(p, -EINVAL, &t, "version number expected");
    minor = (unsigned)(t.text[i + 1] - '0');
    /* No toolkit writes such a version. */
    if (major < 1 || major > 9)
        return ptx_fail(p, -EPROTONOSUPPORT, &t, "PTX version %.*s", PTX_TEXT(&t));
    p->m->version = GM_MAX(p->m->version, major * 10 + minor);
    ptx_advance(p);
    return !p->why.error;
}

/* sm_75, sm_90a, texmode_independent, debug ... */
static bool parse_target(struct ptx_parser *p)
{
    struct ptx_token first = p->token;
    unsigned best = 0;
    do {
        struct ptx_token t;
        if (!ptx_expect_ident(p, &t, "target"))
            return false;
        if (t.length > 3 && (memcmp(t.text, "sm_", 3) == 0)) {
            unsigned number = 0;
            for (uint32_t i = 3;
                 i < t.length && t.text[i] >= '0' && t.text[i] <= '9' && number < 100000; i++)
                number = number * 10 + (unsigned)(t.text[i] - '0');
            if (number < 10 || number > 199)
                return ptx_fail(p, -EINVAL, &t, "target '%.*s' is not known", PTX_TEXT(&t));
            best = number;
        }
    } while (ptx_accept(p, ','));
    p->target = best;
    p->m->target = GM_MAX(p->m->target, best);
    if (best == 0)
        return ptx_fail(p, -EINVAL, &first, "target names no architecture (sm_75 ..)");
    return !p->why.error;
}

static bool parse_address_size(struct ptx_parser *p)
{
    struct ptx_token t = p->token;
    uint64_t size;
    if (!ptx_expect_uint(p, 64, &size, "32 or 64"))
        return false;
    if (size != 64)
        return ptx_fail(p, -ENOTSUP, &t, "only .address_size 64 is supported");
    return true;
}

/* --- functions -------------------------------------------------------------------------------- */

static bool new_function(struct ptx_parser *p, const struct ptx_token *name, bool is_entry,
                         uint32_t *out)
{
    struct ptx_name known;
    if (ptx_lookup(p, name, &known)) {
        const struct ir_fn *fn = known.kind == PTX_NAME_FN ? &p->m->fns[known.index] : NULL;
        if (!fn || fn->is_defined || fn->is_entry != is_entry)
            return ptx_fail(p, -EINVAL, name, "'%.*s' is declared twice", PTX_TEXT(name));
        *out = known.index;
        return true;
    }
    if (p->m->fn_count >= IR_MAX_FNS)
        return ptx_fail(p, -E2BIG, name, "over %u functions", IR_MAX_FNS);
    uint32_t text;
    if (!ptx_intern(p, name, name->length, &text))
        return false;
    struct ir_raw_fn *raw = IR_PUSH(p->raws, p->raw_count, p->raw_cap);
    if (!raw)
        return ptx_out_of_memory(p);
    raw->carry = IR_NONE;
    raw->unit = p->unit_count;
    struct ir_fn *fn = IR_PUSH(p->m->fns, p->m->fn_count, p->fn_cap);
    if (!fn)
        return ptx_out_of_memory(p);
    *fn = (struct ir_fn) {
        .name = text, .is_entry = is_entry, .line = name->line, .target = p->target
    };
    *out = p->m->fn_count - 1;
    return ptx_declare(p, name, name->length, PTX_NAME_FN, *out, 1);
}

static bool entry_param(struct ptx_parser *p)
{
    struct ptx_variable v;
    if (!ptx_accept_dot(p, "param"))
        return ptx_fail(p, -EINVAL, &p->token, "'.param' expected");
    if (!ptx_parse_variable(p, IR_SPACE_PARAM, &v))
        return false;
    struct ir_fn *fn = &p->m->fns[p->fn];
    uint64_t offset;
    if (v.is_unsized || fn->param_count >= IR_MAX_PARAMS || v.size > IR_MAX_PARAM_BYTES ||
        !gm_align_up(fn->param_bytes, v.align, &offset) || offset + v.size > IR_MAX_PARAM_BYTES)
        return ptx_fail(p, -E2BIG, &v.name, "parameters of over %u bytes", IR_MAX_PARAM_BYTES);
    uint32_t symbol;
    if (!ptx_new_symbol(p, &v, IR_SYM_KERNEL_PARAM, &symbol) ||
        !ptx_declare(p, &v.name, v.name.length, PTX_NAME_SYMBOL, symbol, 1))
        return false;
    p->m->symbols[symbol].offset = offset;
    struct ir_param *param = IR_PUSH(p->m->params, p->m->param_count, p->param_cap);
    if (!param)
        return ptx_out_of_memory(p);
    *param = (struct ir_param) { .symbol = symbol, .type = (uint8_t)v.type };
    if (fn->param_count++ == 0)
        fn->param_first = p->m->param_count - 1;
    fn->param_bytes = (uint32_t)(offset + v.size);
    return true;
}

static bool add_formal(struct ptx_parser *p, struct ir_src src)
{
    struct ir_src *added = IR_PUSH(p->raw->formals, p->raw->formal_count, p->raw->formal_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = src;
    return true;
}

/* A result or parameter of a device function: .param variable or .reg. */
static bool formal(struct ptx_parser *p)
{
    struct ir_src src = { 0 };
    uint32_t index;
    if (ptx_accept_dot(p, "reg")) {
        uint8_t width;
        if (!ptx_parse_formal_register(p, &index, &width))
            return false;
        for (; width > 1; width--)
            if (!add_formal(p, ir_src_reg(index++)))
                return false;
        src = ir_src_reg(index);
    } else if (ptx_accept_dot(p, "param")) {
        struct ptx_variable v;
        if (!ptx_parse_variable(p, IR_SPACE_PARAM, &v))
            return false;
        bool open = v.is_unsized;
        v.size = open ? IR_OPEN_BYTES : v.size;
        v.is_unsized = false;
        if (!ptx_new_temp(p, &v, &index) ||
            !ptx_declare(p, &v.name, v.name.length, PTX_NAME_TEMP, index, 1))
            return false;
        p->raw->temps[index].open = open;
        src = (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = index | IR_TEMP };
    } else {
        return ptx_fail(p, -EINVAL, &p->token, "'.param' or '.reg' expected");
    }
    return add_formal(p, src);
}

static bool parse_list(struct ptx_parser *p, bool (*element)(struct ptx_parser *))
{
    if (!ptx_expect(p, '('))
        return false;
    if (ptx_accept(p, ')'))
        return !p->why.error;
    do {
        if (!element(p))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ')');
}

static bool parse_dims3(struct ptx_parser *p, uint32_t out[3])
{
    uint64_t value;
    out[0] = out[1] = out[2] = 1;
    for (int i = 0; i < 3; i++) {
        struct ptx_token t = p->token;
        if (!ptx_expect_uint(p, 1024, &value, "number of threads"))
            return false;
        if (value == 0)
            return ptx_fail(p, -EINVAL, &t, "number of threads is 0");
        out[i] = (uint32_t)value;
        if (i == 2 || !ptx_accept(p, ','))
            break;
    }
    return !p->why.error;
}

static bool parse_uint32(struct ptx_parser *p, uint32_t *out)
{
    uint64_t value;
    if (!ptx_expect_uint(p, UINT32_MAX, &value, "number"))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool refuse_directive(struct ptx_parser *p)
{
    const struct ptx_token *t = &p->token;
    return ptx_lacks_directive(t)
               ? ptx_fail(p, -ENOTSUP, t, "directive '.%.*s' is not supported", PTX_TEXT(t))
               : ptx_fail(p, -EINVAL, t, "directive '.%.*s' is not known", PTX_TEXT(t));
}

/* Whether a declaration begins here. After a prototype nvopencc, nvcc's compiler up to CUDA 4.0,
 * wrote no semicolon. */
static bool declaration_follows(const struct ptx_parser *p)
{
    static const char *const words[] = { "visible", "extern", "weak",  "func", "entry",
                                         "global",  "shared", "const", "tex" };
    for (size_t k = 0; k < GM_ARRAY_LEN(words); k++)
        if (ptx_is_dot(p, words[k]))
            return true;
    return false;
}

/* Directives that may stand between a function's head and its body. */
static bool parse_performance(struct ptx_parser *p)
{
    struct ir_fn *fn = &p->m->fns[p->fn];
    uint32_t ignored;
    while (p->token.kind == PTX_DOT && !p->why.error && !declaration_follows(p)) {
        bool was, right = true;
        if (ptx_accept_dot(p, "maxntid"))
            right = parse_dims3(p, fn->maxntid);
        else if (ptx_accept_dot(p, "reqntid"))
            right = parse_dims3(p, fn->reqntid);
        else if (ptx_accept_dot(p, "minnctapersm"))
            right = parse_uint32(p, &fn->minnctapersm);
        else if (ptx_accept_dot(p, "maxnreg"))
            right = parse_uint32(p, &fn->maxnreg);
        else if (ptx_accept_dot(p, "maxnctapersm") || ptx_accept_dot(p, "maxclusterrank"))
            right = parse_uint32(p, &ignored); /* clusters are of one block */
        else if (ptx_accept_dot(p, "noreturn"))
            right = true;
        else if (!ptx_skip_debug(p, &was))
            right = false;
        else if (!was)
            right = refuse_directive(p);
        if (!right)
            return false;
    }
    return !p->why.error;
}

/* Drops a prototype that the definition follows: only the definition counts. */
static void forget_prototype(struct ptx_parser *p)
{
    struct ir_fn *fn = &p->m->fns[p->fn];
    uint32_t carry = p->raw->carry, unit = p->raw->unit;
    uint8_t linkage = p->raw->linkage;
    fn->param_count = fn->param_bytes = 0;
    ir_raw_finish(p->raw);
    memset(p->raw, 0, sizeof(*p->raw));
    p->raw->carry = carry;
    p->raw->unit = unit;
    p->raw->linkage = linkage;
}

/* The results stand before the name but are parsed after it; they begin at `results`. */
static bool parse_signature(struct ptx_parser *p, bool is_entry, const struct ptx_mark *results)
{
    if (results) {
        struct ptx_mark here = ptx_here(p);
        ptx_return_to(p, results);
        if (!parse_list(p, formal))
            return false;
        ptx_return_to(p, &here);
    }
    p->raw->formal_rets = p->raw->formal_count;
    if (ptx_token_is(&p->token, '(') && !parse_list(p, is_entry ? entry_param : formal))
        return false;
    return parse_performance(p);
}

static bool parse_function(struct ptx_parser *p, bool is_entry, uint8_t flags)
{
    struct ptx_token name;
    /* Skip the results first: they belong to the function's scope, which needs its name. */
    struct ptx_mark results = ptx_here(p);
    bool has_results = !is_entry && ptx_token_is(&p->token, '(');
    if (has_results) {
        while (p->token.kind != PTX_END && !ptx_token_is(&p->token, ')'))
            ptx_advance(p);
        if (!ptx_expect(p, ')'))
            return false;
    }
    uint32_t index = IR_NONE;
    if (!ptx_expect_ident(p, &name, "function name") || !new_function(p, &name, is_entry, &index))
        return false;
    p->fn = index;
    p->raw = &p->raws[index];
    forget_prototype(p);
    p->raw->linkage |= flags;
    p->raw->symbol_first = p->m->symbol_count;
    p->stack_top = IR_NONE;
    struct ptx_mark head = ptx_here(p);
    if (!ptx_scope_begin(p))
        return false;
    if (!parse_signature(p, is_entry, has_results ? &results : NULL)) {
        if (!ptx_set_aside(p))
            return false;
        ptx_return_to(p, &head);
        while (p->token.kind != PTX_END && !ptx_token_is(&p->token, '{') &&
               !ptx_token_is(&p->token, ';'))
            ptx_advance(p);
    }
    if (ptx_token_is(&p->token, '{')) {
        if (flags & IR_SYM_EXTERN)
            return ptx_fail(p, -EINVAL, &p->token, "'%.*s' is .extern and has a body",
                            PTX_TEXT(&name));
        p->m->fns[index].is_defined = true;
        bool lacks = p->raw->lacks.error;
        if (lacks)
            ptx_advance(p);
        if (lacks ? !ptx_skip_body(p, p->depth) : !ptx_parse_body(p))
            return false;
    } else if ((is_entry || !declaration_follows(p)) && !ptx_expect(p, ';')) {
        return false;
    }
    if (!ptx_scope_end(p) || !ptx_begin_stack(p))
        return false;
    p->raw->symbol_count = p->m->symbol_count - p->raw->symbol_first;
    p->fn = IR_NONE;
    p->raw = NULL;
    return true;
}

/* --- everything together ---------------------------------------------------------------------- */

static bool parse_function_name(struct ptx_parser *p, uint32_t *fn)
{
    struct ptx_token t;
    struct ptx_name name;
    if (!ptx_expect_ident(p, &t, "function name"))
        return false;
    if (!ptx_lookup(p, &t, &name) || name.kind != PTX_NAME_FN || p->m->fns[name.index].is_entry)
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is no device function", PTX_TEXT(&t));
    *fn = name.index;
    return true;
}

/* .alias a, b; where a has a prototype and b a body */
static bool parse_alias(struct ptx_parser *p)
{
    struct ptx_alias alias;
    struct ptx_token at = p->token;
    if (!parse_function_name(p, &alias.fn) || !ptx_expect(p, ',') ||
        !parse_function_name(p, &alias.is))
        return false;
    if (p->m->fns[alias.fn].is_defined || !p->m->fns[alias.is].is_defined)
        return ptx_fail(p, -EINVAL, &at, "an alias is a prototype's, for a function with a body");
    struct ptx_alias *added = IR_PUSH(p->aliases, p->alias_count, p->alias_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = alias;
    return ptx_expect(p, ';');
}

static bool parse_linked(struct ptx_parser *p)
{
    uint8_t flags = 0;
    if (ptx_accept_dot(p, "alias"))
        return parse_alias(p);
    for (;;) {
        if (ptx_accept_dot(p, "visible"))
            flags |= IR_SYM_VISIBLE;
        else if (ptx_accept_dot(p, "weak") || ptx_accept_dot(p, "common"))
            flags |= IR_SYM_VISIBLE | IR_SYM_WEAK;
        else if (ptx_accept_dot(p, "extern"))
            flags |= IR_SYM_EXTERN;
        else
            break;
    }
    if (ptx_accept_dot(p, "entry"))
        return parse_function(p, true, flags);
    if (ptx_accept_dot(p, "func"))
        return parse_function(p, false, flags);
    if (ptx_accept_dot(p, "global"))
        return ptx_parse_variables(p, IR_SPACE_GLOBAL, flags);
    if (ptx_accept_dot(p, "const"))
        return ptx_parse_variables(p, IR_SPACE_CONST, flags);
    if (ptx_accept_dot(p, "shared"))
        return ptx_parse_variables(p, IR_SPACE_SHARED, flags);
    if (ptx_accept_dot(p, "tex"))
        return ptx_parse_textures(p, flags);
    const struct ptx_token *t = &p->token;
    if (t->kind == PTX_DOT)
        return refuse_directive(p);
    if (t->kind == PTX_END)
        return ptx_fail(p, -EINVAL, t, "directive expected, not the end of the text");
    return ptx_fail(p, -EINVAL, t, "directive expected, not '%.*s'", PTX_TEXT(t));
}

static bool parse_header(struct ptx_parser *p)
{
    if (!ptx_accept_dot(p, "version"))
        return ptx_fail(p, -EINVAL, &p->token, "a PTX text begins with '.version'");
    if (!parse_version(p))
        return false;
    if (!ptx_accept_dot(p, "target"))
        return ptx_fail(p, -EINVAL, &p->token, "'.target' expected");
    if (!parse_target(p))
        return false;
    return !ptx_accept_dot(p, "address_size") || parse_address_size(p);
}

bool ptx_parse_module(struct ptx_parser *p)
{
    return parse_header(p) && ptx_parse_units(p);
}

bool ptx_parse_units(struct ptx_parser *p)
{
    while (p->token.kind != PTX_END) {
        bool was;
        if (ptx_accept(p, ';'))
            continue;
        if (!ptx_unit_begin(p, &was) || (was && !parse_header(p)))
            return false;
        if (was)
            continue;
        if (!ptx_skip_debug(p, &was))
            return false;
        struct ptx_mark start = ptx_here(p);
        if (!was && !parse_linked(p) && !ptx_recover_variable(p, &start))
            return false;
    }
    return !p->why.error;
}
