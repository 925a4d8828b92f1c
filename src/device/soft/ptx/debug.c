/*
 * Statements that have no meaning for this device: source positions, debug sections, pragmas.
 */
#include "device/soft/ptx/parse.h"

static bool skip_to_semicolon(struct ptx_parser *p)
{
    while (!ptx_token_is(&p->token, ';')) {
        if (p->token.kind == PTX_END)
            return ptx_fail(p, -EINVAL, &p->token, "';' expected, not the end of the text");
        ptx_advance(p);
    }
    return ptx_expect(p, ';');
}

/* .section .debug_info { .b32 1 .b8 2 label: ... } */
static bool skip_section(struct ptx_parser *p)
{
    if (p->token.kind != PTX_DOT)
        return ptx_fail(p, -EINVAL, &p->token, "section name expected");
    while (p->token.kind == PTX_DOT || p->token.kind == PTX_IDENT || p->token.kind == PTX_STRING)
        ptx_advance(p);
    if (!ptx_token_is(&p->token, '{'))
        return ptx_accept(p, ';') || ptx_expect(p, '{');
    unsigned depth = 0;
    do {
        if (p->token.kind == PTX_END)
            return ptx_fail(p, -EINVAL, &p->token,
                            "'}' of .section expected, not the end of the text");
        depth += ptx_token_is(&p->token, '{');
        depth -= ptx_token_is(&p->token, '}');
        ptx_advance(p);
    } while (depth > 0);
    return !p->why.error;
}

/* .loc file line column [, function_name label [+ n], inlined_at file line column]: ends without a
 * semicolon. */
static bool skip_loc(struct ptx_parser *p)
{
    uint64_t ignored;
    for (int i = 0; i < 3; i++)
        if (!ptx_expect_uint(p, UINT64_MAX, &ignored, "number"))
            return false;
    while (ptx_accept(p, ',')) {
        struct ptx_token word;
        if (!ptx_expect_ident(p, &word, "attribute of .loc"))
            return false;
        while (p->token.kind == PTX_INT ||
               (p->token.kind == PTX_IDENT && ptx_text_is(&word, "function_name")) ||
               ptx_token_is(&p->token, '+')) {
            if (p->token.kind == PTX_IDENT)
                word.length = 0;
            ptx_advance(p);
        }
    }
    return !p->why.error;
}

/* .file number "name" [, time, size] */
static bool skip_file(struct ptx_parser *p)
{
    uint64_t ignored;
    if (!ptx_expect_uint(p, UINT64_MAX, &ignored, "number"))
        return false;
    if (p->token.kind != PTX_STRING)
        return ptx_fail(p, -EINVAL, &p->token, "file name expected");
    ptx_advance(p);
    while (ptx_accept(p, ','))
        if (!ptx_expect_uint(p, UINT64_MAX, &ignored, "number"))
            return false;
    return !p->why.error;
}

/* One pragma has a meaning: it says how many registers the program's linker may use. */
static bool skip_pragma(struct ptx_parser *p)
{
    static const char words[] = "gmux registers ";
    const struct ptx_token *t = &p->token;
    if (t->kind == PTX_STRING && t->length > sizeof(words) - 1 &&
        memcmp(t->text, words, sizeof(words) - 1) == 0) {
        uint32_t most = 0;
        for (uint32_t i = sizeof(words) - 1;
             i < t->length && most < 1000 && t->text[i] >= '0' && t->text[i] <= '9'; i++)
            most = most * 10 + (uint32_t)(t->text[i] - '0');
        p->m->registers_most = most;
    }
    return skip_to_semicolon(p);
}

bool ptx_skip_debug(struct ptx_parser *p, bool *was)
{
    *was = true;
    if (ptx_accept_dot(p, "loc"))
        return skip_loc(p);
    if (ptx_accept_dot(p, "file"))
        return skip_file(p);
    if (ptx_accept_dot(p, "pragma"))
        return skip_pragma(p);
    if (ptx_accept_dot(p, "section"))
        return skip_section(p);
    *was = false;
    return true;
}
