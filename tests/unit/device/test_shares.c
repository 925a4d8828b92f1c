/*
 * Shares, fairness and priority of the block scheduler, measured in worker time on two workers. Other programs may have
 * the processors at the same time, so what nobody used is allowed for below the caps, never above them.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "fake.h"

#define BLOCK_NS 100000u
#define RUN_NS   (1500 * GM_NS_PER_MS)

static struct rig rig;

static void begin(void)
{
    setenv("GMUX_SOFT_WORKERS", "2", 1);
    setenv("GMUX_SOFT_JIT", "0", 1);
    rig_open(&rig, &gmux_device);
}
static void end(void)
{
    rig_close(&rig);
}
TestSuite(shares, .init = begin, .fini = end, .timeout = 60);

static uint64_t used(struct rig_client *c)
{
    return soft_account_used_ns(c->client->dev->sched, &c->client->account);
}

static void flood(struct rig_client *c, uint64_t block_ns)
{
    fake_launch(&rig, c, 0, fake_module(c), FAKE_SPIN, 1u << 30, block_ns, 0);
}

/* Runs floods of the given shares and returns what each got, as a part of two workers' time. */
static void measure(int n, const double share_pct[], uint64_t block_ns, double got[])
{
    uint64_t before[RIG_CLIENTS];
    struct rig_client *c[RIG_CLIENTS];
    for (int i = 0; i < n; i++) {
        c[i] = rig_client_add(&rig, i, share_pct[i], 0, 1, 0);
        flood(c[i], block_ns);
    }
    uint64_t began = gm_now_ns();
    for (int i = 0; i < n; i++)
        before[i] = used(c[i]);
    const struct timespec pause = { .tv_sec = RUN_NS / GM_NS_PER_S, .tv_nsec = RUN_NS % GM_NS_PER_S };
    nanosleep(&pause, NULL); /* the time measured, not a wait for something */
    uint64_t took = gm_now_ns() - began;
    for (int i = 0; i < n; i++)
        got[i] = (double)(used(c[i]) - before[i]) / (2 * (double)took);
    for (int i = 0; i < n; i++)
        cr_log_info("client %d: %.2f %% of the device, asked for %.0f", i, got[i] * 100, share_pct[i]);
}

static void check_caps(int n, const double share_pct[], uint64_t block_ns)
{
    double got[RIG_CLIENTS], sum = 0, asked = 0;
    measure(n, share_pct, block_ns, got);
    for (int i = 0; i < n; i++) {
        sum += got[i];
        asked += share_pct[i] / 100;
    }
    double lost = asked > sum ? asked - sum : 0;
    for (int i = 0; i < n; i++) {
        double share = share_pct[i] / 100;
        cr_assert_lt(got[i], share + 0.005, "client %d: %.4f of %.2f", i, got[i], share);
        cr_assert_gt(got[i], share - 0.005 - lost, "client %d: %.4f of %.2f, lost %.4f", i, got[i], share, lost);
    }
}

Test(shares, three_at_33)
{
    check_caps(3, (const double[]) { 33, 33, 33 }, BLOCK_NS);
}

Test(shares, three_at_33_with_long_blocks)
{
    check_caps(3, (const double[]) { 33, 33, 33 }, 10 * BLOCK_NS);
}

Test(shares, caps_75_25)
{
    check_caps(2, (const double[]) { 75, 25 }, BLOCK_NS);
}

Test(shares, a_cap_holds_alone)
{
    check_caps(1, (const double[]) { 25 }, BLOCK_NS);
}

Test(shares, fair_without_caps)
{
    double got[3];
    measure(3, (const double[]) { 100, 100, 100 }, BLOCK_NS, got);
    double sum = got[0] + got[1] + got[2];
    for (int i = 0; i < 3; i++)
        cr_assert_float_eq(got[i] / sum, 1.0 / 3, 0.005, "client %d: %.4f", i, got[i] / sum);
}

Test(shares, fair_between_short_and_long_blocks)
{
    struct rig_client *a = rig_client_add(&rig, 0, 100, 0, 1, 0), *b = rig_client_add(&rig, 1, 100, 0, 1, 0);
    flood(a, 2000);
    flood(b, 3 * GM_NS_PER_MS);
    const struct timespec pause = { .tv_sec = 1 };
    nanosleep(&pause, NULL);
    double x = (double)used(a), y = (double)used(b);
    cr_assert_float_eq(x / (x + y), 0.5, 0.02, "%.4f", x / (x + y));
}

Test(shares, a_share_changes_live)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 0);
    const struct timespec pause = { .tv_nsec = 500000000 };
    flood(c, BLOCK_NS);
    nanosleep(&pause, NULL);
    rig.ops->client_set_share(c->client, 20, 0, 0);
    uint64_t before = used(c), began = gm_now_ns();
    nanosleep(&pause, NULL);
    double got = (double)(used(c) - before) / (2 * (double)(gm_now_ns() - began));
    cr_assert_lt(got, 0.21, "%.4f", got);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A client below normal priority floods; another one's launches get through at block boundaries. */
Test(shares, priority_gets_through)
{
    enum { ROUNDS = 200 };
    struct rig_client *low = rig_client_add(&rig, 0, 100, 1, 1, 0), *high = rig_client_add(&rig, 1, 100, 0, 1, 0);
    struct dev_module *m = fake_module(high);
    uint64_t took[ROUNDS];
    flood(low, BLOCK_NS);
    for (int i = 0; i < ROUNDS; i++) {
        const struct timespec pause = { .tv_nsec = 1000000 };
        nanosleep(&pause, NULL);
        uint64_t before = gm_now_ns();
        fake_launch(&rig, high, 0, m, FAKE_SPIN, 2, 1000, 0);
        rig_wait(high, 0, 0);
        took[i] = gm_now_ns() - before;
    }
    qsort(took, ROUNDS, sizeof(took[0]), by_value);
    cr_log_info("launch under a flood: p50 %llu us, p99 %llu us", (unsigned long long)took[ROUNDS / 2] / 1000,
                (unsigned long long)took[ROUNDS * 99 / 100] / 1000);
    cr_assert_lt(took[ROUNDS / 2], 5 * BLOCK_NS, "p50 %llu ns", (unsigned long long)took[ROUNDS / 2]);
}

/* Idle workers sleep. */
Test(shares, idle_costs_nothing)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 0);
    struct dev_module *m = fake_module(c);
    fake_launch(&rig, c, 0, m, FAKE_SPIN, 4, 1000, 0);
    rig_wait(c, 0, 0);
    const struct timespec settle = { .tv_nsec = 50000000 }, pause = { .tv_nsec = 500000000 };
    struct timespec a, b;
    nanosleep(&settle, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    int64_t cpu_ns = (b.tv_sec - a.tv_sec) * (int64_t)GM_NS_PER_S + b.tv_nsec - a.tv_nsec;
    cr_assert_lt(cpu_ns, 1000000, "%lld ns of processor time in half a second", (long long)cpu_ns);
}
