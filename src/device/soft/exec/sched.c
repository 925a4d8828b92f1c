/*
 * The scheduling policy. All of it runs under the scheduler's lock and once per grant, so it may
 * look at every client that has work: a hundred of them cost less than a microsecond per 200.
 *
 * part.c has limits and guarantees.
 *
 * Fairness: virtual time is the worker time that a client has used. A client that is far behind the
 * others, because it paused or because a limit held it back, is moved up to them less a credit of a
 * few milliseconds. So the pause between two kernels does not cost a client its turn, but a long
 * absence is not paid back.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/soft/exec/sched_impl.h"

#define CREDIT_NS 4000000u
/* A client without a guarantee that is owed time gets a grant all the same after this many times
 * SOFT_PATIENCE_NS. */
#define STARVED 10

static _Atomic uint64_t accounts; /* how many were opened so far */

static void set_priority(struct soft_account *a, int priority)
{
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
    a->part = (struct soft_part) { .running = 0 };
    a->group = NULL;
    soft_part_set(s, &a->part, share_pct, 0);
    set_priority(a, priority);
    pthread_mutex_unlock(&s->lock);
}

void soft_account_set(struct soft_sched *s, struct soft_account *a, double share_pct, int priority)
{
    pthread_mutex_lock(&s->lock);
    soft_part_set(s, &a->part, share_pct, a->part.guarantee.rate * 100);
    set_priority(a, priority);
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

/* Puts the task into its account's list, which is sorted by priority; equal priorities keep the
 * order in which they came. */
static void task_list(struct soft_sched *s, struct soft_task *t)
{
    struct soft_account *a = t->account;
    struct gm_list *at = a->tasks.prev;
    while (at != &a->tasks && gm_list_entry(at, struct soft_task, link)->priority > t->priority)
        at = at->prev;
    gm_list_insert(at, &t->link);
    t->listed = true;
    soft_account_list(s, a);
    atomic_store_explicit(&a->urgent,
                          gm_list_entry(a->tasks.next, struct soft_task, link)->priority,
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
    return soft_part_allows(&a->part, now_ns, again_ns) &&
           (!a->group || soft_part_allows(&a->group->part, now_ns, again_ns));
}

bool soft_sched_has_room(struct soft_sched *s, struct soft_account *a, uint64_t now_ns)
{
    uint64_t again_ns = 0;
    return s->guests < s->idle + s->spinning && gm_list_empty(&s->accounts) &&
           !atomic_load_explicit(&a->stopping, memory_order_relaxed) &&
           eligible(a, now_ns, &again_ns);
}

static uint64_t owed_ns(const struct soft_sched *s, struct soft_account *a)
{
    uint64_t own = soft_part_owed_ns(s, &a->part);
    uint64_t common = a->group ? soft_part_owed_ns(s, &a->group->part) : 0;
    return GM_MAX(own, common);
}

static bool has_guarantee(const struct soft_account *a)
{
    return a->part.guarantee.rate > 0 || (a->group && a->group->part.guarantee.rate > 0);
}

/* The account's virtual time, including an estimate for grants that still run. */
static uint64_t standing(struct soft_sched *s, struct soft_account *a)
{
    uint64_t reached = s->virtual_ns[a->priority];
    if (a->virtual_ns + CREDIT_NS < reached)
        a->virtual_ns = reached - CREDIT_NS;
    /* A client does not have to wait later because it used its guarantee. */
    if (has_guarantee(a))
        a->virtual_ns = GM_MIN(a->virtual_ns, reached + CREDIT_NS);
    return a->virtual_ns + (uint64_t)a->part.running * SOFT_QUANTUM_NS;
}

/* A task of which another block should begin: one that wants more live blocks, one that runs
 * together, or (`more`) one that has not begun. NULL: there is none. */
static struct soft_task *untouched(const struct soft_account *a, bool more)
{
    gm_list_for_each (t, &a->tasks, struct soft_task, link)
        if (t->running < t->wanted || (t->running == 0 ? more : t->together))
            return t;
    return NULL;
}

/* Chooses what the account does next. Blocks that are set aside come first, so that there are few
 * of them; but a task that has not begun may be what they wait for. */
static void choose(struct soft_sched *s, struct soft_account *a, struct soft_turn *turn)
{
    turn->worker = NULL;
    turn->task = NULL;
    if (a->set_aside == 0)
        turn->task = gm_list_entry(a->tasks.next, struct soft_task, link);
    else
        turn->task = untouched(a, a->part.running + a->set_aside < s->slots + SOFT_BESIDE);
    if (!turn->task)
        turn->worker = gm_list_entry(a->aside.next, struct soft_worker, place);
}

/* The account has something to begin, and for `times` times SOFT_PATIENCE_NS no worker has been at
 * it. */
static bool is_overdue(const struct soft_sched *s, const struct soft_account *a, unsigned times)
{
    return a->part.running == 0 && a->set_aside == 0 &&
           s->given_ns - a->served_ns > (uint64_t)s->slots * SOFT_PATIENCE_NS * times;
}

/* What accounts are compared by. */
struct rank {
    bool starved;
    uint64_t owed_ns;
    int priority;
    bool overdue;
    uint64_t served_ns;
    uint64_t virtual_ns;
};

static struct rank rank_of(struct soft_sched *s, struct soft_account *a)
{
    return (struct rank) {
        .starved = is_overdue(s, a, STARVED),
        .owed_ns = owed_ns(s, a),
        .priority = a->priority,
        .overdue = is_overdue(s, a, 1),
        .served_ns = a->served_ns,
        .virtual_ns = standing(s, a),
    };
}

static bool goes_before(const struct rank *a, const struct rank *b)
{
    if (a->starved != b->starved)
        return a->starved;
    if (a->owed_ns != b->owed_ns)
        return a->owed_ns > b->owed_ns;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->overdue != b->overdue)
        return a->overdue;
    if (!a->overdue && a->virtual_ns != b->virtual_ns)
        return a->virtual_ns < b->virtual_ns;
    return a->served_ns < b->served_ns;
}

struct soft_turn soft_sched_pick(struct soft_sched *s, uint64_t now_ns)
{
    struct soft_turn best = { .account = NULL };
    struct rank best_rank = { .owed_ns = 0 };
    int urgent = INT_MAX;

    gm_list_for_each (a, &s->accounts, struct soft_account, link) {
        struct rank rank = rank_of(s, a);
        if (!eligible(a, now_ns, &best.again_ns))
            continue;
        urgent = GM_MIN(urgent, a->priority);
        if (best.account && !goes_before(&rank, &best_rank))
            continue;
        best.account = a;
        best_rank = rank;
    }
    atomic_store_explicit(&s->urgent, urgent, memory_order_relaxed);
    if (best.account) {
        uint64_t *reached_ns = &s->virtual_ns[best.account->priority];
        best.overdue = best_rank.overdue;
        best.owed = best_rank.owed_ns > 0;
        if (!best.overdue && !best.owed)
            *reached_ns = GM_MAX(*reached_ns, best.account->virtual_ns);
        choose(s, best.account, &best);
    }
    return best;
}

void soft_sched_begin(struct soft_sched *s, struct soft_task *t)
{
    t->running++;
    soft_account_running(t->account, 1);
    t->account->busy++;
}

void soft_sched_charge(struct soft_sched *s, struct soft_account *a, uint64_t ns)
{
    a->used_ns += ns;
    s->given_ns += ns;
    a->virtual_ns += ns;
    soft_part_charge(s, &a->part, ns);
    if (a->group)
        soft_part_charge(s, &a->group->part, ns);
}

void soft_task_init(struct soft_task *t)
{
    atomic_init(&t->next, 0);
    t->running = t->wanted = 0;
    gm_list_init(&t->link);
}

static void task_submit(struct soft_sched *s, struct soft_task *t)
{
    struct soft_account *a = t->account;
    task_list(s, t);
    if (a->priority < atomic_load_explicit(&s->urgent, memory_order_relaxed))
        atomic_store_explicit(&s->urgent, a->priority, memory_order_relaxed);
    if (s->idle == 0 && !s->spinning)
        soft_supervisor_call(s);
    soft_sched_wake(s, t->count);
}

bool soft_sched_end(struct soft_sched *s, struct soft_task *t, uint64_t ns, bool failed)
{
    struct soft_account *a = t->account;
    soft_account_running(a, -1);
    soft_sched_charge(s, a, ns);
    /* A block has ended, so they do not all wait for others. */
    t->wanted = 0;
    if (failed || atomic_load_explicit(&a->stopping, memory_order_relaxed))
        atomic_store_explicit(&t->next, t->count, memory_order_relaxed);
    if (soft_task_exhausted(t))
        task_unlist(s, t);
    else if (!t->listed)
        task_submit(s, t); /* what a guest has left */
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

bool soft_task_submit(struct soft_sched *s, struct soft_task *t)
{
    soft_task_init(t);
    pthread_mutex_lock(&s->lock);
    bool stopping = atomic_load_explicit(&t->account->stopping, memory_order_relaxed);
    if (!stopping)
        task_submit(s, t);
    pthread_mutex_unlock(&s->lock);
    return !stopping;
}

void soft_account_stop(struct soft_sched *s, struct soft_account *a,
                       void (*give_up)(struct soft_task *t))
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
    if (a->part.running > 0 || a->set_aside > 0)
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
