/*
 * An executable graph that is destroyed while it runs waits among the dead for its end; they are
 * looked through whenever one is made or destroyed.
 */
#include "client/graph/exec.h"

#include <stdlib.h>

#include "client/graph/memory.h"
#include "client/stream/event.h"
#include "client/stream/hostfunc.h"

struct rt_table rt_execs = RT_TABLE(RT_KIND_EXEC, struct rt_exec);
static struct gm_list dead = { &dead, &dead };

bool rt_exec_idle(const struct rt_exec_body *b)
{
    if ((b->last_seq && !rt_queue_done(rt_session, b->last_number, b->last_seq)) ||
        atomic_load(&b->running))
        return false;
    for (const struct rt_conditional_run *run = b->conditionals; run; run = run->next)
        for (unsigned i = 0; i < run->count; i++)
            if (run->bodies[i] && !rt_exec_idle(run->bodies[i]))
                return false;
    return true;
}

/* --- making and ending one -------------------------------------------------------------------- */

void rt_exec_body_free(struct rt_exec_body *b)
{
    if (!b)
        return;
    rt_block_finish(b);
    rt_order_finish(b);
    rt_graph_destroy(b->graph);
    free(b->order);
    free(b->index);
    free(b);
}

static void reap(void)
{
    gm_list_for_each_safe (b, &dead, struct rt_exec_body, link) {
        if (!rt_exec_idle(b))
            continue;
        gm_list_remove(&b->link);
        rt_exec_body_free(b);
    }
}

static uint32_t count_nodes(const struct rt_graph *g)
{
    uint32_t n = g->count;
    gm_list_for_each (node, &g->nodes, struct rt_node, link)
        if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
            n += count_nodes(node->params.child);
    return n;
}

static int compare_originals(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct rt_by_original *)a)->original;
    uintptr_t y = (uintptr_t)((const struct rt_by_original *)b)->original;
    return (x > y) - (x < y);
}

int rt_exec_body_create(const struct rt_graph *g, struct rt_exec_body **out)
{
    struct rt_exec_body *b = calloc(1, sizeof(*b));
    int r = b ? rt_graph_clone(g, &b->graph) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        free(b);
        return r;
    }
    uint32_t count = count_nodes(b->graph);
    b->graph->inner = true;
    b->order = malloc((count + 1) * sizeof(struct rt_node *));
    b->index = malloc((count + 1) * sizeof(*b->index));
    r = b->order && b->index ? rt_order_make(b) : CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : rt_block_build(b);
    if (r) {
        rt_exec_body_free(b);
        return r;
    }
    qsort(b->index, b->index_count, sizeof(*b->index), compare_originals);
    *out = b;
    return CUDA_SUCCESS;
}

int rt_exec_create(const struct rt_graph *g, uint64_t flags, struct rt_exec **out)
{
    reap();
    struct rt_exec *e = rt_object_take(&rt_execs);
    int r = e ? rt_exec_body_create(g, &e->body) : CUDA_ERROR_OUT_OF_MEMORY;
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

/* --- launches --------------------------------------------------------------------------------- */

/* What could fail is looked at before anything is in the ring. */
static int check_handles(const struct rt_exec_body *b)
{
    for (uint32_t i = 0; i < b->functions_count; i++)
        if (!rt_function_find(b->functions[i]))
            return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < b->steps_count; i++)
        if ((b->steps[i].kind == RT_STEP_RECORD_EVENT || b->steps[i].kind == RT_STEP_WAIT_EVENT) &&
            !rt_event_exists(b->steps[i].event))
            return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

/* What is allocated already cannot be allocated again, unless the graph was made so that it frees
 * it first. What has gone with its context cannot be used at all. */
static int check_memory(const struct rt_exec_body *b, uint64_t flags)
{
    bool again = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    for (uint32_t i = 0; b->memory && i < b->order_count; i++) {
        const struct rt_params *p = &b->order[i]->params;
        bool allocates = p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        if ((allocates || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE) &&
            (rt_graph_memory_lost(p->memory.memory) ||
             (allocates && !again && rt_graph_memory_live(p->memory.memory))))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static void use_memory(struct rt_exec_body *b)
{
    for (uint32_t i = 0; b->memory && i < b->order_count; i++) {
        const struct rt_params *p = &b->order[i]->params;
        if (p->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && p->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
            continue;
        rt_graph_memory_use(p->memory.memory, b->last_number, b->last_seq);
        rt_graph_memory_set_live(p->memory.memory, p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    }
}

static int wait_event(CUevent event, struct rt_stream *st)
{
    uint32_t number;
    uint64_t seq;
    int r = rt_event_point(event, &number, &seq);
    return r || !seq ? r : rt_queue_put_wait(st, number, seq);
}

/* The streams of a launch; those behind the first are the context's, for all its graphs. */
struct branches {
    struct rt_stream *at[RT_GRAPH_BRANCHES];
    bool elsewhere; /* the first of them is not the launch's stream, whose device is another one */
    uint32_t start_number; /* where the launch begins */
    uint64_t start_seq;
};

static int take_branch(struct rt_context *c, uint32_t l, struct rt_stream **out)
{
    CUstream *handle = &c->graph_branches[l];
    *out = rt_object_find(&rt_streams, *handle);
    if (*out)
        return CUDA_SUCCESS;
    int r = rt_stream_create(c, RT_ROLE_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 0, out);
    if (r == CUDA_SUCCESS)
        *handle = (CUstream)rt_object_handle(&rt_streams, &(*out)->object);
    return r;
}

static int take_branches(const struct rt_exec_body *b, struct rt_stream *st, struct branches *out)
{
    int r = CUDA_SUCCESS;
    out->at[0] = st;
    out->elsewhere = false;
    for (uint32_t l = 0; l < b->branches && r == CUDA_SUCCESS; l++) {
        bool here = b->on[l].device < 0 || b->on[l].device == st->context->device;
        struct rt_context *c = here ? st->context : rt_context_find(b->on[l].context, true);
        out->elsewhere |= l == 0 && !here;
        if (!c)
            r = CUDA_ERROR_INVALID_CONTEXT;
        else if (l != 0 || !here)
            r = take_branch(c, l, &out->at[l]);
    }
    return r;
}

static int put_memops(const struct rt_memops *m, struct rt_stream *st)
{
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < m->count && r == CUDA_SUCCESS; i++)
        r = rt_memop_put(st, &m->ops[i]);
    return r;
}

static int put_step(struct rt_exec_body *b, const struct rt_step *s,
                    const struct branches *branches)
{
    struct rt_stream *st = branches->at[s->branch];
    switch (s->kind) {
    case RT_STEP_START:
        return rt_queue_put_wait(st, branches->start_number, branches->start_seq);
    case RT_STEP_WAIT:
        return rt_queue_put_wait(st, branches->at[b->items[s->item].branch]->number,
                                 b->marks[s->item]);
    case RT_STEP_MARK:
        b->marks[s->item] = st->number < TP_STREAMS ? rt_queue_issued(rt_session, st->number) : 0;
        return CUDA_SUCCESS;
    case RT_STEP_CALL:
        return rt_hostfunc_put(st, s->fn, s->arg);
    case RT_STEP_RECORD_EVENT:
        return rt_event_put(s->event, st);
    case RT_STEP_WAIT_EVENT:
        return wait_event(s->event, st);
    case RT_STEP_MEMOPS:
        return put_memops(s->memops, st);
    case RT_STEP_CONDITION:
        return rt_conditional_put(s->condition, st);
    default:
        return rt_queue_put_run(st, b->block + s->at, s->size);
    }
}

/* `whole`: values of conditions are as at the beginning. */
static int launch(struct rt_exec_body *b, uint64_t flags, struct rt_stream *st, bool whole)
{
    struct branches branches;
    int r = b->broken ? CUDA_ERROR_OUT_OF_MEMORY : check_handles(b);
    r = r ? r : check_memory(b, flags);
    r = r ? r : rt_conditional_ready(b, st->context);
    if (r == CUDA_SUCCESS && b->calls)
        r = rt_hostfunc_ready();
    r = r ? r : take_branches(b, st, &branches);
    r = r ? r : rt_queue_begin(st);
    if (r)
        return r;
    branches.start_number = st->number;
    if (st->number >= TP_STREAMS)
        r = CUDA_ERROR_INVALID_HANDLE; /* destroyed by another thread just now */
    else if (b->last_seq)
        r = rt_queue_put_wait(st, b->last_number, b->last_seq);
    if (r == CUDA_SUCCESS && whole)
        r = rt_conditional_begin(b, st);
    branches.start_seq = r ? 0 : rt_queue_issued(rt_session, st->number);
    if (r == CUDA_SUCCESS && branches.elsewhere)
        r = rt_queue_put_wait(branches.at[0], branches.start_number, branches.start_seq);
    for (uint32_t i = 0; i < b->steps_count && r == CUDA_SUCCESS; i++)
        r = put_step(b, &b->steps[i], &branches);
    if (r == CUDA_SUCCESS && branches.elsewhere)
        r = rt_queue_put_wait(st, branches.at[0]->number,
                              rt_queue_issued(rt_session, branches.at[0]->number));
    if (st->number < TP_STREAMS) {
        b->last_number = st->number;
        b->last_seq = rt_queue_issued(rt_session, st->number);
    }
    rt_queue_end();
    if (r == CUDA_SUCCESS)
        use_memory(b);
    return r;
}

int rt_exec_launch(struct rt_exec *e, struct rt_stream *st)
{
    return launch(e->body, e->flags, st, true);
}

int rt_exec_body_launch(struct rt_exec_body *b, struct rt_stream *st)
{
    return launch(b, 0, st, false);
}

/* --- changes ---------------------------------------------------------------------------------- */

struct rt_node *rt_exec_node(const struct rt_exec *e, CUgraphNode original)
{
    const struct rt_by_original key = { original, NULL };
    const struct rt_by_original *found =
        original
            ? bsearch(&key, e->body->index, e->body->index_count, sizeof(key), compare_originals)
            : NULL;
    return found ? found->node : NULL;
}

/* The node has got `params`; false: the block must be built again. */
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

/* A kernel stays on its device: its branch is there. */
static bool same_device(const struct rt_params *a, const struct rt_params *b)
{
    return a->type != CU_GRAPH_NODE_TYPE_KERNEL ||
           rt_kernel_device(&a->kernel) == rt_kernel_device(&b->kernel);
}

/* As documented: rows of bytes may become longer, rectangles stay what they are. */
static bool same_rectangle(const struct rt_params *a, const struct rt_params *b)
{
    const struct wire_rec_fill *x = &a->fill.record, *y = &b->fill.record;
    return (x->height <= 1 && y->height <= 1) ||
           (x->width == y->width && x->height == y->height && x->element_size == y->element_size);
}

int rt_exec_set(struct rt_exec *e, struct rt_node *n, struct rt_params *params)
{
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
    int r = params->type == CU_GRAPH_NODE_TYPE_KERNEL /* whose parameters come without attributes */
                ? rt_kernel_attributes_copy(&params->kernel, &n->params.kernel)
                : CUDA_SUCCESS;
    if (r) {
        rt_params_finish(params);
        return r;
    }
    return replace(e->body, n, params) ? CUDA_SUCCESS : rt_block_build(e->body);
}

int rt_exec_enable(struct rt_exec *e, struct rt_node *n, bool enabled)
{
    if (n->disabled == !enabled)
        return CUDA_SUCCESS;
    n->disabled = !enabled;
    return rt_block_build(e->body);
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

static int differ(CUgraphExecUpdateResultInfo *why, CUgraphExecUpdateResult result,
                  const struct rt_node *mine, const struct rt_node *from)
{
    *why = (CUgraphExecUpdateResultInfo) { .result = result,
                                           .errorNode = mine ? mine->original : NULL,
                                           .errorFromNode = from ? rt_node_handle(from) : NULL };
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static int compare_node(const struct rt_node *mine, const struct rt_node *from,
                        CUgraphExecUpdateResultInfo *why);

/* Nodes are paired in the order they were made in. */
static int compare(const struct rt_graph *g, const struct rt_graph *from,
                   CUgraphExecUpdateResultInfo *why)
{
    uint32_t i = 0;
    int r = CUDA_SUCCESS;
    if (g->count != from->count)
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
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
        r = compare_node(mine, n, why);
        if (r == CUDA_SUCCESS && !same_dependencies(mine, n, pairs))
            r = differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, mine, n);
        if (r)
            break;
    }
    free(pairs);
    return r;
}

/* Memory of a graph is its nodes' for good: the driver takes no other for an update. */
static bool same_memory(const struct rt_params *a, const struct rt_params *b)
{
    return (a->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && a->type != CU_GRAPH_NODE_TYPE_MEM_FREE) ||
           a->memory.memory == b->memory.memory;
}

static int compare_node(const struct rt_node *mine, const struct rt_node *from,
                        CUgraphExecUpdateResultInfo *why)
{
    if (mine->params.type != from->params.type)
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, mine, from);
    if (!same_device(&mine->params, &from->params))
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, mine, from);
    if (mine->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) /* its handle is another graph's */
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, mine, from);
    if (!same_memory(&mine->params, &from->params))
        return differ(why, CU_GRAPH_EXEC_UPDATE_ERROR, mine, NULL);
    return mine->params.type == CU_GRAPH_NODE_TYPE_GRAPH
               ? compare(mine->params.child, from->params.child, why)
               : CUDA_SUCCESS;
}

/* After compare(). */
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
        else if ((r = rt_params_clone(&params, &n->params)) == CUDA_SUCCESS &&
                 !replace(b, mine, &params))
            *rebuild = true;
        if (r)
            break;
    }
    return r;
}

static int update(struct rt_exec_body *b, struct rt_graph *g, const struct rt_graph *from,
                  CUgraphExecUpdateResultInfo *why)
{
    bool rebuild = false;
    int r = compare(g, from, why);
    r = r ? r : assign(b, g, from, &rebuild);
    return r || !rebuild ? r : rt_block_build(b);
}

int rt_exec_set_child(struct rt_exec *e, struct rt_node *n, const struct rt_graph *from)
{
    CUgraphExecUpdateResultInfo why;
    if (n->params.type != CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    return update(e->body, n->params.child, from, &why);
}

int rt_exec_update(struct rt_exec *e, const struct rt_graph *from, CUgraphExecUpdateResultInfo *why)
{
    *why = (CUgraphExecUpdateResultInfo) { .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
    return update(e->body, e->body->graph, from, why);
}
