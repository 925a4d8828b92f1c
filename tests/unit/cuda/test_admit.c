/* Who waits for a kernel that runs on: clients that call what the driver waits with, and nobody
 * else.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

#include "device/cuda/admit.h"
#include "device/cuda/client.h"
#include "device/cuda/fallback.h"
#include "device/cuda/stream.h"
#include "device/cuda/library.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/memory.h"
#include "device/cuda/module.h"
#include "device/cuda/queue.h"
#include "device/cuda/settle.h"
#include "fake.h"

#define PAGE 4096u

TestSuite(admit, .timeout = 20);

static struct dev *d;
static struct dev_client *one, *two, *three;
static struct dev_queue *runs_on, *short_ones;
static _Atomic bool leaving, over;

static struct dev_queue *queue(struct dev_client *c)
{
    struct dev_queue *q;
    cr_assert_eq(cuda_queue_create(c, 0, 1, 0, 0, &q), 0);
    cuda_stream_place(q);
    return q;
}

/* The kernel of one client runs on; another one wants something; the third launches. */
static void begin(void)
{
    d = fake_device();
    one = fake_client(d, FAKE_SMS, 0);
    two = fake_client(d, FAKE_SMS, 0);
    three = fake_client(d, FAKE_SMS, 0);
    two->leaving = &leaving;
    runs_on = queue(one);
    short_ones = queue(three);
    fake_hold(runs_on->stream, true);
    fake_launch(runs_on, 1, 1);
    cuda_flush(one);
    fake_patience(d, 0, 0, 0);
    while (cuda_is_quiet(d, 1)) /* until the watch has seen it there */
        sched_yield();
    cr_assert(cuda_is_quiet(d, 2), "there is nothing on another GPU");
}

static void launches_go_on(void)
{
    for (uint64_t seq = 1; seq <= 200; seq++) {
        fake_launch(short_ones, seq, 2);
        cuda_flush(three);
        while (atomic_load(&short_ones->slot->completed.value) < seq ||
               cuda_unfinished(three)) /* the watch sees it */
            sched_yield();
    }
}

static void end(void)
{
    fake_client_end(one);
    fake_client_end(two);
    fake_client_end(three);
}

static void *unpin(void *arg)
{
    cuda_memory_unmap(two, two->base + two->half, PAGE);
    atomic_store(&over, true);
    return NULL;
}

Test(admit, a_client_that_unpins_memory_waits, .init = begin, .fini = end)
{
    pthread_t thread;
    fake_map_host(two, two->base + two->half, PAGE);
    cr_assert_eq(pthread_create(&thread, NULL, unpin, NULL), 0);
    launches_go_on();
    cr_assert_not(atomic_load(&over));
    cr_assert_eq(pthread_mutex_trylock(&two->memory_lock), 0, "its own copies go on");
    pthread_mutex_unlock(&two->memory_lock);
    fake_map_host(two, two->base + two->half + PAGE, PAGE); /* more is pinned meanwhile */
    fake_hold(runs_on->stream, false);
    pthread_join(thread, NULL);
    cr_assert_not(cuda_holds(two, two->base + two->half, PAGE));
}

Test(admit, what_is_pinned_goes_with_a_client_that_is_to_be_stopped, .init = begin, .fini = end)
{
    pthread_t thread;
    fake_map_host(two, two->base + two->half, PAGE);
    cr_assert_eq(pthread_create(&thread, NULL, unpin, NULL), 0);
    atomic_store(&leaving, true);
    pthread_join(thread, NULL);
    cr_assert(cuda_holds(two, two->base + two->half, PAGE));
    fake_hold(runs_on->stream, false);
}

Test(admit, a_client_that_gets_a_green_context_waits, .init = begin, .fini = end)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fake_limit, two), 0);
    launches_go_on();
    cr_assert_eq(fake_greens(), 0);
    fake_hold(runs_on->stream, false);
    pthread_join(thread, NULL);
    cr_assert_eq(fake_greens(), 1);
}

Test(admit, a_client_that_is_to_be_stopped_waits_no_longer, .init = begin, .fini = end)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fake_limit, two), 0);
    atomic_store(&leaving, true);
    pthread_join(thread, NULL);
    cr_assert_eq(fake_greens(), 0);
    uint32_t used = 0;
    for (uint32_t i = 0; i < d->gpus[0].groups.count; i++)
        used += d->gpus[0].groups.use[i];
    cr_assert_eq(used, 0, "it has given back what it was to have");
    fake_hold(runs_on->stream, false);
}

/* Nor does it make what it waited for. */
Test(admit, a_client_that_is_to_be_stopped_gets_no_part, .init = begin, .fini = end)
{
    struct tp_part *part = &two->session->parts[1];
    struct dev_queue *q;
    atomic_store(&part->minimum, 8);
    atomic_store(&part->wanted, 15);
    atomic_store(&part->groups[0], 1);
    atomic_store(&two->session->streams[2].part, 1);
    atomic_store(&leaving, true);
    cr_assert_eq(cuda_queue_create(two, 0, 2, 0, 0, &q), 0);
    fake_launch(q, 1, 3);
    cr_assert_eq(fake_greens(), 0);
    fake_hold(runs_on->stream, false);
}

Test(admit, what_is_nobodys_waits_until_then, .init = begin, .fini = end)
{
    cr_assert_not(cuda_admit_wait(d, NULL, 1, gm_now_ns()));
    fake_hold(runs_on->stream, false);
    cr_assert(cuda_admit_wait(d, NULL, 1, UINT64_MAX));
    cuda_admit_end(d, 1);
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
    cuda_call_begin(d, 1, CUDA_GROWS);
    fake_when_asked(
        count); /* a question that was asked before is answered: the watch had the lock */
    launches_go_on();
    cr_assert_eq(by_the_watch, 0);
    (void)cuda_call_end(d, 1, CUDA_SUCCESS);
    while (by_the_watch == 0)
        sched_yield();
    fake_hold(runs_on->stream, false);
}

static void pace(struct dev_queue *q, uint64_t ns)
{
    pthread_mutex_lock(&d->lock);
    q->pace = ns;
    q->since = gm_now_ns();
    pthread_mutex_unlock(&d->lock);
}

/* By its pace, and how much of it there is. */
Test(admit, what_is_likely_to_end_soon_is_waited_for, .init = begin, .fini = end)
{
    fake_patience(d, GM_NS_PER_S, 60 * GM_NS_PER_S, 0);
    pace(runs_on, GM_NS_PER_S / 2);
    cr_assert(cuda_is_quiet(d, 1));
    for (uint64_t seq = 2; seq <= 4; seq++)
        fake_launch(runs_on, seq, 1);
    cuda_flush(one);
    pace(runs_on, GM_NS_PER_S / 2);
    cr_assert_not(cuda_is_quiet(d, 1), "four of them");
    pace(runs_on, GM_NS_PER_S / 100);
    cr_assert(cuda_is_quiet(d, 1));
    fake_hold(runs_on->stream, false);
}

/* Nobody has waited for long. */
Test(admit, a_safe_point_is_given_up_where_it_takes_longer, .init = begin, .fini = end)
{
    fake_patience(d, 20 * GM_NS_PER_MS, 60 * GM_NS_PER_S, 0);
    pace(runs_on, GM_NS_PER_MS);
    const uint64_t begun = gm_now_ns();
    cr_assert_not(cuda_admit_try(d, two, 1));
    cr_assert_geq(gm_now_ns() - begun, 20 * GM_NS_PER_MS);
    launches_go_on();
    fake_hold(runs_on->stream, false);
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
    fake_hold(runs_on->stream, false);
    fake_launch(short_ones, 1, 2);
    cr_assert_not(cuda_admit_try(d, two, 1));
    cuda_flush(three);
    cr_assert(cuda_admit_wait(d, two, 1, UINT64_MAX));
    cr_assert_eq(atomic_load(&short_ones->slot->completed.value), 1);
    cr_assert_eq(pthread_create(&thread, NULL, hand_over, NULL), 0);
    for (const uint64_t until = gm_now_ns() + 20 * GM_NS_PER_MS; gm_now_ns() < until; sched_yield())
        cr_assert_not(atomic_load(&over));
    cuda_admit_end(d, 1);
    pthread_join(thread, NULL);
    cuda_flush(three);
}

/* Programs that begin together load together. */
Test(admit, others_join_a_safe_point, .init = begin, .fini = end)
{
    fake_hold(runs_on->stream, false);
    cr_assert(cuda_admit_wait(d, two, 1, UINT64_MAX));
    cr_assert(cuda_admit_try(d, three, 1));
    cuda_admit_end(d, 1);
    cr_assert_not(cuda_hands_try(one));
    cuda_admit_end(d, 1);
    cr_assert(cuda_hands_try(one));
    cuda_hands_off(one);
}

#define MANY 8u

static _Atomic unsigned admitted;

/* It has what it wants only when all have. */
static void *want(void *arg)
{
    cr_assert(cuda_admit_wait(d, two, 1, UINT64_MAX));
    admitted++;
    while (admitted < MANY)
        sched_yield();
    cuda_admit_end(d, 1);
    return NULL;
}

static unsigned waiting(void)
{
    unsigned n = 0;
    pthread_mutex_lock(&d->lock);
    for (const struct gm_list *l = d->waiting.next; l != &d->waiting; l = l->next)
        n++;
    pthread_mutex_unlock(&d->lock);
    return n;
}

/* However long it takes until nothing runs: who waits by then need not wait for another one. */
Test(admit, all_who_wait_have_the_same_safe_point, .init = begin, .fini = end)
{
    pthread_t threads[MANY];
    fake_patience(d, 15 * GM_NS_PER_S, 60 * GM_NS_PER_S, 0);
    for (unsigned i = 0; i < MANY; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, want, NULL), 0);
    while (waiting() < MANY - 1)
        sched_yield();
    for (const uint64_t until = gm_now_ns() + 20 * GM_NS_PER_MS; gm_now_ns() < until;)
        sched_yield();
    fake_hold(runs_on->stream, false);
    for (unsigned i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    cr_assert(cuda_hands_try(one), "it is over");
    cuda_hands_off(one);
}

/* Each context has its own. */
Test(admit, a_safe_point_holds_up_nobody_in_another_context, .init = begin, .fini = end)
{
    const uint32_t fallback = CUDA_GPU_BIT(&d->fallbacks[0]);
    cr_assert(cuda_admit_try(d, two, fallback), "what runs is in the primary one");
    launches_go_on();
    cr_assert_not(cuda_admit_try(d, two, 1));
    fake_hold(runs_on->stream, false);
    cr_assert(cuda_admit_wait(d, two, 1, UINT64_MAX));
    cr_assert_not(cuda_hands_try(one));
    cuda_admit_end(d, 1);
    cr_assert(cuda_hands_try(one), "the other one is not over");
    cuda_hands_off(one);
    cr_assert_not(cuda_admit_try(d, NULL, UINT32_MAX), "somebody has one of them");
    cuda_admit_end(d, fallback);
    cr_assert(cuda_admit_wait(d, NULL, UINT32_MAX, UINT64_MAX));
    cr_assert_not(cuda_hands_try(one));
    cuda_admit_end(d, UINT32_MAX);
}

/* Its word is the client's to write. */
Test(admit, what_a_client_denies_runs_all_the_same, .init = begin, .fini = end)
{
    atomic_store(&runs_on->slot->completed.value, runs_on->last);
    while (!cuda_is_quiet(d, 1)) /* the watch believes it */
        sched_yield();
    cr_assert_not(cuda_admit_try(d, two, 1));
    cr_assert_not(cuda_admit_try(d, two, 1));
    fake_hold(runs_on->stream, false);
    cr_assert(cuda_admit_wait(d, two, 1, UINT64_MAX));
    cuda_admit_end(d, 1);
}

/* The queue's client writes its word back before the watch has seen it. */
static void deny_that_it_is_done(struct dev_queue *q)
{
    pthread_mutex_lock(&d->lock);
    fake_hold(q->stream, false);
    atomic_store(&q->slot->completed.value, 0);
    pthread_mutex_unlock(&d->lock);
}

Test(admit, what_a_client_denies_is_done_all_the_same, .init = begin, .fini = end)
{
    deny_that_it_is_done(runs_on);
    cr_assert(cuda_admit_wait(d, two, 1, gm_now_ns() + 5 * GM_NS_PER_S));
    cuda_admit_end(d, 1);
    cr_assert_eq(cuda_unfinished(one), 0);
}

/* Whatever else the watch asks about. */
Test(admit, what_is_denied_is_seen_beside_a_kernel_that_runs_on, .init = begin, .fini = end)
{
    fake_hold(short_ones->stream, true);
    fake_launch(short_ones, 1, 2);
    cuda_flush(three);
    deny_that_it_is_done(short_ones);
    for (const uint64_t until = gm_now_ns() + 5 * GM_NS_PER_S; cuda_unfinished(three);
         sched_yield())
        cr_assert_lt(gm_now_ns(), until);
    fake_hold(runs_on->stream, false);
}

/* A context has ended while programs begin: nobody stands in the way of the thread that ends the
 * process.
 */
static void *settle(void *arg)
{
    struct dev_client *c = arg;
    struct cuda_gpu *g = cuda_settle(c, cuda_home(c, 0), false);
    if (g)
        cuda_settled(c, g);
    return g;
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
    atomic_store(&d->dead, true);
    for (unsigned i = 0; i < 10; i++) {
        pthread_join(threads[i], &got);
        cr_assert_null(got);
    }
    cr_assert_lt(gm_now_ns() - begun, 2 * GM_NS_PER_S);
    atomic_store(&d->dead, false);
    fake_hold(runs_on->stream, false);
    for (unsigned i = 0; i < 10; i++)
        fake_client_end(ten[i]);
}

static _Atomic unsigned gone;

static void is_gone(void *arg, struct tp_session *session)
{
    tp_session_detach(session);
    free(session);
    gone++;
}

/* Its memory is unpinned at a safe point, and the thread that asked for its end does something else
 * meanwhile. */
Test(admit, nobody_waits_with_a_client_that_leaves, .init = begin, .fini = end)
{
    d->events.client_gone = is_gone;
    cr_assert_eq(cuda_leave_start(d), 0);
    for (unsigned i = 0; i < 8; i++) {
        struct dev_client *c = fake_client(d, FAKE_SMS, 0);
        (void)queue(c);
        cuda_client_stop(c);
        cuda_client_destroy(c);
    }
    launches_go_on();
    cr_assert_eq(gone, 0);
    fake_hold(runs_on->stream, false);
    while (gone < 8)
        sched_yield();
}

/* Before the context is given up: nobody is to lose anything by that, but for the one whose kernel
 * it is. */
Test(admit, a_moment_when_nobody_has_anything_in_flight, .init = begin, .fini = end)
{
    const uint64_t patience = 200 * GM_NS_PER_MS;
    cr_assert_not(cuda_freeze(d, patience, false));
    cr_assert_eq(cuda_backlog(three), 0, "they go on");
    atomic_store(&one->gone, true);
    fake_hold(short_ones->stream, true);
    fake_launch(short_ones, 1, 2);
    cuda_flush(three);
    cr_assert_not(cuda_freeze(d, patience, false));
    fake_hold(short_ones->stream, false);
    cr_assert(cuda_freeze(d, patience, false));
    cr_assert_geq(cuda_backlog(three), CUDA_DEPTH, "nothing more is read");
    fake_hold(runs_on->stream, false);
}

/* --- a kernel that does not end, of a program that was killed ----------------------------------
 */

static void *stop(void *client)
{
    cuda_client_stop(client);
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
        cr_assert_eq(atomic_load(&d->frozen), 0);
    fake_hold(runs_on->stream, false);
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
    fake_hold(short_ones->stream, true);
    fake_launch(short_ones, 1, 2);
    cuda_flush(three);
    kill_it();
    it_stays(A_WHILE);
    fake_hold(short_ones->stream, false);
}

/* The program counts its arrays, textures and the constants that it has asked for. */
Test(admit, not_where_somebody_would_lose_something, .init = begin)
{
    atomic_store(&three->session->control->mortal, 1);
    kill_it();
    it_stays(A_WHILE);
}

Test(admit, not_where_code_was_linked_by_the_driver, .init = begin)
{
    static struct cuda_library l = { .traits.loses_values = true };
    static struct dev_module m = { .library = &l };
    gm_list_init(&m.link);
    gm_list_append(&three->modules, &m.link);
    kill_it();
    it_stays(A_WHILE);
}

/* It holds up nobody: what a module has to wait for is another order of its client's. */
Test(admit, not_while_somebody_loads_a_module, .init = begin)
{
    atomic_fetch_add(&d->orders, 1);
    kill_it();
    it_stays(A_WHILE);
}

/* Nothing of it is with the driver yet, but the server would take it for lost. */
Test(admit, not_while_a_question_is_being_answered, .init = begin)
{
    atomic_store(&three->session->streams[0].accepted, 1);
    kill_it();
    it_stays(A_WHILE);
}

/* Whatever its word says: it is the client's to write. */
Test(admit, what_a_client_leaves_behind_is_waited_for, .init = begin, .fini = end)
{
    atomic_store(&runs_on->slot->completed.value, runs_on->last);
    while (!cuda_is_quiet(d, 1)) /* the watch believes it */
        sched_yield();
    cuda_drains(runs_on, true);
    while (cuda_is_quiet(d, 1))
        sched_yield();
    launches_go_on();
    cr_assert_not(cuda_is_quiet(d, 1));
    cuda_drains(runs_on, false);
    while (!cuda_is_quiet(d, 1))
        sched_yield();
    fake_hold(runs_on->stream, false);
}
