/*
 * Jobs that wait for gmux-jit. The owner that has used the least of the compiler's time goes first,
 * so nobody waits behind all jobs that another owner has queued. Of an owner's jobs the one goes
 * first whose kernel has been launched most. All functions are called with the compiler's lock
 * held.
 */
#ifndef GMUX_SOFT_LOADER_QUEUE_H
#define GMUX_SOFT_LOADER_QUEUE_H

#include "base/list.h"
#include "device/soft/loader/compiler.h"

struct loader_job {
    struct gm_list link;
    struct soft_job job;
    soft_compiler_done *done;
    void *arg;
    bool slow; /* it has held others up before: slow jobs have a builder of their own */
};

struct loader_queue {
    struct gm_list owners;
    uint64_t reached_ns; /* the time that the owner had used who last came first */
};

void loader_queue_init(struct loader_queue *q);
/* Frees what is known of owners; no job is left. */
void loader_queue_finish(struct loader_queue *q);

/* Adds a job. 0 or -ENOMEM. */
GM_MUST_CHECK int loader_queue_put(struct loader_queue *q, struct loader_job *j);
/* Takes out the next quick or slow job, or NULL. */
struct loader_job *loader_queue_take(struct loader_queue *q, bool slow);
/* True if somebody other than `owner` has a quick job waiting. */
bool loader_queue_others_wait(const struct loader_queue *q, const void *owner);
/* Charges the owner for that much of the compiler's time. */
void loader_queue_charge(struct loader_queue *q, const void *owner, uint64_t ns);
/* Forgets the owner; its jobs go to `out`. */
void loader_queue_drop(struct loader_queue *q, const void *owner, struct gm_list *out);

#endif
