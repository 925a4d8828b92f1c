/*
 * Moves values between a function and its callers, from a register, constant or variable to
 * another.
 */
#include "device/soft/ir/outline.h"

#include <errno.h>

static bool move_part(struct ir_outliner *o, struct ir_src to, struct ir_src from, uint64_t offset,
                      enum ir_type type)
{
    struct ir_instr i;
    if (from.kind == IR_SRC_SYMBOL) {
        ir_instr_init(&i, IR_OP_LD, o->here.line, o->here.column);
        i.type = (uint8_t)type;
        i.space = IR_SPACE_PARAM;
        i.address.symbol = from.index;
        i.address.displacement = (int64_t)offset;
        i.dst_count = 1;
        if (to.kind == IR_SRC_REG)
            i.dst[0] = to.index;
        else if (!ir_call_register(o->in, o->to, &o->here, type == IR_B8 ? IR_B16 : type,
                                   &i.dst[0]))
            return false;
        if (!ir_emit_in_frame(o, &i) || to.kind == IR_SRC_REG)
            return !o->in->why->error;
        from = ir_src_reg(i.dst[0]);
    }
    if (to.kind == IR_SRC_REG)
        return ir_outline_emit(o, IR_OP_MOV, type, to.index, from, (struct ir_src) { 0 });
    ir_instr_init(&i, IR_OP_ST, o->here.line, o->here.column);
    i.type = (uint8_t)type;
    i.space = IR_SPACE_PARAM;
    i.address.symbol = to.index;
    i.address.displacement = (int64_t)offset;
    i.src_count = 1;
    i.src[0] = from;
    return ir_emit_in_frame(o, &i);
}

static bool suits(const struct ir_raw_fn *to, const struct ir_src *s, uint64_t size)
{
    if (s->kind == IR_SRC_SYMBOL)
        return to->temps[s->index & ~IR_TEMP].size >= size;
    if (s->kind != IR_SRC_REG)
        return true;
    enum ir_type type = to->regs[s->index].type;
    return type != IR_PRED && ir_types[type].size == size;
}

/* The smaller alignment of two variables, at most 8. */
static uint64_t least_align(const struct ir_outliner *o, uint32_t a, uint32_t b)
{
    uint32_t align = GM_MIN(o->to->temps[a & ~IR_TEMP].align, o->to->temps[b & ~IR_TEMP].align);
    return GM_MIN(align, 8u);
}

bool ir_outline_move(struct ir_outliner *o, struct ir_src to, struct ir_src from, uint64_t size)
{
    bool apart = to.kind == IR_SRC_SYMBOL && from.kind == IR_SRC_SYMBOL;
    uint64_t part = size;
    if (apart)
        part = least_align(o, to.index, from.index);
    if (!suits(o->to, &to, size) || !suits(o->to, &from, size) || to.kind == IR_SRC_IMM ||
        (!apart && ir_bits_type(size) == IR_VOID))
        return ir_call_refuse(o->in, &o->here, -EINVAL, "argument does not suit the parameter");
    for (uint64_t at = 0; at < size; at += part) {
        while (part > size - at)
            part /= 2;
        if (!ir_call_charge(o->in, &o->here, 2) || !move_part(o, to, from, at, ir_bits_type(part)))
            return false;
    }
    return true;
}
