/*
 * ldmatrix, stmatrix, movmatrix: matrices of 8 x 8 elements of 16 bits between shared memory and a
 * warp. Lane 4 r + c holds the elements 2 c and 2 c + 1 of row r; with .trans those rows of column
 * r. For ldmatrix and stmatrix lane 8 m + r says where row r of matrix m is.
 */
#include "device/soft/ptx/expand.h"

struct lanes {
    struct ir_src row;  /* lane / 4 */
    struct ir_src pair; /* lane % 4 */
};

static struct lanes find_lanes(struct ptx_expand *x)
{
    struct ir_src lane = ptx_x_sreg(x, IR_SREG_LANEID);
    return (struct lanes) { ptx_x_op2(x, IR_OP_SHR, IR_U32, lane, ptx_x_imm(2)),
                            ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(3)) };
}

/* Without .trans: one access for the pair of a row. */
static void access_rows(struct ptx_expand *x, const struct lanes *l, struct ir_src address,
                        int64_t displacement, struct ir_src reg, unsigned matrix, bool store)
{
    struct ir_src from = ptx_x_op2(x, IR_OP_ADD, IR_U32, l->row, ptx_x_imm(8 * matrix));
    struct ir_src at = ptx_x_mad(x, IR_U32, l->pair, ptx_x_imm(4), ptx_x_shuffle(x, address, from));
    if (store)
        ptx_x_store(x, IR_SPACE_SHARED, IR_B32, reg, at, displacement);
    else
        ptx_x_load(x, IR_SPACE_SHARED, IR_B32, reg.index, at, displacement);
}

/* With .trans: the two elements lie in two rows. */
static void access_columns(struct ptx_expand *x, const struct lanes *l, struct ir_src address,
                           int64_t displacement, struct ir_src reg, unsigned matrix, bool store)
{
    struct ir_src half[2];
    if (store) {
        half[0] = ptx_x_convert(x, IR_U16, IR_U32, reg);
        half[1] =
            ptx_x_convert(x, IR_U16, IR_U32, ptx_x_op2(x, IR_OP_SHR, IR_U32, reg, ptx_x_imm(16)));
    }
    for (unsigned k = 0; k < 2; k++) {
        struct ir_src from = ptx_x_mad(x, IR_U32, l->pair, ptx_x_imm(2), ptx_x_imm(8 * matrix + k));
        struct ir_src at =
            ptx_x_mad(x, IR_U32, l->row, ptx_x_imm(2), ptx_x_shuffle(x, address, from));
        if (store) {
            ptx_x_store(x, IR_SPACE_SHARED, IR_U16, half[k], at, displacement);
        } else {
            half[k] = ir_src_reg(ptx_x_register(x, IR_U16));
            ptx_x_load(x, IR_SPACE_SHARED, IR_U16, half[k].index, at, displacement);
        }
    }
    if (store)
        return;
    struct ir_instr pack = ptx_x_instr(x, IR_OP_PACK, IR_B32);
    pack.dst_count = 1;
    pack.dst[0] = reg.index;
    pack.src_count = 2;
    pack.src[0] = half[0];
    pack.src[1] = half[1];
    ptx_x_append(x, &pack);
}

/* Lane 4 r + c needs elements r of rows 2 c and 2 c + 1, which lanes 8 c + r / 2 and 8 c + 4 + r /
 * 2 hold. */
static bool move_matrix(struct ptx_expand *x)
{
    bool right = ptx_x_take(x, "sync") && ptx_x_take(x, "aligned") && ptx_x_take(x, "m8n8") &&
                 ptx_x_take(x, "trans") && ptx_x_take(x, "b16");
    uint32_t to;
    struct ir_src v;
    if (!right)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_B32, false, &to) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &v))
        return false;
    struct lanes l = find_lanes(x);
    struct ir_src from = ptx_x_mad(x, IR_U32, l.pair, ptx_x_imm(8),
                                   ptx_x_op2(x, IR_OP_SHR, IR_U32, l.row, ptx_x_imm(1)));
    struct ir_src first = ptx_x_shuffle(x, v, from);
    struct ir_src second = ptx_x_shuffle(x, v, ptx_x_op2(x, IR_OP_ADD, IR_U32, from, ptx_x_imm(4)));
    struct ir_src odd = ptx_x_op2(x, IR_OP_AND, IR_B32, l.row, ptx_x_imm(1));
    struct ir_src choice = ptx_x_mad(x, IR_U32, odd, ptx_x_imm(0x2222), ptx_x_imm(0x5410));
    ptx_x_move(x, IR_B32, to, ptx_x_op3(x, IR_OP_PRMT, IR_B32, first, second, choice));
    return true;
}

bool ptx_x_matrix(struct ptx_expand *x)
{
    static const char *const numbers[] = { "x1", "x2", "x4" };
    bool store = x->opcode->text[0] == 's';
    if (x->opcode->text[0] == 'm')
        return move_matrix(x);
    bool right = ptx_x_take(x, "sync") && ptx_x_take(x, "aligned") && ptx_x_take(x, "m8n8") &&
                 ptx_x_take(x, "b16");
    int number = ptx_x_take_one(x, numbers, 3);
    if (!right || number < 0)
        return ptx_x_refuse(x);
    bool columns = ptx_x_take(x, "trans");
    /* Without it the address is generic, and lies in shared memory. */
    if (!ptx_x_take(x, "shared"))
        ptx_x_take(x, "shared::cta");
    if (!ptx_x_taken_all(x))
        return false;

    struct ir_src regs[4], address;
    uint32_t written[4];
    int64_t displacement;
    unsigned count = 0;
    if (!store) {
        count = ptx_x_registers(x, IR_B32, written, 4);
        for (unsigned k = 0; k < count; k++)
            regs[k] = ir_src_reg(written[k]);
        ptx_expect(x->p, ',');
    }
    const struct ptx_token at = x->p->token;
    address = ptx_x_shared_address(x, &displacement);
    if (store && ptx_expect(x->p, ','))
        count = ptx_x_values(x, IR_B32, regs, 4);
    if (x->p->why.error)
        return false;
    if (count != 1u << number)
        return ptx_fail(x->p, -EINVAL, &at, "%u registers for '.%s'", count, numbers[number]);
    struct lanes l = find_lanes(x);
    address = ptx_x_op2(x, IR_OP_ADD, IR_U32, address,
                        /* The first result may be the register of the address. */
                        ptx_x_imm(0));
    for (unsigned m = 0; m < count; m++)
        (columns ? access_columns : access_rows)(x, &l, address, displacement, regs[m], m, store);
    return true;
}
