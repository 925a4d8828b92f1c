/* Beside a kernel that runs on: a client that wants to load one goes to the GPU's fallback context,
 * and comes back. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fake.h"

TestSuite(fallback, .timeout = 20);

static struct dev *d;
static struct dev_client *one, *two;
static struct dev_queue *runs_on, *own;
static uint64_t seq;
static _Atomic bool over;

static struct dev_queue *queue(struct dev_client *c, uint32_t number)
{
    return fake_queue(c, 0, number, 0);
}

static void wait_until_over(struct dev_client *c, struct dev_queue *q)
{
    cuda.flush(c);
    while (!fake_is_over(q))
        sched_yield();
}

/* The kernel of one client runs on, for longer than anybody waits for; the other one has launched
 * something before. */
static void begin(void)
{
    d = fake_device();
    one = fake_client(d, FAKE_SMS, 0);
    two = fake_client(d, FAKE_SMS, 0);
    runs_on = queue(one, 1);
    own = queue(two, 1);
    fake_launch(runs_on, 1, 1);
    fake_launch(own, seq = 1, 2);
    wait_until_over(two, own);
    wait_until_over(one, runs_on);
    fake_hold(fake_stream(runs_on), true);
    fake_launch(runs_on, 2, 1);
    cuda.flush(one);
    fake_patience(d, 0, 0, 0);
    fake_wait_until_busy(d, FAKE_FIRST);
}

static void end(void)
{
    fake_hold(fake_stream(runs_on), false);
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
    cr_assert(fake_is_away(two));
    cr_assert(fake_queue_is_away(own));
    cr_assert(fake_queue_is_away(other));
    cr_assert_not(fake_is_away(one), "a client that need not load stays");
    fake_launch(own, ++seq, 4); /* known in the primary context */
    wait_until_over(two, own);
    fake_expect(4, 1);
}

Test(fallback, and_what_it_begins_there_is_there, .init = begin, .fini = end)
{
    launch_unknown(own);
    struct dev_queue *new = queue(two, 2);
    cr_assert(fake_queue_is_away(new));
    fake_launch(new, 1, 5);
    cr_assert_eq(cuda.wait(own, ++seq, new, 1), 0);
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
    cr_assert_eq(cuda.gate(own, ++seq), 0);
    launch_unknown(own);
    fake_launch(own, ++seq, 4);
    cr_assert_not(fake_is_away(two));
    atomic_store(&fake_slot(own)->gate, seq - 2);
    cuda.flush(two);
    cuda.gate_moved(own);
    wait_until_over(two, own);
    cr_assert(fake_queue_is_away(own));
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
    fake_hold(fake_stream(own), true);
    fake_launch(own, ++seq, 2);
    pthread_t thread = loads();
    looks(20);
    cr_assert_not(atomic_load(&over));
    cr_assert_not(fake_queue_is_away(own));
    fake_hold(fake_stream(own), false);
    pthread_join(thread, NULL);
    cr_assert(fake_queue_is_away(own));
}

/* It waits, and goes on when the kernel ends. */
static void stays(void)
{
    pthread_t thread = loads();
    looks(20);
    cr_assert_not(atomic_load(&over));
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert_not(fake_queue_is_away(own));
    fake_expect(3, 1);
}

Test(fallback, not_where_there_is_none, .init = begin, .fini = end)
{
    fake_refuse_fallbacks(true);
    stays();
}

Test(fallback, not_with_variables_of_the_drivers, .init = begin, .fini = end)
{
    fake_bind(two, true);
    stays();
}

Test(fallback, not_with_attributes_that_hold_there, .init = begin, .fini = end)
{
    fake_bind(two, false);
    stays();
}

static void make_array(void)
{
    uint8_t message[128], answer[64];
    struct wire_enc enc, reply;
    struct wire_dec dec;
    const struct wire_call_array_create w = { .width = 16, .format = 8, .channels = 1 };
    wire_enc_init(&enc, message, sizeof(message));
    wire_put_call_array_create(&enc, &w);
    wire_dec_init(&dec, message, enc.size);
    wire_enc_init(&reply, answer, sizeof(answer));
    cr_assert_eq(cuda.array_memory(two, 0, 1u << 20), 0);
    cr_assert_eq(cuda.call(two, &(struct dev_call) { .function = WIRE_CALL_ARRAY_CREATE,
                                                     .args = &dec,
                                                     .reply = &reply }),
                 0);
}

Test(fallback, not_with_arrays, .init = begin, .fini = end)
{
    make_array();
    stays();
}

static void *make_array_there(void *arg)
{
    make_array();
    atomic_store(&over, true);
    return NULL;
}

/* An array could not come along: the client waits until it is called back. */
Test(fallback, before_it_makes_an_array_it_comes_back, .init = begin, .fini = end)
{
    pthread_t thread;
    launch_unknown(own);
    wait_until_over(two, own);
    fake_patience(d, 0, 0, 10 * GM_NS_PER_S);
    fake_patience_to_return(d, FAKE_NEVER);
    cr_assert_eq(pthread_create(&thread, NULL, make_array_there, NULL), 0);
    looks(20);
    cr_assert_not(atomic_load(&over));
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert_not(fake_is_away(two));
}

Test(fallback, it_waits_for_that_so_long_and_no_longer, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    fake_patience(d, 0, 0, 20 * GM_NS_PER_MS);
    fake_patience_to_return(d, 2 * GM_NS_PER_S); /* the safe point is given up after a third more */
    const uint64_t before = gm_now_ns();
    make_array();
    cr_assert_geq(gm_now_ns() - before, 20 * GM_NS_PER_MS);
    cr_assert(fake_is_away(two));
}

Test(fallback, nor_beside_what_takes_long, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    fake_patience(d, 0, 0, FAKE_NEVER / 2);
    make_array();
    cr_assert(fake_is_away(two));
}

/* The watch may be at its rounds just then: until it has, or the test's time is up. */
static void come_back(struct dev_client *c)
{
    fake_hold(fake_stream(runs_on), false);
    wait_until_over(one, runs_on);
    while (fake_is_away(c)) {
        (void)cuda.backlog(c);
        sched_yield();
    }
}

/* Which does not hold there; it is a part of the primary context. */
Test(fallback, without_its_share, .init = begin, .fini = end)
{
    fake_patience(d, FAKE_NEVER, 0, 0); /* the green context has been made before */
    fake_share(two, 40, 0);
    fake_patience(d, 0, 0, 0);
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(own))), 5);
    launch_unknown(own);
    cr_assert(fake_queue_is_away(own));
    cr_assert_eq(fake_stream_groups(fake_stream(own)), 0);
    cr_assert_eq(fake_greens(), 0);
    wait_until_over(two, own);
    come_back(two);
    fake_launch(own, ++seq, 4);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(own))), 5);
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
    cr_assert(fake_queue_is_away(own));
    pthread_join(thread, NULL);
    cr_assert_eq(fake_greens(), 0);
}

Test(fallback, a_client_that_begins_with_a_share_begins_there, .init = begin, .fini = end)
{
    struct dev_client *three = fake_client(d, 40, 0);
    cr_assert(fake_is_away(three));
    struct dev_queue *new = queue(three, 2);
    fake_launch(new, 1, 5);
    wait_until_over(three, new);
    come_back(three);
    fake_launch(new, 2, 5);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(new))), 5);
    fake_client_end(three);
}

Test(fallback, a_client_that_is_to_be_stopped_waits_no_longer, .init = begin, .fini = end)
{
    fake_refuse_fallbacks(true);
    pthread_t thread = loads();
    looks(5);
    fake_leaves(two);
    pthread_join(thread, NULL);
    fake_expect(3, 0);
}

Test(fallback, it_comes_back_when_it_is_calm, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    come_back(two);
    cr_assert_not(fake_queue_is_away(own));
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    while (!fake_is_quiet(d, FAKE_FIRST)) /* until the watch has seen it, too */
        sched_yield();
    launch_unknown(own);
    wait_until_over(two, own);
    cr_assert_not(fake_queue_is_away(own));
    fake_expect(3, 2);
}

Test(fallback, and_gets_the_share_that_it_was_given_meanwhile, .init = begin, .fini = end)
{
    launch_unknown(own);
    fake_share(two, 40, 0);
    wait_until_over(two, own);
    cr_assert_eq(fake_greens(), 0);
    come_back(two);
    fake_launch(own, ++seq, 4);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(own))), 5);
}

/* Another client's kernel cannot start beside the one that runs on. */
static void block(struct dev_client *c, struct dev_queue *q)
{
    fake_launch(q, 1, 5);
    wait_until_over(c, q);
    fake_hold(fake_stream(q), true);
    fake_launch(q, 2, 5);
    cuda.flush(c);
    while (!fake_is_blocked(d))
        sched_yield();
}

Test(fallback, from_a_blocked_context_clients_go_before_they_launch, .init = begin, .fini = end)
{
    struct dev_client *three = fake_client(d, FAKE_SMS, 0);
    struct dev_queue *waits = queue(three, 1);
    fake_blocked_after(d, 10 * GM_NS_PER_MS);
    looks(30);
    (void)cuda.backlog(two);
    cr_assert_not(fake_is_away(two), "a single client's kernel blocks nobody");
    block(three, waits);
    (void)cuda.backlog(one);
    (void)cuda.backlog(three);
    cr_assert_not(fake_is_away(one));
    cr_assert_not(fake_is_away(three), "what it has in flight is there");
    (void)cuda.backlog(two);
    cr_assert(fake_is_away(two));
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    fake_expect(4, 1);
    fake_hold(fake_stream(waits), false);
    wait_until_over(three, waits);
    come_back(two);
    fake_client_end(three);
}

Test(fallback, nobody_begins_in_a_blocked_context, .init = begin, .fini = end)
{
    struct dev_client *three = fake_client(d, FAKE_SMS, 0), *four;
    struct dev_queue *waits = queue(three, 1), *new;
    fake_blocked_after(d, 10 * GM_NS_PER_MS);
    block(three, waits);
    four = fake_client(d, FAKE_SMS, 0);
    cr_assert(fake_is_away(four));
    new = queue(four, 1);
    fake_launch(new, 1, 4);
    wait_until_over(four, new);
    fake_expect(4, 1);
    fake_client_end(four);
    fake_hold(fake_stream(waits), false);
    wait_until_over(three, waits);
    while (fake_is_blocked(d))
        sched_yield();
    four = fake_client(d, FAKE_SMS, 0);
    cr_assert_not(fake_is_away(four));
    fake_client_end(four);
    fake_client_end(three);
}

static _Atomic bool asked;

static void *asks_for_more(void *arg)
{
    (void)cuda.backlog(arg);
    atomic_store(&asked, true);
    return NULL;
}

/* The safe point at which clients come back is one for which longer operations are waited for.
 * Meanwhile they hand over nothing. */
Test(fallback, it_comes_back_though_operations_take_long, .init = begin, .fini = end)
{
    pthread_t thread;
    launch_unknown(own);
    wait_until_over(two, own);
    fake_hold(fake_stream(own), true);
    fake_launch(own, ++seq, 4);
    cuda.flush(two);
    fake_patience_to_return(d, 10 * GM_NS_PER_S);
    while (!fake_is_closed(d, FAKE_FIRST)) /* by the thread that calls it back */
        sched_yield();
    cr_assert_eq(pthread_create(&thread, NULL, asks_for_more, two), 0);
    looks(200);
    cr_assert_not(atomic_load(&asked), "it has to wait with what comes next");
    fake_hold(fake_stream(own), false);
    while (!fake_is_over(own))
        sched_yield();
    cr_assert(fake_queue_is_away(own), "not before the other context is idle, too");
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert_not(fake_is_away(two));
    fake_launch(own, ++seq, 4);
    wait_until_over(two, own);
    fake_expect(4, 2);
}

static void wants_to_come_back(void)
{
    (void)cuda.backlog(two);
}

Test(fallback, larger_stacks_are_made_when_nothing_runs, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    cr_assert_eq(fake_raise_stack(two, 8u << 10), 0);
    wants_to_come_back();
    cr_assert(fake_queue_is_away(own));
    come_back(two);
    cr_assert_not(fake_queue_is_away(own));
    fake_enter(d, false);
    cr_assert_eq(fake_stack(), 8u << 10);
}

/* Until then it goes on where it is. */
Test(fallback, so_are_shares, .init = begin, .fini = end)
{
    launch_unknown(own);
    wait_until_over(two, own);
    (void)fake_limit(two);
    wants_to_come_back();
    cr_assert(fake_queue_is_away(own));
    come_back(two);
    cr_assert_not(fake_queue_is_away(own));
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
    struct fake_module *another = fake_module(false, false);
    fake_launch_as(own, ++seq,
                   &(struct fake_kernel) { .number = 8, .module = another, .unknown = true });
    wait_until_over(two, own);
    return NULL;
}

static void *stop(void *client)
{
    cuda.client_stop(client);
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
    cr_assert(fake_is_away(two));
    wait_until_over(two, own);
    endless = (struct beginner) { .c = fake_client(d, FAKE_SMS, 0) };
    endless.q = queue(endless.c, 1);
    fake_launch_as(endless.q, 1, &(struct fake_kernel) { .number = 6, .unknown = true });
    cr_assert(fake_is_away(endless.c));
    wait_until_over(endless.c, endless.q);
    fake_hold(fake_stream(endless.q), true);
    fake_launch_as(endless.q, 2, &(struct fake_kernel) { .number = 6, .unknown = true });
    cuda.flush(endless.c);
    for (unsigned i = 0; i < GM_ARRAY_LEN(four); i++)
        start(&four[i]);
    while (fake_is_quiet(d, FAKE_FALLBACK))
        sched_yield();
    cr_assert_eq(pthread_create(&goes_back, NULL, launch_another, NULL), 0);
    const uint64_t begun = gm_now_ns();
    fake_hold(fake_stream(runs_on), false);
    pthread_join(goes_back, NULL);
    cr_assert_not(fake_is_away(two), "nor does it stay there, with more to load");
    for (unsigned i = 0; i < GM_ARRAY_LEN(four); i++) {
        pthread_join(four[i].thread, NULL);
        cr_assert_not(fake_is_away(four[i].c));
    }
    cr_assert_lt(gm_now_ns() - begun, 2 * GM_NS_PER_S);
    pthread_join(stops, NULL);
    fake_hold(fake_stream(endless.q), false);
}
