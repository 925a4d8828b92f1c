/*
 * Vectors in memory that are wider than other instructions' operands, or that atomics work on: done
 * by pieces.
 */
#include "device/soft/ptx/expand.h"

/* --- atomics ---------------------------------------------------------------------------------- */

/* The element at `at` becomes what `op` makes of it and `v`. That is tried until nobody has changed
 * the element meanwhile. */
static void exchange(struct ptx_expand *x, const struct ir_instr *at, enum ir_op op,
                     struct ir_src v)
{
    const enum ir_type bits = ir_types[at->type].size == 2 ? IR_B16 : IR_B32;
    const uint32_t old = ptx_x_register(x, bits), again = ptx_x_label(x);
    struct ir_instr cas = *at;
    ptx_x_load(x, (enum ir_space)at->space, bits, old, ir_src_reg(at->address.base),
               at->address.displacement);
    ptx_x_place(x, again);
    cas.op = IR_OP_ATOM;
    cas.type = (uint8_t)bits;
    cas.mode = IR_ATOM_CAS;
    cas.src_count = 2;
    cas.src[0] = ir_src_reg(old);
    cas.src[1] = ptx_x_op2(x, op, (enum ir_type)at->type, cas.src[0], v);
    cas.dst_count = 1;
    cas.dst[0] = ptx_x_register(x, bits);
    ptx_x_append(x, &cas);
    const struct ir_src found = ir_src_reg(cas.dst[0]);
    const struct ir_src changed =
        ptx_x_compare(x, IR_CMP_NE, bits == IR_B16 ? IR_U16 : IR_U32, found, ir_src_reg(old));
    ptx_x_move(x, bits, old, found);
    ptx_x_branch(x, again, changed.index, false);
    if (at->dst_count)
        ptx_x_move(x, bits, at->dst[0], ir_src_reg(old));
}

/* atom.add.v2.f32 {d, d}, [a], {b, b}; red.max.noftz.v4.f16x2 [a], {b, b, b, b}. Each element is an
 * atomic operation of its own. */
static bool vector_atomic(struct ptx_expand *x, enum ir_op op)
{
    static const char *const orders[] = { "relaxed", "acquire", "release", "acq_rel" };
    static const char *const scopes[] = { "cta", "cluster", "gpu", "sys" };
    static const char *const vectors[] = { "v2", "v4", "v8" };
    static const char *const names[] = { "f32", "f16", "bf16", "f16x2", "bf16x2" };
    static const uint8_t types[] = { IR_F32, IR_F16, IR_BF16, IR_F16X2, IR_BF16X2 };
    static const char *const operations[] = { "add", "min", "max" };
    enum ir_space space = ptx_x_take(x, "global") ? IR_SPACE_GLOBAL : IR_SPACE_GENERIC;
    enum ir_type base_type;
    int64_t displacement;
    int order = ptx_x_take_one(x, orders, 4);
    ptx_x_take_one(x, scopes, 4);
    const int operation = ptx_x_take_one(x, operations, 3);
    bool noftz = ptx_x_take(x, "noftz"), policy = ptx_x_take(x, "L2::cache_hint");
    unsigned want = 2u << ptx_x_take_one(x, vectors, 3);
    int type = ptx_x_take_one(x, names, 5);
    if (operation < 0 || type < 0 || noftz != (type > 0) || (operation > 0 && type == 0) ||
        want * ir_types[types[type]].size > 16)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    const uint32_t over = operation > 0 ? ptx_x_begin_loops(x) : IR_NONE;
    uint32_t to[8];
    struct ir_src by[8];
    struct ptx_token at = x->p->token;
    unsigned results = op == IR_OP_ATOM ? ptx_x_registers(x, types[type], to, 8) : 0;
    if (op == IR_OP_ATOM)
        ptx_expect(x->p, ',');
    struct ir_src base = ptx_x_address(x, &space, &base_type, &displacement);
    ptx_expect(x->p, ',');
    unsigned values = ptx_x_values(x, types[type], by, 8);
    if (x->p->why.error || (policy && !ptx_x_skip_source(x, IR_B64)))
        return false;
    if (values != want || (op == IR_OP_ATOM && results != want))
        return ptx_fail(x->p, -EINVAL, &at, "a vector of %u is wanted", want);
    for (unsigned k = 0; k < want; k++) {
        struct ir_instr i = ptx_x_instr(x, op, types[type]);
        i.mode = IR_ATOM_ADD;
        i.space = (uint8_t)space;
        i.order = order > 0 ? IR_ORDER_ACQ_REL : IR_ORDER_RELAXED;
        i.scope = IR_SCOPE_GPU;
        i.address.base = base.index;
        i.address.displacement = displacement + (int64_t)(k * ir_types[types[type]].size);
        i.src_count = 1;
        i.src[0] = by[k];
        i.dst_count = op == IR_OP_ATOM;
        i.dst[0] = op == IR_OP_ATOM ? to[k] : IR_NONE;
        if (operation > 0)
            exchange(x, &i, operation == 1 ? IR_OP_MIN : IR_OP_MAX, by[k]);
        else
            ptx_x_append(x, &i);
    }
    if (operation > 0)
        ptx_x_place(x, over);
    return true;
}

bool ptx_x_vector_atom(struct ptx_expand *x)
{
    return vector_atomic(x, IR_OP_ATOM);
}

bool ptx_x_vector_red(struct ptx_expand *x)
{
    return vector_atomic(x, IR_OP_RED);
}

/* --- loads and stores ------------------------------------------------------------------------- */

/* ld.global.v8.f32, st.global.v4.b64, ld.v8.b8: done in two halves. */
static bool wide_access(struct ptx_expand *x, enum ir_op op)
{
    static const char *const scopes[] = { "cta", "cluster", "gpu", "sys" };
    static const char *const hints[] = { "nc",
                                         "weak",
                                         "ca",
                                         "cg",
                                         "cs",
                                         "lu",
                                         "cv",
                                         "wb",
                                         "wt",
                                         "L1::evict_normal",
                                         "L1::evict_unchanged",
                                         "L1::evict_first",
                                         "L1::evict_last",
                                         "L1::no_allocate",
                                         "L2::evict_normal",
                                         "L2::evict_first",
                                         "L2::evict_last",
                                         "L2::64B",
                                         "L2::128B",
                                         "L2::256B" };
    enum ir_space space = ptx_x_take(x, "global")  ? IR_SPACE_GLOBAL
                          : ptx_x_take_shared(x)   ? IR_SPACE_SHARED
                          : ptx_x_take(x, "local") ? IR_SPACE_LOCAL
                          : ptx_x_take(x, "const") ? IR_SPACE_CONST
                                                   : IR_SPACE_GENERIC;
    struct ir_instr i = ptx_x_instr(x, op, IR_B32);
    enum ir_type base_type;
    int64_t displacement;
    unsigned want = ptx_x_take(x, "v8") ? 8 : 4;
    ptx_x_take(x, "v4");
    i.order = ptx_x_take(x, "volatile")  ? IR_ORDER_VOLATILE
              : ptx_x_take(x, "relaxed") ? IR_ORDER_RELAXED
              : ptx_x_take(x, "acquire") ? IR_ORDER_ACQUIRE
              : ptx_x_take(x, "release") ? IR_ORDER_RELEASE
                                         : IR_ORDER_WEAK;
    ptx_x_take_one(x, scopes, 4);
    bool policy = ptx_x_take(x, "L2::cache_hint");
    while (ptx_x_take_one(x, hints, GM_ARRAY_LEN(hints)) >= 0)
        continue;
    for (i.type = IR_B8; i.type < IR_PRED && !ptx_x_take(x, ir_types[i.type].text); i.type++)
        continue;
    unsigned bytes = i.type == IR_PRED ? 0 : want * ir_types[i.type].size;
    if (bytes != 32 && want != 8)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    uint32_t to[8];
    struct ir_src values[8];
    if (op == IR_OP_LD) {
        ptx_x_destinations(x, i.type, true, want, to);
        ptx_expect(x->p, ',');
    }
    struct ir_src base = ptx_x_address(x, &space, &base_type, &displacement);
    if (op == IR_OP_ST && ptx_expect(x->p, ','))
        ptx_x_sources(x, i.type, true, want, values);
    if (x->p->why.error || (policy && !ptx_x_skip_source(x, IR_B64)))
        return false;
    /* The register with the address may be overwritten by what is loaded. */
    base = ptx_x_op2(x, IR_OP_ADD, base_type, base, ptx_x_imm((uint64_t)displacement));
    i.space = (uint8_t)space;
    i.address.base = base.index;
    for (unsigned half = 0; half < 2; half++) {
        for (unsigned k = 0; k < want / 2; k++) {
            if (op == IR_OP_LD)
                i.dst[k] = to[half * want / 2 + k];
            else
                i.src[k] = values[half * want / 2 + k];
        }
        *(op == IR_OP_LD ? &i.dst_count : &i.src_count) = (uint8_t)(want / 2);
        i.address.displacement = half * (bytes / 2);
        ptx_x_append(x, &i);
    }
    return true;
}

bool ptx_x_wide_load(struct ptx_expand *x)
{
    return wide_access(x, IR_OP_LD);
}

bool ptx_x_wide_store(struct ptx_expand *x)
{
    return wide_access(x, IR_OP_ST);
}
