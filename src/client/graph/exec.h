/*
 * Executable graphs: a copy of a graph whose nodes are put into order, and whose work lies ready as
 * one block of ring records. What is no record (host functions, events) stands in the list of steps
 * between runs of records.
 *
 * All under the graph lock.
 */
#ifndef GMUX_CLIENT_GRAPH_EXEC_H
#define GMUX_CLIENT_GRAPH_EXEC_H

#include "client/graph/graph.h"

#define RT_GRAPH_BRANCHES 8u

/* A node in its place, or where a child graph begins or ends. */
struct rt_item {
    struct rt_node *node; /* NULL: nothing to do */
    uint32_t branch;
    uint32_t waits_at, waits_count; /* in body->waits: what it waits for in other branches */
    bool first;  /* the first of its branch, with nothing before it but the launch itself */
    bool marked; /* something waits for it */
};

enum rt_step_kind {
    RT_STEP_RECORDS,
    RT_STEP_START, /* the branch goes on from where the launch began */
    RT_STEP_WAIT,  /* the branch waits for `item` */
    RT_STEP_MARK,  /* `item` ends here */
    RT_STEP_CALL,
    RT_STEP_RECORD_EVENT,
    RT_STEP_WAIT_EVENT,
    RT_STEP_MEMOPS,
    RT_STEP_CONDITION,
};

struct rt_step {
    enum rt_step_kind kind;
    uint32_t branch;
    union {
        uint32_t item;
        struct {
            size_t at, size;
        };
        struct {
            CUhostFn fn;
            void *arg;
        };
        CUevent event;
        const struct rt_memops *memops; /* the node's */
        struct rt_conditional_run *condition;
    };
};

/* A copy with a pageable side. */
struct rt_staged {
    struct rt_staged *next;
    struct rt_box box;
    uint64_t memory; /* pinned; rows packed. 0: both sides are pageable */
};

struct rt_by_original {
    CUgraphNode original;
    struct rt_node *node;
};

struct rt_exec_body {
    struct gm_list link; /* the dead */
    struct rt_graph *graph;
    struct rt_node **order; /* of all levels; child graph nodes themselves are not in it */
    struct rt_by_original *index;
    uint32_t order_count, index_count;
    struct rt_item *items;
    uint32_t *waits; /* items */
    uint32_t items_count, waits_count;
    uint32_t joins_at, joins_count; /* in waits: what the launch's stream waits for at the end */
    uint32_t branches;              /* that are used; the first is the launch's stream */
    struct {
        int device;          /* of the kernels in it; -1: there are none */
        CUcontext context;   /* of one of them */
    } on[RT_GRAPH_BRANCHES]; /* by branch */
    uint64_t *marks;         /* during a launch: where items ended, in their branches */
    uint32_t branch;         /* while steps are made */
    uint8_t *block;
    size_t block_size, block_capacity;
    struct rt_step *steps;
    uint32_t steps_count, steps_capacity;
    const void **functions; /* the kernels', sorted, each once */
    uint32_t functions_count;
    bool calls;  /* some step is one */
    bool memory; /* some node allocates or frees */
    bool broken; /* there was no memory for the block */
    struct rt_staged *staged;
    struct rt_conditional_run *conditionals;
    _Atomic unsigned running; /* threads of them */
    uint32_t last_number;     /* where the last launch ended */
    uint64_t last_seq;        /* 0: never launched */
};

struct rt_exec {
    struct rt_object object;
    struct rt_exec_body *body;
    uint64_t flags;
};

extern struct rt_table rt_execs;

static inline struct rt_exec *rt_exec_find(CUgraphExec handle)
{
    return (struct rt_exec *)rt_object_find(&rt_execs, handle);
}

/* --- order and branches (graph/order.c) ------------------------------------------------------- */

/* Fills in order, index, items, waits, joins and branches from b->graph; order and index have room
 * for all nodes. CUresult; CUDA_ERROR_INVALID_VALUE if there is a cycle. */
int rt_order_make(struct rt_exec_body *b);
void rt_order_finish(struct rt_exec_body *b);

/* --- the block (graph/block.c) ---------------------------------------------------------------- */

/* Makes block and steps of b->items, whose conditional nodes stand in b->conditionals; `idle`: what
 * earlier steps used may go. CUresult. */
int rt_block_build(struct rt_exec_body *b, bool idle);
/* A node's parameters are others: puts its record in the place of the old one; false if it must be
 * built again. */
bool rt_block_patch(struct rt_exec_body *b, const struct rt_node *n);
void rt_block_finish(struct rt_exec_body *b);

/* --- bodies (graph/body.c) -------------------------------------------------------------------- */

/* CUresult; CUDA_ERROR_INVALID_VALUE if there is a cycle. */
int rt_exec_body_create(const struct rt_graph *g, struct rt_exec_body **out);
/* It is idle. NULL is allowed. */
void rt_exec_body_free(struct rt_exec_body *b);
/* True if nothing of it runs, nor of its conditional nodes. */
bool rt_exec_body_idle(const struct rt_exec_body *b);
/* Again, as nodes have changed. On failure it cannot be launched until that succeeds. CUresult. */
int rt_exec_body_build(struct rt_exec_body *b);
/* `whole`: the launch of an executable graph, at whose beginning conditions have their first
 * values. */
int rt_exec_body_launch(struct rt_exec_body *b, uint64_t flags, struct rt_stream *st, bool whole);
struct rt_node *rt_exec_body_node(const struct rt_exec_body *b, CUgraphNode original);

/* --- executable graphs (graph/exec.c) --------------------------------------------------------- */

/* CUresult; CUDA_ERROR_INVALID_VALUE if there is a cycle. */
int rt_exec_create(const struct rt_graph *g, uint64_t flags, struct rt_exec **out);
/* Its memory goes when what was launched is done. */
void rt_exec_destroy(struct rt_exec *e);
/* Puts it into the ring, behind its last launch and what `st` holds, which does not capture.
 * CUresult. */
int rt_exec_launch(struct rt_exec *e, struct rt_stream *st);

/* Its copy of a node of the graph it was made from, or of a child graph of that; NULL if there is
 * none. */
struct rt_node *rt_exec_node(const struct rt_exec *e, CUgraphNode original);
/* Takes over `params` (they are finished on failure, too) for the launches to come.
 * CUDA_ERROR_INVALID_VALUE: a node of another kind. */
int rt_exec_set(struct rt_exec *e, struct rt_node *n, struct rt_params *params);
int rt_exec_enable(struct rt_exec *e, struct rt_node *n, bool enabled);
/* A child graph node: its nodes are to do what those of `from` do.
 * CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: they differ in more. */
int rt_exec_set_child(struct rt_exec *e, struct rt_node *n, const struct rt_graph *from);
/* All nodes are to do what those of `from` do. CUresult: CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE with
 * the reason. */
int rt_exec_update(struct rt_exec *e, const struct rt_graph *from,
                   CUgraphExecUpdateResultInfo *why);

#endif
