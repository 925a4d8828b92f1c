/*
 * How gmux waits: spin, then sleep on a futex, and look around while sleeping. One policy for
 * everybody who waits on shared memory: a client for a completion, an executor for records, a
 * producer for room in a ring.
 *
 * A wait word is a 64-bit counter that only grows. One side publishes, any number wait. The
 * sleepers' count lets the publisher skip the system call when nobody sleeps; a peer that lies in
 * it costs itself its wake-ups, which the slices below bound, and costs the publisher one system
 * call at most.
 *
 * Shared between processes: futexes are not private, fields are lock-free atomics, nothing is
 * inherited over fork.
 */
#ifndef GMUX_TRANSPORT_WAIT_H
#define GMUX_TRANSPORT_WAIT_H

#include <stdatomic.h>

#include "base/attr.h"

struct tp_word {
    _Atomic uint64_t value;
    _Atomic uint32_t sleepers;
    uint32_t reserved;
};
_Static_assert(sizeof(struct tp_word) == 16, "layout");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "shared atomics must be lock-free");

struct tp_wait_policy {
    uint32_t spin_ns;  /* first look at the word for so long */
    uint32_t yield_ns; /* then for so long, giving way to other threads that want the
                          processor, before sleeping */
    uint32_t slice_ms; /* sleep at most this long before asking the watchdog */
    /* Called after each slice and once before the first sleep: 0 goes on waiting, anything else
     * ends the wait with that value. NULL: none. It finds out whether the peer is dead. */
    int (*watchdog)(void *arg);
    void *arg;
};

/* Stores `value` and wakes those who sleep. Publisher only. */
void tp_word_publish(struct tp_word *w, uint64_t value);

/* Wakes those who sleep, for a word that a device has stored to. Publisher only. */
void tp_word_wake(struct tp_word *w);

/* 0 once the word is >= `value` (with acquire order), or what the watchdog returned. */
int tp_word_wait(struct tp_word *w, uint64_t value, const struct tp_wait_policy *policy);

/* Sleep while `*flag == expected`, at most `ms`; spurious returns are normal. Wakes come from
 * tp_futex_wake(). */
void tp_futex_wait(_Atomic uint32_t *flag, uint32_t expected, uint32_t ms);
void tp_futex_wait_ns(_Atomic uint32_t *flag, uint32_t expected, uint64_t ns);
void tp_futex_wake(_Atomic uint32_t *flag);

#endif
