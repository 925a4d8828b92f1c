/*
 * Loads and stores. An address that all lanes share becomes a scalar access, one that rises by the
 * access size from lane to lane a vector access, anything else a gather or scatter. Addresses and
 * their checks: space.c.
 */
#include "jit/gen.h"

#include "device/soft/ir/spaces.h"
#include "jit/elements.h"
#include "jit/target.h"

/* Type of one element in memory. */
static enum ir_type memory_type(const struct ir_instr *i)
{
    return i->type == IR_F16 ? IR_B16 : (enum ir_type)i->type;
}

static unsigned element_size(const struct ir_instr *i)
{
    return (unsigned)ir_types[i->type].size;
}

/* --- one access in its different forms -------------------------------------------------------- */

static LLVMValueRef masked_call(struct jit_gen *g, const char *name, LLVMTypeRef t,
                                bool vector_of_pointers, LLVMValueRef *args)
{
    LLVMTypeRef types[] = { t, vector_of_pointers ? jit_vec(g, g->ptr) : g->ptr };
    return jit_intrinsic(g, name, types, 2, args, 4);
}

static LLVMValueRef address_of(struct jit_gen *g, const struct jit_access *x)
{
    return x->address ? x->address : jit_address(g, true);
}

/* Lane by lane, in the order that the instruction asks for. */
static void emit_single_form(struct jit_gen *g, struct jit_access *x)
{
    struct jit_lane_loop l;
    LLVMValueRef p = jit_host_vector(g, address_of(g, x), x->active, x->size);
    jit_lanes_begin_turned(g, &l, x->active, x->store ? jit_store_turn(g, x->size) : 0);
    LLVMValueRef at = jit_pick(g, p, l.lane), values[IR_MAX_SRC];
    for (unsigned k = 0; k < x->count && x->store; k++)
        values[k] = jit_pick(g, x->value[k], l.lane);
    if (x->store)
        jit_store_elements(g, x, at, values);
    else
        jit_load_elements(g, x, at, values);
    for (unsigned k = 0; k < x->count && !x->store; k++) {
        LLVMValueRef all = LLVMBuildLoad2(g->b, jit_vec(g, x->element), x->value[k], "");
        LLVMBuildStore(g->b, LLVMBuildInsertElement(g->b, all, values[k], l.lane, ""), x->value[k]);
    }
    jit_lanes_end(g, &l);
}

/* True if the processor has an instruction for this; if not, LLVM makes a branch for each lane of
 * it. */
static bool has_gather(const struct jit_gen *g, const struct jit_access *x)
{
    return x->store ? x->esize >= 4 && g->target->avx512 : g->target->avx2 || g->target->avx512;
}

/* Elements smaller than a word, as processors gather words only: each lane's aligned word, which is
 * there if the element is, moved down. */
static LLVMValueRef gather_small(struct jit_gen *g, const struct jit_access *x, LLVMValueRef at,
                                 LLVMValueRef lanes)
{
    LLVMTypeRef words = jit_vec(g, g->i32);
    LLVMValueRef address = LLVMBuildPtrToInt(g->b, at, jit_vec(g, g->i64), "");
    LLVMValueRef byte = LLVMBuildAnd(g->b, address, jit_const(g, address, 3), "");
    LLVMValueRef word = LLVMBuildSub(g->b, address, byte, "");
    LLVMValueRef args[] = { LLVMBuildIntToPtr(g->b, word, jit_vec(g, g->ptr), ""), jit_c32(g, 4),
                            lanes, LLVMConstNull(words) };
    LLVMValueRef v = masked_call(g, "llvm.masked.gather", words, true, args);
    byte = LLVMBuildTrunc(g->b, byte, words, "");
    v = LLVMBuildLShr(g->b, v, LLVMBuildShl(g->b, byte, jit_const(g, byte, 3), ""), "");
    v = LLVMBuildTrunc(g->b, v, jit_vec(g, jit_int(g, x->esize)), "");
    return LLVMBuildBitCast(g->b, v, jit_vec(g, x->element), "");
}

/* Gather or scatter of all elements. */
static void emit_vector_form(struct jit_gen *g, struct jit_access *x)
{
    bool all = jit_has_followers(g) && !x->store; /* all lanes may load */
    if (jit_is_apart(g, x)) {
        jit_access_apart(g, x, emit_vector_form);
        return;
    }
    if (jit_load_indexed(g, x))
        return;
    if (g->large && !has_gather(g, x)) {
        emit_single_form(g, x);
        return;
    }
    if (jit_has_followers(g) && x->store && x->active != jit_all_lanes(g)) {
        jit_access_by_lane(g, x);
        return;
    }
    LLVMValueRef p = jit_host_vector(g, address_of(g, x), x->active, x->size);
    unsigned turn = x->store ? jit_store_turn(g, x->size) : 0;
    LLVMValueRef lanes = jit_turned(g, jit_lanes(g, all ? jit_all_lanes(g) : x->active), turn);
    LLVMTypeRef t = jit_vec(g, x->element);
    p = jit_turned(g, p, turn);
    for (unsigned k = 0; k < x->count; k++) {
        LLVMValueRef at = k ? jit_byte_pointer(g, p, jit_c64(g, k * x->esize)) : p;
        LLVMValueRef align = jit_c32(g, x->esize);
        if (x->store) {
            LLVMValueRef args[] = { jit_turned(g, x->value[k], turn), at, align, lanes };
            masked_call(g, "llvm.masked.scatter", t, true, args);
        } else {
            LLVMValueRef args[] = { at, align, lanes, LLVMConstNull(t) };
            LLVMBuildStore(g->b,
                           x->esize < 4 && has_gather(g, x) && !all
                               ? gather_small(g, x, at, lanes)
                               : masked_call(g, "llvm.masked.gather", t, true, args),
                           x->value[k]);
        }
    }
}

/* True if the processor loads and stores some lanes of a vector of these as one instruction; if
 * not, LLVM makes a branch for each lane. */
static bool has_masks(const struct jit_gen *g, const struct jit_access *x)
{
    return x->count == 1 && (g->target->avx512 || (g->target->avx2 && x->esize >= 4));
}

/* What the active lanes load, of elements side by side, or store. */
static void emit_masked_form(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    LLVMTypeRef t = jit_vec(g, x->element);
    LLVMValueRef lanes = jit_lanes(g, x->active), align = jit_c32(g, x->esize);
    if (x->store) {
        LLVMValueRef args[] = { x->value[0], p, align, lanes };
        masked_call(g, "llvm.masked.store", t, false, args);
    } else {
        LLVMValueRef args[] = { p, align, lanes, LLVMConstNull(t) };
        LLVMBuildStore(g->b, masked_call(g, "llvm.masked.load", t, false, args), x->value[0]);
    }
}

/* As emit_vector_form(), of what hardly ever runs. */
static void emit_rare_form(struct jit_gen *g, struct jit_access *x)
{
    if (jit_has_followers(g))
        jit_access_by_lane(g, x);
    else
        emit_vector_form(g, x);
}

/* i1: the lanes' accesses that start at `address` are all in place, so that the vector form may be
 * used. */
static LLVMValueRef contiguous_is_good(struct jit_gen *g, const struct jit_access *x,
                                       LLVMValueRef address, uint64_t stride)
{
    return jit_span_is_good(g, address, stride * (g->lanes - 1), x->size);
}

/* Stores elements side by side, of all lanes or, by way of `some`, of the active ones. */
static void emit_store_form(struct jit_gen *g, struct jit_access *x, LLVMValueRef p,
                            void (*some)(struct jit_gen *g, struct jit_access *x, LLVMValueRef p))
{
    LLVMBasicBlockRef all = jit_new_block(g, "all"), part = jit_new_block(g, "part"),
                      join = jit_new_block(g, "");
    LLVMBuildCondBr(g->b, jit_is_full(g, x->active), all, part);
    jit_position(g, all);
    jit_access_contiguous(g, x, p);
    LLVMBuildBr(g->b, join);
    jit_position(g, part);
    some(g, x, p);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

/* What the active lanes access lies side by side, and all lanes' is in place. */
static void emit_placed_form(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    if (x->store && !g->target->avx512)
        emit_store_form(g, x, p, jit_store_pieces);
    else
        emit_masked_form(g, x, p);
}

/* A vector access if the elements turn out to be contiguous at run time, else lane by lane. */
static void emit_affine_form(struct jit_gen *g, struct jit_access *x)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    bool full = !has_masks(g, x), covered = jit_is_covered(g);
    LLVMValueRef address = jit_address(g, false), good = LLVMConstInt(g->i1, 1, 0);
    if (!covered)
        good = contiguous_is_good(g, x, address, x->size);
    if (!covered && info->address_may_wrap)
        good =
            LLVMBuildAnd(g->b, good, LLVMBuildNot(g->b, jit_wraps(g, g->i->address.base), ""), "");
    if (full)
        good = LLVMBuildAnd(g->b, good, jit_is_full(g, x->active), "");
    if (covered && !full) {
        emit_placed_form(g, x, jit_placed_pointer(g, address));
        return;
    }
    LLVMBasicBlockRef slow = jit_new_block(g, "slow"), join = jit_new_block(g, "");
    jit_branch_unlikely(g, LLVMBuildNot(g->b, good, ""), slow);
    if (full)
        jit_access_contiguous(g, x, jit_placed_pointer(g, address));
    else
        emit_placed_form(g, x, jit_placed_pointer(g, address));
    LLVMBuildBr(g->b, join);
    jit_position(g, slow);
    if (full)
        emit_vector_form(g, x);
    else
        emit_rare_form(g, x);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

/* Stores to shared memory, which no other thread sees, for all lanes: for the others what was
 * there.
 */
static void emit_merged_form(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    LLVMValueRef old = LLVMBuildLoad2(g->b, jit_vec(g, x->element), p, "");
    LLVMSetAlignment(old, x->esize);
    LLVMValueRef v = jit_select(g, jit_lanes(g, x->active), x->value[0], old);
    LLVMSetAlignment(LLVMBuildStore(g->b, v, p), x->esize);
}

static void emit_scattered_form(struct jit_gen *g, struct jit_access *x, LLVMValueRef p)
{
    (void)p;
    emit_vector_form(g, x);
}

/* Consecutive elements of shared memory, whose addresses have 32 bits that count: these are in line
 * whether an index wraps before it is widened or not. Loads need no mask, as there is nothing that
 * dead lanes must not read. */
static void emit_shared_form(struct jit_gen *g, struct jit_access *x)
{
    LLVMValueRef address, p;
    if (jit_is_covered(g)) {
        p = jit_placed_pointer(g, jit_address(g, false));
    } else {
        address = jit_address(g, false);
        if (x->size > 1)
            jit_check_shared_alignment(g, address, x->active, x->size);
        p = jit_shared_span(g, jit_low32(g, address), x->size);
        if (g->i->address.base == IR_NONE || jit_is_again(g, g->i->address.base)) {
            LLVMValueRef good = contiguous_is_good(
                g, x, address, x->size); /* this is often known when the kernel is compiled */
            p = LLVMBuildSelect(g->b, good, jit_placed_pointer(g, address), p, "");
        }
    }
    if (!x->store)
        jit_access_contiguous(g, x, p);
    else if (x->count == 1 && g->target->avx512)
        emit_masked_form(g, x, p);
    else
        emit_store_form(g, x, p, x->count == 1 ? emit_merged_form : emit_scattered_form);
}

/* --- lanes at a stride of several elements: structures ---------------------------------------- */

#define STRIDE_MAX (SOFT_SHARED_GUARD / JIT_LANES_MAX)

/* Whether the access is worth taking the lanes' whole structures: these are aligned pieces of a
 * power of two, so that they lie in pages that the lanes access anyway. Only shared memory, which
 * no other thread sees, is written so. */
static bool is_structure(const struct jit_gen *g, const struct jit_access *x)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    int64_t stride = info->address_stride;
    if (info->address != IR_AFFINE || stride <= (int64_t)x->size || stride > STRIDE_MAX ||
        !gm_is_pow2((uint64_t)stride) || stride / x->esize > 8 ||
        (uint64_t)g->i->address.displacement % x->size != 0)
        return false;
    if (g->i->space == IR_SPACE_SHARED)
        return true;
    return !x->store && (g->i->space == IR_SPACE_GLOBAL || g->i->space == IR_SPACE_CONST);
}

/* `offset`: of the access in its structure. */
static void emit_whole_structures(struct jit_gen *g, struct jit_access *x, LLVMValueRef p,
                                  unsigned n, unsigned offset)
{
    LLVMTypeRef wide = LLVMVectorType(x->element, g->lanes * n);
    LLVMValueRef all = LLVMBuildLoad2(g->b, wide, p, "");
    unsigned from = offset / x->esize;
    int order[JIT_LANES_MAX * 8];
    LLVMSetAlignment(all, x->esize);
    for (unsigned k = 0; k < x->count; k++) {
        if (!x->store) {
            for (unsigned l = 0; l < g->lanes; l++)
                order[l] = (int)(l * n + from + k);
            LLVMBuildStore(g->b, jit_shuffle(g, all, LLVMGetPoison(wide), order, g->lanes),
                           x->value[k]);
            continue;
        }
        for (unsigned j = 0; j < g->lanes * n; j++)
            order[j] = j < g->lanes ? (int)j : -1;
        LLVMValueRef v =
            jit_shuffle(g, x->value[k], LLVMGetPoison(jit_vec(g, x->element)), order, g->lanes * n);
        for (unsigned j = 0; j < g->lanes * n; j++)
            order[j] = (int)(j % n == from + k ? g->lanes * n + j / n : j);
        all = jit_shuffle(g, all, v, order, g->lanes * n);
    }
    if (x->store)
        LLVMSetAlignment(LLVMBuildStore(g->b, all, p), x->esize);
}

static void emit_structure_form(struct jit_gen *g, struct jit_access *x)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    uint64_t stride = (uint64_t)info->address_stride,
             offset = (uint64_t)g->i->address.displacement & (stride - 1);
    LLVMBasicBlockRef slow = jit_new_block(g, "slow"), join = jit_new_block(g, "");
    LLVMValueRef good = jit_is_full(g, x->active), address = jit_address(g, false);
    if (info->address_may_wrap && g->i->space != IR_SPACE_SHARED)
        good =
            LLVMBuildAnd(g->b, good, LLVMBuildNot(g->b, jit_wraps(g, g->i->address.base), ""), "");
    LLVMValueRef place = LLVMBuildAnd(g->b, address, jit_c64(g, stride - 1), "");
    good =
        LLVMBuildAnd(g->b, good, LLVMBuildICmp(g->b, LLVMIntEQ, place, jit_c64(g, offset), ""), "");
    if (g->i->space != IR_SPACE_SHARED)
        good = LLVMBuildAnd(g->b, good, contiguous_is_good(g, x, address, stride), "");
    jit_branch_unlikely(g, LLVMBuildNot(g->b, good, ""), slow);
    LLVMValueRef p = LLVMBuildAnd(g->b, address, jit_c64(g, ~(stride - 1)), "");
    if (g->i->space == IR_SPACE_SHARED)
        p = jit_shared_span(g, jit_low32(g, p), (unsigned)stride);
    else
        p = LLVMBuildIntToPtr(g->b, p, g->ptr, "");
    emit_whole_structures(g, x, p, (unsigned)stride / x->esize, (unsigned)offset);
    LLVMBuildBr(g->b, join);
    jit_position(g, slow);
    emit_vector_form(g, x);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

static void emit_strided_form(struct jit_gen *g, struct jit_access *x)
{
    const bool covered = jit_is_covered(g);
    LLVMBasicBlockRef slow = jit_new_block(g, "slow"), join = jit_new_block(g, "");
    LLVMValueRef address = jit_address(g, false);
    LLVMValueRef good = jit_stride_is_good(g, x, address, covered);
    jit_branch_unlikely(g, LLVMBuildNot(g->b, good, ""), slow);
    jit_access_strided(g, x, jit_placed_pointer(g, address));
    LLVMBuildBr(g->b, join);
    jit_position(g, slow);
    emit_vector_form(g, x);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

static void emit_pattern_form(struct jit_gen *g, struct jit_access *x)
{
    if (x->store)
        jit_store_pattern(g, x->value[0], x->size, x->active);
    else
        LLVMBuildStore(g->b, jit_load_pattern(g, x->element, x->size, x->active), x->value[0]);
}

/* What is not ordered, or relaxed: of a vector a processor accesses each aligned element in one
 * piece. */
static void emit_weak_forms(struct jit_gen *g, struct jit_access *x)
{
    const struct ir_instr_info *info = &g->a->instrs[g->at_instr];
    bool affine = info->address == IR_AFFINE && info->address_stride == (int64_t)x->size;
    if (g->i->space == IR_SPACE_LOCAL && info->address == IR_UNIFORM && x->esize >= 4)
        jit_access_local(g, x);
    else if (affine && g->checks_all && g->i->space != IR_SPACE_SHARED)
        emit_rare_form(g, x); /* one form is enough */
    else if (affine && g->i->space == IR_SPACE_SHARED)
        emit_shared_form(g, x);
    else if (affine && (g->i->space == IR_SPACE_GLOBAL || g->i->space == IR_SPACE_CONST ||
                        g->i->space == IR_SPACE_GENERIC))
        emit_affine_form(g, x);
    else if (x->count == 1 && jit_has_pattern(g, x->store, x->size))
        emit_pattern_form(g, x);
    else if (is_structure(g, x))
        emit_structure_form(g, x);
    else if (jit_is_strided(g, g->at_instr))
        emit_strided_form(g, x);
    else
        emit_vector_form(g, x);
}

static void emit_forms(struct jit_gen *g, struct jit_access *x)
{
    const bool ordered = jit_is_ordered(g);
    const bool relaxed = g->i->order == IR_ORDER_RELAXED || g->i->order == IR_ORDER_VOLATILE;
    if (ordered && (!relaxed || x->count > 1)) {
        emit_single_form(g, x);
        return;
    }
    if (ordered) /* the compiler neither merges nor moves what is between the two */
        LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, true, "");
    emit_weak_forms(g, x);
    if (ordered)
        LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, true, "");
}

static struct jit_access begin_access(struct jit_gen *g, bool store)
{
    struct jit_access x = { .store = store };
    x.count = store ? g->i->src_count : g->i->dst_count;
    x.esize = element_size(g->i);
    x.size = x.count * x.esize;
    x.type = memory_type(g->i);
    x.element = jit_type(g, x.type);
    x.active = jit_active(g);
    return x;
}

/* Host address of an access that all lanes share. */
static LLVMValueRef shared_by_lanes(struct jit_gen *g, const struct jit_access *x,
                                    LLVMValueRef address)
{
    return jit_is_covered(g) ? jit_placed_pointer(g, address)
                             : jit_host_scalar(g, address, x->active, x->size);
}

/* Generic addresses that are uniform are nearly always global ones. True: the caller emits that
 * case now, and the other one goes to the block `slow`. */
static bool begin_generic(struct jit_gen *g, LLVMValueRef address, unsigned size,
                          LLVMBasicBlockRef *slow, LLVMBasicBlockRef *join)
{
    if (g->i->space != IR_SPACE_GENERIC)
        return false;
    LLVMBasicBlockRef fast = jit_new_block(g, "global");
    *slow = jit_new_block(g, "other");
    *join = jit_new_block(g, "");
    LLVMBuildCondBr(g->b, jit_outside_window(g, address, size), *slow, fast);
    jit_position(g, fast);
    return true;
}

/* ld.param [name + offset]: read once, before anything else. */
static bool emit_parameter(struct jit_gen *g, const struct jit_access *x)
{
    const struct ir_address *a = &g->i->address;
    if (g->i->space != IR_SPACE_PARAM || a->base != IR_NONE)
        return false;
    uint64_t offset = (uint64_t)a->displacement;
    if (a->symbol != IR_NONE)
        offset += ir_symbol_offset(g->m, g->fn, a->symbol);
    if (offset > g->fn->param_bytes || x->size > g->fn->param_bytes - offset || offset % x->size) {
        jit_unsupported(g, "access outside of the parameters");
        return true;
    }
    for (unsigned k = 0; k < x->count; k++) {
        LLVMValueRef at = jit_c64(g, offset + k * x->esize);
        LLVMValueRef p = LLVMBuildGEP2(g->prelude, g->i8, jit_cached(g, JIT_PARAMS), &at, 1, "");
        LLVMValueRef v = LLVMBuildLoad2(g->prelude, x->element, p, "");
        LLVMSetAlignment(v, x->esize);
        LLVMSetMetadata(v, g->invariant_kind, g->invariant);
        jit_set(g, k, v);
    }
    return true;
}

/* The function's code where all lanes share the address. */
static void emit_same_form(struct jit_gen *g, struct jit_access *x)
{
    LLVMBasicBlockRef slow = NULL, join = NULL;
    LLVMValueRef address = x->address, p = LLVMBuildIntToPtr(g->b, address, g->ptr, ""),
                 values[IR_MAX_SRC];
    begin_generic(g, address, x->size, &slow, &join);
    if (x->store) {
        LLVMValueRef lane = jit_store_lane(g, x->active, x->size);
        for (unsigned k = 0; k < x->count; k++)
            values[k] = jit_pick(g, x->value[k], lane);
        jit_store_elements(g, x, p, values);
    } else {
        jit_load_elements(g, x, p, values);
        for (unsigned k = 0; k < x->count; k++)
            LLVMBuildStore(g->b, jit_splat(g, values[k]), x->value[k]);
    }
    LLVMBuildBr(g->b, join);
    jit_position(g, slow);
    x->address = jit_splat(g, address);
    emit_vector_form(g, x);
    LLVMBuildBr(g->b, join);
    jit_position(g, join);
}

/* The access has one address for all lanes, and a function of its own. */
static bool is_same_apart(struct jit_gen *g, const struct jit_access *x)
{
    return g->a->instrs[g->at_instr].address == IR_UNIFORM && !jit_is_ordered(g) &&
           jit_is_apart(g, x);
}

void jit_emit_load(struct jit_gen *g)
{
    struct jit_access x = begin_access(g, false);
    LLVMBasicBlockRef slow = NULL, join = NULL;
    bool generic = false;
    if (emit_parameter(g, &x) || jit_emit_run(g))
        return;
    x.same = is_same_apart(g, &x);
    bool uniform = g->a->instrs[g->at_instr].address == IR_UNIFORM && g->i->space != IR_SPACE_LOCAL;
    if (uniform && !x.same) {
        LLVMValueRef address = jit_address(g, false);
        generic = begin_generic(g, address, x.size, &slow, &join);
        LLVMValueRef p = generic ? LLVMBuildIntToPtr(g->b, address, g->ptr, "")
                                 : shared_by_lanes(g, &x, address);
        LLVMValueRef values[IR_MAX_SRC];
        jit_load_elements(g, &x, p, values);
        for (unsigned k = 0; k < x.count; k++)
            jit_set(g, k, values[k]);
        if (!generic)
            return;
        LLVMBuildBr(g->b, join);
        jit_position(g, slow);
    }
    for (unsigned k = 0; k < x.count; k++) {
        x.value[k] = jit_alloca(g, jit_vec(g, x.element), "");
        LLVMBuildStore(g->b, LLVMConstNull(jit_vec(g, x.element)), x.value[k]);
    }
    if (x.same)
        jit_access_apart(g, &x, emit_same_form);
    else
        emit_forms(g, &x);
    for (unsigned k = 0; k < x.count; k++)
        jit_set(g, k, LLVMBuildLoad2(g->b, jit_vec(g, x.element), x.value[k], ""));
    if (generic) {
        LLVMBuildBr(g->b, join);
        jit_position(g, join);
    }
}

/* All lanes store to one place: one lane's value stays. */
static void store_elements(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p)
{
    LLVMValueRef lane = NULL, values[IR_MAX_SRC];
    for (unsigned k = 0; k < x->count; k++) {
        bool vec = jit_src_varies(g, &g->i->src[k]);
        values[k] = jit_src(g, &g->i->src[k], x->type, vec);
        if (vec && !lane)
            lane = jit_store_lane(g, x->active, x->size);
        if (vec)
            values[k] = jit_pick(g, values[k], lane);
    }
    jit_store_elements(g, x, p, values);
}

void jit_emit_store(struct jit_gen *g)
{
    struct jit_access x = begin_access(g, true);
    LLVMBasicBlockRef slow = NULL, join = NULL;
    bool generic = false;
    if (g->i->space == IR_SPACE_PARAM) {
        jit_unsupported(g, "st.param");
        return;
    }
    x.same = is_same_apart(g, &x);
    bool uniform = g->a->instrs[g->at_instr].address == IR_UNIFORM && g->i->space != IR_SPACE_LOCAL;
    if (uniform && !x.same) {
        LLVMValueRef address = jit_address(g, false);
        generic = begin_generic(g, address, x.size, &slow, &join);
        LLVMValueRef p = generic ? LLVMBuildIntToPtr(g->b, address, g->ptr, "")
                                 : shared_by_lanes(g, &x, address);
        store_elements(g, &x, p);
        if (!generic)
            return;
        LLVMBuildBr(g->b, join);
        jit_position(g, slow);
    }
    for (unsigned k = 0; k < x.count; k++)
        x.value[k] = jit_src(g, &g->i->src[k], x.type, true);
    if (x.same)
        jit_access_apart(g, &x, emit_same_form);
    else
        emit_forms(g, &x);
    if (generic) {
        LLVMBuildBr(g->b, join);
        jit_position(g, join);
    }
}
