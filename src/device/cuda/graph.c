/*
 * A graph is recorded as a list of steps. Bodies stand in it behind their condition, and the
 * driver's graphs of them are filled after the graph that has the condition: so one stream that
 * captures is enough.
 */
#include "device/cuda/graph.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/admit.h"
#include "device/cuda/capacity.h"
#include "device/cuda/library.h"
#include "device/cuda/settle.h"
#include "device/cuda/stream.h"

#define GRAPHS_MAX 64u /* that a client's list has */
/* How often a client may go to another context while kernels of a graph are loaded. */
#define GOES_MAX 8u

enum step_kind {
    OPERATION,
    CONDITION,
    BODY, /* what follows is in this body of the condition; or behind the condition */
};

struct cuda_step {
    struct gm_list link; /* graph->steps */
    enum step_kind kind;
    union {
        struct {
            struct cuda_op op;   /* its bytes stand behind the step */
            CUfunction function; /* of a launch, where the graph is being made */
        };
        struct {
            struct wire_rec_condition condition; /* without its bodies */
            struct cuda_step *outer;             /* while it is recorded: the condition around it */
            struct cuda_step *end;               /* the last of its BODY steps */
            CUgraph *bodies;                     /* while the graph is being made; the driver's */
        };
        uint32_t body;
    };
};

static struct cuda_step *after(struct cuda_step *s)
{
    return gm_list_entry(s->link.next, struct cuda_step, link);
}

/* --- recording -------------------------------------------------------------------------------- */

/* Under the lock, since an order's thread may look whether the place is in use. */
static void count_in_place(struct dev_client *c, struct cuda_place *p, int more)
{
    pthread_mutex_lock(&c->places_lock);
    p->graphs += (uint32_t)more;
    pthread_mutex_unlock(&c->places_lock);
}

/* The driver's graph is not launched any more; it is destroyed at a safe point. */
static void retire(struct dev_client *c, struct cuda_graph *g)
{
    if (g->made)
        gm_list_append(&c->runs.retired, &g->made->link);
    g->made = NULL;
}

/* Destroys those that were made in this context; NULL: in any. There is a safe point. */
static void destroy_retired(struct dev_client *c, const struct cuda_gpu *g)
{
    gm_list_for_each_safe (m, &c->runs.retired, struct cuda_made, link) {
        if (g && m->exec.gpu != g)
            continue;
        gm_list_remove(&m->link);
        cuda_capacity_graph_destroy(c, &m->exec);
        count_in_place(c, m->place, -1);
        free(m);
    }
}

static void forget(struct dev_client *c, struct cuda_graph *g)
{
    gm_list_remove(&g->link);
    retire(c, g);
    gm_list_for_each_safe (s, &g->steps, struct cuda_step, link) {
        if (s->kind == OPERATION && s->op.kind == CUDA_OP_LAUNCH)
            cuda_library_close(c->dev, s->op.u.launch.library);
        free(s);
    }
    free(g);
}

struct cuda_graph *cuda_graph_find(struct dev_client *c, const struct dev_graph *what)
{
    const uint32_t modules = atomic_load_explicit(&c->runs.modules, memory_order_acquire);
    gm_list_for_each (g, &c->runs.graphs, struct cuda_graph, link) {
        if (g->size != what->size || g->modules != modules || g->handles != what->handles ||
            memcmp(g->bytes, what->records, g->size) != 0)
            continue;
        gm_list_remove(&g->link);
        gm_list_prepend(&c->runs.graphs, &g->link);
        return g;
    }
    return NULL;
}

CUresult cuda_graph_record(struct dev_queue *q, const struct dev_graph *what)
{
    struct cuda_graph *g = calloc(1, sizeof(*g) + what->size);
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gm_list_init(&g->link);
    gm_list_init(&g->steps);
    g->modules = atomic_load_explicit(&q->client->runs.modules, memory_order_acquire);
    g->seq = what->seq;
    g->handles = what->handles;
    g->size = what->size;
    memcpy(g->bytes, what->records, what->size);
    q->recording = (struct cuda_recording) { .graph = g };
    return CUDA_SUCCESS;
}

static struct cuda_step *add_step(struct dev_queue *q, enum step_kind kind, size_t size)
{
    struct cuda_step *s = calloc(1, sizeof(*s) + size);
    if (!s)
        return NULL;
    s->kind = kind;
    gm_list_append(&q->recording.graph->steps, &s->link);
    return s;
}

bool cuda_graph_add(struct dev_queue *q, const struct cuda_op *op, const void *bytes, size_t size)
{
    struct cuda_graph *g = q->recording.graph;
    if (op->kind == CUDA_OP_MARK) /* in the place of a launch that is an error */
        return true;
    struct cuda_step *s = add_step(q, OPERATION, size);
    if (!s)
        return false;
    s->op = *op;
    s->op.bytes = s + 1;
    if (size)
        memcpy(s + 1, bytes, size);
    g->nodes++;
    if (op->kind != CUDA_OP_LAUNCH) {
        g->names_memory = true;
        return true;
    }
    cuda_library_keep(q->client->dev, op->u.launch.library);
    g->prints |= op->u.launch.prints;
    return true;
}

int cuda_graph_condition(struct dev_queue *q, const struct wire_rec_condition *r)
{
    struct cuda_step *s = add_step(q, CONDITION, 0);
    if (!s)
        return GM_CUDA_OUT_OF_MEMORY;
    s->condition = *r;
    s->outer = q->recording.condition;
    q->recording.condition = s;
    q->recording.graph->nodes += 1 + r->bodies;
    return GM_CUDA_SUCCESS;
}

int cuda_graph_body(struct dev_queue *q, uint32_t body)
{
    struct cuda_step *s = add_step(q, BODY, 0), *of = q->recording.condition;
    if (!s)
        return GM_CUDA_OUT_OF_MEMORY;
    s->body = body;
    if (body == of->condition.bodies) {
        of->end = s;
        q->recording.condition = of->outer;
    }
    return GM_CUDA_SUCCESS;
}

/* The longest unused that nobody is to launch. */
static void make_room(struct dev_client *c)
{
    uint32_t count = 0;
    gm_list_for_each_safe (g, &c->runs.graphs, struct cuda_graph, link)
        if (++count >= GRAPHS_MAX && !g->held)
            forget(c, g);
}

struct cuda_graph *cuda_graph_recorded(struct dev_queue *q)
{
    struct cuda_graph *g = q->recording.graph;
    q->recording = (struct cuda_recording) { 0 };
    make_room(q->client);
    gm_list_prepend(&q->client->runs.graphs, &g->link);
    return g;
}

void cuda_graph_drop(struct dev_queue *q)
{
    if (q->recording.graph)
        forget(q->client, q->recording.graph);
    q->recording = (struct cuda_recording) { 0 };
}

void cuda_graphs_finish(struct dev_client *c)
{
    gm_list_for_each_safe (g, &c->runs.graphs, struct cuda_graph, link)
        forget(c, g);
    destroy_retired(c, NULL);
}

/* --- the driver's graph ----------------------------------------------------------------------- */

static bool is_made(const struct dev_queue *q, const struct cuda_graph *g)
{
    const uint32_t memory = atomic_load_explicit(&q->client->runs.memory, memory_order_acquire);
    return g->made && g->made->place == q->place && !cuda_capacity_graph_is_stale(&g->made->exec) &&
           (!g->names_memory || g->made->memory == memory);
}

/* Finds the functions of all launches. False: as cuda_op_find_kernel(), which may have taken the
 * queue to another context meanwhile. */
static bool find_functions(struct dev_queue *q, struct cuda_graph *g)
{
    gm_list_for_each (s, &g->steps, struct cuda_step, link) {
        if (s->kind != OPERATION || s->op.kind != CUDA_OP_LAUNCH)
            continue;
        struct cuda_op_launch l = s->op.u.launch;
        if (!cuda_is_loaded_there(q, l.loaded) && !cuda_op_find_kernel(q, &l))
            return false;
        s->function = l.loaded;
    }
    return true;
}

static CUcontext context_of(const struct dev_queue *q)
{
    return q->place->green ? q->place->context : q->gpu->context;
}

/* Puts a condition behind what the stream has captured. */
static CUresult add_condition(struct dev_queue *q, struct cuda_graph *g, CUgraph graph,
                              struct cuda_step *s)
{
    const struct cuda_driver *api = &q->client->dev->api;
    const struct wire_rec_condition *r = &s->condition;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph into;
    const CUgraphNode *behind;
    const CUgraphEdgeData *edges;
    size_t count;
    CUgraphNode node;
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                 .conditional = { .handle = r->handle,
                                                  .type = (CUgraphConditionalNodeType)r->kind,
                                                  .size = r->bodies,
                                                  .ctx = context_of(q) } };
    if (r->handle == 0 || r->handle > g->handles)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = api->cuStreamGetCaptureInfo_v3(q->learning.into, &status, &id, &into, &behind,
                                                     &edges, &count);
    if (result == CUDA_SUCCESS)
        result = api->cuGraphAddNode_v2(&node, graph, behind, edges, count, &params);
    if (result == CUDA_SUCCESS)
        result = api->cuStreamUpdateCaptureDependencies_v2(q->learning.into, &node, NULL, 1,
                                                           CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    s->bodies = result == CUDA_SUCCESS ? params.conditional.phGraph_out : NULL;
    return result;
}

/* Has the stream capture the steps from `s` on, as far as `end`. An operation that fails has given
 * the client an error. */
static CUresult capture(struct dev_queue *q, struct cuda_graph *g, CUgraph graph,
                        struct cuda_step *s, const struct cuda_step *end)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUgraph captured;
    CUresult r = api->cuStreamBeginCaptureToGraph(q->learning.into, graph, NULL, NULL, 0,
                                                  CU_STREAM_CAPTURE_MODE_RELAXED);
    if (r != CUDA_SUCCESS)
        return r;
    for (; s != end && r == CUDA_SUCCESS && !q->learning.failed; s = after(s)) {
        if (s->kind == CONDITION) {
            r = add_condition(q, g, graph, s);
            s = s->end;
            continue;
        }
        struct cuda_op op = s->op;
        if (op.kind == CUDA_OP_LAUNCH)
            op.u.launch.loaded = s->function;
        cuda_op_submit(q, &op);
    }
    CUresult ended = api->cuStreamEndCapture(q->learning.into, &captured);
    return r != CUDA_SUCCESS ? r : q->learning.failed ? CUDA_ERROR_INVALID_VALUE : ended;
}

static CUresult fill(struct dev_queue *q, struct cuda_graph *g, CUgraph graph,
                     struct cuda_step *first, struct cuda_step *end);

static CUresult fill_bodies(struct dev_queue *q, struct cuda_graph *g, struct cuda_step *condition)
{
    struct cuda_step *s = after(condition), *first = s;
    CUresult r = CUDA_SUCCESS;
    for (uint32_t body = 0; body < condition->condition.bodies && r == CUDA_SUCCESS; body++) {
        first = after(s); /* s is the step of this body */
        for (s = first; s->kind != BODY; s = after(s))
            if (s->kind == CONDITION)
                s = s->end;
        r = first == s ? CUDA_SUCCESS : fill(q, g, condition->bodies[body], first, s);
    }
    return r;
}

/* Fills the driver's graph with these steps. */
static CUresult fill(struct dev_queue *q, struct cuda_graph *g, CUgraph graph,
                     struct cuda_step *first, struct cuda_step *end)
{
    CUresult r = capture(q, g, graph, first, end);
    for (struct cuda_step *s = first; s != end && r == CUDA_SUCCESS; s = after(s))
        if (s->kind == CONDITION) {
            r = fill_bodies(q, g, s);
            s = s->end;
        }
    return r;
}

/* CUDA_ERROR_NOT_SUPPORTED: the driver does not number handles as programs do. */
static CUresult add_handles(struct dev_queue *q, const struct cuda_graph *g, CUgraph graph)
{
    CUresult r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < g->handles && r == CUDA_SUCCESS; i++) {
        struct wire_graph_handle h;
        CUgraphConditionalHandle handle;
        memcpy(&h, g->bytes + i * sizeof(h), sizeof(h));
        r = q->client->dev->api.cuGraphConditionalHandleCreate(
            &handle, graph, context_of(q), h.initial, h.assign ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0);
        if (r == CUDA_SUCCESS && handle != i + 1)
            r = CUDA_ERROR_NOT_SUPPORTED;
    }
    return r;
}

/* There is a safe point of the queue's context, and all functions are loaded there. */
static CUresult make(struct dev_queue *q, struct cuda_graph *g, struct cuda_made *m)
{
    struct dev_client *c = q->client;
    const struct cuda_driver *api = &c->dev->api;
    CUgraph graph;
    if (!cuda_capacity_take_graph(q, g->nodes, 0, &m->exec))
        return CUDA_ERROR_OUT_OF_MEMORY;
    q->learning = (struct cuda_learning) { 0 };
    m->memory = atomic_load_explicit(&c->runs.memory, memory_order_acquire);
    CUresult r =
        cuda_capacity_stream(c, q->gpu, q->place, q->gpu->priority_least, true, &q->learning.into);
    if (r != CUDA_SUCCESS)
        return r;
    r = api->cuGraphCreate(&graph, 0);
    if (r == CUDA_SUCCESS) {
        r = add_handles(q, g, graph);
        if (r == CUDA_SUCCESS)
            r = fill(q, g, graph, gm_list_entry(g->steps.next, struct cuda_step, link),
                     gm_list_entry(&g->steps, struct cuda_step, link));
        if (r == CUDA_SUCCESS)
            r = cuda_capacity_graph(&m->exec, graph);
        (void)api->cuGraphDestroy(graph);
    }
    cuda_capacity_stream_destroy(q->gpu, q->place, q->learning.into);
    return r;
}

/* Makes it where the queue is. There is a safe point. */
static bool make_here(struct dev_queue *q, struct cuda_graph *g)
{
    struct cuda_made *m = calloc(1, sizeof(*m));
    CUresult r = m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (m) {
        gm_list_init(&m->link);
        r = make(q, g, m);
    }
    const bool failed = q->learning.failed;
    q->learning = (struct cuda_learning) { 0 };
    if (r == CUDA_SUCCESS) {
        m->place = q->place;
        count_in_place(q->client, m->place, 1);
        g->made = m;
    } else if (m) {
        cuda_capacity_graph_destroy(q->client, &m->exec);
        free(m);
    }
    return !failed && cuda_check(q->client, r, "the device refused a graph");
}

bool cuda_graph_make(struct dev_queue *q, struct cuda_graph *g)
{
    struct dev_client *c = q->client;
    if (GM_LIKELY(is_made(q, g)))
        return true;
    retire(c, g);
    for (uint32_t i = 0; i < GOES_MAX; i++) {
        struct cuda_gpu *here = q->gpu;
        if (!find_functions(q, g))
            return false;
        if (q->gpu != here)
            continue;
        struct cuda_gpu *there = cuda_settle(c, here, CUDA_MOVES);
        if (!there)
            return false;
        const bool stayed = there == here;
        if (stayed)
            destroy_retired(c, here);
        const bool made = stayed && make_here(q, g);
        cuda_settled(c, there);
        if (stayed)
            return made;
        if (!q->stream) /* it has gone there */
            cuda_stream_place(q);
        if (!q->stream)
            return false;
    }
    return cuda_check(c, CUDA_ERROR_LAUNCH_FAILED, "a graph found no context to be made in");
}
