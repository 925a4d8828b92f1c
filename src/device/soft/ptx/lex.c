/*
 * The lexer. A class per character decides what begins a token. A token's length is bounded only by
 * the text; it fits 32 bits, because ptx_parse() refuses larger texts.
 */
#include "device/soft/ptx/lex.h"

#include <stdlib.h>
#include <string.h>

enum {
    C_WORD = 1,  /* may be inside an identifier */
    C_START = 2, /* may start one */
    C_DIGIT = 4,
    C_HEX = 8,
};

/* clang-format off */
static const uint8_t classes[256] = {
    ['0' ... '9'] = C_WORD | C_DIGIT | C_HEX,
    ['a' ... 'f'] = C_WORD | C_START | C_HEX, ['g' ... 'z'] = C_WORD | C_START,
    ['A' ... 'F'] = C_WORD | C_START | C_HEX, ['G' ... 'Z'] = C_WORD | C_START,
    ['_'] = C_WORD | C_START, ['$'] = C_WORD | C_START, ['%'] = C_START,
};
/* clang-format on */

static inline bool is(const struct ptx_lexer *l, const char *at, uint8_t class)
{
    return at < l->end && (classes[(uint8_t)*at] & class);
}

static inline bool is_char(const struct ptx_lexer *l, const char *at, char c)
{
    return at < l->end && *at == c;
}

void ptx_lexer_init(struct ptx_lexer *l, const char *text, size_t size)
{
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    l->at = text;
    l->end = nul ? nul : size ? text + size : text;
    l->line_start = text;
    l->line = 1;
}

/* False: the comment does not end. */
static bool skip_block_comment(struct ptx_lexer *l)
{
    uint32_t line = l->line;
    const char *line_start = l->line_start;
    for (const char *p = l->at + 2; p + 1 < l->end; p++) {
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        } else if (*p == '*' && p[1] == '/') {
            l->at = p + 2;
            l->line = line;
            l->line_start = line_start;
            return true;
        }
    }
    return false;
}

static bool skip_blanks(struct ptx_lexer *l)
{
    while (l->at < l->end) {
        char c = *l->at;
        if (c == '\n') {
            l->line++;
            l->line_start = ++l->at;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            l->at++;
        } else if (c == '/' && is_char(l, l->at + 1, '/')) {
            const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
            l->at = newline ? newline : l->end;
        } else if (c == '/' && is_char(l, l->at + 1, '*')) {
            if (!skip_block_comment(l))
                return false;
        } else {
            break;
        }
    }
    return true;
}

static void bad(struct ptx_token *t, const char *message)
{
    t->kind = PTX_BAD;
    t->text = message;
}

static unsigned hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return (unsigned)((c | 0x20) - 'a') + 10;
}

/* Reads exactly `digits` hexadecimal digits: the bits of a floating point number. */
static const char *lex_float_bits(struct ptx_lexer *l, struct ptx_token *t, unsigned digits,
                                  uint8_t kind)
{
    const char *p = l->at + 2;
    uint64_t value = 0;
    for (unsigned i = 0; i < digits; i++, p++) {
        if (!is(l, p, C_HEX)) {
            bad(t, "malformed floating point constant");
            return p;
        }
        value = value << 4 | hex_value(*p);
    }
    t->kind = kind;
    t->value = value;
    return p;
}

/* Whether the letter at `p` begins an exponent: "e5", "E-5". */
static bool is_exponent(struct ptx_lexer *l, const char *p)
{
    if (!is_char(l, p, 'e') && !is_char(l, p, 'E'))
        return false;
    p++;
    return is(l, is_char(l, p, '+') || is_char(l, p, '-') ? p + 1 : p, C_DIGIT);
}

/* Whether the dot at `p` belongs to the number before it, which may end with it, and not to a word
 * such as that of a directive. */
static bool is_fraction(struct ptx_lexer *l, const char *p)
{
    return is_char(l, p, '.') &&
           (is(l, p + 1, C_DIGIT) || !is(l, p + 1, C_WORD) || is_exponent(l, p + 1));
}

/* Whether a dot begins a number, ".5" or ".5e3"; words such as ".2d" also have digits. */
static bool is_bare_fraction(struct ptx_lexer *l, const char *p)
{
    if (!is(l, ++p, C_DIGIT))
        return false;
    while (is(l, p, C_DIGIT))
        p++;
    return !is(l, p, C_WORD) || is_exponent(l, p);
}

/* 1.5, 1.5e-3, 2e10, 1., .5. Such numbers are rare, so copying them for strtod is fast enough. */
static const char *lex_decimal(struct ptx_lexer *l, struct ptx_token *t, const char *p)
{
    char copy[64];
    while (is(l, p, C_DIGIT))
        p++;
    if (is_char(l, p, '.')) {
        p++;
        while (is(l, p, C_DIGIT))
            p++;
    }
    if (is_char(l, p, 'e') || is_char(l, p, 'E')) {
        p++;
        if (is_char(l, p, '+') || is_char(l, p, '-'))
            p++;
        while (is(l, p, C_DIGIT))
            p++;
    }
    size_t length = (size_t)(p - t->text);
    if (length >= sizeof(copy)) {
        bad(t, "floating point constant too long");
        return p;
    }
    memcpy(copy, t->text, length);
    copy[length] = '\0';
    char *stop;
    double value = strtod(copy, &stop);
    if (*stop) {
        bad(t, "malformed floating point constant");
        return p;
    }
    t->kind = PTX_F64;
    memcpy(&t->value, &value, sizeof(value));
    return p;
}

static const char *lex_number(struct ptx_lexer *l, struct ptx_token *t)
{
    const char *p = l->at;
    unsigned base = 10;
    if (*p == '0' && p + 1 < l->end) {
        char c = (char)(p[1] | 0x20);
        if (c == 'f' && is(l, p + 2, C_HEX))
            return lex_float_bits(l, t, 8, PTX_F32);
        if (c == 'd' && is(l, p + 2, C_HEX))
            return lex_float_bits(l, t, 16, PTX_F64);
        if (c == 'x') {
            base = 16;
            p += 2;
        } else if (c == 'b') {
            base = 2;
            p += 2;
        } else if (is(l, p + 1, C_DIGIT)) {
            base = 8;
            p += 1;
        }
    }
    const char *first = p;
    uint64_t value = 0;
    bool overflow = false;
    for (; is(l, p, base == 16 ? C_HEX : C_DIGIT); p++) {
        unsigned digit = hex_value(*p);
        if (digit >= base) {
            bad(t, "malformed integer constant");
            return p;
        }
        overflow |= __builtin_mul_overflow(value, base, &value);
        overflow |= __builtin_add_overflow(value, digit, &value);
    }
    if (base != 16 && base != 2 && (is_fraction(l, p) || is_char(l, p, 'e') || is_char(l, p, 'E')))
        return lex_decimal(l, t, p);
    if (is_char(l, p, 'U'))
        p++;
    if (first == p || is(l, p, C_WORD)) {
        bad(t, "malformed integer constant");
        return p;
    }
    if (overflow) {
        bad(t, "integer constant does not fit 64 bits");
        return p;
    }
    t->kind = PTX_INT;
    t->value = value;
    return p;
}

static const char *lex_string(struct ptx_lexer *l, struct ptx_token *t)
{
    const char *p = l->at + 1;
    while (p < l->end && *p != '"' && *p != '\n') {
        if (*p == '\\' && p + 1 < l->end && p[1] != '\n')
            p++;
        p++;
    }
    if (!is_char(l, p, '"')) {
        bad(t, "string does not end");
        return p;
    }
    t->kind = PTX_STRING;
    t->text = l->at + 1;
    t->length = (uint32_t)(p - t->text);
    return p + 1;
}

static const char *lex_dot(struct ptx_lexer *l, struct ptx_token *t)
{
    const char *p = l->at + 1;
    if (!is(l, p, C_WORD)) {
        bad(t, "name expected after '.'");
        return p;
    }
    for (;;) {
        while (is(l, p, C_WORD))
            p++;
        if (!(is_char(l, p, ':') && is_char(l, p + 1, ':') && is(l, p + 2, C_WORD)))
            break;
        p += 2;
    }
    t->kind = PTX_DOT;
    t->text = l->at + 1;
    t->length = (uint32_t)(p - t->text);
    return p;
}

void ptx_lexer_next(struct ptx_lexer *l, struct ptx_token *t)
{
    bool closed = skip_blanks(l);
    t->line = l->line;
    t->column = (uint32_t)(l->at - l->line_start) + 1;
    t->text = l->at;
    t->length = 0;
    t->value = 0;
    if (!closed) {
        bad(t, "comment does not end");
        return;
    }
    if (l->at == l->end) {
        t->kind = PTX_END;
        return;
    }
    const char *p = l->at;
    uint8_t class = classes[(uint8_t)*p];
    if (class & C_START) {
        p++;
        while (is(l, p, C_WORD))
            p++;
        t->kind = PTX_IDENT;
        t->length = (uint32_t)(p - t->text);
    } else if (class & C_DIGIT) {
        p = lex_number(l, t);
        if (t->kind != PTX_BAD)
            t->length = (uint32_t)(p - t->text);
    } else if (*p == '.') {
        bool number = is_bare_fraction(l, p);
        p = number ? lex_decimal(l, t, p) : lex_dot(l, t);
        if (number && t->kind != PTX_BAD)
            t->length = (uint32_t)(p - t->text);
    } else if (*p == '"') {
        p = lex_string(l, t);
    } else if (memchr("{}()[]<>,;:@!|+-=*/~&^?#", *p, 24)) {
        t->kind = PTX_PUNCT;
        t->length = 1;
        p++;
    } else {
        bad(t, "character that does not belong here");
    }
    if (t->kind != PTX_BAD)
        l->at = p;
}
