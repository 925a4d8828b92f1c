/*
 * Handles of conditional nodes.
 */
#include "client/graph/condition.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/graph/graph.h"
#include "client/stream/check.h"

static struct gm_list all = { &all, &all };

struct rt_condition *rt_condition_find(struct rt_graph *g, CUgraphConditionalHandle handle)
{
    const struct rt_graph *outermost = rt_graph_outermost(g);
    gm_list_for_each (c, &all, struct rt_condition, link)
        if (c->handle == handle && c->graph && rt_graph_outermost(c->graph) == outermost)
            return c;
    return NULL;
}

void rt_conditions_each(const struct rt_graph *outermost,
                        void (*each)(void *arg, const struct rt_condition *c), void *arg)
{
    gm_list_for_each (c, &all, struct rt_condition, link)
        if (c->graph && rt_graph_outermost(c->graph) == outermost)
            each(arg, c);
}

static bool has_word(void)
{
    return !rt_session->memory_apart;
}

void rt_condition_unref(struct rt_condition *c)
{
    if (--c->references)
        return;
    gm_list_remove(&c->link);
    if (has_word())
        (void)rt_request_free(rt_session, c->handle);
    free(c);
}

static int make_word(struct rt_condition *c)
{
    int r = rt_request_alloc(rt_session, sizeof(uint32_t), 0, WIRE_MEMORY_KIND_HOST, 0, &c->handle);
    if (r)
        return r;
    rt_check_lent(c->handle, sizeof(uint32_t));
    atomic_store(rt_condition_word(c), c->initial);
    return CUDA_SUCCESS;
}

static int condition_create(struct rt_graph *g, uint32_t initial, bool assign,
                            struct rt_condition **out)
{
    struct rt_condition *c = calloc(1, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c =
        (struct rt_condition) { .references = 1, .graph = g, .initial = initial, .assign = assign };
    int r = has_word() ? make_word(c) : CUDA_SUCCESS;
    if (r) {
        free(c);
        return r;
    }
    if (!has_word())
        c->handle = ++rt_graph_outermost(g)->handles;
    gm_list_append(&all, &c->link);
    *out = c;
    return CUDA_SUCCESS;
}

CUresult rt_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
                                           CUcontext ctx, unsigned int defaultLaunchValue,
                                           unsigned int flags)
{
    struct rt_condition *c;
    int r = rt_enter_any();
    if (r)
        return r;
    if (!pHandle_out || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) ||
        (ctx && !rt_context_find(ctx, true)))
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_graph *g = rt_graph_find(hGraph);
    r = g && !g->body
            ? condition_create(g, defaultLaunchValue, flags & CU_GRAPH_COND_ASSIGN_DEFAULT, &c)
            : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *pHandle_out = c->handle;
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
        if (c->graph && !c->nodes && rt_graph_outermost(c->graph) == g)
            return true;
    return false;
}
