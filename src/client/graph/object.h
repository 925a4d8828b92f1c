/*
 * User objects: what a graph keeps alive for the program. Called with the graph lock held, unless
 * it says otherwise.
 */
#ifndef GMUX_CLIENT_GRAPH_OBJECT_H
#define GMUX_CLIENT_GRAPH_OBJECT_H

#include "client/graph/graph.h"

struct rt_user_object {
    struct rt_object object;
    void *ptr;
    CUhostFn destroy;
    uint64_t references;
    struct rt_user_object *next; /* in the list of destructors that are due */
};

extern struct rt_table rt_user_objects;

/* Drops `count` references. */
void rt_user_object_drop(struct rt_user_object *o, uint64_t count);
/* Calls the destructors that are due. Called without the lock. */
void rt_user_objects_reap(void);

/* Gives the graph `count` more references; with `move` they are taken from the caller. CUresult. */
int rt_graph_retain(struct rt_graph *g, struct rt_user_object *o, unsigned count, bool move);
int rt_graph_retain_all(struct rt_graph *g, const struct rt_graph *from);
void rt_graph_release_all(struct rt_graph *g);

#endif
