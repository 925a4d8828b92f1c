/*
 * A worker thread of the block scheduler, and what it keeps for the block that it runs: guard,
 * struct soft_block, shared and local memory.
 */
#ifndef GMUX_SOFT_EXEC_WORKER_H
#define GMUX_SOFT_EXEC_WORKER_H

#include "device/guard.h"
#include "device/soft/exec/code.h"
#include "device/soft/exec/sched.h"

/* Compiled code has no frames larger than SOFT_FRAME_MAX (loader/job.h) and nests only a few calls,
 * and helpers that print need no more than what is left. Code that uses more ends at the guard
 * pages: frames are touched page by page from the top. */
#define SOFT_STACK_BYTES (4u << 20)

/* Memory that grows to what a block needs and is kept for the next block. */
struct soft_scratch {
    uint8_t *data;
    size_t size;
    size_t dirty; /* bytes in which the last client may have left data */
};

struct soft_worker {
    struct soft_sched *sched;
    struct gm_list link; /* in sched->workers; the scheduler's lock */
    pthread_t thread;
    struct dev_guard guard;
    struct soft_block block;
    struct soft_scratch shared, local, save, check, check_local;
    uintptr_t stack_low; /* below it lie DEV_GUARD_STACK_BYTES that nothing may touch */
    /* account number of the client whose data the scratch memory holds; 0: none */
    uint64_t last;
    uint64_t cpu_ns;        /* processor time at the end of the last grant, 0: not known */
    uint64_t scratch_bytes; /* size of its scratch memories; the scheduler's lock */
    /* the following are under the scheduler's lock */
    struct soft_account *account; /* whose grant is being run, or NULL */
    struct soft_task *task;
    bool active; /* it has a multiprocessor */
    bool guest;  /* it is a client's thread (soft_guest_run), and cannot be set aside */
    /* its block is set aside: the worker is in its account's list, by `place` */
    bool aside;
    struct gm_list place;  /* in that list, or in `spares` */
    uint64_t since_ns;     /* when its grant began, or its block last went on or was set aside */
    uint64_t began_ns;     /* when the grant began */
    uint64_t away_ns;      /* how long the grant has been set aside */
    uint64_t cpu_began_ns; /* processor time when the grant began; 0: not known */
    uint64_t charged_ns;   /* how much of the grant is charged already */
    /* written by the worker, read by the supervisor */
    _Atomic uint64_t chunk_began_ns; /* 0: not in a block */
    /* set by the supervisor, cleared at the end of the grant */
    _Atomic bool interrupt; /* the guard obeys interrupts */
    _Atomic bool timed_out; /* `interrupt` is set because the block has taken too long */
};

/* Starts the thread. 0 or -errno. With the scheduler's lock held. */
GM_MUST_CHECK int soft_worker_start(struct soft_sched *s);

/* The calling thread as a worker for tasks that it runs itself. It has a stack of SOFT_STACK_BYTES
 * and DEV_GUARD_STACK_BYTES behind it. NULL: no memory. */
struct soft_worker *soft_guest_create(struct soft_sched *s);
/* Any thread, while it runs no task. NULL is accepted. */
void soft_guest_destroy(struct soft_worker *w);
/* Runs a task that was not submitted on this thread, for SOFT_GUEST_NS at most; what is left of it
 * then is submitted. The task's `done` is called as for any other. False: the task has not begun,
 * because its client is stopped or may have no more time now, or because others need all workers:
 * it is still the caller's. */
GM_MUST_CHECK bool soft_guest_run(struct soft_worker *w, struct soft_task *t);

/* scratch.c. Makes room in one of the worker's scratch memories, which is zeroed when it grows.
 * False: no memory, or the client may not have more. */
GM_MUST_CHECK bool soft_scratch_reserve(struct soft_worker *w, struct soft_scratch *m, size_t size);
/* Clears or gives back what the last client left, before another client's blocks run. */
void soft_scratch_wipe(struct soft_worker *w);
/* Whether the address lies in the guard pages behind the end of the worker's stack. */
bool soft_worker_overran(const struct soft_worker *w, uint64_t address);
/* Clears all vector registers of this thread. */
void soft_registers_clear(void);
/* Called before a task's blocks run: wipes what another client has left. */
void soft_worker_serve(struct soft_worker *w, const struct soft_account *a);
/* Runs fn(arg) inside the worker's guard; interruptible. 0, or the number of the signal that ended
 * it. */
int soft_worker_guarded(struct soft_worker *w, void (*fn)(void *), void *arg);

#endif
