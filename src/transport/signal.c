/*
 * A number is taken in two steps, and a program may end after either. The first step writes the
 * number and its recorder into one word, which takes the number. The second makes it the last
 * number that there is. A program that finds the second step missing does it.
 */
#include "transport/signal.h"

#include <errno.h>

#define STORE_TRIES 8u /* the numbers of a word are mostly stored one after the other */

static void advance(struct tp_signal *s, uint32_t number)
{
    uint32_t last = number - 1;
    (void)atomic_compare_exchange_strong_explicit(&s->recorded, &last, number, memory_order_acq_rel,
                                                  memory_order_relaxed);
}

int tp_signal_take(struct tp_signal *s, uint32_t recorder, uint64_t in_order, uint32_t *number)
{
    for (;;) {
        uint32_t n = atomic_load_explicit(&s->recorded, memory_order_acquire) + 1;
        _Atomic uint64_t *word = &s->records[n % TP_SIGNAL_WORDS];
        uint64_t before = atomic_load_explicit(word, memory_order_acquire);
        if (atomic_load_explicit(&s->recorded, memory_order_acquire) + 1 != n)
            continue; /* the word may have been changed later */
        if ((uint32_t)before == n) {
            advance(s, n);
            continue;
        }
        if (n != in_order && !tp_signal_reached(s, n - TP_SIGNAL_WORDS))
            return -EAGAIN;
        if (atomic_compare_exchange_strong_explicit(word, &before, (uint64_t)recorder << 32 | n,
                                                    memory_order_seq_cst, memory_order_relaxed)) {
            advance(s, n);
            *number = n;
            return 0;
        }
    }
}

void tp_signal_store(struct tp_signal *s, uint32_t number)
{
    _Atomic uint32_t *word = &s->done[number % TP_SIGNAL_WORDS];
    uint32_t done = atomic_load_explicit(word, memory_order_relaxed);
    /* A program that changes the word all the time is not waited for. */
    for (unsigned tries = 0; tries < STORE_TRIES && (int32_t)(done - number) < 0 &&
                             !atomic_compare_exchange_strong_explicit(
                                 word, &done, number, memory_order_release, memory_order_relaxed);
         tries++)
        ;
}

void tp_signals_end(struct tp_signal_page *page, uint32_t recorder)
{
    for (struct tp_signal *s = page->signals; s < page->signals + TP_SIGNALS; s++)
        for (uint32_t i = 0; i < TP_SIGNAL_WORDS; i++) {
            uint64_t record = atomic_load_explicit(&s->records[i], memory_order_seq_cst);
            /* A program that writes nonsense gets it into its own word. */
            if (record >> 32 == recorder)
                tp_signal_store(s, (uint32_t)record);
        }
}
