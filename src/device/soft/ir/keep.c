/*
 * Saves what a function with frames needs after a call to its frame before the call, and restores
 * it behind the call.
 */
#include "device/soft/ir/outline.h"

/* Saves or restores a register (`temp` false) or a .param variable of the entry. */
typedef bool ir_keeper(struct ir_outliner *o, uint32_t index, bool temp, uint64_t at);

static bool access_frame(struct ir_outliner *o, enum ir_op op, enum ir_type type, uint32_t reg,
                         uint64_t at)
{
    struct ir_instr i;
    ir_instr_init(&i, op, o->here.line, o->here.column);
    i.type = (uint8_t)type;
    i.space = IR_SPACE_LOCAL;
    i.address.base = o->to->stack;
    i.address.displacement = (int64_t)at;
    if (op == IR_OP_LD) {
        i.dst_count = 1;
        i.dst[0] = reg;
    } else {
        i.src_count = 1;
        i.src[0] = ir_src_reg(reg);
    }
    return ir_call_emit(o->in, o->to, &i);
}

static bool keep_one(struct ir_outliner *o, uint32_t index, bool temp, uint64_t at)
{
    struct ir_src from = temp ? (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = index | IR_TEMP }
                              : ir_src_reg(index);
    enum ir_type type =
        temp ? ir_bits_type(o->to->temps[index].size) : ir_type_untyped(o->to->regs[index].type);
    uint32_t value = index;
    if (type == IR_PRED) {
        struct ir_instr i;
        ir_instr_init(&i, IR_OP_SELP, o->here.line, o->here.column);
        i.type = type = IR_B32;
        i.dst_count = 1;
        i.src_count = 3;
        i.src[0] = ir_src_imm(1);
        i.src[1] = ir_src_imm(0);
        i.src[2] = from;
        if (!ir_call_register(o->in, o->to, &o->here, IR_B32, &value))
            return false;
        i.dst[0] = value;
        return ir_call_emit(o->in, o->to, &i) && access_frame(o, IR_OP_ST, type, value, at);
    }
    if (temp && (!ir_call_register(o->in, o->to, &o->here, type == IR_B8 ? IR_B16 : type, &value) ||
                 !ir_outline_move(o, ir_src_reg(value), from, o->to->temps[index].size)))
        return false;
    return access_frame(o, IR_OP_ST, type, value, at);
}

static bool take_back_one(struct ir_outliner *o, uint32_t index, bool temp, uint64_t at)
{
    enum ir_type type =
        temp ? ir_bits_type(o->to->temps[index].size) : ir_type_untyped(o->to->regs[index].type);
    uint32_t value = index;
    if (type != IR_PRED && !temp)
        return access_frame(o, IR_OP_LD, type, index, at);
    enum ir_type as = type == IR_PRED ? IR_B32 : type == IR_B8 ? IR_B16 : type;
    if (!ir_call_register(o->in, o->to, &o->here, as, &value) ||
        !access_frame(o, IR_OP_LD, type == IR_PRED ? IR_B32 : type, value, at))
        return false;
    struct ir_instr i;
    if (type != IR_PRED) {
        ir_instr_init(&i, IR_OP_ST, o->here.line, o->here.column);
        i.type = (uint8_t)type;
        i.space = IR_SPACE_PARAM;
        i.address.symbol = index | IR_TEMP;
        i.src_count = 1;
        i.src[0] = ir_src_reg(value);
        return ir_call_emit(o->in, o->to, &i);
    }
    ir_instr_init(&i, IR_OP_SETP, o->here.line, o->here.column);
    i.type = IR_U32;
    i.cmp = IR_CMP_NE;
    i.dst_count = 1;
    i.dst[0] = index;
    i.src_count = 2;
    i.src[0] = ir_src_reg(value);
    i.src[1] = ir_src_imm(0);
    return ir_call_emit(o->in, o->to, &i);
}

static unsigned kept_size(const struct ir_outliner *o, uint32_t index, bool temp)
{
    if (temp)
        return o->to->temps[index].on_stack ? 0 : (unsigned)o->to->temps[index].size;
    return o->to->regs[index].type == IR_PRED ? 4 : ir_types[o->to->regs[index].type].size;
}

/* Visits large ones first, so that all are aligned. */
static bool each_kept(struct ir_outliner *o, const struct ir_outlined *b, uint64_t *at,
                      ir_keeper *keeper)
{
    const struct ir_raw_fn *raw = &o->in->raws[b->fn];
    const uint64_t *row = b->live + (size_t)b->call * b->words;
    *at = b->save_at;
    for (unsigned size = 8; size > 0; size /= 2) {
        for (uint32_t w = 0; w < b->words; w++)
            for (uint64_t left = row[w]; left; left &= left - 1) {
                uint32_t v = w * 64 + (uint32_t)__builtin_ctzll(left);
                bool temp = v >= raw->reg_count;
                uint32_t index = temp ? b->temps[v - raw->reg_count] : b->reg_base + v;
                if (kept_size(o, index, temp) != size)
                    continue;
                if (!keeper(o, index, temp, *at))
                    return false;
                *at += size;
            }
        if (size == 4) {
            if (!keeper(o, b->link, false, *at))
                return false;
            *at += size;
        }
    }
    return true;
}

static bool move_stack(struct ir_outliner *o, enum ir_op op, uint64_t bytes)
{
    return ir_outline_emit(o, op, IR_U64, o->to->stack, ir_src_reg(o->to->stack),
                           ir_src_imm(bytes));
}

bool ir_keep(struct ir_outliner *o, struct ir_outlined *b, uint64_t *frame)
{
    uint64_t at;
    if (!each_kept(o, b, &at, keep_one))
        return false;
    *frame = (at + 15) & ~UINT64_C(15);
    return move_stack(o, IR_OP_ADD, *frame);
}

bool ir_take_back(struct ir_outliner *o, struct ir_outlined *b, uint64_t frame)
{
    uint64_t at;
    if (!move_stack(o, IR_OP_SUB, frame) || !each_kept(o, b, &at, take_back_one))
        return false;
    b->call++;
    return true;
}
