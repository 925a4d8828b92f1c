/*
 * What all expansions need: their modifiers, and the making of instructions.
 */
#include "device/soft/ptx/expand.h"

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

/* --- instructions ----------------------------------------------------------------------------- */

struct ir_src ptx_x_imm(uint64_t bits)
{
    return (struct ir_src) { .kind = IR_SRC_IMM, .bits = bits };
}

uint32_t ptx_x_register(struct ptx_expand *x, enum ir_type type)
{
    uint32_t reg = 0;
    ptx_new_register(x->p, x->opcode, type, 0, IR_NONE, &reg);
    return reg;
}

struct ir_instr ptx_x_instr(const struct ptx_expand *x, enum ir_op op, enum ir_type type)
{
    struct ir_instr i;
    ir_instr_init(&i, op, x->opcode->line, x->opcode->column);
    i.type = (uint8_t)type;
    i.guard = x->guard;
    i.flags = x->guard_not ? IR_F_GUARD_NOT : 0;
    return i;
}

void ptx_x_append(struct ptx_expand *x, const struct ir_instr *i)
{
    struct ir_instr made = *i;
    made.flags |= x->own ? IR_F_OWN : 0;
    if (!x->p->why.error)
        ptx_append_instr(x->p, &made);
}

static struct ir_src result(struct ptx_expand *x, struct ir_instr *i, enum ir_type type)
{
    i->dst_count = 1;
    i->dst[0] = ptx_x_register(x, type);
    ptx_x_append(x, i);
    return ir_src_reg(i->dst[0]);
}

struct ir_src ptx_x_op2(struct ptx_expand *x, enum ir_op op, enum ir_type type, struct ir_src a,
                        struct ir_src b)
{
    struct ir_instr i = ptx_x_instr(x, op, type);
    i.src_count = 2;
    i.src[0] = a;
    i.src[1] = b;
    return result(x, &i, type);
}

struct ir_src ptx_x_op3(struct ptx_expand *x, enum ir_op op, enum ir_type type, struct ir_src a,
                        struct ir_src b, struct ir_src c)
{
    struct ir_instr i = ptx_x_instr(x, op, type);
    i.src_count = 3;
    i.src[0] = a;
    i.src[1] = b;
    i.src[2] = c;
    return result(x, &i, type);
}

struct ir_src ptx_x_mad(struct ptx_expand *x, enum ir_type type, struct ir_src a, struct ir_src b,
                        struct ir_src c)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_MAD, type);
    i.mode = IR_MUL_LO;
    i.src_count = 3;
    i.src[0] = a;
    i.src[1] = b;
    i.src[2] = c;
    return result(x, &i, type);
}

struct ir_src ptx_x_convert(struct ptx_expand *x, enum ir_type to, enum ir_type from,
                            struct ir_src v)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_CVT, to);
    bool narrows = ir_type_is_float(to) && ir_types[to].size < ir_types[from].size;
    i.type2 = (uint8_t)from;
    i.round = narrows ? IR_ROUND_N : IR_ROUND_NONE;
    i.src_count = 1;
    i.src[0] = v;
    return result(x, &i, to);
}

struct ir_src ptx_x_sreg(struct ptx_expand *x, enum ir_sreg sreg)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_MOV, ir_sregs[sreg].type);
    i.src_count = 1;
    i.src[0] = (struct ir_src) { .kind = IR_SRC_SREG, .index = sreg };
    return result(x, &i, ir_sregs[sreg].type);
}

struct ir_src ptx_x_shuffle(struct ptx_expand *x, struct ir_src value, struct ir_src lane)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_SHFL, IR_B32);
    i.mode = IR_SHFL_IDX;
    i.flags |= IR_F_SYNC;
    i.src_count = 4;
    i.src[0] = value;
    i.src[1] = lane;
    i.src[2] = ptx_x_imm(31);
    i.src[3] = ptx_x_imm(UINT32_MAX);
    return result(x, &i, IR_B32);
}

void ptx_x_move(struct ptx_expand *x, enum ir_type type, uint32_t to, struct ir_src from)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_MOV, type);
    i.dst_count = i.src_count = 1;
    i.dst[0] = to;
    i.src[0] = from;
    ptx_x_append(x, &i);
}

void ptx_x_load(struct ptx_expand *x, enum ir_space space, enum ir_type type, uint32_t to,
                struct ir_src at, int64_t displacement)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_LD, type);
    i.space = (uint8_t)space;
    i.dst_count = 1;
    i.dst[0] = to;
    i.address.base = at.index;
    i.address.displacement = displacement;
    ptx_x_append(x, &i);
}

void ptx_x_store(struct ptx_expand *x, enum ir_space space, enum ir_type type, struct ir_src v,
                 struct ir_src at, int64_t displacement)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_ST, type);
    i.space = (uint8_t)space;
    i.src_count = 1;
    i.src[0] = v;
    i.address.base = at.index;
    i.address.displacement = displacement;
    ptx_x_append(x, &i);
}

/* --- control ---------------------------------------------------------------------------------- */

uint32_t ptx_x_label(struct ptx_expand *x)
{
    struct ir_raw_fn *raw = x->p->raw;
    uint32_t *label = IR_PUSH(raw->labels, raw->label_count, raw->label_cap);
    if (!label)
        ptx_out_of_memory(x->p);
    return label ? raw->label_count - 1 : 0;
}

void ptx_x_place(struct ptx_expand *x, uint32_t label)
{
    if (!x->p->why.error)
        x->p->raw->labels[label] = x->p->raw->instr_count;
}

void ptx_x_branch(struct ptx_expand *x, uint32_t label, uint32_t guard, bool guard_not)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_BRA, IR_VOID);
    i.guard = guard;
    i.flags = guard_not ? IR_F_GUARD_NOT : 0;
    i.target = label;
    ptx_x_append(x, &i);
}

uint32_t ptx_x_begin_loops(struct ptx_expand *x)
{
    uint32_t over = ptx_x_label(x);
    if (x->guard != IR_NONE)
        ptx_x_branch(x, over, x->guard, !x->guard_not);
    x->guard = IR_NONE;
    x->guard_not = false;
    return over;
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

/* The elements of a vector register, if one is next. */
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
    return ptx_parse_register(x->p, type, false, (uint32_t *)out + n);
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

/* The end of a list of `count` elements, or of a vector register that has `have`. */
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

/* --- one instruction -------------------------------------------------------------------------- */

bool ptx_is_expanded(const struct ptx_token *opcode, ptx_expansion **out)
{
    static const struct {
        const char *word;
        ptx_expansion *run;
    } all[] = {
        { "createpolicy", ptx_x_policy },
        { "applypriority", ptx_x_hint },
        { "discard", ptx_x_hint },
        { "mapa", ptx_x_mapa },
        { "getctarank", ptx_x_rank },
        { "cp", ptx_x_cp },
        { "ldmatrix", ptx_x_matrix },
        { "mbarrier", ptx_x_mbarrier },
        { "mma", ptx_x_mma },
        { "movmatrix", ptx_x_matrix },
        { "stmatrix", ptx_x_matrix },
        { "vabsdiff", ptx_x_video },
        { "vabsdiff2", ptx_x_video },
        { "vabsdiff4", ptx_x_video },
        { "vadd", ptx_x_video },
        { "vadd2", ptx_x_video },
        { "vadd4", ptx_x_video },
        { "vmax", ptx_x_video },
        { "vmax2", ptx_x_video },
        { "vmax4", ptx_x_video },
        { "vmin", ptx_x_video },
        { "vmin2", ptx_x_video },
        { "vmin4", ptx_x_video },
        { "vavrg2", ptx_x_video },
        { "vavrg4", ptx_x_video },
        { "vmad", ptx_x_vmad },
        { "vset", ptx_x_video },
        { "vset2", ptx_x_video },
        { "vset4", ptx_x_video },
        { "vshl", ptx_x_video },
        { "vshr", ptx_x_video },
        { "vsub", ptx_x_video },
        { "vsub2", ptx_x_video },
        { "vsub4", ptx_x_video },
        { "wmma", ptx_x_wmma },
        { "tex", ptx_x_tex },
        { "tld4", ptx_x_tld4 },
        { "suld", ptx_x_suld },
        { "sust", ptx_x_sust },
        { "sured", ptx_x_sured },
        { "txq", ptx_x_query },
        { "suq", ptx_x_query },
        { "istypep", ptx_x_istypep },
    };
    for (size_t k = 0; k < GM_ARRAY_LEN(all); k++) {
        if (ptx_text_is(opcode, all[k].word)) {
            *out = all[k].run;
            return true;
        }
    }
    return false;
}

bool ptx_parse_expanded(struct ptx_parser *p, const struct ptx_token *opcode, ptx_expansion *run,
                        uint32_t guard, bool guard_not)
{
    struct ptx_expand x = { .p = p, .opcode = opcode, .guard = guard, .guard_not = guard_not };
    for (; p->token.kind == PTX_DOT; ptx_advance(p)) {
        if (x.count == PTX_EXPAND_MODIFIERS)
            return ptx_fail(p, -EINVAL, &p->token, "too many modifiers");
        x.modifiers[x.count++] = p->token;
    }
    return run(&x) && !p->why.error && ptx_expect(p, ';');
}
