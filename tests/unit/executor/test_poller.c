/* The poller: what it takes in the stead of a client's thread, what it leaves to that one, and that
 * nothing is lost between them. */
#include <criterion/criterion.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "rig.h"

TestSuite(poller, .timeout = 20);

#define MARKS    50000u
#define LONG_NS  (3600 * GM_NS_PER_S)
#define LONG_MS  3600000u
#define SHORT_NS (20 * GM_NS_PER_MS)
#define LOST_NS  (3 * GM_NS_PER_S) /* a slice of the thread's is longer */

static const struct tp_wait_policy patient = { .slice_ms = 1000 };
static struct rig r;
static _Atomic uint64_t taken; /* sequence number of the last mark */
static _Atomic bool in_order = true;
static _Atomic pid_t taker;
static _Atomic bool prompt = true;
static _Atomic uint32_t flushes;
static _Atomic bool stuck, is_stuck; /* marks of stream 2 take until it is not */
static uint64_t written;

static int mark(struct dev_queue *q, uint64_t seq)
{
    is_stuck = q->stream == 2 && stuck;
    while (q->stream == 2 && stuck)
        sched_yield();
    in_order = in_order && seq == taken + 1;
    taker = gettid();
    taken = seq;
    return 0;
}

static bool is_prompt(struct dev_queue *q, const struct wire_record *record,
                      const struct dev_module *m)
{
    return prompt;
}

static void on_flush(struct dev_client *c)
{
    flushes++;
}

static struct exe_client *polled(void)
{
    for (uint32_t i = 0; i < EXE_POLLED_MAX; i++) {
        struct exe_client *c = r.engine.poller->clients[i];
        if (c)
            return c;
    }
    return NULL;
}

static void wait_until_it_sleeps(void)
{
    while (polled() || r.engine.spinning)
        sched_yield();
}

static void end(void)
{
    rig_close(&r);
    wait_until_it_sleeps();
}

static void begin_with(uint64_t keep_ns, uint64_t soon_ns, uint32_t stuck_ms)
{
    const struct exe_poller_policy policy = {
        .keep_ns = keep_ns, .soon_ns = soon_ns, .spin_limit = 16, .stuck_ms = stuck_ms
    };
    rig_open(&r);
    r.ops.mark = mark;
    r.ops.is_prompt = is_prompt;
    r.ops.flush = on_flush;
    r.info.runs_elsewhere = true;
    r.engine.spin_limit = policy.spin_limit;
    r.engine.poller = exe_poller_start(&r.engine.spinning, &policy);
    cr_assert_not_null(r.engine.poller);
    written = taken = 0;
    prompt = true;
    stuck = false;
}

static void begin(void)
{
    begin_with(LONG_NS, 0, LONG_MS);
}

static void begin_impatient(void)
{
    begin_with(SHORT_NS, 0, LONG_MS);
}

/* All that comes is a burst. */
static void begin_hasty(void)
{
    begin_with(LONG_NS, LONG_NS, LONG_MS);
}

static void write_mark(void)
{
    const struct wire_record m = {
        .op = WIRE_OP_MARK, .size = sizeof(m), .stream = 2, .seq = ++written
    };
    cr_assert_eq(tp_ring_write(&r.ring, &m, sizeof(m), NULL, 0, &patient), 0);
}

static void wait_until_taken(void)
{
    uint64_t start = gm_now_ns();
    while (taken != written) {
        cr_assert_lt(gm_now_ns() - start, LOST_NS);
        sched_yield();
    }
}

/* Nothing comes while it is about to look whether more has come. */
static void wait_for_round(void)
{
    uint64_t begun = r.engine.poller->rounds;
    while (r.engine.poller->rounds < begun + 2 && polled())
        sched_yield();
}

static void wait_until_polled(void)
{
    while (!polled())
        sched_yield();
}

/* The client's thread has had something to do, and the poller stands in for it. The thread's id. */
static pid_t open_polled(void)
{
    pid_t own;
    write_mark();
    cr_assert_eq(exe_client_start(r.client), 0);
    wait_until_taken();
    own = taker;
    wait_until_polled();
    return own;
}

Test(poller, stands_in_for_a_thread_that_sleeps, .init = begin, .fini = end)
{
    pid_t own = open_polled();
    uint32_t before = flushes;
    write_mark();
    wait_until_taken();
    cr_assert_neq(taker, own);
    while (flushes == before) /* the device is told that the ring has run dry */
        sched_yield();
    cr_assert_eq(polled(), r.client);
}

Test(poller, leaves_what_is_not_prompt_to_the_clients_thread, .init = begin, .fini = end)
{
    pid_t own = open_polled();
    prompt = false;
    write_mark();
    wait_until_taken();
    cr_assert_eq(taker, own);
    wait_until_polled(); /* and stands in for it again */
    prompt = true;
    write_mark();
    wait_until_taken();
    cr_assert_neq(taker, own);
}

Test(poller, leaves_streams_without_a_queue_to_the_clients_thread, .init = begin, .fini = end)
{
    pid_t own = open_polled();
    const struct wire_record m = { .op = WIRE_OP_MARK, .size = sizeof(m), .stream = 3, .seq = 1 };
    taken = 0;
    cr_assert_eq(tp_ring_write(&r.ring, &m, sizeof(m), NULL, 0, &patient), 0);
    while (taken != 1)
        sched_yield();
    cr_assert_eq(taker, own);
}

Test(poller, a_silent_client_sleeps_and_so_does_the_poller, .init = begin_impatient, .fini = end)
{
    pid_t own = open_polled();
    wait_until_it_sleeps();
    cr_assert_null(polled());
    write_mark(); /* wakes the client's thread */
    wait_until_taken();
    cr_assert_eq(taker, own);
}

Test(poller, who_comes_seldom_is_polled_once_it_comes_soon, .init = begin_impatient, .fini = end)
{
    pid_t own = open_polled();
    wait_until_it_sleeps(); /* the client was silent for too long */
    write_mark();
    wait_until_taken();
    while (!r.session.control->ring.consumer_sleeps)
        sched_yield();
    cr_assert_null(polled());
    while (!polled()) { /* on a busy machine the pause may be too long again */
        write_mark();
        wait_until_taken();
        cr_assert_eq(taker, own);
        while (!polled() && !r.session.control->ring.consumer_sleeps)
            sched_yield();
    }
}

Test(poller, a_broken_record_is_its_clients_end, .init = begin, .fini = end)
{
    open_polled();
    const struct wire_record m = { .op = WIRE_OP_MARK, .size = sizeof(m), .stream = 2, .seq = 77 };
    cr_assert_eq(tp_ring_write(&r.ring, &m, sizeof(m), NULL, 0, &patient), 0);
    while (r.session.control->error != GM_CUDA_INVALID_VALUE)
        sched_yield();
}

Test(poller, a_broken_ring_is_its_clients_end, .init = begin, .fini = end)
{
    open_polled();
    r.session.control->ring.tail = r.session.control->ring.head + 12345679;
    while (!r.client->failed)
        sched_yield();
}

Test(poller, a_client_is_stopped_while_it_is_polled, .init = begin, .fini = end)
{
    open_polled();
    exe_client_stop(r.client);
    cr_assert_null(polled());
    wait_until_it_sleeps(); /* and does not look at it any more */
}

Test(poller, a_gate_that_opens_is_heard_of, .init = begin, .fini = end)
{
    open_polled();
    tp_ring_kick(&r.session.control->ring);
    while (polled()) /* the thread has to look; with nothing to do it is not polled again */
        sched_yield();
    while (!r.session.control->ring.consumer_sleeps)
        sched_yield();
}

/* From the poller to the thread and back all the time. */
Test(poller, nothing_is_lost_or_taken_twice, .init = begin, .fini = end)
{
    pid_t own = open_polled();
    bool by_own = false;
    for (uint32_t i = 0; i < MARKS; i++) {
        prompt = i % 7 != 0;
        write_mark();
        if (i % 64 == 0)
            tp_ring_kick(&r.session.control->ring);
        if (i % 5 == 0)
            wait_until_taken();
        by_own |= taker == own;
    }
    prompt = true;
    wait_until_taken();
    while (taker == own) {
        write_mark();
        wait_until_taken();
    }
    cr_assert(by_own);
    cr_assert(in_order);
}

/* One thread cannot hand over for many who have much. */
Test(poller, whose_records_come_soon_has_a_thread_that_spins, .init = begin_hasty, .fini = end)
{
    r.client->spin_misses = 1000; /* it has given up */
    pid_t own = open_polled();
    uint32_t marks = 0;
    for (; taker != own || !marks; marks++) {
        write_mark();
        wait_until_taken();
        wait_for_round();
    }
    cr_assert_gt(marks, 4, "a few are the poller's");
    wait_until_polled(); /* it has spun, in vain */
    write_mark();
    wait_until_taken();
    cr_assert_neq(taker, own);
    cr_assert(in_order);
    exe_client_stop(r.client);
    cr_assert_lt(r.client->spin_misses, 1000);
}

Test(poller, where_too_many_spin_it_stands_in_for_all, .init = begin_hasty, .fini = end)
{
    pid_t own = open_polled();
    r.engine.spinning += r.engine.spin_limit;
    for (uint32_t i = 0; i < 1000; i++) {
        write_mark();
        wait_until_taken();
        cr_assert_neq(taker, own);
        wait_for_round();
    }
    r.engine.spinning -= r.engine.spin_limit;
}

/* It is asked for in vain only now and then. */
Test(poller, who_is_never_prompt_does_without, .init = begin, .fini = end)
{
    pid_t own = open_polled();
    prompt = false;
    for (uint32_t i = 0; i < 3; i++) {
        wait_until_polled();
        write_mark();
        wait_until_taken();
        cr_assert_eq(taker, own);
    }
    while (!r.session.control->ring.consumer_sleeps)
        sched_yield();
    cr_assert_null(polled());
    prompt = true;
    while (taker == own) {
        write_mark();
        wait_until_taken();
    }
}

/* One client's operation takes long in the driver. */
Test(poller, others_do_without_one_that_is_stuck)
{
    static struct rig other;
    struct wire_record m = { .op = WIRE_OP_MARK, .size = sizeof(m), .stream = 4, .seq = 1 };
    begin_with(LONG_NS, 0, 1000); /* in which it gets on, whatever else runs here */
    rig_open(&other);             /* they share the queues */
    other.client->engine = &r.engine;
    open_polled();
    taken = 0;
    cr_assert_eq(tp_ring_write(&other.ring, &m, sizeof(m), NULL, 0, &patient), 0);
    cr_assert_eq(exe_client_start(other.client), 0);
    while (taken != 1)
        sched_yield();
    pid_t own = taker;
    while (!r.engine.poller->clients[0] || !r.engine.poller->clients[1])
        sched_yield();
    stuck = true;
    write_mark();
    while (!is_stuck)
        sched_yield();
    m.seq = 2;
    cr_assert_eq(tp_ring_write(&other.ring, &m, sizeof(m), NULL, 0, &patient), 0);
    uint64_t start = gm_now_ns();
    while (taken != 2) {
        cr_assert_lt(gm_now_ns() - start, LOST_NS);
        sched_yield();
    }
    cr_assert_eq(taker, own);
    stuck = false;
    exe_client_stop(other.client);
    exe_client_stop(r.client);
}
