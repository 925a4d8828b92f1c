/* A client writes what it likes into its session: the device's own books stay right. */
#include <criterion/criterion.h>
#include <sched.h>

#include "fake.h"

TestSuite(hostile, .timeout = 20);

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;

static void begin(void)
{
    d = fake_device();
    c = fake_client(d, 132, 0);
    q = fake_queue(c, 0, 1, 0);
}

/* Streams are given up when the device says that it has nothing of the client's. */
Test(hostile, what_is_held_back_stays_on_the_books, .init = begin)
{
    struct dev_queue *other;
    cr_assert_eq(cuda.gate(q, 1), 0);
    for (uint64_t seq = 2; seq <= 10; seq++)
        cr_assert_eq(cuda.mark(q, seq), 0);
    cr_assert_eq(cuda.backlog(c), 10);
    atomic_store(&fake_session(c)->streams[2].completed.value, 11);
    other = fake_queue(c, 0, 2, 0);
    cr_assert_eq(cuda.mark(other, 1), 0);
    cr_assert_eq(cuda.backlog(c), 10);
    fake_client_end(c);
}

/* A completion word that is ahead of the GPU makes neither the device's count nor the queue take
 * work for done that still runs. */
Test(hostile, a_stream_is_not_done_before_its_work_is, .init = begin)
{
    fake_launch(q, 1, 7);
    fake_hold(fake_stream(q), true);
    fake_launch(q, 2, 7);
    cuda.flush(c);
    atomic_store(&fake_slot(q)->completed.value, 2);
    while (cuda.backlog(c))
        sched_yield();
    cr_assert_not(cuda.queue_is_done(q));
    fake_hold(fake_stream(q), false);
    cr_assert(cuda.queue_is_done(q));
    fake_client_end(c);
}
