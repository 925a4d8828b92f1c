/*
 * Signals: a page of host memory in which programs of one user tell each other how far an event has come. Whoever
 * records the event takes the next number and has its device store that number into `done` when the stream has come so
 * far; whoever waits, waits for the number that was the last when it asked.
 *
 * `done` is several words because records in different streams may finish in any order; a number uses the word of its
 * remainder, and that word only after the number before it there has been stored.
 *
 * Everything in it may be wrong: all who have the page can write it. It only says when to go on.
 */
#ifndef GMUX_TRANSPORT_SIGNAL_H
#define GMUX_TRANSPORT_SIGNAL_H

#include <stdatomic.h>

#include "base/attr.h"

#define TP_SIGNAL_PAGE  4096u
#define TP_SIGNALS      63u /* of a page */
#define TP_SIGNAL_WORDS 8u

struct tp_signal {
    _Atomic uint32_t recorded; /* number of the last record */
    _Atomic uint32_t recorder; /* whose it was: a random number of the process */
    _Atomic uint32_t done[TP_SIGNAL_WORDS];
    uint32_t reserved[6];
};
_Static_assert(sizeof(struct tp_signal) == 64, "layout");

struct tp_signal_page {
    _Atomic uint32_t orphan; /* server: who made the page is gone, and none of its work runs any more */
    uint32_t reserved[15];
    struct tp_signal signals[TP_SIGNALS];
};
_Static_assert(sizeof(struct tp_signal_page) == TP_SIGNAL_PAGE, "layout");

static inline bool tp_signal_reached(const struct tp_signal *s, uint32_t number)
{
    uint32_t done = atomic_load_explicit(&s->done[number % TP_SIGNAL_WORDS], memory_order_acquire);
    return (int32_t)(done - number) >= 0;
}

#endif
