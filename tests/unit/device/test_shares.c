/*
 * Shares, fairness and priority of the block scheduler, measured in worker time on two workers.
 * Other programs may have the processors at the same time, so what nobody used is allowed for below
 * the caps, never above them.
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
    const struct timespec pause = { .tv_sec = RUN_NS / GM_NS_PER_S,
                                    .tv_nsec = RUN_NS % GM_NS_PER_S };
    nanosleep(&pause, NULL); /* the time measured, not a wait for something */
    uint64_t took = gm_now_ns() - began;
    for (int i = 0; i < n; i++)
        got[i] = (double)(used(c[i]) - before[i]) / (2 * (double)took);
    for (int i = 0; i < n; i++)
        cr_log_info("client %d: %.2f %% of the device, asked for %.0f", i, got[i] * 100,
                    share_pct[i]);
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
        cr_assert_gt(got[i], share - 0.005 - lost, "client %d: %.4f of %.2f, lost %.4f", i, got[i],
                     share, lost);
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
    struct rig_client *a = rig_client_add(&rig, 0, 100, 0, 1, 0),
                      *b = rig_client_add(&rig, 1, 100, 0, 1, 0);
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

/* Guarantees: a client that has work has at least so much, and what somebody does not use is
 * others'. */

/* What each of `n` floods gets within a while, as a part of the device. */
static void observe(int n, struct rig_client *const c[], double got[])
{
    uint64_t before[RIG_CLIENTS], began = gm_now_ns(), sum = 0;
    const struct timespec pause = { .tv_nsec = 700000000 };
    for (int i = 0; i < n; i++)
        before[i] = used(c[i]);
    nanosleep(&pause, NULL);
    for (int i = 0; i < n; i++) {
        before[i] = used(c[i]) - before[i];
        sum += before[i];
    }
    for (int i = 0; i < n; i++) {
        /* Other programs may have had the processors: a part of what all clients had together. */
        got[i] = (double)before[i] / (double)sum;
        cr_log_info("client %d: %.2f %%", i, got[i] * 100);
    }
    cr_log_info("%.2f of the device", (double)sum / (2 * (double)(gm_now_ns() - began)));
}

/* Each has `want` of what all have, within two points. A wrong scheduler is wrong in every window;
 * other programs, which take the processor from one worker and not from the other, are not. */
static void expect(int n, struct rig_client *const c[], const double want[])
{
    double got[RIG_CLIENTS];
    bool good = false;
    for (int window = 0; window < 6 && !good; window++) {
        observe(n, c, got);
        good = true;
        for (int i = 0; i < n; i++)
            good = good && got[i] > want[i] - 0.02 && got[i] < want[i] + 0.02;
    }
    for (int i = 0; i < n; i++)
        cr_assert_float_eq(got[i], want[i], 0.02, "client %d: %.4f", i, got[i]);
}

static void guarantee(struct rig_client *c, double pct, uint32_t group, double share_pct,
                      double group_pct)
{
    rig.ops->client_set_group(c->client, pct,
                              &(struct dev_group) { .number = group,
                                                    .share_pct = share_pct,
                                                    .guarantee_pct = group_pct });
}

Test(shares, guarantees_of_60_25_and_15)
{
    static const double asked[] = { 0.6, 0.25, 0.15 };
    struct rig_client *c[3];
    for (int i = 0; i < 3; i++) {
        c[i] = rig_client_add(&rig, i, 100, 0, 1, 0);
        guarantee(c[i], 100 * asked[i], 0, 0, 0);
        flood(c[i], BLOCK_NS);
    }
    expect(3, c, asked);
}

Test(shares, a_guarantee_is_no_limit_and_its_rest_is_shared)
{
    struct rig_client *c[4];
    double got[4];
    for (int i = 0; i < 4; i++)
        c[i] = rig_client_add(&rig, i, 100, 0, 1, 0);
    guarantee(c[0], 40, 0, 0, 0);
    flood(c[0], BLOCK_NS);
    observe(1, c, got);
    cr_assert_gt(used(c[0]), 0u);
    flood(c[1], BLOCK_NS);
    expect(2, c, (double[]) { 0.5, 0.5 }); /* a half is more than it was guaranteed */
    flood(c[2], BLOCK_NS);
    flood(c[3], BLOCK_NS);
    expect(4, c, (double[]) { 0.4, 0.2, 0.2, 0.2 });
    guarantee(c[0], 0, 0, 0, 0);
    expect(4, c, (double[]) { 0.25, 0.25, 0.25, 0.25 }); /* it pays nothing back */
}

Test(shares, a_guarantee_goes_before_priorities)
{
    struct rig_client *c[2] = { rig_client_add(&rig, 0, 100, 0, 1, 0),
                                rig_client_add(&rig, 1, 100, 1, 1, 0) };
    double got[2];
    guarantee(c[1], 30, 0, 0, 0);
    flood(c[0], BLOCK_NS);
    flood(c[1], BLOCK_NS);
    observe(2, c, got);
    cr_assert_gt(got[1], 0.28, "%.4f", got[1]);
    cr_assert_gt(got[0], got[1], "%.4f and %.4f", got[0], got[1]);
}

Test(shares, guarantees_of_everything_let_others_through)
{
    struct rig_client *c[2] = { rig_client_add(&rig, 0, 100, 0, 1, 0),
                                rig_client_add(&rig, 1, 100, 0, 1, 0) };
    double got[2];
    guarantee(c[0], 100, 0, 0, 0);
    flood(c[0], BLOCK_NS);
    flood(c[1], BLOCK_NS);
    observe(2, c, got);
    cr_assert_float_eq(got[0], 1, 0.02, "%.4f", got[0]);
    cr_assert_gt(got[1], 0);
}

Test(shares, a_group_has_its_share_together)
{
    struct rig_client *c[3];
    double got[3];
    int windows = 0;
    uint64_t before, began = gm_now_ns();
    for (int i = 0; i < 3; i++) {
        c[i] = rig_client_add(&rig, i, 100, 0, 1, 0);
        if (i < 2)
            guarantee(c[i], 0, 7, 30, 0);
        flood(c[i], BLOCK_NS);
    }
    do
        observe(3, c, got);
    while (++windows < 6 && (got[0] > got[1] + 0.02 || got[1] > got[0] + 0.02));
    cr_assert_float_eq(got[0], got[1], 0.02, "%.4f and %.4f", got[0], got[1]);
    double device = (double)(used(c[0]) + used(c[1])) / (2 * (double)(gm_now_ns() - began));
    cr_assert_lt(device, 0.305, "%.4f", device);
    guarantee(c[0], 0, 0, 0, 0); /* leaves it: the other one has the 30 % alone */
    before = used(c[1]), began = gm_now_ns();
    observe(3, c, got);
    device = (double)(used(c[1]) - before) / (2 * (double)(gm_now_ns() - began));
    cr_assert_lt(device, 0.305, "%.4f", device);
    cr_assert_gt(got[0], 0.3);
}

Test(shares, a_group_is_guaranteed_its_part_together)
{
    struct rig_client *c[4];
    for (int i = 0; i < 4; i++) {
        c[i] = rig_client_add(&rig, i, 100, 0, 1, 0);
        if (i < 2)
            guarantee(c[i], 0, 7, 0, 80);
        flood(c[i], BLOCK_NS);
    }
    expect(4, c, (double[]) { 0.4, 0.4, 0.1, 0.1 });
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
    struct rig_client *low = rig_client_add(&rig, 0, 100, 1, 1, 0),
                      *high = rig_client_add(&rig, 1, 100, 0, 1, 0);
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
    cr_log_info("launch under a flood: p50 %llu us, p99 %llu us",
                (unsigned long long)took[ROUNDS / 2] / 1000,
                (unsigned long long)took[ROUNDS * 99 / 100] / 1000);
    cr_assert_lt(took[ROUNDS / 2], 5 * BLOCK_NS, "p50 %llu ns",
                 (unsigned long long)took[ROUNDS / 2]);
}

/* Idle workers sleep. */
Test(shares, idle_costs_nothing)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 0);
    struct dev_module *m = fake_module(c);
    fake_launch(&rig, c, 0, m, FAKE_SPIN, 4, 1000, 0);
    rig_wait(c, 0, 0);
    const struct timespec settle = { .tv_nsec = 50000000 }, pause = { .tv_nsec = 500000000 };
    nanosleep(&settle, NULL);
    uint64_t before = fake_process_cpu_ns();
    nanosleep(&pause, NULL);
    uint64_t cpu_ns = fake_process_cpu_ns() - before;
    cr_assert_lt(cpu_ns, 1000000, "%llu ns of processor time in half a second",
                 (unsigned long long)cpu_ns);
}
