/*
 * Graphs with conditional nodes, on devices that run them as a whole: each launch is one record of
 * the ring, with the bodies in it. Everything is under the graph lock.
 */
#ifndef GMUX_CLIENT_GRAPH_WHOLE_H
#define GMUX_CLIENT_GRAPH_WHOLE_H

#include "client/graph/exec.h"

/* The handles of such a graph, as they were when it became executable. */
struct rt_whole;

/* Whether an executable graph of this one is launched so. */
bool rt_whole_wanted(const struct rt_graph *g);
/* CUresult. CUDA_ERROR_INVALID_VALUE: it is in another graph. */
int rt_whole_create(const struct rt_graph *g, struct rt_whole **out);
/* Makes *whole anew from another graph's handles; it stays as it is if that fails. */
int rt_whole_replace(const struct rt_graph *g, struct rt_whole **whole);
/* Whether the body can be a record. CUresult: CUDA_ERROR_NOT_SUPPORTED, which has been said, if it
 * has more than fits one, or nodes that are no operations of the device;
 * CUDA_ERROR_INVALID_VALUE if a body inside has such nodes. */
int rt_whole_check(const struct rt_exec_body *b);
/* Puts it into the ring; called within the queue. CUresult. */
int rt_whole_put(const struct rt_exec_body *b, struct rt_stream *st);

#endif
