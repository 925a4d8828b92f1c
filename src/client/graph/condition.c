/*
 * Handles of conditional nodes.
 */
#include "client/graph/condition.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/graph/graph.h"
#include "client/stream/check.h"

static struct gm_list all = { &all, &all };

struct rt_condition *rt_condition_find(CUgraphConditionalHandle handle)
{
    gm_list_for_each (c, &all, struct rt_condition, link)
        if (c->address == handle && c->graph)
            return c;
    return NULL;
}

void rt_condition_unref(struct rt_condition *c)
{
    if (--c->references)
        return;
    gm_list_remove(&c->link);
    (void)rt_request_free(rt_session, c->address);
    free(c);
}

static int condition_create(const struct rt_graph *g, uint32_t initial, bool assign,
                            struct rt_condition **out)
{
    struct rt_condition *c = calloc(1, sizeof(*c));
    int r =
        c ? rt_request_alloc(rt_session, sizeof(uint32_t), 0, WIRE_MEMORY_KIND_HOST, 0, &c->address)
          : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        free(c);
        return r;
    }
    rt_check_lent(c->address, sizeof(uint32_t));
    c->references = 1;
    c->graph = g;
    c->initial = initial;
    c->assign = assign;
    atomic_store(rt_condition_word(c), initial);
    gm_list_append(&all, &c->link);
    *out = c;
    return CUDA_SUCCESS;
}

CUresult rt_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
                                           CUcontext ctx, unsigned int defaultLaunchValue,
                                           unsigned int flags)
{
    static atomic_bool said;
    struct rt_condition *c;
    int r = rt_enter_any();
    if (r)
        return r;
    if (!pHandle_out || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) ||
        (ctx && !rt_context_find(ctx, true)))
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_session->memory_apart)
        return rt_not_supported("a conditional node", &said);
    rt_graph_lock();
    const struct rt_graph *g = rt_graph_find(hGraph);
    r = g && !g->inner
            ? condition_create(g, defaultLaunchValue, flags & CU_GRAPH_COND_ASSIGN_DEFAULT, &c)
            : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *pHandle_out = c->address;
    rt_graph_unlock();
    return r;
}

void rt_conditions_forget(const struct rt_graph *g)
{
    gm_list_for_each_safe (c, &all, struct rt_condition, link)
        if (c->graph == g) {
            c->graph = NULL;
            rt_condition_unref(c);
        }
}

bool rt_graph_has_conditions(const struct rt_graph *g)
{
    gm_list_for_each (c, &all, struct rt_condition, link)
        if (c->graph == g)
            return true;
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        if (n->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return true;
    return false;
}

bool rt_graph_has_idle_condition(const struct rt_graph *g)
{
    gm_list_for_each (c, &all, struct rt_condition, link)
        if (c->graph == g && !c->nodes)
            return true;
    return false;
}
