/*
 * Operand lists: one function per form (PTX_FORM_*), which knows how many operands there are and
 * which types they have.
 */
#include "device/soft/ptx/parse.h"

static bool add_source(struct ptx_parser *p, struct ir_instr *i, enum ir_type type, unsigned flags)
{
    return ptx_parse_source(p, type, flags, &i->src[i->src_count++]);
}

static bool next_source(struct ptx_parser *p, struct ir_instr *i, enum ir_type type, unsigned flags)
{
    return ptx_expect(p, ',') && add_source(p, i, type, flags);
}

static enum ir_type wide_type(enum ir_type type)
{
    switch (type) {
    case IR_U16:
        return IR_U32;
    case IR_S16:
        return IR_S32;
    case IR_U32:
        return IR_U64;
    case IR_S32:
        return IR_S64;
    default:
        return type;
    }
}

static bool carry_register(struct ptx_parser *p, const struct ptx_token *at, uint32_t *reg)
{
    if (p->raw->carry == IR_NONE && !ptx_new_register(p, at, IR_PRED, 0, IR_NONE, &p->raw->carry))
        return false;
    *reg = p->raw->carry;
    return true;
}

/* "mov.pred p, !q" becomes "not.pred p, q", and the other way around: what follows values through
 * copies need not know of copies that invert. */
static void take_inversion(struct ir_instr *i)
{
    if (i->src[0].negated) {
        i->op = i->op == IR_OP_MOV ? IR_OP_NOT : IR_OP_MOV;
        i->src[0].negated = 0;
    }
}

static bool form_plain(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode)
{
    const struct ir_op_info *info = &ir_ops[i->op];
    enum ir_type type = i->type;
    bool wide = i->mode == IR_MUL_WIDE && (i->op == IR_OP_MUL || i->op == IR_OP_MAD);
    enum ir_type result = wide ? wide_type(type) : info->properties & IR_P_DST32 ? IR_U32 : type;
    i->dst_count = 1;
    if (!ptx_parse_destination(p, result, false, false, &i->dst[0]))
        return false;
    for (unsigned s = 0; s < info->sources; s++) {
        enum ir_type want = type;
        if (wide && s == 2)
            want = result;
        else if (i->op == IR_OP_REDUX && s == 1)
            want = IR_U32;
        else if (i->op == IR_OP_PRMT || i->op == IR_OP_SHF)
            want = IR_U32;
        if (!next_source(p, i, want, 0))
            return false;
    }
    if (i->op == IR_OP_NOT)
        take_inversion(i);
    if (info->properties & IR_P_CARRY_IN) {
        uint32_t reg;
        if (!carry_register(p, opcode, &reg))
            return false;
        i->src[i->src_count++] = ir_src_reg(reg);
    }
    return !(i->flags & IR_F_CARRY_OUT) || carry_register(p, opcode, &i->dst_pred);
}

/* dp4a, dp2a */
static bool form_plain2(struct ptx_parser *p, struct ir_instr *i)
{
    bool is_signed = ir_type_is_signed(i->type) || ir_type_is_signed(i->type2);
    i->dst_count = 1;
    return ptx_parse_destination(p, IR_U32, false, false, &i->dst[0]) &&
           next_source(p, i, i->type, 0) && next_source(p, i, i->type2, 0) &&
           next_source(p, i, is_signed ? IR_S32 : IR_U32, 0);
}

struct ptx_elements {
    struct ir_instr *i;
    enum ir_type type;
    bool wider;
};

/* Takes all elements of a vector register, as destinations or sources. */
static bool take_vector(struct ptx_parser *p, const struct ptx_token *at, bool result,
                        const struct ptx_elements *e, const struct ptx_name *vector)
{
    for (unsigned k = 0; k < vector->width; k++) {
        if (!ptx_check_register(p, at, vector->index + k, e->type, e->wider))
            return false;
        if (result)
            e->i->dst[k] = vector->index + k;
        else
            e->i->src[k] = ir_src_reg(vector->index + k);
    }
    return true;
}

static bool get_destination(struct ptx_parser *p, const struct ptx_elements *e, unsigned n)
{
    return ptx_parse_destination(p, e->type, e->wider, true, &e->i->dst[n]);
}

static bool get_source(struct ptx_parser *p, const struct ptx_elements *e, unsigned n)
{
    return ptx_parse_source(p, e->type, e->wider ? PTX_O_WIDER : 0, &e->i->src[n]);
}

/* {a, b} or {a, b, c, d} or a vector register: destinations (`result`) or sources. */
static bool parse_vector(struct ptx_parser *p, unsigned *count, bool result,
                         const struct ptx_elements *e)
{
    struct ptx_token at = p->token;
    struct ptx_name vector;
    unsigned n = 0;
    if (ptx_accept_vector(p, &vector)) {
        *count = vector.width;
        return take_vector(p, &at, result, e, &vector);
    }
    if (!ptx_expect(p, '{'))
        return false;
    do {
        if (n == 4)
            return ptx_fail(p, -EINVAL, &p->token, "vector of over 4 elements");
        if (result ? !get_destination(p, e, n) : !get_source(p, e, n))
            return false;
        n++;
    } while (ptx_accept(p, ','));
    if (!ptx_expect(p, '}'))
        return false;
    if (n != 2 && n != 4 && n != 1)
        return ptx_fail(p, -EINVAL, &at, "vector of %u elements", n);
    *count = n;
    return true;
}

/* The type of one of the `n` parts of a register of type `type`. */
static enum ir_type part_type(enum ir_type type, unsigned n)
{
    switch (ir_types[type].size / n) {
    case 1:
        return IR_B8;
    case 2:
        return IR_B16;
    default:
        return IR_B32;
    }
}

/* Counts the elements ahead, because their number decides their type. */
static unsigned count_elements(const struct ptx_parser *p)
{
    struct ptx_lexer ahead = p->lexer;
    struct ptx_token t;
    struct ptx_name name;
    unsigned commas = 0;
    if (p->token.kind == PTX_IDENT && ptx_lookup(p, &p->token, &name))
        return name.width;
    for (unsigned tokens = 0; tokens < 16; tokens++) {
        ptx_lexer_next(&ahead, &t);
        if (t.kind == PTX_END || t.kind == PTX_BAD || ptx_token_is(&t, '}'))
            break;
        commas += ptx_token_is(&t, ',');
    }
    return commas >= 2 ? 4 : 2;
}

static bool form_mov_vector(struct ptx_parser *p, struct ir_instr *i, bool unpack,
                            const struct ptx_token *opcode)
{
    unsigned n = count_elements(p), count = 0;
    uint8_t size = ir_types[i->type].size;
    if (ir_types[i->type].class == 'P' || size / n == 0 || size < 2)
        return ptx_fail(p, -EINVAL, opcode, "'mov.%s' of a vector", ir_types[i->type].text);
    struct ptx_elements e = { .i = i, .type = part_type(i->type, n) };
    if (unpack) {
        i->op = IR_OP_UNPACK;
        if (!parse_vector(p, &count, true, &e) || !next_source(p, i, i->type, 0))
            return false;
        i->dst_count = (uint8_t)count;
    } else {
        i->op = IR_OP_PACK;
        if (!parse_vector(p, &count, false, &e))
            return false;
        i->src_count = (uint8_t)count;
        i->dst_count = 1;
    }
    if (count != n)
        return ptx_fail(p, -EINVAL, opcode, "vector of %u elements", count);
    return true;
}

/* A single register may stand in braces, too (Triton writes so). */
static bool is_vector(const struct ptx_parser *p)
{
    return ptx_token_is(&p->token, '{') || ptx_vector_follows(p);
}

static bool form_mov(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode)
{
    if (is_vector(p))
        return form_mov_vector(p, i, true, opcode);
    i->dst_count = 1;
    if (!ptx_parse_destination(p, i->type, false, false, &i->dst[0]) || !ptx_expect(p, ','))
        return false;
    if (is_vector(p))
        return form_mov_vector(p, i, false, opcode);
    if (!add_source(p, i, i->type, PTX_O_SYMBOL))
        return false;
    take_inversion(i);
    return true;
}

/* Takes a register of 128 bits, or two of 64 in braces. */
static bool parse_pair_of_64(struct ptx_parser *p, struct ir_instr *i, bool result, unsigned at)
{
    struct ir_instr part;
    struct ptx_elements e = { .i = &part, .type = IR_B64 };
    struct ptx_token first = p->token;
    unsigned count = 2;
    ir_instr_init(&part, IR_OP_MOV, first.line, first.column);
    if (!parse_vector(p, &count, result, &e))
        return false;
    if (count != 2)
        return ptx_fail(p, -EINVAL, &first, "a register of 128 bits is wanted");
    for (unsigned k = 0; k < 2; k++) {
        if (result)
            i->dst[at + k] = part.dst[k];
        else
            i->src[at + k] = part.src[k];
    }
    *(result ? &i->dst_count : &i->src_count) = (uint8_t)(at + 2);
    return true;
}

/* Accesses of 128 bits. One with a memory order or scope is atomic. */
static bool form_access_of_128(struct ptx_parser *p, struct ir_instr *i,
                               const struct ptx_token *opcode)
{
    bool load = i->op == IR_OP_LD, plain = i->order == IR_ORDER_WEAK;
    if (load && (!parse_pair_of_64(p, i, true, 0) || !ptx_expect(p, ',')))
        return false;
    if (!ptx_parse_address(p, i))
        return false;
    if (!load && (!ptx_expect(p, ',') || !parse_pair_of_64(p, i, false, 0)))
        return false;
    if (plain || (i->space != IR_SPACE_GENERIC && i->space != IR_SPACE_GLOBAL &&
                  i->space != IR_SPACE_SHARED)) {
        i->type = IR_B64;
        return ptx_check_param_access(p, i, opcode, 2);
    }
    i->op = IR_OP_ATOM;
    i->mode = load ? IR_ATOM_CAS : IR_ATOM_EXCH;
    if (load) {
        i->src_count = 4;
        for (unsigned k = 0; k < 4; k++)
            i->src[k] = (struct ir_src) { .kind = IR_SRC_IMM };
    }
    return true;
}

static bool form_load(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode)
{
    unsigned width = GM_MAX(i->dst_count, 1u), count = 1;
    struct ptx_elements e = { .i = i, .type = i->type, .wider = true };
    if (i->type == IR_B128)
        return form_access_of_128(p, i, opcode);
    if (width > 1 || is_vector(p)) {
        if (!parse_vector(p, &count, true, &e))
            return false;
        if (count != width)
            return ptx_fail(p, -EINVAL, opcode, "%u registers for a vector of %u", count, width);
    } else if (!ptx_parse_destination(p, i->type, true, true, &i->dst[0])) {
        return false;
    }
    i->dst_count = (uint8_t)count;
    return ptx_expect(p, ',') && ptx_parse_address(p, i) &&
           ptx_check_param_access(p, i, opcode, count);
}

static bool form_store(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode)
{
    unsigned width = GM_MAX(i->dst_count, 1u), count = 1;
    struct ptx_elements e = { .i = i, .type = i->type, .wider = true };
    i->dst_count = 0;
    if (i->type == IR_B128)
        return form_access_of_128(p, i, opcode);
    if (!ptx_parse_address(p, i) || !ptx_expect(p, ','))
        return false;
    if (i->space == IR_SPACE_CONST)
        return ptx_fail(p, -EINVAL, opcode, "store to constant memory");
    if (width > 1 || is_vector(p)) {
        if (!parse_vector(p, &count, false, &e))
            return false;
        if (count != width)
            return ptx_fail(p, -EINVAL, opcode, "%u registers for a vector of %u", count, width);
    } else if (!get_source(p, &e, 0)) {
        return false;
    }
    i->src_count = (uint8_t)count;
    return ptx_check_param_access(p, i, opcode, count);
}

static bool form_cvt(struct ptx_parser *p, struct ir_instr *i)
{
    /* Two values become one register, except a pair of 8-bit values that becomes a pair. */
    bool pair = i->type2 == IR_F32 && (i->type == IR_F16X2 || i->type == IR_BF16X2 ||
                                       i->type == IR_E4M3X2 || i->type == IR_E5M2X2);
    i->dst_count = 1;
    return ptx_parse_destination(p, i->type, true, false, &i->dst[0]) &&
           next_source(p, i, i->type2, PTX_O_WIDER) && (!pair || next_source(p, i, i->type2, 0));
}

static bool form_atomic(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode)
{
    const struct ptx_token *t = &p->token;
    bool wide = i->type == IR_B128, none = t->length == 1 && t->text[0] == '_';
    if (wide && !none) {
        if (!parse_pair_of_64(p, i, true, 0) || !ptx_expect(p, ','))
            return false;
    } else if (i->op == IR_OP_ATOM) {
        if (!ptx_parse_destination(p, i->type, false, true, &i->dst[0]) || !ptx_expect(p, ','))
            return false;
        i->dst_count = i->dst[0] != IR_NONE;
    }
    if (!ptx_parse_address(p, i))
        return false;
    if (i->space != IR_SPACE_GENERIC && i->space != IR_SPACE_GLOBAL && i->space != IR_SPACE_SHARED)
        return ptx_fail(p, -EINVAL, opcode, "'%s' in this space", ir_ops[i->op].text);
    for (unsigned k = 0; k < (i->mode == IR_ATOM_CAS ? 2u : 1u); k++)
        if (!ptx_expect(p, ',') ||
            !(wide ? parse_pair_of_64(p, i, false, 2 * k) : add_source(p, i, i->type, 0)))
            return false;
    return true;
}

/* d|p; p may be missing unless `required`. */
static bool parse_pair(struct ptx_parser *p, struct ir_instr *i, enum ir_type type, bool required)
{
    i->dst_count = 1;
    if (!ptx_parse_destination(p, type, false, true, &i->dst[0]))
        return false;
    if (ptx_accept(p, '|'))
        return ptx_parse_destination(p, IR_PRED, false, true, &i->dst_pred);
    return !required || ptx_expect(p, '|');
}

static bool form_lanes(struct ptx_parser *p, struct ir_instr *i)
{
    bool sync = i->flags & IR_F_SYNC;
    switch (i->op) {
    case IR_OP_SHFL:
        if (!parse_pair(p, i, IR_B32, false) || !next_source(p, i, IR_B32, 0) ||
            !next_source(p, i, IR_U32, 0) || !next_source(p, i, IR_U32, 0))
            return false;
        break;
    case IR_OP_VOTE:
        i->dst_count = 1;
        if (!ptx_parse_destination(p, i->type, false, false, &i->dst[0]) ||
            !next_source(p, i, IR_PRED, 0))
            return false;
        break;
    case IR_OP_MATCH:
        if (i->mode == IR_VOTE_ALL
                ? !parse_pair(p, i, IR_B32, false)
                : (i->dst_count = 1, !ptx_parse_destination(p, IR_B32, false, false, &i->dst[0])))
            return false;
        if (!next_source(p, i, i->type, 0))
            return false;
        break;
    default: /* ELECT */
        return parse_pair(p, i, IR_B32, true) && next_source(p, i, IR_U32, 0);
    }
    return !sync || next_source(p, i, IR_U32, 0);
}

static bool form_compare(struct ptx_parser *p, struct ir_instr *i)
{
    enum ir_type type = i->op == IR_OP_SET ? i->type2 : i->type;
    if (i->op == IR_OP_SETP) {
        if (!parse_pair(p, i, IR_PRED, false))
            return false;
    } else {
        i->dst_count = 1;
        if (!ptx_parse_destination(p, i->type, false, false, &i->dst[0]))
            return false;
    }
    return next_source(p, i, type, 0) && next_source(p, i, type, 0) &&
           (i->boolop == IR_BOOL_NONE || next_source(p, i, IR_PRED, 0));
}

/* d, a, b, ...: sources of the instruction's type, except for the last `n`, which have type
 * `tail`. */
static bool form_tail(struct ptx_parser *p, struct ir_instr *i, enum ir_type tail, unsigned n)
{
    unsigned sources = ir_ops[i->op].sources;
    i->dst_count = 1;
    if (!ptx_parse_destination(p, i->type, false, false, &i->dst[0]))
        return false;
    for (unsigned s = 0; s < sources; s++) {
        if (!next_source(p, i, s + n >= sources ? tail : i->type, 0))
            return false;
    }
    return true;
}

static bool form_lop3(struct ptx_parser *p, struct ir_instr *i)
{
    struct ptx_token at;
    bool pair = i->boolop != IR_BOOL_NONE;
    i->dst_count = 1;
    if (pair ? !parse_pair(p, i, IR_B32, true)
             : !ptx_parse_destination(p, IR_B32, false, false, &i->dst[0]))
        return false;
    for (unsigned s = 0; s < 3; s++)
        if (!next_source(p, i, IR_B32, 0))
            return false;
    at = p->token;
    if (!next_source(p, i, IR_U32, 0))
        return false;
    if (i->src[3].kind != IR_SRC_IMM || i->src[3].bits > 255)
        return ptx_fail(p, -EINVAL, &at, "the table of 'lop3' is a constant 0 .. 255");
    return !pair || next_source(p, i, IR_PRED, 0);
}

static bool form_barrier(struct ptx_parser *p, struct ir_instr *i)
{
    bool is_red = i->mode != IR_BAR_SYNC && i->mode != IR_BAR_ARRIVE;
    if (is_red) {
        i->dst_count = 1;
        if (!ptx_parse_destination(p, i->type, false, false, &i->dst[0]) || !ptx_expect(p, ','))
            return false;
    }
    struct ptx_token at = p->token;
    if (!add_source(p, i, IR_U32, 0))
        return false;
    if (i->src[0].kind == IR_SRC_IMM && i->src[0].bits > 15)
        return ptx_fail(p, -EINVAL, &at, "there are 16 barriers");
    if (!is_red) {
        if (i->mode == IR_BAR_SYNC)
            return !ptx_accept(p, ',') || add_source(p, i, IR_U32, 0);
        return next_source(p, i, IR_U32, 0);
    }
    /* d, a, c or d, a, b, c; the predicate is c. */
    if (!ptx_expect(p, ','))
        return false;
    struct ptx_name name;
    bool is_pred = ptx_token_is(&p->token, '!') ||
                   (p->token.kind == PTX_IDENT && ptx_lookup(p, &p->token, &name) &&
                    name.kind == PTX_NAME_REG && p->raw->regs[name.index].type == IR_PRED);
    if (!is_pred && (!add_source(p, i, IR_U32, 0) || !ptx_expect(p, ',')))
        return false;
    return add_source(p, i, IR_PRED, 0);
}

static bool form_branch(struct ptx_parser *p, struct ir_instr *i)
{
    struct ptx_token label;
    if (i->op == IR_OP_BRA)
        return ptx_expect_ident(p, &label, "label") &&
               ptx_add_fixup(p, &label, p->raw->instr_count, false);
    struct ptx_name list;
    if (!add_source(p, i, IR_U32, 0) || !ptx_expect(p, ',') ||
        !ptx_expect_ident(p, &label, "list of targets"))
        return false;
    if (!ptx_lookup(p, &label, &list) || list.kind != PTX_NAME_LIST)
        return ptx_fail(p, -EINVAL, &label, "'%.*s' is no .branchtargets", PTX_TEXT(&label));
    i->target = list.index;
    return true;
}

bool ptx_parse_operands(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode)
{
    if (i->op == IR_OP_BARWARP) /* it was "bar" until its modifiers were read */
        return add_source(p, i, IR_U32, 0);
    switch ((enum ptx_form)ptx_grammar[i->op].form) {
    case PTX_FORM_BARE:
        return true;
    case PTX_FORM_PLAIN:
        return form_plain(p, i, opcode);
    case PTX_FORM_PLAIN2:
        return form_plain2(p, i);
    case PTX_FORM_NODST:
        return add_source(p, i, i->type, 0);
    case PTX_FORM_MOV:
        return form_mov(p, i, opcode);
    case PTX_FORM_LD:
        return form_load(p, i, opcode);
    case PTX_FORM_ST:
        return form_store(p, i, opcode);
    case PTX_FORM_CVT:
        return form_cvt(p, i);
    case PTX_FORM_CVTA:
        i->dst_count = 1;
        return ptx_parse_destination(p, i->type, false, false, &i->dst[0]) &&
               next_source(p, i, i->type, PTX_O_SYMBOL);
    case PTX_FORM_ISSPACEP:
        i->dst_count = 1;
        return ptx_parse_destination(p, IR_PRED, false, false, &i->dst[0]) &&
               next_source(p, i, IR_U64, 0);
    case PTX_FORM_ADDRESS_ONLY:
        return ptx_parse_address(p, i);
    case PTX_FORM_SHIFT:
        return form_tail(p, i, IR_U32, 1);
    case PTX_FORM_BITFIELD:
        return form_tail(p, i, IR_U32, 2);
    case PTX_FORM_SELP:
        return form_tail(p, i, IR_PRED, 1);
    case PTX_FORM_SLCT:
        return form_tail(p, i, i->type2, 1);
    case PTX_FORM_LOP3:
        return form_lop3(p, i);
    case PTX_FORM_SETP:
    case PTX_FORM_SET:
        return form_compare(p, i);
    case PTX_FORM_TESTP:
        i->dst_count = 1;
        return ptx_parse_destination(p, IR_PRED, false, false, &i->dst[0]) &&
               next_source(p, i, i->type, 0);
    case PTX_FORM_BRA:
    case PTX_FORM_BRX:
        return form_branch(p, i);
    case PTX_FORM_CALL:
        return ptx_parse_call(p, i);
    case PTX_FORM_PMEVENT:
        return add_source(p, i, IR_U32, 0);
    case PTX_FORM_BAR:
        return form_barrier(p, i);
    case PTX_FORM_ATOM:
    case PTX_FORM_RED:
        return form_atomic(p, i, opcode);
    case PTX_FORM_SHFL:
    case PTX_FORM_VOTE:
    case PTX_FORM_MATCH:
    case PTX_FORM_ELECT:
        return form_lanes(p, i);
    case PTX_FORM_INTERNAL:
        break;
    }
    return ptx_fail(p, -ENOTSUP, opcode, "instruction '%.*s' is not supported", PTX_TEXT(opcode));
}
