/*
 * The block scheduler: worker threads, one per multiprocessor, run the blocks of all clients' tasks. A worker asks for
 * a grant (whose task, about 200 us of it) under one lock, then takes blocks by atomic add without it.
 *
 * Who gets the next grant: of the clients that have unstarted blocks and may have another worker, the most urgent
 * client priority, then the client that has had the least time (virtual time). A share below 100 % is a cap on worker
 * time, a token bucket refilled with share x workers; without caps every client that has work gets the same.
 * Priorities take effect at the next block boundary, also against grants that are running.
 *
 * Blocks that run long do not keep others out: when somebody waits and all workers have been in one block for longer
 * than SOFT_LONG_BLOCK_NS, another thread takes the multiprocessor over, and the operating system divides the
 * processors until the long block is done.
 *
 * It knows nothing of kernels: a task is a number of blocks and a function that runs some of them.
 */
#ifndef GMUX_SOFT_EXEC_SCHED_H
#define GMUX_SOFT_EXEC_SCHED_H

#include <stdatomic.h>

#include "base/list.h"

#define SOFT_QUANTUM_NS    200000u
#define SOFT_LONG_BLOCK_NS 20000000u

struct soft_sched;
struct soft_worker;
struct soft_task;

struct soft_task_ops {
    /* Runs blocks [first, first + count) on worker `w`, looking at soft_account.stopping between them. On a worker
     * thread. False: the task has failed, no more blocks are to be run. */
    bool (*run)(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count);
    /* All blocks are done, or given up, and nobody runs one. On a worker thread. `t` may be freed. */
    void (*done)(struct soft_task *t);
    bool limited; /* the time limit on blocks holds for it */
};

struct soft_task {
    const struct soft_task_ops *ops;
    struct soft_account *account;
    uint64_t count;            /* blocks, at least 1 */
    int priority;              /* within the client: lower is more urgent */
    _Atomic uint32_t block_ns; /* what a block is expected to take; 0: unknown. Updated by the worker */
    /* the scheduler's */
    struct gm_list link;
    bool listed;               /* has unstarted blocks */
    uint32_t running;          /* workers in it */
    uint8_t pad[GM_CACHELINE]; /* all workers add to `next` */
    _Atomic uint64_t next;
};

static inline uint32_t soft_task_block_ns(const struct soft_task *t)
{
    return atomic_load_explicit(&t->block_ns, memory_order_relaxed);
}

/* One client's standing with the scheduler; embedded in the client. All under the scheduler's lock, but for the
 * atomics. */
struct soft_account {
    uint64_t number;     /* no other account of this process ever has it */
    struct gm_list link; /* in the scheduler's list while there are tasks */
    struct gm_list tasks;
    double rate; /* worker-seconds per second; only if capped */
    bool capped;
    int priority;      /* lower is more urgent */
    uint32_t most;     /* workers at once */
    uint32_t running;  /* grants */
    uint32_t busy;     /* grants and completions: while it is not 0 the account must live */
    int64_t tokens_ns; /* capped: may run while positive */
    int64_t depth_ns;
    uint64_t refilled_ns;
    uint64_t virtual_ns;
    uint64_t used_ns;   /* worker time in all */
    _Atomic int urgent; /* most urgent task priority with unstarted blocks */
    /* Nothing more is to be run; also makes interrupts (guard.h) effective. */
    _Atomic bool stopping;
};

struct soft_sched_config {
    uint32_t workers;
    uint64_t block_timeout_ns; /* a block that takes longer ends with soft_worker_timed_out(); 0: none */
};

GM_MUST_CHECK int soft_sched_create(struct soft_sched **out, const struct soft_sched_config *config);
/* No account is left. NULL is fine. */
void soft_sched_destroy(struct soft_sched *s);
uint32_t soft_sched_workers(const struct soft_sched *s);

void soft_account_open(struct soft_sched *s, struct soft_account *a, double share_pct, int priority);
/* Live: takes effect with the next grant. */
void soft_account_set(struct soft_sched *s, struct soft_account *a, double share_pct, int priority);
/* No task starts any more and running blocks are interrupted. Tasks that nobody runs are handed back through `give_up`
 * (with the lock held: it must not call the scheduler) and not `done`; the others get their `done` soon. */
void soft_account_stop(struct soft_sched *s, struct soft_account *a, void (*give_up)(struct soft_task *t));
/* Waits until no worker runs anything of a stopped account, nor a `done` of it. */
void soft_account_drain(struct soft_sched *s, struct soft_account *a);
/* Worker time so far. */
uint64_t soft_account_used_ns(struct soft_sched *s, struct soft_account *a);

/* The task stays the caller's, valid until `done`. ops, account, count, priority, block_ns are set. False: the account
 * is stopping, there will be no `done`. Any thread, any locks that `done` does not hold while calling here. */
GM_MUST_CHECK bool soft_task_submit(struct soft_sched *s, struct soft_task *t);

#endif
