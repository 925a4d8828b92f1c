/*
 * Forms of instructions that newer versions of PTX added: cache hints, clusters (here of one
 * block), arithmetic on pairs of f32, minima and maxima of f32 over lanes. And which instructions
 * are expanded only with some modifiers.
 */
#include "device/soft/ptx/expand.h"

/* --- hints ------------------------------------------------------------------------------------ */

static bool skip_address(struct ptx_expand *x)
{
    enum ir_space space = IR_SPACE_GENERIC;
    enum ir_type type;
    int64_t displacement;
    ptx_x_address(x, &space, &type, &displacement);
    return !x->p->why.error;
}

/* A policy is a number that only caches use. */
bool ptx_x_policy(struct ptx_expand *x)
{
    bool range = ptx_x_take(x, "range"), converts = !range && ptx_x_take(x, "cvt");
    uint32_t to;
    if (!range && !converts && !ptx_x_take(x, "fractional"))
        return ptx_x_refuse(x);
    while (ptx_x_take_next(x))
        continue;
    if (!ptx_parse_register(x->p, IR_B64, false, &to))
        return false;
    ptx_x_move(x, IR_B64, to, ptx_x_imm(0));
    if (range)
        return ptx_expect(x->p, ',') && skip_address(x) && ptx_x_skip_source(x, IR_U32) &&
               ptx_x_skip_source(x, IR_U32);
    if (converts)
        return ptx_x_skip_source(x, IR_B64);
    return !ptx_token_is(&x->p->token, ',') || ptx_x_skip_source(x, IR_F32);
}

/* applypriority, discard: [at], bytes. Memory that was discarded may have any contents. */
bool ptx_x_hint(struct ptx_expand *x)
{
    uint64_t bytes;
    while (ptx_x_take_next(x))
        continue;
    return skip_address(x) && ptx_expect(x->p, ',') &&
           ptx_expect_uint(x->p, 128, &bytes, "number of bytes");
}

/* prefetch.tensormap [at] */
static bool prefetch_map(struct ptx_expand *x)
{
    while (ptx_x_take_next(x))
        continue;
    return skip_address(x);
}

/* --- clusters --------------------------------------------------------------------------------- */

/* The address in another block of the cluster: the cluster has only this block. */
bool ptx_x_mapa(struct ptx_expand *x)
{
    static const char *const types[] = { "u32", "u64" };
    ptx_x_take(x, "shared::cluster");
    enum ir_type type = ptx_x_take_one(x, types, 2) == 0 ? IR_U32 : IR_U64;
    uint32_t to;
    struct ir_src at;
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, type, false, &to) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, type, PTX_O_SYMBOL, &at) ||
        !ptx_x_skip_source(x, IR_U32))
        return false;
    ptx_x_move(x, type, to, at);
    return true;
}

bool ptx_x_rank(struct ptx_expand *x)
{
    static const char *const types[] = { "u32", "u64" };
    ptx_x_take(x, "shared::cluster");
    enum ir_type type = ptx_x_take_one(x, types, 2) == 0 ? IR_U32 : IR_U64;
    uint32_t to;
    struct ir_src at;
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_U32, false, &to) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, type, PTX_O_SYMBOL, &at))
        return false;
    ptx_x_move(x, IR_U32, to, ptx_x_imm(0));
    return true;
}

/* barrier.cluster. A thread that arrives goes on; it waits at the block's barrier. */
static bool cluster_barrier(struct ptx_expand *x)
{
    static const char *const orders[] = { "release", "relaxed", "acquire" };
    ptx_x_take(x, "cluster");
    bool waits = ptx_x_take(x, "wait");
    if (!waits && !ptx_x_take(x, "arrive"))
        return ptx_x_refuse(x);
    ptx_x_take_one(x, orders, 3);
    ptx_x_take(x, "aligned");
    if (!ptx_x_taken_all(x) || !waits)
        return !x->p->why.error;
    struct ir_instr i = ptx_x_instr(x, IR_OP_BAR, IR_VOID);
    i.mode = IR_BAR_SYNC;
    i.src_count = 1;
    i.src[0] = ptx_x_imm(0);
    ptx_x_append(x, &i);
    return true;
}

/* Fences between kinds of accesses, or for some accesses only. Here accesses are of one kind, and a
 * fence holds for all. */
static bool fence(struct ptx_expand *x)
{
    uint64_t bytes;
    while (ptx_x_take_next(x))
        continue;
    if (ptx_token_is(&x->p->token, '[') &&
        (!skip_address(x) || !ptx_expect(x->p, ',') ||
         !ptx_expect_uint(x->p, UINT32_MAX, &bytes, "number of bytes")))
        return false;
    struct ir_instr i = ptx_x_instr(x, IR_OP_FENCE, IR_VOID);
    i.order = IR_ORDER_ACQ_REL;
    i.scope = IR_SCOPE_GPU;
    ptx_x_append(x, &i);
    return true;
}

static bool floats(struct ptx_expand *x, enum ir_op op, unsigned count)
{
    static const char *const rounds[] = { "rn", "rz", "rm", "rp" };
    static const uint8_t values[] = { IR_ROUND_N, IR_ROUND_Z, IR_ROUND_M, IR_ROUND_P };
    int round = ptx_x_take_one(x, rounds, 4);
    bool ftz = ptx_x_take(x, "ftz");
    uint32_t to, parts[3][2], result[2];
    ptx_x_take(x, "f32x2");
    if (op == IR_OP_FMA && round < 0)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_B64, false, &to))
        return false;
    for (unsigned k = 0; k < count; k++) {
        struct ir_instr i = ptx_x_instr(x, IR_OP_UNPACK, IR_B64);
        if (!ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_B64, 0, &i.src[0]))
            return false;
        i.src_count = 1;
        i.dst_count = 2;
        for (unsigned h = 0; h < 2; h++)
            i.dst[h] = parts[k][h] = ptx_x_register(x, IR_F32);
        ptx_x_append(x, &i);
    }
    for (unsigned h = 0; h < 2; h++) {
        struct ir_instr i = ptx_x_instr(x, op, IR_F32);
        i.round = round < 0 ? IR_ROUND_N : values[round];
        i.flags = (uint16_t)(i.flags | (ftz ? IR_F_FTZ : 0));
        i.src_count = (uint8_t)count;
        for (unsigned k = 0; k < count; k++)
            i.src[k] = ir_src_reg(parts[k][h]);
        i.dst_count = 1;
        i.dst[0] = result[h] = ptx_x_register(x, IR_F32);
        ptx_x_append(x, &i);
    }
    struct ir_instr i = ptx_x_instr(x, IR_OP_PACK, IR_B64);
    i.src_count = 2;
    i.src[0] = ir_src_reg(result[0]);
    i.src[1] = ir_src_reg(result[1]);
    i.dst_count = 1;
    i.dst[0] = to;
    ptx_x_append(x, &i);
    return true;
}

static bool add_pair(struct ptx_expand *x)
{
    return floats(x, IR_OP_ADD, 2);
}

static bool sub_pair(struct ptx_expand *x)
{
    return floats(x, IR_OP_SUB, 2);
}

static bool mul_pair(struct ptx_expand *x)
{
    return floats(x, IR_OP_MUL, 2);
}

static bool fma_pair(struct ptx_expand *x)
{
    return floats(x, IR_OP_FMA, 3);
}

/* max.f32 d, a, b, c and min.f32: of the first two, then of that and the third. With .abs of their
 * absolute values. */
static bool of_three(struct ptx_expand *x, enum ir_op op)
{
    bool ftz = ptx_x_take(x, "ftz"), nan = ptx_x_take(x, "NaN"), abs = ptx_x_take(x, "abs");
    uint32_t to;
    struct ir_src v[3];
    if (!ptx_x_take(x, "f32"))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    ptx_x_destinations(x, IR_F32, false, 1, &to);
    ptx_expect(x->p, ',');
    ptx_x_sources(x, IR_F32, false, 3, v);
    if (x->p->why.error)
        return false;
    for (unsigned k = 0; k < 3 && abs; k++)
        v[k] = ptx_x_op2(x, IR_OP_AND, IR_B32, v[k], ptx_x_imm(0x7fffffff));
    for (unsigned k = 1; k < 3; k++) {
        struct ir_instr i = ptx_x_instr(x, op, IR_F32);
        i.flags = (uint16_t)(i.flags | (ftz ? IR_F_FTZ : 0) | (nan ? IR_F_NAN : 0));
        i.src_count = 2;
        i.src[0] = v[0];
        i.src[1] = v[k];
        i.dst_count = 1;
        i.dst[0] = k == 2 ? to : ptx_x_register(x, IR_F32);
        v[0] = ir_src_reg(i.dst[0]);
        ptx_x_append(x, &i);
    }
    return true;
}

static bool min_of_three(struct ptx_expand *x)
{
    return of_three(x, IR_OP_MIN);
}

static bool max_of_three(struct ptx_expand *x)
{
    return of_three(x, IR_OP_MAX);
}

/* --- lanes ------------------------------------------------------------------------------------ */

/* Turns the bits of an f32 into an integer of the same order, and back. */
static struct ir_src ordered(struct ptx_expand *x, struct ir_src v)
{
    struct ir_src sign = ptx_x_op2(x, IR_OP_SHR, IR_S32, v, ptx_x_imm(31));
    return ptx_x_op2(x, IR_OP_XOR, IR_B32, v,
                     ptx_x_op2(x, IR_OP_AND, IR_B32, sign, ptx_x_imm(INT32_MAX)));
}

/* redux.sync.min{.abs}{.NaN}.f32. A NaN becomes the value that never wins or (.NaN) always wins; as
 * a result both stand for NaN. */
static bool reduce_floats(struct ptx_expand *x)
{
    bool sync = ptx_x_take(x, "sync"), min = ptx_x_take(x, "min"),
         max = !min && ptx_x_take(x, "max");
    bool abs = ptx_x_take(x, "abs"), nan = ptx_x_take(x, "NaN");
    uint32_t to;
    struct ir_src v, mask;
    ptx_x_take(x, "f32");
    if (!sync || (!min && !max))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x) || !ptx_parse_register(x->p, IR_F32, false, &to) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_F32, 0, &v) ||
        !ptx_expect(x->p, ',') || !ptx_parse_source(x->p, IR_U32, 0, &mask))
        return false;
    struct ir_src size = ptx_x_op2(x, IR_OP_AND, IR_B32, v, ptx_x_imm(INT32_MAX));
    struct ir_instr test = ptx_x_instr(x, IR_OP_SETP, IR_U32);
    test.cmp = IR_CMP_GT;
    test.dst_count = 1;
    test.dst[0] = ptx_x_register(x, IR_PRED);
    test.src_count = 2;
    test.src[0] = size;
    test.src[1] = ptx_x_imm(0x7f800000);
    ptx_x_append(x, &test);
    struct ir_src end = ptx_x_imm(min != nan ? INT32_MAX : 0x80000000u);
    struct ir_instr i = ptx_x_instr(x, IR_OP_REDUX, IR_S32);
    i.flags = (uint16_t)(i.flags | IR_F_SYNC);
    i.mode = min ? IR_ATOM_MIN : IR_ATOM_MAX;
    i.src_count = 2;
    i.src[0] =
        ptx_x_op3(x, IR_OP_SELP, IR_B32, end, ordered(x, abs ? size : v), ir_src_reg(test.dst[0]));
    i.src[1] = mask;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_S32);
    ptx_x_append(x, &i);
    struct ir_src bits = ordered(x, ir_src_reg(i.dst[0]));
    /* the canonical NaN */
    test.src[0] = ptx_x_op2(x, IR_OP_AND, IR_B32, bits, ptx_x_imm(INT32_MAX));
    test.dst[0] = ptx_x_register(x, IR_PRED);
    ptx_x_append(x, &test);
    ptx_x_move(
        x, IR_B32, to,
        ptx_x_op3(x, IR_OP_SELP, IR_B32, ptx_x_imm(INT32_MAX), bits, ir_src_reg(test.dst[0])));
    return true;
}

/* --- which ------------------------------------------------------------------------------------ */

static bool follows(const struct ptx_parser *p, const char *word)
{
    struct ptx_lexer ahead = p->lexer;
    for (struct ptx_token t = p->token; t.kind == PTX_DOT; ptx_lexer_next(&ahead, &t))
        if (ptx_text_is(&t, word))
            return true;
    return false;
}

/* Whether the instruction that begins here has so many operands. */
static bool has_operands(const struct ptx_parser *p, unsigned count)
{
    struct ptx_lexer ahead = p->lexer;
    struct ptx_token t = p->token;
    unsigned commas = 0;
    for (; t.kind != PTX_END && !ptx_token_is(&t, ';'); ptx_lexer_next(&ahead, &t))
        commas += ptx_token_is(&t, ',');
    return commas + 1 == count;
}

ptx_expansion *ptx_x_newer(const struct ptx_parser *p, uint8_t op)
{
    static const struct {
        uint8_t op;
        const char *word; /* a modifier that selects this expansion */
        ptx_expansion *run;
        const char *second; /* another modifier that must be there; NULL: any or none */
    } all[] = {
        { IR_OP_FENCE, "sync_restrict::shared::cta", fence },
        { IR_OP_FENCE, "sync_restrict::shared::cluster", fence },
        { IR_OP_MOV, "b128", ptx_x_move_128 },
        { IR_OP_MOV, "v2", ptx_x_move_vector },
        { IR_OP_MOV, "v4", ptx_x_move_vector },
        { IR_OP_MOV, "v8", ptx_x_move_vector },
        { IR_OP_LD, "v8", ptx_x_wide_load },
        { IR_OP_LD, "v4", ptx_x_wide_load, "b64" },
        { IR_OP_LD, "v4", ptx_x_wide_load, "u64" },
        { IR_OP_LD, "v4", ptx_x_wide_load, "s64" },
        { IR_OP_LD, "v4", ptx_x_wide_load, "f64" },
        { IR_OP_ST, "v8", ptx_x_wide_store },
        { IR_OP_ST, "v4", ptx_x_wide_store, "b64" },
        { IR_OP_ST, "v4", ptx_x_wide_store, "u64" },
        { IR_OP_ST, "v4", ptx_x_wide_store, "s64" },
        { IR_OP_ST, "v4", ptx_x_wide_store, "f64" },
        { IR_OP_CVT, "pack", ptx_x_pack },
        { IR_OP_RED, "async", ptx_x_red_async },
        { IR_OP_ST, "async", ptx_x_st_async },
        { IR_OP_ATOM, "v2", ptx_x_vector_atom },
        { IR_OP_ATOM, "v4", ptx_x_vector_atom },
        { IR_OP_ATOM, "v8", ptx_x_vector_atom },
        { IR_OP_RED, "v2", ptx_x_vector_red },
        { IR_OP_RED, "v4", ptx_x_vector_red },
        { IR_OP_RED, "v8", ptx_x_vector_red },
        { IR_OP_BARRIER, "cluster", cluster_barrier },
        { IR_OP_FENCE, "mbarrier_init", fence },
        { IR_OP_REDUX, "f32", reduce_floats },
        { IR_OP_ADD, "f32x2", add_pair },
        { IR_OP_SUB, "f32x2", sub_pair },
        { IR_OP_MUL, "f32x2", mul_pair },
        { IR_OP_FMA, "f32x2", fma_pair },
        { IR_OP_ADD, "f32", ptx_x_mixed, "f16" },
        { IR_OP_ADD, "f32", ptx_x_mixed, "bf16" },
        { IR_OP_SUB, "f32", ptx_x_mixed, "f16" },
        { IR_OP_SUB, "f32", ptx_x_mixed, "bf16" },
        { IR_OP_FMA, "f32", ptx_x_mixed, "f16" },
        { IR_OP_FMA, "f32", ptx_x_mixed, "bf16" },
        { IR_OP_FENCE, "proxy", fence },
        { IR_OP_MEMBAR, "proxy", fence },
        { IR_OP_PREFETCH, "tensormap", prefetch_map },
        { IR_OP_FENCE, "proxy::alias", fence },
    };
    if ((op == IR_OP_MIN || op == IR_OP_MAX) && has_operands(p, 4))
        return op == IR_OP_MIN ? min_of_three : max_of_three;
    for (size_t k = 0; k < GM_ARRAY_LEN(all); k++)
        if (all[k].op == op && follows(p, all[k].word) &&
            (!all[k].second || follows(p, all[k].second)))
            return all[k].run;
    return NULL;
}
