/* Small kernels go before larger ones of others, and nobody else's do. */
#include <criterion/criterion.h>
#include <sched.h>

#include "fake.h"

TestSuite(precedence, .timeout = 20);

#define LARGE 8448u /* blocks: twice what the GPU has room for */

static struct dev *d;
static struct dev_client *one, *two;
static struct dev_queue *large, *small;
static uint64_t seq;

static struct dev_queue *queue_of(struct dev_client *c)
{
    struct dev_queue *q;
    q = fake_queue_with_stream(c, 0, 1, 0);
    fake_hold(fake_stream(q), true);
    return q;
}

static void begin(void)
{
    d = fake_device();
    one = fake_client(d, FAKE_SMS, 0);
    two = fake_client(d, FAKE_SMS, 0);
    large = queue_of(one);
    small = queue_of(two);
}

static void end(void)
{
    fake_hold(fake_stream(large), false);
    fake_hold(fake_stream(small), false);
    fake_client_end(one);
    fake_client_end(two);
}

static void launch(struct dev_queue *q, uint32_t blocks, bool more)
{
    fake_launch_as(q, ++seq, &(struct fake_kernel) { .number = 1, .blocks = blocks, .more = more });
}

/* Both are busy, and the watch has seen that. */
static void crowd(void)
{
    launch(large, LARGE, false);
    cuda.flush(one);
    launch(small, 1, false);
    cuda.flush(two);
    while (!fake_is_crowded(d))
        sched_yield();
    (void)fake_launch_priority();
}

Test(precedence, a_small_kernel_goes_before_a_large_one, .init = begin, .fini = end)
{
    crowd();
    launch(small, 1, false);
    cr_assert_eq(fake_launch_priority(), fake_stream_priority(fake_stream(small)) - 1);
}

Test(precedence, a_large_one_does_not, .init = begin, .fini = end)
{
    crowd();
    launch(large, LARGE, false);
    cr_assert_eq(fake_launch_priority(), FAKE_STREAMS_PRIORITY);
    launch(small, LARGE / 2, false); /* a whole GPU's */
    cr_assert_eq(fake_launch_priority(), FAKE_STREAMS_PRIORITY);
}

/* A row is a graph, whose kernels have no priority of their own. */
Test(precedence, it_is_in_no_row, .init = begin, .fini = end)
{
    crowd();
    for (unsigned i = 0; i < 16 * 20; i++)
        launch(small, 1, true);
    cuda.flush(two);
    cr_assert_eq(fake_graph_launches(), 0);
}

Test(precedence, without_large_kernels_nobody_has_it, .init = begin, .fini = end)
{
    launch(large, 1, false);
    cuda.flush(one);
    launch(small, 1, false);
    cuda.flush(two);
    for (unsigned i = 0; i < 1000; i++) /* whatever the watch has seen of it */
        sched_yield();
    launch(small, 1, false);
    cr_assert_eq(fake_launch_priority(), FAKE_STREAMS_PRIORITY);
}
