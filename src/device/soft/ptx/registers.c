/*
 * Register declarations, and vectors of registers. A vector is several consecutive registers known
 * by one name; a register of 128 bits is a vector of two.
 */
#include "device/soft/ptx/parse.h"

bool ptx_new_register(struct ptx_parser *p, const struct ptx_token *at, enum ir_type type,
                      uint32_t name, uint32_t number, uint32_t *out)
{
    struct ir_raw_fn *raw = p->raw;
    if (raw->reg_count >= IR_MAX_REGS || p->reg_total >= IR_MAX_MODULE_REGS)
        return ptx_fail(p, -E2BIG, at, "too many registers");
    struct ir_reg *reg = IR_PUSH(raw->regs, raw->reg_count, raw->reg_cap);
    if (!reg)
        return ptx_out_of_memory(p);
    *reg = (struct ir_reg) { .type = (uint8_t)type, .name = name, .number = number };
    *out = raw->reg_count - 1;
    p->reg_total++;
    return true;
}

/* The type of a vector of `width` registers; 1: of a plain one. */
static bool parse_register_type(struct ptx_parser *p, enum ir_type *type, uint8_t *width)
{
    *width = ptx_accept_dot(p, "v2") ? 2 : ptx_accept_dot(p, "v4") ? 4 : 1;
    struct ptx_token at = p->token;
    if (!ptx_parse_type(p, type))
        return false;
    if (*width > 1 && (*type == IR_PRED || *width * ir_types[*type].size > 16))
        return ptx_fail(p, -EINVAL, &at, "no vector register is like that");
    if (*type == IR_B128) {
        *type = IR_B64;
        *width = 2;
    }
    return true;
}

static bool declare(struct ptx_parser *p, const struct ptx_token *name, enum ptx_name_kind kind,
                    enum ir_type type, uint32_t count, uint8_t width)
{
    uint32_t text, first = p->raw->reg_count, ignored;
    bool numbered = kind == PTX_NAME_RANGE || width > 1;
    if (!ptx_intern(p, name, name->length, &text))
        return false;
    for (uint32_t i = 0; i < count * width; i++)
        if (!ptx_new_register(p, name, type, text, numbered ? i : IR_NONE, &ignored))
            return false;
    if (!ptx_declare(p, name, name->length, kind, first, count))
        return false;
    p->names.list[p->names.count - 1].width = width;
    return true;
}

bool ptx_parse_registers(struct ptx_parser *p)
{
    enum ir_type type = IR_VOID;
    uint8_t width;
    if (!parse_register_type(p, &type, &width))
        return false;
    do {
        struct ptx_token name;
        uint64_t count = 1;
        if (!ptx_expect_ident(p, &name, "register name"))
            return false;
        bool range = ptx_accept(p, '<');
        if (range && (!ptx_expect_uint(p, IR_MAX_REGS, &count, "number of registers") ||
                      !ptx_expect(p, '>')))
            return false;
        enum ptx_name_kind kind = range       ? PTX_NAME_RANGE
                                  : width > 1 ? PTX_NAME_VECTOR
                                              : PTX_NAME_REG;
        if (!declare(p, &name, kind, type, (uint32_t)count, width))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';');
}

bool ptx_parse_formal_register(struct ptx_parser *p, uint32_t *first, uint8_t *width)
{
    enum ir_type type;
    struct ptx_token name;
    *first = p->raw->reg_count;
    return parse_register_type(p, &type, width) && ptx_expect_ident(p, &name, "register name") &&
           declare(p, &name, *width > 1 ? PTX_NAME_VECTOR : PTX_NAME_REG, type, 1, *width);
}

bool ptx_parse_register_size(struct ptx_parser *p, uint64_t *part, uint8_t *width)
{
    enum ir_type type = IR_VOID;
    bool right = parse_register_type(p, &type, width);
    *part = type == IR_PRED ? IR_SIGNATURE_PRED : ir_types[type].size;
    return right;
}

/* --- uses ------------------------------------------------------------------------------------- */

static unsigned element_of(const struct ptx_token *t)
{
    static const char letters[] = "xyzwrgba";
    const char *at = t->kind == PTX_DOT && t->length == 1 ? strchr(letters, t->text[0]) : NULL;
    return at && *at ? (unsigned)(at - letters) % 4 : 4;
}

bool ptx_take_element(struct ptx_parser *p, const struct ptx_token *t, struct ptx_name *name)
{
    if (name->kind != PTX_NAME_VECTOR)
        return true;
    unsigned element = element_of(&p->token);
    if (element >= name->width)
        return ptx_fail(p, -EINVAL, t, "one register is wanted, and '%.*s' is a vector",
                        PTX_TEXT(t));
    ptx_advance(p);
    name->kind = PTX_NAME_REG;
    name->index += element;
    return true;
}

static bool find_vector(const struct ptx_parser *p, struct ptx_name *out)
{
    struct ptx_lexer ahead = p->lexer;
    struct ptx_token next;
    if (p->token.kind != PTX_IDENT || !ptx_lookup(p, &p->token, out) ||
        out->kind != PTX_NAME_VECTOR)
        return false;
    ptx_lexer_next(&ahead, &next);
    return next.kind != PTX_DOT;
}

bool ptx_vector_follows(const struct ptx_parser *p)
{
    struct ptx_name ignored;
    return find_vector(p, &ignored);
}

bool ptx_accept_vector(struct ptx_parser *p, struct ptx_name *out)
{
    if (!find_vector(p, out))
        return false;
    ptx_advance(p);
    return true;
}
