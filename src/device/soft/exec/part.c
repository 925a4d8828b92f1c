/*
 * Limits and guarantees of clients and of groups of clients, as token buckets. All functions are
 * called with the scheduler's lock held.
 *
 * A limit is charged after the fact, so its bucket also goes negative, and the average is exact
 * whatever the length of blocks. Unused time is kept up to the bucket's depth (4 ms per worker):
 * enough to catch up after waiting for others, too little to be noticed as a burst. A limited
 * client runs on ceil(rate) workers, and on one more while the bucket is more than half full:
 * without that a client with 50 % of two workers could never make up for a pause.
 *
 * The bucket of a guarantee never goes further below zero than its depth: a client that uses what
 * others leave over does not owe that time later. Its clock is the time that the workers have given
 * to all clients, not the wall's: where other programs have the processors, each client still has
 * its part of what is left.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "device/soft/exec/sched_impl.h"

#define DEPTH_PER_WORKER_NS 4000000
#define DEBT_MOST_NS        (2000 * (int64_t)GM_NS_PER_MS)

/* `now_ns`: of the bucket's own clock. */
static void refill(struct soft_bucket *b, uint64_t now_ns)
{
    if (now_ns <= b->refilled_ns)
        return;
    double gained = (double)(now_ns - b->refilled_ns) * b->rate;
    b->refilled_ns = now_ns;
    b->tokens_ns = gained >= (double)(b->depth_ns - b->tokens_ns) ? b->depth_ns
                                                                  : b->tokens_ns + (int64_t)gained;
}

static void set_rate(const struct soft_sched *s, struct soft_bucket *b, double rate,
                     uint64_t now_ns)
{
    if (b->rate > 0)
        refill(b, now_ns);
    else
        b->tokens_ns = SOFT_QUANTUM_NS;
    b->refilled_ns = now_ns;
    b->rate = rate;
    b->depth_ns = (int64_t)s->slots * DEPTH_PER_WORKER_NS;
}

void soft_part_set(const struct soft_sched *s, struct soft_part *p, double share_pct,
                   double guarantee_pct)
{
    bool limited = share_pct > 0 && share_pct < 100;
    set_rate(s, &p->limit, limited ? share_pct / 100 * s->slots : 0, gm_now_ns());
    set_rate(s, &p->guarantee, guarantee_pct / 100, s->given_ns);
    p->most = s->slots;
    if (limited) {
        p->most = (uint32_t)p->limit.rate;
        if (p->limit.rate - (double)p->most > 1e-9)
            p->most++;
        if (p->most == 0)
            p->most = 1;
    }
}

/* Charges `ns` of worker time, which is already part of s->given_ns. */
static void charge(const struct soft_sched *s, struct soft_bucket *b, uint64_t ns, bool may_owe)
{
    if (b->rate <= 0)
        return;
    /* Where blocks are long the bucket must be able to hold a few of them. */
    int64_t few_ns = 2 * (int64_t)GM_MIN(ns, GM_NS_PER_S);
    b->depth_ns = GM_MAX((int64_t)s->slots * DEPTH_PER_WORKER_NS, few_ns);
    b->tokens_ns -= (int64_t)ns;
    b->tokens_ns = GM_MAX(b->tokens_ns, may_owe ? -DEBT_MOST_NS : -b->depth_ns);
}

void soft_part_charge(const struct soft_sched *s, struct soft_part *p, uint64_t ns)
{
    charge(s, &p->limit, ns, true);
    charge(s, &p->guarantee, ns, false);
}

bool soft_part_allows(struct soft_part *p, uint64_t now_ns, uint64_t *again_ns)
{
    struct soft_bucket *b = &p->limit;
    if (b->rate <= 0)
        return p->running < p->most;
    refill(b, now_ns);
    if (b->tokens_ns <= 0) {
        uint64_t wait_ns = (uint64_t)((double)(1 - b->tokens_ns) / b->rate) + 1;
        if (*again_ns == 0 || now_ns + wait_ns < *again_ns)
            *again_ns = now_ns + wait_ns;
        return false;
    }
    return p->running < p->most + (b->tokens_ns > b->depth_ns / 2 ? 1 : 0);
}

uint64_t soft_part_owed_ns(const struct soft_sched *s, struct soft_part *p)
{
    struct soft_bucket *b = &p->guarantee;
    if (b->rate <= 0)
        return 0;
    refill(b, s->given_ns);
    return b->tokens_ns > 0 ? (uint64_t)((double)b->tokens_ns / b->rate) + 1 : 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

static void leave(struct soft_account *a)
{
    struct soft_group *g = a->group;
    if (!g)
        return;
    a->group = NULL;
    g->part.running -= a->part.running;
    if (--g->members > 0)
        return;
    gm_list_remove(&g->link);
    free(g);
}

static struct soft_group *find_group(struct soft_sched *s, uint32_t number)
{
    gm_list_for_each (g, &s->groups, struct soft_group, link)
        if (g->number == number)
            return g;
    struct soft_group *g = calloc(1, sizeof(*g));
    if (g) {
        g->number = number;
        gm_list_append(&s->groups, &g->link);
    }
    return g;
}

static void join(struct soft_account *a, struct soft_group *g)
{
    leave(a);
    a->group = g;
    g->members++;
    g->part.running += a->part.running;
}

void soft_account_set_group(struct soft_sched *s, struct soft_account *a, double guarantee_pct,
                            uint32_t group, double group_share_pct, double group_guarantee_pct)
{
    pthread_mutex_lock(&s->lock);
    set_rate(s, &a->part.guarantee, guarantee_pct / 100, s->given_ns);
    struct soft_group *g = group ? find_group(s, group) : NULL;
    if (g && g != a->group)
        join(a, g);
    else if (!g)
        leave(a);
    if (g)
        soft_part_set(s, &g->part, group_share_pct, group_guarantee_pct);
    soft_sched_wake(s, s->slots);
    pthread_mutex_unlock(&s->lock);
}

void soft_account_close(struct soft_sched *s, struct soft_account *a)
{
    pthread_mutex_lock(&s->lock);
    leave(a);
    pthread_mutex_unlock(&s->lock);
}
