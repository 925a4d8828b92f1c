/*
 * Elements that lie side by side in memory, read by lanes whose addresses are anywhere: a loop over
 * a thread's own row, unrolled by four, or a vector of four. A gather of each is 32 loads; here
 * each lane's four are loaded as one, and then transposed, so that each element is a vector over
 * the lanes. Where gathers are fast they take two elements at a time.
 */
#include "jit/gen.h"
#include "jit/target.h"

#define RUN 4 /* elements of 32 bits */
#define ROWS_MAX                                                                                   \
    16u /* lanes that are transposed at once, where a register has that many elements */

static bool is_wide(const struct ir_instr *i)
{
    return i->dst_count == RUN;
}

static bool is_anywhere(uint8_t shape)
{
    return shape == IR_VARYING || shape == IR_PATTERN;
}

/* A load of 32 bits per element from anywhere in global memory, which may be part of a run. */
static bool is_part(const struct jit_gen *g, uint32_t at)
{
    const struct ir_instr *i = &g->fn->instrs[at];
    return g->lanes >= ROWS_MAX && i->op == IR_OP_LD && i->order == IR_ORDER_WEAK &&
           i->guard == IR_NONE && i->address.base != IR_NONE && i->address.symbol == IR_NONE &&
           (i->space == IR_SPACE_GLOBAL || i->space == IR_SPACE_CONST) &&
           ir_types[i->type].size == 4 && is_anywhere(g->a->instrs[at].address) &&
           (i->dst_count == 1 || is_wide(i));
}

/* Finds the run that the current instruction, its first, begins: where it starts and where its last
 * load is. */
static bool find_run(const struct jit_gen *g, int64_t *low, uint32_t *end)
{
    const struct ir_block *block = &g->fn->blocks[g->at_block];
    uint32_t base = g->i->address.base;
    int64_t d[16];
    uint32_t at[16];
    unsigned count = 0;
    bool changed = false;
    if (is_wide(g->i)) {
        *low = g->i->address.displacement;
        *end = g->at_instr + 1;
        return true;
    }
    for (uint32_t n = g->at_instr;
         n < block->first + block->count && count < GM_ARRAY_LEN(d) && !changed; n++) {
        const struct ir_instr *i = &g->fn->instrs[n];
        if (is_part(g, n) && i->address.base == base && !is_wide(i)) {
            d[count] = i->address.displacement;
            at[count++] = n;
        }
        if (ir_ops[i->op].properties & (IR_P_STORE | IR_P_EFFECT))
            break;
        for (unsigned k = 0; k < i->dst_count; k++)
            changed |= i->dst[k] == base;
    }
    for (*low = d[0] - 4 * (RUN - 1); *low <= d[0]; *low += 4) {
        unsigned found = 0;
        *end = 0;
        for (unsigned k = 0; k < count; k++) {
            if (d[k] < *low || d[k] >= *low + 4 * RUN || (d[k] - *low) % 4)
                continue;
            found |= 1u << (unsigned)((d[k] - *low) / 4);
            *end = GM_MAX(*end, at[k] + 1);
        }
        if (found == (1u << RUN) - 1)
            return true;
    }
    return false;
}

/* Addresses in memory, from where the lanes' elements are loaded. Lanes that do not run read what
 * the first one that does reads. */
static LLVMValueRef lay_out_addresses(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active)
{
    LLVMValueRef memory = jit_alloca(g, jit_vec(g, g->i64), "lanes");
    if (active != jit_all_lanes(g)) {
        LLVMValueRef args[] = { active, LLVMConstInt(g->i1, 0, 0) };
        LLVMValueRef lane = jit_intrinsic(g, "llvm.cttz", &g->i32, 1, args, 2);
        lane = LLVMBuildAnd(g->b, lane, LLVMConstInt(g->i32, g->lanes - 1, 0), "");
        address =
            jit_select(g, jit_lanes(g, active), address, jit_splat(g, jit_pick(g, address, lane)));
    }
    LLVMBuildStore(g->b, address, memory);
    return memory;
}

/* The four elements of each of `count` lanes. */
static void load_rows(struct jit_gen *g, LLVMValueRef memory, unsigned from, unsigned count,
                      LLVMValueRef *rows)
{
    for (unsigned l = 0; l < count; l++) {
        LLVMValueRef at = LLVMConstInt(g->i64, from + l, 0);
        LLVMValueRef p =
            LLVMBuildLoad2(g->b, g->ptr, LLVMBuildGEP2(g->b, g->i64, memory, &at, 1, ""), "");
        LLVMSetVolatile(p, 1); /* LLVM is to load it from there, not to take it out of the vector */
        rows[l] = LLVMBuildLoad2(g->b, LLVMVectorType(g->i32, RUN), p, "");
        LLVMSetAlignment(rows[l], 4);
    }
}

/* Joins two vectors of `count` elements each. */
static LLVMValueRef join(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, unsigned count)
{
    int order[2 * JIT_LANES_MAX];
    for (unsigned k = 0; k < 2 * count; k++)
        order[k] = (int)k;
    return jit_shuffle(g, a, b, order, 2 * count);
}

/* Takes elements x and y of every four of both vectors, each of the first vector followed by that
 * of the second; or pairs of elements. */
static LLVMValueRef weave(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, const unsigned pick[4])
{
    unsigned n = LLVMGetVectorSize(LLVMTypeOf(a));
    int order[ROWS_MAX];
    for (unsigned k = 0; k < n; k++)
        order[k] = (int)((k & ~3u) + (pick[k % 4] & 3) + (pick[k % 4] & 4 ? n : 0));
    return jit_shuffle(g, a, b, order, n);
}

/* Rows of four, sixteen or eight of them, become four vectors of as many. */
static void transpose(struct jit_gen *g, LLVMValueRef *rows, unsigned count, LLVMValueRef out[RUN])
{
    static const unsigned low[] = { 0, 4, 1, 5 }, high[] = { 2, 6, 3, 7 }, left[] = { 0, 1, 4, 5 },
                          right[] = { 2, 3, 6, 7 };
    LLVMValueRef z[4], t[4];
    for (unsigned q = 0; q < 4; q++) {
        z[q] = join(g, rows[q], rows[4 + q], 4);
        if (count == 16)
            z[q] = join(g, z[q], join(g, rows[8 + q], rows[12 + q], 4), 8);
    }
    t[0] = weave(g, z[0], z[1], low);
    t[1] = weave(g, z[0], z[1], high);
    t[2] = weave(g, z[2], z[3], low);
    t[3] = weave(g, z[2], z[3], high);
    out[0] = weave(g, t[0], t[2], left);
    out[1] = weave(g, t[0], t[2], right);
    out[2] = weave(g, t[1], t[3], left);
    out[3] = weave(g, t[1], t[3], right);
}

/* i1: the elements of one of these lanes are not in place. */
static LLVMValueRef is_bad(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active, bool wide)
{
    unsigned align = wide ? 4 * RUN : 4;
    LLVMValueRef bad;
    if (jit_has_followers(g)) { /* an aligned one ends where it begins */
        bad = LLVMBuildSub(g->b, address, jit_splat(g, jit_cached(g, JIT_WINDOW_BASE)), "");
        if (!wide) {
            LLVMValueRef last = LLVMBuildAdd(g->b, bad, jit_const(g, bad, 4 * (RUN - 1)), "");
            bad = LLVMBuildOr(g->b, bad, last, "");
        }
        bad = LLVMBuildAnd(g->b, jit_call1(g, "llvm.vector.reduce.or", bad),
                           jit_window_bad(g, align), "");
    } else {
        LLVMValueRef last = LLVMBuildAdd(g->b, address, jit_const(g, address, 4 * (RUN - 1)), "");
        bad = jit_outside_window(g, address, align);
        bad = LLVMBuildOr(g->b, bad, jit_outside_window(g, last, 4), "");
        bad = LLVMBuildAnd(g->b, jit_bits(g, bad), active, "");
    }
    return LLVMBuildICmp(g->b, LLVMIntNE, bad, LLVMConstNull(LLVMTypeOf(bad)), "");
}

/* Two elements of each lane as one of 64 bits: these are f64, as LLVM makes truncations of integers
 * of what takes both apart, which takes longer. */
static void gather_pair(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                        LLVMValueRef out[2])
{
    LLVMTypeRef t = jit_vec(g, g->f64), types[] = { t, jit_vec(g, g->ptr) };
    LLVMTypeRef single = LLVMVectorType(g->f32, 2 * g->lanes);
    LLVMValueRef at = LLVMBuildIntToPtr(g->b, address, types[1], "");
    LLVMValueRef args[] = { at, jit_c32(g, 4), jit_lanes(g, active), LLVMConstNull(t) };
    LLVMValueRef pair = jit_intrinsic(g, "llvm.masked.gather", types, 2, args, 4);
    pair = LLVMBuildBitCast(g->b, pair, single, "");
    for (unsigned k = 0; k < 2; k++) {
        int order[JIT_LANES_MAX];
        for (unsigned l = 0; l < g->lanes; l++)
            order[l] = (int)(2 * l + k);
        out[k] = jit_shuffle(g, pair, LLVMGetPoison(single), order, g->lanes);
        out[k] = LLVMBuildBitCast(g->b, out[k], jit_vec(g, g->i32), "");
    }
}

static void load_run(struct jit_gen *g, struct jit_run *run)
{
    LLVMValueRef offset =
        LLVMConstInt(g->i64, (uint64_t)(run->low - g->i->address.displacement), 1);
    LLVMValueRef address = LLVMBuildAdd(g->b, jit_address(g, true), jit_splat(g, offset), "");
    LLVMValueRef active = jit_active(g), rows[JIT_LANES_MAX], parts[4][RUN] = { 0 };
    unsigned n = 8;
    if (jit_has_followers(g)) {
        address = jit_followed(g, address, active);
        active = jit_all_lanes(g);
    }
    jit_go_other(g, is_bad(g, address, active, is_wide(g->i)));
    if (g->target->gathers) {
        gather_pair(g, address, active, run->value);
        address = LLVMBuildAdd(g->b, address, jit_const(g, address, 8), "");
        gather_pair(g, address, active, run->value + 2);
        return;
    }
    LLVMValueRef memory = lay_out_addresses(g, address, active);
    if (g->target->avx512) {
        load_rows(g, memory, 0, g->lanes, rows);
        for (unsigned h = 0; h < g->lanes / 16; h++)
            transpose(g, rows + 16 * h, 16, parts[h]);
        n = 16;
    }
    for (unsigned h = 0; h < g->lanes / 8 && !g->target->avx512; h++) {
        load_rows(g, memory, 8 * h, 8, rows);
        transpose(g, rows, 8, parts[h]);
        n = 8;
    }
    for (; n < g->lanes; n *= 2)
        for (unsigned h = 0; h < g->lanes / n / 2; h++)
            for (unsigned k = 0; k < RUN; k++)
                parts[h][k] = join(g, parts[2 * h][k], parts[2 * h + 1][k], n);
    for (unsigned k = 0; k < RUN; k++)
        run->value[k] = parts[0][k];
}

bool jit_emit_run(struct jit_gen *g)
{
    if (!is_part(g, g->at_instr) || g->checks_all)
        return false;
    struct jit_run *run = &g->w->regs[g->i->address.base].run;
    int64_t d = g->i->address.displacement;
    bool inside = g->at_instr < run->end && d >= run->low && d < run->low + 4 * RUN &&
                  (d - run->low) % 4 == 0;
    if (!inside) {
        struct jit_run new = { 0 };
        if (!find_run(g, &new.low, &new.end))
            return false;
        load_run(g, &new);
        *run = new;
    }
    for (unsigned k = 0; k < g->i->dst_count; k++) {
        LLVMValueRef v = run->value[(d - run->low) / 4 + k];
        LLVMTypeRef t = jit_type(g, (enum ir_type)g->i->type);
        jit_set(g, k, t == g->f32 ? LLVMBuildBitCast(g->b, v, jit_vec(g, t), "") : v);
    }
    return true;
}
