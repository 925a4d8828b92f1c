/*
 * The sparse A of mma.sp, as a full one. Of four units in a row of A two are stored, where a unit
 * has 16 bits, or 8 if elements have 8 or 4: one f16, half a tf32, one s8, two s4. Four bits of
 * metadata say where the two units belong: two bits for each, those of the first one below.
 *
 * Stored units lie as those of a full A of half the columns do (mma.c). So a lane's register of the
 * full A, in step s of the product and of the rows g + 8 h, comes from register 2 (s / 2) + h of
 * lane 4 g + 2 (s % 2) + t / 2: from all of it if units have 16 bits, else from its half t % 2.
 *
 * Metadata is in some lanes of every four. The selector says which: it counts sets of as many lanes
 * as a product needs. Of 16-bit units lane s / 2 of the set has a byte for each of step s and h:
 * byte 2 h + s % 2. Of 8-bit units lane 2 (s / 2) + h of the set has half s % 2.
 */
#include "device/soft/ptx/mma.h"

struct spread {
    struct ptx_expand *x;
    struct ir_src quad; /* the first of the lane's four */
    struct ir_src odd;  /* t % 2 */
    struct ir_src half; /* t / 2 */
};

static struct ir_src add(const struct spread *v, struct ir_src a, struct ir_src b)
{
    return ptx_x_op2(v->x, IR_OP_ADD, IR_U32, a, b);
}

static struct ir_src times(const struct spread *v, struct ir_src a, unsigned by, unsigned plus)
{
    return ptx_x_mad(v->x, IR_U32, a, ptx_x_imm(by), ptx_x_imm(plus));
}

/* The `bits` bits of v that begin at `at`. */
static struct ir_src cut(const struct spread *v, struct ir_src from, struct ir_src at,
                         unsigned bits)
{
    struct ir_src low = ptx_x_op2(v->x, IR_OP_SHR, IR_U32, from, at);
    return ptx_x_op2(v->x, IR_OP_AND, IR_B32, low, ptx_x_imm((1u << bits) - 1));
}

/* Puts the two units of `stored` where `meta` says, each of `bits` bits. Of 16-bit units only those
 * two of the four that the lane has are in the result: a shift by 32 or more, as by less than 0,
 * leaves none of a unit. */
static struct ir_src place(const struct spread *v, struct ir_src stored, struct ir_src meta,
                           unsigned bits)
{
    struct ir_src put[2];
    for (unsigned n = 0; n < 2; n++) {
        struct ir_src to = times(v, cut(v, meta, ptx_x_imm(2 * n), 2), bits, 0);
        if (bits == 16)
            to = ptx_x_op2(v->x, IR_OP_SUB, IR_U32, to, times(v, v->odd, 32, 0));
        put[n] = cut(v, stored, ptx_x_imm(bits * n), bits);
        put[n] = ptx_x_op2(v->x, IR_OP_SHL, IR_B32, put[n], to);
    }
    return ptx_x_op2(v->x, IR_OP_OR, IR_B32, put[0], put[1]);
}

void ptx_mma_spread(struct ptx_expand *x, const struct ptx_mma_sparse *m, struct ir_src *full)
{
    struct ir_src lane = ptx_x_sreg(x, IR_SREG_LANEID);
    struct spread v = { .x = x,
                        .quad = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(28)),
                        .odd = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(1)) };
    v.half = cut(&v, lane, ptx_x_imm(1), 1);
    unsigned set = m->selector * ptx_mma_metadata_lanes(m);
    for (unsigned s = 0; s < m->steps; s++) {
        struct ir_src from = add(&v, add(&v, v.quad, v.half), ptx_x_imm(2 * (s % 2)));
        for (unsigned h = 0; h < 2; h++) {
            unsigned holder = set + (m->wide ? s / 2 : 2 * (s / 2) + h);
            struct ir_src meta = ptx_x_shuffle(x, m->metadata, add(&v, v.quad, ptx_x_imm(holder)));
            struct ir_src stored = ptx_x_shuffle(x, m->a[2 * (s / 2) + h], from);
            struct ir_src at =
                m->wide ? times(&v, v.half, 4, 16 * h + 8 * (s % 2))
                        : times(&v, add(&v, add(&v, v.half, v.half), v.odd), 4, 16 * (s % 2));
            if (!m->wide)
                stored = ptx_x_op2(x, IR_OP_SHR, IR_U32, stored, times(&v, v.odd, 16, 0));
            full[2 * s + h] = place(&v, stored, cut(&v, meta, at, 4), m->wide ? 16 : 8);
        }
    }
}
