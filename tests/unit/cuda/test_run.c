/* Runs: learnt when they come again, launched as one from then on, made anew when what they name
 * may have gone. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>

#include "fake.h"

TestSuite(run, .timeout = 20);

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;
static uint64_t seq;

static void begin(void)
{
    d = fake_device();
    c = fake_client(d, 132, 0);
    seq = 0;
    q = fake_queue(c, 0, 1, 0);
}

static void end(void)
{
    fake_client_end(c);
    cr_assert_eq(fake_graphs(), 0);
}

enum how {
    LAUNCHES,
    A_COPY,
    A_PRINT,
};

static void operations(uint64_t first, const uint32_t numbers[2], enum how how)
{
    fake_launch(q, first, numbers[0]);
    if (how == LAUNCHES)
        fake_launch(q, first + 1, numbers[1]);
    else if (how == A_PRINT)
        fake_print(q, first + 1, numbers[1]);
    else
        cr_assert_eq(cuda.copy(q, first + 1, &(struct wire_rec_copy) { .width = 0 }),
                     0); /* of nothing */
}

/* As the executor does it; the two numbers stand for the records. */
static enum dev_run_verdict hand_over(uint32_t a, uint32_t b, enum how how)
{
    const uint32_t numbers[2] = { a, b };
    const struct dev_run run = {
        .seq = seq + 1, .count = 2, .size = sizeof(numbers), .records = numbers
    };
    enum dev_run_verdict verdict = cuda.run_begin(q, &run);
    if (verdict != DEV_RUN_DONE)
        operations(seq + 1, numbers, how);
    if (verdict == DEV_RUN_LEARN && !cuda.run_end(q, &run))
        operations(seq + 1, numbers, how);
    seq += 2;
    cuda.flush(c);
    while (cuda.backlog(c)) /* until the watch has seen it */
        sched_yield();
    cr_assert_eq(fake_done(q), seq);
    return verdict;
}

/* Expects that each of its two operations happens once, in order. */
static enum dev_run_verdict same(uint32_t a, uint32_t b)
{
    char want[64];
    enum dev_run_verdict verdict = hand_over(a, b, LAUNCHES);
    snprintf(want, sizeof(want), "%u\n%u\n", a, b);
    cr_assert_str_eq(fake_printed(), want);
    return verdict;
}

Test(run, is_learnt_when_it_comes_again, .init = begin, .fini = end)
{
    cr_assert_eq(same(1, 2), DEV_RUN_PLAIN);
    cr_assert_eq(same(3, 4), DEV_RUN_PLAIN);
    cr_assert_eq(fake_graphs(), 0);
    cr_assert_eq(same(1, 2), DEV_RUN_LEARN);
    cr_assert_eq(fake_graphs(), 1);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    cr_assert_eq(same(1, 3), DEV_RUN_PLAIN, "others");
    cr_assert_eq(fake_graphs(), 1);
}

Test(run, is_made_anew_when_a_module_has_gone, .init = begin, .fini = end)
{
    uint32_t plain = 0;
    same(1, 2);
    same(1, 2);
    cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    for (uint32_t wait = 1; wait <= 7; wait = 2 * wait + 1) { /* and each time that takes longer */
        fake_modules_change(c);
        for (plain = 0; same(1, 2) == DEV_RUN_PLAIN; plain++)
            ;
        cr_assert_eq(plain, wait);
        cr_assert_eq(same(1, 2), DEV_RUN_DONE);
        cr_assert_eq(fake_graphs(), 1);
    }
}

Test(run, is_made_anew_when_local_memory_has_gone, .init = begin, .fini = end)
{
    struct dev_client *large = fake_client(d, 132, 0);
    fake_need_local(d, large, 32u << 10);
    same(1, 2);
    same(1, 2);
    cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    fake_need_local(d, large, 0);
    cr_assert_eq(same(1, 2), DEV_RUN_PLAIN);
    cr_assert_eq(same(1, 2), DEV_RUN_LEARN);
    cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    fake_client_end(large);
}

Test(run, only_copies_mind_memory_that_has_gone, .init = begin, .fini = end)
{
    same(1, 2);
    same(1, 2);
    fake_memory_goes(c);
    cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    hand_over(5, 6, A_COPY);
    cr_assert_eq(hand_over(5, 6, A_COPY), DEV_RUN_LEARN);
    cr_assert_eq(hand_over(5, 6, A_COPY), DEV_RUN_DONE);
    fake_memory_goes(c);
    cr_assert_eq(hand_over(5, 6, A_COPY), DEV_RUN_PLAIN);
}

Test(run, what_prints_stays_plain, .init = begin, .fini = end)
{
    const uint32_t numbers[2] = { 1, 2 };
    const struct dev_run run = {
        .seq = 1, .count = 2, .size = sizeof(numbers), .records = numbers
    };
    fake_hear_output(d);
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_PLAIN);
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_LEARN);
    operations(1, numbers, A_PRINT);
    cr_assert_not(cuda.run_end(q, &run));
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_PLAIN);
    cr_assert_eq(fake_graphs(), 0);
}

Test(run, goes_with_the_place_of_its_client, .init = begin, .fini = end)
{
    same(1, 2);
    same(1, 2);
    cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    fake_share(c, 40, 0);
    cr_assert_eq(same(1, 2), DEV_RUN_LEARN);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 5);
    cr_assert_eq(same(1, 2), DEV_RUN_DONE);
    cr_assert_eq(fake_graphs(), 1, "the other one has gone with its place");
}

Test(run, an_operation_that_is_refused_leaves_it_plain, .init = begin, .fini = end)
{
    const uint32_t numbers[2] = { 1, 2 };
    const struct dev_run run = {
        .seq = 1, .count = 2, .size = sizeof(numbers), .records = numbers
    };
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_PLAIN);
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_LEARN);
    fake_launch(q, 1, 1);
    /* Outside the client's memory; were it submitted, the client would have an error. */
    cr_assert_eq(cuda.copy(q, 2,
                           &(struct wire_rec_copy) {
                               .dst = 1, .src = 1, .width = 8, .height = 1, .depth = 1 }),
                 0);
    cr_assert_not(cuda.run_end(q, &run));
    cr_assert_str_eq(fake_printed(), "", "nothing has happened");
    cr_assert_eq(fake_graphs(), 0);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_PLAIN);
}

Test(run, the_oldest_makes_room, .init = begin, .fini = end)
{
    for (uint32_t i = 0; i < 280; i++) {
        static uint32_t big[16384];
        big[0] = i;
        const struct dev_run run = {
            .seq = seq + 1, .count = 1, .size = sizeof(big), .records = big
        };
        enum dev_run_verdict verdict = DEV_RUN_PLAIN;
        for (int n = 0; n < 3; n++) {
            verdict = cuda.run_begin(q, &run);
            if (verdict == DEV_RUN_LEARN)
                cr_assert(cuda.run_end(q, &run));
        }
        cr_assert_eq(verdict, DEV_RUN_DONE);
    }
    cr_assert_leq(fake_graphs(), 256); /* 16 MiB of records */
    cr_assert_gt(fake_graphs(), 200);
}

/* A client that has handed over as much as it may naps meanwhile. */
Test(run, one_that_is_done_makes_room_for_another, .init = begin, .fini = end)
{
    struct dev_queue *other;
    const uint32_t numbers[2] = { 1, 2 };
    struct dev_run run = {
        .seq = 1, .count = FAKE_DEPTH / 2 + 1, .size = sizeof(numbers), .records = numbers
    };
    other = fake_queue(c, 0, 2, 0);
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_PLAIN);
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_LEARN);
    cr_assert(cuda.run_end(q, &run)); /* of nothing */
    cr_assert_eq(cuda.stamp(other, 1, 0), 0);
    cuda.flush(c);
    while (cuda.backlog(c))
        sched_yield();
    fake_hold(fake_stream(q), true);
    fake_hold(fake_stream(other), true);
    run.seq = run.count + 1;
    cr_assert_eq(cuda.run_begin(q, &run), DEV_RUN_DONE);
    run.seq = 2;
    cr_assert_eq(cuda.run_begin(other, &run), DEV_RUN_DONE);
    cuda.flush(c);
    cr_assert_gt(cuda.backlog(c), FAKE_DEPTH);
    uint32_t bell = atomic_load(&fake_session(c)->control->ring.bell);
    fake_hold(fake_stream(q), false);
    while (atomic_load(&fake_session(c)->control->ring.bell) == bell)
        sched_yield();
    cr_assert_eq(cuda.backlog(c), run.count);
    fake_hold(fake_stream(other), false);
}
