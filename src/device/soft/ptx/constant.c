/*
 * Constant expressions of integers, as C has them: 64 bits, signed unless a part is unsigned. The
 * operators are read by precedence climbing. How deep they nest is limited, for the text is not
 * trusted.
 */
#include "device/soft/ptx/parse.h"

#define MAX_DEPTH 64

struct constant {
    uint64_t bits;
    bool is_unsigned;
};

static const struct operator
{
    char text[3];
    uint8_t level;
}
operators[] = {
    { "*", 10 }, { "/", 10 }, { "%", 10 }, { "+", 9 }, { "-", 9 }, { "<<", 8 },
    { ">>", 8 }, { "<=", 7 }, { ">=", 7 }, { "<", 7 }, { ">", 7 }, { "==", 6 },
    { "!=", 6 }, { "&&", 2 }, { "||", 1 }, { "&", 5 }, { "^", 4 }, { "|", 3 },
};

static bool choice(struct ptx_parser *p, unsigned depth, struct constant *out);

static const struct operator* next_operator(const struct ptx_parser *p)
{
    const char *behind = p->lexer.at;
    /* A "%" by itself is a name to the lexer, for which registers begin so. */
    if (p->token.length != 1 || (p->token.kind != PTX_PUNCT && p->token.kind != PTX_IDENT))
        return NULL;
    for (unsigned k = 0; k < GM_ARRAY_LEN(operators); k++) {
        const char *text = operators[k].text;
        if (p->token.text[0] == text[0] &&
            (!text[1] || (behind < p->lexer.end && *behind == text[1])))
            return &operators[k];
    }
    return NULL;
}

/* "(.s64)", "(.u64)" or an expression; the parenthesis is consumed already. */
static bool parenthesis(struct ptx_parser *p, unsigned depth, struct constant *out);

static bool unary(struct ptx_parser *p, unsigned depth, struct constant *out)
{
    struct ptx_token t = p->token;
    if (depth > MAX_DEPTH)
        return ptx_fail(p, -E2BIG, &t, "constant expression nested over %d deep", MAX_DEPTH);
    if (ptx_accept(p, '('))
        return parenthesis(p, depth + 1, out);
    if (ptx_accept(p, '+'))
        return unary(p, depth + 1, out);
    if (ptx_token_is(&t, '-') || ptx_token_is(&t, '~') || ptx_token_is(&t, '!')) {
        ptx_advance(p);
        if (!unary(p, depth + 1, out))
            return false;
        if (t.text[0] == '!')
            *out = (struct constant) { .bits = !out->bits };
        else
            out->bits = t.text[0] == '-' ? 0 - out->bits : ~out->bits;
        return true;
    }
    if (t.kind == PTX_IDENT && ptx_text_is(&t, "WARP_SZ"))
        *out = (struct constant) { .bits = 32 };
    else if (t.kind == PTX_INT)
        *out = (struct constant) { t.value, t.value > INT64_MAX || t.text[t.length - 1] == 'U' };
    else
        return ptx_fail(p, -EINVAL, &t, "operand expected");
    ptx_advance(p);
    return !p->why.error;
}

static bool parenthesis(struct ptx_parser *p, unsigned depth, struct constant *out)
{
    struct ptx_token t = p->token;
    if (t.kind != PTX_DOT)
        return choice(p, depth, out) && ptx_expect(p, ')');
    bool is_unsigned = ptx_text_is(&t, "u64");
    if (!is_unsigned && !ptx_text_is(&t, "s64"))
        return ptx_fail(p, -EINVAL, &t, "'(.s64)' or '(.u64)' expected");
    ptx_advance(p);
    if (!ptx_expect(p, ')') || !unary(p, depth, out))
        return false;
    out->is_unsigned = is_unsigned;
    return true;
}

static uint64_t divide(struct constant a, struct constant b, bool rest)
{
    if (a.is_unsigned || b.is_unsigned)
        return rest ? a.bits % b.bits : a.bits / b.bits;
    if (b.bits == UINT64_MAX) /* -1, by which the least number cannot be divided */
        return rest ? 0 : 0 - a.bits;
    int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
    return (uint64_t)(rest ? x % y : x / y);
}

static uint64_t shift(struct constant a, uint64_t by, bool left)
{
    if (left)
        return by > 63 ? 0 : a.bits << by;
    if (a.is_unsigned)
        return by > 63 ? 0 : a.bits >> by;
    return (uint64_t)((int64_t)a.bits >> GM_MIN(by, 63u));
}

static int order(struct constant a, struct constant b)
{
    if (a.is_unsigned || b.is_unsigned)
        return (a.bits > b.bits) - (a.bits < b.bits);
    int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
    return (x > y) - (x < y);
}

static uint64_t compare(const char *text, int o)
{
    switch (text[0]) {
    case '<':
        return text[1] ? o <= 0 : o < 0;
    case '>':
        return text[1] ? o >= 0 : o > 0;
    default:
        return text[0] == '=' ? o == 0 : o != 0;
    }
}

static struct constant combine(const struct operator* op, struct constant a, struct constant b)
{
    struct constant r = { 0, a.is_unsigned || b.is_unsigned };
    switch (op->level) {
    case 10:
        r.bits = op->text[0] == '*' ? a.bits * b.bits : divide(a, b, op->text[0] == '%');
        break;
    case 9:
        r.bits = op->text[0] == '+' ? a.bits + b.bits : a.bits - b.bits;
        break;
    case 8:
        return (struct constant) { shift(a, b.bits, op->text[0] == '<'), a.is_unsigned };
    case 7:
    case 6:
        return (struct constant) { .bits = compare(op->text, order(a, b)) };
    case 5:
        r.bits = a.bits & b.bits;
        break;
    case 4:
        r.bits = a.bits ^ b.bits;
        break;
    case 3:
        r.bits = a.bits | b.bits;
        break;
    default:
        return (struct constant) { .bits = op->level == 2 ? a.bits && b.bits : a.bits || b.bits };
    }
    return r;
}

/* What has operators of `level` and above. */
static bool climb(struct ptx_parser *p, unsigned level, unsigned depth, struct constant *out)
{
    const struct operator* op;
    if (!unary(p, depth, out))
        return false;
    while ((op = next_operator(p)) && op->level >= level) {
        struct constant right;
        struct ptx_token at = p->token;
        ptx_advance(p);
        if (op->text[1])
            ptx_advance(p);
        if (!climb(p, op->level + 1u, depth + 1, &right))
            return false;
        if (op->level == 10 && op->text[0] != '*' && right.bits == 0)
            return ptx_fail(p, -EINVAL, &at, "division by zero");
        *out = combine(op, *out, right);
    }
    return !p->why.error;
}

/* a ? b : c */
static bool choice(struct ptx_parser *p, unsigned depth, struct constant *out)
{
    struct constant yes, no;
    if (!climb(p, 1, depth, out) || !ptx_accept(p, '?'))
        return !p->why.error;
    if (!choice(p, depth + 1, &yes) || !ptx_expect(p, ':') || !choice(p, depth + 1, &no))
        return false;
    *out = (struct constant) { out->bits ? yes.bits : no.bits, yes.is_unsigned || no.is_unsigned };
    return true;
}

bool ptx_parse_integer(struct ptx_parser *p, uint64_t *out)
{
    struct constant c = { 0 };
    bool read = choice(p, 0, &c);
    *out = c.bits;
    return read;
}

bool ptx_accept_real(struct ptx_parser *p, bool *minus)
{
    struct ptx_lexer ahead = p->lexer;
    struct ptx_token t = p->token;
    *minus = ptx_token_is(&t, '-');
    if (*minus)
        ptx_lexer_next(&ahead, &t);
    bool real = t.kind == PTX_F32 || t.kind == PTX_F64;
    if (real && *minus)
        ptx_advance(p);
    return real;
}

/* "+ 16", "+ -16", "+ 4 * 3" or "- 16" behind a variable or base register. */
bool ptx_parse_displacement(struct ptx_parser *p, int64_t *out)
{
    *out = 0;
    bool minus;
    while ((minus = ptx_token_is(&p->token, '-')) || ptx_token_is(&p->token, '+')) {
        ptx_advance(p);
        struct ptx_token t = p->token;
        uint64_t value;
        if (!(minus ? ptx_expect_uint(p, INT64_MAX, &value, "offset")
                    : ptx_parse_integer(p, &value)))
            return false;
        int64_t step = minus ? -(int64_t)value : (int64_t)value;
        if (__builtin_add_overflow(*out, step, out) || *out > INT32_MAX || *out < INT32_MIN)
            return ptx_fail(p, -E2BIG, &t, "offset over 2 GiB");
    }
    return !p->why.error;
}
