/*
 * Executable graphs. One that is destroyed while it runs goes into a list until it has ended. The
 * list is searched whenever one is made or destroyed.
 */
#include "client/graph/exec.h"

#include <stdlib.h>

#include "client/graph/whole.h"

struct rt_table rt_execs = RT_TABLE(RT_KIND_EXEC, struct rt_exec);
static struct gm_list dead = { &dead, &dead };

static void reap(void)
{
    gm_list_for_each_safe (b, &dead, struct rt_exec_body, link) {
        if (!rt_exec_body_idle(b))
            continue;
        gm_list_remove(&b->link);
        rt_exec_body_free(b);
    }
}

int rt_exec_create(struct rt_graph *g, uint64_t flags, struct rt_exec **out)
{
    reap();
    struct rt_exec *e = rt_object_take(&rt_execs);
    int r = e ? rt_exec_body_create(g, NULL, &e->body) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        if (e)
            rt_object_release(&rt_execs, &e->object);
        return r;
    }
    e->flags = flags;
    rt_object_publish(&e->object);
    *out = e;
    return CUDA_SUCCESS;
}

void rt_exec_destroy(struct rt_exec *e)
{
    gm_list_append(&dead, &e->body->link);
    rt_object_release(&rt_execs, &e->object);
    reap();
}

int rt_exec_launch(struct rt_exec *e, struct rt_stream *st)
{
    return rt_exec_body_launch(e->body, e->flags, st, true);
}

/* --- changes ---------------------------------------------------------------------------------- */

struct rt_node *rt_exec_node(const struct rt_exec *e, CUgraphNode original)
{
    return rt_exec_body_node(e->body, original);
}

/* The thread of a conditional node puts a body into the ring whenever its turn comes. */
bool rt_exec_may_change(const struct rt_exec *e, const struct rt_node *n)
{
    return !e->body->conditionals || e->body->single || rt_exec_body_idle(e->body) ||
           (n && rt_exec_body_of(n) == e->body);
}

/* Gives `params` to the node. Returns false if the block must be built again. */
static bool replace(struct rt_exec_body *b, struct rt_node *n, struct rt_params *params)
{
    rt_params_finish(&n->params);
    n->params = *params;
    return rt_block_patch(b, n);
}

static bool is_nowhere(const struct rt_params *p)
{
    return p->type == CU_GRAPH_NODE_TYPE_MEMSET && p->fill.nowhere;
}

/* Whether a kernel stays on its device, on which its branch is. */
static bool same_device(const struct rt_params *a, const struct rt_params *b)
{
    return a->type != CU_GRAPH_NODE_TYPE_KERNEL ||
           rt_kernel_device(&a->kernel) == rt_kernel_device(&b->kernel);
}

/* Whether the size is compatible, as documented: a row of bytes may become longer, a rectangle has
 * to stay as it is. */
static bool same_rectangle(const struct rt_params *a, const struct rt_params *b)
{
    const struct wire_rec_fill *x = &a->fill.record, *y = &b->fill.record;
    return (x->height <= 1 && y->height <= 1) ||
           (x->width == y->width && x->height == y->height && x->element_size == y->element_size);
}

int rt_exec_set(struct rt_node *n, struct rt_params *params)
{
    struct rt_exec_body *b = rt_exec_body_of(n);
    if (n->params.type != params->type || params->type == CU_GRAPH_NODE_TYPE_GRAPH ||
        params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL || !same_device(&n->params, params) ||
        is_nowhere(params)) {
        rt_params_finish(params);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (params->type == CU_GRAPH_NODE_TYPE_MEMSET && !same_rectangle(&n->params, params)) {
        rt_params_finish(params);
        return CUDA_ERROR_INVALID_VALUE;
    }
    int r = params->type == CU_GRAPH_NODE_TYPE_KERNEL /* these parameters come without attributes */
                ? rt_kernel_attributes_copy(&params->kernel, &n->params.kernel)
                : CUDA_SUCCESS;
    if (r) {
        rt_params_finish(params);
        return r;
    }
    return replace(b, n, params) ? CUDA_SUCCESS : rt_exec_body_build(b);
}

int rt_exec_enable(struct rt_node *n, bool enabled)
{
    if (n->disabled == !enabled)
        return CUDA_SUCCESS;
    n->disabled = !enabled;
    return rt_exec_body_build(rt_exec_body_of(n));
}

static bool same_dependencies(const struct rt_node *a, const struct rt_node *b,
                              struct rt_node **pairs)
{
    if (a->in.count != b->in.count)
        return false;
    for (uint32_t i = 0; i < b->in.count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < a->in.count && !found; k++)
            found = a->in.at[k].node == pairs[b->in.at[i].node->waiting] &&
                    rt_edge_data_equal(&a->in.at[k].data, &b->in.at[i].data);
        if (!found)
            return false;
    }
    return true;
}

/* Says what differs: at a node, or NULL. */
static int differ(CUgraphExecUpdateResultInfo *why, CUgraphExecUpdateResult result,
                  const struct rt_node *mine)
{
    *why = (CUgraphExecUpdateResultInfo) { .result = result,
                                           .errorNode = mine ? mine->original : NULL };
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static int compare_node(const struct rt_exec_body *b, const struct rt_node *mine,
                        const struct rt_node *from, CUgraphExecUpdateResultInfo *why);

/* Compares two graphs, first their structure: one of a body, and another. Nodes are paired in the
 * order in which they were made. */
static int compare(const struct rt_exec_body *b, const struct rt_graph *g,
                   const struct rt_graph *from, CUgraphExecUpdateResultInfo *why)
{
    uint32_t i = 0;
    int r = CUDA_SUCCESS;
    if (g->count != from->count)
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL);
    struct rt_node **pairs = malloc((g->count + 1) * sizeof(struct rt_node *));
    if (!pairs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        pairs[i++] = n;
    i = 0;
    gm_list_for_each (n, &from->nodes, struct rt_node, link)
        n->waiting = i++;
    gm_list_for_each (n, &from->nodes, struct rt_node, link) {
        const struct rt_node *mine = pairs[n->waiting];
        if (r == CUDA_SUCCESS && !same_dependencies(mine, n, pairs))
            r = differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                       n->in.count > mine->in.count ? NULL : mine);
    }
    gm_list_for_each (n, &from->nodes, struct rt_node, link)
        r = r ? r : compare_node(b, pairs[n->waiting], n, why);
    free(pairs);
    return r;
}

/* Whether the memory is the same. A graph's memory belongs to its nodes for good, and the driver
 * does not accept other memory in an update. */
static bool same_memory(const struct rt_params *a, const struct rt_params *b)
{
    return (a->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && a->type != CU_GRAPH_NODE_TYPE_MEM_FREE) ||
           a->memory.memory == b->memory.memory;
}

static struct rt_conditional_run *run_of(const struct rt_exec_body *b, const struct rt_node *n)
{
    struct rt_conditional_run *run = b->conditionals;
    while (run->node != &n->params.conditional)
        run = run->next;
    return run;
}

static int compare_bodies(const struct rt_conditional_run *mine, const struct rt_conditional *from,
                          CUgraphExecUpdateResultInfo *why)
{
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < mine->count && r == CUDA_SUCCESS; i++)
        r = compare(mine->bodies[i], mine->bodies[i]->graph, from->bodies[i], why);
    return r;
}

static int compare_node(const struct rt_exec_body *b, const struct rt_node *mine,
                        const struct rt_node *from, CUgraphExecUpdateResultInfo *why)
{
    const struct rt_conditional *c = &mine->params.conditional;
    if (mine->params.type != from->params.type)
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, mine);
    if (!same_device(&mine->params, &from->params))
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, mine);
    if (mine->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return c->kind == from->params.conditional.kind &&
                       c->count == from->params.conditional.count
                   ? compare_bodies(run_of(b, mine), &from->params.conditional, why)
                   : differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, mine);
    if (!same_memory(&mine->params, &from->params))
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR, mine);
    return mine->params.type == CU_GRAPH_NODE_TYPE_GRAPH
               ? compare(b, mine->params.child, from->params.child, why)
               : CUDA_SUCCESS;
}

static int assign_all(struct rt_exec_body *b, struct rt_graph *g, const struct rt_graph *from);

/* Gives a conditional node the other's handle, and its bodies the parameters of the other's. */
static int assign_conditional(struct rt_exec_body *b, struct rt_node *mine,
                              const struct rt_conditional *from)
{
    struct rt_conditional_run *run = run_of(b, mine);
    int r = CUDA_SUCCESS;
    rt_condition_unref(run->condition);
    run->condition = rt_condition_ref(from->condition);
    for (unsigned i = 0; i < run->count && r == CUDA_SUCCESS; i++)
        r = assign_all(run->bodies[i], run->bodies[i]->graph, from->bodies[i]);
    return r;
}

/* Called after compare(). */
static int assign(struct rt_exec_body *b, struct rt_graph *g, const struct rt_graph *from,
                  bool *rebuild)
{
    struct gm_list *at = g->nodes.next;
    int r = CUDA_SUCCESS;
    gm_list_for_each (n, &from->nodes, struct rt_node, link) {
        struct rt_node *mine = gm_list_entry(at, struct rt_node, link);
        struct rt_params params;
        at = at->next;
        if (n->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
            r = assign(b, mine->params.child, n->params.child, rebuild);
        else if (n->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            r = assign_conditional(b, mine, &n->params.conditional);
        else if ((r = rt_params_clone(&params, &n->params)) == CUDA_SUCCESS &&
                 !replace(b, mine, &params))
            *rebuild = true;
        if (r)
            break;
    }
    return r;
}

static int assign_all(struct rt_exec_body *b, struct rt_graph *g, const struct rt_graph *from)
{
    bool rebuild = false;
    int r = assign(b, g, from, &rebuild);
    return r || !rebuild ? r : rt_exec_body_build(b);
}

int rt_exec_set_child(struct rt_node *n, const struct rt_graph *from)
{
    CUgraphExecUpdateResultInfo why;
    if (n->params.type != CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_exec_body *b = rt_exec_body_of(n);
    int r = compare(b, n->params.child, from, &why);
    return r ? r : assign_all(b, n->params.child, from);
}

int rt_exec_update(struct rt_exec *e, const struct rt_graph *from, CUgraphExecUpdateResultInfo *why)
{
    struct rt_exec_body *b = e->body;
    *why = (CUgraphExecUpdateResultInfo) { .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
    int r = compare(b, b->graph, from, why);
    if (r == CUDA_SUCCESS && b->whole)
        r = rt_whole_replace(from, &b->whole);
    r = r ? r : assign_all(b, b->graph, from);
    return r || !b->whole ? r : rt_whole_check(b);
}
