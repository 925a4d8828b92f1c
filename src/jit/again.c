/*
 * Registers that are computed again behind a barrier, instead of being saved in front of it:
 * scalars that come from nothing but parameters, thread and block indices. What is the same for all
 * warps then leaves the loops over them, and what bounds the others is plain to see.
 */
#include "jit/gen.h"

#define DEPTH_MAX 12

/* An integer instruction that is one of the host's, too. */
static bool is_cheap(const struct ir_instr *i)
{
    if (i->guard != IR_NONE || i->dst_count != 1 || i->dst_pred != IR_NONE ||
        (i->flags & (IR_F_SAT | IR_F_CARRY_OUT)))
        return false;
    switch (i->op) {
    case IR_OP_LD:
        return i->space == IR_SPACE_PARAM && i->address.base == IR_NONE &&
               i->order == IR_ORDER_WEAK;
    case IR_OP_MOV:
    case IR_OP_CVTA:
        return true;
    case IR_OP_CVT:
        return !ir_type_is_float((enum ir_type)i->type) &&
               !ir_type_is_float((enum ir_type)i->type2);
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
    case IR_OP_MAD:
    case IR_OP_SHL:
    case IR_OP_AND:
    case IR_OP_OR:
    case IR_OP_XOR:
    case IR_OP_SHR:
    case IR_OP_NOT:
    case IR_OP_NEG:
    case IR_OP_SETP:
        return !ir_type_is_float((enum ir_type)i->type) && i->mode != IR_MUL_HI;
    default:
        return false;
    }
}

static bool source_can(const struct jit_gen *g, const struct ir_src *s, unsigned depth);

static bool can_again(const struct jit_gen *g, uint32_t reg, unsigned depth)
{
    const struct ir_reg_info *r = &g->a->regs[reg];
    if (r->any_def == IR_NONE || depth == 0 || jit_shape(g, reg) == IR_VARYING ||
        jit_may_wrap(g, reg) || ir_live_in(g->a, 0, reg)) /* on some way it has no value */
        return false;
    const struct ir_instr *i = &g->fn->instrs[r->any_def];
    if (!is_cheap(i))
        return false;
    for (unsigned k = 0; k < i->src_count; k++)
        if (!source_can(g, &i->src[k], depth - 1))
            return false;
    return true;
}

static bool source_can(const struct jit_gen *g, const struct ir_src *s, unsigned depth)
{
    switch (s->kind) {
    case IR_SRC_IMM:
    case IR_SRC_SYMBOL:
        return true;
    case IR_SRC_SREG:
        return s->index <= IR_SREG_NCTAID_Z; /* %tid, %ntid, %ctaid, %nctaid come first */
    case IR_SRC_REG:
        return can_again(g, s->index, depth);
    default:
        return false;
    }
}

bool jit_is_again(const struct jit_gen *g, uint32_t reg)
{
    return can_again(g, reg, DEPTH_MAX);
}
