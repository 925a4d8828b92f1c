/*
 * Elements of arrays of one dimension: "[3]", "[%r]" or "[%r + 3]" behind the array's name. The
 * number counts elements, not bytes.
 */
#include "device/soft/ptx/parse.h"

/* What the brackets say: a register's value in bytes (`index`; IR_NONE: none), and bytes. */
struct place {
    uint32_t index;
    int64_t bytes;
};

/* Appends an instruction with one source, or two, that gives a new register. */
static bool append(struct ptx_parser *p, const struct ptx_token *t, struct ir_instr *i,
                   enum ir_type type, struct ir_src a, struct ir_src b)
{
    uint32_t name;
    i->type = (uint8_t)type;
    i->dst_count = 1;
    i->src_count = b.kind == IR_SRC_NONE ? 1 : 2;
    i->src[0] = a;
    i->src[1] = b;
    return ptx_intern(p, t, t->length, &name) &&
           ptx_new_register(p, t, type, name, IR_NONE, &i->dst[0]) && ptx_append_instr(p, i);
}

/* The register as a number of 64 bits. */
static bool widen(struct ptx_parser *p, const struct ptx_token *t, uint32_t *reg)
{
    enum ir_type have = p->raw->regs[*reg].type;
    uint8_t size = ir_types[have].size;
    struct ir_instr cvt;
    if (ir_type_is_float(have) || have == IR_PRED || size < 2 || size > 8)
        return ptx_fail(p, -EINVAL, t, "'%.*s' is .%s, and no index", PTX_TEXT(t),
                        ir_types[have].text);
    if (size == 8)
        return true;
    ir_instr_init(&cvt, IR_OP_CVT, t->line, t->column);
    cvt.type2 = (uint8_t)have;
    if (ir_types[have].class == 'B')
        cvt.type2 = size == 2 ? IR_U16 : IR_U32;
    const struct ir_src from = ir_src_reg(*reg), none = { 0 };
    if (!append(p, t, &cvt, ir_types[have].class == 'S' ? IR_S64 : IR_U64, from, none))
        return false;
    *reg = cvt.dst[0];
    return true;
}

static bool parse_register(struct ptx_parser *p, uint64_t element, struct place *out)
{
    struct ptx_token t;
    struct ptx_name name;
    struct ir_instr mul;
    const struct ir_src by = { .kind = IR_SRC_IMM, .bits = element };
    if (!ptx_expect_ident(p, &t, "index"))
        return false;
    if (!ptx_lookup(p, &t, &name) || !ptx_take_element(p, &t, &name) || name.kind != PTX_NAME_REG)
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is no register", PTX_TEXT(&t));
    ir_instr_init(&mul, IR_OP_MUL, t.line, t.column);
    mul.mode = IR_MUL_LO;
    if (!widen(p, &t, &name.index) || !append(p, &t, &mul, IR_U64, ir_src_reg(name.index), by) ||
        !ptx_parse_displacement(p, &out->bytes))
        return false;
    out->index = mul.dst[0];
    if (__builtin_mul_overflow(out->bytes, (int64_t)element, &out->bytes) ||
        out->bytes > INT32_MAX || out->bytes < INT32_MIN)
        return ptx_fail(p, -E2BIG, &t, "offset over 2 GiB");
    return true;
}

static bool parse_place(struct ptx_parser *p, const struct ptx_token *array, uint32_t symbol,
                        struct place *out)
{
    uint64_t element = p->m->symbols[symbol].element, at = 0;
    *out = (struct place) { .index = IR_NONE };
    if (!element)
        return ptx_fail(p, -EINVAL, array, "'%.*s' is no array of one dimension", PTX_TEXT(array));
    if (!ptx_expect(p, '['))
        return false;
    bool is_register = p->token.kind == PTX_IDENT;
    if (is_register && p->m->symbols[symbol].space == IR_SPACE_PARAM)
        return ptx_fail(p, -ENOTSUP, &p->token, "an index in a register for .param '%.*s'",
                        PTX_TEXT(array));
    if (is_register ? !parse_register(p, element, out)
                    : !ptx_expect_uint(p, INT32_MAX / element, &at, "element's number"))
        return false;
    out->bytes += (int64_t)(at * element);
    return ptx_expect(p, ']');
}

bool ptx_parse_element(struct ptx_parser *p, const struct ptx_token *array, uint32_t symbol,
                       struct ir_address *out)
{
    struct place place;
    if (!parse_place(p, array, symbol, &place))
        return false;
    out->symbol = symbol;
    out->base = place.index;
    out->displacement = place.bytes;
    return true;
}

bool ptx_parse_element_address(struct ptx_parser *p, const struct ptx_token *array, uint32_t symbol,
                               enum ir_type type, struct ir_src *out)
{
    const struct ir_src none = { 0 };
    struct place place;
    struct ir_instr mov, add, cvt;
    if (!parse_place(p, array, symbol, &place))
        return false;
    *out =
        (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = symbol, .bits = (uint64_t)place.bytes };
    if (place.index == IR_NONE)
        return true;
    ir_instr_init(&mov, IR_OP_MOV, array->line, array->column);
    ir_instr_init(&add, IR_OP_ADD, array->line, array->column);
    ir_instr_init(&cvt, IR_OP_CVT, array->line, array->column);
    cvt.type2 = IR_U64;
    if (!append(p, array, &mov, IR_U64, *out, none) ||
        !append(p, array, &add, IR_U64, ir_src_reg(mov.dst[0]), ir_src_reg(place.index)))
        return false;
    *out = ir_src_reg(add.dst[0]);
    if (ir_types[type].size == 8)
        return true;
    bool right = append(p, array, &cvt, IR_U32, *out, none);
    *out = ir_src_reg(cvt.dst[0]);
    return right;
}
