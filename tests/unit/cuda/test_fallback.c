/* Beside a kernel that runs on: a client that wants to load one goes to the GPU's fallback context,
 * and comes back. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

#include "device/cuda/admit.h"
#include "device/cuda/array.h"
#include "device/cuda/client.h"
#include "device/cuda/fallback.h"
#include "device/cuda/library.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/module.h"
#include "device/cuda/queue.h"
#include "fake.h"

TestSuite(fallback, .timeout = 20);

static struct dev *d;
static struct dev_client *one, *two;
static struct dev_queue *runs_on, *own;
static uint64_t seq;
static _Atomic bool leaving, over;

static struct dev_queue *queue(struct dev_client *c, uint32_t number)
{
    struct dev_queue *q;
    cr_assert_eq(cuda_queue_create(c, 0, number, 0, 0, &q), 0);
    return q;
}

static void wait_until_over(struct dev_client *c, struct dev_queue *q)
{
    cuda_flush(c);
    while (!cuda_queue_is_over(q))
        sched_yield();
}

/* The kernel of one client runs on, for longer than anybody waits for; the other one has launched
 * something before. */
static void begin(void)
{
    d = fake_device();
    one = fake_client(d, FAKE_SMS, 0);
    two = fake_client(d, FAKE_SMS, 0);
    two->leaving = &leaving;
    runs_on = queue(one, 1);
    own = queue(two, 1);
    fake_launch(runs_on, 1, 1);
    fake_launch(own, seq = 1, 2);
    wait_until_over(two, own);
    wait_until_over(one, runs_on);
    fake_hold(runs_on->stream, true);
    fake_launch(runs_on, 2, 1);
    cuda_flush(one);
    fake_patience(d, 0, 0, 0);
    while (cuda_is_quiet(d, 1)) /* until the watch has seen it there */
        sched_yield();
}

static void end(void)
{
    fake_hold(runs_on->stream, false);
    fake_client_end(one);
    fake_client_end(two);
}

static void launch_unknown(struct dev_queue *q)
{
    fake_launch_as(q, ++seq, &(struct fake_kernel) { .number = 3, .unknown = true });
}

Test(fallback, a_client_goes_there_to_load, .init = begin, .fini = end)
{
    struct dev_queue *other = queue(two, 2);
    launch_unknown(own);
    fake_expect(3, 1);
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
    cr_assert_eq(other->gpu, &d->fallbacks[0]);
    cr_assert_eq(cuda_home(one, 0), &d->gpus[0], "a client that need not load stays");
    fake_launch(own, ++seq, 4); /* known in the primary context */
    wait_until_over(two, own);
    fake_expect(4, 1);
}

Test(fallback, and_what_it_begins_there_is_there, .init = begin, .fini = end)
{
    launch_unknown(own);
    struct dev_queue *new = queue(two, 2);
    cr_assert_eq(new->gpu, &d->fallbacks[0]);
    fake_launch(new, 1, 5);
    cr_assert_eq(cuda_wait(own, ++seq, new, 1), 0);
    fake_launch(own, ++seq, 6);
    wait_until_over(two, own);
    wait_until_over(two, new);
    fake_expect(5, 1);
}

Test(fallback, rows_of_launches_are_graphs_there_too, .init = begin, .fini = end)
{
    launch_unknown(own);
    for (unsigned i = 0; i < 16 * 20; i++)
        fake_launch_one_of_many(own, ++seq, 7);
    wait_until_over(two, own);
    fake_expect(7, 16 * 20);
    cr_assert_gt(fake_graph_launches(), 0);
}

Test(fallback, what_was_held_back_is_found_there, .init = begin, .fini = end)
{
    cr_assert_eq(cuda_gate(own, ++seq), 0);
    launch_unknown(own);
    fake_launch(own, ++seq, 4);
    cr_assert_eq(cuda_home(two, 0), &d->gpus[0]);
    atomic_store(&own->slot->gate, seq - 2);
    cuda_flush(two);
    cuda_gate_moved(own);
    wait_until_over(two, own);
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
    fake_expect(4, 1);
}

static void *load(void *arg)
{
    launch_unknown(arg);
    atomic_store(&over, true);
    return NULL;
}

static pthread_t loads(void)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, load, own), 0);
    return thread;
}

static void looks(unsigned times)
{
    const uint64_t until = gm_now_ns() + times * GM_NS_PER_MS;
    while (gm_now_ns() < until)
        sched_yield();
}

Test(fallback, not_while_something_of_it_runs, .init = begin, .fini = end)
{
    fake_hold(own->stream, true);
    fake_launch(own, ++seq, 2);
    pthread_t thread = loads();
    looks(20);
    cr_assert_not(atomic_load(&over));
    cr_assert_eq(own->gpu, &d->gpus[0]);
    fake_hold(own->stream, false);
    pthread_join(thread, NULL);
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
}

/* It waits, and goes on when the kernel ends. */
static void stays(void)
{
    pthread_t thread = loads();
    looks(20);
    cr_assert_not(atomic_load(&over));
    fake_hold(runs_on->stream, false);
    pthread_join(thread, NULL);
    cr_assert_eq(own->gpu, &d->gpus[0]);
    fake_expect(3, 1);
}

Test(fallback, not_where_there_is_none, .init = begin, .fini = end)
{
    fake_refuse_fallbacks(true);
    stays();
}

static void add_module(struct dev_module *m)
{
    m->gpu = &d->gpus[0];
    gm_list_init(&m->link);
    gm_list_append(&two->modules, &m->link);
}

Test(fallback, not_with_variables_of_the_drivers, .init = begin, .fini = end)
{
    static struct cuda_library l = { .traits.loses_values = true };
    static struct dev_module m = { .library = &l };
    add_module(&m);
    stays();
    gm_list_remove(&m.link);
}

Test(fallback, not_with_attributes_that_hold_there, .init = begin, .fini = end)
{
    static struct cuda_library l;
    static struct dev_module m = { .library = &l, .altered = true };
    add_module(&m);
    stays();
    gm_list_remove(&m.link);
}

Test(fallback, not_with_arrays, .init = begin, .fini = end)
{
    struct cuda_array a = { .exists = true, .gpu = &d->gpus[0] };
    two->arrays.at = &a;
    two->arrays.count = 1;
    stays();
    two->arrays.count = 0;
}

/* The watch may be at its rounds just then: until it has, or the test's time is up. */
static void come_back(void)
{
    fake_hold(runs_on->stream, false);
    wait_until_over(one, runs_on);
    while (cuda_home(two, 0)->is_fallback) {
        (void)cuda_backlog(two);
        sched_yield();
    }
}

/* Which does not hold there; it is a part of the primary context. */
Test(fallback, without_its_share, .init = begin, .fini = end)
{
    const uint32_t multiprocessors[DEV_DEVICES] = { 40 };
    two->seats[0].streams_at = (CUdeviceptr)(uintptr_t)two->session->streams;
    fake_patience(d, CUDA_NEVER, 0, 0); /* the green context has been made before */
    cuda_client_set_share(two, 30, multiprocessors, 0);
    fake_patience(d, 0, 0, 0);
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(own->stream)), 5);
    launch_unknown(own);
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
    cr_assert_eq(fake_stream_groups(own->stream), 0);
    cr_assert_eq(fake_greens(), 0);
    wait_until_over(two, own);
    come_back();
    fake_launch(own, ++seq, 4);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(own->stream)), 5);
}

/* Which is not there before the kernel has ended. */
Test(fallback, nor_does_it_wait_for_its_share, .init = begin, .fini = end)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fake_limit, two), 0);
    looks(10);
    pthread_t loading = loads();
    for (const uint64_t until = gm_now_ns() + 5 * GM_NS_PER_S;
         !atomic_load(&over) && gm_now_ns() < until;)
        sched_yield();
    cr_assert(atomic_load(&over));
    pthread_join(loading, NULL);
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
    pthread_join(thread, NULL);
    cr_assert_eq(fake_greens(), 0);
}

Test(fallback, a_client_that_begins_with_a_share_begins_there, .init = begin, .fini = end)
{
    struct cuda_place *none = NULL;
    two->multiprocessors[0] = 40;
    atomic_store(&two->seats[0].place, none);
    cr_assert_eq(cuda_fallback_seat(two, &d->gpus[0]), CUDA_SUCCESS);
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
    struct dev_queue *new = queue(two, 2);
    fake_launch(new, 1, 5);
    wait_until_over(two, new);
    come_back();
    fake_launch(new, 2, 5);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(new->stream)), 5);
}

Test(fallback, a_client_that_is_to_be_stopped_waits_no_longer, .init = begin, .fini = end)
{
    fake_refuse_fallbacks(true);
    pthread_t thread = loads();
    looks(5);
    atomic_store(&leaving, true);
    pthread_join(thread, NULL);
    fake_expect(3, 0);
}

Test(fallback, it_comes_back_when_it_is_calm, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    come_back();
    cr_assert_eq(own->gpu, &d->gpus[0]);
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    while (!cuda_is_quiet(d, 1)) /* until the watch has seen it, too */
        sched_yield();
    launch_unknown(own);
    wait_until_over(two, own);
    cr_assert_eq(own->gpu, &d->gpus[0]);
    fake_expect(3, 2);
}

Test(fallback, and_gets_the_share_that_it_was_given_meanwhile, .init = begin, .fini = end)
{
    const uint32_t multiprocessors[DEV_DEVICES] = { 40 };
    launch_unknown(own);
    cuda_client_set_share(two, 30, multiprocessors, 0);
    wait_until_over(two, own);
    cr_assert_eq(fake_greens(), 0);
    come_back();
    fake_launch(own, ++seq, 4);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(own->stream)), 5);
}

/* The safe point at which clients come back is one for which longer operations are waited for. */
Test(fallback, it_comes_back_though_an_operation_takes_long, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    pthread_mutex_lock(&d->lock);
    d->returns_ns = 10 * GM_NS_PER_S;
    pthread_mutex_unlock(&d->lock);
    while (!(atomic_load(&d->closed) & 1)) /* by the thread that calls it back */
        sched_yield();
    (void)cuda_backlog(two);
    cr_assert_eq(own->gpu, &d->fallbacks[0], "not before that has ended");
    come_back();
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    fake_expect(4, 1);
}

static void wants_to_come_back(void)
{
    (void)cuda_backlog(two);
}

Test(fallback, larger_stacks_are_made_when_nothing_runs, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    atomic_store(&d->fallbacks[0].stack, 8u << 10);
    wants_to_come_back();
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
    come_back();
    cr_assert_eq(own->gpu, &d->gpus[0]);
    cuda_enter(&d->gpus[0]);
    cr_assert_eq(fake_stack(), 8u << 10);
}

/* Until then it goes on where it is. */
Test(fallback, so_are_shares, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    (void)fake_limit(two);
    wants_to_come_back();
    cr_assert_eq(own->gpu, &d->fallbacks[0]);
    come_back();
    cr_assert_eq(own->gpu, &d->gpus[0]);
}

/* --- one behind the other --------------------------------------------------------------------- */

struct beginner {
    pthread_t thread;
    struct dev_client *c;
    struct dev_queue *q;
};

/* A program's first kernel. */
static void *begin_program(void *arg)
{
    struct beginner *b = arg;
    fake_launch_as(b->q, 1, &(struct fake_kernel) { .number = 7, .unknown = true });
    wait_until_over(b->c, b->q);
    return NULL;
}

static void start(struct beginner *b)
{
    b->c = fake_client(d, FAKE_SMS, 0);
    b->q = queue(b->c, 1);
    cr_assert_eq(pthread_create(&b->thread, NULL, begin_program, b), 0);
}

static void *launch_another(void *arg)
{
    static struct cuda_library another = { .users = 1 };
    fake_launch_as(own, ++seq,
                   &(struct fake_kernel) { .number = 8, .library = &another, .unknown = true });
    wait_until_over(two, own);
    return NULL;
}

static void *stop(void *client)
{
    cuda_client_stop(client);
    return NULL;
}

/* A program is killed whose kernels still run, one that does not end goes to the fallback context,
 * and others begin: as soon as there is a way in either context. */
Test(fallback, a_client_that_begins_goes_where_there_is_a_way_first, .init = begin)
{
    struct beginner endless, four[4];
    pthread_t stops, goes_back;
    cr_assert_eq(pthread_create(&stops, NULL, stop, one), 0);
    fake_launch_as(own, ++seq, &(struct fake_kernel) { .number = 6, .unknown = true });
    cr_assert_eq(cuda_home(two, 0), &d->fallbacks[0]);
    wait_until_over(two, own);
    endless = (struct beginner) { .c = fake_client(d, FAKE_SMS, 0) };
    endless.q = queue(endless.c, 1);
    fake_launch_as(endless.q, 1, &(struct fake_kernel) { .number = 6, .unknown = true });
    cr_assert_eq(cuda_home(endless.c, 0), &d->fallbacks[0]);
    wait_until_over(endless.c, endless.q);
    fake_hold(endless.q->stream, true);
    fake_launch_as(endless.q, 2, &(struct fake_kernel) { .number = 6, .unknown = true });
    cuda_flush(endless.c);
    for (unsigned i = 0; i < GM_ARRAY_LEN(four); i++)
        start(&four[i]);
    while (cuda_is_quiet(d, CUDA_GPU_BIT(&d->fallbacks[0])))
        sched_yield();
    cr_assert_eq(pthread_create(&goes_back, NULL, launch_another, NULL), 0);
    const uint64_t begun = gm_now_ns();
    fake_hold(runs_on->stream, false);
    pthread_join(goes_back, NULL);
    cr_assert_eq(cuda_home(two, 0), &d->gpus[0], "nor does it stay there, with more to load");
    for (unsigned i = 0; i < GM_ARRAY_LEN(four); i++) {
        pthread_join(four[i].thread, NULL);
        cr_assert_eq(cuda_home(four[i].c, 0), &d->gpus[0]);
    }
    cr_assert_lt(gm_now_ns() - begun, 2 * GM_NS_PER_S);
    pthread_join(stops, NULL);
    fake_hold(endless.q->stream, false);
}
