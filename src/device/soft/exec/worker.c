/*
 * What a worker thread does. It takes blocks in chunks, because taking them one by one costs cheap
 * kernels more than half of their speed (two threads on one counter, and neighbours in memory on
 * different processors). A chunk is about as many blocks as fit into half of what is left of the
 * grant's time, and never more than a fair part of what is left of the task, so that the workers
 * finish together.
 *
 * Time is charged as processor time where a grant is long enough to pay for the system call that
 * reads that clock. So a client does not pay for the time during which the operating system ran
 * something else.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "device/soft/exec/sched_impl.h"

#define SPIN_NS 20000u /* how long an idle worker looks for work before it sleeps */
/* grants that are expected to be shorter are charged by elapsed time */
#define CPU_CLOCK_NS  100000u
#define TIMERSLACK_NS 1000u
#define KEEP_NS       GM_NS_PER_S /* how long a sleeping worker keeps large scratch memory */

void soft_worker_serve(struct soft_worker *w, const struct soft_account *a)
{
    if (w->last == a->number)
        return;
    soft_scratch_wipe(w);
    soft_registers_clear();
    w->last = a->number;
}

bool soft_worker_overran(const struct soft_worker *w, uint64_t address)
{
    return address < w->stack_low && w->stack_low - address <= DEV_GUARD_STACK_BYTES;
}

int soft_worker_guarded(struct soft_worker *w, void (*fn)(void *), void *arg)
{
    return dev_guard_call(&w->guard, fn, arg);
}

/* How many blocks to take now. */
static uint64_t chunk_size(const struct soft_worker *w, const struct soft_task *t, uint64_t left_ns)
{
    const struct soft_sched *s = w->sched;
    uint64_t taken = atomic_load_explicit(&t->next, memory_order_relaxed);
    uint64_t remaining = taken < t->count ? t->count - taken : 1;
    uint32_t block_ns = soft_task_block_ns(t);
    uint64_t chunk = block_ns ? left_ns / 2 / block_ns : 1;
    chunk = GM_MIN(chunk, remaining / (2 * (uint64_t)s->slots));
    /* A block that waits for a block of its own chunk would wait for ever, so such blocks are taken
     * one by one. If there are more blocks than can be live at once, they can wait for earlier ones
     * at most. A guest takes one first: the blocks may take longer than those of the last launch.
     */
    return t->count <= t->live || (w->guest && taken == 0) ? 1 : GM_MAX(chunk, (uint64_t)1);
}

/* Runs blocks of the task until its time is over or a client more urgent than `priority` waits.
 * False: the task failed. */
static bool grant(struct soft_worker *w, struct soft_task *t, int priority, uint64_t began_ns)
{
    struct soft_sched *s = w->sched;
    struct soft_account *a = t->account;
    uint64_t end_ns = began_ns + (w->guest ? SOFT_GUEST_NS : SOFT_QUANTUM_NS);
    uint64_t now_ns = began_ns;
    bool good = true;

    w->guard.interrupt = &w->interrupt;
    while (good && now_ns < end_ns) {
        uint64_t chunk = chunk_size(w, t, end_ns - now_ns);
        uint64_t first = atomic_fetch_add_explicit(&t->next, chunk, memory_order_relaxed);
        if (first >= t->count)
            break;
        chunk = GM_MIN(chunk, t->count - first);
        atomic_store_explicit(&w->chunk_began_ns, now_ns, memory_order_relaxed);
        good = t->ops->run(t, w, first, chunk);
        uint64_t then_ns = now_ns;
        now_ns = gm_now_ns();
        uint64_t each_ns = GM_MIN((now_ns - then_ns) / chunk, (uint64_t)INT_MAX);
        atomic_store_explicit(&t->block_ns, (uint32_t)each_ns + 1, memory_order_relaxed);
        if (atomic_load_explicit(&s->urgent, memory_order_relaxed) < priority ||
            atomic_load_explicit(&a->urgent, memory_order_relaxed) < t->priority ||
            atomic_load_explicit(&a->stopping, memory_order_relaxed))
            break;
    }
    atomic_store_explicit(&w->chunk_began_ns, 0, memory_order_relaxed);
    return good;
}

/* --- blocks that are set aside; with the lock held -------------------------------------------- */

void soft_worker_set_aside(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns)
{
    struct soft_account *a = w->account;
    w->aside = true;
    w->active = false;
    w->since_ns = now_ns;
    s->active--;
    gm_list_append(&a->aside, &w->place);
    a->set_aside++;
    soft_account_running(a, -1);
    soft_account_list(s, a);
    dev_guard_hold(&w->guard, w->thread);
}

/* Puts the worker back among those that run, with or without a multiprocessor. */
static void aside_leave(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns)
{
    struct soft_account *a = w->account;
    uint64_t away_ns = now_ns - w->since_ns;
    uint64_t began_ns = atomic_load_explicit(&w->chunk_began_ns, memory_order_relaxed);
    w->aside = false;
    atomic_store_explicit(&w->block.in_vain, false, memory_order_relaxed);
    w->since_ns = now_ns;
    w->away_ns += away_ns;
    /* The time while it was set aside does not count for the limit on blocks. If the worker has
     * just finished this block, it resets chunk_began_ns itself. */
    if (began_ns)
        (void)atomic_compare_exchange_strong(&w->chunk_began_ns, &began_ns, began_ns + away_ns);
    gm_list_remove(&w->place);
    a->set_aside--;
    soft_account_running(a, 1);
    a->served_ns = s->given_ns;
    soft_account_list(s, a);
    dev_guard_let_go(&w->guard);
}

void soft_worker_go_on(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns)
{
    w->active = true;
    s->active++;
    aside_leave(s, w, now_ns);
}

void soft_worker_end_block(struct soft_worker *w)
{
    atomic_store_explicit(&w->interrupt, true, memory_order_relaxed);
    dev_guard_let_go(&w->guard); /* its thread may stand still in the guard */
    dev_guard_interrupt(w->thread);
}

/* The worker's multiprocessor has been given away: it waits for another one. False: enough workers
 * wait already. */
static bool wait_as_spare(struct soft_worker *w)
{
    struct soft_sched *s = w->sched;
    if (s->spare >= s->slots)
        return false;
    w->cpu_ns = 0;
    soft_scratch_trim(w); /* the wait may be long */
    gm_list_append(&s->spares, &w->place);
    s->spare++;
    while (!w->active && !s->quit)
        pthread_cond_wait(&s->called, &s->lock);
    if (!w->active) {
        gm_list_remove(&w->place);
        s->spare--;
    }
    return true;
}

int soft_worker_call(struct soft_sched *s)
{
    if (gm_list_empty(&s->spares))
        return s->threads < SOFT_THREADS ? soft_worker_start(s) : -EAGAIN;
    struct soft_worker *w = gm_list_entry(s->spares.next, struct soft_worker, place);
    gm_list_remove(&w->place);
    s->spare--;
    w->active = true;
    s->active++;
    pthread_cond_broadcast(&s->called);
    return 0;
}

/* Runs a grant of the task. The lock is held before and after, but not meanwhile. */
static void serve_one(struct soft_worker *w, struct soft_task *t, uint64_t now_ns)
{
    struct soft_sched *s = w->sched;
    struct soft_account *a = t->account;
    uint64_t expected_ns = soft_task_block_ns(t);

    bool measured = w->cpu_ns != 0 || expected_ns == 0 || expected_ns * t->count > CPU_CLOCK_NS;
    uint64_t cpu_ns = !measured ? 0 : w->cpu_ns ? w->cpu_ns : gm_thread_cpu_ns();

    soft_sched_begin(s, t);
    int priority = a->priority;
    w->account = a;
    a->scratch_bytes += w->scratch_bytes;
    w->task = t;
    w->cpu_began_ns = cpu_ns;
    w->began_ns = w->since_ns = now_ns;
    w->charged_ns = w->away_ns = 0;
    atomic_store_explicit(&w->block.in_vain, false, memory_order_relaxed);
    atomic_store_explicit(&w->block.wanted, NULL, memory_order_relaxed);
    a->served_ns = s->given_ns;
    if (s->block_timeout_ns || (t->live && t->count > 1) ||
        (s->idle == 0 && !gm_list_empty(&s->accounts)))
        soft_supervisor_call(s); /* somebody may be waiting for this grant to end */
    pthread_mutex_unlock(&s->lock);

    bool good = grant(w, t, priority, now_ns);
    uint64_t used_ns = gm_now_ns() - now_ns;
    bool by_clock = measured && used_ns > CPU_CLOCK_NS / 4;
    w->cpu_ns = by_clock ? gm_thread_cpu_ns() : 0;

    pthread_mutex_lock(&s->lock);
    /* It was to be set aside, but the block ended before the interrupt came. */
    if (w->aside)
        aside_leave(s, w, gm_now_ns());
    used_ns = by_clock ? w->cpu_ns - cpu_ns : used_ns - GM_MIN(used_ns, w->away_ns);
    a->scratch_bytes -= w->scratch_bytes;
    w->account = NULL;
    w->task = NULL;
    atomic_store_explicit(&w->interrupt, false, memory_order_relaxed);
    atomic_store_explicit(&w->timed_out, false, memory_order_relaxed);
    used_ns -= GM_MIN(used_ns, w->charged_ns);
    if (soft_sched_end(s, t, used_ns, !good)) {
        bool stays = w->active;
        pthread_mutex_unlock(&s->lock);
        soft_sched_looks_next(stays); /* `done` may submit the next task of its queue */
        t->ops->done(t);
        soft_sched_looks_next(false);
        pthread_mutex_lock(&s->lock);
        soft_sched_retire(s, a);
    }
}

/* Nothing to do: the worker watches the bell for a while, then sleeps. Only one worker at a time
 * watches; more would take processors from the threads that create the work. With the lock held. */
static void rest(struct soft_worker *w, uint64_t now_ns, uint64_t again_ns, bool fresh)
{
    struct soft_sched *s = w->sched;
    uint32_t bell = atomic_load_explicit(&s->bell, memory_order_relaxed);

    w->cpu_ns = 0;
    if (fresh && !s->spinning) {
        uint64_t end_ns = now_ns + SPIN_NS;
        if (again_ns && again_ns < end_ns)
            end_ns = again_ns;
        s->spinning = true;
        pthread_mutex_unlock(&s->lock);
        while (atomic_load_explicit(&s->bell, memory_order_acquire) == bell && gm_now_ns() < end_ns)
            for (int i = 0; i < 16; i++)
                gm_cpu_relax();
        pthread_mutex_lock(&s->lock);
        s->spinning = false;
        return;
    }
    s->idle++;
    bool large = soft_scratch_is_large(w);
    if (large && (!again_ns || again_ns > now_ns + KEEP_NS))
        again_ns = now_ns + KEEP_NS;
    if (again_ns) {
        const struct timespec until = { .tv_sec = (time_t)(again_ns / GM_NS_PER_S),
                                        .tv_nsec = (long)(again_ns % GM_NS_PER_S) };
        if (pthread_cond_timedwait(&s->work, &s->lock, &until) == ETIMEDOUT && large)
            soft_scratch_trim(w);
    } else {
        pthread_cond_wait(&s->work, &s->lock);
    }
    s->idle--;
}

/* The lowest address of this thread's stack. 0: not known. */
static uintptr_t stack_low(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return 0;
    if (pthread_attr_getstack(&attr, &low, &size) != 0)
        low = NULL;
    pthread_attr_destroy(&attr);
    return (uintptr_t)low;
}

/* --- guests ----------------------------------------------------------------------------------- */

struct soft_worker *soft_guest_create(struct soft_sched *s)
{
    struct soft_worker *w = calloc(1, sizeof(*w));
    if (!w || dev_guard_thread_begin() != 0) {
        free(w);
        return NULL;
    }
    w->sched = s;
    w->thread = pthread_self();
    w->stack_low = stack_low();
    w->guest = true;
    pthread_mutex_lock(&s->lock);
    gm_list_append(&s->workers, &w->link);
    pthread_mutex_unlock(&s->lock);
    return w;
}

void soft_guest_destroy(struct soft_worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->sched->lock);
    soft_scratch_free(w);
    gm_list_remove(&w->link);
    pthread_mutex_unlock(&w->sched->lock);
    free(w);
}

bool soft_guest_run(struct soft_worker *w, struct soft_task *t)
{
    struct soft_sched *s = w->sched;
    uint64_t now_ns = gm_now_ns();
    pthread_mutex_lock(&s->lock);
    bool room = soft_sched_has_room(s, t->account, now_ns);
    if (room) {
        soft_task_init(t);
        s->guests++;
        serve_one(w, t, now_ns);
        s->guests--;
        soft_scratch_trim(w);
    }
    pthread_mutex_unlock(&s->lock);
    return room;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *worker_main(void *arg)
{
    struct soft_worker *w = arg;
    struct soft_sched *s = w->sched;
    bool fresh = false; /* whether it has worked since it last slept */

    prctl(PR_SET_NAME, "gmux-worker");
    prctl(PR_SET_TIMERSLACK, TIMERSLACK_NS, 0, 0, 0);
    w->stack_low = stack_low();
    bool ready = dev_guard_thread_begin() == 0;
    pthread_mutex_lock(&s->lock);
    while (ready && !s->quit) {
        if (!w->active) {
            if (!wait_as_spare(w))
                break;
            continue;
        }
        uint64_t now_ns = gm_now_ns();
        struct soft_turn turn = soft_sched_pick(s, now_ns);
        if (turn.task) {
            serve_one(w, turn.task, now_ns);
            fresh = true;
        } else if (turn.worker) {
            w->active = false;
            s->active--;
            soft_worker_go_on(s, turn.worker, now_ns);
            soft_supervisor_call(s); /* other clients may wait while this grant runs */
        } else {
            bool spun = fresh && !s->spinning;
            rest(w, now_ns, turn.again_ns, fresh);
            fresh = fresh && !spun;
        }
    }
    soft_scratch_free(w);
    gm_list_remove(&w->link);
    s->threads--;
    s->active -= w->active;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    free(w);
    return NULL;
}

int soft_worker_start(struct soft_sched *s)
{
    pthread_attr_t attr;
    struct soft_worker *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->sched = s;
    w->active = true;
    int r = pthread_attr_init(&attr);
    if (r != 0) {
        free(w);
        return -r;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, SOFT_STACK_BYTES);
    pthread_attr_setguardsize(&attr, DEV_GUARD_STACK_BYTES);
    r = pthread_create(&w->thread, &attr, worker_main, w);
    pthread_attr_destroy(&attr);
    if (r != 0) {
        free(w);
        return -r;
    }
    gm_list_append(&s->workers, &w->link);
    s->threads++;
    s->active++;
    return 0;
}
