/*
 * mov of several registers: vectors, special registers that are vectors, and values of 128 bits.
 */
#include "device/soft/ptx/expand.h"

/* %tid and its like as vectors of four, the last of which is 0. Clusters have one block. */
static bool take_special(struct ptx_expand *x, struct ir_src *out)
{
    static const struct {
        const char *name;
        bool fixed;    /* a number, in all three; else special registers */
        uint8_t first; /* the number, or the first of three enum ir_sreg */
    } all[] = {
        { "%tid", false, IR_SREG_TID_X },
        { "%ntid", false, IR_SREG_NTID_X },
        { "%ctaid", false, IR_SREG_CTAID_X },
        { "%nctaid", false, IR_SREG_NCTAID_X },
        { "%clusterid", false, IR_SREG_CTAID_X },
        { "%nclusterid", false, IR_SREG_NCTAID_X },
        { "%cluster_ctaid", true, 0 },
        { "%cluster_nctaid", true, 1 },
    };
    for (unsigned n = 0; n < GM_ARRAY_LEN(all); n++) {
        if (!ptx_text_is(&x->p->token, all[n].name))
            continue;
        for (unsigned k = 0; k < 3; k++)
            out[k] = all[n].fixed ? ptx_x_imm(all[n].first)
                                  : ptx_x_sreg(x, (enum ir_sreg)(all[n].first + k));
        out[3] = ptx_x_imm(0);
        ptx_advance(x->p);
        return true;
    }
    return false;
}

/* mov.v2.b32 {a, b}, v; mov.b128. All elements move at once: source and destination may overlap. */
bool ptx_x_move_vector(struct ptx_expand *x)
{
    static const char *const vectors[] = { "v2", "v4", "v8" };
    enum ir_type type;
    struct ir_src from[8], kept[8];
    uint32_t to[8];
    unsigned count = 2u << ptx_x_take_one(x, vectors, GM_ARRAY_LEN(vectors));
    for (type = IR_B8; type < IR_PRED && !ptx_x_take(x, ir_types[type].text); type++)
        continue;
    if (!ptx_x_taken_all(x))
        return false;
    if (type == IR_PRED || ir_types[type].size * count > 16)
        return ptx_x_refuse(x);
    ptx_x_destinations(x, type, false, count, to);
    ptx_expect(x->p, ',');
    if (count != 4 || ir_types[type].size != 4 || !take_special(x, from))
        ptx_x_sources(x, type, false, count, from);
    type = ir_type_untyped(type);
    for (unsigned k = 0; k < count && !x->p->why.error; k++) {
        kept[k] = ir_src_reg(ptx_x_register(x, type));
        ptx_x_move(x, type, kept[k].index, from[k]);
    }
    for (unsigned k = 0; k < count && !x->p->why.error; k++)
        if (to[k] != IR_NONE)
            ptx_x_move(x, type, to[k], kept[k]);
    return true;
}

/* Packs {a, b} into a 64-bit value, or unpacks one. */
static void pack_64(struct ptx_expand *x, enum ir_op op, const struct ir_src *from, uint32_t *to)
{
    struct ir_instr i = ptx_x_instr(x, op, IR_B64);
    i.src_count = op == IR_OP_PACK ? 2 : 1;
    i.dst_count = op == IR_OP_PACK ? 1 : 2;
    memcpy(i.src, from, i.src_count * sizeof(*from));
    memcpy(i.dst, to, i.dst_count * sizeof(*to));
    ptx_x_append(x, &i);
}

static bool is_of_size(const struct ptx_expand *x, const struct ir_src *s, unsigned size)
{
    return s->kind != IR_SRC_REG || ir_types[x->p->raw->regs[s->index].type].size == size;
}

/* mov.b128: registers of 128 bits, vectors of two or four, a constant. */
bool ptx_x_move_128(struct ptx_expand *x)
{
    uint32_t to[4];
    struct ir_src from[4], half[2];
    ptx_x_take(x, "b128");
    if (!ptx_x_taken_all(x))
        return false;
    unsigned n = ptx_x_registers(x, IR_VOID, to, 4);
    ptx_expect(x->p, ',');
    unsigned m = ptx_x_values(x, IR_VOID, from, 4);
    bool right = (n == 2 || n == 4) && (m == 2 || m == 4 || (m == 1 && from[0].kind == IR_SRC_IMM));
    for (unsigned k = 0; k < n && right; k++) {
        const struct ir_src s = ir_src_reg(to[k]);
        right = is_of_size(x, &s, 16 / n);
    }
    for (unsigned k = 0; k < m && right; k++)
        right = is_of_size(x, &from[k], 16 / m);
    if (!right || x->p->why.error)
        return ptx_fail(x->p, -EINVAL, x->opcode, "'mov.b128' of what has other sizes");
    for (unsigned h = 0; h < 2; h++) {
        half[h] = ir_src_reg(ptx_x_register(x, IR_B64));
        if (m == 4)
            pack_64(x, IR_OP_PACK, &from[2 * h], &half[h].index);
        else
            ptx_x_move(x, IR_B64, half[h].index, m == 1 && h == 1 ? ptx_x_imm(0) : from[h]);
    }
    for (unsigned h = 0; h < 2; h++) {
        if (n == 4)
            pack_64(x, IR_OP_UNPACK, &half[h], &to[2 * h]);
        else
            ptx_x_move(x, IR_B64, to[h], half[h]);
    }
    return true;
}
