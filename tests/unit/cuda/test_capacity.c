/* What a context has no room for waits, in the driver, for all that runs there: so a client that
 * needs more waits before. And what runs, though its client denies it. */
#include <criterion/criterion.h>
#include <sched.h>

#include "device/cuda/admit.h"
#include "device/cuda/call.h"
#include "device/cuda/capacity.h"
#include "device/cuda/stream.h"
#include "device/cuda/local.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/queue.h"
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
    struct dev_queue *q;
    cr_assert_eq(cuda_queue_create(c, 0, number, 0, 0, &q), 0);
    return q;
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
    cuda_flush(one);
    cuda_flush(two);
    while (!cuda_queue_is_over(runs_on) || !cuda_queue_is_over(queues[0]))
        sched_yield();
    fake_hold(runs_on->stream, true);
    fake_launch(runs_on, 2, 1);
    cuda_flush(one);
    fake_patience(d, 0, 0, 0);
    while (cuda_is_quiet(d, 1)) /* until the watch has seen it there */
        sched_yield();
}

static void begin(void)
{
    begin_with(FAKE_SMS);
}

static void end(void)
{
    fake_hold(runs_on->stream, false);
    fake_client_end(one);
    fake_client_end(two);
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
    cuda_flush(two);
    for (unsigned i = 0; i < count; i++)
        while (!cuda_queue_is_over(queues[i]))
            sched_yield();
}

Test(capacity, streams_are_made_beside_a_kernel, .init = begin, .fini = end)
{
    launch_on(ROOM - 1);
    fake_expect(2, ROOM - 1);
    cr_assert_eq(cuda_home(two, 0), &d->gpus[0]);
}

Test(capacity, what_is_destroyed_leaves_its_place, .init = begin, .fini = end)
{
    for (unsigned i = 0; i < 5; i++) {
        launch_on(ROOM - 1);
        wait_until_over(ROOM - 1);
        for (unsigned n = 0; n < ROOM - 1; n++)
            cuda_stream_give_up(queues[n]);
    }
    fake_expect(2, 5 * (ROOM - 1));
    cr_assert_eq(cuda_home(two, 0), &d->gpus[0]);
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
    fake_hold(runs_on->stream, false);
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
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
}

static void begin_with_a_share(void)
{
    begin_with(40);
}

Test(capacity, a_green_context_has_its_own, .init = begin_with_a_share, .fini = end)
{
    launch_on(ROOM);
    fake_expect(2, ROOM);
    cr_assert_eq(cuda_home(two, 0), &d->gpus[0]);
    wait_until_over(ROOM);
    launch(ROOM);
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
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
    fake_hold(runs_on->stream, false);
    while (!cuda_is_quiet(d, 1))
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
        cr_assert_eq(cuda_run_begin(queues[0], &r), DEV_RUN_PLAIN);
    fake_hold(runs_on->stream, false);
    while (!cuda_is_quiet(d, 1))
        sched_yield();
    cr_assert_eq(cuda_run_begin(queues[0], &r), DEV_RUN_LEARN);
    queues[0]->learning.failed = true;
    (void)cuda_run_end(queues[0], &r);
}

static CUresult (*instantiate)(CUgraphExec *out, CUgraph g, unsigned long long flags);
static unsigned instantiated, refusals;

static CUresult instantiate_last(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    cr_assert_eq(d->gpus[0].capacity.used, ROOM, "others find no place");
    instantiated++;
    if (refusals == 0)
        return instantiate(out, g, flags);
    refusals--;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Or two would find the same last one; and it is given back. */
Test(capacity, a_graph_has_its_place_before_it_is_made, .init = begin, .fini = end)
{
    instantiate = d->api.cuGraphInstantiateWithFlags;
    d->api.cuGraphInstantiateWithFlags = instantiate_last;
    fake_hold(runs_on->stream, false);
    fake_patience(d, CUDA_NEVER, 0, 0); /* and nobody has to wait */
    pthread_mutex_lock(&d->lock);
    d->gpus[0].capacity.nodes = 0;
    d->gpus[0].capacity.used = ROOM - 1;
    pthread_mutex_unlock(&d->lock);
    refusals = 2;
    launch_rows(100);
    wait_until_over(1);
    cr_assert_eq(instantiated, 3);
    cr_assert_gt(fake_graph_launches(), 0);
    cr_assert_eq(d->gpus[0].capacity.used, ROOM);
    cr_assert_eq(d->gpus[0].capacity.nodes, 16);
}

static void begin_with_graphs(void)
{
    begin();
    fake_hold(runs_on->stream, false);
    fake_patience(d, CUDA_NEVER, 0, 0);
    pthread_mutex_lock(&d->lock);
    d->gpus[0].capacity.nodes = 0;
    pthread_mutex_unlock(&d->lock);
}

/* The driver has it until then, and so its place. */
Test(capacity, a_graph_keeps_its_place_while_it_runs, .init = begin_with_graphs, .fini = end)
{
    const struct cuda_capacity *room = &d->gpus[0].capacity;
    const uint32_t streams = room->used;
    fake_hold(queues[0]->stream, true);
    launch_rows(8);
    cr_assert_eq(fake_graphs(), 1);
    /* What it names may have gone: another one is made, and one for short rows before. */
    atomic_fetch_add(&two->runs.modules, 1);
    launch_rows(16);
    cr_assert_eq(fake_graphs(), 3);
    cr_assert_eq(room->used, streams + 3);
    cr_assert_eq(room->nodes, 16 + 16 + 4);
    struct cuda_exec next;
    const uint32_t rest = 3000 - 16 - 4; /* of a new context's nodes */
    cr_assert_not(cuda_capacity_take_graph(queues[0], rest, 0, &next));
    fake_hold(queues[0]->stream, false);
    wait_until_over(1);
    cr_assert_eq(fake_graphs(), 2);
    cr_assert(cuda_capacity_take_graph(queues[0], rest, 0, &next));
    cr_assert_eq(room->used, streams + 3);
    cr_assert_eq(room->nodes, 3000);
    cuda_capacity_graph_destroy(two, &next);
}

/* Nor would a run be learnt for which there is none in the end. */
Test(capacity, a_run_has_its_place_before_it_is_learnt, .init = begin, .fini = end)
{
    static const uint8_t records[] = { 1, 2, 3 };
    const struct dev_run r = { .records = records, .size = sizeof(records), .seq = 2, .count = 3 };
    struct cuda_exec other;
    pthread_mutex_lock(&d->lock);
    d->gpus[0].capacity.nodes = 0;
    d->gpus[0].capacity.used = ROOM - 2; /* the stream that learns takes one, too */
    pthread_mutex_unlock(&d->lock);
    cr_assert_eq(cuda_run_begin(queues[0], &r), DEV_RUN_PLAIN);
    cr_assert_eq(cuda_run_begin(queues[0], &r), DEV_RUN_LEARN);
    cr_assert_eq(d->gpus[0].capacity.nodes, 3);
    cr_assert_not(cuda_capacity_take_graph(runs_on, 3, 0, &other));
    queues[0]->learning.failed = true;
    cr_assert_not(cuda_run_end(queues[0], &r));
    cr_assert_eq(d->gpus[0].capacity.nodes, 0);
    cr_assert_eq(d->gpus[0].capacity.used, ROOM - 2);
    cr_assert(cuda_capacity_take_graph(runs_on, 3, 0, &other));
    cuda_capacity_graph_destroy(two, &other);
    cr_assert_eq(d->gpus[0].capacity.used, ROOM - 2);
}

static void *begin_run(void *arg)
{
    static const uint8_t records[] = { 1, 2, 3 };
    const struct dev_run r = { .records = records, .size = sizeof(records), .seq = 2, .count = 3 };
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(cuda_run_begin(queues[0], &r), DEV_RUN_PLAIN);
    atomic_store(&over, true);
    return NULL;
}

/* A run is learnt in a stream of its green context, which has room for others. */
Test(capacity, nobody_waits_to_learn, .init = begin_with_a_share, .fini = end)
{
    pthread_t thread;
    launch_on(ROOM);
    wait_until_over(ROOM);
    d->gpus[0].capacity.made = 2 * ROOM;
    d->gpus[0].capacity.nodes = 0;
    cr_assert_eq(pthread_create(&thread, NULL, begin_run, NULL), 0);
    for (const uint64_t until = gm_now_ns() + GM_NS_PER_S;
         !atomic_load(&over) && gm_now_ns() < until;)
        sched_yield();
    cr_assert(atomic_load(&over));
    pthread_join(thread, NULL);
    cr_assert_eq(cuda_home(two, 0), &d->gpus[0]);
}

/* --- what runs, though its client denies it --------------------------------------------------- */

static void deny(void)
{
    atomic_store(&runs_on->slot->completed.value, 2);
    for (bool idle = false; !idle; sched_yield()) {
        pthread_mutex_lock(&d->lock);
        idle = gm_list_empty(&runs_on->active);
        pthread_mutex_unlock(&d->lock);
    }
}

Test(capacity, what_is_denied_runs_all_the_same, .init = begin, .fini = end)
{
    deny();
    fake_launch_as(queues[0], ++seqs[0], &(struct fake_kernel) { .number = 4, .unknown = true });
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
}

Test(capacity, nor_is_there_room_beside_it, .init = begin, .fini = end)
{
    deny();
    launch_on(ROOM - 1);
    wait_until_over(ROOM - 1);
    launch(ROOM);
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int ask_for_stack(struct dev_client *c, uint64_t value)
{
    uint8_t bytes[64];
    struct wire_enc enc;
    struct wire_dec dec;
    wire_enc_init(&enc, bytes, sizeof(bytes));
    wire_put_call_limit(&enc,
                        &(struct wire_call_limit) { .limit = CU_LIMIT_STACK_SIZE, .value = value });
    wire_dec_init(&dec, bytes, enc.size);
    c->asked = &c->dev->gpus[0];
    cuda_enter(c->asked);
    return cuda_limit_raise(c, &dec, &enc);
}

static void raise_stack(struct dev_client *c, uint64_t value)
{
    cr_assert_eq(ask_for_stack(c, value), 0);
}

/* 80 GiB, and 2,048 threads on each multiprocessor. */
Test(capacity, all_stacks_together_are_an_eighth_of_the_memory)
{
    struct dev *device = fake_device();
    struct dev_client *c = fake_client(device, FAKE_SMS, 0);
    raise_stack(c, 32u << 10);
    cr_assert_eq(ask_for_stack(c, 40u << 10), CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(atomic_load(&device->gpus[0].stack), 32u << 10);
    fake_client_end(c);
}

static CUresult (*set_current)(CUcontext c);

/* Just before local memory is given back a client comes that needs it. */
static CUresult somebody_comes(CUcontext c)
{
    struct cuda_gpu *g = (void *)c;
    g->local = 100u << 10;
    return set_current(c);
}

/* The limit is larger meanwhile, for the local memory of somebody's kernel. */
Test(capacity, a_stack_stays_when_local_memory_goes)
{
    struct dev *device = fake_device();
    struct cuda_gpu *g = &device->gpus[0];
    struct dev_client *large = fake_client(device, FAKE_SMS, 0),
                      *c = fake_client(device, FAKE_SMS, 0);
    const uint32_t local = 100u << 10;
    g->stack = 1u << 10;
    g->local = 1u << 10;
    g->local = large->local[0] = local;
    raise_stack(c, 4u << 10);
    cr_assert_eq(fake_stack(), local);
    raise_stack(c, 8u << 10);
    raise_stack(c, 2u << 10);
    large->local[0] = 0;
    cuda_local_shrink(device);
    cr_assert_eq(fake_stack(), 8u << 10);
    cr_assert_eq(g->local, 8u << 10);
    raise_stack(c, 12u << 10);
    cr_assert_eq(fake_stack(), 12u << 10);
    g->local = local; /* of a client that has gone meanwhile, too */
    cuda_enter(&device->fallbacks[0]);
    set_current = device->api.cuCtxSetCurrent;
    device->api.cuCtxSetCurrent = somebody_comes;
    cuda_local_shrink(device);
    cr_assert_eq(fake_stack(), local);
    fake_client_end(large);
    fake_client_end(c);
}

/* A client that wants a stack has it elsewhere, and the kernel's local memory is not asked for
 * there. */
Test(capacity, nobody_waits_for_a_kernel_that_wants_a_stack, .init = begin, .fini = end)
{
    atomic_store(&d->gpus[0].local, 400u << 10);
    raise_stack(two, 4u << 10);
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
    cuda_enter(&d->fallbacks[0]);
    cr_assert_eq(fake_stack(), 4u << 10);
    cuda_enter(&d->gpus[0]);
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
    struct cuda_gpu *g = &device->gpus[0];
    struct dev_client *c = fake_client(device, FAKE_SMS, 0);
    set_limit = device->api.cuCtxSetLimit;
    device->api.cuCtxSetLimit = set_limit_up_to;
    g->local = 400u << 10; /* of a kernel whose launch the driver is about to refuse */
    raise_stack(c, 4u << 10);
    cr_assert_eq(fake_stack(), 4u << 10);
    fake_client_end(c);
}
