/*
 * Races in shared memory. Two accesses of different threads to one byte are a race if one of them
 * is a write, not both are strong (volatile, relaxed, atomic and so on), and neither happened
 * before the other.
 *
 * What happened before what is known warp by warp. Each warp has a time, which advances when it
 * tells others something, and it knows up to which time it has heard of each other warp. A barrier
 * tells all warps that come to it. A fence tells what was done before it to a thread that reads
 * what is written behind the fence and then makes a fence of its own. Lanes of a warp hear of each
 * other at barriers and at bar.warp.sync. What one lane hears counts as known to its whole warp: so
 * races may be missed, but none is reported that is not there.
 *
 * Times never go back while the worker's memory lasts. So what an earlier block left is older than
 * the block's start, and nothing has to be cleared.
 */
#include <string.h>

#include "device/soft/check/check.h"
#include "device/soft/ir/ir.h"

/* A use of a byte, packed: time, whether it is strong, thread, instruction. */
#define INDEX_BITS  20u
#define THREAD_BITS 10u
#define STRONG_BIT  (INDEX_BITS + THREAD_BITS)
#define TIME_SHIFT  (STRONG_BIT + 1)
#define TIME_MOST   (1ull << 32) /* half of the times that fit */

_Static_assert(IR_MAX_INSTRS <= 1u << INDEX_BITS, "an instruction's number fits");

static uint64_t use_time(uint64_t use)
{
    return use >> TIME_SHIFT;
}

static uint32_t use_thread(uint64_t use)
{
    return use >> INDEX_BITS & ((1u << THREAD_BITS) - 1);
}

static uint32_t use_index(uint64_t use)
{
    return use & ((1u << INDEX_BITS) - 1);
}

static uint64_t use_make(uint64_t time, const struct soft_check_access *a)
{
    return time << TIME_SHIFT | (uint64_t)a->strong << STRONG_BIT |
           (uint64_t)a->thread << INDEX_BITS | a->index;
}

void soft_check_begin(struct soft_block *b, const void *program,
                      uint32_t (*line_of)(const void *program, uint32_t index))
{
    struct soft_check_block *k = b->check;
    k->program = program;
    k->line_of = line_of;
    if (k->now > TIME_MOST) {
        memset(k->warps, 0, sizeof(k->warps));
        memset(k->barriers, 0, sizeof(k->barriers));
        memset(k->signals, 0, sizeof(k->signals));
        memset(k->lanes, 0, sizeof(k->lanes));
        memset(k->words, 0, ((size_t)b->shared_size + 3) / 4 * sizeof(*k->words));
        k->now = 0;
    }
    k->start = ++k->now;
    for (uint32_t w = 0; w < b->warps; w++) {
        k->warps[w].time = k->start;
        k->warps[w].parted = k->warps[w].fenced_any = k->warps[w].pending_any = false;
    }
    if (k->local)
        memset(k->local, 0, soft_check_local_bits(b->local_stride) / 8 * b->threads);
}

static void join(struct soft_check_clock *to, const struct soft_check_clock *from)
{
    for (uint32_t w = 0; w < SOFT_CHECK_WARPS; w++)
        to->of[w] = GM_MAX(to->of[w], from->of[w]);
}

/* Publishes what the warp has done so far: all of it, with what it knows, is then in `known`. */
static struct soft_check_warp *tell(struct soft_check_block *k, uint32_t warp)
{
    struct soft_check_warp *w = &k->warps[warp];
    w->known.of[warp] = w->time;
    w->time = ++k->now;
    return w;
}

/* The warp learns what `clock` knows. All its lanes know what the warp published itself. */
static void hear(struct soft_check_warp *w, uint32_t warp, const struct soft_check_clock *clock)
{
    join(&w->known, clock);
    w->together = GM_MAX(w->together, clock->of[warp]);
}

void soft_check_arrive(struct soft_block *b, uint32_t warp, uint32_t barrier)
{
    struct soft_check_block *k = b->check;
    join(&k->barriers[barrier], &tell(k, warp)->known);
}

void soft_check_leave(struct soft_block *b, uint32_t warp, uint32_t barrier)
{
    struct soft_check_block *k = b->check;
    hear(&k->warps[warp], warp, &k->barriers[barrier]);
}

void soft_check_barrier_done(struct soft_block *b, uint32_t barrier)
{
    memset(&b->check->barriers[barrier], 0, sizeof(b->check->barriers[barrier]));
}

void soft_check_fence(struct soft_block *b, uint32_t warp)
{
    struct soft_check_block *k = b->check;
    struct soft_check_warp *w = tell(k, warp);
    if (w->pending_any)
        hear(w, warp, &w->pending);
    w->pending_any = false;
    w->fenced = w->known;
    w->fenced_any = true;
}

void soft_check_signal(struct soft_block *b, const struct soft_check_access *a)
{
    struct soft_check_block *k = b->check;
    uint32_t warp = a->thread / SOFT_WARP;
    struct soft_check_warp *w = &k->warps[warp];
    struct soft_check_clock *signal = &k->signals[(a->at >> 2 ^ a->at >> 8) % SOFT_CHECK_SIGNALS];
    if (a->reads && a->acquires) {
        hear(w, warp, signal);
    } else if (a->reads) {
        if (!w->pending_any)
            memset(&w->pending, 0, sizeof(w->pending));
        join(&w->pending, signal);
        w->pending_any = true;
    }
    if (a->writes && a->releases)
        join(signal, &tell(k, warp)->known);
    else if (a->writes && w->fenced_any)
        join(signal, &w->fenced);
}

void soft_check_warp_sync(struct soft_block *b, uint32_t warp, uint32_t lanes)
{
    struct soft_check_block *k = b->check;
    struct soft_check_warp *w = &k->warps[warp];
    uint32_t threads = GM_MIN(b->threads - warp * SOFT_WARP, (uint32_t)SOFT_WARP);
    uint32_t all = threads == SOFT_WARP ? UINT32_MAX : (1u << threads) - 1;
    if ((lanes & all) == all) {
        w->together = w->time;
        w->time = ++k->now;
        return;
    }
    uint64_t(*known)[SOFT_WARP] = k->lanes[warp];
    uint64_t most[SOFT_WARP] = { 0 };
    for (uint32_t left = lanes; left; left &= left - 1)
        for (unsigned m = 0; m < SOFT_WARP; m++)
            most[m] = GM_MAX(most[m], known[__builtin_ctz(left)][m]);
    for (uint32_t left = lanes; left; left &= left - 1)
        most[__builtin_ctz(left)] = w->time;
    for (uint32_t left = lanes; left; left &= left - 1)
        memcpy(known[__builtin_ctz(left)], most, sizeof(most));
    w->parted = true;
    w->time = ++k->now;
}

/* Whether the earlier use happened before the thread's access, or cannot conflict with it. */
static inline bool harmless(const struct soft_check_block *k, const struct soft_check_access *a,
                            uint64_t use)
{
    uint64_t time = use_time(use);
    uint32_t thread = use_thread(use);
    if (time < k->start || thread == a->thread || (a->strong && use >> STRONG_BIT & 1))
        return true;
    uint32_t warp = a->thread / SOFT_WARP, other = thread / SOFT_WARP;
    const struct soft_check_warp *w = &k->warps[warp];
    if (warp != other)
        return time <= w->known.of[other];
    if (time <= w->together)
        return true;
    return w->parted && time <= k->lanes[warp][a->thread % SOFT_WARP][thread % SOFT_WARP];
}

static void report(struct soft_block *b, const struct soft_check_access *a, uint64_t at,
                   uint64_t use, enum soft_check_kind kind)
{
    struct soft_check_block *k = b->check;
    const struct soft_check_finding f = { .kind = (uint8_t)kind,
                                          .space = IR_SPACE_SHARED,
                                          .size = (uint8_t)(a->size * a->count),
                                          .address = at,
                                          .line = k->line_of(k->program, a->index),
                                          .other_line = k->line_of(k->program, use_index(use)),
                                          .thread = a->thread,
                                          .other_thread = use_thread(use),
                                          .is_store = kind != SOFT_CHECK_RACE_RAW,
                                          .is_atomic = a->reads && a->writes,
                                          .other_is_store = kind != SOFT_CHECK_RACE_WAR };
    soft_check_found(b, &f);
}

/* Threads that write the value that is already there do not disturb each other. */
static bool changes(const struct soft_block *b, const struct soft_check_access *a, uint64_t at,
                    uint32_t bytes)
{
    return !a->bytes || memcmp(b->shared + at, a->bytes + (at - a->at), bytes) != 0;
}

/* Notes a use of `bytes` bytes that share one cell. True: a race was reported, and no other one
 * needs to be for this access. */
static bool use(struct soft_block *b, const struct soft_check_access *a, struct soft_check_cell *c,
                uint64_t at, uint32_t bytes, uint64_t now, bool found)
{
    const struct soft_check_block *k = b->check;
    if (!found && !harmless(k, a, c->write) && (!a->writes || changes(b, a, at, bytes))) {
        report(b, a, at, c->write, a->writes ? SOFT_CHECK_RACE_WAW : SOFT_CHECK_RACE_RAW);
        found = true;
    }
    /* A strong access also conflicts with the last write that was not strong. */
    if (!found && a->strong && !harmless(k, a, c->weak) &&
        (!a->writes || changes(b, a, at, bytes))) {
        report(b, a, at, c->weak, a->writes ? SOFT_CHECK_RACE_WAW : SOFT_CHECK_RACE_RAW);
        found = true;
    }
    if (!a->writes) {
        c->read[!harmless(k, a, c->read[0])] = now;
        return found;
    }
    for (unsigned i = 0; i < 2 && !found; i++)
        if (!harmless(k, a, c->read[i])) {
            report(b, a, at, c->read[i], SOFT_CHECK_RACE_WAR);
            found = true;
        }
    *c = (struct soft_check_cell) { .write = now, .weak = a->strong ? c->weak : now };
    return found;
}

void soft_check_shared(struct soft_block *b, const struct soft_check_access *a)
{
    struct soft_check_block *k = b->check;
    bool found = !(k->check->checks & WIRE_CHECK_RACE);
    uint64_t now = use_make(k->warps[a->thread / SOFT_WARP].time, a);
    uint32_t bytes = (uint32_t)a->size * a->count, step = GM_MIN(bytes, 4u);
    for (uint64_t at = a->at; at < a->at + bytes; at += step) {
        struct soft_check_word *w = &k->words[at / 4];
        if (GM_LIKELY(step == 4 && !w->split)) {
            found = use(b, a, &w->whole, at, 4, now, found);
            continue;
        }
        if (!w->split)
            for (unsigned i = 0; i < 4; i++)
                w->bytes[i] = w->whole;
        w->split = 1;
        for (uint32_t i = 0; i < step; i++)
            found = use(b, a, &w->bytes[(at + i) % 4], at + i, 1, now, found);
    }
}

bool soft_check_shared_written(const struct soft_block *b, uint64_t at, uint32_t size)
{
    for (uint64_t i = at; i < at + size; i++) {
        const struct soft_check_word *w = &b->check->words[i / 4];
        if (use_time(w->split ? w->bytes[i % 4].write : w->whole.write) >= b->check->start)
            return true;
    }
    return false;
}
