/* The client's thread: what it makes of a ring that is fuller than the device, and of one that
 * never runs dry. */
#include <criterion/criterion.h>
#include <sched.h>

#include "base/clock.h"
#include "rig.h"

TestSuite(thread, .timeout = 30);

#define RUNS    40u
#define RUN_OPS 100u
#define DEPTH   768u
#define RECORDS 2000000u /* at most */

static const struct tp_wait_policy patient = { .slice_ms = 1000 };
static struct rig r;
static _Atomic uint32_t accepted, flushes, taken;

static void end(void)
{
    rig_close(&r);
}

static void begin(void)
{
    rig_open(&r);
    r.info.depth_max = DEPTH;
    accepted = flushes = taken = 0;
}

static void on_flush(struct dev_client *c)
{
    atomic_fetch_add(&flushes, 1);
}

/* --- a device that does not get on ------------------------------------------------------------ */

static int fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *f)
{
    atomic_fetch_add(&accepted, 1);
    return 0;
}

static uint32_t backlog(struct dev_client *c)
{
    return atomic_load(&accepted);
}

/* A client that fills the driver's queues stands still in the driver, and others with it. */
Test(thread, runs_do_not_overfill_the_device, .init = begin, .fini = end)
{
    static struct {
        struct wire_rec_run head;
        struct wire_rec_fill fills[RUN_OPS];
    } run;
    r.ops.fill = fill;
    r.ops.backlog = backlog;
    r.ops.flush = on_flush;
    run.head =
        (struct wire_rec_run) { .head = { .op = WIRE_OP_RUN, .size = sizeof(run), .stream = 1 },
                                .count = RUN_OPS };
    for (uint32_t i = 0; i < RUN_OPS; i++)
        run.fills[i] =
            (struct wire_rec_fill) { .head = { .op = WIRE_OP_FILL, .size = sizeof(run.fills[i]) } };
    for (uint32_t i = 0; i < RUNS; i++) {
        run.head.head.seq = 1 + i * RUN_OPS;
        cr_assert_eq(tp_ring_write(&r.ring, &run.head.head, sizeof(run), NULL, 0, &patient), 0);
    }
    cr_assert_eq(exe_client_start(r.client), 0);
    while (!atomic_load(&flushes)) /* full, or the ring is dry */
        sched_yield();
    cr_assert_geq(atomic_load(&accepted), DEPTH);
    cr_assert_lt(atomic_load(&accepted), DEPTH + RUN_OPS);
    exe_client_stop(r.client);
}

/* --- a program that never rests --------------------------------------------------------------- */

static void write_mark(void)
{
    static uint64_t seq;
    const struct wire_record m = {
        .op = WIRE_OP_MARK, .size = sizeof(m), .stream = 2, .seq = ++seq
    };
    cr_assert_eq(tp_ring_write(&r.ring, &m, sizeof(m), NULL, 0, &patient), 0);
}

/* There is always another one. */
static int mark(struct dev_queue *q, uint64_t seq)
{
    if (!atomic_load(&flushes) && atomic_fetch_add(&taken, 1) < RECORDS)
        write_mark();
    return 0;
}

/* Somebody may wait for what came before, and that is only brought up to date when the device is
 * told to. */
Test(thread, completions_come_though_the_ring_never_runs_dry, .init = begin, .fini = end)
{
    r.ops.mark = mark;
    r.ops.flush = on_flush;
    write_mark();
    write_mark();
    cr_assert_eq(exe_client_start(r.client), 0);
    while (!atomic_load(&flushes))
        sched_yield();
    cr_assert_lt(atomic_load(&taken), RECORDS);
    exe_client_stop(r.client);
}

/* --- a program that pauses -------------------------------------------------------------------- */

static bool sleeps(void)
{
    return atomic_load(&r.session.control->ring.consumer_sleeps) != 0;
}

static int mark_and_rest(struct dev_queue *q, uint64_t seq)
{
    atomic_fetch_add(&taken, 1);
    return 0;
}

/* How long the thread looks at the ring after a record. */
static uint64_t lingers(uint32_t n)
{
    write_mark();
    while (atomic_load(&taken) < n)
        sched_yield();
    const uint64_t begun = gm_now_ns();
    while (!sleeps())
        sched_yield();
    return gm_now_ns() - begun;
}

static void begin_on_a_gpu(void)
{
    begin();
    r.ops.mark = mark_and_rest;
    r.info.runs_elsewhere = true;
    r.engine.spin_limit = 16;
    cr_assert_eq(exe_client_start(r.client), 0);
}

#define LINGERS (15 * GM_NS_PER_MS) /* at least: it has begun when the record is taken */

/* A client that comes back after a few milliseconds need not wait until a sleeping thread runs. On
 * a busy machine this thread may see late that the record was taken, but not every time. */
Test(thread, looks_for_more_for_a_while, .init = begin_on_a_gpu, .fini = end)
{
    uint64_t longest = 0;
    for (uint32_t i = 1; i <= 20 && longest < LINGERS; i++)
        longest = GM_MAX(longest, lingers(i));
    cr_assert_geq(longest, LINGERS);
    cr_assert_eq(atomic_load(&r.engine.spinning), 0);
    exe_client_stop(r.client);
}

/* Only a few threads look at once. */
Test(thread, not_beside_others_that_do, .init = begin_on_a_gpu, .fini = end)
{
    uint64_t least = UINT64_MAX;
    atomic_store(&r.engine.spinning, 2);
    for (uint32_t i = 1; i <= 20; i++)
        least = GM_MIN(least, lingers(i));
    cr_assert_lt(least, LINGERS);
    exe_client_stop(r.client);
}

/* Nor where that is for nothing each time. */
Test(thread, not_if_nothing_ever_comes, .init = begin_on_a_gpu, .fini = end)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 1; i <= 20; i++)
        least = GM_MIN(least, lingers(i));
    cr_assert_lt(least, LINGERS);
    exe_client_stop(r.client);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int call(struct dev_client *c, const struct dev_call *what)
{
    volatile char deep[2 << 20];
    for (size_t i = 0; i < sizeof(deep); i += 4096)
        deep[i] = 1;
    return deep[0] - 1;
}

/* A GPU driver compiles there. */
Test(thread, questions_have_as_much_stack_as_a_program, .init = begin, .fini = end)
{
    const struct wire_rec_call c = { .head = { .op = WIRE_OP_CALL, .size = sizeof(c), .seq = 1 },
                                     .number = 1,
                                     .function = WIRE_CALL_LINK_COMPLETE };
    r.ops.call = call;
    cr_assert_eq(tp_ring_write(&r.ring, &c.head, sizeof(c), NULL, 0, &patient), 0);
    cr_assert_eq(exe_client_start(r.client), 0);
    cr_assert_eq(tp_word_wait(&r.session.control->replied, 1, &patient), 0);
    cr_assert_eq(r.session.reply->result, 0);
}
