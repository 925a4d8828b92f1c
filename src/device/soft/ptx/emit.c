/*
 * Appends the instructions that expansions consist of.
 */
#include "device/soft/ptx/expand.h"

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

struct ir_src ptx_x_compare(struct ptx_expand *x, enum ir_cmp cmp, enum ir_type type,
                            struct ir_src a, struct ir_src b)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_SETP, type);
    i.cmp = (uint8_t)cmp;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_PRED);
    i.src_count = 2;
    i.src[0] = a;
    i.src[1] = b;
    ptx_x_append(x, &i);
    return ir_src_reg(i.dst[0]);
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
