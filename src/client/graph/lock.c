/*
 * The graph lock, and the tables that it protects.
 */
#include "client/graph/object.h"
#include "client/stream/capture.h"

struct rt_table rt_graphs = RT_TABLE(RT_KIND_GRAPH, struct rt_graph);
struct rt_table rt_nodes = RT_TABLE(RT_KIND_NODE, struct rt_node);

void rt_graph_lock(void)
{
    rt_capture_lock();
}

void rt_graph_unlock(void)
{
    rt_capture_unlock();
    rt_user_objects_reap();
}
