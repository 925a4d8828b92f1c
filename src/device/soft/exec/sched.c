/*
 * The policy. Everything here is under the scheduler's lock and happens once per grant, so that it may look at every
 * client that has work: a hundred of them cost less than a microsecond per 200.
 *
 * Caps. A client that is below 100 % may run while its bucket is positive and is charged after the fact, so the bucket
 * also goes negative and the average is exact whatever the length of blocks. What it could not use it keeps up to the
 * depth (4 ms per worker): enough to catch up after it had to wait for others, too little to be noticed as a burst.
 * A capped client runs on ceil(rate) workers, and on one more while its bucket is more than half full: without that a
 * client at 50 % of two workers could never make up for a pause.
 *
 * Fairness. Virtual time is worker time used. Whoever is far behind the others, because it paused or because a cap held
 * it back, is moved up to them less a credit of a few milliseconds: the pause between two kernels does not cost a
 * client its turn, a long absence is not paid back.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/soft/exec/sched_impl.h"

#define DEPTH_PER_WORKER_NS 4000000
#define CREDIT_NS           4000000u
#define DEBT_MOST_NS        (2000 * (int64_t)GM_NS_PER_MS)

static _Atomic uint64_t accounts; /* opened so far */

static void refill(struct soft_account *a, uint64_t now_ns)
{
    if (now_ns <= a->refilled_ns)
        return;
    double gained = (double)(now_ns - a->refilled_ns) * a->rate;
    a->refilled_ns = now_ns;
    a->tokens_ns = gained >= (double)(a->depth_ns - a->tokens_ns) ? a->depth_ns : a->tokens_ns + (int64_t)gained;
}

static void limits_set(struct soft_sched *s, struct soft_account *a, double share_pct, int priority)
{
    a->capped = share_pct < 100;
    a->rate = share_pct / 100 * s->slots;
    a->depth_ns = (int64_t)s->slots * DEPTH_PER_WORKER_NS;
    a->most = s->slots;
    if (a->capped) {
        a->most = (uint32_t)a->rate;
        if (a->rate - (double)a->most > 1e-9)
            a->most++;
        if (a->most == 0)
            a->most = 1;
    }
    a->priority = priority < 0 ? 0 : GM_MIN(priority, SOFT_PRIORITIES - 1);
}

void soft_account_open(struct soft_sched *s, struct soft_account *a, double share_pct, int priority)
{
    a->number = atomic_fetch_add_explicit(&accounts, 1, memory_order_relaxed) + 1;
    gm_list_init(&a->link);
    gm_list_init(&a->tasks);
    gm_list_init(&a->aside);
    atomic_init(&a->urgent, INT_MAX);
    atomic_init(&a->stopping, false);
    pthread_mutex_lock(&s->lock);
    limits_set(s, a, share_pct, priority);
    a->tokens_ns = SOFT_QUANTUM_NS;
    a->refilled_ns = gm_now_ns();
    pthread_mutex_unlock(&s->lock);
}

void soft_account_set(struct soft_sched *s, struct soft_account *a, double share_pct, int priority)
{
    pthread_mutex_lock(&s->lock);
    refill(a, gm_now_ns());
    bool was_capped = a->capped;
    limits_set(s, a, share_pct, priority);
    if (a->capped && !was_capped)
        a->tokens_ns = SOFT_QUANTUM_NS;
    soft_sched_wake(s, s->slots);
    pthread_mutex_unlock(&s->lock);
}

uint64_t soft_account_used_ns(struct soft_sched *s, struct soft_account *a)
{
    pthread_mutex_lock(&s->lock);
    uint64_t used = a->used_ns;
    pthread_mutex_unlock(&s->lock);
    return used;
}

void soft_account_list(struct soft_sched *s, struct soft_account *a)
{
    bool stopping = atomic_load_explicit(&a->stopping, memory_order_relaxed);
    bool listed = !gm_list_empty(&a->tasks) || (a->set_aside > 0 && !stopping);
    if (listed && !a->listed) {
        gm_list_append(&s->accounts, &a->link);
        a->served_ns = s->given_ns;
    } else if (!listed && a->listed) {
        gm_list_remove(&a->link);
    }
    a->listed = listed;
}

/* The account's task list is sorted by priority, first come first served among equals. */
static void task_list(struct soft_sched *s, struct soft_task *t)
{
    struct soft_account *a = t->account;
    struct gm_list *at = a->tasks.prev;
    while (at != &a->tasks && gm_list_entry(at, struct soft_task, link)->priority > t->priority)
        at = at->prev;
    gm_list_insert(at, &t->link);
    t->listed = true;
    soft_account_list(s, a);
    atomic_store_explicit(&a->urgent, gm_list_entry(a->tasks.next, struct soft_task, link)->priority,
                          memory_order_relaxed);
}

static void task_unlist(struct soft_sched *s, struct soft_task *t)
{
    struct soft_account *a = t->account;
    if (!t->listed)
        return;
    gm_list_remove(&t->link);
    t->listed = false;
    int urgent = INT_MAX;
    soft_account_list(s, a);
    if (!gm_list_empty(&a->tasks))
        urgent = gm_list_entry(a->tasks.next, struct soft_task, link)->priority;
    atomic_store_explicit(&a->urgent, urgent, memory_order_relaxed);
}

/* May the account have one more worker now? */
static bool eligible(struct soft_account *a, uint64_t now_ns, uint64_t *again_ns)
{
    if (!a->capped)
        return a->running < a->most;
    refill(a, now_ns);
    if (a->tokens_ns <= 0) {
        uint64_t wait_ns = (uint64_t)((double)(1 - a->tokens_ns) / a->rate) + 1;
        if (*again_ns == 0 || now_ns + wait_ns < *again_ns)
            *again_ns = now_ns + wait_ns;
        return false;
    }
    return a->running < a->most + (a->tokens_ns > a->depth_ns / 2 ? 1 : 0);
}

/* Where the account stands; grants that are running have not been charged yet. */
static uint64_t standing(struct soft_sched *s, struct soft_account *a)
{
    uint64_t reached = s->virtual_ns[a->priority];
    if (a->virtual_ns + CREDIT_NS < reached)
        a->virtual_ns = reached - CREDIT_NS;
    return a->virtual_ns + (uint64_t)a->running * SOFT_QUANTUM_NS;
}

/* A task that nobody has begun, or one whose begun blocks may wait for the others. */
static struct soft_task *untouched(const struct soft_account *a, bool more)
{
    gm_list_for_each (t, &a->tasks, struct soft_task, link)
        if (t->running == 0 ? more : t->together)
            return t;
    return NULL;
}

/* What the account would do next. What is set aside comes first, so that there is little of that; but a task that nobody
 * has begun may be what those wait for. */
static void choose(struct soft_sched *s, struct soft_account *a, struct soft_turn *turn)
{
    turn->worker = NULL;
    turn->task = NULL;
    if (a->set_aside == 0)
        turn->task = gm_list_entry(a->tasks.next, struct soft_task, link);
    else
        turn->task = untouched(a, a->running + a->set_aside < s->slots + SOFT_BESIDE);
    if (!turn->task)
        turn->worker = gm_list_entry(a->aside.next, struct soft_worker, place);
}

/* Has something to begin, and nobody at it. */
static bool is_overdue(const struct soft_sched *s, const struct soft_account *a)
{
    return a->running == 0 && a->set_aside == 0 && s->given_ns - a->served_ns > (uint64_t)s->slots * SOFT_PATIENCE_NS;
}

struct soft_turn soft_sched_pick(struct soft_sched *s, uint64_t now_ns)
{
    struct soft_turn best = { .account = NULL };
    uint64_t best_ns = 0;

    gm_list_for_each (a, &s->accounts, struct soft_account, link) {
        uint64_t virtual_ns = standing(s, a);
        if (best.account && a->priority > best.account->priority)
            continue;
        if (!eligible(a, now_ns, &best.again_ns))
            continue;
        bool overdue = is_overdue(s, a);
        if (best.account && a->priority == best.account->priority &&
            (overdue != best.overdue ? best.overdue
             : overdue               ? a->served_ns >= best.account->served_ns
                                     : virtual_ns >= best_ns))
            continue;
        best.account = a;
        best.overdue = overdue;
        best_ns = virtual_ns;
    }
    atomic_store_explicit(&s->urgent, best.account ? best.account->priority : INT_MAX, memory_order_relaxed);
    if (best.account) {
        uint64_t *reached_ns = &s->virtual_ns[best.account->priority];
        if (!best.overdue)
            *reached_ns = GM_MAX(*reached_ns, best.account->virtual_ns);
        choose(s, best.account, &best);
    }
    return best;
}

void soft_sched_begin(struct soft_sched *s, struct soft_task *t)
{
    t->running++;
    t->account->running++;
    t->account->busy++;
}

void soft_sched_charge(struct soft_sched *s, struct soft_account *a, uint64_t ns)
{
    a->used_ns += ns;
    s->given_ns += ns;
    a->virtual_ns += ns;
    if (a->capped) {
        a->tokens_ns -= (int64_t)ns;
        a->tokens_ns = GM_MAX(a->tokens_ns, -DEBT_MOST_NS);
        /* With long blocks the bucket must hold a few of them. */
        int64_t few_ns = 2 * (int64_t)GM_MIN(ns, GM_NS_PER_S);
        a->depth_ns = GM_MAX((int64_t)s->slots * DEPTH_PER_WORKER_NS, few_ns);
    }
}

bool soft_sched_end(struct soft_sched *s, struct soft_task *t, uint64_t ns, bool failed)
{
    struct soft_account *a = t->account;
    a->running--;
    soft_sched_charge(s, a, ns);
    if (failed)
        atomic_store_explicit(&t->next, t->count, memory_order_relaxed);
    if (soft_task_exhausted(t))
        task_unlist(s, t);
    if (--t->running == 0 && !t->listed)
        return true;
    soft_sched_retire(s, a);
    return false;
}

void soft_sched_retire(struct soft_sched *s, struct soft_account *a)
{
    if (--a->busy == 0 && atomic_load_explicit(&a->stopping, memory_order_relaxed))
        pthread_cond_broadcast(&s->drained);
}

void soft_sched_wake(struct soft_sched *s, uint64_t count)
{
    atomic_fetch_add_explicit(&s->bell, 1, memory_order_release);
    count -= s->spinning && count > 0;
    if (count >= s->idle)
        pthread_cond_broadcast(&s->work);
    else
        for (; count > 0; count--)
            pthread_cond_signal(&s->work);
}

bool soft_task_submit(struct soft_sched *s, struct soft_task *t)
{
    struct soft_account *a = t->account;
    atomic_init(&t->next, 0);
    t->running = 0;
    gm_list_init(&t->link);

    pthread_mutex_lock(&s->lock);
    if (atomic_load_explicit(&a->stopping, memory_order_relaxed)) {
        pthread_mutex_unlock(&s->lock);
        return false;
    }
    task_list(s, t);
    if (a->priority < atomic_load_explicit(&s->urgent, memory_order_relaxed))
        atomic_store_explicit(&s->urgent, a->priority, memory_order_relaxed);
    soft_sched_wake(s, t->count);
    if (s->idle == 0 && !s->spinning)
        soft_supervisor_call(s);
    pthread_mutex_unlock(&s->lock);
    return true;
}

void soft_account_stop(struct soft_sched *s, struct soft_account *a, void (*give_up)(struct soft_task *t))
{
    pthread_mutex_lock(&s->lock);
    atomic_store_explicit(&a->stopping, true, memory_order_relaxed);
    while (!gm_list_empty(&a->tasks)) {
        struct soft_task *t = gm_list_entry(a->tasks.next, struct soft_task, link);
        atomic_store_explicit(&t->next, t->count, memory_order_relaxed);
        task_unlist(s, t);
        if (t->running == 0)
            give_up(t);
    }
    soft_account_list(s, a);
    if (a->running > 0 || a->set_aside > 0)
        soft_supervisor_call(s);
    pthread_mutex_unlock(&s->lock);
}

void soft_account_drain(struct soft_sched *s, struct soft_account *a)
{
    pthread_mutex_lock(&s->lock);
    while (a->busy > 0)
        pthread_cond_wait(&s->drained, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* --- creation -------------------------------------------------------------------------------------------------- */

static int cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int r = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return r;
}

int soft_sched_create(struct soft_sched **out, const struct soft_sched_config *config)
{
    struct soft_sched *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    if (pthread_mutex_init(&s->lock, NULL) || cond_init(&s->work) || cond_init(&s->drained) ||
        cond_init(&s->supervise) || cond_init(&s->called) || cond_init(&s->ended)) {
        free(s);
        return -ENOMEM;
    }
    gm_list_init(&s->accounts);
    gm_list_init(&s->workers);
    gm_list_init(&s->spares);
    atomic_init(&s->urgent, INT_MAX);
    s->slots = config->workers;
    s->block_timeout_ns = config->block_timeout_ns;

    int r = pthread_create(&s->supervisor, NULL, soft_supervisor_main, s);
    s->supervisor_started = r == 0;
    pthread_mutex_lock(&s->lock);
    while (r == 0 && s->active < s->slots)
        r = -soft_worker_call(s);
    pthread_mutex_unlock(&s->lock);
    if (r != 0) {
        soft_sched_destroy(s);
        return -r;
    }
    *out = s;
    return 0;
}

void soft_sched_destroy(struct soft_sched *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    atomic_fetch_add_explicit(&s->bell, 1, memory_order_release);
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->called);
    pthread_cond_broadcast(&s->supervise);
    while (s->threads > 0)
        pthread_cond_wait(&s->ended, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (s->supervisor_started)
        pthread_join(s->supervisor, NULL);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->drained);
    pthread_cond_destroy(&s->supervise);
    pthread_cond_destroy(&s->called);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

uint32_t soft_sched_workers(const struct soft_sched *s)
{
    return s->slots;
}
