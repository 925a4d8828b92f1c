/* How much a client has with the driver. Behind a kernel that does not end, a client that fills the
 * driver's queues stops everybody: no client may, whatever it writes into its session and however
 * many streams it has. */
#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "fake.h"

TestSuite(inflight, .timeout = 60);

#define CHANNEL 1000u /* what a queue of the driver holds */
#define LIMIT   896u  /* what a client may have of that */
#define BATCH   32u   /* records that the executor reads between two looks at the backlog */
#define QUEUES  400u

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *queues[QUEUES];
static uint64_t seqs[QUEUES];
static uint32_t next, made;

static void begin(void)
{
    d = fake_device();
    c = fake_client(d, 132, 0);
    next = made = 0;
    memset(seqs, 0, sizeof(seqs));
    fake_channel(CHANNEL);
}

static void make(uint32_t count)
{
    for (; made < count; made++)
        queues[made] = fake_queue_with_stream(c, 0, made + 1, 0);
}

static void launch(uint32_t i)
{
    fake_launch(queues[i], ++seqs[i], next++);
}

/* Its first kernel does not end. */
static void stand_still(uint32_t i)
{
    fake_hold(fake_stream(queues[i]), true);
    launch(i);
}

/* All that was handed over has happened, once and in order. */
static void happened(uint32_t count)
{
    const uint32_t *numbers;
    cr_assert_eq(fake_happened(&numbers), count);
    for (uint32_t i = 0; made == 1 && i < count; i++)
        cr_assert_eq(numbers[i], i);
}

static void complete(void)
{
    fake_let_go();
    while (cuda.backlog(c))
        cuda.flush(c);
    for (uint32_t i = 0; i < made; i++)
        cr_assert_eq(fake_done(queues[i]), seqs[i]);
}

/* As the executor reads a ring that is never empty; true while it reads on. */
static bool read_ring(void (*record)(uint32_t n))
{
    if (cuda.backlog(c) >= FAKE_DEPTH) {
        cuda.flush(c);
        return false;
    }
    for (uint32_t n = 0; n < BATCH; n++)
        record(n);
    return true;
}

/* The client says that all is done. */
static void forge(void)
{
    cuda.flush(c);
    for (uint32_t i = 0; i < made; i++)
        while (!fake_is_seen(queues[i]))
            atomic_store(&fake_slot(queues[i])->completed.value, seqs[i]);
}

/* Completion words say the truth again. */
static void confess(void)
{
    for (uint32_t i = 0; i < made; i++)
        atomic_store(&fake_slot(queues[i])->completed.value, 0);
}

static void launch_first(uint32_t n)
{
    launch(0);
}

Test(inflight, forged_words_make_no_room, .init = begin)
{
    make(1);
    stand_still(0);
    for (uint32_t i = 0; i < 200; i++) {
        read_ring(launch_first);
        forge();
    }
    cr_assert_gt(fake_in_channel(), CHANNEL / 2);
    cr_assert_geq(cuda.backlog(c), FAKE_DEPTH);
    confess();
    complete();
    happened(next);
    cr_assert(read_ring(launch_first));
    complete();
    fake_client_end(c);
}

/* One kernel and its mark for each stream; each waits for another one. */
static void launch_anywhere(uint32_t n)
{
    static uint32_t at;
    const uint32_t i = at++ % QUEUES, other = (i + 1) % QUEUES;
    if (at % 2)
        launch(i);
    else
        cr_assert_eq(cuda.wait(queues[i], ++seqs[i], queues[other], seqs[other]), 0);
}

Test(inflight, many_streams_count_together, .init = begin)
{
    make(QUEUES);
    for (uint32_t i = 0; i < QUEUES; i++) {
        fake_hold(fake_stream(queues[i]), true);
    }
    for (uint32_t i = 0; i < 200; i++)
        read_ring(launch_anywhere);
    cr_assert_gt(fake_in_channel(), CHANNEL / 2);
    complete();
    happened(next);
    fake_client_end(c);
}

/* This bound also holds for a client whose words are not true. */
Test(inflight, many_streams_that_lie, .init = begin)
{
    make(QUEUES);
    for (uint32_t i = 0; i < QUEUES; i++) {
        fake_hold(fake_stream(queues[i]), true);
    }
    for (uint32_t i = 0; i < 100; i++) {
        read_ring(launch_anywhere);
        forge();
    }
    cr_assert_gt(fake_in_channel(), CHANNEL / 2);
    confess();
    complete();
    happened(next);
    fake_client_end(c);
}

/* A program that waits a little between its kernels, so that each is marked. */
static void launch_and_rest(uint32_t n)
{
    launch(0);
    cuda.flush(c);
}

Test(inflight, marks_count, .init = begin)
{
    make(1);
    stand_still(0);
    while (read_ring(launch_and_rest))
        ;
    complete();
    happened(next);
    fake_client_end(c);
}

/* What was held back behind a gate comes all at once. */
Test(inflight, what_was_held_back_comes_as_there_is_room, .init = begin)
{
    make(2);
    stand_still(0);
    cr_assert_eq(cuda.gate(queues[1], ++seqs[1]), 0);
    for (uint32_t i = 0; i < 600; i++)
        launch(1);
    for (uint32_t i = 0; i < 50; i++) {
        read_ring(launch_first);
        forge();
    }
    fake_hold(fake_stream(queues[1]), true);
    atomic_store(&fake_slot(queues[1])->gate, seqs[1]);
    cuda.gate_moved(queues[1]);
    cuda.flush(c);
    confess();
    complete();
    happened(next);
    fake_client_end(c);
}

static void launch_in_rows(uint32_t n)
{
    static uint32_t at;
    const uint32_t i = at++ / 15 % 60;
    fake_launch_one_of_many(queues[i], ++seqs[i], next++);
}

/* Launches that wait for their row to be full are handed over by a flush. */
Test(inflight, rows_count, .init = begin)
{
    make(60);
    for (uint32_t i = 0; i < made; i++)
        stand_still(i);
    for (uint32_t i = 0; i < 100; i++) {
        read_ring(launch_in_rows);
        if (i % 8 == 7)
            forge();
    }
    confess();
    complete();
    happened(next);
    fake_client_end(c);
}

/* A run that is not known comes operation by operation, with nobody looking at the backlog between
 * them. */
Test(inflight, runs_count, .init = begin)
{
    make(1);
    stand_still(0);
    for (uint32_t i = 0; i < FAKE_DEPTH + 500; i++)
        launch(0);
    cuda.flush(c);
    complete();
    happened(next);
    fake_client_end(c);
}

/* Each one always has something to do, and completes truly: it does not meet the limit. */
Test(inflight, thirty_two_busy_streams_notice_nothing, .init = begin)
{
    make(32);
    for (uint32_t i = 0; i < made; i++)
        stand_still(i);
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < made; i++) {
            for (uint32_t n = 0; n < 5; n++)
                launch(i);
            cuda.flush(c);
            cr_assert_lt(cuda.backlog(c), FAKE_DEPTH);
        }
        for (uint32_t i = 0; i < made; i++) {
            fake_hold(fake_stream(queues[i]), false);
            fake_hold(fake_stream(queues[i]), true);
            while (!fake_is_seen(queues[i]))
                sched_yield();
            launch(i);
        }
    }
    complete();
    happened(next);
    fake_client_end(c);
}

/* Nor is it reached by one stream that hands over all that the device takes. */
Test(inflight, the_depth_comes_first, .init = begin)
{
    make(1);
    stand_still(0);
    for (uint32_t round = 0; round < 4; round++) {
        while (read_ring(launch_first))
            ;
        cr_assert_lt(fake_in_channel(), LIMIT);
        fake_hold(fake_stream(queues[0]), false);
        fake_hold(fake_stream(queues[0]), true);
        while (cuda.backlog(c))
            sched_yield();
    }
    complete();
    happened(next);
    fake_client_end(c);
}

/* A program that meets it sleeps, and is woken when there is room. */
Test(inflight, a_client_that_was_at_the_limit_is_woken, .init = begin)
{
    make(2);
    fake_channel(0);
    stand_still(0);
    stand_still(1);
    while (cuda.backlog(c) < FAKE_DEPTH) {
        launch(0);
        cr_assert_eq(cuda.wait(queues[1], ++seqs[1], queues[0], seqs[0]), 0);
        cuda.flush(c);
    }
    cr_assert_lt(seqs[0] + seqs[1], FAKE_DEPTH);
    uint32_t bell = atomic_load(&fake_session(c)->control->ring.bell);
    fake_let_go();
    while (atomic_load(&fake_session(c)->control->ring.bell) == bell)
        sched_yield();
    cr_assert_lt(cuda.backlog(c), FAKE_DEPTH);
    complete();
    fake_client_end(c);
}
