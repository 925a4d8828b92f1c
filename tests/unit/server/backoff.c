/* How long users wait over whose images executors died: server/backoff.h says. */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "server/backoff.h"

#define S  GM_NS_PER_S
#define MS GM_NS_PER_MS

enum { BOMBER = 0, OTHER = 1000 };

static struct srv_backoff b;
static uint64_t now = 5 * S;

static uint64_t dies(uint32_t uid, uint64_t outage)
{
    srv_backoff_blame(&b, uid, true, now);
    cr_assert_eq(srv_backoff_until(&b, uid, now), UINT64_MAX);
    now += outage;
    srv_backoff_settle(&b, outage, now);
    uint64_t until = srv_backoff_until(&b, uid, now);
    return until ? until - now : 0;
}

Test(backoff, a_hundred_times_as_long_and_doubled)
{
    cr_assert_eq(srv_backoff_until(&b, BOMBER, now), 0);
    cr_assert_eq(dies(BOMBER, 50 * MS), 5 * S);
    cr_assert_eq(srv_backoff_until(&b, OTHER, now), 0);
    now += 5 * S;
    cr_assert_eq(srv_backoff_until(&b, BOMBER, now), 0);
    cr_assert_eq(dies(BOMBER, 50 * MS), 10 * S);
    now += 10 * S;
    cr_assert_eq(dies(BOMBER, MS), 4 * S); /* at least 10 ms */
    cr_assert_eq(dies(OTHER, 20 * MS), 2 * S);
    for (unsigned i = 0; i < 100; i++)
        now += dies(BOMBER, 3600 * S);
    cr_assert_eq(dies(BOMBER, 10 * MS), 600 * S);
    /* In a day there are some 150 deaths at most. */
    now += 600 * S + 599 * S;
    cr_assert_eq(dies(BOMBER, 10 * MS), 600 * S);
    now += 600 * S + 601 * S;
    cr_assert_eq(dies(BOMBER, 10 * MS), S);
}

Test(backoff, who_may_have_been_innocent_waits_the_second_time)
{
    srv_backoff_blame(&b, OTHER, false, now);
    srv_backoff_settle(&b, 50 * MS, now);
    cr_assert_eq(srv_backoff_until(&b, OTHER, now), 0);
    srv_backoff_blame(&b, OTHER, false, now);
    srv_backoff_blame(&b, OTHER, false, now); /* with two images at once: one death */
    srv_backoff_settle(&b, 50 * MS, now);
    cr_assert_eq(srv_backoff_until(&b, OTHER, now), now + 5 * S);
}

Test(backoff, many_users)
{
    (void)dies(BOMBER, 3600 * S);
    for (uint32_t u = 1; u <= 10 * SRV_OFFENDERS_MAX; u++)
        cr_assert_gt(dies(u, 50 * MS), 0);
    cr_assert_gt(srv_backoff_until(&b, BOMBER, now),
                 now); /* others wait for less, and are forgotten first */
}
