/*
 * Events are on time: where a program records one its completion is seen, whatever stands behind
 * it, and who waits for it waits for nothing more. CUDA's documentation of cuEventRecord,
 * cuEventSynchronize and cuStreamWaitEvent is what these cases expect.
 */
#include <criterion/criterion.h>

#include "fake.h"

#define EVENTS 64u /* of a queue that the driver has */

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *a, *b;

/* Both have a stream; that of `a` stands still. */
static void begin(void)
{
    d = fake_device();
    c = fake_client(d, 0, 0);
    a = fake_queue(c, 0, 0, 0);
    b = fake_queue(c, 0, 1, 0);
    fake_launch(a, 1, 1);
    fake_launch(b, 1, 2);
    cuda.flush(c);
    fake_hold(fake_stream(a), true);
}

static void end(void)
{
    fake_let_go();
    cuda.flush(c);
    fake_client_end(c);
    fake_forget();
}

static uint64_t completed(const struct dev_queue *q)
{
    return fake_done(q);
}

Test(point, an_event_is_seen_though_a_kernel_stands_behind_it, .init = begin, .fini = end)
{
    fake_launch(a, 2, 10);
    cr_assert_eq(cuda.mark(a, 3), 0);
    fake_launch(a, 4, 11);
    cuda.flush(c);
    cr_assert_eq(completed(a), 1);
    fake_step(fake_stream(a));
    cr_assert_eq(completed(a), 3);
}

Test(point, so_is_one_with_timing, .init = begin, .fini = end)
{
    fake_launch(a, 2, 10);
    cr_assert_eq(cuda.stamp(a, 3, 0), 0);
    fake_launch(a, 4, 11);
    cuda.flush(c);
    fake_step(fake_stream(a));
    cr_assert_eq(completed(a), 3);
}

Test(point, and_one_between_launches_that_wait_in_a_row, .init = begin, .fini = end)
{
    for (uint32_t i = 0; i < 8; i++)
        fake_launch_one_of_many(a, 2 + i, 10 + i);
    cr_assert_eq(cuda.mark(a, 10), 0);
    for (uint32_t i = 0; i < 8; i++)
        fake_launch_one_of_many(a, 11 + i, 20 + i);
    cuda.flush(c);
    for (uint32_t i = 0; i < 8; i++)
        fake_step(fake_stream(a));
    cr_assert_eq(completed(a), 10);
}

Test(point, who_waits_for_an_event_waits_for_nothing_behind_it, .init = begin, .fini = end)
{
    fake_launch(a, 2, 10);
    cr_assert_eq(cuda.mark(a, 3), 0);
    fake_launch(a, 4, 11);
    cr_assert_eq(cuda.mark(a, 5), 0);
    fake_launch(a, 6, 12);
    cr_assert_eq(cuda.wait(b, 2, a, 3), 0);
    fake_launch(b, 3, 30);
    cuda.flush(c);
    fake_expect(30, 0);
    fake_step(fake_stream(a));
    fake_expect(30, 1);
}

Test(point, but_for_all_that_is_before_it, .init = begin, .fini = end)
{
    fake_launch(a, 2, 10);
    cr_assert_eq(cuda.mark(a, 3), 0);
    fake_launch(a, 4, 11);
    cr_assert_eq(cuda.mark(a, 5), 0);
    cr_assert_eq(cuda.wait(b, 2, a, 5), 0);
    fake_launch(b, 3, 30);
    cuda.flush(c);
    fake_step(fake_stream(a));
    fake_expect(30, 0);
    fake_step(fake_stream(a));
    fake_expect(30, 1);
}

Test(point, of_many_events_an_old_one_is_waited_for_a_little_longer, .init = begin, .fini = end)
{
    uint64_t seq = 1;
    for (uint32_t i = 0; i < EVENTS + 4; i++) {
        fake_launch(a, ++seq, 100 + i);
        cr_assert_eq(cuda.mark(a, ++seq), 0);
    }
    cr_assert_eq(cuda.wait(b, 2, a, 3),
                 0); /* the first, of which the driver has no event any more */
    fake_launch(b, 3, 30);
    cuda.flush(c);
    for (uint32_t i = 0; i < 4; i++)
        fake_step(fake_stream(a));
    fake_expect(30, 0);
    fake_step(fake_stream(a));
    fake_expect(30, 1);
}

static uint32_t seen_busy;

static void look_who_is_busy(void)
{
    seen_busy = cuda.backlog(c);
}

Test(point, a_client_is_busy_while_the_driver_takes_its_operation, .init = begin, .fini = end)
{
    fake_let_go();
    while (cuda.backlog(c))
        ;
    fake_when_launched(look_who_is_busy);
    fake_launch(a, 2, 10);
    fake_when_launched(NULL);
    cr_assert_eq(seen_busy, 1);
}
