/*
 * Loads, stores and atomics of every kind, lane by lane. The common ones have faster forms
 * (vector_memory.h), which call these for everything else: narrow elements, local, param and
 * generic addresses, memory order, faults.
 *
 * Every element is read and written by one atomic access of its size, so that other blocks never
 * see half of one; where the access has an order, all elements together.
 */
#include "device/soft/exec/helpers.h"
#include "device/soft/interp/interp.h"
#include "device/soft/interp/program.h"

#include <string.h>

#include "device/soft/interp/format.h"
#include "device/soft/ir/lanes.h"
#include "device/soft/ir/phase.h"
#include "device/soft/ir/spaces.h"

_Static_assert(SOFT_SHARED_BASE == IR_GENERIC_SHARED && SOFT_LOCAL_BASE == IR_GENERIC_LOCAL &&
                   SOFT_PARAM_BASE == IR_GENERIC_PARAM,
               "the spaces lie where the ir says");

uint64_t interp_lane_address(const struct interp_run *r, const struct interp_access *a,
                             unsigned lane)
{
    uint64_t at = a->displacement;
    if (a->symbol != IR_NONE)
        at += r->block->globals[a->symbol];
    if (a->base == INTERP_NOWHERE)
        return at;
    if (a->base_width == INTERP_W32)
        return (uint32_t)(at + ((const uint32_t *)interp_operand(r, a->base))[lane]);
    return at + ((const uint64_t *)interp_operand(r, a->base))[lane];
}

/* The host's address of `bytes` bytes for a lane; NULL: a fault, which is then set. Alignment is
 * checked first. */
static uint8_t *lane_reach(struct interp_run *r, const struct interp_access *a, unsigned lane,
                           uint32_t bytes)
{
    const struct soft_block *b = r->block;
    uint64_t at = interp_lane_address(r, a, lane);
    uint32_t low = (uint32_t)at;
    uint8_t space = a->space;
    if (at & (bytes - 1)) {
        interp_fault(r, SOFT_FAULT_MISALIGNED, at, lane);
        return NULL;
    }
    if (space == IR_SPACE_GENERIC) {
        if (soft_address_is_shared(at))
            space = IR_SPACE_SHARED;
        else if (soft_address_is_local(at))
            space = IR_SPACE_LOCAL;
        else if (soft_address_is_param(at))
            space = IR_SPACE_PARAM;
    }
    switch (space) {
    case IR_SPACE_SHARED:
        return b->shared + (low & b->shared_mask);
    case IR_SPACE_LOCAL:
        if (bytes <= b->local_stride && low <= b->local_stride - bytes)
            return b->local + soft_local_place(b->local_stride, r->first_thread + lane, low);
        interp_fault(r, SOFT_FAULT_ADDRESS, SOFT_LOCAL_BASE + low, lane);
        return NULL;
    case IR_SPACE_PARAM:
        if (a->op == IR_MODE_NONE && a->is_load && bytes <= r->program->param_bytes &&
            low <= r->program->param_bytes - bytes)
            return (uint8_t *)(uintptr_t)(b->params + low);
        interp_fault(r, SOFT_FAULT_ADDRESS, SOFT_PARAM_BASE + low, lane);
        return NULL;
    default:
        if (at - b->window_base <= b->window_mask - (bytes - 1))
            return (uint8_t *)(uintptr_t)at;
        interp_fault(r, SOFT_FAULT_ADDRESS, at, lane);
        return NULL;
    }
}

static uint64_t element_load(const struct interp_access *a, const uint8_t *p)
{
    uint64_t v;
    switch (a->size) {
    case 1:
        v = __atomic_load_n(p, __ATOMIC_RELAXED);
        v = a->is_signed ? (uint64_t)(int8_t)v : v;
        break;
    case 2:
        v = __atomic_load_n((const uint16_t *)(const void *)p, __ATOMIC_RELAXED);
        v = a->is_signed ? (uint64_t)(int16_t)v : v;
        break;
    case 4:
        v = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);
        v = a->is_signed ? (uint64_t)(int32_t)v : v;
        break;
    default:
        v = __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_RELAXED);
        break;
    }
    return v;
}

static void element_store(const struct interp_access *a, uint8_t *p, uint64_t v)
{
    switch (a->size) {
    case 1:
        __atomic_store_n(p, (uint8_t)v, __ATOMIC_RELAXED);
        break;
    case 2:
        __atomic_store_n((uint16_t *)(void *)p, (uint16_t)v, __ATOMIC_RELAXED);
        break;
    case 4:
        __atomic_store_n((uint32_t *)(void *)p, (uint32_t)v, __ATOMIC_RELAXED);
        break;
    default:
        __atomic_store_n((uint64_t *)(void *)p, v, __ATOMIC_RELAXED);
        break;
    }
}

/* Whether all elements are accessed at once, which is done by way of `struct whole`. */
static bool is_whole(const struct interp_access *a)
{
    uint32_t bytes = (uint32_t)a->size * a->count;
    return a->count > 1 && bytes <= IR_WHOLE_BYTES && a->order != IR_ORDER_WEAK &&
           a->space != IR_SPACE_LOCAL && a->space != IR_SPACE_PARAM;
}

struct whole {
    _Alignas(IR_WHOLE_BYTES) uint8_t bytes[IR_WHOLE_BYTES];
};

/* Copies 2, 4, 8 or 16 aligned bytes in one piece. Processors with AVX do so with 16 bytes, too. */
static void copy_whole(void *to, const void *from, uint32_t bytes)
{
    uint64_t v;
#if defined(__x86_64__)
    if (bytes == IR_WHOLE_BYTES) {
        __asm__ volatile("movdqa (%1), %%xmm0\n\tmovdqa %%xmm0, (%0)" ::"r"(to), "r"(from)
                         : "xmm0", "memory");
        return;
    }
#endif
    switch (bytes) {
    case 2:
        v = __atomic_load_n((const uint16_t *)from, __ATOMIC_RELAXED);
        __atomic_store_n((uint16_t *)to, (uint16_t)v, __ATOMIC_RELAXED);
        break;
    case 4:
        v = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
        __atomic_store_n((uint32_t *)to, (uint32_t)v, __ATOMIC_RELAXED);
        break;
    case 8:
        v = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);
        __atomic_store_n((uint64_t *)to, v, __ATOMIC_RELAXED);
        break;
    default:
        memcpy(to, from, bytes);
        break;
    }
}

/* Writes one value to all of `lanes`. */
static void broadcast(const struct interp_run *r, interp_at at, uint8_t width, uint32_t lanes,
                      uint64_t v)
{
    if (width == INTERP_W32 && r->full && lanes == r->mask) {
        uint32_t *d = interp_operand(r, at);
        for (unsigned l = 0; l < SOFT_WARP; l++)
            d[l] = (uint32_t)v;
    } else if (width == INTERP_W64 && r->full && lanes == r->mask) {
        uint64_t *d = interp_operand(r, at);
        for (unsigned l = 0; l < SOFT_WARP; l++)
            d[l] = v;
    } else {
        for (; lanes; lanes &= lanes - 1)
            interp_lane_write(r, at, width, (unsigned)__builtin_ctz(lanes), v);
    }
}

static bool orders_after(const struct interp_access *a)
{
    return a->order == IR_ORDER_ACQUIRE || a->order == IR_ORDER_ACQ_REL || a->order == IR_ORDER_SC;
}

static bool orders_before(const struct interp_access *a)
{
    return a->order == IR_ORDER_RELEASE || a->order == IR_ORDER_ACQ_REL || a->order == IR_ORDER_SC;
}

/* A warp reads a place once for all neighbouring lanes that want it: they get one value even while
 * another block writes there, and so do not part where they test it. */
const struct interp_insn *interp_load_lanes(const struct interp_insn *i, struct interp_run *r,
                                            uint32_t lanes)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    uint32_t bytes = (uint32_t)a->size * a->count;
    bool one = a->base == INTERP_NOWHERE && a->space != IR_SPACE_LOCAL && lanes != 0;
    bool whole = is_whole(a);
    struct whole copy;
    const uint8_t *last = NULL;
    uint64_t v[GM_ARRAY_LEN(a->value)];
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        const uint8_t *p = lane_reach(r, a, l, bytes);
        if (GM_UNLIKELY(!p))
            return NULL;
        if (whole && p != last)
            copy_whole(copy.bytes, p, bytes);
        for (uint32_t k = 0; k < a->count; k++) {
            if (a->value[k] == INTERP_NOWHERE)
                continue;
            if (GM_UNLIKELY(r->block->watch))
                r->block->watch(r->block->watch_arg, r->first_thread + l, p + k * a->size, a->size,
                                NULL);
            if (p != last)
                v[k] = element_load(a, (whole ? copy.bytes : p) + k * a->size);
            if (one)
                broadcast(r, a->value[k], a->width[k], lanes, v[k]);
            else
                interp_lane_write(r, a->value[k], a->width[k], l, v[k]);
        }
        last = p;
        if (one)
            break;
    }
    if (orders_after(a))
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return i + 1;
}

const struct interp_insn *interp_load_slow(const struct interp_insn *i, struct interp_run *r)
{
    return interp_load_lanes(i, r, r->mask);
}

const struct interp_insn *interp_store_lanes(const struct interp_insn *i, struct interp_run *r,
                                             uint32_t lanes)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    uint32_t bytes = (uint32_t)a->size * a->count, turn = ir_store_group(bytes) - 1;
    uint8_t *at[SOFT_WARP];
    bool one = true, whole = is_whole(a);
    struct whole copy;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        at[l] = lane_reach(r, a, l, bytes);
        if (GM_UNLIKELY(!at[l]))
            return NULL;
        one = one && at[l] == at[__builtin_ctz(lanes)];
    }
    if (one && lanes)
        lanes = 1u << ir_store_lane(lanes, bytes);
    if (orders_before(a))
        __atomic_thread_fence(__ATOMIC_RELEASE);
    for (uint32_t left = ir_store_order(lanes, turn); left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left) ^ turn;
        for (uint32_t k = 0; k < a->count; k++) {
            uint64_t v = interp_lane_read(r, a->value[k], a->width[k], l);
            uint8_t *p = at[l] + k * a->size;
            if (GM_UNLIKELY(r->block->watch))
                r->block->watch(r->block->watch_arg, r->first_thread + l, p, a->size, &v);
            element_store(a, whole ? copy.bytes + k * a->size : p, v);
        }
        if (whole)
            copy_whole(at[l], copy.bytes, bytes);
    }
    return i + 1;
}

const struct interp_insn *interp_store_slow(const struct interp_insn *i, struct interp_run *r)
{
    return interp_store_lanes(i, r, r->mask);
}

/* Adds two 16-bit floats. */
static uint16_t half_sum(uint8_t type, uint64_t a, uint64_t b)
{
    return interp_half_from_double(type,
                                   interp_odd_add((double)interp_half_to_float(type, (uint16_t)a),
                                                  (double)interp_half_to_float(type, (uint16_t)b)));
}

/* Adds two floats as the hardware does: it flushes subnormal f32 in global memory, not in shared
 * memory. */
static uint64_t atomic_sum(const struct interp_access *a, uint64_t old, uint64_t v)
{
    uint8_t type = a->type;
    switch (type) {
    case IR_F32:
        if (a->space == IR_SPACE_SHARED)
            return interp_f32_bits(interp_f32(old) + interp_f32(v));
        return interp_f32_bits(interp_ftz(interp_ftz(interp_f32(old)) + interp_ftz(interp_f32(v))));
    case IR_F64:
        return interp_f64_bits(interp_f64(old) + interp_f64(v));
    case IR_F16:
    case IR_BF16:
        return half_sum(type, old, v);
    case IR_F16X2:
    case IR_BF16X2: {
        uint8_t half = type == IR_F16X2 ? IR_F16 : IR_BF16;
        return half_sum(half, old, v) | (uint64_t)half_sum(half, old >> 16, v >> 16) << 16;
    }
    default:
        return old + v;
    }
}

/* The value that memory has after the operation. */
static uint64_t atomic_result(const struct interp_access *a, uint64_t old, uint64_t v)
{
    uint64_t x = interp_extend(a->type, old), y = interp_extend(a->type, v);
    bool less = ir_type_is_signed(a->type) ? (int64_t)x < (int64_t)y : x < y;
    switch (a->op) {
    case IR_ATOM_ADD:
        return atomic_sum(a, old, v);
    case IR_ATOM_MIN:
        return less ? x : y;
    case IR_ATOM_MAX:
        return less ? y : x;
    case IR_ATOM_AND:
        return old & v;
    case IR_ATOM_OR:
        return old | v;
    case IR_ATOM_XOR:
        return old ^ v;
    case IR_ATOM_INC:
        return x >= y ? 0 : x + 1;
    case IR_ATOM_DEC:
        return x == 0 || x > y ? y : x - 1;
    case IR_ATOM_PHASE:
        return ir_phase_add(old, v);
    default: /* EXCH */
        return v;
    }
}

/* Carries out an atomic operation on one element; returns the old value. */
#define DEFINE_ATOMIC(bits)                                                                        \
    static uint64_t atomic_##bits(const struct interp_access *a, void *at, uint64_t v,             \
                                  uint64_t v2)                                                     \
    {                                                                                              \
        uint##bits##_t *p = at, old;                                                               \
        if (a->op == IR_ATOM_CAS) {                                                                \
            old = (uint##bits##_t)v;                                                               \
            __atomic_compare_exchange_n(p, &old, (uint##bits##_t)v2, false, __ATOMIC_SEQ_CST,      \
                                        __ATOMIC_SEQ_CST);                                         \
            return old;                                                                            \
        }                                                                                          \
        if (a->op == IR_ATOM_ADD && ir_types[a->type].class != 'F')                                \
            return __atomic_fetch_add(p, (uint##bits##_t)v, __ATOMIC_SEQ_CST);                     \
        old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                \
        while (!__atomic_compare_exchange_n(p, &old, (uint##bits##_t)atomic_result(a, old, v),     \
                                            false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))            \
            ;                                                                                      \
        return old;                                                                                \
    }
DEFINE_ATOMIC(16)
DEFINE_ATOMIC(32)
DEFINE_ATOMIC(64)

#if defined(__x86_64__)
/* In assembly, because compilers call a library for it unless all code may use the instruction. */
static unsigned __int128 exchange_if(unsigned __int128 *at, unsigned __int128 old,
                                     unsigned __int128 with)
{
    uint64_t low = (uint64_t)old, high = (uint64_t)(old >> 64);
    __asm__ volatile("lock cmpxchg16b %2"
                     : "+a"(low), "+d"(high), "+m"(*at)
                     : "b"((uint64_t)with), "c"((uint64_t)(with >> 64))
                     : "cc", "memory");
    return (unsigned __int128)high << 64 | low;
}
#else
static unsigned __int128 exchange_if(unsigned __int128 *at, unsigned __int128 old,
                                     unsigned __int128 with)
{
    __atomic_compare_exchange_n(at, &old, with, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return old;
}
#endif

/* Exchange, or compare and exchange (`compares`), on 16 aligned bytes. Values are given as two
 * halves. */
static void atomic_128(uint32_t compares, void *at, const uint64_t *v, uint64_t old[2])
{
    unsigned __int128 a = (unsigned __int128)v[1] << 64 | v[0], was;
    if (compares) {
        was = exchange_if(at, a, (unsigned __int128)v[3] << 64 | v[2]);
    } else {
        unsigned __int128 guess = 0;
        while ((was = exchange_if(at, guess, a)) != guess)
            guess = was;
    }
    old[0] = (uint64_t)was;
    old[1] = (uint64_t)(was >> 64);
}

static void lane_128(const struct interp_run *r, const struct interp_access *a, unsigned lane,
                     void *at)
{
    bool compares = a->op == IR_ATOM_CAS;
    uint64_t v[4], old[2];
    for (unsigned k = 0; k < (compares ? 4u : 2u); k++)
        v[k] = interp_lane_read(r, a->value[k], a->width[k], lane);
    atomic_128(compares, at, v, old);
    for (unsigned k = 0; k < 2; k++)
        if (a->old[k] != INTERP_NOWHERE)
            interp_lane_write(r, a->old[k], INTERP_W64, lane, old[k]);
}

/* atom and red. value[0] and value[1]: the operands; d: where the old value goes, or
 * INTERP_NOWHERE. Lanes go one after the other. */
const struct interp_insn *interp_atom(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint8_t *p = lane_reach(r, a, l, a->size);
        if (GM_UNLIKELY(!p))
            return NULL;
        if (a->size == 16) {
            lane_128(r, a, l, p);
            continue;
        }
        uint64_t v = interp_lane_read(r, a->value[0], a->width[0], l), v2 = 0, old;
        if (a->value[1] != INTERP_NOWHERE)
            v2 = interp_lane_read(r, a->value[1], a->width[1], l);
        if (a->size == 2)
            old = atomic_16(a, p, v, v2);
        else if (a->size == 4)
            old = atomic_32(a, p, v, v2);
        else
            old = atomic_64(a, p, v, v2);
        if (i->d != INTERP_NOWHERE)
            interp_lane_write(r, i->d, a->width[2], l,
                              a->is_signed ? interp_extend(a->type, old) : old);
    }
    return i + 1;
}

static uint32_t add_halves(uint32_t type, void *at, uint32_t v)
{
    const struct interp_access a = { .op = IR_ATOM_ADD, .type = (uint8_t)type };
    return ir_types[type].size == 2 ? (uint32_t)atomic_16(&a, at, v, 0)
                                    : (uint32_t)atomic_32(&a, at, v, 0);
}

void interp_serve(struct soft_helpers *h)
{
    h->compute = interp_compute;
    h->add_halves = add_halves;
    h->atomic_128 = atomic_128;
}
