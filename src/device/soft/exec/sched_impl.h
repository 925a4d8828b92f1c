/*
 * Inside of the block scheduler, for sched.c (policy), worker.c (what each thread does),
 * supervise.c (long blocks) and pool.c (the threads). Each calls only those before it, and wake.c
 * and part.c.
 */
#ifndef GMUX_SOFT_EXEC_SCHED_IMPL_H
#define GMUX_SOFT_EXEC_SCHED_IMPL_H

#include <pthread.h>

#include "device/soft/exec/worker.h"

#define SOFT_PRIORITIES 4

struct soft_sched {
    pthread_mutex_t lock;
    pthread_cond_t work;     /* idle workers */
    pthread_cond_t drained;  /* soft_account_drain() */
    _Atomic uint32_t call;   /* a futex: the supervisor sleeps there */
    pthread_cond_t called;   /* spare workers */
    struct gm_list accounts; /* the accounts that are listed */
    struct gm_list groups;   /* struct soft_group: those with members */
    struct gm_list workers;
    struct gm_list spares; /* workers without a multiprocessor or a block */
    uint32_t spare;
    uint32_t slots;   /* multiprocessors */
    uint32_t active;  /* workers that have a multiprocessor */
    uint32_t threads; /* all workers */
    uint32_t idle;    /* workers that sleep */
    uint32_t guests;  /* guests that run a task */
    bool spinning; /* an idle worker is looking at `bell` before it sleeps, and has heard nothing */
    bool quit;
    bool supervised; /* the supervisor ticks now */
    bool supervisor_started;
    pthread_t supervisor;
    uint64_t block_timeout_ns;
    uint64_t given_ns;                   /* worker time charged to all */
    uint64_t scratch_bytes, scratch_max; /* of all workers; 0: no bound */
    /* By client priority: the virtual time that clients with work have reached. */
    uint64_t virtual_ns[SOFT_PRIORITIES];
    _Atomic int urgent;    /* most urgent client priority that could use a worker now */
    _Atomic uint32_t bell; /* changes with every submission */
    pthread_cond_t ended;  /* a worker thread has left */
};

/* The functions below are called with the lock held. */

/* What a worker does next: begin a block of a task, or let a worker go on that is set aside. */
struct soft_turn {
    struct soft_account *account; /* NULL: nobody may run */
    struct soft_task *task;
    struct soft_worker *worker;
    bool overdue;      /* the account has waited for SOFT_PATIENCE_NS */
    bool owed;         /* the account has had less than its guarantee */
    uint64_t again_ns; /* if nobody may run: when somebody may (0: not known) */
};

/* Decides who runs next. Charges nothing. */
struct soft_turn soft_sched_pick(struct soft_sched *s, uint64_t now_ns);
/* Sets limit and guarantee of a part. 100 % or 0: no limit; 0: no guarantee. */
void soft_part_set(const struct soft_sched *s, struct soft_part *p, double share_pct,
                   double guarantee_pct);
void soft_part_charge(const struct soft_sched *s, struct soft_part *p, uint64_t ns);
/* True if the part may have one more worker now. If it may later, `again_ns` is brought forward to
 * that time. */
bool soft_part_allows(struct soft_part *p, uint64_t now_ns, uint64_t *again_ns);
/* For how long the part has been owed some of its guarantee, in time that the workers gave to all
 * clients; 0: it is owed nothing. */
uint64_t soft_part_owed_ns(const struct soft_sched *s, struct soft_part *p);

/* Counts grants that run: `change` is +1 or -1. */
static inline void soft_account_running(struct soft_account *a, int change)
{
    a->part.running += (uint32_t)change;
    if (a->group)
        a->group->part.running += (uint32_t)change;
}

/* Puts the account into the scheduler's list if it has work, else takes it out. */
void soft_account_list(struct soft_sched *s, struct soft_account *a);
/* soft_sched_begin(): a grant of `t` begins. soft_sched_end(): it ends after `ns` of worker time;
 * returns true if the task is done, and then the caller calls t->ops->done without the lock, takes
 * the lock again and calls soft_sched_retire(). */
void soft_sched_begin(struct soft_sched *s, struct soft_task *t);
GM_MUST_CHECK bool soft_sched_end(struct soft_sched *s, struct soft_task *t, uint64_t ns,
                                  bool failed);
/* Charges some of the time of a grant that still runs. */
void soft_sched_charge(struct soft_sched *s, struct soft_account *a, uint64_t ns);
void soft_sched_retire(struct soft_sched *s, struct soft_account *a);
/* Whether the account may have another worker, and one has nothing to do. */
bool soft_sched_has_room(struct soft_sched *s, struct soft_account *a, uint64_t now_ns);
void soft_task_init(struct soft_task *t);
/* Wakes up to `count` idle workers. */
void soft_sched_wake(struct soft_sched *s, uint64_t count);
/* Whether the calling thread is a worker that is about to look for work: the next time that it
 * wakes workers, it is one of them itself. Without the lock. */
void soft_sched_looks_next(bool yes);

/* Sets a worker's block aside: its thread stands still and its multiprocessor is free. */
void soft_worker_set_aside(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns);
/* Lets a worker that was set aside go on, on a multiprocessor that the caller has left. */
void soft_worker_go_on(struct soft_sched *s, struct soft_worker *w, uint64_t now_ns);
/* Ends the block that the worker runs. To be repeated until the block has ended: an interrupt that
 * comes just before the worker enters its guard is lost. */
void soft_worker_end_block(struct soft_worker *w);
/* Gets a worker for a free multiprocessor, a spare one or a new one. 0 or -errno. */
GM_MUST_CHECK int soft_worker_call(struct soft_sched *s);

/* soft_scratch_is_large(): the worker has much more scratch memory than most blocks need.
 * soft_scratch_trim() gives back what is beyond that, soft_scratch_free() all. */
bool soft_scratch_is_large(const struct soft_worker *w);
void soft_scratch_trim(struct soft_worker *w);
void soft_scratch_free(struct soft_worker *w);

/* Wakes the supervisor: somebody waits while all workers are taken, or a stopped account still has
 * a block running. */
void soft_supervisor_call(struct soft_sched *s);
void *soft_supervisor_main(void *arg);

static inline bool soft_task_exhausted(const struct soft_task *t)
{
    return atomic_load_explicit(&t->next, memory_order_relaxed) >= t->count;
}

#endif
