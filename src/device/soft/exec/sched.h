/*
 * The block scheduler: worker threads, one per multiprocessor, run the blocks of all clients'
 * tasks. A worker asks for a grant (a task, and about 200 us for it) under one lock, then takes
 * blocks by atomic add without the lock.
 *
 * Who gets the next grant: of the clients that have unstarted blocks and may have another worker,
 * first the most urgent client priority, then the client that has had the least time (virtual
 * time). A share below 100 % is a limit on worker time: a token bucket refilled with share x
 * workers. Without limits every client that has work gets the same. Priorities take effect at the
 * next block boundary, also against grants that are running.
 *
 * Long blocks do not keep others out. When somebody waits and all workers are taken, a block that
 * has run for SOFT_SLICE_NS is set aside together with its thread, which stands still where it is,
 * and another thread takes the multiprocessor. A block that was set aside goes on when its client
 * is next. Several such blocks take turns of SOFT_TURN_NS. A client that has unstarted blocks and
 * has had nothing for SOFT_PATIENCE_NS gets a grant before all others of its priority, so that its
 * wait does not grow with the number of clients. (That time is measured in what the workers gave,
 * not by the wall: where other programs have the processors, a wait for them does not count.)
 *
 * Blocks that may wait for each other, or for blocks of another task, take turns of
 * SOFT_TOGETHER_NS on their client's workers; one that looks in vain for what another has to do
 * passes its turn on at once. As long as none of them ends, more of them begin, up to `live`; the
 * blocks of a task that runs `together` all begin at once.
 *
 * A task that is expected to be short may be run by a thread that is no worker, a guest, while a
 * worker has nothing to do. It costs its client the same.
 *
 * The scheduler knows nothing of kernels: a task is a number of blocks and a function that runs
 * some of them.
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
/* A task that is expected to take no longer is run by the thread that has it, where nobody waits
 * for a worker: to wake one takes as long. */
#define SOFT_GUEST_NS 20000u

/* How many blocks a client may have begun, running or set aside, beyond one for each worker: so a
 * kernel that waits for another stream of its client lets that stream run. */
#define SOFT_BESIDE 4u
/* The most worker threads. Where one more would be needed, a block is ended: of the client that has
 * begun the most blocks the one that it began first. */
#define SOFT_THREADS 1024u

struct soft_sched;
struct soft_worker;
struct soft_task;

struct soft_task_ops {
    /* Runs blocks [first, first + count) on worker `w`, and looks at soft_account.stopping between
     * them. On a worker thread. False: the task has failed, and no more of its blocks are run. */
    bool (*run)(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count);
    /* All blocks are done or given up, and no worker runs one. On a worker thread. May free `t`. */
    void (*done)(struct soft_task *t);
    bool limited; /* the time limit on blocks applies to it */
};

struct soft_task {
    const struct soft_task_ops *ops;
    struct soft_account *account;
    uint64_t count; /* blocks, at least 1 */
    /* how many blocks may be live at once because they wait for each other; 0: no block waits */
    uint64_t live;
    bool together; /* its blocks wait for each other, so all must begin; `live` is their number */
    int priority;  /* within the client: lower is more urgent */
    /* Expected time of a block; 0: unknown. Updated by the worker. */
    _Atomic uint32_t block_ns;
    /* the rest belongs to the scheduler */
    struct gm_list link;
    bool listed;      /* has unstarted blocks */
    uint32_t running; /* workers that run it, including those whose block is set aside */
    /* while fewer workers than that run it, a block begins before one that is set aside goes on */
    uint32_t wanted;
    /* keeps `next`, which all workers add to, on a cache line of its own */
    uint8_t pad[GM_CACHELINE];
    _Atomic uint64_t next;
};

static inline uint32_t soft_task_block_ns(const struct soft_task *t)
{
    return atomic_load_explicit(&t->block_ns, memory_order_relaxed);
}

/* Worker time that comes in at a rate; unused time is kept up to a depth. */
struct soft_bucket {
    double rate; /* per second of its clock; 0: there is no bucket */
    int64_t tokens_ns, depth_ns;
    uint64_t refilled_ns;
};

/* The limit and guarantee of a client, or of a group of clients together. */
struct soft_part {
    struct soft_bucket limit;     /* the client may run while it is positive */
    struct soft_bucket guarantee; /* the client goes before others while it is positive */
    uint32_t most;                /* the most workers at once */
    uint32_t running;             /* grants that run now */
};

struct soft_group {
    struct gm_list link; /* in the scheduler's list */
    uint32_t number;
    uint32_t members;
    struct soft_part part;
};

/* What the scheduler knows of one client; embedded in the client. Everything is under the
 * scheduler's lock, except for the atomics. */
struct soft_account {
    uint64_t number;     /* unique in this process, never used again */
    struct gm_list link; /* in the scheduler's list while `listed` */
    struct gm_list tasks;
    struct gm_list aside; /* workers whose block of this client is set aside, the longest first */
    struct soft_part part;
    struct soft_group *group; /* NULL: in no group */
    bool listed;              /* has unstarted blocks, or blocks that are set aside */
    uint32_t set_aside;       /* workers in `aside` */
    uint64_t served_ns;       /* s->given_ns when it began to wait, or last got a grant */
    int priority;             /* lower is more urgent */
    /* grants that run and `done` calls in progress: the account must live until it is 0 */
    uint32_t busy;
    uint64_t virtual_ns;
    uint64_t used_ns; /* worker time in all */
    /* scratch memory of the workers in its blocks: shared and local memory, registers */
    uint64_t scratch_bytes;
    _Atomic int urgent; /* most urgent task priority with unstarted blocks */
    /* Nothing more is to run; also lets the guard's interrupts (guard.h) end blocks. */
    _Atomic bool stopping;
};

struct soft_sched_config {
    uint32_t workers;
    /* A block that takes longer ends with soft_worker_timed_out(); 0: no limit. */
    uint64_t block_timeout_ns;
};

GM_MUST_CHECK int soft_sched_create(struct soft_sched **out,
                                    const struct soft_sched_config *config);
/* Ends all threads. No account is left. NULL is accepted. */
void soft_sched_destroy(struct soft_sched *s);
uint32_t soft_sched_workers(const struct soft_sched *s);
/* Bounds the scratch memory of all blocks that have begun. Called before the first one begins; 0,
 * the default, is no bound. */
void soft_sched_bound_scratch(struct soft_sched *s, uint64_t bytes);

void soft_account_open(struct soft_sched *s, struct soft_account *a, double share_pct,
                       int priority);
/* Sets share and priority. Takes effect with the next grant, also while kernels run. */
void soft_account_set(struct soft_sched *s, struct soft_account *a, double share_pct, int priority);
/* Guarantees the account that part, and puts it into the group of that number (0: into none), whose
 * clients have limit and guarantee together. 0 %: no limit, no guarantee. May be called while
 * kernels run. Without memory for a new group the account is in none. */
void soft_account_set_group(struct soft_sched *s, struct soft_account *a, double guarantee_pct,
                            uint32_t group, double group_share_pct, double group_guarantee_pct);
/* Forgets an account that has been drained and is about to be freed. */
void soft_account_close(struct soft_sched *s, struct soft_account *a);
/* From now on no task starts, and running blocks are interrupted. Tasks that no worker runs are
 * handed back through `give_up` (with the lock held: it must not call the scheduler) and get no
 * `done`; the others get their `done` soon. */
void soft_account_stop(struct soft_sched *s, struct soft_account *a,
                       void (*give_up)(struct soft_task *t));
/* Waits until no worker runs a block or a `done` of a stopped account. */
void soft_account_drain(struct soft_sched *s, struct soft_account *a);
/* Worker time that the account has used so far. */
uint64_t soft_account_used_ns(struct soft_sched *s, struct soft_account *a);

/* Submits a task. It stays the caller's and must live until `done`; ops, account, count, priority
 * and block_ns are set. False: the account is stopping, and there will be no `done`. Any thread;
 * the caller may hold any lock that `done` does not hold when it calls the scheduler. */
GM_MUST_CHECK bool soft_task_submit(struct soft_sched *s, struct soft_task *t);

#endif
