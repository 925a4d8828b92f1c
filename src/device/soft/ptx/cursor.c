/*
 * The parser's position in the text: the next token, what is expected there, and the first error.
 */
#include "device/soft/ptx/parse.h"

#include <stdarg.h>
#include <stdio.h>

bool ptx_fail(struct ptx_parser *p, int error, const struct ptx_token *at, const char *fmt, ...)
{
    p->token.kind = PTX_END;
    if (p->why.error)
        return false;
    char text[sizeof(p->why.text)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return ir_refuse(&p->why, error, at->line, at->column, "%s", text);
}

bool ptx_out_of_memory(struct ptx_parser *p)
{
    p->token.kind = PTX_END;
    return ir_refuse(&p->why, -ENOMEM, 0, 0, "out of memory");
}

void ptx_advance(struct ptx_parser *p)
{
    if (p->why.error)
        return;
    ptx_lexer_next(&p->lexer, &p->token);
    if (p->token.kind == PTX_BAD) {
        const char *message = p->token.text;
        ptx_fail(p, -EINVAL, &p->token, "%s", message);
    }
}

bool ptx_text_is(const struct ptx_token *t, const char *word)
{
    return strlen(word) == t->length && memcmp(word, t->text, t->length) == 0;
}

bool ptx_is_dot(const struct ptx_parser *p, const char *word)
{
    return p->token.kind == PTX_DOT && ptx_text_is(&p->token, word);
}

bool ptx_accept_dot(struct ptx_parser *p, const char *word)
{
    if (!ptx_is_dot(p, word))
        return false;
    ptx_advance(p);
    return true;
}

bool ptx_accept(struct ptx_parser *p, char punct)
{
    if (!ptx_token_is(&p->token, punct))
        return false;
    ptx_advance(p);
    return true;
}

bool ptx_expect(struct ptx_parser *p, char punct)
{
    if (ptx_accept(p, punct))
        return !p->why.error;
    const struct ptx_token *t = &p->token;
    if (t->kind == PTX_END)
        return ptx_fail(p, -EINVAL, t, "'%c' expected, not the end of the text", punct);
    return ptx_fail(p, -EINVAL, t, "'%c' expected, not '%s%.*s'", punct,
                    t->kind == PTX_DOT ? "." : "", PTX_TEXT(t));
}

bool ptx_expect_ident(struct ptx_parser *p, struct ptx_token *name, const char *what)
{
    if (p->token.kind != PTX_IDENT)
        return ptx_fail(p, -EINVAL, &p->token, "%s expected", what);
    if (p->token.length > PTX_MAX_NAME)
        return ptx_fail(p, -E2BIG, &p->token, "name of %u characters", p->token.length);
    *name = p->token;
    ptx_advance(p);
    return !p->why.error;
}

bool ptx_expect_uint(struct ptx_parser *p, uint64_t max, uint64_t *value, const char *what)
{
    if (p->token.kind != PTX_INT)
        return ptx_fail(p, -EINVAL, &p->token, "%s expected", what);
    if (p->token.value > max)
        return ptx_fail(p, -E2BIG, &p->token, "%s over %llu", what, (unsigned long long)max);
    *value = p->token.value;
    ptx_advance(p);
    return !p->why.error;
}

bool ptx_intern(struct ptx_parser *p, const struct ptx_token *name, uint32_t length, uint32_t *out)
{
    struct ir_module *m = p->m;
    uint64_t need = m->strings_size + length + 1;
    if (need > UINT32_MAX)
        return ptx_fail(p, -E2BIG, name, "names of over 4 GiB");
    if (need > p->strings_cap) {
        uint64_t cap = GM_MAX(p->strings_cap * 2, need + 256);
        char *grown = realloc(m->strings, cap);
        if (!grown)
            return ptx_out_of_memory(p);
        m->strings = grown;
        p->strings_cap = cap;
    }
    *out = (uint32_t)m->strings_size;
    memcpy(m->strings + m->strings_size, name->text, length);
    m->strings[m->strings_size + length] = '\0';
    m->strings_size = need;
    return true;
}

struct ptx_mark ptx_here(const struct ptx_parser *p)
{
    return (struct ptx_mark) { p->lexer, p->token };
}

void ptx_return_to(struct ptx_parser *p, const struct ptx_mark *mark)
{
    /* After an error the parser stays at the end of the text, so that all loops end. */
    if (p->why.error)
        return;
    p->lexer = mark->lexer;
    p->token = mark->token;
}
