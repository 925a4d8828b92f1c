/* Where the GPU is crowded, kernels of clients that have had less of it go first. */
#include <criterion/criterion.h>
#include <sched.h>

#include "base/clock.h"
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
    fake_credit(d, 100 * GM_NS_PER_MS, GM_NS_PER_MS);
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

/* What the queue has in flight ends, and the watch has seen that. */
static void finish(struct dev_queue *q)
{
    fake_hold(fake_stream(q), false);
    while (!fake_is_seen(q))
        sched_yield();
    fake_hold(fake_stream(q), true);
}

/* A kernel of the queue runs alone for so long, at least. */
static void run(struct dev_queue *q, struct dev_client *c, uint32_t blocks, uint64_t ns)
{
    launch(q, blocks, false);
    cuda.flush(c);
    while (!fake_is_watched(q))
        sched_yield();
    for (const uint64_t begun = gm_now_ns(); gm_now_ns() - begun < ns;)
        sched_yield();
    finish(q);
}

static bool goes_first(struct dev_queue *q, uint32_t blocks)
{
    launch(q, blocks, false);
    const int priority = fake_launch_priority();
    cr_assert(priority == FAKE_STREAMS_PRIORITY ||
              priority == fake_stream_priority(fake_stream(q)) - 1);
    return priority != FAKE_STREAMS_PRIORITY;
}

Test(precedence, who_has_had_less_goes_first, .init = begin, .fini = end)
{
    run(large, one, LARGE, 5 * GM_NS_PER_MS);
    crowd();
    cr_assert(goes_first(small, 1));
    cr_assert(goes_first(small, LARGE));
    cr_assert(!goes_first(large, LARGE));
    cr_assert(!goes_first(large, 1));
}

Test(precedence, that_may_be_the_other_one_later, .init = begin, .fini = end)
{
    run(large, one, LARGE, 5 * GM_NS_PER_MS);
    run(small, two, LARGE, 50 * GM_NS_PER_MS);
    crowd();
    cr_assert(goes_first(large, LARGE));
    cr_assert(!goes_first(small, 1));
}

Test(precedence, nearly_the_same_is_the_same, .init = begin, .fini = end)
{
    fake_credit(d, GM_NS_PER_S, GM_NS_PER_S / 2);
    run(large, one, LARGE, 5 * GM_NS_PER_MS);
    crowd();
    cr_assert(!goes_first(small, 1));
    cr_assert(!goes_first(large, LARGE));
}

Test(precedence, a_small_part_of_the_gpu_counts_little, .init = begin, .fini = end)
{
    run(large, one, LARGE, 5 * GM_NS_PER_MS);
    run(small, two, 1, 50 * GM_NS_PER_MS);
    crowd();
    cr_assert(goes_first(small, LARGE));
}

Test(precedence, what_was_long_ago_does_not_count, .init = begin, .fini = end)
{
    fake_credit(d, GM_NS_PER_MS, GM_NS_PER_MS);
    run(large, one, LARGE, 50 * GM_NS_PER_MS);
    run(small, two, LARGE, 5 * GM_NS_PER_MS);
    crowd();
    cr_assert(!goes_first(small, LARGE));
}

Test(precedence, a_program_keeps_its_order, .init = begin, .fini = end)
{
    struct dev_queue *other = fake_queue_with_stream(two, 0, 2, 0);
    fake_hold(fake_stream(other), true);
    launch(other, LARGE, false);
    run(large, one, LARGE, 50 * GM_NS_PER_MS);
    crowd();
    cr_assert(!goes_first(small, LARGE));
    finish(other);
    cr_assert(goes_first(small, LARGE));
    cr_assert(!goes_first(other, LARGE));
    cuda.flush(two);
    finish(small);
    cr_assert(goes_first(other, LARGE));
    fake_hold(fake_stream(other), false);
}

/* A run that was learnt is a graph, too. */
Test(precedence, it_is_in_no_run, .init = begin, .fini = end)
{
    const uint32_t records[2] = { 1, 1 };
    const struct dev_run what = { ++seq, 1, sizeof(records), records };
    (void)cuda.run_begin(small, &what);
    cr_assert_eq(cuda.run_begin(small, &what), DEV_RUN_LEARN);
    fake_launch(small, seq, 1);
    cr_assert(cuda.run_end(small, &what));
    cr_assert_eq(cuda.run_begin(small, &what), DEV_RUN_DONE);
    cuda.flush(two);
    finish(small);
    run(large, one, LARGE, 50 * GM_NS_PER_MS);
    crowd();
    cr_assert_eq(cuda.run_begin(small, &what), DEV_RUN_PLAIN);
}

/* A row is a graph, whose kernels have no priority of their own. */
Test(precedence, it_is_in_no_row, .init = begin, .fini = end)
{
    run(large, one, LARGE, 5 * GM_NS_PER_MS);
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
