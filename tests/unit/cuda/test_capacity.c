/* What a context has no room for waits, in the driver, for all that runs there: so a client that
 * needs more waits before. And what runs, though its client denies it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "fake.h"

TestSuite(capacity, .timeout = 20);

#define ROOM   32u
#define QUEUES 40u

static struct dev *d;
static struct dev_client *one, *two;
static struct dev_queue *runs_on, *queues[QUEUES];
static uint64_t seqs[QUEUES];
static _Atomic bool over;

static struct dev_queue *queue(struct dev_client *c, uint32_t number)
{
    return fake_queue(c, 0, number, 0);
}

/* The kernel of one client runs on, for longer than anybody waits for. */
static void begin_with(uint32_t multiprocessors)
{
    d = fake_device();
    fake_capacity(d, ROOM);
    one = fake_client(d, FAKE_SMS, 0);
    two = fake_client(d, multiprocessors, 0);
    runs_on = queue(one, 1);
    for (unsigned i = 0; i < QUEUES; i++)
        queues[i] = queue(two, 1 + i);
    fake_launch(runs_on, 1, 1);
    fake_launch(queues[0], seqs[0] = 1, 1);
    cuda.flush(one);
    cuda.flush(two);
    while (!fake_is_over(runs_on) || !fake_is_over(queues[0]))
        sched_yield();
    fake_hold(fake_stream(runs_on), true);
    fake_launch(runs_on, 2, 1);
    cuda.flush(one);
    fake_patience(d, 0, 0, 0);
    fake_wait_until_busy(d, FAKE_FIRST);
}

static void begin(void)
{
    begin_with(FAKE_SMS);
}

static void end(void)
{
    fake_hold(fake_stream(runs_on), false);
    fake_client_end(one);
    fake_client_end(two);
}

static unsigned in_use(void)
{
    return fake_use_of(d, 0, false).used;
}

static unsigned nodes(void)
{
    return fake_use_of(d, 0, false).nodes;
}

/* One of the run's operations names memory that is not the client's. */
static void refuse_to_learn(void)
{
    const struct wire_rec_copy r = { .dst = 1, .src = 1, .width = 8, .height = 1, .depth = 1 };
    cr_assert_eq(cuda.copy(queues[0], 2, &r), 0);
}

static void launch(unsigned i)
{
    fake_launch(queues[i], ++seqs[i], 2);
}

static void launch_on(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        launch(i);
}

static void wait_until_over(unsigned count)
{
    cuda.flush(two);
    for (unsigned i = 0; i < count; i++)
        while (!fake_is_over(queues[i]))
            sched_yield();
}

Test(capacity, streams_are_made_beside_a_kernel, .init = begin, .fini = end)
{
    launch_on(ROOM - 1);
    fake_expect(2, ROOM - 1);
    cr_assert_not(fake_is_away(two));
}

/* Its number is a new stream's, with another priority, and so the driver's stream goes. */
static void give_up(unsigned i)
{
    _Atomic int32_t *priority = &fake_slot(queues[i])->priority;
    atomic_store(priority, atomic_load(priority) ? 0 : -1);
    cuda.queue_reuse(queues[i]);
    cr_assert_null(fake_stream(queues[i]));
}

Test(capacity, what_is_destroyed_leaves_its_place, .init = begin, .fini = end)
{
    for (unsigned i = 0; i < 5; i++) {
        launch_on(ROOM - 1);
        wait_until_over(ROOM - 1);
        for (unsigned n = 0; n < ROOM - 1; n++)
            give_up(n);
    }
    fake_expect(2, 5 * (ROOM - 1));
    cr_assert_not(fake_is_away(two));
}

static void *launch_everywhere(void *arg)
{
    launch_on(QUEUES);
    atomic_store(&over, true);
    return NULL;
}

static void wait_until_happened(uint32_t number, unsigned times)
{
    for (unsigned found = 0; found < times; sched_yield()) {
        const uint32_t *numbers;
        const unsigned count = fake_happened(&numbers);
        for (unsigned i = 0; i < count; i++)
            found += numbers[i] == number;
    }
}

/* The more so as something of its own runs until then. */
Test(capacity, a_client_that_wants_more_waits, .init = begin, .fini = end)
{
    pthread_t thread;
    fake_refuse_fallbacks(true);
    cr_assert_eq(pthread_create(&thread, NULL, launch_everywhere, NULL), 0);
    wait_until_happened(2, ROOM - 1);
    for (const uint64_t until = gm_now_ns() + 20 * GM_NS_PER_MS; gm_now_ns() < until;)
        sched_yield();
    cr_assert_not(atomic_load(&over));
    fake_expect(2, 0);
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    fake_expect(2, QUEUES - ROOM + 1);
    fake_refuse_fallbacks(false);
}

Test(capacity, or_goes_elsewhere, .init = begin, .fini = end)
{
    launch_on(ROOM - 1);
    wait_until_over(ROOM - 1);
    launch(ROOM);
    fake_expect(2, ROOM);
    cr_assert(fake_is_away(two));
}

static void begin_with_a_share(void)
{
    begin_with(40);
}

Test(capacity, a_green_context_has_its_own, .init = begin_with_a_share, .fini = end)
{
    launch_on(ROOM);
    fake_expect(2, ROOM);
    cr_assert_not(fake_is_away(two));
    wait_until_over(ROOM);
    launch(ROOM);
    cr_assert(fake_is_away(two));
}

static void launch_rows(unsigned count)
{
    for (unsigned i = 0; i < 16 * count; i++)
        fake_launch_one_of_many(queues[0], ++seqs[0], 3);
}

Test(capacity, rows_are_graphs_when_it_is_quiet, .init = begin, .fini = end)
{
    launch_rows(20);
    wait_until_over(1);
    fake_expect(3, 16 * 20);
    cr_assert_eq(fake_graph_launches(), 0);
    fake_hold(fake_stream(runs_on), false);
    while (!fake_is_quiet(d, FAKE_FIRST))
        sched_yield();
    launch_rows(20);
    cr_assert_gt(fake_graph_launches(), 0);
    wait_until_over(1);
    fake_expect(3, 16 * 20);
}

Test(capacity, so_are_runs, .init = begin, .fini = end)
{
    static const uint8_t records[] = { 1, 2, 3 };
    const struct dev_run r = { .records = records, .size = sizeof(records), .seq = 2, .count = 3 };
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(cuda.run_begin(queues[0], &r), DEV_RUN_PLAIN);
    fake_hold(fake_stream(runs_on), false);
    while (!fake_is_quiet(d, FAKE_FIRST))
        sched_yield();
    cr_assert_eq(cuda.run_begin(queues[0], &r), DEV_RUN_LEARN);
    refuse_to_learn();
    (void)cuda.run_end(queues[0], &r);
}

static CUresult (*instantiate)(CUgraphExec *out, CUgraph g, unsigned long long flags);
static unsigned instantiated, refusals;

static CUresult instantiate_last(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    cr_assert_eq(in_use(), ROOM, "others find no place");
    instantiated++;
    if (refusals == 0)
        return instantiate(out, g, flags);
    refusals--;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Or two would find the same last one; and it is given back. */
Test(capacity, a_graph_has_its_place_before_it_is_made, .init = begin, .fini = end)
{
    instantiate = fake_driver(d)->cuGraphInstantiateWithFlags;
    fake_driver(d)->cuGraphInstantiateWithFlags = instantiate_last;
    fake_hold(fake_stream(runs_on), false);
    fake_patience(d, FAKE_NEVER, 0, 0); /* and nobody has to wait */
    fake_set_capacity(d, 0, (struct fake_use) { .used = ROOM - 1 }, ROOM);
    refusals = 2;
    launch_rows(100);
    wait_until_over(1);
    cr_assert_eq(instantiated, 3);
    cr_assert_gt(fake_graph_launches(), 0);
    cr_assert_eq(in_use(), ROOM);
    cr_assert_eq(nodes(), 16);
}

static void begin_with_graphs(void)
{
    begin();
    fake_hold(fake_stream(runs_on), false);
    fake_patience(d, FAKE_NEVER, 0, 0);
    fake_set_capacity(d, 0, (struct fake_use) { .used = in_use() }, ROOM);
}

/* The driver has it until then, and so its place. */
Test(capacity, a_graph_keeps_its_place_while_it_runs, .init = begin_with_graphs, .fini = end)
{
    const unsigned streams = in_use();
    fake_hold(fake_stream(queues[0]), true);
    launch_rows(8);
    cr_assert_eq(fake_graphs(), 1);
    /* What it names may have gone: another one is made, and one for short rows before. */
    fake_modules_change(two);
    launch_rows(16);
    cr_assert_eq(fake_graphs(), 3);
    cr_assert_eq(in_use(), streams + 3);
    cr_assert_eq(nodes(), 16 + 16 + 4);
    const uint32_t rest = 3000 - 16 - 4; /* of a new context's nodes */
    cr_assert_not(fake_has_room_for_graph(queues[0], rest));
    fake_hold(fake_stream(queues[0]), false);
    wait_until_over(1);
    cr_assert_eq(fake_graphs(), 2);
    cr_assert(fake_has_room_for_graph(queues[0], rest));
    cr_assert_eq(in_use(), streams + 2);
    cr_assert_eq(nodes(), 16 + 4);
}

/* Nor would a run be learnt for which there is none in the end. */
Test(capacity, a_run_has_its_place_before_it_is_learnt, .init = begin, .fini = end)
{
    static const uint8_t records[] = { 1, 2, 3 };
    const struct dev_run r = { .records = records, .size = sizeof(records), .seq = 2, .count = 3 };
    /* The stream that learns takes one, too. */
    fake_set_capacity(d, 0, (struct fake_use) { .used = ROOM - 2 }, ROOM);
    cr_assert_eq(cuda.run_begin(queues[0], &r), DEV_RUN_PLAIN);
    cr_assert_eq(cuda.run_begin(queues[0], &r), DEV_RUN_LEARN);
    cr_assert_eq(nodes(), 3);
    cr_assert_not(fake_has_room_for_graph(runs_on, 3));
    refuse_to_learn();
    cr_assert_not(cuda.run_end(queues[0], &r));
    cr_assert_eq(nodes(), 0);
    cr_assert_eq(in_use(), ROOM - 2);
    cr_assert(fake_has_room_for_graph(runs_on, 3));
    cr_assert_eq(in_use(), ROOM - 2);
}

static void *begin_run(void *arg)
{
    static const uint8_t records[] = { 1, 2, 3 };
    const struct dev_run r = { .records = records, .size = sizeof(records), .seq = 2, .count = 3 };
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(cuda.run_begin(queues[0], &r), DEV_RUN_PLAIN);
    atomic_store(&over, true);
    return NULL;
}

/* A run is learnt in a stream of its green context, which has room for others. */
Test(capacity, nobody_waits_to_learn, .init = begin_with_a_share, .fini = end)
{
    pthread_t thread;
    launch_on(ROOM);
    wait_until_over(ROOM);
    fake_set_capacity(d, 0, (struct fake_use) { .used = in_use() }, 2 * ROOM);
    cr_assert_eq(pthread_create(&thread, NULL, begin_run, NULL), 0);
    for (const uint64_t until = gm_now_ns() + GM_NS_PER_S;
         !atomic_load(&over) && gm_now_ns() < until;)
        sched_yield();
    cr_assert(atomic_load(&over));
    pthread_join(thread, NULL);
    cr_assert_not(fake_is_away(two));
}

/* --- what runs, though its client denies it --------------------------------------------------- */

static void deny(void)
{
    atomic_store(&fake_slot(runs_on)->completed.value, 2);
    while (!fake_is_resting(runs_on))
        sched_yield();
}

Test(capacity, what_is_denied_runs_all_the_same, .init = begin, .fini = end)
{
    deny();
    fake_launch_as(queues[0], ++seqs[0], &(struct fake_kernel) { .number = 4, .unknown = true });
    cr_assert(fake_is_away(two));
}

Test(capacity, nor_is_there_room_beside_it, .init = begin, .fini = end)
{
    deny();
    launch_on(ROOM - 1);
    wait_until_over(ROOM - 1);
    launch(ROOM);
    cr_assert(fake_is_away(two));
}

/* --- stacks ----------------------------------------------------------------------------------- */

static void raise_stack(struct dev_client *c, uint64_t value)
{
    cr_assert_eq(fake_raise_stack(c, value), 0);
}

/* 80 GiB, and 2,048 threads on each multiprocessor. */
Test(capacity, all_stacks_together_are_an_eighth_of_the_memory)
{
    struct dev *device = fake_device();
    struct dev_client *c = fake_client(device, FAKE_SMS, 0);
    raise_stack(c, 32u << 10);
    cr_assert_eq(fake_raise_stack(c, 40u << 10), CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(fake_stack(), 32u << 10);
    fake_client_end(c);
}

static CUresult (*set_current)(CUcontext c);

/* Just before local memory is given back a client comes that needs it. */
static CUresult somebody_comes(CUcontext c)
{
    fake_need_local(d, NULL, 100u << 10);
    return set_current(c);
}

/* The limit is larger meanwhile, for the local memory of somebody's kernel. */
Test(capacity, a_stack_stays_when_local_memory_goes)
{
    d = fake_device();
    struct dev_client *large = fake_client(d, FAKE_SMS, 0), *c = fake_client(d, FAKE_SMS, 0);
    const uint32_t local = 100u << 10;
    fake_need_local(d, large, local);
    raise_stack(c, 4u << 10);
    cr_assert_eq(fake_stack(), local);
    raise_stack(c, 8u << 10);
    raise_stack(c, 2u << 10);
    fake_need_local(d, large, 0);
    cr_assert_eq(fake_stack(), 8u << 10);
    cr_assert_eq(fake_local(d), 8u << 10);
    raise_stack(c, 12u << 10);
    cr_assert_eq(fake_stack(), 12u << 10);
    fake_need_local(d, large, local);
    fake_enter(d, true);
    set_current = fake_driver(d)->cuCtxSetCurrent;
    fake_driver(d)->cuCtxSetCurrent = somebody_comes;
    fake_need_local(d, large, 0);
    cr_assert_eq(fake_stack(), local);
    fake_client_end(large);
    fake_client_end(c);
}

/* A client that wants a stack has it elsewhere, and the kernel's local memory is not asked for
 * there. */
Test(capacity, nobody_waits_for_a_kernel_that_wants_a_stack, .init = begin, .fini = end)
{
    fake_need_local(d, NULL, 400u << 10);
    raise_stack(two, 4u << 10);
    cr_assert(fake_is_away(two));
    fake_enter(d, true);
    cr_assert_eq(fake_stack(), 4u << 10);
    fake_enter(d, false);
    cr_assert_eq(fake_stack(), 0);
}

static CUresult (*set_limit)(CUlimit limit, size_t value);

static CUresult set_limit_up_to(CUlimit limit, size_t value)
{
    return value > 64u << 10 ? CUDA_ERROR_OUT_OF_MEMORY : set_limit(limit, value);
}

/* Nor is anybody refused a small one. */
Test(capacity, local_memory_that_there_is_not_is_not_for_a_stack)
{
    struct dev *device = fake_device();
    struct dev_client *c = fake_client(device, FAKE_SMS, 0);
    set_limit = fake_driver(device)->cuCtxSetLimit;
    fake_driver(device)->cuCtxSetLimit = set_limit_up_to;
    /* This need is of a kernel whose launch the driver is about to refuse. */
    fake_need_local(device, NULL, 400u << 10);
    raise_stack(c, 4u << 10);
    cr_assert_eq(fake_stack(), 4u << 10);
    fake_client_end(c);
}
