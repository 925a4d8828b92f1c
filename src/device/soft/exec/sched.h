/*
 * The block scheduler: worker threads, one per multiprocessor, run the blocks of all clients'
 * tasks. A worker asks for a grant (whose task, about 200 us of it) under one lock, then takes
 * blocks by atomic add without it.
 *
 * Who gets the next grant: of the clients that have unstarted blocks and may have another worker,
 * the most urgent client priority, then the client that has had the least time (virtual time). A
 * share below 100 % is a cap on worker time, a token bucket refilled with share x workers; without
 * caps every client that has work gets the same. Priorities take effect at the next block boundary,
 * also against grants that are running.
 *
 * Blocks that run long do not keep others out: when somebody waits and all workers are taken, a
 * block that has run for SOFT_SLICE_NS is set aside with its thread, which stands still where it
 * is, and another thread takes the multiprocessor. A block that was set aside is taken up when its
 * client is next. Among each other such blocks get turns of SOFT_TURN_NS. A client that has
 * unstarted blocks and has had nothing for SOFT_PATIENCE_NS gets a grant before all others of its
 * priority, so that its wait does not grow with the number of clients. (That is a time of the
 * workers, not of the wall: where other programs have the processors, nobody is late for that.)
 *
 * Blocks that may wait for each other, or for another task's, take turns of SOFT_TOGETHER_NS on the
 * workers that their client has. For as long as none of them ends more begin, up to `live`; those
 * of a task that is to run `together` all begin at once.
 *
 * It knows nothing of kernels: a task is a number of blocks and a function that runs some of them.
 */
#ifndef GMUX_SOFT_EXEC_SCHED_H
#define GMUX_SOFT_EXEC_SCHED_H

#include <stdatomic.h>

#include "base/list.h"

#define SOFT_QUANTUM_NS  200000u
#define SOFT_SLICE_NS    1000000u
#define SOFT_TURN_NS     10000000u
#define SOFT_PATIENCE_NS 3000000u
#define SOFT_TOGETHER_NS 200000u

/* Blocks that a client may have begun, running or set aside, beyond one for each worker: a kernel
 * that waits for another one of its client's streams lets that run. */
#define SOFT_BESIDE 4u
/* Threads in all. Where another one would be needed, the block that has run longest is ended, of
 * the client that has begun most. */
#define SOFT_THREADS 1024u

struct soft_sched;
struct soft_worker;
struct soft_task;

struct soft_task_ops {
    /* Runs blocks [first, first + count) on worker `w`, looking at soft_account.stopping between
     * them. On a worker thread. False: the task has failed, no more blocks are to be run. */
    bool (*run)(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count);
    /* All blocks are done, or given up, and nobody runs one. On a worker thread. `t` may be freed.
     */
    void (*done)(struct soft_task *t);
    bool limited; /* the time limit on blocks holds for it */
};

struct soft_task {
    const struct soft_task_ops *ops;
    struct soft_account *account;
    uint64_t count; /* blocks, at least 1 */
    uint64_t live;  /* so many blocks may be live at once and wait for each other; 0: none waits */
    bool together;  /* they do: all are to begin, and `live` is all of them */
    int priority;   /* within the client: lower is more urgent */
    _Atomic uint32_t
        block_ns; /* what a block is expected to take; 0: unknown. Updated by the worker */
    /* the scheduler's */
    struct gm_list link;
    bool listed;               /* has unstarted blocks */
    uint32_t running;          /* workers in it, also those that are set aside */
    uint32_t wanted;           /* begins another block before one of those goes on, up to so many */
    uint8_t pad[GM_CACHELINE]; /* all workers add to `next` */
    _Atomic uint64_t next;
};

static inline uint32_t soft_task_block_ns(const struct soft_task *t)
{
    return atomic_load_explicit(&t->block_ns, memory_order_relaxed);
}

/* Worker time that comes in at a rate; what is not used is kept up to a depth. */
struct soft_bucket {
    double rate; /* per second of its clock; 0: there is no bucket */
    int64_t tokens_ns, depth_ns;
    uint64_t refilled_ns;
};

/* What a client, or a group of clients together, has of the workers' time. */
struct soft_part {
    struct soft_bucket limit;     /* may run while it is positive */
    struct soft_bucket guarantee; /* goes before others while it is positive */
    uint32_t most;                /* workers at once */
    uint32_t running;             /* grants */
};

struct soft_group {
    struct gm_list link; /* in the scheduler's list */
    uint32_t number;
    uint32_t members;
    struct soft_part part;
};

/* One client's standing with the scheduler; embedded in the client. All under the scheduler's lock,
 * but for the atomics. */
struct soft_account {
    uint64_t number;     /* no other account of this process ever has it */
    struct gm_list link; /* in the scheduler's list while `listed` */
    struct gm_list tasks;
    struct gm_list aside; /* workers in blocks of it that are set aside, the longest first */
    struct soft_part part;
    struct soft_group *group; /* NULL: of none */
    bool listed;              /* has unstarted blocks, or some that are set aside */
    uint32_t set_aside;       /* workers in `aside` */
    uint64_t served_ns;       /* s->given_ns when it began to wait, or last got a grant */
    int priority;             /* lower is more urgent */
    uint32_t busy;            /* grants and completions: while it is not 0 the account must live */
    uint64_t virtual_ns;
    uint64_t used_ns;       /* worker time in all */
    uint64_t scratch_bytes; /* of the workers in its blocks: shared and local memory, registers */
    _Atomic int urgent;     /* most urgent task priority with unstarted blocks */
    /* Nothing more is to be run; also makes interrupts (guard.h) effective. */
    _Atomic bool stopping;
};

struct soft_sched_config {
    uint32_t workers;
    uint64_t
        block_timeout_ns; /* a block that takes longer ends with soft_worker_timed_out(); 0: none */
};

GM_MUST_CHECK int soft_sched_create(struct soft_sched **out,
                                    const struct soft_sched_config *config);
/* No account is left. NULL is fine. */
void soft_sched_destroy(struct soft_sched *s);
uint32_t soft_sched_workers(const struct soft_sched *s);
/* Bounds the memory of all blocks that have begun. Called before the first one begins; 0, the
 * default, is no bound. */
void soft_sched_bound_scratch(struct soft_sched *s, uint64_t bytes);

void soft_account_open(struct soft_sched *s, struct soft_account *a, double share_pct,
                       int priority);
/* Takes effect with the next grant, also while kernels run. */
void soft_account_set(struct soft_sched *s, struct soft_account *a, double share_pct, int priority);
/* Also while kernels run: guarantees the account so much, and puts it into the group of that number
 * (0: into none), whose clients have so much together. If there is no memory for a group it is in
 * none. 0 %: no limit, no guarantee. */
void soft_account_set_group(struct soft_sched *s, struct soft_account *a, double guarantee_pct,
                            uint32_t group, double group_share_pct, double group_guarantee_pct);
/* The account has been drained and is about to be freed. */
void soft_account_close(struct soft_sched *s, struct soft_account *a);
/* No task starts any more and running blocks are interrupted. Tasks that nobody runs are handed
 * back through `give_up` (with the lock held: it must not call the scheduler) and not `done`; the
 * others get their `done` soon. */
void soft_account_stop(struct soft_sched *s, struct soft_account *a,
                       void (*give_up)(struct soft_task *t));
/* Waits until no worker runs anything of a stopped account, nor a `done` of it. */
void soft_account_drain(struct soft_sched *s, struct soft_account *a);
/* Worker time so far. */
uint64_t soft_account_used_ns(struct soft_sched *s, struct soft_account *a);

/* The task stays the caller's, valid until `done`. ops, account, count, priority, block_ns are set.
 * False: the account is stopping, there will be no `done`. Any thread, any locks that `done` does
 * not hold while calling here. */
GM_MUST_CHECK bool soft_task_submit(struct soft_sched *s, struct soft_task *t);

#endif
