/*
 * Accounts, and the numbers that limits are made of.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "server/account.h"
#include "server/server.h"

Test(account, the_tightest_limit_holds)
{
    struct srv_account top, session, other;
    struct srv_charge a = { 0 }, b = { 0 }, c = { 0 };
    srv_account_init(&top, NULL);
    srv_account_init(&session, &top);
    srv_account_init(&other, &top);
    top.limit[SRV_DEVICE_BYTES] = 100;
    session.limit[SRV_DEVICE_BYTES] = 60;
    cr_assert_eq(srv_account_left(&session, SRV_DEVICE_BYTES), 60);
    cr_assert_eq(srv_charge(&a, &session, SRV_DEVICE_BYTES, 61), -EDQUOT);
    cr_assert_eq(top.used[SRV_DEVICE_BYTES], 0);
    cr_assert_eq(srv_charge(&a, &session, SRV_DEVICE_BYTES, 60), 0);
    cr_assert_eq(srv_charge(&b, &other, SRV_DEVICE_BYTES, 41), -EDQUOT);
    cr_assert_eq(srv_charge(&b, &other, SRV_DEVICE_BYTES, 40), 0);
    cr_assert_eq(srv_charge(&c, &other, SRV_HOST_BYTES, UINT64_MAX), 0, "another quantity");
    session.limit[SRV_DEVICE_BYTES] = 10; /* lowered below what is in use */
    cr_assert_eq(srv_account_left(&session, SRV_DEVICE_BYTES), 0);
    srv_charge_release(&a);
    srv_charge_release(&a);
    cr_assert_eq(session.used[SRV_DEVICE_BYTES], 0);
    cr_assert_eq(top.used[SRV_DEVICE_BYTES], 40);
    srv_charge_release(&b);
    srv_charge_release(&c);
    for (unsigned q = 0; q < SRV_QUANTITIES; q++)
        cr_assert_eq(top.used[q], 0);
}

static const uint8_t uuid[16] = { 0x70, 0xf5, 0x98, 0xbb, 0x82, 0x46, 0x94, 0xc4,
                                  0x2f, 0xd3, 0x67, 0x83, 0x26, 0xb6, 0x3d, 0x17 };

/* Users take one after the other all they can get, one unit at a time or as much as is left at
 * once. */
static void take_all(struct srv_account *a, struct srv_charge *c, bool at_once)
{
    uint64_t got = 0;
    *c = (struct srv_charge) { a, SRV_NAMES, 0 };
    if (at_once)
        got = srv_account_left(a, SRV_NAMES);
    else
        while (srv_charge_resize(c, got + 1) == 0)
            got++;
    cr_assert_eq(srv_charge_resize(c, got), 0);
    cr_assert_eq(srv_charge_resize(c, got + 1), -EDQUOT);
    cr_assert_eq(srv_account_left(a, SRV_NAMES), 0);
}

static void share_out(bool at_once)
{
    struct srv_account top, users[8], sessions[8];
    struct srv_charge charges[8] = { 0 }, more = { 0 };
    unsigned count = 0;
    srv_account_init(&top, NULL);
    top.limit[SRV_NAMES] = 840;
    top.limit[SRV_DEVICE_BYTES] = 840;
    const uint64_t parts[] = { 420, 140, 70, 42, 28, 20, 15 }; /* 1/(n(n+1)) */
    for (unsigned i = 0; i < 7; i++) {
        srv_account_init(&users[i], &top);
        users[i].sharers = &count;
        srv_account_init(&sessions[i], &users[i]);
        count++;
        take_all(&sessions[i], &charges[i], at_once);
        cr_assert_eq(charges[i].amount, parts[i], "user %u has %llu", i,
                     (unsigned long long)charges[i].amount);
    }
    cr_assert_eq(srv_account_left(&users[0], SRV_DEVICE_BYTES), 840,
                 "the device is not shared out");
    cr_assert_eq(srv_account_left(&users[0], SRV_ALLOCATIONS), UINT64_MAX, "nor what has no end");
    for (unsigned i = 1; i < 7; i++)
        srv_charge_release(&charges[i]);
    cr_assert_eq(srv_charge(&more, &users[0], SRV_NAMES, 1), -EDQUOT, "the others are still there");
    count = 1;
    cr_assert_eq(srv_charge(&more, &users[0], SRV_NAMES, 1), -EDQUOT, "a half");
    srv_charge_release(&charges[0]);
    cr_assert_eq(srv_charge(&more, &users[0], SRV_NAMES, 420), 0);
    srv_charge_release(&more);
    cr_assert_eq(top.used[SRV_NAMES], 0);
}

Test(account, users_share)
{
    share_out(false);
    share_out(true);
}

Test(account, a_charge_changes)
{
    struct srv_account top, session;
    srv_account_init(&top, NULL);
    srv_account_init(&session, &top);
    top.limit[SRV_DEVICE_BYTES] = 100;
    struct srv_charge a = { &session, SRV_DEVICE_BYTES, 0 };
    cr_assert_eq(srv_charge_resize(&a, 101), -EDQUOT);
    cr_assert_eq(top.used[SRV_DEVICE_BYTES], 0);
    cr_assert_eq(srv_charge_resize(&a, 70), 0);
    cr_assert_eq(srv_charge_resize(&a, 100), 0);
    cr_assert_eq(top.used[SRV_DEVICE_BYTES], 100);
    top.limit[SRV_DEVICE_BYTES] = 10; /* lowered below what is in use */
    cr_assert_eq(srv_charge_resize(&a, 101), -EDQUOT);
    cr_assert_eq(srv_charge_resize(&a, 40), 0);
    cr_assert_eq(session.used[SRV_DEVICE_BYTES], 40);
    cr_assert_eq(top.used[SRV_DEVICE_BYTES], 40);
    srv_charge_release(&a);
    cr_assert_eq(top.used[SRV_DEVICE_BYTES], 0);
}

Test(limits, memory)
{
    const uint64_t g = 1u << 30;
    cr_assert_eq(srv_limits_memory(NULL, 0, uuid), UINT64_MAX);
    cr_assert_eq(srv_limits_memory("", 0, uuid), UINT64_MAX);
    cr_assert_eq(srv_limits_memory("0=1G", 0, uuid), g);
    cr_assert_eq(srv_limits_memory("0=1G", 1, uuid), UINT64_MAX);
    cr_assert_eq(srv_limits_memory("0=1G,1=512MB", 1, uuid), g / 2);
    cr_assert_eq(srv_limits_memory("0=1G,GPU-70f598bb-8246-94c4-2fd3-678326b63d17=2G", 0, uuid),
                 2 * g);
    cr_assert_eq(srv_limits_memory("GPU-70f598bb-8246-94c4-2fd3-678326b63d17=2G,0=800M", 0, uuid),
                 800u << 20);
    cr_assert_eq(srv_limits_memory("0=abc", 0, uuid), UINT64_MAX, "ignored, as MPS does");
    cr_assert_eq(srv_limits_memory("0=1G,0=abc", 0, uuid), g);
    cr_assert_eq(srv_limits_memory("1G", 0, uuid), UINT64_MAX);
    cr_assert_eq(srv_limits_memory("0=1", 0, uuid), UINT64_MAX, "the suffix is required");
    cr_assert_eq(srv_limits_memory(",,=,0=,=1G,0=3G,", 0, uuid), 3 * g);
}

static uint32_t granted(uint32_t total, uint32_t step, uint32_t shared, double share_pct)
{
    const struct wire_device d = { .multiprocessors = total,
                                   .multiprocessors_step = step,
                                   .multiprocessors_shared = shared };
    return srv_limits_multiprocessors(&d, share_pct);
}

Test(limits, multiprocessors)
{
    cr_assert_eq(granted(132, 2, 132, 100), 132);
    cr_assert_eq(granted(132, 2, 132, 50), 66);
    cr_assert_eq(granted(132, 2, 132, 33), 42, "measured on the real thing");
    cr_assert_eq(granted(132, 2, 132, 0.1), 2);
    cr_assert_eq(granted(2, 1, 2, 100), 2);
    cr_assert_eq(granted(2, 1, 2, 33), 1);
    cr_assert_eq(granted(3, 1, 3, 67), 2);
    cr_assert_eq(granted(100, 2, 100, 33), 32);
    cr_assert_eq(granted(10, 1, 10, 30), 3);
}

Test(limits, multiprocessors_in_larger_steps)
{
    cr_assert_eq(granted(132, 8, 120, 100), 132);
    cr_assert_eq(granted(132, 8, 120, 99), 120,
                 "what no group has is only for those without a limit");
    cr_assert_eq(granted(132, 8, 120, 50), 64);
    cr_assert_eq(granted(132, 8, 120, 33), 40);
    cr_assert_eq(granted(132, 8, 120, 1), 8);
    cr_assert_eq(granted(132, 0, 0, 33), 132,
                 "what the device does not enforce is not said either");
}

Test(limits, uuid_as_people_write_it)
{
    char text[SRV_UUID_TEXT];
    srv_uuid_text(text, uuid);
    cr_assert_str_eq(text, "GPU-70f598bb-8246-94c4-2fd3-678326b63d17");
}
