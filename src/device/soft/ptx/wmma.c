/*
 * wmma.load and wmma.store: move fragments of matrices between memory and the lanes of a warp. PTX
 * leaves open where a fragment's elements lie; here they lie as mma.c needs them. A fragment of f16
 * has more registers than that: they hold the elements again, as programs expect that know where
 * GPUs since 7.5 have them.
 */
#include "device/soft/ptx/mma.h"

/* A matrix in memory, as the lanes see it. An element is found by u (the row in A and C, the column
 * in B) and v (K in A and B, the column in C): u = g + ..., v = v_lane * t + ... Distances in
 * memory are 32-bit values. */
struct memory {
    struct ptx_expand *x;
    enum ir_space space;
    enum ir_type type; /* of addresses */
    struct ir_src at;  /* of this lane's first element */
    int64_t displacement;
    struct ir_src stride; /* bytes from row to row, or column to column, of type `type` */
    /* Neighbours in v lie side by side in memory and neighbours in u `stride` apart; or the
     * reverse. */
    bool v_runs;
    unsigned bits; /* of an element */
};

/* The address of element (u, v), relative to the lane's first one, and a displacement to be
 * added. */
static struct ir_src locate(const struct memory *m, unsigned u, unsigned v, int64_t *displacement)
{
    unsigned far = m->v_runs ? u : v, near = m->v_runs ? v : u;
    *displacement = m->displacement + (int64_t)near * m->bits / 8;
    return far ? ptx_x_mad(m->x, m->type, m->stride, ptx_x_imm(far), m->at) : m->at;
}

/* Parses the stride, if there is one, and moves m->at from the beginning of the matrix to that of
 * the lane. v_lane: lane t begins at v = v_lane * t. `most`: the stride if none is given. */
static bool find_lanes(struct memory *m, unsigned v_lane, unsigned most)
{
    struct ptx_expand *x = m->x;
    struct ir_src stride = ptx_x_imm(most);
    if (ptx_accept(x->p, ',') && !ptx_parse_source(x->p, IR_U32, 0, &stride))
        return false;
    if (stride.kind != IR_SRC_IMM && m->type == IR_U64)
        stride = ptx_x_convert(x, IR_U64, IR_U32, stride);
    struct ir_src size = ptx_x_imm(m->bits / 8);
    m->stride = m->bits < 8
                    ? ptx_x_op2(x, IR_OP_SHR, m->type, stride, ptx_x_imm(m->bits == 4 ? 1 : 3))
                    : ptx_x_mad(x, m->type, stride, size, ptx_x_imm(0));
    struct ir_src lane = ptx_x_sreg(x, IR_SREG_LANEID);
    struct ir_src g = ptx_x_op2(x, IR_OP_SHR, IR_U32, lane, ptx_x_imm(2));
    struct ir_src t = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(3));
    if (m->type == IR_U64) {
        g = ptx_x_convert(x, IR_U64, IR_U32, g);
        t = ptx_x_convert(x, IR_U64, IR_U32, t);
    }
    struct ir_src t_bytes = ptx_x_imm((uint64_t)v_lane * m->bits / 8), g_bytes = m->stride;
    if (!m->v_runs) {
        t_bytes = ptx_x_mad(x, m->type, m->stride, ptx_x_imm(v_lane), ptx_x_imm(0));
        g_bytes = size;
    }
    m->at = ptx_x_mad(x, m->type, g, g_bytes, ptx_x_mad(x, m->type, t, t_bytes, m->at));
    return !x->p->why.error;
}

static enum ir_type element_type(unsigned bits)
{
    return bits == 8 ? IR_U8 : bits == 16 ? IR_U16 : bits == 64 ? IR_B64 : IR_B32;
}

/* Loads `count` elements along v, from (u, v) on, into one register. */
static void load_register(const struct memory *m, unsigned u, unsigned v, unsigned count,
                          uint32_t to)
{
    struct ptx_expand *x = m->x;
    int64_t displacement;
    if (m->v_runs || count == 1) {
        struct ir_src at = locate(m, u, v, &displacement);
        ptx_x_load(x, m->space,
                   m->bits == 64           ? IR_B64
                   : count * m->bits == 16 ? IR_U16
                                           : IR_B32,
                   to, at, displacement);
        return;
    }
    struct ir_src all = ptx_x_imm(0);
    for (unsigned e = 0; e < count; e++) {
        uint32_t reg = ptx_x_register(x, IR_U32);
        struct ir_src at = locate(m, u, v + e, &displacement);
        ptx_x_load(x, m->space, element_type(m->bits), reg, at, displacement);
        all = e == 0 ? ir_src_reg(reg)
                     : ptx_x_mad(x, IR_U32, ir_src_reg(reg), ptx_x_imm(1ull << (e * m->bits)), all);
    }
    ptx_x_move(x, IR_B32, to, all);
}

static void store_register(const struct memory *m, unsigned u, unsigned v, unsigned count,
                           struct ir_src from)
{
    struct ptx_expand *x = m->x;
    int64_t displacement;
    if (m->v_runs || count == 1) {
        struct ir_src at = locate(m, u, v, &displacement);
        ptx_x_store(x, m->space, m->bits == 64 ? IR_B64 : IR_B32, from, at, displacement);
        return;
    }
    for (unsigned e = 0; e < count; e++) {
        struct ir_src part =
            e ? ptx_x_op2(x, IR_OP_SHR, IR_U32, from, ptx_x_imm(e * m->bits)) : from;
        struct ir_src at = locate(m, u, v + e, &displacement);
        ptx_x_store(x, m->space, element_type(m->bits), ptx_x_convert(x, IR_U16, IR_U32, part), at,
                    displacement);
    }
}

/* What register `n` of a fragment holds: finds (u, v) of its first element. */
enum role {
    ROLE_A, /* two registers for each step of each tile */
    ROLE_B, /* one register for each step of each tile */
    ROLE_C,
};

static void place(enum role role, const struct ptx_tiling *t, unsigned steps, unsigned k,
                  unsigned n, unsigned *u, unsigned *v)
{
    unsigned pair = t->half ? 1 : 2;
    switch (role) {
    case ROLE_A:
        *u = n / (pair * steps) * 16 + n % pair * 8;
        *v = n / pair % steps * k;
        break;
    case ROLE_B:
        *u = n / steps * 8;
        *v = n % steps * k;
        break;
    default: /* by element */
        *u = n / 4 / t->columns * 16 + n % 4 / 2 * 8;
        *v = n / 4 % t->columns * 8 + n % 2;
        break;
    }
}

static bool take_space(struct ptx_expand *x, enum ir_space *space)
{
    *space = IR_SPACE_GENERIC;
    if (ptx_x_take(x, "shared") || ptx_x_take(x, "shared::cta"))
        *space = IR_SPACE_SHARED;
    else if (ptx_x_take(x, "global"))
        *space = IR_SPACE_GLOBAL;
    return true;
}

static bool load(struct ptx_expand *x)
{
    static const char *const names[] = { "a", "b", "c" };
    static const struct ptx_mma_kind f32 = { "f32", IR_MMA_TF32, 32 },
                                     s32 = { "s32", IR_MMA_S8, 32 };
    unsigned shape[3];
    struct memory m = { .x = x };
    int which = ptx_x_take_one(x, names, 3);
    bool right = ptx_mma_take_sync(x) && ptx_mma_take_shape(x, shape);
    bool row = ptx_x_take(x, "row");
    right = right && (row || ptx_x_take(x, "col")) && take_space(x, &m.space) && which >= 0;
    const struct ptx_token *name = ptx_x_take_next(x);
    const struct ptx_mma_kind *k = ptx_mma_is(name, "f32")   ? &f32
                                   : ptx_mma_is(name, "s32") ? &s32
                                                             : ptx_mma_find_kind(name);
    struct ptx_tiling t;
    /* For C the types of A and B do not matter; the shape's depth tells which ones there may be. */
    unsigned plain[3] = { right ? shape[0] : 0, right ? shape[1] : 0, 16 };
    bool known = right && k &&
                 (which < 2 ? k != &f32 && k != &s32 && ptx_mma_find_tiling(shape, k, &t)
                  : shape[0] == 8 && shape[1] == 8
                      ? (t = (struct ptx_tiling) { 1, 1, false, true }, k->bits >= 32)
                      : ptx_mma_find_tiling(plain, &ptx_mma_f16, &t) && k->bits < 64);
    if (!known ||
        (which == 2 && k != &f32 && k != &s32 && k->mma != IR_MMA_F16 && k->mma != IR_MMA_F64))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;

    uint32_t regs[8];
    enum role role = which == 2 ? ROLE_C : (which == 0) != t.transposed ? ROLE_A : ROLE_B;
    unsigned elements = role == ROLE_C  ? (k->mma == IR_MMA_F16 ? 2u : 1u)
                        : k->bits == 64 ? 1u
                                        : 32u / k->bits;
    unsigned steps = role == ROLE_C ? 1 : shape[2] / (4 * elements), depth = 4 * elements;
    unsigned used = role == ROLE_A   ? steps * t.rows * (t.half ? 1 : 2)
                    : role == ROLE_B ? steps * t.columns
                                     : (t.half ? 2 : 4 * t.rows * t.columns) / elements;
    unsigned count = ptx_x_registers(x, k->bits == 64 ? IR_B64 : IR_B32, regs, 8);
    ptx_expect(x->p, ',');
    m.at = ptx_x_address(x, &m.space, &m.type, &m.displacement);
    if (x->p->why.error)
        return false;
    if (count != (role == ROLE_C ? used : ptx_mma_fragment(k, used)))
        return ptx_mma_wrong_count(x);
    m.bits = k->bits;
    /* v runs along K in A and B, and along the columns in C. */
    m.v_runs = role == ROLE_C ? row != t.transposed : row == (which == 0);
    unsigned wide = which == 0   ? (row ? shape[2] : shape[0])
                    : which == 1 ? (row ? shape[1] : shape[2])
                                 : (row ? shape[1] : shape[0]);
    if (k->bits < 8 && !m.v_runs)
        return ptx_x_refuse(x);
    if (!find_lanes(&m, role == ROLE_C ? 2 : elements, wide))
        return false;
    for (unsigned n = 0; n < count; n++) {
        unsigned u, v;
        place(role, &t, steps, depth, role == ROLE_C ? n * elements : n, &u, &v);
        if (n < used)
            load_register(&m, u, v, elements, regs[n]);
        else
            ptx_x_move(x, IR_B32, regs[n], ir_src_reg(regs[n - used]));
    }
    return true;
}

static bool store(struct ptx_expand *x)
{
    unsigned shape[3];
    struct memory m = { .x = x };
    bool right = ptx_x_take(x, "d") && ptx_mma_take_sync(x) && ptx_mma_take_shape(x, shape);
    bool row = ptx_x_take(x, "row");
    right = right && (row || ptx_x_take(x, "col")) && take_space(x, &m.space);
    const struct ptx_token *name = ptx_x_take_next(x);
    bool half = ptx_mma_is(name, "f16"), wide = ptx_mma_is(name, "f64");
    unsigned plain[3] = { right ? shape[0] : 0, right ? shape[1] : 0, 16 };
    struct ptx_tiling t = { 1, 1, false, true };
    bool small = right && shape[0] == 8 && shape[1] == 8;
    if (!right || !(half || wide || ptx_mma_is(name, "f32") || ptx_mma_is(name, "s32")) ||
        (small ? half : wide || !ptx_mma_find_tiling(plain, &ptx_mma_f16, &t)))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    unsigned elements = half ? 2 : 1, used = (t.half ? 2 : 4 * t.rows * t.columns) / elements;
    m.bits = half ? 16 : wide ? 64 : 32;
    m.v_runs = row != t.transposed;
    struct ir_src regs[8];
    m.at = ptx_x_address(x, &m.space, &m.type, &m.displacement);
    ptx_expect(x->p, ',');
    unsigned count = ptx_x_values(x, wide ? IR_B64 : IR_B32, regs, 8);
    if (x->p->why.error || count != used)
        return x->p->why.error ? false : ptx_mma_wrong_count(x);
    if (!find_lanes(&m, 2, row ? shape[1] : shape[0]))
        return false;
    for (unsigned n = 0; n < count; n++) {
        unsigned u, v;
        place(ROLE_C, &t, 1, 0, n * elements, &u, &v);
        store_register(&m, u, v, elements, regs[n]);
    }
    return true;
}

bool ptx_x_wmma(struct ptx_expand *x)
{
    if (ptx_x_take(x, "load"))
        return load(x);
    if (ptx_x_take(x, "store"))
        return store(x);
    return ptx_x_take(x, "mma") ? ptx_mma_multiply(x) : ptx_x_refuse(x);
}
