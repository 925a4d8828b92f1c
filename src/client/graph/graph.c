/*
 * Nodes and edges, and graphs that belong to nodes. Both nodes of an edge list it, in the order in
 * which edges were added. The program gets them back in that order.
 */
#include "client/graph/memory.h"
#include "client/graph/object.h"

#include <stdlib.h>
#include <string.h>

/* --- edges ------------------------------------------------------------------------------------ */

static bool edges_room(struct rt_edges *e)
{
    if (e->count < e->capacity)
        return true;
    uint32_t capacity = e->capacity ? e->capacity * 2 : 4;
    struct rt_edge *grown = realloc(e->at, capacity * sizeof(*grown));
    if (!grown)
        return false;
    e->at = grown;
    e->capacity = capacity;
    return true;
}

static struct rt_edge *edges_find(const struct rt_edges *e, const struct rt_node *node,
                                  const CUgraphEdgeData *data)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (e->at[i].node == node && (!data || rt_edge_data_equal(&e->at[i].data, data)))
            return &e->at[i];
    return NULL;
}

static void edges_drop(struct rt_edges *e, struct rt_edge *which)
{
    uint32_t i = (uint32_t)(which - e->at);
    memmove(which, which + 1, (e->count - i - 1) * sizeof(*which));
    e->count--;
}

bool rt_edge_data_ok(const CUgraphEdgeData *data)
{
    static const unsigned char none[sizeof(data->reserved)];
    return data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data->to_port == 0 &&
           data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
           memcmp(data->reserved, none, sizeof(none)) == 0;
}

int rt_edge_add(struct rt_node *from, struct rt_node *to, const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData plain;
    data = data ? data : &plain;
    if (from->graph != to->graph || from == to || !rt_edge_data_ok(data) ||
        edges_find(&to->in, from, data))
        return CUDA_ERROR_INVALID_VALUE;
    if (!edges_room(&from->out) || !edges_room(&to->in))
        return CUDA_ERROR_OUT_OF_MEMORY;
    from->out.at[from->out.count++] = (struct rt_edge) { to, *data };
    to->in.at[to->in.count++] = (struct rt_edge) { from, *data };
    return CUDA_SUCCESS;
}

int rt_edge_remove(struct rt_node *from, struct rt_node *to, const CUgraphEdgeData *data)
{
    struct rt_edge *in = edges_find(&to->in, from, data);
    if (!in)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_edge *out = edges_find(&from->out, to, &in->data);
    edges_drop(&to->in, in);
    if (out)
        edges_drop(&from->out, out);
    return CUDA_SUCCESS;
}

static void node_unlink(struct rt_node *n)
{
    while (n->in.count)
        (void)rt_edge_remove(n->in.at[n->in.count - 1].node, n, &n->in.at[n->in.count - 1].data);
    while (n->out.count)
        (void)rt_edge_remove(n, n->out.at[n->out.count - 1].node,
                             &n->out.at[n->out.count - 1].data);
}

/* --- nodes ------------------------------------------------------------------------------------ */

void rt_node_destroy(struct rt_node *n)
{
    node_unlink(n);
    gm_list_remove(&n->link);
    n->graph->count--;
    free(n->in.at);
    free(n->out.at);
    rt_params_finish(&n->params);
    rt_object_release(&rt_nodes, &n->object);
}

int rt_node_create(struct rt_graph *g, struct rt_params *params, const CUgraphNode *dependencies,
                   const CUgraphEdgeData *edges, size_t count, struct rt_node **out)
{
    struct rt_node *n = rt_object_take(&rt_nodes);
    if (!n) {
        rt_params_finish(params);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    n->graph = g;
    n->params = *params;
    if (n->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
        n->params.child->parent = n;
    for (unsigned i = 0;
         n->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->params.conditional.count; i++)
        n->params.conditional.bodies[i]->parent = n;
    gm_list_append(&g->nodes, &n->link);
    g->count++;
    rt_object_publish(&n->object);
    int r = count && !dependencies ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        struct rt_node *from = rt_node_find(dependencies[i]);
        r = from ? rt_edge_add(from, n, edges ? &edges[i] : NULL) : CUDA_ERROR_INVALID_VALUE;
    }
    if (r)
        rt_node_destroy(n);
    else
        *out = n;
    return r;
}

/* --- graphs ----------------------------------------------------------------------------------- */

int rt_graph_create(struct rt_graph **out)
{
    struct rt_graph *g = rt_object_take(&rt_graphs);
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gm_list_init(&g->nodes);
    rt_object_publish(&g->object);
    *out = g;
    return CUDA_SUCCESS;
}

void rt_graph_destroy(struct rt_graph *g)
{
    if (!g)
        return;
    while (!gm_list_empty(&g->nodes))
        rt_node_destroy(gm_list_entry(g->nodes.prev, struct rt_node, link));
    rt_graph_release_all(g);
    rt_conditions_forget(g);
    rt_object_release(&rt_graphs, &g->object);
}

/* Copies a node's edges. `map[i]` is the copy of the node whose `waiting` is i. */
static int clone_edges(const struct rt_node *n, struct rt_node **map, bool incoming)
{
    const struct rt_edges *from = incoming ? &n->in : &n->out;
    struct rt_edges *to = incoming ? &map[n->waiting]->in : &map[n->waiting]->out;
    if (from->count == 0)
        return CUDA_SUCCESS;
    to->at = malloc(from->count * sizeof(*to->at));
    if (!to->at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->capacity = to->count = from->count;
    for (uint32_t i = 0; i < from->count; i++)
        to->at[i] = (struct rt_edge) { map[from->at[i].node->waiting], from->at[i].data };
    return CUDA_SUCCESS;
}

static int clone_nodes(const struct rt_graph *g, struct rt_graph *copy, struct rt_node **map)
{
    uint32_t i = 0;
    int r = CUDA_SUCCESS;
    gm_list_for_each (n, &g->nodes, struct rt_node, link) {
        struct rt_params params;
        r = rt_params_clone(&params, &n->params);
        r = r ? r : rt_node_create(copy, &params, NULL, NULL, 0, &map[i]);
        if (r)
            return r;
        map[i]->original = rt_node_handle(n);
        map[i]->disabled = n->disabled;
        n->waiting = i++;
    }
    gm_list_for_each (n, &g->nodes, struct rt_node, link) {
        r = clone_edges(n, map, true);
        r = r ? r : clone_edges(n, map, false);
        if (r)
            break;
    }
    return r;
}

/* Drops a copy that is not finished. Its edges have one direction only, so they are dropped without
 * a look at the other. */
static void clone_abandon(struct rt_graph *copy)
{
    gm_list_for_each (n, &copy->nodes, struct rt_node, link)
        n->in.count = n->out.count = 0;
    rt_graph_destroy(copy);
}

int rt_graph_clone(const struct rt_graph *g, struct rt_graph **out)
{
    struct rt_graph *copy;
    int r = rt_graph_create(&copy);
    if (r)
        return r;
    struct rt_node **map = calloc(g->count + 1, sizeof(struct rt_node *));
    r = map ? clone_nodes(g, copy, map) : CUDA_ERROR_OUT_OF_MEMORY;
    free(map);
    r = r ? r : rt_graph_retain_all(copy, g);
    if (r) {
        clone_abandon(copy);
        return r;
    }
    copy->original = rt_graph_handle(g);
    *out = copy;
    return CUDA_SUCCESS;
}

bool rt_graph_sort(const struct rt_graph *g, struct rt_node **out)
{
    uint32_t done = 0, ready = 0;
    gm_list_for_each (n, &g->nodes, struct rt_node, link) {
        n->waiting = n->in.count;
        if (n->waiting == 0)
            out[ready++] = n;
    }
    for (; done < ready; done++) {
        const struct rt_node *n = out[done];
        for (uint32_t i = 0; i < n->out.count; i++)
            if (--n->out.at[i].node->waiting == 0)
                out[ready++] = n->out.at[i].node;
    }
    return done == g->count;
}

bool rt_graph_frees(const struct rt_graph *g, CUdeviceptr address)
{
    unsigned allocations = 0, frees = 0;
    if (g)
        gm_list_for_each (n, &g->nodes, struct rt_node, link) {
            bool same = n->params.memory.described.dptr == address;
            allocations += same && n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
            frees += same && n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
        }
    return frees && frees >= allocations;
}

/* --- what nodes have, graphs of their own among it ---------------------------------------------
 */

static void conditional_finish(struct rt_conditional *c)
{
    for (unsigned i = 0; c->bodies && i < c->count; i++)
        rt_graph_destroy(c->bodies[i]);
    free(c->bodies);
    free(c->handles);
    if (!c->copy)
        c->condition->nodes--;
    rt_condition_unref(c->condition);
}

/* Copies a conditional node for a graph that is launched. Other graphs with such nodes are not
 * copied. */
static int conditional_clone(struct rt_conditional *to, const struct rt_conditional *from)
{
    *to = *from;
    to->copy = true;
    to->handles = NULL;
    to->bodies = calloc(from->count, sizeof(struct rt_graph *));
    (void)rt_condition_ref(to->condition);
    int r = to->bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < from->count && r == CUDA_SUCCESS; i++)
        r = rt_graph_clone(from->bodies[i], &to->bodies[i]);
    if (r)
        conditional_finish(to);
    return r;
}

int rt_params_clone(struct rt_params *p, const struct rt_params *from)
{
    *p = *from;
    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return rt_kernel_clone(&p->kernel, &from->kernel);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return rt_graph_clone(from->child, &p->child);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return conditional_clone(&p->conditional, &from->conditional);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return rt_memops_clone(&p->memops, &from->memops);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        rt_graph_memory_ref(p->memory.memory);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

void rt_params_finish(struct rt_params *p)
{
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL)
        rt_kernel_finish(&p->kernel);
    else if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
        rt_graph_destroy(p->child);
    else if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        conditional_finish(&p->conditional);
    else if (p->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        rt_memops_finish(&p->memops);
    else if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        rt_graph_memory_unref(p->memory.memory);
}
