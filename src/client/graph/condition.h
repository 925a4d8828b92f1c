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

struct rt_condition;
struct rt_exec_body;
struct rt_graph;
struct rt_params;

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
    struct rt_condition *condition; /* a reference */
    CUgraphConditionalNodeType kind;
    unsigned count;
    struct rt_exec_body **bodies; /* owned */
    CUstream stream;              /* in which they run; owned */
    bool started;                 /* the library's thread's */
    _Atomic bool done;
};

/* CUresult; each fills in *p, or leaves nothing to finish. */
int rt_params_conditional(struct rt_params *p, const CUDA_CONDITIONAL_NODE_PARAMS *from);
int rt_conditional_clone(struct rt_conditional *to, const struct rt_conditional *from);
void rt_conditional_finish(struct rt_conditional *c);

/* Its handles go when nothing uses them any more. */
void rt_conditions_forget(const struct rt_graph *g);
/* It has handles, or conditional nodes. */
bool rt_graph_has_conditions(const struct rt_graph *g);
/* It has a handle without a node. */
bool rt_graph_has_idle_condition(const struct rt_graph *g);

/* CUresult. Prepares a node of `b`. */
int rt_conditional_prepare(struct rt_exec_body *b, const struct rt_conditional *c,
                           struct rt_conditional_run **out);
void rt_conditional_free_all(struct rt_exec_body *b);
/* Before a launch in this context, outside of the queue. CUresult. */
int rt_conditional_ready(struct rt_exec_body *b, struct rt_context *c);
/* Within the queue: sets values that a launch begins with, in it and in its bodies; stops at a
 * node. CUresult. */
int rt_conditional_begin(const struct rt_exec_body *b, struct rt_stream *st);
int rt_conditional_put(struct rt_conditional_run *run, struct rt_stream *st);

#endif
