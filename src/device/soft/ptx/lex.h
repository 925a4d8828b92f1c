/*
 * Splits PTX text into tokens, one at a time. Comments and blanks are skipped; a NUL ends the text.
 */
#ifndef GMUX_SOFT_PTX_LEX_H
#define GMUX_SOFT_PTX_LEX_H

#include "base/attr.h"

enum ptx_token_kind {
    PTX_END,
    PTX_IDENT,  /* foo, %r1, $L__BB0_1, _ */
    PTX_DOT,    /* .reg, .u32, .L2::128B: text is without the first dot */
    PTX_INT,    /* value */
    PTX_F32,    /* 0f3F800000: value is the bits */
    PTX_F64,    /* 0d3FF0000000000000, 1.5: value is the bits */
    PTX_STRING, /* text is without the quotes */
    PTX_PUNCT,  /* one character: text[0] */
    PTX_BAD,    /* not a token: `text` points to a message */
};

struct ptx_token {
    uint8_t kind; /* enum ptx_token_kind */
    uint32_t length;
    uint32_t line, column;
    const char *text;
    uint64_t value;
};

struct ptx_lexer {
    const char *at, *end;
    const char *line_start;
    uint32_t line;
};

void ptx_lexer_init(struct ptx_lexer *l, const char *text, size_t size);

/* Reads the next token. After PTX_END or PTX_BAD it reads the same token again. */
void ptx_lexer_next(struct ptx_lexer *l, struct ptx_token *t);

static inline bool ptx_token_is(const struct ptx_token *t, char punct)
{
    return t->kind == PTX_PUNCT && t->text[0] == punct;
}

#endif
