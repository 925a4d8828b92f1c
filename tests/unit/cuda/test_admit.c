/* A kernel that runs on holds up only clients that make a call with which the driver waits. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fake.h"

#define PAGE 4096u

TestSuite(admit, .timeout = 20);

static struct dev *d;
static struct dev_client *one, *two, *three;
static struct dev_queue *runs_on, *short_ones;
static _Atomic bool over;

static struct dev_queue *queue(struct dev_client *c)
{
    return fake_queue_with_stream(c, 0, 1, 0);
}

/* The kernel of one client runs on; another one wants something; the third launches. */
static void begin(void)
{
    d = fake_device();
    one = fake_client(d, FAKE_SMS, 0);
    two = fake_client(d, FAKE_SMS, 0);
    three = fake_client(d, FAKE_SMS, 0);
    runs_on = queue(one);
    short_ones = queue(three);
    fake_hold(fake_stream(runs_on), true);
    fake_launch(runs_on, 1, 1);
    cuda.flush(one);
    fake_patience(d, 0, 0, 0);
    fake_wait_until_busy(d, FAKE_FIRST);
    cr_assert(fake_is_quiet(d, FAKE_SECOND), "there is nothing on another GPU");
}

static void launches_go_on(void)
{
    for (uint64_t seq = 1; seq <= 200; seq++) {
        fake_launch(short_ones, seq, 2);
        cuda.flush(three);
        while (fake_done(short_ones) < seq || cuda.backlog(three)) /* the watch sees it */
            sched_yield();
    }
}

static void end(void)
{
    fake_client_end(one);
    fake_client_end(two);
    fake_client_end(three);
}

static void its_own_copies_go_on(void)
{
    const struct wire_rec_copy r = {
        .dst = FAKE_WINDOW, .src = FAKE_WINDOW + PAGE / 2, .width = 64, .height = 1, .depth = 1
    };
    struct dev_queue *q = queue(two);
    fake_map(two, FAKE_WINDOW, PAGE, 0);
    cr_assert_eq(cuda.copy(q, 1, &r), 0);
    cuda.flush(two);
    cr_assert_eq(fake_done(q), 1);
}

static void *unpin(void *arg)
{
    cuda.memory_unmap(two, FAKE_HOST, PAGE);
    atomic_store(&over, true);
    return NULL;
}

Test(admit, a_client_that_unpins_memory_waits, .init = begin, .fini = end)
{
    pthread_t thread;
    fake_map_host(two, FAKE_HOST, PAGE);
    cr_assert_eq(pthread_create(&thread, NULL, unpin, NULL), 0);
    launches_go_on();
    cr_assert_not(atomic_load(&over));
    its_own_copies_go_on();
    fake_map_host(two, FAKE_HOST + PAGE, PAGE); /* more is pinned meanwhile */
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert_not(fake_holds(two, FAKE_HOST, PAGE));
}

Test(admit, what_is_pinned_goes_with_a_client_that_is_to_be_stopped, .init = begin, .fini = end)
{
    pthread_t thread;
    fake_map_host(two, FAKE_HOST, PAGE);
    cr_assert_eq(pthread_create(&thread, NULL, unpin, NULL), 0);
    fake_leaves(two);
    pthread_join(thread, NULL);
    cr_assert(fake_holds(two, FAKE_HOST, PAGE));
    fake_hold(fake_stream(runs_on), false);
}

Test(admit, a_client_that_gets_a_green_context_waits, .init = begin, .fini = end)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fake_limit, two), 0);
    launches_go_on();
    cr_assert_eq(fake_greens(), 0);
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert_eq(fake_greens(), 1);
}

Test(admit, a_client_that_is_to_be_stopped_waits_no_longer, .init = begin, .fini = end)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fake_limit, two), 0);
    fake_leaves(two);
    pthread_join(thread, NULL);
    cr_assert_eq(fake_greens(), 0);
    fake_hold(fake_stream(runs_on), false);
    struct dev_client *next = fake_client(d, FAKE_SMS, 0);
    fake_patience(d, FAKE_NEVER, 0, 0);
    fake_share(next, 40, 0);
    cr_assert_eq(fake_stream_groups(fake_stream(queue(next))), 0x1f,
                 "the first one has given back what it was to have");
    fake_client_end(next);
}

/* Nor does it make what it waited for. */
Test(admit, a_client_that_is_to_be_stopped_gets_no_part, .init = begin, .fini = end)
{
    struct tp_part *part = &fake_session(two)->parts[1];
    struct dev_queue *q;
    atomic_store(&part->minimum, 8);
    atomic_store(&part->wanted, 15);
    atomic_store(&part->groups[0], 1);
    atomic_store(&fake_session(two)->streams[2].part, 1);
    fake_leaves(two);
    q = fake_queue(two, 0, 2, 0);
    fake_launch(q, 1, 3);
    cr_assert_eq(fake_greens(), 0);
    fake_hold(fake_stream(runs_on), false);
}

Test(admit, what_is_nobodys_waits_until_then, .init = begin, .fini = end)
{
    cr_assert_not(fake_admit_wait(d, NULL, FAKE_FIRST, gm_now_ns()));
    fake_hold(fake_stream(runs_on), false);
    cr_assert(fake_admit_wait(d, NULL, FAKE_FIRST, UINT64_MAX));
    fake_admit_end(d, FAKE_FIRST);
}

static pthread_t tester;
static _Atomic unsigned by_the_watch;

static void count(CUstream s)
{
    by_the_watch += !pthread_equal(pthread_self(), tester);
}

/* It would wait, too, with the lock that everybody needs to hear of completions. */
Test(admit, the_watch_asks_nothing_while_a_call_may_wait, .init = begin, .fini = end)
{
    tester = pthread_self();
    fake_call_waits(d, true);
    fake_when_asked(
        count); /* a question that was asked before is answered: the watch had the lock */
    launches_go_on();
    cr_assert_eq(by_the_watch, 0);
    fake_call_waits(d, false);
    while (by_the_watch == 0)
        sched_yield();
    fake_hold(fake_stream(runs_on), false);
}

/* By its pace, and how much of it there is. */
Test(admit, what_is_likely_to_end_soon_is_waited_for, .init = begin, .fini = end)
{
    fake_patience(d, GM_NS_PER_S, 60 * GM_NS_PER_S, 0);
    fake_pace(runs_on, GM_NS_PER_S / 2);
    cr_assert(fake_is_quiet(d, FAKE_FIRST));
    for (uint64_t seq = 2; seq <= 4; seq++)
        fake_launch(runs_on, seq, 1);
    cuda.flush(one);
    fake_pace(runs_on, GM_NS_PER_S / 2);
    cr_assert_not(fake_is_quiet(d, FAKE_FIRST), "four of them");
    fake_pace(runs_on, GM_NS_PER_S / 100);
    cr_assert(fake_is_quiet(d, FAKE_FIRST));
    fake_hold(fake_stream(runs_on), false);
}

/* Nobody has waited for long. */
Test(admit, a_safe_point_is_given_up_where_it_takes_longer, .init = begin, .fini = end)
{
    fake_patience(d, 20 * GM_NS_PER_MS, 60 * GM_NS_PER_S, 0);
    fake_pace(runs_on, GM_NS_PER_MS);
    const uint64_t begun = gm_now_ns();
    cr_assert_not(fake_admit_try(d, two, FAKE_FIRST));
    cr_assert_geq(gm_now_ns() - begun, 20 * GM_NS_PER_MS);
    launches_go_on();
    fake_hold(fake_stream(runs_on), false);
}

static void *hand_over(void *arg)
{
    fake_launch(short_ones, 2, 2);
    atomic_store(&over, true);
    return NULL;
}

/* A client that was about to is waited for; one that wants to then waits. */
Test(admit, nobody_hands_over_at_a_safe_point, .init = begin, .fini = end)
{
    pthread_t thread;
    fake_hold(fake_stream(runs_on), false);
    fake_launch(short_ones, 1, 2);
    cr_assert_not(fake_admit_try(d, two, FAKE_FIRST));
    cuda.flush(three);
    cr_assert(fake_admit_wait(d, two, FAKE_FIRST, UINT64_MAX));
    cr_assert_eq(fake_done(short_ones), 1);
    cr_assert_eq(pthread_create(&thread, NULL, hand_over, NULL), 0);
    for (const uint64_t until = gm_now_ns() + 20 * GM_NS_PER_MS; gm_now_ns() < until; sched_yield())
        cr_assert_not(atomic_load(&over));
    fake_admit_end(d, FAKE_FIRST);
    pthread_join(thread, NULL);
    cuda.flush(three);
}

/* Programs that begin together load together. */
Test(admit, others_join_a_safe_point, .init = begin, .fini = end)
{
    fake_hold(fake_stream(runs_on), false);
    cr_assert(fake_admit_wait(d, two, FAKE_FIRST, UINT64_MAX));
    cr_assert(fake_admit_try(d, three, FAKE_FIRST));
    fake_admit_end(d, FAKE_FIRST);
    cr_assert_not(fake_may_hand_over(one));
    fake_admit_end(d, FAKE_FIRST);
    cr_assert(fake_may_hand_over(one));
}

#define MANY 8u

static _Atomic unsigned admitted;

/* It has what it wants only when all have. */
static void *want(void *arg)
{
    cr_assert(fake_admit_wait(d, two, FAKE_FIRST, UINT64_MAX));
    admitted++;
    while (admitted < MANY)
        sched_yield();
    fake_admit_end(d, FAKE_FIRST);
    return NULL;
}

/* However long it takes until nothing runs: who waits by then need not wait for another one. */
Test(admit, all_who_wait_have_the_same_safe_point, .init = begin, .fini = end)
{
    pthread_t threads[MANY];
    fake_patience(d, 15 * GM_NS_PER_S, 60 * GM_NS_PER_S, 0);
    for (unsigned i = 0; i < MANY; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, want, NULL), 0);
    while (fake_waiting(d) < MANY - 1)
        sched_yield();
    for (const uint64_t until = gm_now_ns() + 20 * GM_NS_PER_MS; gm_now_ns() < until;)
        sched_yield();
    fake_hold(fake_stream(runs_on), false);
    for (unsigned i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    cr_assert(fake_may_hand_over(one), "it is over");
}

/* Each context has its own. */
Test(admit, a_safe_point_holds_up_nobody_in_another_context, .init = begin, .fini = end)
{
    cr_assert(fake_admit_try(d, two, FAKE_FALLBACK), "what runs is in the primary one");
    launches_go_on();
    cr_assert_not(fake_admit_try(d, two, FAKE_FIRST));
    fake_hold(fake_stream(runs_on), false);
    cr_assert(fake_admit_wait(d, two, FAKE_FIRST, UINT64_MAX));
    cr_assert_not(fake_may_hand_over(one));
    fake_admit_end(d, FAKE_FIRST);
    cr_assert(fake_may_hand_over(one), "the other one is not over");
    cr_assert_not(fake_admit_try(d, NULL, FAKE_ALL), "somebody has one of them");
    fake_admit_end(d, FAKE_FALLBACK);
    cr_assert(fake_admit_wait(d, NULL, FAKE_ALL, UINT64_MAX));
    cr_assert_not(fake_may_hand_over(one));
    fake_admit_end(d, FAKE_ALL);
}

/* Its word is the client's to write. */
Test(admit, what_a_client_denies_runs_all_the_same, .init = begin, .fini = end)
{
    atomic_store(&fake_slot(runs_on)->completed.value, 1);
    while (!fake_is_quiet(d, FAKE_FIRST)) /* the watch believes it */
        sched_yield();
    cr_assert_not(fake_admit_try(d, two, FAKE_FIRST));
    cr_assert_not(fake_admit_try(d, two, FAKE_FIRST));
    fake_hold(fake_stream(runs_on), false);
    cr_assert(fake_admit_wait(d, two, FAKE_FIRST, UINT64_MAX));
    fake_admit_end(d, FAKE_FIRST);
}

static void end_and_deny(void *queue)
{
    struct dev_queue *q = queue;
    fake_hold(fake_stream(q), false);
    atomic_store(&fake_slot(q)->completed.value, 0);
}

/* The queue's client writes its word back before the watch has seen it. */
static void deny_that_it_is_done(struct dev_queue *q)
{
    fake_unseen(d, end_and_deny, q);
}

Test(admit, what_a_client_denies_is_done_all_the_same, .init = begin, .fini = end)
{
    deny_that_it_is_done(runs_on);
    cr_assert(fake_admit_wait(d, two, FAKE_FIRST, gm_now_ns() + 5 * GM_NS_PER_S));
    fake_admit_end(d, FAKE_FIRST);
    cr_assert_eq(cuda.backlog(one), 0);
}

/* Whatever else the watch asks about. */
Test(admit, what_is_denied_is_seen_beside_a_kernel_that_runs_on, .init = begin, .fini = end)
{
    fake_hold(fake_stream(short_ones), true);
    fake_launch(short_ones, 1, 2);
    cuda.flush(three);
    deny_that_it_is_done(short_ones);
    for (const uint64_t until = gm_now_ns() + 5 * GM_NS_PER_S; cuda.backlog(three); sched_yield())
        cr_assert_lt(gm_now_ns(), until);
    fake_hold(fake_stream(runs_on), false);
}

/* A context has ended while programs begin: nobody stands in the way of the thread that ends the
 * process.
 */
static void *settle(void *arg)
{
    return fake_settle(arg) ? arg : NULL;
}

Test(admit, nobody_waits_for_a_context_that_has_ended, .init = begin, .fini = end)
{
    struct dev_client *ten[10];
    pthread_t threads[10];
    void *got;
    fake_patience(d, 0, 0, GM_NS_PER_S); /* they sleep while they wait */
    for (unsigned i = 0; i < 10; i++) {
        ten[i] = fake_client(d, FAKE_SMS, 0);
        cr_assert_eq(pthread_create(&threads[i], NULL, settle, ten[i]), 0);
    }
    launches_go_on();
    const uint64_t begun = gm_now_ns();
    fake_dies(d, true);
    for (unsigned i = 0; i < 10; i++) {
        pthread_join(threads[i], &got);
        cr_assert_null(got);
    }
    cr_assert_lt(gm_now_ns() - begun, 2 * GM_NS_PER_S);
    fake_dies(d, false);
    fake_hold(fake_stream(runs_on), false);
    for (unsigned i = 0; i < 10; i++)
        fake_client_end(ten[i]);
}

/* Its memory is unpinned at a safe point, and the thread that asked for its end does something else
 * meanwhile. */
Test(admit, nobody_waits_with_a_client_that_leaves, .init = begin, .fini = end)
{
    for (unsigned i = 0; i < 8; i++) {
        struct dev_client *c = fake_client(d, FAKE_SMS, 0);
        (void)queue(c);
        cuda.client_stop(c);
        cuda.client_destroy(c);
    }
    launches_go_on();
    cr_assert_eq(fake_gone(), 0);
    fake_hold(fake_stream(runs_on), false);
    while (fake_gone() < 8)
        sched_yield();
}

/* Before the context is given up: nobody is to lose anything by that, but for the one whose kernel
 * it is. */
Test(admit, a_moment_when_nobody_has_anything_in_flight, .init = begin, .fini = end)
{
    const uint64_t patience = 200 * GM_NS_PER_MS;
    cr_assert_not(fake_freeze(d, NULL, patience));
    cr_assert_eq(cuda.backlog(three), 0, "they go on");
    fake_hold(fake_stream(short_ones), true);
    fake_launch(short_ones, 1, 2);
    cuda.flush(three);
    cr_assert_not(fake_freeze(d, one, patience));
    fake_hold(fake_stream(short_ones), false);
    cr_assert(fake_freeze(d, one, patience));
    cr_assert_geq(cuda.backlog(three), FAKE_DEPTH, "nothing more is read");
    fake_hold(fake_stream(runs_on), false);
}

/* --- a kernel that does not end, of a program that was killed ----------------------------------
 */

static void *stop(void *client)
{
    cuda.client_stop(client);
    atomic_store(&over, true);
    return NULL;
}

static void kill_it(void)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, stop, one), 0);
    pthread_detach(thread);
}

/* So long others are not even held up: the context stays. */
static void it_stays(uint64_t ns)
{
    for (const uint64_t until = gm_now_ns() + ns; gm_now_ns() < until; sched_yield())
        cr_assert_lt(cuda.backlog(three), FAKE_DEPTH);
    fake_hold(fake_stream(runs_on), false);
    while (!atomic_load(&over))
        sched_yield();
}

#define A_WHILE GM_NS_PER_S /* the context would have gone by then */

Test(admit, is_ended_with_the_context_where_nobody_loses_anything, .init = begin,
     .exit_code = FAKE_DEATH, .timeout = 5)
{
    launches_go_on();
    fake_expect_faults(); /* of the one that is gone */
    kill_it();
    for (;;)
        sched_yield();
}

Test(admit, not_where_somebody_has_something_in_flight, .init = begin)
{
    fake_hold(fake_stream(short_ones), true);
    fake_launch(short_ones, 1, 2);
    cuda.flush(three);
    kill_it();
    it_stays(A_WHILE);
    fake_hold(fake_stream(short_ones), false);
}

/* The program counts its arrays, textures and the constants that it has asked for. */
Test(admit, not_where_somebody_would_lose_something, .init = begin)
{
    atomic_store(&fake_session(three)->control->mortal, 1);
    kill_it();
    it_stays(A_WHILE);
}

Test(admit, not_where_code_was_linked_by_the_driver, .init = begin)
{
    fake_bind(three, true);
    kill_it();
    it_stays(A_WHILE);
}

/* It holds up nobody: what a module has to wait for is another order of its client's. */
Test(admit, not_while_somebody_loads_a_module, .init = begin)
{
    fake_order(d);
    kill_it();
    it_stays(A_WHILE);
}

/* Nothing of it is with the driver yet, but the server would take it for lost. */
Test(admit, not_while_a_question_is_being_answered, .init = begin)
{
    atomic_store(&fake_session(three)->streams[0].accepted, 1);
    kill_it();
    it_stays(A_WHILE);
}

/* Whatever its word says: it is the client's to write. */
Test(admit, what_a_client_leaves_behind_is_waited_for, .init = begin, .fini = end)
{
    atomic_store(&fake_slot(runs_on)->completed.value, 1);
    while (!fake_is_quiet(d, FAKE_FIRST)) /* the watch believes it */
        sched_yield();
    fake_drains(runs_on, true);
    fake_wait_until_busy(d, FAKE_FIRST);
    launches_go_on();
    cr_assert_not(fake_is_quiet(d, FAKE_FIRST));
    fake_drains(runs_on, false);
    while (!fake_is_quiet(d, FAKE_FIRST))
        sched_yield();
    fake_hold(fake_stream(runs_on), false);
}

static void *waits_since(void *begun)
{
    const bool is = fake_admit_since(d, *(const uint64_t *)begun, gm_now_ns() + 10 * GM_NS_PER_S);
    atomic_store(&over, is);
    if (is)
        fake_admit_end(d, FAKE_FIRST);
    return NULL;
}

/* What is in flight may take half of the time that somebody has waited. */
Test(admit, who_has_waited_long_waits_for_longer_ones, .init = begin, .fini = end)
{
    pthread_t thread;
    const uint64_t now = gm_now_ns();
    uint64_t begun = now - GM_MIN(now - 1, 20 * GM_NS_PER_S);
    fake_patience_grows(d, 10 * GM_NS_PER_S);
    cr_assert_not(fake_admit_since(d, 0, gm_now_ns() + GM_NS_PER_MS));
    cr_assert_not(fake_is_closed(d, FAKE_FIRST));
    cr_assert_eq(pthread_create(&thread, NULL, waits_since, &begun), 0);
    while (!fake_is_closed(d, FAKE_FIRST))
        sched_yield();
    cr_assert_not(atomic_load(&over));
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert(atomic_load(&over));
}
