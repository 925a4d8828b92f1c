/*
 * mma.m8n8k4 of f16, as the first tensor cores had it: four products at once, C (8 x 8) += A
 * (8 x 4) * B (4 x 8). Lanes 4 p .. 4 p + 3 and 16 + 4 p .. 16 + 4 p + 3 share product p. With t =
 * lane % 4 and h = 4 where lane > 15, else 0, element i of a lane is
 *     A  .row: row t + h, column i         .col: row i + h, column t
 *     B  .row: row t, column i + h         .col: row i, column t + h
 *     C  of f16: row t + h, column i       of f32: row t % 2 + i & 2 + h, column t & 2 + i & 5
 * Each lane computes the elements of C that it has. Products are exact, and summed in double
 * precision, as those of all other shapes are (exec/mma.c).
 */
#include "device/soft/ptx/mma.h"

void ptx_mma_widen(struct ptx_expand *x, struct ir_src pair, struct ir_src *out)
{
    struct ir_src high = ptx_x_op2(x, IR_OP_SHR, IR_U32, pair, ptx_x_imm(16));
    out[0] = ptx_x_convert(x, IR_F32, IR_F16, ptx_x_convert(x, IR_U16, IR_U32, pair));
    out[1] = ptx_x_convert(x, IR_F32, IR_F16, ptx_x_convert(x, IR_U16, IR_U32, high));
}

struct quads {
    struct ptx_expand *x;
    struct ir_src t;     /* lane % 4 */
    struct ir_src same;  /* the first lane of the lane's own four */
    struct ir_src first; /* the first of the product's lower four */
};

static struct ir_src pack(struct ptx_expand *x, struct ir_src low, struct ir_src high)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_PACK, IR_B64);
    i.src_count = 2;
    i.src[0] = low;
    i.src[1] = high;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_B64);
    ptx_x_append(x, &i);
    return ir_src_reg(i.dst[0]);
}

/* Fetches element `n` of the four that lane `lane` has in `regs`, as f64. */
static struct ir_src fetch(const struct quads *q, const struct ir_src regs[2], struct ir_src lane,
                           struct ir_src n)
{
    struct ptx_expand *x = q->x;
    struct ir_src all = pack(x, ptx_x_shuffle(x, regs[0], lane), ptx_x_shuffle(x, regs[1], lane));
    struct ir_src by = ptx_x_mad(x, IR_U32, n, ptx_x_imm(16), ptx_x_imm(0));
    all = ptx_x_op2(x, IR_OP_SHR, IR_U64, all, by);
    return ptx_x_convert(x, IR_F64, IR_F16, ptx_x_convert(x, IR_U16, IR_U64, all));
}

static struct ir_src add(const struct quads *q, struct ir_src a, struct ir_src b)
{
    return ptx_x_op2(q->x, IR_OP_ADD, IR_U32, a, b);
}

/* A[row][k] for a row in the lane's own half of C; `row` is taken modulo 4. */
static struct ir_src fetch_a(const struct quads *q, const struct ir_src regs[2], bool by_rows,
                             struct ir_src row, unsigned k)
{
    struct ir_src at = ptx_x_imm(k);
    return by_rows ? fetch(q, regs, add(q, q->same, row), at)
                   : fetch(q, regs, add(q, q->same, at), row);
}

/* B[k][column]; `column` is taken modulo 4, and `upper` means a column above 3. */
static struct ir_src fetch_b(const struct quads *q, const struct ir_src regs[2], bool by_rows,
                             struct ir_src column, bool upper, unsigned k)
{
    struct ir_src from = add(q, q->first, ptx_x_imm(upper ? 16 : 0)), at = ptx_x_imm(k);
    return by_rows ? fetch(q, regs, add(q, from, at), column)
                   : fetch(q, regs, add(q, from, column), at);
}

static struct ir_src multiply_add(const struct quads *q, struct ir_src a, struct ir_src b,
                                  struct ir_src c)
{
    struct ir_instr i = ptx_x_instr(q->x, IR_OP_FMA, IR_F64);
    i.round = IR_ROUND_N;
    i.src_count = 3;
    i.src[0] = a;
    i.src[1] = b;
    i.src[2] = c;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(q->x, IR_F64);
    ptx_x_append(q->x, &i);
    return ir_src_reg(i.dst[0]);
}

/* Fetches C as f32, for the lane's elements of D. */
static void fetch_c(const struct quads *q, const struct ptx_mma_quads *m, struct ir_src low,
                    struct ir_src high, struct ir_src c[8])
{
    for (unsigned i = 0; i < 8; i++) {
        if (!m->half_c) {
            c[i] = m->c[i];
        } else if (m->half_d) {
            if (i % 2 == 0)
                ptx_mma_widen(q->x, m->c[i / 2], c + i);
            /* C and D have different layouts: row and column are found in the lane's own half. */
        } else {
            struct ir_src from = add(q, add(q, q->same, low), ptx_x_imm(i & 2));
            struct ir_src wide = fetch(q, m->c + (i & 4) / 2, from, add(q, high, ptx_x_imm(i & 1)));
            c[i] = ptx_x_convert(q->x, IR_F32, IR_F64, wide);
        }
    }
}

void ptx_mma_quads(struct ptx_expand *x, const struct ptx_mma_quads *m, struct ir_src d[8])
{
    struct ir_src lane = ptx_x_sreg(x, IR_SREG_LANEID);
    struct quads q = { .x = x,
                       .t = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(3)),
                       .same = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(28)),
                       .first = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(12)) };
    struct ir_src low = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(1));
    struct ir_src high = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(2));
    /* A lane has one row (f16) or two (f32), and eight or four columns. */
    struct ir_src rows[2][4], columns[8][4], c[8];
    for (unsigned r = 0; r < (m->half_d ? 1 : 2); r++)
        for (unsigned k = 0; k < 4; k++)
            rows[r][k] =
                fetch_a(&q, m->a, m->rows_a, m->half_d ? q.t : add(&q, low, ptx_x_imm(2 * r)), k);
    for (unsigned i = 0; i < 8; i++) {
        struct ir_src column = m->half_d ? ptx_x_imm(i & 3) : add(&q, high, ptx_x_imm(i & 1));
        for (unsigned k = 0; k < 4; k++)
            columns[i][k] = !m->half_d && (i & 2) ? columns[i & 5][k]
                                                  : fetch_b(&q, m->b, m->rows_b, column, i & 4, k);
    }
    fetch_c(&q, m, low, high, c);
    for (unsigned i = 0; i < 8; i++) {
        struct ir_src sum = ptx_x_convert(x, IR_F64, IR_F32, c[i]);
        for (unsigned k = 0; k < 4; k++)
            sum = multiply_add(&q, rows[m->half_d ? 0 : i >> 1 & 1][k], columns[i][k], sum);
        d[i] = ptx_x_convert(x, IR_F32, IR_F64, sum);
    }
}
