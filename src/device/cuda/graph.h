/*
 * Graphs with conditional nodes. The driver runs such a graph as a whole, because kernels set
 * values that hold for one of its graphs only.
 *
 * When a graph first comes, its operations are recorded as they would be held back in a queue, with
 * their libraries kept. The driver's graph is made of that record when it is to be launched, and
 * made anew when its queue is in another place, or when something that it names may have gone. So
 * a launch may be held back like any operation (op.h). The record itself stays for the next time
 * that the same bytes come.
 *
 * docs/adr/0019-conditional-nodes.md has what the driver does (580.159.04) and how it was measured:
 * - It makes and destroys such a graph when nothing runs in its context, and everybody waits with
 *   it. So both happen at safe points (admit.h), beside a long kernel in the fallback context.
 * - The GPU ends a context (error 719) in which some of them run at the same time, of one client or
 *   of several. So they follow each other, those of all clients in a context.
 * - Handles have the numbers 1, 2 .., and programs' libraries give out the same ones.
 *
 * Everything is the client's thread's.
 */
#ifndef GMUX_DEVICE_CUDA_GRAPH_H
#define GMUX_DEVICE_CUDA_GRAPH_H

#include "device/cuda/op.h"

/* The driver's graph. */
struct cuda_made {
    struct gm_list link; /* client->runs.retired, or alone */
    struct cuda_exec exec;
    struct cuda_place *place; /* which stays as long */
    uint32_t memory;          /* the client's count of changes when it was made; if names_memory */
};

struct cuda_graph {
    struct gm_list link;  /* client->runs.graphs, the last one that came first */
    uint32_t held;        /* operations that are held back and launch it */
    uint64_t seq;         /* of its first launch, for which it is recorded */
    struct gm_list steps; /* what it does */
    uint32_t nodes;
    uint32_t modules; /* the client's count of changes when it was recorded */
    bool prints;      /* one of its kernels may print */
    bool names_memory;
    struct cuda_made *made; /* the driver's graph; NULL: it is still to be made */
    uint32_t handles;
    uint32_t size;
    uint8_t bytes[]; /* as they came */
};

/* The graph, if it has come before and its modules are as they were; else NULL. */
struct cuda_graph *cuda_graph_find(struct dev_client *c, const struct dev_graph *what);
/* The queue's operations are recorded from now on. */
CUresult cuda_graph_record(struct dev_queue *q, const struct dev_graph *what);
/* An operation; false: there is no memory for it. Other kinds than those of runs are left out. */
bool cuda_graph_add(struct dev_queue *q, const struct cuda_op *op, const void *bytes, size_t size);
/* device.h: graph_condition, graph_body. */
int cuda_graph_condition(struct dev_queue *q, const struct wire_rec_condition *r);
int cuda_graph_body(struct dev_queue *q, uint32_t body);
/* Ends recording; the client has the graph from now on. */
struct cuda_graph *cuda_graph_recorded(struct dev_queue *q);
/* The queue ends in the middle of recording, or has none. */
void cuda_graph_drop(struct dev_queue *q);

/* The driver has the graph, made where the queue is, which may go to another context meanwhile.
 * False: the client has an error, or is about to be stopped. */
bool cuda_graph_make(struct dev_queue *q, struct cuda_graph *g);

/* Forgets them all, and destroys the driver's. Nothing of the client runs, and there is a safe
 * point of all contexts, or they are about to end. */
void cuda_graphs_finish(struct dev_client *c);

#endif
