/*
 * Runs that became graphs of the driver. Everything is the client's thread's, but for the two
 * counts of changes.
 */
#ifndef GMUX_DEVICE_CUDA_RUN_H
#define GMUX_DEVICE_CUDA_RUN_H

#include <cuda.h>
#include <stdatomic.h>

#include "base/list.h"
#include "device/device.h"

struct cuda_graph;
struct cuda_run;
struct cuda_step;

/* What a queue does while a graph of the driver is made: operations are added to that instead of
 * being submitted. */
struct cuda_learning {
    struct cuda_run *run; /* the run that becomes a graph; NULL: it learns none */
    CUstream into;        /* the stream that captures; NULL: none does */
    bool names_memory;    /* one of the operations does */
    bool failed;          /* one of them did */
};

/* What it does while its client hands over a graph (graph.h). */
struct cuda_recording {
    struct cuda_graph *graph;    /* NULL: it records none */
    struct cuda_step *condition; /* the innermost; NULL: none */
};

/* A client's. */
struct cuda_runs {
    struct gm_list list;
    struct gm_list graphs;  /* graph.h */
    struct gm_list retired; /* the driver's graphs that are to be destroyed */
    uint32_t count;
    size_t bytes;
    uint64_t *seen;  /* hashes of runs that came once; made with the first */
    uint64_t waited; /* when it was last waited for room for a graph */
    /* Counts of changes, which runs compare. `modules` goes up before a function may be gone, under
     * client->modules_lock; `memory` goes up before memory or an array may be gone. */
    _Atomic uint32_t modules;
    _Atomic uint32_t memory;
};

/* Forgets them all. Nothing of the client runs. */
void cuda_runs_finish(struct dev_client *c);
/* Forgets those that were learnt in the place with this number. */
void cuda_runs_leave(struct dev_client *c, uint64_t place);

/* device.h: run_begin, run_end. */
enum dev_run_verdict cuda_run_begin(struct dev_queue *q, const struct dev_run *run);
bool cuda_run_end(struct dev_queue *q, const struct dev_run *run);

#endif
