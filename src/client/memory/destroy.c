/*
 * Gives back the memory of a context that ends, each kind in its own way.
 */
#include "client/entry/hooks.h"
#include "client/memory/memory.h"
#include "client/memory/pool_ipc.h"

/* Memory of a graph: the graph may outlive the context. */
static void lose_graph_memory(uint64_t address)
{
    rt_hooks.graph_memory_lose(address);
    (void)rt_request_free(rt_session, address);
}

void rt_memory_destroy_all(struct rt_context *c)
{
    struct rt_range r;
    (void)rt_memory_reap(true);
    while (rt_memory_remove_any(c, &r)) {
        if (rt_memory_is_managed(&r))
            rt_managed_forget(r.base, r.size);
        if (r.kind == RT_MEMORY_REGISTERED)
            (void)rt_register_undo(&r);
        else if (r.block)
            rt_pool_free(r.block, 0, 0);
        else if (r.kind == RT_MEMORY_IMPORTED)
            rt_ipc_forget(&r);
        else if (r.kind == RT_MEMORY_IMPORTED_BLOCK)
            rt_pool_forget_imported(r.base);
        else if (r.kind == RT_MEMORY_GRAPH)
            lose_graph_memory(r.base);
        else if (r.kind != RT_MEMORY_PAGEABLE && r.kind != RT_MEMORY_GLOBAL &&
                 r.kind != RT_MEMORY_GLOBAL_MANAGED)
            (void)rt_request_free(rt_session, r.base);
    }
    (void)rt_pools_trim(true);
}
