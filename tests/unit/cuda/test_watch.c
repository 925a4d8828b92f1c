/* A thread that sleeps until something is done hears of it from the watch. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "fake.h"

TestSuite(watch, .timeout = 20);

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;
static _Atomic unsigned sleeps; /* how often the program has gone to sleep */

static int count(void *arg)
{
    sleeps++;
    return 0;
}

static void *wait_for_it(void *arg)
{
    const struct tp_wait_policy long_sleep = { .slice_ms = 3600000, .watchdog = count };
    (void)tp_word_wait(&fake_slot(q)->completed, *(uint64_t *)arg, &long_sleep);
    return NULL;
}

/* Three kernels with an event behind the first two. */
static void begin(void)
{
    d = fake_device();
    c = fake_client(d, FAKE_SMS, 0);
    q = fake_queue_with_stream(c, 0, 1, 0);
    fake_hold(fake_stream(q), true);
    fake_launch(q, 1, 1);
    fake_launch(q, 2, 1);
    cr_assert_eq(cuda.mark(q, 3), 0);
    fake_launch(q, 4, 1);
    cuda.flush(c);
}

static void end(void)
{
    fake_client_end(c);
    fake_forget();
}

/* Its sleep has no end of its own, so it is the watch that wakes it, and only once. */
Test(watch, who_sleeps_is_woken_when_it_is_done, .init = begin, .fini = end)
{
    const uint64_t mark = 3;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, wait_for_it, (void *)(uintptr_t)&mark), 0);
    while (sleeps == 0)
        sched_yield();
    fake_hold(fake_stream(q), false);
    pthread_join(thread, NULL);
    cr_assert_leq(sleeps, 2); /* it may have slept until the mark before */
}
