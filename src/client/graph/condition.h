/*
 * Conditional nodes: graphs of their own that run if a value says so, or as long as it does. A
 * handle is the address of its value, a word of pinned memory that kernels write
 * (cudaGraphSetConditional). When a launch comes to such a node, its stream stops at a gate; a
 * thread of ours looks at the value, launches a body beside it, waits for that, and looks again
 * where the node is a loop; then the gate opens. Software and null device only (docs/adr/0019).
 *
 * All under the graph lock, but where a function says otherwise.
 */
#ifndef GMUX_CLIENT_GRAPH_CONDITION_H
#define GMUX_CLIENT_GRAPH_CONDITION_H

#include "base/list.h"
#include "client/stream/context.h"

struct rt_exec_body;
struct rt_graph;

struct rt_condition {
    struct gm_list link; /* all */
    unsigned references; /* the graph that it was made for, nodes, and nodes of graphs that are
                            launched */
    const struct rt_graph *graph; /* NULL: it is gone */
    unsigned nodes;               /* the program's */
    uint64_t address;
    uint32_t initial;
    bool assign; /* `initial` at the beginning of each launch */
};

/* A conditional node's parameters. */
struct rt_conditional {
    struct rt_condition *condition; /* a reference */
    CUgraphConditionalNodeType kind;
    unsigned count;
    struct rt_graph **bodies; /* owned */
    CUgraph *handles;         /* owned; theirs, for the program */
    CUcontext ctx;
    bool copy; /* of a graph that is launched: not the handle's node */
};

/* A conditional node of a graph that is launched. */
struct rt_conditional_run {
    struct rt_conditional_run *next;
    struct rt_exec_body *owner;
    const struct rt_conditional *node;                              /* of the owner's graph */
    int (*launch)(struct rt_exec_body *body, struct rt_stream *st); /* CUresult */
    struct rt_condition *condition;                                 /* a reference */
    CUgraphConditionalNodeType kind;
    unsigned count;
    struct rt_exec_body **bodies; /* owned */
    CUstream stream;              /* in which they run; owned */
    bool started;                 /* the library's thread's */
    _Atomic bool done;
};

/* NULL: there is none, or its graph is gone. */
struct rt_condition *rt_condition_find(CUgraphConditionalHandle handle);
static inline struct rt_condition *rt_condition_ref(struct rt_condition *c)
{
    c->references++;
    return c;
}
void rt_condition_unref(struct rt_condition *c);
static inline _Atomic uint32_t *rt_condition_word(const struct rt_condition *c)
{
    return (_Atomic uint32_t *)(uintptr_t)c->address; /* NOLINT: the host's address, too */
}

/* Its handles go when nothing uses them any more. */
void rt_conditions_forget(const struct rt_graph *g);
/* It has handles, or conditional nodes. */
bool rt_graph_has_conditions(const struct rt_graph *g);
/* It has a handle without a node. */
bool rt_graph_has_idle_condition(const struct rt_graph *g);

/* --- launches (condition_run.c) --------------------------------------------------------------- */

/* Before a launch in this context, outside of the queue. CUresult. */
int rt_conditional_ready(struct rt_exec_body *b, struct rt_context *c);
/* Within the queue: sets values that a launch begins with, in it and in its bodies; stops at a
 * node. CUresult. */
int rt_conditional_begin(const struct rt_exec_body *b, struct rt_stream *st);
int rt_conditional_put(struct rt_conditional_run *run, struct rt_stream *st);

#endif
