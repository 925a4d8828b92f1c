/*
 * Conditional nodes: they contain graphs that run if a value says so, or as long as it does.
 * Kernels set the value (cudaGraphSetConditional). There are two ways to run them
 * (docs/adr/0019-conditional-nodes.md).
 *
 * On the software and null devices a handle is the address of its value, a word of pinned memory.
 * When a launch comes to such a node, its stream stops at a gate. A thread of this library reads
 * the value, launches a body in another stream, waits for it, and in a loop reads the value again;
 * then it opens the gate.
 *
 * On a GPU, whose driver has such nodes, a handle is a small number: how many have been made for
 * the outermost graph so far. The driver runs the graph as a whole (graph/whole.c).
 *
 * Everything is under the graph lock, unless a function says otherwise.
 */
#ifndef GMUX_CLIENT_GRAPH_CONDITION_H
#define GMUX_CLIENT_GRAPH_CONDITION_H

#include "base/list.h"
#include "client/stream/context.h"

struct rt_exec_body;
struct rt_graph;

struct rt_condition {
    struct gm_list link; /* all */
    /* The graph that it was made for, nodes, and nodes of executable graphs. */
    unsigned references;
    struct rt_graph *graph; /* NULL: it is gone */
    unsigned nodes;         /* nodes of the program's graphs */
    CUgraphConditionalHandle handle;
    uint32_t initial;
    bool assign; /* the value is set to `initial` when a launch begins */
};

/* A conditional node's parameters. */
struct rt_conditional {
    struct rt_condition *condition; /* a reference */
    CUgraphConditionalNodeType kind;
    unsigned count;
    struct rt_graph **bodies; /* owned */
    CUgraph *handles;         /* their handles, for the program; owned */
    CUcontext ctx;
    bool copy; /* it belongs to an executable graph, so the handle does not count it */
};

/* A conditional node of an executable graph. */
struct rt_conditional_run {
    struct rt_conditional_run *next;
    struct rt_exec_body *owner;
    /* of the graph that it was made from */
    const struct rt_conditional *node;
    int (*launch)(struct rt_exec_body *body, struct rt_stream *st); /* CUresult */
    struct rt_condition *condition;                                 /* a reference */
    CUgraphConditionalNodeType kind;
    unsigned count;
    struct rt_exec_body **bodies; /* owned */
    CUstream stream;              /* the bodies run in it; owned */
    bool started;                 /* used by the library's thread only */
    _Atomic bool done;
};

/* Finds a handle that was made for the graph, for one that it is in, or for one in that; NULL:
 * there is none, or its graph is gone. */
struct rt_condition *rt_condition_find(struct rt_graph *g, CUgraphConditionalHandle handle);
static inline struct rt_condition *rt_condition_ref(struct rt_condition *c)
{
    c->references++;
    return c;
}
void rt_condition_unref(struct rt_condition *c);
static inline _Atomic uint32_t *rt_condition_word(const struct rt_condition *c)
{
    return (_Atomic uint32_t *)(uintptr_t)c->handle; /* NOLINT: the host's address, too */
}

/* The graph is gone: its handles are freed when nothing uses them any more. */
void rt_conditions_forget(const struct rt_graph *g);
/* Calls `each` with every handle of the outermost graph, in the order of their numbers. */
void rt_conditions_each(const struct rt_graph *outermost,
                        void (*each)(void *arg, const struct rt_condition *c), void *arg);
/* Whether the graph has handles, or conditional nodes. */
bool rt_graph_has_conditions(const struct rt_graph *g);
/* Whether the graph, or one inside of it, has a handle that no node uses. */
bool rt_graph_has_idle_condition(const struct rt_graph *g);

/* --- launches (condition_run.c) --------------------------------------------------------------- */

/* Called before a launch in this context, outside of the queue. CUresult. */
int rt_conditional_ready(struct rt_exec_body *b, struct rt_context *c);
/* Called within the queue: sets the values with which a launch begins, in the graph and its bodies;
 * and stops at a node. CUresult. */
int rt_conditional_begin(const struct rt_exec_body *b, struct rt_stream *st);
int rt_conditional_put(struct rt_conditional_run *run, struct rt_stream *st);

#endif
