/* How much of a queue the driver has: by the time that it takes, and never so that something waits
 * for ever. */
#include <criterion/criterion.h>
#include <sched.h>

#include "base/clock.h"
#include "fake.h"

TestSuite(lookahead, .timeout = 20);

#define SOME 32u /* of operations in a queue that has no pace */
#define FEW  2u  /* of operations that take 5 ms each: 8 ms, and at least two */

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;

static void begin(void)
{
    d = fake_device();
    fake_look_ahead(d);
    c = fake_client(d, FAKE_SMS, 0);
    q = fake_queue_with_stream(c, 0, 1, 0);
}

static void end(void)
{
    fake_client_end(c);
}

static void launch(uint64_t from, uint64_t to)
{
    for (uint64_t seq = from; seq <= to; seq++)
        fake_launch(q, seq, (uint32_t)seq);
    cuda.flush(c);
}

/* As the client's thread does: it sleeps until the bell rings, then hands over what it can. */
static void go_on_until(uint64_t last)
{
    while (fake_done(q) < last) {
        uint32_t bell = atomic_load(&fake_session(c)->control->ring.bell);
        cuda.flush(c);
        while (atomic_load(&fake_session(c)->control->ring.bell) == bell && fake_done(q) < last)
            sched_yield();
    }
}

Test(lookahead, of_long_operations_the_driver_has_two, .init = begin, .fini = end)
{
    fake_pace(q, 5 * GM_NS_PER_MS);
    fake_hold(fake_stream(q), true);
    launch(1, 40);
    cr_assert_eq(fake_waiting_in(fake_stream(q)), FEW);
    cr_assert_eq(cuda.backlog(c), 40, "they are the client's backlog");
    const uint32_t bell = atomic_load(&fake_session(c)->control->ring.bell);
    fake_step(fake_stream(q));
    while (atomic_load(&fake_session(c)->control->ring.bell) == bell)
        sched_yield();
    cuda.flush(c);
    cr_assert_geq(fake_waiting_in(fake_stream(q)), FEW);
    fake_hold(fake_stream(q), false);
    go_on_until(40);
    fake_expect(40, 1);
}

Test(lookahead, a_queue_that_is_not_known_yet_has_some, .init = begin, .fini = end)
{
    fake_hold(fake_stream(q), true);
    launch(1, 100);
    cr_assert_eq(fake_waiting_in(fake_stream(q)), SOME);
    fake_hold(fake_stream(q), false);
    go_on_until(100);
}

/* Whatever the queue's operations took before. */
Test(lookahead, of_a_kernel_that_is_not_known_the_driver_has_two, .init = begin, .fini = end)
{
    fake_pace(q, GM_NS_PER_US);
    fake_hold(fake_stream(q), true);
    fake_launch_as(q, 1, &(struct fake_kernel) { .number = 1, .first = true });
    launch(2, 100);
    cr_assert_eq(fake_waiting_in(fake_stream(q)), FEW);
    fake_pace(q, GM_NS_PER_US);
    cuda.flush(c);
    cr_assert_eq(fake_waiting_in(fake_stream(q)), FEW, "the pace says nothing before it is done");
    fake_step(fake_stream(q));
    while (fake_done(q) < 1)
        sched_yield();
    while (fake_waiting_in(fake_stream(q)) < FEW)
        cuda.flush(c);
    fake_hold(fake_stream(q), false);
    go_on_until(100);
    fake_expect(100, 1);
}

Test(lookahead, short_operations_are_not_held, .init = begin, .fini = end)
{
    fake_pace(q, GM_NS_PER_US);
    fake_hold(fake_stream(q), true);
    launch(1, 700);
    cr_assert_eq(fake_waiting_in(fake_stream(q)), 700);
    fake_hold(fake_stream(q), false);
    go_on_until(700);
}

Test(lookahead, another_queue_of_the_client_goes_on, .init = begin, .fini = end)
{
    struct dev_queue *other;
    other = fake_queue_with_stream(c, 0, 2, 0);
    fake_pace(q, 5 * GM_NS_PER_MS);
    fake_hold(fake_stream(q), true);
    launch(1, 10);
    for (uint64_t seq = 1; seq <= 10; seq++)
        fake_launch(other, seq, 1000);
    cuda.flush(c);
    while (fake_done(other) < 10)
        sched_yield();
    cr_assert_eq(fake_waiting_in(fake_stream(q)), FEW);
    fake_hold(fake_stream(q), false);
    go_on_until(10);
}

Test(lookahead, who_forges_completions_only_has_more_in_flight, .init = begin, .fini = end)
{
    fake_pace(q, 5 * GM_NS_PER_MS);
    fake_hold(fake_stream(q), true);
    launch(1, 4);
    atomic_store(&fake_slot(q)->completed.value, UINT64_MAX);
    launch(5, 20);
    atomic_store(&fake_slot(q)->completed.value, 0);
    launch(21, 40);
    fake_hold(fake_stream(q), false);
    go_on_until(40);
}
