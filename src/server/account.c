/*
 * Charges go up the chain of accounts. If one account refuses, the accounts below it take the
 * charge back.
 */
#include "server/account.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("account");

void srv_account_init(struct srv_account *a, struct srv_account *parent)
{
    memset(a, 0, sizeof(*a));
    a->parent = parent;
    for (unsigned q = 0; q < SRV_QUANTITIES; q++)
        a->limit[q] = UINT64_MAX;
}

bool srv_account_check_clear(const struct srv_account *a)
{
    bool clear = true;
    for (unsigned q = 0; q < SRV_QUANTITIES; q++)
        if (a->used[q] != 0) {
            gm_error(&topic, "%llu %s still charged at the end", (unsigned long long)a->used[q],
                     srv_quantity_name((enum srv_quantity)q));
            clear = false;
        }
    return clear;
}

/* A limit may have been lowered below what is in use. */
static uint64_t left_here(const struct srv_account *a, enum srv_quantity q)
{
    return a->limit[q] > a->used[q] ? a->limit[q] - a->used[q] : 0;
}

/* The largest x with (used + x) * sharers <= left of the parent - x. */
static uint64_t fair_part(const struct srv_account *a, enum srv_quantity q)
{
    uint64_t sharers, held;
    if (!a->sharers || a->parent->limit[q] == UINT64_MAX || srv_is_device_memory(q))
        return UINT64_MAX;
    uint64_t left = left_here(a->parent, q);
    sharers = GM_MAX(*a->sharers, 1u);
    if (__builtin_mul_overflow(a->used[q], sharers, &held) || held >= left)
        return 0;
    return (left - held) / (sharers + 1);
}

uint64_t srv_account_left(const struct srv_account *a, enum srv_quantity q)
{
    uint64_t left = UINT64_MAX;
    for (; a; a = a->parent) {
        left = GM_MIN(left, left_here(a, q));
        left = GM_MIN(left, fair_part(a, q));
    }
    return left;
}

int srv_charge(struct srv_charge *c, struct srv_account *a, enum srv_quantity q, uint64_t amount)
{
    assert(c->amount == 0);
    if (amount > srv_account_left(a, q))
        return -EDQUOT;
    *c = (struct srv_charge) { a, q, amount };
    for (; a; a = a->parent)
        a->used[q] += amount;
    return 0;
}

void srv_charge_release(struct srv_charge *c)
{
    for (struct srv_account *a = c->account; a; a = a->parent) {
        assert(a->used[c->quantity] >= c->amount);
        a->used[c->quantity] -= c->amount;
    }
    memset(c, 0, sizeof(*c));
}

int srv_charge_resize(struct srv_charge *c, uint64_t amount)
{
    if (amount > c->amount && amount - c->amount > srv_account_left(c->account, c->quantity))
        return -EDQUOT;
    for (struct srv_account *a = c->account; a; a = a->parent)
        /* The difference may wrap when it is negative; the sum is still right. */
        a->used[c->quantity] += amount - c->amount;
    c->amount = amount;
    return 0;
}

void srv_account_move(struct srv_account *a, struct srv_account *parent)
{
    for (unsigned q = 0; q < SRV_QUANTITIES; q++) {
        for (struct srv_account *p = a->parent; p; p = p->parent)
            p->used[q] -= a->used[q];
        for (struct srv_account *p = parent; p; p = p->parent)
            p->used[q] += a->used[q];
    }
    a->parent = parent;
}

const char *srv_quantity_name(enum srv_quantity q)
{
    static const char *const names[SRV_QUANTITIES] = {
        [SRV_DEVICE_BYTES... SRV_DEVICE_BYTES_LAST] = "device_bytes",
        [SRV_HOST_BYTES] = "host_bytes",
        [SRV_ALLOCATIONS] = "allocations",
        [SRV_MAPPINGS] = "mappings",
        [SRV_MODULES] = "modules",
        [SRV_IMAGE_BYTES] = "image_bytes",
        [SRV_IMAGE_FILES] = "image_files",
        [SRV_CONTEXTS] = "contexts",
        [SRV_WINDOW_BYTES] = "window_bytes",
        [SRV_SESSIONS] = "sessions",
        [SRV_LEAVING] = "leaving",
        [SRV_OBJECTS] = "objects",
        [SRV_NAMES] = "names",
        [SRV_IMPORTED_BYTES... SRV_IMPORTED_BYTES_LAST] = "imported_bytes",
    };
    return names[q];
}
