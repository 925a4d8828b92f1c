/*
 * The supervisor: one thread that sleeps unless something may be stuck. It ticks while clients wait
 * and all workers are taken, while a stopped client still has a block running, and, with a time
 * limit on blocks, while anything runs.
 *
 * Long blocks. The thread that runs one is stopped where it is (guard.h), which is safe because a
 * block owns nothing that others could wait for. So kernels need not be compiled for it, and no
 * kernel can refuse. The client is charged as its block runs.
 */
#include <sys/prctl.h>

#include "base/futex.h"
#include "base/log.h"
#include "device/soft/exec/sched_impl.h"

#define TICK_NS 1000000u

static struct gm_log_topic topic = GM_LOG_TOPIC("soft");

/* Ends blocks of stopped clients. True while such a client still has a worker. */
static bool end_stopped(struct soft_sched *s)
{
    bool any = false;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        if (w->account && atomic_load_explicit(&w->account->stopping, memory_order_relaxed)) {
            soft_worker_end_block(w);
            any = true;
        }
    }
    return any;
}

static void time_out(struct soft_worker *w)
{
    atomic_store_explicit(&w->timed_out, true, memory_order_relaxed);
    soft_worker_end_block(w);
}

static bool end_overdue(struct soft_sched *s, uint64_t now_ns)
{
    bool any = false;
    if (!s->block_timeout_ns)
        return false;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        uint64_t began = atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed);
        any |= w->account != NULL;
        if (w->account && !w->aside && w->task->ops->limited && began && now_ns > began &&
            now_ns - began > s->block_timeout_ns)
            time_out(w);
    }
    return any;
}

/* Charges what a running grant has used so far. */
static void charge_running(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns)
{
    uint64_t used_ns = now_ns - w->began_ns - w->away_ns;
    clockid_t clock;
    struct timespec ts;
    if (w->cpu_began_ns) {
        if (pthread_getcpuclockid(w->thread, &clock) != 0 || clock_gettime(clock, &ts) != 0)
            return;
        used_ns = (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec - w->cpu_began_ns;
    }
    if (used_ns > w->charged_ns)
        soft_sched_charge(s, w->account, used_ns - w->charged_ns);
    w->charged_ns = GM_MAX(w->charged_ns, used_ns);
}

static void charge_long(struct soft_sched *s, uint64_t now_ns)
{
    gm_list_for_each (w, &s->workers, struct soft_worker, link)
        if (w->account && (w->active || w->guest) && now_ns >= w->since_ns + SOFT_SLICE_NS)
            charge_running(s, w, now_ns);
}

/* The worker whose block gives way to that turn: of the blocks that have run long enough, and whose
 * clients have had more time, the one that has run longest. NULL: there is none. */
static struct soft_worker *find_long(struct soft_sched *s, const struct soft_turn *turn,
                                     uint64_t now_ns)
{
    const struct soft_account *a = turn->account;
    uint64_t least_ns = turn->worker ? SOFT_TURN_NS : SOFT_SLICE_NS;
    struct soft_worker *best = NULL;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        if (!w->account || !w->active || w->account == a ||
            (!turn->owed && w->account->priority < a->priority) ||
            now_ns < w->since_ns + least_ns ||
            atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed) == 0)
            continue;
        if (w->account->priority == a->priority && !turn->overdue && !turn->owed &&
            w->account->virtual_ns <= a->virtual_ns)
            continue;
        if (!best || w->since_ns < best->since_ns)
            best = w;
    }
    return best;
}

/* Called when no further thread can be had for those who wait: ends a block of the client that has
 * begun the most blocks, the one that it began first. */
static void end_one(struct soft_sched *s)
{
    struct soft_worker *worst = NULL;
    uint32_t most = 0;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        uint32_t begun = w->account ? w->account->part.running + w->account->set_aside : 0;
        if (!w->account || !w->task->ops->limited || begun < most)
            continue;
        if (begun > most || w->began_ns < worst->began_ns)
            worst = w;
        most = begun;
    }
    if (!worst)
        return;
    gm_warn(&topic, "%u threads are not enough: a kernel that holds others up is ended",
            s->threads);
    time_out(worst);
}

/* Sets blocks aside that have run for long while somebody waits. True while somebody still
 * waits. */
static bool make_way(struct soft_sched *s, uint64_t now_ns)
{
    struct soft_turn turn = soft_sched_pick(s, now_ns);
    if (!turn.account)
        return false;
    if (s->idle > 0 || s->active < s->slots)
        return true; /* a block is giving way already */
    struct soft_worker *w = find_long(s, &turn, now_ns);
    if (!w)
        return true;
    if (turn.worker) {
        charge_running(s, w, now_ns);
        soft_worker_set_aside(s, w, now_ns);
        soft_worker_go_on(s, turn.worker, now_ns);
    } else if (soft_worker_call(s) == 0) {
        charge_running(s, w, now_ns);
        soft_worker_set_aside(s, w, now_ns);
    } else {
        end_one(s);
    }
    return true;
}

/* The task of which another block is to begin, because a block of `t` may wait for it: a task that
 * has not begun, or `t` itself. NULL: there are as many live blocks as there may be. */
static struct soft_task *to_begin(struct soft_task *t)
{
    const struct soft_account *a = t->account;
    if (a->part.running + a->set_aside < t->live + SOFT_BESIDE)
        gm_list_for_each (fresh, &a->tasks, struct soft_task, link)
            if (fresh->running == 0)
                return fresh;
    return t->running < t->live && !soft_task_exhausted(t) ? t : NULL;
}

/* The block gives its multiprocessor to another block of the same client: to a new one of `begin`,
 * if that is not NULL, else to the one that was set aside first. */
static void pass_on(struct soft_sched *s, struct soft_worker *w, struct soft_task *begin,
                    uint64_t now_ns)
{
    struct soft_account *a = w->account;
    if (begin && soft_worker_call(s) != 0) {
        if (begin->together) {
            end_one(s);
            return;
        }
        begin = NULL;
    }
    if (!begin && a->set_aside == 0)
        return;
    charge_running(s, w, now_ns);
    soft_worker_set_aside(s, w, now_ns);
    if (begin)
        begin->wanted = begin->running + 1;
    else
        soft_worker_go_on(s, gm_list_entry(a->aside.next, struct soft_worker, place), now_ns);
}

/* Whether the block has had its turn and passes its multiprocessor on. One that looks in vain for
 * what another has to do has no use for the rest of its turn. As long as no block of its client is
 * set aside it is not known whether they wait for each other at all: then a block first has to use
 * more time than most blocks need. Time in which the operating system ran something else does not
 * count. */
static bool had_turn(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns)
{
    uint64_t began_ns = atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed);
    if (began_ns && atomic_load_explicit(&w->block.in_vain, memory_order_relaxed))
        return true;
    if (!began_ns || now_ns < GM_MAX(w->since_ns, began_ns) + SOFT_TOGETHER_NS)
        return false;
    if (w->task->together || w->account->set_aside > 0)
        return true;
    if (now_ns < w->began_ns + SOFT_SLICE_NS)
        return false;
    charge_running(s, w, now_ns);
    return w->charged_ns >= SOFT_SLICE_NS;
}

/* Blocks that may wait for each other take turns on their client's workers. Returns how long nobody
 * needs to look again; 0: no client has more of them than workers. */
static uint64_t take_turns(struct soft_sched *s, uint64_t now_ns)
{
    uint64_t next_ns = 0;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        if (!w->account || !w->active || !w->task->live)
            continue;
        struct soft_task *begin = to_begin(w->task);
        bool others = w->account->set_aside > 0;
        atomic_store_explicit(&w->block.wanted, others ? &s->call : NULL, memory_order_relaxed);
        if (!begin && !others)
            continue;
        if (had_turn(s, w, now_ns))
            pass_on(s, w, begin, now_ns);
        if (w->task->together || w->account->set_aside > 0)
            next_ns = SOFT_TOGETHER_NS;
        else if (next_ns == 0)
            next_ns = TICK_NS;
    }
    return next_ns;
}

/* Sleeps until somebody calls, or until then; 0: no matter how long. */
static void rest(struct soft_sched *s, uint32_t heard, uint64_t until_ns)
{
    pthread_mutex_unlock(&s->lock);
    gm_futex_wait(&s->call, heard, until_ns);
    pthread_mutex_lock(&s->lock);
}

void *soft_supervisor_main(void *arg)
{
    struct soft_sched *s = arg;
    prctl(PR_SET_NAME, "gmux-supervisor");
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        uint32_t heard = atomic_load_explicit(&s->call, memory_order_acquire);
        if (!s->supervised) {
            rest(s, heard, 0);
            continue;
        }
        uint64_t now_ns = gm_now_ns();
        bool stopped = end_stopped(s);
        bool overdue = end_overdue(s, now_ns);
        charge_long(s, now_ns);
        uint64_t turns_ns = take_turns(s, now_ns);
        s->supervised = make_way(s, now_ns) || stopped || overdue || turns_ns > 0;
        if (!s->supervised)
            continue;
        now_ns += turns_ns > 0 ? turns_ns : TICK_NS;
        rest(s, heard, now_ns);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
