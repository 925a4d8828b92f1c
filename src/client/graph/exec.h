/*
 * Executable graphs. Each is a copy of a graph whose nodes have been put into order, and whose work
 * has been prepared as one block of ring records. Work that is no record (host functions, events)
 * is in the list of steps, between runs of records.
 *
 * Everything is under the graph lock.
 */
#ifndef GMUX_CLIENT_GRAPH_EXEC_H
#define GMUX_CLIENT_GRAPH_EXEC_H

#include "client/graph/graph.h"

#define RT_GRAPH_BRANCHES 8u

/* A node at its place in the order; or the beginning or end of a child graph. */
struct rt_item {
    struct rt_node *node; /* NULL: there is nothing to do */
    uint32_t branch;
    /* range in body->waits: the items in other branches that it waits for */
    uint32_t waits_at, waits_count;
    bool first;  /* the first of its branch, with only the launch itself before it */
    bool marked; /* another item waits for it */
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
    struct gm_list link; /* in the list of bodies to be freed */
    struct rt_graph *graph;
    struct rt_node **order; /* nodes of all levels, without child graph nodes themselves */
    struct rt_by_original *index;
    uint32_t order_count, index_count;
    struct rt_item *items;
    uint32_t *waits; /* items */
    uint32_t items_count, waits_count;
    /* range in `waits`: what the launch's stream waits for at the end */
    uint32_t joins_at, joins_count;
    uint32_t branches; /* how many are used; the first is the launch's stream */
    struct {
        int device;          /* device of the branch's kernels; -1: there are none */
        CUcontext context;   /* context of one of these kernels */
    } on[RT_GRAPH_BRANCHES]; /* by branch */
    uint64_t *marks;         /* used during a launch: where items ended in their branches */
    uint32_t branch;         /* the current one while steps are made */
    uint8_t *block;
    size_t block_size, block_capacity;
    struct rt_step *steps;
    uint32_t steps_count, steps_capacity;
    /* It is launched in one piece, and so has one branch (graph/whole.h); its bodies, too. */
    bool single;
    struct rt_whole *whole; /* the outermost one's; owned */
    const void **functions; /* the functions of all kernels, sorted and without duplicates */
    uint32_t functions_count;
    bool calls;  /* there is a step that calls the program */
    bool memory; /* some node allocates or frees */
    bool broken; /* there was no memory for the block, so it cannot be launched */
    struct rt_staged *staged;
    struct rt_conditional_run *conditionals;
    _Atomic unsigned running; /* how many threads of conditional nodes run */
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

/* Fills in order, index, items, waits, joins and branches from b->graph. `order` and `index` have
 * room for all nodes. CUresult; CUDA_ERROR_INVALID_VALUE: there is a cycle. */
int rt_order_make(struct rt_exec_body *b);
void rt_order_finish(struct rt_exec_body *b);

/* --- the block (graph/block.c) ---------------------------------------------------------------- */

/* Makes block and steps from b->items; the conditional nodes are in b->conditionals. `idle`: memory
 * that earlier steps used may be freed. CUresult. */
int rt_block_build(struct rt_exec_body *b, bool idle);
/* The parameters of a node have changed: replaces its record. False: the block must be built
 * again. */
bool rt_block_patch(struct rt_exec_body *b, const struct rt_node *n);
void rt_block_finish(struct rt_exec_body *b);

/* --- bodies (graph/body.c) -------------------------------------------------------------------- */

/* Makes a body. `outer`: the one in which it is; NULL: in none. CUresult;
 * CUDA_ERROR_INVALID_VALUE: there is a cycle. */
int rt_exec_body_create(struct rt_graph *g, const struct rt_exec_body *outer,
                        struct rt_exec_body **out);
/* Frees an idle body. NULL is accepted. */
void rt_exec_body_free(struct rt_exec_body *b);
/* Whether nothing of the body runs, nor of its conditional nodes. */
bool rt_exec_body_idle(const struct rt_exec_body *b);
/* Builds it again after nodes have changed. After a failure it cannot be launched until this
 * succeeds. CUresult. */
int rt_exec_body_build(struct rt_exec_body *b);
/* Launches the body. `outermost`: it is an executable graph's, so conditions get their initial
 * values. CUresult. */
int rt_exec_body_launch(struct rt_exec_body *b, uint64_t flags, struct rt_stream *st,
                        bool outermost);
/* Its copy of a node, in it or in a body inside; NULL: there is none. */
struct rt_node *rt_exec_body_node(const struct rt_exec_body *b, CUgraphNode original);
/* The body in which a node of an executable graph is. */
struct rt_exec_body *rt_exec_body_of(const struct rt_node *n);

/* --- executable graphs (graph/exec.c) --------------------------------------------------------- */

/* Makes an executable graph. CUresult; CUDA_ERROR_INVALID_VALUE: there is a cycle. */
int rt_exec_create(struct rt_graph *g, uint64_t flags, struct rt_exec **out);
/* Destroys an executable graph. Its memory is freed when what was launched is done. */
void rt_exec_destroy(struct rt_exec *e);
/* Puts the graph into the ring, behind its last launch and everything in `st`, which does not
 * capture. CUresult. */
int rt_exec_launch(struct rt_exec *e, struct rt_stream *st);

/* Its copy of a node of the graph that it was made from, or of a graph in that; NULL: there is
 * none. */
struct rt_node *rt_exec_node(const struct rt_exec *e, CUgraphNode original);
/* Whether the node, NULL: all nodes, may be changed now: not while a launch may come to its body
 * again. */
bool rt_exec_may_change(const struct rt_exec *e, const struct rt_node *n);
/* Replaces a node's parameters for later launches; takes over `params` (finishes them on failure).
 * CUDA_ERROR_INVALID_VALUE: the node is of another kind. */
int rt_exec_set(struct rt_node *n, struct rt_params *params);
int rt_exec_enable(struct rt_node *n, bool enabled);
/* Gives a child graph node's nodes the parameters of those of `from`.
 * CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: the graphs differ in more. */
int rt_exec_set_child(struct rt_node *n, const struct rt_graph *from);
/* Gives all nodes the parameters of those of `from`. CUresult;
 * CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, with the reason. */
int rt_exec_update(struct rt_exec *e, const struct rt_graph *from,
                   CUgraphExecUpdateResultInfo *why);

#endif
