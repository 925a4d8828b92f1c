/*
 * The supervisor: one thread that sleeps unless something may be stuck. It ticks while clients wait for workers that
 * are all taken, while a stopped client still has a block running, and, with a time limit on blocks, while anything
 * runs.
 *
 * Long blocks. A block cannot be taken off its worker, but its worker can be written off: another thread takes the
 * multiprocessor over and serves the others, the long block goes on beside it, and the operating system divides the
 * processors. Its client is charged as it goes, so that it does not get the new thread as well.
 */
#include <sys/prctl.h>

#include "base/clock.h"
#include "device/soft/exec/sched_impl.h"

#define TICK_NS       10000000u
#define SPARE_THREADS 64u /* workers written off at most */

void soft_supervisor_call(struct soft_sched *s)
{
    if (!s->supervised)
        pthread_cond_signal(&s->supervise);
    s->supervised = true;
}

/* True while a stopped client keeps a worker. The signal is repeated with every tick: one that comes just before the
 * worker enters its guard is lost. */
static bool interrupt_stopped(struct soft_sched *s)
{
    bool any = false;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        if (w->account && atomic_load_explicit(&w->account->stopping, memory_order_relaxed)) {
            atomic_store_explicit(&w->interrupt, true, memory_order_relaxed);
            dev_guard_interrupt(w->thread);
            any = true;
        }
    }
    return any;
}

static bool end_overdue(struct soft_sched *s, uint64_t now_ns)
{
    bool any = false;
    if (!s->block_timeout_ns)
        return false;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        uint64_t began = atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed);
        any |= w->account != NULL;
        if (w->account && w->task->ops->limited && began && now_ns > began && now_ns - began > s->block_timeout_ns) {
            atomic_store_explicit(&w->timed_out, true, memory_order_relaxed);
            atomic_store_explicit(&w->interrupt, true, memory_order_relaxed);
            dev_guard_interrupt(w->thread);
        }
    }
    return any;
}

/* Charges long blocks while they run. */
static void charge_long(struct soft_sched *s, uint64_t now_ns)
{
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        uint64_t began = atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed);
        clockid_t clock;
        struct timespec ts;
        if (!w->account || !w->cpu_began_ns || !began || now_ns < began + SOFT_LONG_BLOCK_NS ||
            pthread_getcpuclockid(w->thread, &clock) != 0 || clock_gettime(clock, &ts) != 0)
            continue;
        uint64_t used_ns = (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec - w->cpu_began_ns;
        if (used_ns > w->charged_ns)
            soft_sched_charge(s, w->account, used_ns - w->charged_ns);
        w->charged_ns = GM_MAX(w->charged_ns, used_ns);
    }
}

/* Replaces workers that have been in one block for long while somebody waits. True while somebody waits. */
static bool replace_long(struct soft_sched *s, uint64_t now_ns)
{
    uint64_t again_ns;
    if (!soft_sched_pick(s, now_ns, &again_ns))
        return false;
    if (s->idle > 0)
        return true; /* on its way */
    uint32_t lent = s->threads - s->active;
    gm_list_for_each (w, &s->workers, struct soft_worker, link) {
        uint64_t began = atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed);
        if (w->lent || !w->account || !began || now_ns < began + SOFT_LONG_BLOCK_NS || lent >= SPARE_THREADS)
            continue;
        w->lent = true;
        s->active--;
        lent++;
        if (soft_worker_start(s) != 0) {
            w->lent = false;
            s->active++;
        }
        return true; /* one per tick; the list has changed */
    }
    return true;
}

void *soft_supervisor_main(void *arg)
{
    struct soft_sched *s = arg;
    prctl(PR_SET_NAME, "gmux-supervisor");
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        if (!s->supervised) {
            pthread_cond_wait(&s->supervise, &s->lock);
            continue;
        }
        uint64_t now_ns = gm_now_ns();
        bool stopped = interrupt_stopped(s);
        bool overdue = end_overdue(s, now_ns);
        charge_long(s, now_ns);
        s->supervised = replace_long(s, now_ns) || stopped || overdue;
        if (!s->supervised)
            continue;
        now_ns += TICK_NS;
        const struct timespec until = { .tv_sec = (time_t)(now_ns / GM_NS_PER_S),
                                        .tv_nsec = (long)(now_ns % GM_NS_PER_S) };
        pthread_cond_timedwait(&s->supervise, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
