/* Where clients' streams live: groups of multiprocessors, bands of priorities, and changes on the way. */
#include <criterion/criterion.h>

#include "fake.h"

TestSuite(places, .timeout = 20);

static struct dev_queue *queue(struct dev_client *c, uint32_t number, int priority)
{
    struct dev_queue *q;
    cr_assert_eq(cuda_queue_create(c, 0, number, priority, &q), 0);
    cuda_stream_place(q); /* as something for the GPU does */
    return q;
}

Test(places, what_is_said_of_the_device)
{
    struct dev *d = fake_device();
    cr_assert_eq(d->gpus[0].info.multiprocessors_step, 8);
    cr_assert_eq(d->gpus[0].info.multiprocessors_shared, 120);
    cr_assert_eq(d->gpus[0].info.priorities, 4);
    cr_assert_eq(d->gpus[0].info.priorities_low, 2);
}

Test(places, clients_do_not_overlap_while_there_is_room)
{
    struct dev *d = fake_device();
    struct dev_client *c[4];
    uint64_t used = 0;
    for (int i = 0; i < 3; i++) {
        c[i] = fake_client(d, 40, 0);
        uint64_t groups = fake_stream_groups(queue(c[i], 1, 0)->stream);
        cr_assert_eq(__builtin_popcountll(groups), 5);
        cr_assert_eq(groups & used, 0);
        used |= groups;
    }
    c[3] = fake_client(d, 64, 0); /* no room: anywhere */
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(queue(c[3], 1, 0)->stream)), 8);
    fake_client_end(c[3]);
    uint64_t freed = fake_stream_groups(gm_list_entry(c[1]->queues.next, struct dev_queue, link)->stream);
    fake_client_end(c[1]);
    c[1] = fake_client(d, 40, 0);
    cr_assert_eq(fake_stream_groups(queue(c[1], 1, 0)->stream), freed);
    cr_assert_eq(fake_greens(), 3);
    for (int i = 0; i < 3; i++)
        fake_client_end(c[i]);
    cr_assert_eq(fake_greens(), 0);
}

Test(places, without_a_limit_there_is_no_green_context)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    cr_assert_eq(fake_stream_groups(queue(c, 1, 0)->stream), 0);
    cr_assert_eq(fake_greens(), 0);
    fake_client_end(c);
}

Test(places, what_is_never_for_the_gpu_needs_no_stream)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    struct dev_queue *q;
    cr_assert_eq(cuda_queue_create(c, 0, 1, 0, &q), 0);
    cr_assert_eq(cuda_mark(q, 1), 0);
    cr_assert_eq(atomic_load(&q->slot->completed.value), 1, "at once");
    cr_assert_null(q->stream);
    cr_assert_eq(cuda_backlog(c), 0);
    cuda_stream_place(q);
    fake_hold(q->stream, true);
    cr_assert_eq(cuda_mark(q, 2), 0);
    cuda_flush(c);
    cr_assert_eq(atomic_load(&q->slot->completed.value), 1, "in its stream's order from then on");
    fake_hold(q->stream, false);
    cr_assert_eq(atomic_load(&q->slot->completed.value), 2);
    fake_client_end(c);
}

Test(places, whoever_is_below_normal_comes_after_everybody)
{
    struct dev *d = fake_device();
    struct dev_client *normal = fake_client(d, 132, 0), *low = fake_client(d, 132, 1);
    cr_assert_eq(fake_stream_priority(queue(normal, 1, 0)->stream), -2);
    cr_assert_eq(fake_stream_priority(queue(normal, 2, -3)->stream), -5);
    cr_assert_eq(fake_stream_priority(queue(normal, 3, -100)->stream), -5);
    cr_assert_eq(fake_stream_priority(queue(normal, 4, 100)->stream), -2);
    cr_assert_eq(fake_stream_priority(queue(low, 1, 0)->stream), 0);
    cr_assert_eq(fake_stream_priority(queue(low, 2, -1)->stream), -1);
    cr_assert_eq(fake_stream_priority(queue(low, 3, INT32_MIN)->stream), -1);
}

Test(places, a_stream_moves_behind_what_it_has)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 40, 0);
    struct dev_queue *q = queue(c, 1, 0);
    CUstream first = q->stream;
    fake_hold(first, true);
    cr_assert_eq(cuda_mark(q, 1), 0);
    cuda_flush(c);
    cr_assert_eq(cuda_place_set(c, &d->gpus[0], 40, 0), CUDA_SUCCESS);
    cr_assert_eq(fake_greens(), 1, "nothing has changed");
    cr_assert_eq(cuda_place_set(c, &d->gpus[0], 16, 0), CUDA_SUCCESS);
    cr_assert_eq(fake_greens(), 2);
    cr_assert_eq(cuda_mark(q, 2), 0);
    cuda_flush(c);
    cr_assert_neq(q->stream, first);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(q->stream)), 2);
    cr_assert_eq(atomic_load(&q->slot->completed.value), 0, "the new stream waits for the old one");
    cr_assert_eq(cuda_place_set(c, &d->gpus[0], 132, 0), CUDA_SUCCESS); /* again, before the first move has ended */
    cr_assert_eq(cuda_mark(q, 3), 0);
    cuda_flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(q->stream)), 2);
    cr_assert_eq(fake_greens(), 2);
    fake_hold(first, false);
    cr_assert_eq(atomic_load(&q->slot->completed.value), 3);
    cr_assert_eq(cuda_mark(q, 4), 0);
    cuda_flush(c);
    cr_assert_eq(atomic_load(&q->slot->completed.value), 4);
    cr_assert_eq(fake_stream_groups(q->stream), 0);
    cr_assert_eq(fake_greens(), 0);
    fake_client_end(c);
}

static struct dev_queue *queue_in(struct dev_client *c, uint32_t number, uint64_t groups)
{
    atomic_store(&c->session->streams[number].groups, groups);
    return queue(c, number, 0);
}

/* What a program makes of its own. */
Test(places, parts_are_within_the_whole)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 40, 0);
    struct dev_queue *all = queue(c, 1, 0), *low = queue_in(c, 2, 3), *high = queue_in(c, 3, 0x1c),
                     *again = queue_in(c, 4, 3);
    uint64_t whole = fake_stream_groups(all->stream), a = fake_stream_groups(low->stream),
             b = fake_stream_groups(high->stream);
    cr_assert_eq(__builtin_popcountll(whole), 5);
    cr_assert_eq(__builtin_popcountll(a), 2);
    cr_assert_eq(__builtin_popcountll(b), 3);
    cr_assert_eq(a | b, whole);
    cr_assert_eq(a & b, 0);
    cr_assert_eq(low->place, again->place, "one for both");
    cr_assert_eq(fake_greens(), 3);
    cuda_queue_destroy(low);
    cr_assert_eq(fake_greens(), 3);
    cuda_queue_destroy(again);
    cr_assert_eq(fake_greens(), 2, "nobody is in it any more");
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

Test(places, parts_of_a_device_without_a_limit)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    cr_assert_eq(fake_stream_groups(queue_in(c, 1, 0x5)->stream), 0x5);
    cr_assert_eq(fake_stream_groups(queue_in(c, 2, UINT64_MAX)->stream), (1u << FAKE_GROUPS) - 1,
                 "no more than there are");
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

/* With the whole, and with the program's own wishes for a stream's number that is used again. */
Test(places, parts_move)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 40, 0);
    struct dev_queue *q = queue_in(c, 1, 1);
    uint64_t before = fake_stream_groups(q->stream);
    cr_assert_eq(__builtin_popcountll(before), 1);
    cr_assert_eq(cuda_place_set(c, &d->gpus[0], 80, 0), CUDA_SUCCESS);
    cr_assert_eq(cuda_mark(q, 1), 0);
    cuda_flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(q->stream)), 1);
    cr_assert_eq(cuda_mark(q, 2), 0);
    cuda_flush(c);
    atomic_store(&q->slot->groups, 0x3ff);
    cuda_queue_reuse(q);
    cr_assert_eq(cuda_mark(q, 3), 0);
    cuda_flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(q->stream)), 10);
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

Test(places, parts_without_number)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    for (uint32_t i = 1; i <= 70; i++) /* more than are made */
        queue_in(c, i, i);
    cr_assert_leq(fake_greens(), 64);
    cr_assert_eq(fake_stream_groups(queue_in(c, 71, 71)->stream), 0, "then it is all");
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}
