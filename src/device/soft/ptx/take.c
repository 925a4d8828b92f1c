/*
 * Takes modifiers and operands from the text, for expansions.
 */
#include "device/soft/ptx/expand.h"

/* --- modifiers -------------------------------------------------------------------------------- */

bool ptx_x_take(struct ptx_expand *x, const char *word)
{
    for (unsigned m = 0; m < x->count; m++) {
        if ((x->taken >> m & 1) || !ptx_text_is(&x->modifiers[m], word))
            continue;
        x->taken |= 1u << m;
        return true;
    }
    return false;
}

int ptx_x_take_one(struct ptx_expand *x, const char *const *words, unsigned count)
{
    for (unsigned k = 0; k < count; k++)
        if (ptx_x_take(x, words[k]))
            return (int)k;
    return -1;
}

bool ptx_x_take_shared(struct ptx_expand *x)
{
    return ptx_x_take(x, "shared") || ptx_x_take(x, "shared::cta") ||
           ptx_x_take(x, "shared::cluster");
}

const struct ptx_token *ptx_x_take_next(struct ptx_expand *x)
{
    for (unsigned m = 0; m < x->count; m++) {
        if (x->taken >> m & 1)
            continue;
        x->taken |= 1u << m;
        return &x->modifiers[m];
    }
    return NULL;
}

bool ptx_x_taken_all(struct ptx_expand *x)
{
    const struct ptx_token *left = ptx_x_take_next(x);
    return !left || ptx_fail(x->p, -ENOTSUP, left, "modifier '.%.*s' of '%.*s' is not supported",
                             PTX_TEXT(left), PTX_TEXT(x->opcode));
}

bool ptx_x_refuse(struct ptx_expand *x)
{
    char form[80] = "";
    size_t at = 0;
    for (unsigned m = 0; m < x->count && at + x->modifiers[m].length + 2 < sizeof(form); m++) {
        form[at++] = '.';
        memcpy(form + at, x->modifiers[m].text, x->modifiers[m].length);
        at += x->modifiers[m].length;
    }
    return ptx_fail(x->p, -ENOTSUP, x->opcode, "'%.*s%.*s' is not supported", PTX_TEXT(x->opcode),
                    (int)at, form);
}

/* --- operands --------------------------------------------------------------------------------- */

struct ir_src ptx_x_address(struct ptx_expand *x, enum ir_space *space, enum ir_type *type,
                            int64_t *displacement)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_LD, IR_B32);
    i.space = (uint8_t)*space;
    *type = IR_U64;
    *displacement = 0;
    if (!ptx_parse_address(x->p, &i))
        return ptx_x_imm(0);
    *space = i.space;
    *displacement = i.address.displacement;
    if (i.address.base != IR_NONE) {
        *type = ir_types[x->p->raw->regs[i.address.base].type].size == 4 ? IR_U32 : IR_U64;
        return ir_src_reg(i.address.base);
    }
    struct ir_src at = ptx_x_imm(0);
    if (i.address.symbol != IR_NONE)
        at = (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = i.address.symbol };
    *type = *space == IR_SPACE_SHARED || *space == IR_SPACE_LOCAL ? IR_U32 : IR_U64;
    uint32_t reg = ptx_x_register(x, *type);
    ptx_x_move(x, *type, reg, at);
    return ir_src_reg(reg);
}

struct ir_src ptx_x_shared_address(struct ptx_expand *x, int64_t *displacement)
{
    enum ir_space space = IR_SPACE_SHARED;
    enum ir_type type;
    struct ir_src base = ptx_x_address(x, &space, &type, displacement);
    return type == IR_U32 ? base : ptx_x_convert(x, IR_U32, IR_U64, base);
}

/* Takes the elements of a vector register, if one is next. */
static bool vector_elements(struct ptx_expand *x, enum ir_type type, bool wider, uint32_t *first,
                            unsigned *count)
{
    struct ptx_token at = x->p->token;
    struct ptx_name vector;
    if (!ptx_accept_vector(x->p, &vector))
        return false;
    *first = vector.index;
    *count = vector.width;
    for (unsigned k = 0; k < *count; k++)
        if (!ptx_check_register(x->p, &at, *first + k, type, wider))
            *count = 0;
    return true;
}

/* Reads elements through `get` until the list ends. */
static unsigned list(struct ptx_expand *x, enum ir_type type, void *out, unsigned max,
                     bool (*get)(struct ptx_expand *, enum ir_type, void *, unsigned))
{
    bool braces = ptx_accept(x->p, '{');
    unsigned n = 0;
    do {
        if (n == max) {
            ptx_fail(x->p, -EINVAL, &x->p->token, "vector of over %u elements", max);
            return 0;
        }
        if (!get(x, type, out, n++))
            return 0;
    } while (braces && ptx_accept(x->p, ','));
    return !braces || ptx_expect(x->p, '}') ? n : 0;
}

static bool get_register(struct ptx_expand *x, enum ir_type type, void *out, unsigned n)
{
    uint32_t *reg = (uint32_t *)out + n;
    /* mov.b128 has no type for a new register. */
    if (!ptx_parse_destination(x->p, type, false, type != IR_VOID, reg))
        return false;
    if (*reg == IR_NONE)
        *reg = ptx_x_register(x, type);
    return true;
}

static bool get_value(struct ptx_expand *x, enum ir_type type, void *out, unsigned n)
{
    return ptx_parse_source(x->p, type, 0, (struct ir_src *)out + n);
}

unsigned ptx_x_registers(struct ptx_expand *x, enum ir_type type, uint32_t *out, unsigned max)
{
    uint32_t first;
    unsigned count;
    if (!vector_elements(x, type, false, &first, &count))
        return list(x, type, out, max, get_register);
    for (unsigned k = 0; k < count && count <= max; k++)
        out[k] = first + k;
    return count <= max ? count : 0;
}

unsigned ptx_x_values(struct ptx_expand *x, enum ir_type type, struct ir_src *out, unsigned max)
{
    uint32_t first;
    unsigned count;
    if (!vector_elements(x, type, false, &first, &count))
        return list(x, type, out, max, get_value);
    for (unsigned k = 0; k < count && count <= max; k++)
        out[k] = ir_src_reg(first + k);
    return count <= max ? count : 0;
}

/* Ends a list of `count` elements, or a vector register, which has `have`. */
static void end_list(struct ptx_expand *x, bool braces, unsigned have, unsigned count)
{
    if (have != count)
        ptx_fail(x->p, -EINVAL, &x->p->token, "%u elements are wanted", count);
    if (braces)
        ptx_expect(x->p, '}');
}

void ptx_x_destinations(struct ptx_expand *x, enum ir_type type, bool wider, unsigned count,
                        uint32_t *out)
{
    uint32_t first;
    unsigned have = count;
    bool vector = vector_elements(x, type, wider, &first, &have), braces = ptx_accept(x->p, '{');
    for (unsigned k = 0; k < count; k++) {
        out[k] = vector ? first + k : IR_NONE;
        if (k && !vector)
            ptx_expect(x->p, ',');
        if (!vector)
            ptx_parse_destination(x->p, type, wider, true, &out[k]);
    }
    end_list(x, braces, have, count);
}

void ptx_x_sources(struct ptx_expand *x, enum ir_type type, bool wider, unsigned count,
                   struct ir_src *out)
{
    uint32_t first;
    unsigned have = count;
    bool vector = vector_elements(x, type, wider, &first, &have), braces = ptx_accept(x->p, '{');
    for (unsigned k = 0; k < count; k++) {
        if (vector) {
            out[k] = ir_src_reg(first + k);
            continue;
        }
        if (k)
            ptx_expect(x->p, ',');
        ptx_parse_source(x->p, type, wider ? PTX_O_WIDER : 0, &out[k]);
    }
    end_list(x, braces, have, count);
}

bool ptx_x_skip_source(struct ptx_expand *x, enum ir_type type)
{
    struct ir_src ignored;
    return ptx_expect(x->p, ',') && ptx_parse_source(x->p, type, 0, &ignored);
}
