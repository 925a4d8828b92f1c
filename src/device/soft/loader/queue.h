/*
 * Jobs for gmux-jit that wait, by whose they are: the one who has had least of the compiler's time
 * goes first, so nobody waits behind all that another one has queued; of his jobs the one whose
 * kernel has been launched most. Under the compiler's lock.
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
    bool slow; /* it has held others up before: what is slow has a lane of its own */
};

struct loader_queue {
    struct gm_list owners;
    uint64_t reached_ns; /* time that an owner had when he last came first */
};

void loader_queue_init(struct loader_queue *q);
/* Frees what it knows of owners; no job is left. */
void loader_queue_finish(struct loader_queue *q);

/* 0 or -ENOMEM. */
GM_MUST_CHECK int loader_queue_put(struct loader_queue *q, struct loader_job *j);
/* The next quick or slow job, or NULL. */
struct loader_job *loader_queue_take(struct loader_queue *q, bool slow);
/* True if somebody other than `owner` has a quick job waiting. */
bool loader_queue_others_wait(const struct loader_queue *q, const void *owner);
/* The compiler worked for the owner for that long. */
void loader_queue_charge(struct loader_queue *q, const void *owner, uint64_t ns);
/* Forgets the owner; his jobs go to `out`. */
void loader_queue_drop(struct loader_queue *q, const void *owner, struct gm_list *out);

#endif
