/*
 * Capacity: how many streams, graphs and nodes of graphs a context has had at once. (local.h counts
 * local memory, which behaves alike.)
 *
 * The driver makes room for these when they are first needed, and keeps the room. A call that needs
 * more room than there has been waits until nothing runs in the context, and everybody waits with
 * it. So this counts what there has been. A client that needs no more is served at once. One that
 * needs more first waits for a safe point (admit.h), without a lock, or goes to the fallback
 * context (fallback.h).
 *
 * A stream or graph that is destroyed leaves its room to the next one, whatever runs. So some
 * streams are made in advance and destroyed again. A green context has room of its own for streams.
 * Graphs are counted for the whole GPU, even if their kernels run in a green context: whether green
 * contexts have room of their own for graphs has not been measured.
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

/* The room of a context; dev->lock. */
struct cuda_capacity {
    uint32_t used;              /* streams and graphs that there are */
    uint32_t made;              /* the most that there have been at once, or a little less */
    uint32_t nodes, nodes_made; /* the same for nodes of graphs */
};

/* A graph that can be launched, with its room. */
struct cuda_exec {
    CUgraphExec handle;   /* NULL: not made yet */
    struct cuda_gpu *gpu; /* in whose room it is; NULL: it has no room yet */
    uint32_t nodes;
    uint32_t resized; /* of `gpu`, when the graph was made */
    bool launched;    /* at least once */
    uint32_t queue;   /* number of the client's queue in which it was launched last */
    uint64_t calls;   /* its last launch is done when so many calls of that queue are done */
};

/* Makes some room in advance, in a context that is new and current. */
void cuda_capacity_open(struct cuda_gpu *g);

/* Makes a stream, of the context, which it enters, or of the place's green context, if it has one
 * (`p` may be NULL). CUDA_ERROR_NOT_READY: there is no room, and the caller has not `waited` for a
 * safe point. The client's thread, as the following. */
CUresult cuda_capacity_stream(struct dev_client *c, struct cuda_gpu *g, struct cuda_place *p,
                              int priority, bool waited, CUstream *out);
void cuda_capacity_stream_destroy(struct cuda_gpu *g, struct cuda_place *p, CUstream s);

/* Takes room for a graph of so many nodes, where the queue's stream is. If there is no room, it
 * waits until `deadline` for a moment in which more can be made: nothing of the client runs, and
 * the context is quiet. False: not now. */
bool cuda_capacity_take_graph(struct dev_queue *q, uint32_t nodes, uint64_t deadline,
                              struct cuda_exec *out);
/* There was such a moment before `deadline`. */
bool cuda_capacity_may_grow(struct dev_queue *q, uint64_t deadline);
/* Makes the graph, in its room, which it keeps until it is destroyed, even if this fails. */
CUresult cuda_capacity_graph(struct cuda_exec *e, CUgraph graph);
/* The graph must not be launched any more: it counts on more local memory than its context may have
 * (local.h). */
bool cuda_capacity_graph_is_stale(const struct cuda_exec *e);
/* Launches the graph in the queue's stream. */
CUresult cuda_capacity_graph_launch(struct dev_queue *q, struct cuda_exec *e);
/* Destroys the graph and gives its room back; if it still runs, cuda_capacity_collect() does that
 * later. Accepts a graph that was never made or has no room. */
void cuda_capacity_graph_destroy(struct dev_client *c, struct cuda_exec *e);
/* Gives back the room of graphs that ran when they were destroyed and are done now. `all`: nothing
 * of the client runs, so all of them are done. */
void cuda_capacity_collect(struct dev_client *c, bool all);

#endif
