/*
 * Translates one instruction of the ir into one or more of the interpreter's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/interp/decode.h"

void *interp_grow(struct interp_builder *b, void *array, uint32_t count, uint32_t *room,
                  size_t size)
{
    if (count < *room)
        return array;
    uint32_t more = GM_MAX(*room * 2, 64u);
    void *bigger = realloc(array, more * size);
    if (!bigger) {
        b->no_memory = true;
        return NULL;
    }
    *room = more;
    return bigger;
}

struct interp_insn *interp_insn_add(struct interp_builder *b, interp_fn *run)
{
    static struct interp_insn nowhere;
    struct interp_program *p = b->p;
    void *bigger = interp_grow(b, p->insns, p->insn_count, &b->insn_room, sizeof(*p->insns));
    if (!bigger)
        return &nowhere;
    p->insns = bigger;
    struct interp_insn *i = &p->insns[p->insn_count++];
    *i = (struct interp_insn) {
        .run = run, .d = INTERP_NOWHERE, .block = INTERP_NO_BLOCK, .other = INTERP_NO_BLOCK
    };
    for (int k = 0; k < 4; k++)
        i->s[k] = INTERP_NOWHERE;
    return i;
}

struct interp_slow *interp_slow_add(struct interp_builder *b, const struct ir_instr *i,
                                    uint32_t *index)
{
    static struct interp_slow nowhere;
    struct interp_program *p = b->p;
    void *bigger = interp_grow(b, p->slows, p->slow_count, &b->slow_room, sizeof(*p->slows));
    if (!bigger)
        return &nowhere;
    p->slows = bigger;
    *index = p->slow_count;
    struct interp_slow *x = &p->slows[p->slow_count++];
    *x = (struct interp_slow) { .ir = *i, .p = INTERP_NOWHERE };
    for (int k = 0; k < IR_MAX_SRC; k++)
        x->s[k] = INTERP_NOWHERE;
    for (int k = 0; k < IR_MAX_DST; k++)
        x->d[k] = INTERP_NOWHERE;
    return x;
}

interp_at interp_constant(struct interp_builder *b, uint64_t value, uint8_t width)
{
    struct interp_program *p = b->p;
    uint32_t bytes = width == INTERP_W64 ? 2 * INTERP_SLOT : INTERP_SLOT;
    uint8_t image[2 * INTERP_SLOT];
    for (unsigned l = 0; l < SOFT_WARP; l++) {
        if (width == INTERP_W64)
            memcpy(image + 8 * l, &value, 8);
        else if (width == INTERP_W16)
            memcpy(image + 2 * l, &value, 2), memcpy(image + 64 + 2 * l, &value, 2);
        else
            memcpy(image + 4 * l, &value, 4);
    }
    uint32_t from = p->const_bytes > 256 * INTERP_SLOT ? p->const_bytes - 256 * INTERP_SLOT : 0;
    for (uint32_t at = from; at + bytes <= p->const_bytes; at += INTERP_SLOT)
        if (memcmp(p->consts + at, image, bytes) == 0)
            return at | INTERP_IN_CONST;
    while (p->const_bytes + bytes > b->const_room) {
        uint32_t room = GM_MAX(b->const_room * 2, 64 * INTERP_SLOT);
        uint8_t *bigger = room > (1u << 30) ? NULL : aligned_alloc(64, room);
        if (!bigger) {
            b->no_memory = true;
            return 0 | INTERP_IN_CONST;
        }
        memcpy(bigger, p->consts ? p->consts : image, p->const_bytes);
        free(p->consts);
        p->consts = bigger;
        b->const_room = room;
    }
    memcpy(p->consts + p->const_bytes, image, bytes);
    p->const_bytes += bytes;
    return (p->const_bytes - bytes) | INTERP_IN_CONST;
}

static uint8_t width_of_type(uint8_t type)
{
    if (type == IR_PRED)
        return INTERP_W1;
    if (ir_types[type].size <= 2)
        return INTERP_W16;
    return ir_types[type].size == 4 ? INTERP_W32 : INTERP_W64;
}

static uint8_t register_width(const struct interp_builder *b, uint32_t reg)
{
    return b->layout.width[reg];
}

/* Reads a special register or the address of a symbol in global memory into `at`, by an
 * instruction. */
static void emit_read(struct interp_builder *b, const struct ir_src *s, interp_at at, uint8_t width)
{
    struct interp_insn *n =
        interp_insn_add(b, s->kind == IR_SRC_SREG ? interp_sreg : interp_symbol);
    n->d = at;
    n->extra = width;
    n->value = s->kind == IR_SRC_SREG ? s->index : s->bits;
    n->other = s->index;
}

interp_at interp_source(struct interp_builder *b, const struct ir_src *s, uint8_t want,
                        uint8_t *width)
{
    *width = want;
    switch (s->kind) {
    case IR_SRC_REG:
        *width = register_width(b, s->index);
        return b->layout.at[s->index];
    case IR_SRC_SYMBOL:
        if (!ir_symbol_is_placed(b->m, s->index))
            return interp_constant(b, ir_symbol_offset(b->m, b->f, s->index) + s->bits, want);
        break;
    case IR_SRC_SREG:
        break;
    default:
        return interp_constant(b, s->bits, want);
    }
    interp_at at = b->layout.temps_at + b->temps++ * 2 * INTERP_SLOT;
    emit_read(b, s, at, want);
    return at;
}

static bool refuse(struct interp_builder *b, const struct ir_instr *i, const char *what)
{
    snprintf(b->why, b->why_size, "line %u: %s '%s%s%s'", i->line, what, ir_ops[i->op].text,
             i->type ? "." : "", ir_types[i->type].text);
    return false;
}

/* --- arithmetic and everything else with a scalar form ---------------------------------------- */

/* The width that a vector handler expects of source k. */
static uint8_t expected_source(const struct ir_instr *i, unsigned k)
{
    uint8_t own = width_of_type(i->type);
    switch (i->op) {
    case IR_OP_CVT:
        return width_of_type(i->type2);
    case IR_OP_SHL:
    case IR_OP_SHR:
        return k == 1 ? INTERP_W32 : own;
    case IR_OP_MAD:
        return k == 2 && i->mode == IR_MUL_WIDE ? own + 1 : own;
    case IR_OP_SELP:
        return k == 2 ? INTERP_W1 : own;
    case IR_OP_PACK:
        return i->src_count == 2 ? own - 1 : INTERP_W16;
    case IR_OP_SLCT:
        return k == 2 ? INTERP_W32 : own;
    case IR_OP_SET:
        return k == 2 ? INTERP_W1 : width_of_type(i->type2);
    case IR_OP_BFE:
    case IR_OP_BFI:
        return k >= (i->op == IR_OP_BFE ? 1 : 2) ? INTERP_W32 : own;
    default:
        return own;
    }
}

static uint8_t expected_result(const struct ir_instr *i)
{
    if (ir_ops[i->op].properties & IR_P_DST32)
        return INTERP_W32;
    if (i->op == IR_OP_SETP || i->op == IR_OP_TESTP)
        return INTERP_W1;
    uint8_t own = width_of_type(i->type);
    return i->mode == IR_MUL_WIDE && (i->op == IR_OP_MUL || i->op == IR_OP_MAD) ? own + 1 : own;
}

/* A vector handler that also fits the operands and the destination; -1: there is none. */
static int vector_fitting(const struct interp_builder *b, const struct ir_instr *i)
{
    if (b->scalar_only || i->dst_count != 1 || i->dst[0] == IR_NONE || i->dst_pred != IR_NONE ||
        i->boolop != IR_BOOL_NONE)
        return -1;
    if (register_width(b, i->dst[0]) != expected_result(i))
        return -1;
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG &&
            register_width(b, i->src[k].index) != expected_source(i, k))
            return -1;
    if (i->op == IR_OP_SELP)
        return i->type == IR_PRED || i->src[2].kind != IR_SRC_REG ? -1
               : ir_types[i->type].size <= 2                      ? INTERP_H_SELECT16
               : ir_types[i->type].size == 4                      ? INTERP_H_SELECT32
                                                                  : INTERP_H_SELECT64;
    if (i->op == IR_OP_PACK && i->src_count != 2)
        return -1;
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].negated)
            return -1;
    return interp_vector_find(i);
}

static void emit_vector(struct interp_builder *b, const struct ir_instr *i, int handler)
{
    interp_at s[4];
    uint8_t width;
    for (unsigned k = 0; k < i->src_count && k < 4; k++)
        s[k] = interp_source(b, &i->src[k], expected_source(i, k), &width);
    struct interp_insn *n = interp_insn_add(b, b->vector->run[handler]);
    for (unsigned k = 0; k < i->src_count && k < 4; k++)
        n->s[k] = s[k];
    n->d = b->layout.at[i->dst[0]];
    n->value = i->op == IR_OP_SELP && i->src[2].negated ? UINT32_MAX : 0;
}

/* Fills in operands and destinations for interp_slow. Immediates have width `want`, which is 64
 * bits unless a handler reads them otherwise. */
static uint32_t emit_operands(struct interp_builder *b, const struct ir_instr *i,
                              interp_scalar *scalar, uint8_t want)
{
    struct interp_slow x = { .scalar = scalar, .ir = *i, .p = INTERP_NOWHERE };
    uint32_t index = 0;
    for (unsigned k = 0; k < IR_MAX_SRC; k++) {
        x.s[k] = INTERP_NOWHERE;
        if (k < i->src_count)
            x.s[k] = interp_source(b, &i->src[k], want, &x.s_width[k]);
        x.s_negated[k] = k < i->src_count && i->src[k].negated;
    }
    for (unsigned k = 0; k < IR_MAX_DST; k++) {
        x.d[k] = INTERP_NOWHERE;
        if (k < i->dst_count && i->dst[k] != IR_NONE) {
            x.d[k] = b->layout.at[i->dst[k]];
            x.d_width[k] = register_width(b, i->dst[k]);
        }
    }
    if (i->dst_pred != IR_NONE)
        x.p = b->layout.at[i->dst_pred];
    *interp_slow_add(b, i, &index) = x;
    return index;
}

static void emit_slow(struct interp_builder *b, const struct ir_instr *i, interp_fn *run,
                      interp_scalar *scalar, uint8_t want)
{
    uint32_t index = emit_operands(b, i, scalar, want);
    struct interp_insn *n = interp_insn_add(b, b->checked ? interp_checked(run) : run);
    n->extra = index;
    n->block = interp_is_sync(i) && !b->guarded ? b->current : INTERP_NO_BLOCK;
}

static bool emit_pred_logic(struct interp_builder *b, const struct ir_instr *i)
{
    interp_at s[2];
    uint8_t width;
    uint64_t value;
    for (unsigned k = 0; k < 2; k++) {
        bool given = k < i->src_count;
        if (given && i->src[k].kind == IR_SRC_REG)
            s[k] = interp_source(b, &i->src[k], INTERP_W1, &width);
        else
            s[k] = interp_constant(b, !given || i->src[k].bits ? UINT32_MAX : 0, INTERP_W32);
    }
    switch (i->op) {
    case IR_OP_MOV:
    case IR_OP_AND:
        value = INTERP_PRED_AND;
        break;
    case IR_OP_OR:
        value = INTERP_PRED_OR;
        break;
    case IR_OP_XOR:
    case IR_OP_NOT:
        value = INTERP_PRED_XOR;
        break;
    default:
        return refuse(b, i, "no such operation on predicates:");
    }
    struct interp_insn *n = interp_insn_add(b, interp_pred_logic);
    n->s[0] = s[0];
    n->s[1] = s[1];
    n->d = b->layout.at[i->dst[0]];
    n->value = value | (i->src[0].negated ? INTERP_PRED_INVERT0 : 0) |
               (i->src_count > 1 && i->src[1].negated ? INTERP_PRED_INVERT1 : 0);
    return true;
}

static uint64_t scalar_cvta(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t base = i->space == IR_SPACE_SHARED  ? IR_GENERIC_SHARED
                    : i->space == IR_SPACE_LOCAL ? IR_GENERIC_LOCAL
                    : i->space == IR_SPACE_PARAM ? IR_GENERIC_PARAM
                                                 : 0;
    return i->mode == IR_CVTA_FROM ? s[0] + base : s[0] - base;
}

static bool emit_value(struct interp_builder *b, const struct ir_instr *i)
{
    struct ir_instr plain;
    if (i->op == IR_OP_CVTA) {
        if (i->space == IR_SPACE_SHARED || i->space == IR_SPACE_LOCAL ||
            i->space == IR_SPACE_PARAM) {
            emit_slow(b, i, interp_lanes_scalar, scalar_cvta, INTERP_W64);
            return true;
        }
        plain = *i;
        plain.op = IR_OP_MOV;
        plain.mode = IR_MODE_NONE;
        i = &plain;
    }
    if (i->op == IR_OP_ISSPACEP) {
        emit_slow(b, i, interp_lanes_scalar, interp_scalar_isspacep, INTERP_W64);
        return true;
    }
    if (i->type == IR_PRED && i->op != IR_OP_SELP)
        return emit_pred_logic(b, i);
    if (i->op == IR_OP_MOV &&
        (i->src[0].kind == IR_SRC_SREG ||
         (i->src[0].kind == IR_SRC_SYMBOL && ir_symbol_is_placed(b->m, i->src[0].index)))) {
        emit_read(b, &i->src[0], b->layout.at[i->dst[0]], register_width(b, i->dst[0]));
        return true;
    }
    int handler = vector_fitting(b, i);
    if (handler >= 0) {
        emit_vector(b, i, handler);
        return true;
    }
    interp_scalar *scalar = interp_scalar_find(i);
    if (!scalar)
        return refuse(b, i, "the interpreter does not have");
    emit_slow(b, i, interp_lanes_scalar, scalar, INTERP_W64);
    return true;
}

static bool emit_unpack(struct interp_builder *b, const struct ir_instr *i)
{
    bool fits = !b->scalar_only && i->dst_count == 2 && i->src[0].kind == IR_SRC_REG &&
                register_width(b, i->src[0].index) == INTERP_W64;
    for (unsigned k = 0; fits && k < 2; k++)
        fits = i->dst[k] == IR_NONE || register_width(b, i->dst[k]) == INTERP_W32;
    if (!fits) {
        emit_slow(b, i, interp_lanes_unpack, NULL, INTERP_W64);
        return true;
    }
    struct interp_insn *n = interp_insn_add(b, b->vector->run[INTERP_H_UNPACK64]);
    n->s[0] = b->layout.at[i->src[0].index];
    n->d = i->dst[0] == IR_NONE ? INTERP_NOWHERE : b->layout.at[i->dst[0]];
    n->s[1] = i->dst[1] == IR_NONE ? INTERP_NOWHERE : b->layout.at[i->dst[1]];
    return true;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* The fast handler for an access; -1: there is none. */
static int vector_access(const struct interp_builder *b, const struct interp_access *a)
{
    if (b->scalar_only)
        return -1;
    bool shared = a->space == IR_SPACE_SHARED;
    if (!shared &&
        (a->order != IR_ORDER_WEAK || a->space == IR_SPACE_LOCAL || a->space == IR_SPACE_PARAM))
        return -1;
    if (a->size != 4 && a->size != 8)
        return -1;
    for (unsigned k = 0; k < a->count; k++)
        if (a->value[k] != INTERP_NOWHERE &&
            a->width[k] != (a->size == 4 ? INTERP_W32 : INTERP_W64))
            return -1;
    int first = a->is_load ? INTERP_H_LOAD_GLOBAL32 : INTERP_H_STORE_GLOBAL32;
    return first + (shared ? 2 : 0) + (a->size == 8 ? 1 : 0);
}

static bool access_make(struct interp_builder *b, const struct ir_instr *i, struct interp_access *a)
{
    *a = (struct interp_access) {
        .base = INTERP_NOWHERE,
        .space = i->space,
        .size = ir_types[i->type].size,
        .is_signed = ir_type_is_signed(i->type),
        .order = i->order,
        .type = i->type,
        .symbol = IR_NONE,
        .line = i->line,
        .displacement = (uint64_t)i->address.displacement,
        .value = { INTERP_NOWHERE, INTERP_NOWHERE, INTERP_NOWHERE, INTERP_NOWHERE },
    };
    if (a->size != 1 && a->size != 2 && a->size != 4 && a->size != 8 && i->type != IR_B128)
        return refuse(b, i, "the interpreter cannot access");
    if (i->address.base != IR_NONE) {
        a->base = b->layout.at[i->address.base];
        a->base_width = register_width(b, i->address.base);
        if (a->base_width != INTERP_W32 && a->base_width != INTERP_W64)
            return refuse(b, i, "address register too narrow for");
    }
    if (i->address.symbol != IR_NONE) {
        if (ir_symbol_is_placed(b->m, i->address.symbol))
            a->symbol = i->address.symbol;
        else
            a->displacement += ir_symbol_offset(b->m, b->f, i->address.symbol);
    }
    return true;
}

static void access_add(struct interp_builder *b, const struct ir_instr *i,
                       const struct interp_access *a, interp_fn *run, interp_at d)
{
    struct interp_program *p = b->p;
    void *bigger =
        interp_grow(b, p->accesses, p->access_count, &b->access_room, sizeof(*p->accesses));
    if (!bigger)
        return;
    p->accesses = bigger;
    p->accesses[p->access_count] = *a;
    struct interp_insn *n =
        interp_insn_add(b, b->checked && !(i->flags & IR_F_OWN) ? interp_checked(run) : run);
    n->extra = p->access_count++;
    n->d = d;
}

static bool emit_access(struct interp_builder *b, const struct ir_instr *i)
{
    struct interp_access a;
    if (!access_make(b, i, &a))
        return false;
    a.is_load = i->op != IR_OP_ST;
    a.count = a.is_load ? i->dst_count : i->src_count;
    for (unsigned k = 0; k < a.count && k < GM_ARRAY_LEN(a.value); k++) {
        if (!a.is_load) {
            a.value[k] = interp_source(b, &i->src[k], width_of_type(i->type), &a.width[k]);
        } else if (i->dst[k] != IR_NONE) {
            a.value[k] = b->layout.at[i->dst[k]];
            a.width[k] = register_width(b, i->dst[k]);
            a.copied |= b->checked && !b->computed[i->dst[k]] ? (uint8_t)(1u << k) : 0;
        }
    }
    int handler = b->checked ? -1 : vector_access(b, &a);
    interp_fn *run = handler >= 0 ? b->vector->run[handler]
                     : a.is_load  ? interp_load_slow
                                  : interp_store_slow;
    access_add(b, i, &a, run, INTERP_NOWHERE);
    return true;
}

static bool emit_atom(struct interp_builder *b, const struct ir_instr *i)
{
    struct interp_access a;
    interp_at d = INTERP_NOWHERE;
    if (!access_make(b, i, &a))
        return false;
    a.op = i->mode;
    a.count = 1;
    if (a.size < 2)
        return refuse(b, i, "the interpreter does not have");
    bool wide = i->type == IR_B128;
    uint8_t width = wide ? INTERP_W64 : width_of_type(i->type);
    for (unsigned k = 0; k < i->src_count && k < GM_ARRAY_LEN(a.value); k++)
        a.value[k] = interp_source(b, &i->src[k], width, &a.width[k]);
    for (unsigned k = 0; k < 2 && wide; k++)
        a.old[k] =
            k < i->dst_count && i->dst[k] != IR_NONE ? b->layout.at[i->dst[k]] : INTERP_NOWHERE;
    if (!wide && i->dst_count && i->dst[0] != IR_NONE) {
        d = b->layout.at[i->dst[0]];
        a.width[2] = register_width(b, i->dst[0]);
    }
    access_add(b, i, &a, interp_atom, d);
    return true;
}

/* --- the rest --------------------------------------------------------------------------------- */

bool interp_is_sync(const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_SHFL:
    case IR_OP_VOTE:
    case IR_OP_MATCH:
    case IR_OP_REDUX:
    case IR_OP_ELECT:
    case IR_OP_MMA:
        return (i->flags & IR_F_SYNC) != 0;
    case IR_OP_BARWARP:
        return true;
    default:
        return false;
    }
}

static interp_fn *cross_lane(uint8_t op)
{
    switch (op) {
    case IR_OP_SHFL:
        return interp_shfl;
    case IR_OP_VOTE:
        return interp_vote;
    case IR_OP_MATCH:
        return interp_match;
    case IR_OP_REDUX:
        return interp_redux;
    case IR_OP_ELECT:
        return interp_elect;
    case IR_OP_MMA:
        return interp_mma;
    case IR_OP_BARWARP:
        return interp_warp_sync;
    default:
        return NULL;
    }
}

static bool emit_plain(struct interp_builder *b, const struct ir_instr *i)
{
    switch (i->op) {
    case IR_OP_LD:
    case IR_OP_LDU:
    case IR_OP_ST:
        return emit_access(b, i);
    case IR_OP_ATOM:
    case IR_OP_RED:
        return emit_atom(b, i);
    case IR_OP_UNPACK:
        return emit_unpack(b, i);
    case IR_OP_TRAP:
        interp_insn_add(b, interp_trap)->value =
            i->mode == IR_TRAP_PC ? SOFT_FAULT_PC : SOFT_FAULT_TRAP;
        return true;
    case IR_OP_BRKPT: /* breakpoint: there is no debugger */
        return true;
    case IR_OP_MEMBAR:
    case IR_OP_FENCE:
        interp_insn_add(b, b->checked ? interp_checked(interp_fence) : interp_fence);
        return true;
    case IR_OP_ACTIVEMASK:
        interp_insn_add(b, interp_activemask)->d = b->layout.at[i->dst[0]];
        return true;
    case IR_OP_HELPER:
        emit_slow(b, i, interp_helper, NULL, INTERP_W64);
        return true;
    case IR_OP_CALL:
        return refuse(b, i, "not inlined:");
    case IR_OP_TEX:
        emit_slow(b, i, interp_texture, NULL, INTERP_W64);
        return true;
    case IR_OP_SHFL:
    case IR_OP_VOTE:
    case IR_OP_MATCH:
    case IR_OP_REDUX:
    case IR_OP_ELECT:
    case IR_OP_MMA:
    case IR_OP_BARWARP:
        emit_slow(b, i, cross_lane(i->op), NULL, i->op == IR_OP_SHFL ? INTERP_W32 : INTERP_W64);
        return true;
    default:
        if (ir_ops[i->op].properties & IR_P_NOP)
            return true;
        return emit_value(b, i);
    }
}

bool interp_emit(struct interp_builder *b, const struct ir_instr *i)
{
    b->temps = 0;
    b->guarded = i->guard != IR_NONE;
    if (!b->guarded)
        return emit_plain(b, i);
    uint32_t guard = b->p->insn_count;
    struct interp_insn *n = interp_insn_add(b, interp_guard);
    n->s[0] = b->layout.at[i->guard];
    n->value = i->flags & IR_F_GUARD_NOT ? UINT32_MAX : 0;
    if (!emit_plain(b, i))
        return false;
    interp_insn_add(b, interp_unguard);
    if (!b->no_memory)
        b->p->insns[guard].extra = b->p->insn_count - guard;
    return true;
}
