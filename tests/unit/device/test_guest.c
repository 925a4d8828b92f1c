/*
 * Short launches are run by the thread that submits them. It is a client's thread, so what it runs
 * must end with its client, must not be more than was expected, and must count for its share.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "device/guard.h"
#include "fake.h"

#define SHORT_NS 1000u
#define LONG_NS  (10 * GM_NS_PER_MS)
#define TRIES    1000

static struct rig rig;
static struct rig_client *client;
static struct dev_module *module;

static void begin(void)
{
    setenv("GMUX_SOFT_WORKERS", "2", 1);
    setenv("GMUX_SOFT_JIT", "0", 1);
    rig_open(&rig, &gmux_device);
    client = rig_client_add(&rig, 0, 100, 0, 3, 4096);
    module = fake_module(client);
}
static void end(void)
{
    rig_close(&rig);
}
TestSuite(guest, .init = begin, .fini = end, .timeout = 60);

/* The kernel's blocks seem to be short, as if an earlier launch had shown it. */
static void seems_short(uint32_t function)
{
    atomic_store(&module->kernels[function].block_ns, SHORT_NS);
}

static uint64_t launch(int stream, uint32_t function, uint32_t blocks, uint64_t p0)
{
    return fake_launch(&rig, client, stream, module, function, blocks, p0, 0);
}

static bool is_done(int stream)
{
    return rig_completed(client, stream) >= client->seq[stream];
}

/* A worker may just be busy with the end of what came before. */
static bool done_at_return(int stream, uint32_t function, uint32_t blocks, uint64_t p0)
{
    for (int i = 0; i < TRIES; i++) {
        launch(stream, function, blocks, p0);
        if (is_done(stream))
            return true;
        rig_wait(client, stream, 0);
    }
    return false;
}

Test(guest, a_short_launch_is_done_when_it_returns)
{
    cr_assert(done_at_return(0, FAKE_SPIN, 1, SHORT_NS));
    cr_assert(done_at_return(0, FAKE_SPIN, 8, SHORT_NS));
}

Test(guest, all_of_its_blocks_are_run_once)
{
    uint64_t *word = rig_at(client, 0), expected = 0;
    for (int i = 0; i < TRIES; i++) {
        seems_short(FAKE_ADD);
        launch(i % 3, FAKE_ADD, 1 + (uint32_t)i % 20, client->base);
        expected += 1 + (uint32_t)i % 20;
    }
    for (int stream = 0; stream < 3; stream++)
        rig_wait(client, stream, 0);
    cr_assert_eq(*word, expected);
}

Test(guest, a_long_launch_is_not)
{
    cr_assert(done_at_return(0, FAKE_SPIN, 1, SHORT_NS));
    seems_short(FAKE_SPIN);
    launch(0, FAKE_SPIN, 1000, SHORT_NS);
    cr_assert_not(is_done(0));
    rig_wait(client, 0, 0);
}

/* After the first block it is known that they take longer. */
Test(guest, what_takes_longer_than_expected_goes_to_the_workers)
{
    cr_assert(done_at_return(0, FAKE_SPIN, 1, SHORT_NS));
    for (int i = 0; i < 5; i++) {
        seems_short(FAKE_SPIN);
        launch(0, FAKE_SPIN, 12, LONG_NS);
        cr_assert_not(is_done(0));
        rig_wait(client, 0, 0);
    }
}

Test(guest, launches_may_wait_for_what_is_behind_them)
{
    rig.more = true;
    seems_short(FAKE_SPIN);
    launch(0, FAKE_SPIN, 1, SHORT_NS);
    cr_assert_not(is_done(0));
    rig_copy(&rig, client, 0, client->base, client->base + 64, 64);
    launch(0, FAKE_SPIN, 1, SHORT_NS);
    rig.ops->flush(client->client);
    rig_wait(client, 0, 0);
}

/* However many come: they do not wait for a flush. */
Test(guest, a_launch_does_not_wait_long_for_what_is_behind_it)
{
    rig.more = true;
    seems_short(FAKE_SPIN);
    uint64_t first = launch(0, FAKE_SPIN, 1, SHORT_NS);
    for (int i = 0; i < 20; i++)
        launch(0, FAKE_SPIN, 1, SHORT_NS);
    rig_wait(client, 0, first);
}

Test(guest, another_stream_does_not_wait_at_all)
{
    rig.more = true;
    seems_short(FAKE_SPIN);
    launch(0, FAKE_SPIN, 1, SHORT_NS);
    seems_short(FAKE_SPIN);
    launch(1, FAKE_SPIN, 1,
           SHORT_NS); /* whichever is run here, the other one is with the workers */
    rig.ops->flush(client->client);
    rig_wait(client, 0, 0);
    rig_wait(client, 1, 0);
}

Test(guest, what_waits_goes_with_its_client)
{
    rig.more = true;
    seems_short(FAKE_SPIN);
    launch(0, FAKE_SPIN, 1, SHORT_NS);
    launch(0, FAKE_SPIN, 1, SHORT_NS);
    rig_client_remove(&rig, 0);
}

Test(guest, a_fault_is_the_client_s)
{
    seems_short(FAKE_TRAP);
    launch(0, FAKE_TRAP, 1, 0);
    rig_wait(client, 0, 0);
    cr_assert_eq(client->fault, GM_CUDA_LAUNCH_FAILED);
}

/* The worker that looks for work before it sleeps takes one launch; for the other one the second
 * worker is woken, though the first launch never ends by itself. */
Test(guest, two_launches_wake_two_workers)
{
    _Atomic uint64_t *go = rig_at(client, 0);
    for (int i = 0; i < TRIES; i++) {
        atomic_store(go, 1);
        launch(0, FAKE_AWAIT, 1, client->base);
        rig_wait(client, 0, 0);
        atomic_store(go, 0);
        atomic_store(&module->kernels[FAKE_AWAIT].block_ns, UINT32_MAX);
        launch(0, FAKE_AWAIT, 1, client->base);
        atomic_store(&module->kernels[FAKE_SPIN].block_ns, UINT32_MAX);
        launch(1, FAKE_SPIN, 1, SHORT_NS);
        rig_wait(client, 1, 0);
        atomic_store(go, 1);
        rig_wait(client, 0, 0);
    }
}

/* Two workers at 25 %: half of the time of one. */
Test(guest, a_share_holds)
{
    rig.ops->client_set_share(client->client, 25, 0, 0);
    struct soft_sched *s = client->client->dev->sched;
    uint64_t before = soft_account_used_ns(s, &client->client->account), began = gm_now_ns();
    while (gm_now_ns() - began < GM_NS_PER_S) {
        launch(0, FAKE_SPIN, 1, 10 * SHORT_NS);
        rig_wait(client, 0, 0);
    }
    uint64_t used = soft_account_used_ns(s, &client->client->account) - before;
    double share = (double)used / (2 * (double)(gm_now_ns() - began));
    cr_assert_lt(share, 0.26, "%.4f", share);
    cr_assert_gt(share, 0.05, "%.4f", share); /* or nothing was measured */
}

/* --- on a thread like a client's ------------------------------------------------------------- */

static void *launch_endless(void *arg)
{
    seems_short(FAKE_ENDLESS);
    launch(0, FAKE_ENDLESS, 1, client->base);
    return NULL;
}

static void *launch_overrun(void *arg)
{
    seems_short(FAKE_OVERRUN);
    launch(0, FAKE_OVERRUN, 1, 0);
    return NULL;
}

static pthread_t start(void *(*body)(void *))
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setguardsize(&attr, DEV_GUARD_STACK_BYTES);
    cr_assert_eq(pthread_create(&thread, &attr, body, NULL), 0);
    pthread_attr_destroy(&attr);
    return thread;
}

Test(guest, one_that_never_ends_ends_when_its_client_leaves)
{
    _Atomic uint64_t *entered = rig_at(client, 0);
    pthread_t thread = start(launch_endless);
    while (atomic_load(entered) == 0)
        ;
    rig.ops->client_leave(client->client);
    pthread_join(thread, NULL);
    rig_client_remove(&rig, 0);
}

Test(guest, one_that_needs_more_stack_than_there_is_ends)
{
    pthread_join(start(launch_overrun), NULL);
    rig_wait(client, 0, 0);
    cr_assert_eq(client->fault, GM_CUDA_LAUNCH_FAILED);
    cr_assert(strstr(client->fault_text, "stack"), "%s", client->fault_text);
}
