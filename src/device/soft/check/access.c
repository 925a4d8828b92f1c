/*
 * Checks one access of one lane: bounds, alignment, whether memory that is read was ever written.
 * Findings go into the launch's log.
 *
 * A read of unwritten memory is reported only if no byte of an element has been written: structs
 * with padding are copied whole, and unwritten padding is no mistake. Compilers also copy padding
 * by itself (is_hole), and structs in local memory as vectors: there the access as a whole decides.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/check/check.h"
#include "device/soft/ir/ir.h"

#define HOLE_MOST 8u /* the most bytes of padding at once: structs are aligned to this */

bool soft_check_is_over(const struct soft_block *b)
{
    return __atomic_load_n(&b->check->log->invalid, __ATOMIC_RELAXED) > SOFT_CHECK_INVALID_MOST;
}

static void tell(struct soft_block *b, const struct soft_check_access *a, enum soft_check_kind kind,
                 uint64_t at, uint32_t size)
{
    const struct soft_check_block *k = b->check;
    const struct soft_check_finding f = { .kind = (uint8_t)kind,
                                          .space = a->space,
                                          .size = (uint8_t)size,
                                          .address = at,
                                          .line = k->line_of(k->program, a->index),
                                          .thread = a->thread,
                                          .is_store = a->writes && kind != SOFT_CHECK_UNINIT,
                                          .is_atomic = a->reads && a->writes };
    soft_check_found(b, &f);
}

/* Bits [at, at + size) of one word. Accesses are aligned and have at most 32 bytes, so they never
 * lie in two words. */
static inline uint64_t mask_of(uint64_t at, uint32_t size)
{
    return ((1ull << size) - 1) << at % 64;
}

static bool inside(const struct soft_block *b, const struct soft_check_access *a, uint32_t bytes)
{
    const struct soft_check *c = b->check->check;
    uint64_t at = a->at;
    switch (a->space) {
    case IR_SPACE_SHARED:
        return bytes <= b->shared_size && at <= b->shared_size - bytes;
    case IR_SPACE_LOCAL:
        return bytes <= b->local_stride && at <= b->local_stride - bytes;
    default:
        at -= c->base;
        if (at >= c->size)
            return false;
        return (~__atomic_load_n(&c->valid[at / 64], __ATOMIC_RELAXED) & mask_of(at, bytes)) == 0;
    }
}

/* The word of bits that say which bytes were written, and in *at the bit of the access's first
 * byte. NULL: shared memory, for which race.c keeps that. */
static uint64_t *written_word(struct soft_block *b, const struct soft_check_access *a, uint64_t *at)
{
    const struct soft_check_block *k = b->check;
    if (a->space == IR_SPACE_SHARED)
        return NULL;
    *at = a->space == IR_SPACE_LOCAL ? a->thread * soft_check_local_bits(b->local_stride) + a->at
                                     : a->at - k->check->base;
    return (a->space == IR_SPACE_LOCAL ? k->local : k->check->written) + *at / 64;
}

/* Whether this is padding of a struct that is copied: a part of a word of which another part has
 * been written. */
static bool is_hole(const struct soft_block *b, const struct soft_check_access *a, uint32_t i,
                    const uint64_t *word, uint64_t at)
{
    if (!(a->copied >> i / a->size & 1) || a->size > HOLE_MOST / 4)
        return false;
    if (word)
        return (__atomic_load_n(word, __ATOMIC_RELAXED) &
                mask_of((at + i) & ~(HOLE_MOST - 1ull), HOLE_MOST)) != 0;
    uint64_t from = (a->at + i) & ~(HOLE_MOST - 1ull);
    return soft_check_shared_written(b, from, (uint32_t)GM_MIN(HOLE_MOST, b->shared_size - from));
}

static void check_read(struct soft_block *b, const struct soft_check_access *a, uint32_t bytes)
{
    bool whole = a->space == IR_SPACE_LOCAL;
    uint32_t step = whole ? bytes : a->size;
    uint64_t at = 0;
    const uint64_t *word = written_word(b, a, &at);
    uint64_t there = word ? __atomic_load_n(word, __ATOMIC_RELAXED) : 0;
    if (word && (~there & mask_of(at, bytes)) == 0)
        return;
    for (uint32_t i = 0; i < bytes; i += step) {
        if (!whole && !(a->wanted >> i / step & 1))
            continue;
        bool some = word ? (there & mask_of(at + i, step)) != 0
                         : soft_check_shared_written(b, a->at + i, step);
        if (some || is_hole(b, a, i, word, at))
            continue;
        tell(b, a, SOFT_CHECK_UNINIT, a->at + i, step);
        return;
    }
}

static void mark_written(struct soft_block *b, const struct soft_check_access *a, uint32_t bytes)
{
    uint64_t at = 0, *word = written_word(b, a, &at);
    uint64_t mask = mask_of(at, bytes);
    if (word && (~__atomic_load_n(word, __ATOMIC_RELAXED) & mask) != 0)
        __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
}

bool soft_check_access(struct soft_block *b, const struct soft_check_access *a)
{
    const struct soft_check_block *k = b->check;
    uint32_t bytes = (uint32_t)a->size * a->count, checks = k->check->checks;
    enum soft_check_kind kind = a->at & (bytes - 1)   ? SOFT_CHECK_MISALIGNED
                                : inside(b, a, bytes) ? SOFT_CHECK_NOTHING
                                                      : SOFT_CHECK_BOUNDS;
    if (GM_UNLIKELY(kind != SOFT_CHECK_NOTHING)) {
        if (!(checks & WIRE_CHECK_MEMORY))
            return true;
        tell(b, a, kind, a->at, bytes);
        __atomic_fetch_add(&k->log->invalid, 1, __ATOMIC_RELAXED);
        return false;
    }
    if (a->reads && checks & WIRE_CHECK_UNINIT)
        check_read(b, a, bytes);
    if (a->space == IR_SPACE_SHARED)
        soft_check_shared(b, a);
    else if (a->writes)
        mark_written(b, a, bytes);
    if (GM_UNLIKELY(a->strong) && a->space != IR_SPACE_LOCAL && checks & WIRE_CHECK_RACE)
        soft_check_signal(b, a);
    return true;
}
