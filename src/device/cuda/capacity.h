/*
 * Capacity: what a context has had at once of streams, graphs and nodes of graphs. Local memory, of
 * which the same is true, is local.h's.
 *
 * The driver makes room for these when they are first needed, and keeps it. A call that needs more
 * than there has been waits until nothing runs in the context, and everybody waits with it. So what
 * there has been is counted here. Who needs no more is served at once. Who needs more waits before,
 * without a lock, for a safe point (admit.h), or goes to the fallback context (fallback.h).
 *
 * A stream or graph that is destroyed leaves its place to the next one, whatever runs. So some
 * streams are made in advance, for their places, and destroyed again. A green context has places of
 * its own for streams. Graphs count where their GPU's other graphs do, also if their kernels run in
 * a green context: whether the driver has places for graphs in green contexts has not been
 * measured.
 */
#ifndef GMUX_DEVICE_CUDA_CAPACITY_H
#define GMUX_DEVICE_CUDA_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/driver.h"

struct cuda_gpu;
struct cuda_place;
struct dev_client;
struct dev_queue;

/* What a context has room for: streams and graphs; dev->lock. */
struct cuda_capacity {
    uint32_t used;
    uint32_t made;              /* so many there have been at once, or a little less */
    uint32_t nodes, nodes_made; /* of the graphs */
};

/* A graph that can be launched, and its place. */
struct cuda_exec {
    CUgraphExec handle;   /* NULL: it is not made */
    struct cuda_gpu *gpu; /* where its place is; NULL: it has none */
    uint32_t nodes;
    bool launched;  /* at least once */
    uint32_t queue; /* number of the client's queue in which it was launched last */
    uint64_t calls; /* that launch is done when so many calls of the queue are */
};

/* A context that is new, and current. */
void cuda_capacity_open(struct cuda_gpu *g);

/* A stream of the context, which is entered then, or of the place's green context, if it has one
 * (`p` may be NULL). CUDA_ERROR_NOT_READY: there is no place for it, and nobody `waited` for the
 * GPU. The client's thread, as the following. */
CUresult cuda_capacity_stream(struct dev_client *c, struct cuda_gpu *g, struct cuda_place *p,
                              int priority, bool waited, CUstream *out);
void cuda_capacity_stream_destroy(struct cuda_gpu *g, struct cuda_place *p, CUstream s);

/* A place for a graph of so many nodes, where the queue's stream is; others do not find it any
 * more. Where there is none nothing of the client may run when one is made, and it has to be quiet:
 * that is waited for until `deadline`. False: not now. */
bool cuda_capacity_take_graph(struct dev_queue *q, uint32_t nodes, uint64_t deadline,
                              struct cuda_exec *out);
/* Until then nothing of the client's runs where the queue is, and it is quiet. */
bool cuda_capacity_may_grow(struct dev_queue *q, uint64_t deadline);
/* Makes it, in its place, which it has until it is destroyed, whatever comes of this. */
CUresult cuda_capacity_graph(struct cuda_exec *e, CUgraph graph);
/* Launches it, in the queue's stream. */
CUresult cuda_capacity_graph_launch(struct dev_queue *q, struct cuda_exec *e);
/* Gives the place back, or, if it runs, leaves that to cuda_capacity_collect(). Of one that was not
 * made, or has no place, too. */
void cuda_capacity_graph_destroy(struct dev_client *c, struct cuda_exec *e);
/* Gives back places of graphs that ran when they were destroyed, and do so no longer; `all`:
 * nothing of the client runs. */
void cuda_capacity_collect(struct dev_client *c, bool all);

#endif
