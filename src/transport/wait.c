/*
 * Sleeps on a 64-bit word by means of a 32-bit futex, which is the word's low half. That half
 * changes with every publication, unless exactly a multiple of 2^32 come between reading and
 * sleeping; such a sleep ends with the slice.
 *
 * The handshake is Dekker's. The waiter sets its flag and then looks at the value; the publisher
 * stores the value and then looks at the flag. With a full fence between the two steps on both
 * sides, at least one of them sees the other.
 */
#include "transport/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic uint32_t *low_half(struct tp_word *w)
{
    /* Valid on little-endian machines, as wire/codec.c asserts. */
    return (_Atomic uint32_t *)(uintptr_t)&w->value;
}

void tp_futex_wait_ns(_Atomic uint32_t *flag, uint32_t expected, uint64_t ns)
{
    const uint64_t second = 1000 * GM_NS_PER_MS;
    struct timespec ts = { .tv_sec = (time_t)(ns / second), .tv_nsec = (long)(ns % second) };
    syscall(SYS_futex, flag, FUTEX_WAIT, expected, &ts, NULL, 0);
}

void tp_futex_wait(_Atomic uint32_t *flag, uint32_t expected, uint32_t ms)
{
    tp_futex_wait_ns(flag, expected, ms * GM_NS_PER_MS);
}

void tp_futex_wake(_Atomic uint32_t *flag)
{
    syscall(SYS_futex, flag, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void tp_word_publish(struct tp_word *w, uint64_t value)
{
    atomic_store_explicit(&w->value, value, memory_order_release);
    tp_word_wake(w);
}

void tp_word_wake(struct tp_word *w)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (GM_UNLIKELY(atomic_load_explicit(&w->sleepers, memory_order_relaxed) != 0))
        tp_futex_wake(low_half(w));
}

static bool reached(struct tp_word *w, uint64_t value)
{
    return atomic_load_explicit(&w->value, memory_order_acquire) >= value;
}

int tp_word_wait(struct tp_word *w, uint64_t value, const struct tp_wait_policy *policy)
{
    if (GM_LIKELY(reached(w, value)))
        return 0;
    if (policy->spin_ns) {
        uint64_t end = gm_now_ns() + policy->spin_ns;
        do {
            for (int i = 0; i < 16; i++) {
                if (reached(w, value))
                    return 0;
                gm_cpu_relax();
            }
        } while (gm_now_ns() < end);
    }
    if (policy->yield_ns) {
        uint64_t end = gm_now_ns() + policy->yield_ns;
        do {
            if (reached(w, value))
                return 0;
            sched_yield();
        } while (gm_now_ns() < end);
    }
    int r = 0;
    atomic_fetch_add_explicit(&w->sleepers, 1, memory_order_seq_cst);
    for (;;) {
        uint64_t seen = atomic_load_explicit(&w->value, memory_order_seq_cst);
        if (seen >= value)
            break;
        if (policy->watchdog && (r = policy->watchdog(policy->arg)) != 0)
            break;
        tp_futex_wait(low_half(w), (uint32_t)seen, policy->slice_ms);
    }
    atomic_fetch_sub_explicit(&w->sleepers, 1, memory_order_relaxed);
    return r;
}
