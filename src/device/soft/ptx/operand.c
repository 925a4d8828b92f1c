/*
 * Single operands: registers, constants, variables' addresses, special registers, memory addresses.
 */
#include "device/soft/ptx/parse.h"

/* --- single operands -------------------------------------------------------------------------- */

static bool suits(enum ir_type reg, enum ir_type type, bool wider)
{
    if (type == IR_VOID)
        return true;
    if ((reg == IR_PRED) != (type == IR_PRED))
        return false;
    uint8_t have = ir_types[reg].size, want = ir_types[type].size;
    return have == want || (wider && have > want);
}

bool ptx_check_register(struct ptx_parser *p, const struct ptx_token *t, uint32_t reg,
                        enum ir_type type, bool wider)
{
    enum ir_type have = p->raw->regs[reg].type;
    if (suits(have, type, wider))
        return true;
    return ptx_fail(p, -EINVAL, t, "'%.*s' is .%s where .%s is wanted", PTX_TEXT(t),
                    ir_types[have].text, ir_types[type].text);
}

bool ptx_parse_register(struct ptx_parser *p, enum ir_type type, bool wider, uint32_t *reg)
{
    struct ptx_token t = p->token;
    struct ptx_name name;
    if (t.kind != PTX_IDENT)
        return ptx_fail(p, -EINVAL, &t, "register expected");
    if (!ptx_lookup(p, &t, &name))
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is not declared", PTX_TEXT(&t));
    if (name.kind == PTX_NAME_LACKING)
        return ptx_refuse_lacking(p, &t, &name);
    ptx_advance(p);
    if (!ptx_take_element(p, &t, &name))
        return false;
    if (name.kind != PTX_NAME_REG)
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is no register", PTX_TEXT(&t));
    *reg = name.index;
    return ptx_check_register(p, &t, name.index, type, wider);
}

static bool is_sink(const struct ptx_parser *p)
{
    return p->token.kind == PTX_IDENT && p->token.length == 1 && p->token.text[0] == '_';
}

bool ptx_parse_destination(struct ptx_parser *p, enum ir_type type, bool wider, bool sink,
                           uint32_t *reg)
{
    if (sink && is_sink(p)) {
        *reg = IR_NONE;
        ptx_advance(p);
        return true;
    }
    return ptx_parse_register(p, type, wider, reg);
}

/* The value as the instruction's type sees it: integers are sign-extended to 64 bits. */
static uint64_t extend(enum ir_type type, uint64_t bits)
{
    unsigned shift = 64 - 8u * ir_types[type].size;
    if (shift == 0 || shift >= 64)
        return bits;
    if (ir_type_is_signed(type))
        return (uint64_t)((int64_t)(bits << shift) >> shift);
    return bits << shift >> shift;
}

static uint64_t narrow(uint64_t bits)
{
    double wide;
    float value;
    uint32_t result;
    memcpy(&wide, &bits, sizeof(wide));
    value = (float)wide;
    memcpy(&result, &value, sizeof(result));
    return result;
}

static bool parse_constant(struct ptx_parser *p, enum ir_type type, struct ir_src *out)
{
    bool minus, real = ptx_accept_real(p, &minus);
    const struct ptx_token t = p->token;
    uint64_t bits = t.value;
    uint8_t size = ir_types[type].size;
    char class = ir_types[type].class;
    if (!real) {
        if (!ptx_parse_integer(p, &bits))
            return false;
        if (class == 'F' && size != 2)
            return ptx_fail(p, -EINVAL, &t, "constant does not suit type .%s", ir_types[type].text);
        bits = class == 'P' ? bits != 0 : extend(type, bits);
    } else if (t.kind == PTX_F32 && size == 4 && (class == 'F' || class == 'B')) {
        bits ^= minus ? 0x80000000u : 0;
    } else if (t.kind == PTX_F64 && size == 8 && (class == 'F' || class == 'B')) {
        bits ^= minus ? 1ull << 63 : 0;
    } else if (t.kind == PTX_F64 && type == IR_F32) {
        bits = narrow(bits) ^ (minus ? 0x80000000u : 0);
    } else {
        return ptx_fail(p, -EINVAL, &t, "constant does not suit type .%s", ir_types[type].text);
    }
    if (real)
        ptx_advance(p);
    *out = (struct ir_src) { .kind = IR_SRC_IMM, .bits = bits };
    return !p->why.error;
}

/* Special registers that have one value on this device, which has no clusters of several blocks, no
 * event counters, and nothing in most of %envreg (reserved.c has the others); and registers that
 * are another name of one. */
static bool find_constant(const char *text, uint32_t length, enum ir_type *type, struct ir_src *out)
{
    static const struct {
        const char *text;
        uint8_t type;
        uint8_t kind; /* enum ir_src_kind: value or special register */
        uint8_t value;
        bool numbered;
    } all[] = {
        { "%tid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%ntid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%ctaid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%nctaid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%envreg", IR_B32, IR_SRC_IMM, 0, true },
        { "%pm", IR_U32, IR_SRC_IMM, 0, true },
        { "%cluster_ctaid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%cluster_nctaid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%clusterid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%nclusterid.w", IR_U32, IR_SRC_IMM, 0, false },
        { "%is_explicit_cluster", IR_PRED, IR_SRC_IMM, 0, false },
        { "%cluster_ctaid.x", IR_U32, IR_SRC_IMM, 0, false },
        { "%cluster_ctaid.y", IR_U32, IR_SRC_IMM, 0, false },
        { "%cluster_ctaid.z", IR_U32, IR_SRC_IMM, 0, false },
        { "%cluster_nctaid.x", IR_U32, IR_SRC_IMM, 1, false },
        { "%cluster_nctaid.y", IR_U32, IR_SRC_IMM, 1, false },
        { "%cluster_nctaid.z", IR_U32, IR_SRC_IMM, 1, false },
        { "%cluster_ctarank", IR_U32, IR_SRC_IMM, 0, false },
        { "%cluster_nctarank", IR_U32, IR_SRC_IMM, 1, false },
        { "%clusterid.x", IR_U32, IR_SRC_SREG, IR_SREG_CTAID_X, false },
        { "%clusterid.y", IR_U32, IR_SRC_SREG, IR_SREG_CTAID_Y, false },
        { "%clusterid.z", IR_U32, IR_SRC_SREG, IR_SREG_CTAID_Z, false },
        { "%nclusterid.x", IR_U32, IR_SRC_SREG, IR_SREG_NCTAID_X, false },
        { "%nclusterid.y", IR_U32, IR_SRC_SREG, IR_SREG_NCTAID_Y, false },
        { "%nclusterid.z", IR_U32, IR_SRC_SREG, IR_SREG_NCTAID_Z, false },
        { "%aggr_smem_size", IR_U32, IR_SRC_SREG, IR_SREG_TOTAL_SMEM, false },
        { "%current_graph_exec", IR_U64, IR_SRC_IMM, 0, false },
    };
    for (size_t k = 0; k < GM_ARRAY_LEN(all); k++) {
        size_t known = strlen(all[k].text), digits = length - known;
        if (length < known || memcmp(text, all[k].text, known) != 0)
            continue;
        bool number = digits == 1 || (digits == 2 && text[known] != '0');
        for (size_t d = known; d < length; d++)
            number = number && text[d] >= '0' && text[d] <= '9';
        if (all[k].numbered ? !number : digits != 0)
            continue;
        *type = all[k].type;
        *out = (struct ir_src) { .kind = all[k].kind };
        if (all[k].kind == IR_SRC_IMM)
            out->bits = all[k].value;
        else
            out->index = all[k].value;
        return true;
    }
    return false;
}

/* %tid.x: one name in two tokens. Reads it by a MOV, unless the instruction is that MOV
 * (`direct`). */
static bool parse_sreg(struct ptx_parser *p, const struct ptx_token *t, enum ir_type type,
                       bool direct, struct ir_src *out)
{
    char text[32];
    uint32_t length = t->length;
    if (length >= sizeof(text))
        return ptx_fail(p, -EINVAL, t, "'%.*s' is not declared", PTX_TEXT(t));
    memcpy(text, t->text, length);
    if (p->token.kind == PTX_DOT && length + 1 + p->token.length < sizeof(text)) {
        text[length] = '.';
        memcpy(text + length + 1, p->token.text, p->token.length);
        length += 1 + p->token.length;
    }
    const struct ptx_word *word = ptx_words_find(&p->words, PTX_WORD_SREG, text, length);
    enum ir_type have = word ? ir_sregs[word->value].type : IR_VOID;
    *out = (struct ir_src) { .kind = IR_SRC_SREG, .index = word ? word->value : 0 };
    if (length == 8 && (memcmp(text, "%envreg1", 8) == 0 || memcmp(text, "%envreg2", 8) == 0) &&
        suits(IR_B32, type, false))
        return ptx_parse_workspace(p, t, text[7] == '1', out);
    bool reserved = !word && ptx_parse_reserved(p, t, text, length, out);
    if (reserved)
        have = IR_U32;
    else if (!word && !find_constant(text, length, &have, out))
        return ptx_fail(p, -EINVAL, t, "'%.*s' is not declared", PTX_TEXT(t));
    if (length > t->length)
        ptx_advance(p);
    /* In PTX 1 they had 16 bits, and %gridid 32. */
    uint8_t want = ir_types[type].size;
    bool low = (have == IR_U32 && (type == IR_U16 || type == IR_B16)) ||
               (have == IR_U64 && out->kind == IR_SRC_SREG && out->index == IR_SREG_GRIDID &&
                ir_types[type].class != 'F' && (want == 2 || want == 4));
    if (!low && !suits(have, type, false))
        return ptx_fail(p, -EINVAL, t, "'%.*s' is .%s where .%s is wanted", (int)length, text,
                        ir_types[have].text, ir_types[type].text);
    if (out->kind == IR_SRC_IMM || reserved || (direct && !low))
        return !p->why.error;
    struct ir_instr mov;
    ir_instr_init(&mov, IR_OP_MOV, t->line, t->column);
    uint32_t name;
    mov.type = (uint8_t)have;
    mov.dst_count = mov.src_count = 1;
    mov.src[0] = *out;
    if (!ptx_intern(p, t, t->length, &name) ||
        !ptx_new_register(p, t, have, name, IR_NONE, &mov.dst[0]))
        return false;
    *out = ir_src_reg(mov.dst[0]);
    if (!ptx_append_instr(p, &mov) || !low)
        return !p->why.error;
    struct ir_instr cvt = mov;
    cvt.op = IR_OP_CVT;
    cvt.type = want == 2 ? IR_U16 : IR_U32;
    cvt.type2 = (uint8_t)have;
    cvt.src[0] = *out;
    if (!ptx_new_register(p, t, cvt.type, name, IR_NONE, &cvt.dst[0]))
        return false;
    *out = ir_src_reg(cvt.dst[0]);
    return ptx_append_instr(p, &cvt);
}

/* The address of a variable, or of an array's element, as a value. */
static bool parse_symbol(struct ptx_parser *p, const struct ptx_token *t,
                         const struct ptx_name *name, enum ir_type type, struct ir_src *out)
{
    bool is_temp = name->kind == PTX_NAME_TEMP;
    if (is_temp && p->m->fns[p->fn].is_entry)
        return ptx_fail(p, -ENOTSUP, t, "address of .param variable '%.*s' is not supported",
                        PTX_TEXT(t));
    bool placed = !is_temp && ir_symbol_is_placed(p->m, name->index);
    uint8_t size = ir_types[type].size;
    if (size < (placed ? 8 : 4) || ir_type_is_float(type))
        return ptx_fail(p, -EINVAL, t, "the address of '%.*s' does not fit .%s", PTX_TEXT(t),
                        ir_types[type].text);
    int64_t offset;
    if (!is_temp && ptx_token_is(&p->token, '['))
        return ptx_parse_element_address(p, t, name->index, type, out);
    if (!ptx_parse_displacement(p, &offset))
        return false;
    *out = (struct ir_src) { .kind = IR_SRC_SYMBOL,
                             .index = name->index | (is_temp ? IR_TEMP : 0),
                             .bits = (uint64_t)offset };
    return true;
}

bool ptx_parse_source(struct ptx_parser *p, enum ir_type type, unsigned flags, struct ir_src *out)
{
    *out = (struct ir_src) { 0 };
    bool negated = type == IR_PRED && ptx_accept(p, '!');
    struct ptx_token t = p->token;
    struct ptx_name name;
    if (t.kind != PTX_IDENT || (ptx_text_is(&t, "WARP_SZ") && type != IR_PRED)) {
        bool read = parse_constant(p, type, out);
        out->bits ^= negated;
        return read;
    }
    ptx_advance(p);
    if (!ptx_lookup(p, &t, &name)) {
        bool read = parse_sreg(p, &t, type, flags & PTX_O_SYMBOL, out);
        out->bits ^= negated;
        return read;
    }
    if (!ptx_take_element(p, &t, &name))
        return false;
    switch (name.kind) {
    case PTX_NAME_REG:
        *out = ir_src_reg(name.index);
        out->negated = negated;
        return ptx_check_register(p, &t, name.index, type, flags & PTX_O_WIDER);
    case PTX_NAME_SYMBOL:
    case PTX_NAME_TEMP:
        if (flags & PTX_O_SYMBOL)
            return parse_symbol(p, &t, &name, type, out);
        break;
    case PTX_NAME_FN:
        if (!(flags & PTX_O_SYMBOL))
            break;
        if (ir_types[type].size < 8 || ir_type_is_float(type))
            return ptx_fail(p, -EINVAL, &t, "the address of '%.*s' does not fit .%s", PTX_TEXT(&t),
                            ir_types[type].text);
        *out = (struct ir_src) { .kind = IR_SRC_FN, .index = name.index };
        return true;
    case PTX_NAME_LACKING:
        return ptx_refuse_lacking(p, &t, &name);
    default:
        break;
    }
    return ptx_fail(p, -EINVAL, &t, "'%.*s' is no register", PTX_TEXT(&t));
}

/* [reg + 4], [variable + 4], [4], array[3], array[reg + 3] */
bool ptx_parse_address(struct ptx_parser *p, struct ir_instr *i)
{
    struct ir_address *a = &i->address;
    bool is_element = p->token.kind == PTX_IDENT;
    if (!is_element && !ptx_expect(p, '['))
        return false;
    struct ptx_token t = p->token;
    struct ptx_name name;
    if (t.kind == PTX_INT) {
        a->displacement = (int64_t)t.value;
        ptx_advance(p);
        return ptx_expect(p, ']');
    }
    if (!ptx_expect_ident(p, &t, "address"))
        return false;
    if (!ptx_lookup(p, &t, &name))
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is not declared", PTX_TEXT(&t));
    if (!ptx_take_element(p, &t, &name))
        return false;
    if (is_element && name.kind != PTX_NAME_SYMBOL)
        return ptx_fail(p, -EINVAL, &t, "'[' expected, not '%.*s'", PTX_TEXT(&t));
    enum ir_space space = IR_SPACE_PARAM;
    switch (name.kind) {
    case PTX_NAME_REG: {
        bool short_space =
            i->space == IR_SPACE_SHARED || i->space == IR_SPACE_LOCAL || i->space == IR_SPACE_PARAM;
        enum ir_type have = p->raw->regs[name.index].type;
        bool is_short = ir_types[have].size == 4 && short_space;
        if (!ptx_check_register(p, &t, name.index, is_short ? IR_U32 : IR_U64, false))
            return false;
        a->base = name.index;
        space = i->space;
        break;
    }
    case PTX_NAME_TEMP:
        a->symbol = name.index | IR_TEMP;
        break;
    case PTX_NAME_SYMBOL:
        a->symbol = name.index;
        space = p->m->symbols[name.index].space;
        break;
    case PTX_NAME_LACKING:
        return ptx_refuse_lacking(p, &t, &name);
    default:
        return ptx_fail(p, -EINVAL, &t, "'%.*s' is no address", PTX_TEXT(&t));
    }
    /* A variable decides by itself which space it is in; .global also reaches .const. */
    if (i->space == IR_SPACE_GENERIC)
        i->space = (uint8_t)space;
    if (i->space != space && !(i->space == IR_SPACE_GLOBAL && space == IR_SPACE_CONST))
        return ptx_fail(p, -EINVAL, &t, "'%.*s' lies in another space", PTX_TEXT(&t));
    if (is_element)
        return ptx_parse_element(p, &t, name.index, a);
    return ptx_parse_displacement(p, &a->displacement) && ptx_expect(p, ']');
}

/* An access to a parameter by name must stay inside the parameter. That is checked here, because it
 * cannot be checked later. One that begins in a kernel's parameter may reach into those behind it,
 * as it may for ptxas. */
bool ptx_check_param_access(struct ptx_parser *p, const struct ir_instr *i,
                            const struct ptx_token *at, unsigned width)
{
    uint32_t symbol = i->address.symbol;
    if (symbol == IR_NONE || i->space != IR_SPACE_PARAM)
        return true;
    bool is_temp = symbol & IR_TEMP;
    if (i->op == IR_OP_ST && !is_temp)
        return ptx_fail(p, -EINVAL, at, "store to a kernel parameter");
    uint64_t size = is_temp ? p->raw->temps[symbol & ~IR_TEMP].size
                            : p->m->fns[p->fn].param_bytes - p->m->symbols[symbol].offset;
    int64_t first = i->address.displacement;
    uint64_t bytes = (uint64_t)ir_types[i->type].size * width;
    if (first < 0 || (uint64_t)first + bytes > size)
        return ptx_fail(p, -ENOTSUP, at,
                        is_temp ? "access outside of the parameter"
                                : "access outside of the parameters");
    return true;
}
