/* A guarded call is left by faults and interrupts, however many come. */
#include <criterion/criterion.h>
#include <sched.h>

#include "device/guard.h"

#define SENDERS    3
#define INTERRUPTS 100000
#define CALLS      3u

TestSuite(guard, .timeout = 30);

static struct dev_guard guard;
static _Atomic bool runs, ends, interrupt;
static _Atomic unsigned calls;
static pthread_t worker;
static int results[CALLS];

static void run(void *arg)
{
    atomic_store(&runs, true);
    while (!atomic_load(&ends))
        ;
}

static void fault(void *arg)
{
    *(volatile int *)arg = 1;
}

/* One call after the other. */
static void *work(void *arg)
{
    cr_assert_eq(dev_guard_thread_begin(), 0);
    guard.interrupt = &interrupt;
    cr_assert_eq(dev_guard_call(&guard, fault, (void *)8), SIGSEGV);
    cr_assert_eq(guard.address, 8);
    for (unsigned i = 0; i < CALLS && !atomic_load(&ends); i++) {
        results[i] = dev_guard_call(&guard, run, NULL);
        atomic_store(&interrupt, false);
        atomic_store(&runs, false);
        atomic_fetch_add(&calls, 1);
    }
    return NULL;
}

static void begin(void)
{
    dev_guard_install();
    cr_assert_eq(pthread_create(&worker, NULL, work, NULL), 0);
    while (!atomic_load(&runs))
        sched_yield();
}

/* Whatever ended the one before: the signal is not left blocked. */
Test(guard, interrupts_end_one_call_after_the_other)
{
    begin();
    for (unsigned i = 0; i < CALLS; i++) {
        while (!atomic_load(&runs))
            sched_yield();
        atomic_store(&interrupt, true);
        while (atomic_load(&calls) == i) {
            dev_guard_interrupt(worker);
            sched_yield();
        }
    }
    pthread_join(worker, NULL);
    for (unsigned i = 0; i < CALLS; i++)
        cr_assert_eq(results[i], DEV_GUARD_INTERRUPT);
}

static void *send_many(void *arg)
{
    for (unsigned i = 0; i < INTERRUPTS; i++)
        dev_guard_interrupt(worker);
    return NULL;
}

/* They are not stacked until the signal stack overflows. */
Test(guard, interrupts_may_come_faster_than_they_are_delivered)
{
    pthread_t senders[SENDERS];
    begin();
    for (unsigned i = 0; i < SENDERS; i++)
        cr_assert_eq(pthread_create(&senders[i], NULL, send_many, NULL), 0);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(senders[i], NULL);
    cr_assert_eq(atomic_load(&calls), 0);
    atomic_store(&ends, true);
    pthread_join(worker, NULL);
    cr_assert_eq(atomic_load(&calls), 1);
    cr_assert_eq(results[0], 0);
}

/* An interrupt that comes while the call stands still takes effect afterwards. */
Test(guard, a_call_that_stands_still_is_interrupted_when_it_is_let_go)
{
    begin();
    dev_guard_hold(&guard, worker);
    atomic_store(&interrupt, true);
    for (unsigned i = 0; i < 1000; i++)
        dev_guard_interrupt(worker);
    cr_assert_eq(atomic_load(&calls), 0);
    dev_guard_let_go(&guard);
    while (atomic_load(&calls) == 0) {
        dev_guard_interrupt(worker);
        sched_yield();
    }
    atomic_store(&ends, true);
    pthread_join(worker, NULL);
    cr_assert_eq(results[0], DEV_GUARD_INTERRUPT);
}
