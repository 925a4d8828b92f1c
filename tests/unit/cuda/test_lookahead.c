/* How much of a queue the driver has: by the time that it takes, and never so that something waits
 * for ever. */
#include <criterion/criterion.h>
#include <sched.h>

#include "device/cuda/stream.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/queue.h"
#include "fake.h"

TestSuite(lookahead, .timeout = 20);

#define FEW 2u /* of operations that take 5 ms each: 8 ms, and at least two */

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;

static void begin(void)
{
    d = fake_device();
    d->ahead_ns = CUDA_AHEAD_NS;
    c = fake_client(d, FAKE_SMS, 0);
    cr_assert_eq(cuda_queue_create(c, 0, 1, 0, 0, &q), 0);
    cuda_stream_place(q);
}

static void end(void)
{
    fake_client_end(c);
}

static void takes(uint64_t pace)
{
    pthread_mutex_lock(&d->lock);
    q->pace = pace;
    cuda_ahead_note(q);
    pthread_mutex_unlock(&d->lock);
}

static void launch(uint64_t from, uint64_t to)
{
    for (uint64_t seq = from; seq <= to; seq++)
        fake_launch(q, seq, (uint32_t)seq);
    cuda_flush(c);
}

/* As the client's thread does: it sleeps until the bell rings, then hands over what it can. */
static void go_on_until(uint64_t last)
{
    while (atomic_load(&q->slot->completed.value) < last) {
        uint32_t bell = atomic_load(&c->session->control->ring.bell);
        cuda_flush(c);
        while (atomic_load(&c->session->control->ring.bell) == bell &&
               atomic_load(&q->slot->completed.value) < last)
            sched_yield();
    }
}

Test(lookahead, of_long_operations_the_driver_has_two, .init = begin, .fini = end)
{
    takes(5 * GM_NS_PER_MS);
    fake_hold(q->stream, true);
    launch(1, 40);
    cr_assert_eq(q->last, FEW);
    cr_assert_eq(cuda_unfinished(c), 40, "they are the client's backlog");
    fake_step(q->stream);
    while (atomic_load(&q->waits_ahead)) /* the watch has rung */
        sched_yield();
    cuda_flush(c);
    cr_assert_gt(q->last, FEW);
    fake_hold(q->stream, false);
    go_on_until(40);
    fake_expect(40, 1);
}

Test(lookahead, a_queue_that_is_not_known_yet_has_some, .init = begin, .fini = end)
{
    fake_hold(q->stream, true);
    launch(1, 100);
    cr_assert_eq(q->last, CUDA_AHEAD_FIRST);
    fake_hold(q->stream, false);
    go_on_until(100);
}

Test(lookahead, short_operations_are_not_held, .init = begin, .fini = end)
{
    takes(GM_NS_PER_US);
    fake_hold(q->stream, true);
    launch(1, 700);
    cr_assert_eq(q->last, 700);
    fake_hold(q->stream, false);
    go_on_until(700);
}

Test(lookahead, another_queue_of_the_client_goes_on, .init = begin, .fini = end)
{
    struct dev_queue *other;
    cr_assert_eq(cuda_queue_create(c, 0, 2, 0, 0, &other), 0);
    cuda_stream_place(other);
    takes(5 * GM_NS_PER_MS);
    fake_hold(q->stream, true);
    launch(1, 10);
    for (uint64_t seq = 1; seq <= 10; seq++)
        fake_launch(other, seq, 1000);
    cuda_flush(c);
    while (atomic_load(&other->slot->completed.value) < 10)
        sched_yield();
    cr_assert_eq(q->last, FEW);
    fake_hold(q->stream, false);
    go_on_until(10);
}

Test(lookahead, who_forges_completions_only_has_more_in_flight, .init = begin, .fini = end)
{
    takes(5 * GM_NS_PER_MS);
    fake_hold(q->stream, true);
    launch(1, 4);
    atomic_store(&q->slot->completed.value, UINT64_MAX);
    launch(5, 20);
    atomic_store(&q->slot->completed.value, 0);
    launch(21, 40);
    fake_hold(q->stream, false);
    go_on_until(40);
}
