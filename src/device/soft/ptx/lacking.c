/*
 * Features of PTX that this device does not have. They make the kernel that contains them unusable,
 * not the module: the parser notes the problem and goes on behind it, and a program that launches
 * that kernel is told. A word that PTX does not have at all is an error in the text.
 */
#include "device/soft/ptx/parse.h"

static bool among(const struct ptx_token *t, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ptx_text_is(t, words[i]))
            return true;
    return false;
}

bool ptx_lacks_instruction(const struct ptx_token *t)
{
    static const char *const words[] = {
        "clusterlaunchcontrol", "multimem", "tcgen05", "tensormap", "wgmma",
    };
    return among(t, words, GM_ARRAY_LEN(words));
}

bool ptx_lacks_type(const struct ptx_token *t)
{
    static const char *const words[] = {
        "b1",     "s2",     "s4",      "u2",     "u4",     "b4",   "b4x16",  "b6x16_p32",
        "b8x16",  "b1024",  "e2m1",    "e2m1x2", "e2m1x4", "e2m3", "e2m3x2", "e2m3x4",
        "e3m2",   "e3m2x2", "e3m2x4",  "e4m3",   "e4m3x4", "e5m2", "e5m2x4", "f32x2",
        "s2f6x2", "tf32",   "ue8m0x2", "ue4m3",  "v2",     "v4",   "v8",
    };
    return among(t, words, GM_ARRAY_LEN(words));
}

bool ptx_lacks_directive(const struct ptx_token *t)
{
    static const char *const words[] = {
        "blocksareclusters", "explicitcluster",      "local", "reg", "reqnctapercluster",
        "abi_preserve",      "abi_preserve_control",
    };
    return among(t, words, GM_ARRAY_LEN(words));
}

/* --- going on --------------------------------------------------------------------------------- */

bool ptx_set_aside(struct ptx_parser *p)
{
    if (p->why.error != -ENOTSUP)
        return false;
    if (p->raw && !p->raw->lacks.error)
        p->raw->lacks = p->why;
    p->why.error = 0;
    return true;
}

/* Skips to behind the semicolon of this statement, over braces. */
static bool skip_statement(struct ptx_parser *p)
{
    unsigned open = 0;
    while (!ptx_token_is(&p->token, ';') || open > 0) {
        bool end = p->token.kind == PTX_END || (open == 0 && ptx_token_is(&p->token, '}'));
        if (end)
            return ptx_expect(p, ';');
        open += ptx_token_is(&p->token, '{');
        open -= ptx_token_is(&p->token, '}');
        ptx_advance(p);
    }
    return ptx_expect(p, ';');
}

bool ptx_skip_body(struct ptx_parser *p, uint32_t outer)
{
    for (uint32_t open = p->depth - outer + 1; open > 0;) {
        if (p->token.kind == PTX_END)
            return ptx_fail(p, -EINVAL, &p->token, "function '%s' does not end",
                            ir_name(p->m, p->m->fns[p->fn].name));
        open += ptx_token_is(&p->token, '{');
        open -= ptx_token_is(&p->token, '}');
        ptx_advance(p);
    }
    p->fixup_count = p->scopes[outer].fixups;
    while (p->depth > outer)
        if (!ptx_scope_end(p))
            return false;
    return !p->why.error;
}

bool ptx_recover_statement(struct ptx_parser *p, const struct ptx_mark *start)
{
    if (!ptx_set_aside(p))
        return false;
    ptx_return_to(p, start);
    return skip_statement(p);
}

bool ptx_recover_variable(struct ptx_parser *p, const struct ptx_mark *start)
{
    struct ir_problem why = p->why;
    unsigned open = 0;
    bool name_next = true;
    if (p->fn != IR_NONE || !ptx_set_aside(p))
        return false;
    struct ir_problem *noted = IR_PUSH(p->lacking, p->lacking_count, p->lacking_cap);
    if (!noted)
        return ptx_out_of_memory(p);
    *noted = why;
    ptx_return_to(p, start);
    /* From now on the names in this statement, at its start and after commas, stand for this
     * problem. */
    while (p->token.kind != PTX_END && (open > 0 || !ptx_token_is(&p->token, ';'))) {
        const struct ptx_token t = p->token;
        if (t.kind == PTX_PUNCT) {
            open += strchr("{([", t.text[0]) != NULL;
            open -= open > 0 && strchr("})]", t.text[0]) != NULL;
            name_next |= open == 0 && t.text[0] == ',';
        } else if (t.kind == PTX_IDENT && open == 0 && name_next) {
            struct ptx_name *known = ptx_names_find(&p->names, t.text, t.length);
            name_next = false;
            if (known) {
                known->kind = PTX_NAME_LACKING;
                known->index = p->lacking_count - 1;
            } else if (!ptx_declare(p, &t, t.length, PTX_NAME_LACKING, p->lacking_count - 1, 1)) {
                return false;
            }
        }
        ptx_advance(p);
    }
    return ptx_expect(p, ';');
}

bool ptx_refuse_lacking(struct ptx_parser *p, const struct ptx_token *t,
                        const struct ptx_name *name)
{
    const struct ir_problem *why = &p->lacking[name->index];
    return ptx_fail(p, -ENOTSUP, t, "'%.*s' of line %u: %.100s", PTX_TEXT(t), why->line, why->text);
}
