/*
 * Inside of the block scheduler, for sched.c (policy), worker.c (threads) and supervise.c (long blocks).
 */
#ifndef GMUX_SOFT_EXEC_SCHED_IMPL_H
#define GMUX_SOFT_EXEC_SCHED_IMPL_H

#include <pthread.h>

#include "device/soft/exec/worker.h"

#define SOFT_PRIORITIES 4

struct soft_sched {
    pthread_mutex_t lock;
    pthread_cond_t work;      /* idle workers */
    pthread_cond_t drained;   /* soft_account_drain() */
    pthread_cond_t supervise; /* the supervisor */
    struct gm_list accounts;  /* with unstarted blocks */
    struct gm_list workers;
    uint32_t slots;   /* multiprocessors */
    uint32_t active;  /* workers that are not lent */
    uint32_t threads; /* all workers */
    uint32_t idle;    /* asleep */
    bool spinning;    /* one of them looks at `bell` before it sleeps */
    bool quit;
    bool supervised; /* the supervisor ticks */
    bool supervisor_started;
    pthread_t supervisor;
    uint64_t block_timeout_ns;
    /* By client priority: the virtual time that clients with work have reached. */
    uint64_t virtual_ns[SOFT_PRIORITIES];
    _Atomic int urgent;    /* most urgent client priority that could use a worker now */
    _Atomic uint32_t bell; /* changes with every submission */
    pthread_cond_t ended;  /* a worker thread has left */
};

/* The rest is called with the lock held. */

/* Who runs next, charged nothing yet; NULL if nobody may. *again_ns is then when somebody may (0: not known). */
struct soft_task *soft_sched_pick(struct soft_sched *s, uint64_t now_ns, uint64_t *again_ns);
/* A grant of `t` begins, ends after `ns` of worker time. The latter returns true if the task is done: then the caller
 * calls t->ops->done without the lock, takes it again and calls soft_sched_retire(). */
void soft_sched_begin(struct soft_sched *s, struct soft_task *t);
GM_MUST_CHECK bool soft_sched_end(struct soft_sched *s, struct soft_task *t, uint64_t ns, bool failed);
/* Part of a grant that is still running. */
void soft_sched_charge(struct soft_sched *s, struct soft_account *a, uint64_t ns);
void soft_sched_retire(struct soft_sched *s, struct soft_account *a);
/* Wakes up to `count` idle workers. */
void soft_sched_wake(struct soft_sched *s, uint64_t count);

/* The supervisor is needed: somebody waits for workers that are all taken, or a stopped account still runs. */
void soft_supervisor_call(struct soft_sched *s);
void *soft_supervisor_main(void *arg);

static inline bool soft_task_exhausted(const struct soft_task *t)
{
    return atomic_load_explicit(&t->next, memory_order_relaxed) >= t->count;
}

#endif
