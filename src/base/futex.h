/*
 * Sleeping on a word of this process (futex(2)). No call takes a lock, so a signal handler and
 * code that may be left at any instruction (device/guard.h) can use them.
 */
#ifndef GMUX_BASE_FUTEX_H
#define GMUX_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* Sleeps while the word has that value, until gm_now_ns() reaches `until_ns`; 0: without an end.
 * May return early. Sets errno. */
static inline void gm_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
    const struct timespec until = { .tv_sec = (time_t)(until_ns / GM_NS_PER_S),
                                    .tv_nsec = (long)(until_ns % GM_NS_PER_S) };
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until_ns ? &until : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

/* Wakes one thread that sleeps on the word. */
static inline void gm_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Changes the word, and wakes one thread that sleeps on it. */
static inline void gm_futex_ring(_Atomic uint32_t *word)
{
    atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
    gm_futex_wake(word);
}

#endif
