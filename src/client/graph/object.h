/*
 * User objects: what a graph keeps alive for the program. With the graph lock, unless it says
 * otherwise.
 */
#ifndef GMUX_CLIENT_GRAPH_OBJECT_H
#define GMUX_CLIENT_GRAPH_OBJECT_H

#include "client/graph/graph.h"

struct rt_user_object {
    struct rt_object object;
    void *ptr;
    CUhostFn destroy;
    uint64_t references;
    struct rt_user_object *next; /* due */
};

extern struct rt_table rt_user_objects;

/* `count` references go. */
void rt_user_object_drop(struct rt_user_object *o, uint64_t count);
/* Runs destructors that have become due. Without the lock. */
void rt_user_objects_reap(void);

/* CUresult; takes `count` more references for the graph, or, with `move`, the caller's. */
int rt_graph_retain(struct rt_graph *g, struct rt_user_object *o, unsigned count, bool move);
int rt_graph_retain_all(struct rt_graph *g, const struct rt_graph *from);
void rt_graph_release_all(struct rt_graph *g);

#endif
