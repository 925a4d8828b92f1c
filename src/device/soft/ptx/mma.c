/*
 * mma and wmma.mma: products of small matrices whose elements are spread over the lanes of a warp.
 *
 * All integer and narrow floating point forms become steps of one instruction, MMA: C (16 x 8) += A
 * (16 x K) * B (K x 8), where a register of A or B has E = 32 / width elements, and K = 4 E. With g
 * = lane / 4 and t = lane % 4 the registers hold, as PTX defines it for mma:
 *
 *     A  register h: row g + 8 h, columns E t and following      B  rows E t and following, column
 * g C  register q: row g + 8 (q / 2), column 2 t + q % 2
 *
 * A larger K takes several steps; missing rows are rows of zeros. f64 is done with shuffles and
 * fma.
 *
 * PTX leaves open where the elements of wmma's fragments lie; here they lie as those of mma do, one
 * product after the other. The shape m8n32 is computed as the transposed product, with A and B
 * exchanged.
 */
#include "device/soft/ptx/mma.h"

const struct ptx_mma_kind ptx_mma_f16 = { "f16", IR_MMA_F16, 16 };

static const struct ptx_mma_kind kinds[] = {
    { "bf16", IR_MMA_BF16, 16 }, { "tf32", IR_MMA_TF32, 32 }, { "e4m3", IR_MMA_E4M3, 8 },
    { "e5m2", IR_MMA_E5M2, 8 },  { "s8", IR_MMA_S8, 8 },      { "u8", IR_MMA_U8, 8 },
    { "s4", IR_MMA_S4, 4 },      { "u4", IR_MMA_U4, 4 },      { "b1", IR_MMA_B1_XOR, 1 },
    { "f64", IR_MMA_F64, 64 },
};

const struct ptx_mma_kind *ptx_mma_find_kind(const struct ptx_token *t)
{
    if (ptx_mma_is(t, ptx_mma_f16.name))
        return &ptx_mma_f16;
    for (size_t k = 0; t && k < GM_ARRAY_LEN(kinds); k++)
        if (ptx_text_is(t, kinds[k].name))
            return &kinds[k];
    return NULL;
}

/* PTX 6.0 to 6.2 had wmma without .aligned. */
bool ptx_mma_take_sync(struct ptx_expand *x)
{
    ptx_x_take(x, "aligned");
    return ptx_x_take(x, "sync");
}

/* m, n, k of "m16n8k16". */
bool ptx_mma_take_shape(struct ptx_expand *x, unsigned shape[3])
{
    for (unsigned m = 0; m < x->count; m++) {
        const struct ptx_token *t = &x->modifiers[m];
        const char *at = t->text, *end = t->text + t->length;
        memset(shape, 0, 3 * sizeof(*shape));
        for (unsigned d = 0; d < 3; d++) {
            if (at == end || *at++ != "mnk"[d])
                break;
            while (at < end && *at >= '0' && *at <= '9' && shape[d] < 1000)
                shape[d] = shape[d] * 10 + (unsigned)(*at++ - '0');
        }
        if (at != end || !shape[2])
            continue;
        x->taken |= 1u << m;
        return true;
    }
    return false;
}

/* --- products --------------------------------------------------------------------------------- */

struct product {
    const struct ptx_mma_kind *a, *b;
    uint8_t bits_op; /* of b1: IR_MMA_B1_XOR or _AND */
    bool saturate;
    unsigned steps;
};

static unsigned step_k(const struct ptx_mma_kind *k)
{
    return 4 * 32 / k->bits;
}

/* d = c + the products of one row and column of tiles. Each step takes two registers of `a`, or one
 * if `half`, and one of `b`. */
static void emit_steps(struct ptx_expand *x, const struct product *p, const struct ir_src *a,
                       const struct ir_src *b, const struct ir_src c[4], struct ir_src d[4],
                       bool half)
{
    bool whole = p->a->mma >= IR_MMA_S8;
    /* .satfinite clamps the sum as a whole. The products fit 32 bits, so they are summed first. */
    for (unsigned q = 0; q < 4; q++)
        d[q] = p->saturate ? ptx_x_imm(0) : c[q];
    for (unsigned s = 0; s < p->steps; s++) {
        struct ir_instr i = ptx_x_instr(x, IR_OP_MMA, whole ? IR_S32 : IR_F32);
        bool binary = p->a->mma == IR_MMA_B1_XOR;
        i.mode = binary ? p->bits_op : p->a->mma;
        i.mode2 = binary ? p->bits_op : p->b->mma;
        i.flags |= IR_F_SYNC;
        i.src_count = 8;
        i.src[0] = a[half ? s : 2 * s];
        i.src[1] = half ? ptx_x_imm(0) : a[2 * s + 1];
        i.src[2] = b[s];
        for (unsigned q = 0; q < 4; q++)
            i.src[3 + q] = half && q > 1 ? ptx_x_imm(0) : d[q];
        i.src[7] = ptx_x_imm(UINT32_MAX);
        i.dst_count = 4;
        for (unsigned q = 0; q < 4; q++) {
            i.dst[q] = ptx_x_register(x, IR_B32);
            d[q] = ir_src_reg(i.dst[q]);
        }
        ptx_x_append(x, &i);
    }
    for (unsigned q = 0; p->saturate && q < (half ? 2 : 4); q++) {
        struct ir_instr i = ptx_x_instr(x, IR_OP_ADD, IR_S32);
        i.flags |= IR_F_SAT;
        i.src_count = 2;
        i.src[0] = c[q];
        i.src[1] = d[q];
        i.dst_count = 1;
        i.dst[0] = d[q].index;
        ptx_x_append(x, &i);
    }
}

/* Packs two f32 into a register as f16. */
static void narrow(struct ptx_expand *x, const struct ir_src in[2], uint32_t to)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_CVT, IR_F16X2);
    i.type2 = IR_F32;
    i.round = IR_ROUND_N;
    i.dst_count = 1;
    i.dst[0] = to;
    i.src_count = 2;
    i.src[0] = in[1];
    i.src[1] = in[0];
    ptx_x_append(x, &i);
}

/* Operands of an mma or wmma: registers in the order of the text, for `tiles` tiles of C. */
struct operands {
    uint32_t d[8];
    struct ir_src a[8], b[8], c[8];
    unsigned count_d, count_a, count_b, count_c;
};

static bool parse_operands(struct ptx_expand *x, enum ir_type type_d, enum ir_type type_ab,
                           enum ir_type type_c, struct operands *o)
{
    o->count_d = ptx_x_registers(x, type_d, o->d, 8);
    ptx_expect(x->p, ',');
    o->count_a = ptx_x_values(x, type_ab, o->a, 8);
    ptx_expect(x->p, ',');
    o->count_b = ptx_x_values(x, type_ab, o->b, 8);
    ptx_expect(x->p, ',');
    o->count_c = ptx_x_values(x, type_c, o->c, 8);
    return !x->p->why.error;
}

bool ptx_mma_wrong_count(struct ptx_expand *x)
{
    return ptx_fail(x->p, -EINVAL, x->opcode, "'%.*s' with the wrong number of registers",
                    PTX_TEXT(x->opcode));
}

/* Takes `count` elements as 32-bit accumulators; if there are half as many registers, they hold
 * pairs of f16. */
static void take_accumulators(struct ptx_expand *x, const struct operands *o, bool halves,
                              unsigned count, struct ir_src *c)
{
    for (unsigned q = 0; q < count; q++) {
        if (!halves)
            c[q] = o->c[q];
        else if (q % 2 == 0)
            ptx_mma_widen(x, o->c[q / 2], c + q);
    }
}

static void give_accumulators(struct ptx_expand *x, const struct operands *o, bool halves,
                              unsigned count, const struct ir_src *d)
{
    for (unsigned q = 0; q < count; q++) {
        if (!halves)
            ptx_x_move(x, IR_B32, o->d[q], d[q]);
        else if (q % 2 == 0)
            narrow(x, d + q, o->d[q / 2]);
    }
}

/* The 64-bit value that lane `lane` has. */
static struct ir_src shuffle64(struct ptx_expand *x, struct ir_src v, struct ir_src lane)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_UNPACK, IR_B64);
    i.dst_count = 2;
    i.dst[0] = ptx_x_register(x, IR_B32);
    i.dst[1] = ptx_x_register(x, IR_B32);
    i.src_count = 1;
    i.src[0] = v;
    ptx_x_append(x, &i);
    struct ir_instr pack = ptx_x_instr(x, IR_OP_PACK, IR_B64);
    pack.src_count = 2;
    pack.src[0] = ptx_x_shuffle(x, ir_src_reg(i.dst[0]), lane);
    pack.src[1] = ptx_x_shuffle(x, ir_src_reg(i.dst[1]), lane);
    pack.dst_count = 1;
    pack.dst[0] = ptx_x_register(x, IR_B64);
    ptx_x_append(x, &pack);
    return ir_src_reg(pack.dst[0]);
}

/* For f64, lane 4 g + t has A[g + 8 h][t + 4 s] (steps s of rows h), B[t + 4 s][g], C[g + 8 h][2 t]
 * and C[g + 8 h][2 t + 1]. */
static void emit_f64(struct ptx_expand *x, const struct operands *o, enum ir_round round)
{
    struct ir_src lane = ptx_x_sreg(x, IR_SREG_LANEID), acc[4], a[2];
    struct ir_src row = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(28));
    struct ir_src pair = ptx_x_op2(x, IR_OP_AND, IR_B32, lane, ptx_x_imm(3));
    unsigned rows = o->count_c / 2;
    memcpy(acc, o->c, sizeof(acc));
    for (unsigned k = 0; k < 4 * o->count_b; k++) {
        struct ir_src from = ptx_x_op2(x, IR_OP_OR, IR_B32, row, ptx_x_imm(k % 4));
        for (unsigned h = 0; h < rows; h++)
            a[h] = shuffle64(x, o->a[k / 4 * rows + h], from);
        for (unsigned q = 0; q < 2; q++) {
            from = ptx_x_mad(x, IR_U32, pair, ptx_x_imm(8), ptx_x_imm(4 * q + k % 4));
            struct ir_src b = shuffle64(x, o->b[k / 4], from);
            for (unsigned h = 0; h < rows; h++) {
                struct ir_instr i = ptx_x_instr(x, IR_OP_FMA, IR_F64);
                i.round = (uint8_t)round;
                i.src_count = 3;
                i.src[0] = a[h];
                i.src[1] = b;
                i.src[2] = acc[2 * h + q];
                i.dst_count = 1;
                i.dst[0] = ptx_x_register(x, IR_F64);
                ptx_x_append(x, &i);
                acc[2 * h + q] = ir_src_reg(i.dst[0]);
            }
        }
    }
    for (unsigned q = 0; q < o->count_d; q++)
        ptx_x_move(x, IR_F64, o->d[q], acc[q]);
}

/* --- the two instructions --------------------------------------------------------------------- */

/* Types of D, A, B and C in the order of the text. wmma with f16 leaves out A and B. */
struct types {
    const struct ptx_mma_kind *a, *b;
    bool half_d, half_c;
    bool f64;
    uint8_t round;
    uint8_t c; /* enum ir_type of the registers of C: numbers among them need it */
};

static bool take_types(struct ptx_expand *x, bool short_form, struct types *t)
{
    const struct ptx_token *d = ptx_x_take_next(x), *a = ptx_x_take_next(x),
                           *b = ptx_x_take_next(x), *c = ptx_x_take_next(x);
    static const struct ptx_token f16 = { .text = "f16", .length = 3 };
    if (short_form && a && !b) { /* .f32.f32: D and C */
        c = a;
        a = b = &f16;
    }
    t->a = ptx_mma_find_kind(a);
    t->b = ptx_mma_find_kind(b);
    if (!t->a || !t->b || !c)
        return false;
    bool whole = t->a->mma >= IR_MMA_S8 && t->a->mma != IR_MMA_F64;
    t->half_d = ptx_mma_is(d, "f16");
    t->half_c = ptx_mma_is(c, "f16");
    t->f64 = t->a->mma == IR_MMA_F64;
    t->c = whole || t->half_c ? IR_B32 : IR_F32;
    const char *accumulator = t->f64 ? "f64" : whole ? "s32" : "f32";
    bool halves = t->a->mma == IR_MMA_F16 || t->a->mma == IR_MMA_E4M3 || t->a->mma == IR_MMA_E5M2;
    bool fits = (t->half_d && halves) || ptx_mma_is(d, accumulator);
    fits = fits && ((t->half_c && halves) || ptx_mma_is(c, accumulator));
    return fits && (t->a == t->b || (t->a->bits == t->b->bits && t->a->bits < 16));
}

/* .and.popc or .xor.popc of b1; .satfinite of integers. */
static void take_operation(struct ptx_expand *x, struct product *p)
{
    p->bits_op = ptx_x_take(x, "and") ? IR_MMA_B1_AND : IR_MMA_B1_XOR;
    ptx_x_take(x, "xor");
    ptx_x_take(x, "popc");
    p->saturate = ptx_x_take(x, "satfinite");
}

static uint8_t take_rounding(struct ptx_expand *x)
{
    static const char *const names[] = { "rn", "rz", "rm", "rp" };
    static const uint8_t rounds[] = { IR_ROUND_N, IR_ROUND_Z, IR_ROUND_M, IR_ROUND_P };
    int r = ptx_x_take_one(x, names, 4);
    return r < 0 ? IR_ROUND_N : rounds[r];
}

static bool finish_f64(struct ptx_expand *x, const unsigned shape[3], const struct types *t)
{
    struct operands o;
    unsigned rows = shape[0] / 8, steps = shape[2] / 4;
    bool tall = shape[0] == 16 && (shape[2] == 4 || shape[2] == 8 || shape[2] == 16);
    if (shape[1] != 8 || (!tall && (shape[0] != 8 || shape[2] != 4)))
        return ptx_x_refuse(x);
    if (!parse_operands(x, IR_F64, IR_F64, IR_F64, &o))
        return false;
    if (o.count_d != 2 * rows || o.count_a != rows * steps || o.count_b != steps ||
        o.count_c != 2 * rows)
        return ptx_mma_wrong_count(x);
    emit_f64(x, &o, (enum ir_round)t->round);
    return true;
}

/* m8n8k4 of f16 */
static bool finish_quads(struct ptx_expand *x, const struct types *t, bool rows_a, bool rows_b)
{
    struct operands o;
    struct ptx_mma_quads m = {
        .rows_a = rows_a, .rows_b = rows_b, .half_c = t->half_c, .half_d = t->half_d
    };
    if (t->half_d && !t->half_c)
        return ptx_x_refuse(x);
    if (!parse_operands(x, IR_B32, IR_B32, t->c, &o))
        return false;
    if (o.count_a != 2 || o.count_b != 2 || o.count_c != 8u >> t->half_c ||
        o.count_d != 8u >> t->half_d)
        return ptx_mma_wrong_count(x);
    memcpy(m.a, o.a, sizeof(m.a));
    memcpy(m.b, o.b, sizeof(m.b));
    memcpy(m.c, o.c, o.count_c * sizeof(*m.c));
    struct ir_src d[8];
    ptx_mma_quads(x, &m, d);
    give_accumulators(x, &o, t->half_d, 8, d);
    return true;
}

/* Takes .row and .col of A and of B: whether the elements of A's rows and of B's rows lie
 * together. */
static bool take_layouts(struct ptx_expand *x, bool *rows_a, bool *rows_b)
{
    unsigned found = 0;
    bool *const rows[2] = { rows_a, rows_b };
    for (unsigned m = 0; m < x->count && found < 2; m++) {
        bool row = ptx_text_is(&x->modifiers[m], "row");
        if (!row && !ptx_text_is(&x->modifiers[m], "col"))
            continue;
        x->taken |= 1u << m;
        *rows[found++] = row;
    }
    return found == 2;
}

/* Takes the metadata and the selector that end the operands of mma.sp. */
static bool parse_sparse(struct ptx_expand *x, const struct product *p, const struct operands *o,
                         struct ptx_mma_sparse *m)
{
    *m = (struct ptx_mma_sparse) { .steps = p->steps, .wide = p->a->bits >= 16 };
    memcpy(m->a, o->a, o->count_a * sizeof(*m->a));
    struct ir_src selector;
    if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B32, 0, &m->metadata) ||
        !ptx_expect(x->p, ','))
        return false;
    struct ptx_token at = x->p->token;
    if (!ptx_parse_source(x->p, IR_U32, 0, &selector))
        return false;
    if (selector.kind != IR_SRC_IMM || selector.bits >= 4 / ptx_mma_metadata_lanes(m))
        return ptx_fail(x->p, -EINVAL, &at, "no such lanes have metadata");
    m->selector = (unsigned)selector.bits;
    return true;
}

/* mma and mma.sp with 16 rows, and mma of integers with 8. */
static bool finish_steps(struct ptx_expand *x, struct product *p, const struct types *t,
                         const unsigned shape[3], bool sparse)
{
    unsigned rows = shape[0] / 8, most = sparse ? 4 : 2;
    bool whole = p->a->mma >= IR_MMA_S8;
    p->steps = shape[2] / step_k(p->a);
    bool fits = shape[1] == 8 && shape[2] % step_k(p->a) == 0 &&
                (shape[0] == 16 || (shape[0] == 8 && whole && !sparse));
    if (sparse) {
        bool small = p->a->mma == IR_MMA_E4M3 || p->a->mma == IR_MMA_E5M2;
        fits = fits && p->a->bits > 1 && (p->steps == 4 || (p->steps == 2 && !small));
    }
    if (!fits || p->steps < 1 || p->steps > most)
        return ptx_x_refuse(x);
    struct operands o;
    if (!parse_operands(x, IR_B32, IR_B32, t->c, &o))
        return false;
    unsigned count = 2 * rows;
    if (o.count_a != (sparse ? p->steps : p->steps * rows) || o.count_b != p->steps ||
        o.count_d != count >> t->half_d || o.count_c != count >> t->half_c)
        return ptx_mma_wrong_count(x);
    struct ptx_mma_sparse m;
    if (sparse && !parse_sparse(x, p, &o, &m))
        return false;
    if (sparse)
        ptx_mma_spread(x, &m, o.a);
    struct ir_src c[4] = { { 0 } }, d[4];
    take_accumulators(x, &o, t->half_c, count, c);
    emit_steps(x, p, o.a, o.b, c, d, rows == 1);
    give_accumulators(x, &o, t->half_d, count, d);
    return true;
}

bool ptx_x_mma(struct ptx_expand *x)
{
    unsigned shape[3];
    struct types t = { 0 };
    struct product p = { 0 };
    bool rows_a = false, rows_b = false;
    bool sparse = ptx_x_take(x, "sp") || ptx_x_take(x, "sp::ordered_metadata");
    bool right = ptx_x_take(x, "sync") && ptx_x_take(x, "aligned") &&
                 ptx_mma_take_shape(x, shape) && take_layouts(x, &rows_a, &rows_b);
    ptx_x_take(x, "kind::f8f6f4");
    t.round = take_rounding(x);
    take_operation(x, &p);
    if (!right || !take_types(x, false, &t))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    if (!sparse && shape[0] == 8 && shape[2] == 4 && t.a->mma == IR_MMA_F16)
        return shape[1] == 8 ? finish_quads(x, &t, rows_a, rows_b) : ptx_x_refuse(x);
    if (!rows_a || rows_b || (sparse && t.f64))
        return ptx_x_refuse(x);
    if (t.f64)
        return finish_f64(x, shape, &t);
    p.a = t.a;
    p.b = t.b;
    return finish_steps(x, &p, &t, shape, sparse);
}

bool ptx_mma_find_tiling(const unsigned shape[3], const struct ptx_mma_kind *k,
                         struct ptx_tiling *out)
{
    static const struct {
        unsigned m, n;
        struct ptx_tiling tiling;
    } all[] = {
        { 16, 16, { 1, 2, false, false } },
        { 32, 8, { 2, 1, false, false } },
        { 8, 32, { 2, 1, true, false } },
        { 8, 8, { 1, 1, false, true } },
    };
    bool wide = k->bits >= 8 && k->bits < 64;
    unsigned depth = k->bits == 64 ? 4 : wide ? (k->bits == 32 ? 8 : 16) : step_k(k);
    for (size_t i = 0; i < GM_ARRAY_LEN(all); i++) {
        *out = all[i].tiling;
        if (all[i].m == shape[0] && all[i].n == shape[1] && shape[2] == depth)
            return wide != out->half && (k->bits != 32 || i == 0);
    }
    return false;
}

unsigned ptx_mma_fragment(const struct ptx_mma_kind *k, unsigned used)
{
    return k->mma == IR_MMA_F16 ? 8 : used;
}

bool ptx_mma_multiply(struct ptx_expand *x)
{
    unsigned shape[3];
    struct types t = { 0 };
    struct product p = { 0 };
    struct ptx_tiling tiling;
    bool right = ptx_mma_take_sync(x) && ptx_mma_take_shape(x, shape);
    bool row_a = ptx_x_take(x, "row"), row_b = row_a && ptx_x_take(x, "row");
    right = right && (row_a || row_b || ptx_x_take(x, "col")) &&
            (row_b || ptx_x_take(x, "col") || row_a);
    t.round = take_rounding(x);
    take_operation(x, &p);
    if (!right || !take_types(x, true, &t) || !ptx_mma_find_tiling(shape, t.a, &tiling))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    if (t.f64)
        return finish_f64(x, shape, &t);
    p.a = tiling.transposed ? t.b : t.a;
    p.b = tiling.transposed ? t.a : t.b;
    p.steps = shape[2] / step_k(p.a);
    struct operands o;
    if (!parse_operands(x, IR_B32, IR_B32, t.c, &o))
        return false;
    unsigned in_a = p.steps * tiling.rows * (tiling.half ? 1 : 2), in_b = p.steps * tiling.columns;
    unsigned count = tiling.half ? 2 : 4 * tiling.rows * tiling.columns;
    unsigned want_a = ptx_mma_fragment(t.a, tiling.transposed ? in_b : in_a);
    unsigned want_b = ptx_mma_fragment(t.b, tiling.transposed ? in_a : in_b);
    if (o.count_a != want_a || o.count_b != want_b || o.count_d != count >> t.half_d ||
        o.count_c != count >> t.half_c)
        return ptx_mma_wrong_count(x);
    const struct ir_src *a = tiling.transposed ? o.b : o.a, *b = tiling.transposed ? o.a : o.b;
    struct ir_src c[8] = { { 0 } }, d[8];
    take_accumulators(x, &o, t.half_c, count, c);
    for (unsigned r = 0; r < tiling.rows; r++) {
        for (unsigned n = 0; n < tiling.columns; n++) {
            unsigned at = 4 * (r * tiling.columns + n);
            emit_steps(x, &p, a + r * 2 * p.steps, b + n * p.steps, c + at, d + at, tiling.half);
        }
    }
    give_accumulators(x, &o, t.half_d, count, d);
    return true;
}
