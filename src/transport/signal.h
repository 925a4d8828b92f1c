/*
 * Signals: a page of host memory in which programs of one user tell each other how far an event has
 * come. A program that records the event takes the next number and has its device store that number
 * into `done` when the stream has come so far; a program that waits, waits for the number that was
 * the last when it asked.
 *
 * `done` is several words because records in different streams may finish in any order; a number
 * uses the word of its remainder, and that word only after the number before it there has been
 * stored.
 *
 * Whose a number is stands beside it, from the moment it is taken: what a program has recorded when
 * it ends is never stored by its device, and the server does so, once nothing of that program runs
 * any more.
 *
 * Everything in it may be wrong: all who have the page can write it. It only says when to go on.
 * Who scribbles in it can keep those waiting that share the page, and nobody else.
 */
#ifndef GMUX_TRANSPORT_SIGNAL_H
#define GMUX_TRANSPORT_SIGNAL_H

#include <stdatomic.h>

#include "base/attr.h"

#define TP_SIGNAL_PAGE  4096u
#define TP_SIGNALS      32u /* of a page */
#define TP_SIGNAL_WORDS 8u

struct tp_signal {
    _Atomic uint64_t records[TP_SIGNAL_WORDS]; /* the last number that uses the word, and in the
                                                  upper half whose it is */
    _Atomic uint32_t done[TP_SIGNAL_WORDS];
    _Atomic uint32_t recorded; /* number of the last record */
    uint32_t reserved[7];
};
_Static_assert(sizeof(struct tp_signal) == 128, "layout");

struct tp_signal_page {
    struct tp_signal signals[TP_SIGNALS];
};
_Static_assert(sizeof(struct tp_signal_page) == TP_SIGNAL_PAGE, "layout");

/* A client's name in these pages, which no other client of the server has while it has its window:
 * not 0. Private servers share pages, too: the lower bits of the server's process number tell them
 * apart. */
#define TP_SIGNAL_WINDOW_BITS 32u /* windows are aligned to 2 to the power of this, at least */
/* addresses of programs have 47 bits */
#define TP_SIGNAL_SERVER_SHIFT (47u - TP_SIGNAL_WINDOW_BITS)
static inline uint32_t tp_signal_recorder(uint64_t window_base, uint32_t server_pid)
{
    return server_pid << TP_SIGNAL_SERVER_SHIFT | (uint32_t)(window_base >> TP_SIGNAL_WINDOW_BITS);
}

static inline bool tp_signal_reached(const struct tp_signal *s, uint32_t number)
{
    uint32_t done = atomic_load_explicit(&s->done[number % TP_SIGNAL_WORDS], memory_order_acquire);
    return (int32_t)(done - number) >= 0;
}

/* Whether `recorder` has taken that number, and nobody the next one of its word. */
static inline bool tp_signal_is_of(const struct tp_signal *s, uint32_t number, uint32_t recorder)
{
    return atomic_load_explicit(&s->records[number % TP_SIGNAL_WORDS], memory_order_acquire) ==
           ((uint64_t)recorder << 32 | number);
}

/* Takes the next number for `recorder`. 0; -EAGAIN: the number before it in its word has not been
 * stored, and the next one is not `in_order`, of which the caller knows that its device stores it
 * after that one. */
#define TP_SIGNAL_NONE UINT64_MAX /* for `in_order` */
int tp_signal_take(struct tp_signal *s, uint32_t recorder, uint64_t in_order, uint32_t *number);

/* Stores what a device would have. */
void tp_signal_store(struct tp_signal *s, uint32_t number);

/* Stores what the devices will not any more: all that `recorder` has taken. */
void tp_signals_end(struct tp_signal_page *page, uint32_t recorder);

#endif
