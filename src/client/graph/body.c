/*
 * Bodies of executable graphs: how they are made, launched and ended. A conditional node has bodies
 * of its own.
 */
#include "client/graph/exec.h"

#include <stdlib.h>

#include "client/graph/memory.h"
#include "client/graph/whole.h"
#include "client/stream/event.h"
#include "client/stream/hostfunc.h"

bool rt_exec_body_idle(const struct rt_exec_body *b)
{
    if ((b->last_seq && !rt_queue_done(rt_session, b->last_number, b->last_seq)) ||
        atomic_load(&b->running))
        return false;
    for (const struct rt_conditional_run *run = b->conditionals; run; run = run->next)
        for (unsigned i = 0; i < run->count; i++)
            if (run->bodies[i] && !rt_exec_body_idle(run->bodies[i]))
                return false;
    return true;
}

/* --- launches --------------------------------------------------------------------------------- */

/* Checks what could fail, before anything is in the ring. */
static int check_handles(const struct rt_exec_body *b)
{
    for (uint32_t i = 0; i < b->functions_count; i++)
        if (!rt_function_find(b->functions[i]))
            return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < b->steps_count; i++)
        if ((b->steps[i].kind == RT_STEP_RECORD_EVENT || b->steps[i].kind == RT_STEP_WAIT_EVENT) &&
            !rt_event_exists(b->steps[i].event))
            return CUDA_ERROR_INVALID_HANDLE;
    int r = CUDA_SUCCESS;
    for (const struct rt_conditional_run *run = b->single ? b->conditionals : NULL; run && !r;
         run = run->next)
        for (unsigned i = 0; i < run->count && !r; i++)
            r = check_handles(run->bodies[i]);
    return r;
}

/* Checks the memory of the graph. What is allocated cannot be allocated again, unless the graph was
 * made to free it first. What has ended with its context cannot be used at all. */
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

/* The streams of a launch. All but the first belong to the context, for all of its graphs. */
struct branches {
    struct rt_stream *at[RT_GRAPH_BRANCHES];
    bool elsewhere;        /* the first is not the launch's stream, which is on another device */
    uint32_t start_number; /* the place at which the launch begins */
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

static int put_steps(struct rt_exec_body *b, const struct branches *branches)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < b->steps_count && r == CUDA_SUCCESS; i++)
        r = put_step(b, &b->steps[i], branches);
    return r;
}

int rt_exec_body_launch(struct rt_exec_body *b, uint64_t flags, struct rt_stream *st,
                        bool outermost)
{
    struct branches branches;
    int r = b->broken ? CUDA_ERROR_OUT_OF_MEMORY : check_handles(b);
    r = r ? r : check_memory(b, flags);
    if (r == CUDA_SUCCESS && !b->whole)
        r = rt_conditional_ready(b, st->context);
    if (r == CUDA_SUCCESS && b->calls && !b->whole)
        r = rt_hostfunc_ready();
    r = r ? r : take_branches(b, st, &branches);
    r = r ? r : rt_queue_begin(st);
    if (r)
        return r;
    branches.start_number = st->number;
    if (st->number >= TP_STREAMS)
        r = CUDA_ERROR_INVALID_HANDLE; /* another thread has just destroyed the stream */
    else if (b->last_seq)
        r = rt_queue_put_wait(st, b->last_number, b->last_seq);
    if (r == CUDA_SUCCESS && outermost && !b->whole)
        r = rt_conditional_begin(b, st);
    branches.start_seq = r ? 0 : rt_queue_issued(rt_session, st->number);
    if (r == CUDA_SUCCESS && branches.elsewhere)
        r = rt_queue_put_wait(branches.at[0], branches.start_number, branches.start_seq);
    if (r == CUDA_SUCCESS)
        r = b->whole ? rt_whole_put(b, branches.at[0]) : put_steps(b, &branches);
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

/* Launches a body of a conditional node. The values of conditions stay as they are. */
static int launch_inner(struct rt_exec_body *b, struct rt_stream *st)
{
    return rt_exec_body_launch(b, 0, st, false);
}

/* --- conditional nodes ------------------------------------------------------------------------ */

static void run_free(struct rt_conditional_run *run)
{
    for (unsigned i = 0; run->bodies && i < run->count; i++)
        rt_exec_body_free(run->bodies[i]);
    struct rt_stream *st = rt_object_find(&rt_streams, run->stream);
    if (st)
        rt_stream_destroy(st);
    free(run->bodies);
    rt_condition_unref(run->condition);
    free(run);
}

static void free_conditionals(struct rt_exec_body *b)
{
    while (b->conditionals) {
        struct rt_conditional_run *run = b->conditionals;
        b->conditionals = run->next;
        run_free(run);
    }
}

static int add_conditional(struct rt_exec_body *b, const struct rt_conditional *c)
{
    struct rt_conditional_run *run = calloc(1, sizeof(*run));
    if (!run)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *run =
        (struct rt_conditional_run) { .owner = b,
                                      .node = c,
                                      .launch = launch_inner,
                                      .condition = rt_condition_ref(c->condition),
                                      .kind = c->kind,
                                      .count = c->count,
                                      .bodies = calloc(c->count, sizeof(struct rt_exec_body *)) };
    int r = run->bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < c->count && r == CUDA_SUCCESS; i++)
        r = rt_exec_body_create(c->bodies[i], b, &run->bodies[i]);
    if (r) {
        run_free(run);
        return r;
    }
    run->next = b->conditionals;
    b->conditionals = run;
    return CUDA_SUCCESS;
}

/* They stay as they are when other nodes change. */
static int add_conditionals(struct rt_exec_body *b)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < b->order_count && r == CUDA_SUCCESS; i++)
        if (b->order[i]->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            r = add_conditional(b, &b->order[i]->params.conditional);
    return r;
}

int rt_exec_body_build(struct rt_exec_body *b)
{
    int r = rt_block_build(b, rt_exec_body_idle(b));
    if (r == CUDA_SUCCESS && b->whole)
        r = rt_whole_check(b);
    b->broken = r != CUDA_SUCCESS;
    return r;
}

/* --- making and ending one -------------------------------------------------------------------- */

void rt_exec_body_free(struct rt_exec_body *b)
{
    if (!b)
        return;
    free_conditionals(b);
    rt_block_finish(b);
    rt_order_finish(b);
    rt_graph_destroy(b->graph);
    free(b->whole);
    free(b->order);
    free(b->index);
    free(b);
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

/* The nodes of a copy of a copy stand for the program's nodes. */
static void inherit_originals(struct rt_graph *copy, const struct rt_graph *from)
{
    struct gm_list *at = copy->nodes.next;
    gm_list_for_each (n, &from->nodes, struct rt_node, link) {
        struct rt_node *mine = gm_list_entry(at, struct rt_node, link);
        at = at->next;
        mine->original = n->original;
        if (n->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
            inherit_originals(mine->params.child, n->params.child);
        for (unsigned i = 0;
             n->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->params.conditional.count;
             i++)
            inherit_originals(mine->params.conditional.bodies[i], n->params.conditional.bodies[i]);
    }
}

int rt_exec_body_create(struct rt_graph *g, const struct rt_exec_body *outer,
                        struct rt_exec_body **out)
{
    struct rt_exec_body *b = calloc(1, sizeof(*b));
    int r = b ? rt_graph_clone(g, &b->graph) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS && !outer && rt_whole_wanted(g))
        r = rt_whole_create(g, &b->whole);
    if (r) {
        if (b)
            rt_graph_destroy(b->graph);
        free(b);
        return r;
    }
    b->single = b->whole || (outer && outer->single);
    if (outer)
        inherit_originals(b->graph, g);
    uint32_t count = count_nodes(b->graph);
    b->graph->body = b;
    b->order = malloc((count + 1) * sizeof(struct rt_node *));
    b->index = malloc((count + 1) * sizeof(*b->index));
    r = b->order && b->index ? rt_order_make(b) : CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : add_conditionals(b);
    r = r ? r : rt_exec_body_build(b);
    if (r) {
        rt_exec_body_free(b);
        return r;
    }
    qsort(b->index, b->index_count, sizeof(*b->index), compare_originals);
    *out = b;
    return CUDA_SUCCESS;
}

struct rt_node *rt_exec_body_node(const struct rt_exec_body *b, CUgraphNode original)
{
    const struct rt_by_original key = { original, NULL };
    const struct rt_by_original *found =
        original ? bsearch(&key, b->index, b->index_count, sizeof(key), compare_originals) : NULL;
    struct rt_node *n = found ? found->node : NULL;
    for (const struct rt_conditional_run *run = b->conditionals; run && !n; run = run->next)
        for (unsigned i = 0; i < run->count && !n; i++)
            n = rt_exec_body_node(run->bodies[i], original);
    return n;
}

struct rt_exec_body *rt_exec_body_of(const struct rt_node *n)
{
    return rt_graph_outermost(n->graph)->body;
}
