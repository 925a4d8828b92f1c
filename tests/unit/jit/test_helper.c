/* A compiler process that crashes, hangs or lies costs its kernel the compiled form, and nobody
 * else anything. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/soft/loader/compiler.h"
#include "device/soft/loader/queue.h"

static struct soft_compiler *compiler;

static void setup(void)
{
    struct soft_compiler_config config = { .cache_dir = "", .timeout_ms = 300, .idle_ms = 50 };
    config.helper = getenv("GMUX_FAKE_HELPER");
    cr_assert_not_null(config.helper);
    cr_assert_eq(soft_compiler_create(&compiler, &config), 0);
}

static void teardown(void)
{
    soft_compiler_destroy(compiler);
}

/* The job fails with that reason. */
static bool fails(const char *entry, const char *reason)
{
    struct soft_job job = { .text = ".version 8.5", .text_size = 12, .entry = entry };
    bool unsupported = false;
    char why[512] = "";
    cr_assert_null(soft_compiler_compile(compiler, &job, &unsupported, why, sizeof(why)));
    cr_assert_not_null(strstr(why, reason), "%s: %s", entry, why);
    return unsupported;
}

TestSuite(helper, .init = setup, .fini = teardown, .timeout = 20);

Test(helper, misdeeds_fail_their_job_only)
{
    static const char *const deeds[][2] = {
        { "crash", "crashed" },
        { "hang", "silent for 3000 ms" },
        { "spin", "more than 300 ms of processor time" },
        { "junk", "" },
        { "nothing", "no proper object" },
        { "short", "" },
        { "leave", "leaves after" },
        { "lines", "two lines" },
    };
    cr_assert(fails("good", "good"));
    for (size_t k = 0; k < GM_ARRAY_LEN(deeds); k++) {
        fails(deeds[k][0], deeds[k][1]);
        cr_assert(fails("good", "good"));
    }
}

/* The time of others is not the job's. */
Test(helper, only_processor_time_counts)
{
    cr_assert(fails("late", "late"));
}

/* What cannot be compiled, or not in that time, is not tried a second time: not by the next process
 * either. */
Test(helper, failures_are_remembered)
{
    char directory[] = "/tmp/gmux-helper-test-XXXXXX", command[64];
    struct soft_compiler_config config = { .timeout_ms = 300,
                                           .helper = getenv("GMUX_FAKE_HELPER") };
    config.cache_dir = mkdtemp(directory);
    cr_assert_not_null(config.cache_dir);
    for (int process = 0; process < 2; process++) {
        soft_compiler_destroy(compiler);
        cr_assert_eq(soft_compiler_create(&compiler, &config), 0);
        cr_assert(fails("count", "asked once"));
        cr_assert(fails("count", "asked once"));
        uint64_t begin = gm_now_ns();
        cr_assert_eq(fails("spin", "300 ms of processor time"), process > 0);
        cr_assert(process == 0 || gm_now_ns() - begin < 200 * GM_NS_PER_MS);
        fails("crash", "crashed"); /* might have been the machine's fault */
    }
    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

struct slow {
    int done;
    char why[64];
};

static void slow_done(void *arg, struct soft_code *code, bool unsupported, const char *reason)
{
    struct slow *s = arg;
    cr_assert_null(code);
    snprintf(s->why, sizeof(s->why), "%s", reason);
    __atomic_fetch_add(&s->done, 1, __ATOMIC_RELEASE);
}

/* Destroying does not wait for the time-out. */
Test(helper, destroy_interrupts_a_compile)
{
    struct soft_compiler_config config = { .cache_dir = "", .timeout_ms = 60000 };
    struct soft_compiler *c;
    struct soft_job job = { .text = "x", .text_size = 1, .entry = "hang" };
    struct slow s = { 0, "" };
    config.helper = getenv("GMUX_FAKE_HELPER");
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    uint64_t begin = gm_now_ns();
    cr_assert_eq(soft_compiler_submit(c, &job, slow_done, &s), 0);
    cr_assert_eq(soft_compiler_submit(c, &job, slow_done, &s), 0);
    soft_compiler_destroy(c);
    cr_assert_lt(gm_now_ns() - begin, 10 * GM_NS_PER_S);
    cr_assert_eq(s.done, 2);
    cr_assert_str_eq(s.why, "cancelled");
}

struct counter {
    int done;
    uint64_t last_ns;
    char why[64];
};

static void counter_done(void *arg, struct soft_code *code, bool unsupported, const char *reason)
{
    struct counter *n = arg;
    cr_assert_null(code);
    snprintf(n->why, sizeof(n->why), "%s", reason);
    n->last_ns = gm_now_ns();
    __atomic_fetch_add(&n->done, 1, __ATOMIC_RELEASE);
}

static void submit(struct soft_compiler *c, const void *owner, const char *entry, struct counter *n)
{
    const struct soft_job job = { .owner = owner, .text = "x", .text_size = 1, .entry = entry };
    cr_assert_eq(soft_compiler_submit(c, &job, counter_done, n), 0);
}

static void until_done(const struct counter *n, int done)
{
    uint64_t deadline = gm_now_ns() + 15 * GM_NS_PER_S;
    while (__atomic_load_n(&n->done, __ATOMIC_ACQUIRE) < done)
        cr_assert_lt(gm_now_ns(), deadline, "%d of %d", n->done, done);
}

/* What one owner has queued delays another one's job by two seconds at most, now and later, and
 * goes with him. */
Test(helper, owners_take_turns)
{
    struct soft_compiler_config config = { .cache_dir = "", .timeout_ms = 60000 };
    struct soft_compiler *c;
    struct counter slow = { 0 }, quick = { 0 };
    config.helper = getenv("GMUX_FAKE_HELPER");
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    for (int i = 0; i < 10; i++)
        submit(c, "slow", "hang", &slow);
    for (int i = 0; i < 3; i++) {
        uint64_t begin = gm_now_ns();
        submit(c, "quick", "good", &quick);
        until_done(&quick, i + 1);
        cr_assert_lt(quick.last_ns - begin, 2 * GM_NS_PER_S, "job %d: %.2f s", i,
                     (double)(quick.last_ns - begin) / 1e9);
    }
    cr_assert_str_eq(quick.why, "good");
    cr_assert_eq(__atomic_load_n(&slow.done, __ATOMIC_ACQUIRE), 0);
    uint64_t begin = gm_now_ns();
    soft_compiler_cancel(c, "slow");
    cr_assert_eq(__atomic_load_n(&slow.done, __ATOMIC_ACQUIRE), 10);
    cr_assert_lt(gm_now_ns() - begin, 3 * GM_NS_PER_S);
    cr_assert_str_eq(slow.why, "cancelled");
    begin = gm_now_ns();
    submit(c, "quick", "good", &quick);
    until_done(&quick, 4);
    cr_assert_lt(quick.last_ns - begin, GM_NS_PER_S / 2);
    soft_compiler_destroy(c);
}

static const char *taken(struct loader_queue *q)
{
    const struct loader_job *j = loader_queue_take(q, false);
    return j ? j->job.entry : "";
}

/* The jobs are one owner's; the compiler takes them up when it is free. */
Test(helper, what_is_launched_most_comes_first)
{
    _Atomic uint32_t launches[3] = { 1, 5, 3 };
    struct loader_job jobs[] = {
        { .job = { .owner = "a", .entry = "first", .launches = &launches[0] } },
        { .job = { .owner = "a", .entry = "second", .launches = &launches[1] } },
        { .job = { .owner = "a", .entry = "third", .launches = &launches[2] } },
        { .job = { .owner = "a", .entry = "not known" } },
        { .job = { .owner = "a", .entry = "nor this" } },
    };
    struct loader_queue q;
    loader_queue_init(&q);
    for (size_t k = 0; k < GM_ARRAY_LEN(jobs); k++) {
        gm_list_init(&jobs[k].link);
        cr_assert_eq(loader_queue_put(&q, &jobs[k]), 0);
    }
    cr_assert_str_eq(taken(&q), "second");
    launches[0] = 4; /* meanwhile */
    cr_assert_str_eq(taken(&q), "first");
    cr_assert_str_eq(taken(&q), "third");
    cr_assert_str_eq(taken(&q), "not known");
    cr_assert_str_eq(taken(&q), "nor this");
    cr_assert_str_eq(taken(&q), "");
    loader_queue_finish(&q);
}

/* Jobs that are too big are refused at once. */
Test(helper, limits)
{
    static char name[SOFT_JOB_NAME_MAX + 1];
    struct soft_job job = { .text = "x", .text_size = 1, .entry = name };
    memset(name, 'k', sizeof(name) - 1);
    cr_assert_lt(soft_compiler_submit(compiler, &job, slow_done, NULL), 0);
    job.entry = "k";
    job.text_size = SOFT_JOB_TEXT_MAX + 1ull;
    cr_assert_lt(soft_compiler_submit(compiler, &job, slow_done, NULL), 0);
}
