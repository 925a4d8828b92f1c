/* Numbers of records: taken by several at once, by some who stop in the middle, and what is stored
 * for those who are gone. */
#include "transport/signal.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#define THREADS 4u
#define EACH    20000u

static struct tp_signal_page page;
static _Atomic uint8_t taken[THREADS * EACH + 1];

/* Takes and stores; every eighth time it leaves the storing to the server. */
static void *records(void *arg)
{
    struct tp_signal *s = &page.signals[5];
    uint32_t who = *(uint32_t *)arg, number;
    for (unsigned i = 0; i < EACH; i++) {
        while (tp_signal_take(s, who, TP_SIGNAL_NONE, &number) < 0)
            sched_yield();
        cr_assert(number > 0 && number <= THREADS * EACH);
        cr_assert_eq(atomic_fetch_add(&taken[number], 1), 0);
        cr_assert_not(tp_signal_reached(s, number));
        cr_assert(tp_signal_is_of(s, number, who));
        if (i % 8 == 0)
            tp_signals_end(&page, who);
        else
            tp_signal_store(s, number);
        cr_assert(tp_signal_reached(s, number));
    }
    return NULL;
}

Test(signal, every_number_is_somebodys_and_once)
{
    pthread_t threads[THREADS];
    uint32_t names[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        names[i] = 0x1100 + i;
        cr_assert_eq(pthread_create(&threads[i], NULL, records, &names[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 1; i <= THREADS * EACH; i++)
        cr_assert_eq(taken[i], 1);
    cr_assert_eq(page.signals[5].recorded, THREADS * EACH);
}

/* Also where numbers begin again. */
Test(signal, a_word_is_used_again_when_it_has_been_stored)
{
    struct tp_signal *s = &page.signals[0];
    uint32_t number, first = UINT32_MAX - 20;
    s->recorded = first - 1;
    for (uint32_t i = 0; i < TP_SIGNAL_WORDS; i++) {
        uint32_t before = first - 1 - i;
        s->done[before % TP_SIGNAL_WORDS] = before;
        s->records[before % TP_SIGNAL_WORDS] = before;
    }
    for (uint32_t n = first; n != 40; n++) {
        cr_assert_eq(tp_signal_take(s, 1, TP_SIGNAL_NONE, &number), 0);
        cr_assert_eq(number, n);
        if (n - first < TP_SIGNAL_WORDS - 1)
            continue;
        cr_assert_eq(tp_signal_take(s, 2, TP_SIGNAL_NONE, &number), -EAGAIN);
        cr_assert_eq(tp_signal_take(s, 2, n + 2, &number), -EAGAIN);
        uint32_t oldest = n + 1 - TP_SIGNAL_WORDS;
        cr_assert_not(tp_signal_reached(s, oldest));
        tp_signal_store(s, oldest);
        tp_signal_store(s, oldest - TP_SIGNAL_WORDS); /* late, and of no use */
        cr_assert(tp_signal_reached(s, oldest));
    }
    cr_assert_eq(tp_signal_take(s, 1, 40, &number), 0);
    cr_assert_eq(tp_signal_take(s, 1, 41, &number), 0, "its device stores it after the one before");
    cr_assert_eq(number, 41);
    tp_signals_end(&page, 2);
    cr_assert_not(tp_signal_reached(s, 34));
    tp_signals_end(&page, 1);
    for (uint32_t n = 33; n <= 41; n++)
        cr_assert(tp_signal_reached(s, n));
    cr_assert_not(tp_signal_reached(s, 42));
}

Test(signal, who_stops_in_the_middle_holds_up_nobody)
{
    struct tp_signal *s = &page.signals[TP_SIGNALS - 1];
    uint32_t number;
    cr_assert_eq(tp_signal_take(s, 1, TP_SIGNAL_NONE, &number), 0);
    s->recorded--; /* it has come no further than that */
    cr_assert_eq(tp_signal_take(s, 2, TP_SIGNAL_NONE, &number), 0);
    cr_assert_eq(number, 2);
    cr_assert_eq(s->recorded, 2);
    tp_signals_end(&page, 1);
    cr_assert(tp_signal_reached(s, 1));
    cr_assert_not(tp_signal_reached(s, 2));
}
