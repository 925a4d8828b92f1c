/*
 * A launch that comes to a conditional node starts a thread of its own. It looks at the value,
 * launches bodies with the graph lock held, and waits for them without.
 */
#include "client/graph/condition.h"

#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "client/gen/api.h"
#include "client/graph/exec.h"
#include "client/stream/hostfunc.h"
#include "client/stream/check.h"

#define BODIES_MAX 1024u

struct rt_condition {
    struct gm_list link; /* all */
    unsigned references; /* the graph that it was made for, nodes, and nodes of graphs that are
                            launched */
    const struct rt_graph *graph; /* NULL: it is gone */
    unsigned nodes;               /* the program's */
    uint64_t address;
    uint32_t initial;
    bool assign; /* `initial` at the beginning of each launch */
};

static struct gm_log_topic topic = GM_LOG_TOPIC("graph");
static struct gm_list all = { &all, &all };

/* --- handles ---------------------------------------------------------------------------------- */

static _Atomic uint32_t *word_of(const struct rt_condition *c)
{
    return (_Atomic uint32_t *)(uintptr_t)c->address;
}

static struct rt_condition *find(CUgraphConditionalHandle handle)
{
    gm_list_for_each (c, &all, struct rt_condition, link)
        if (c->address == handle && c->graph)
            return c;
    return NULL;
}

static struct rt_condition *ref(struct rt_condition *c)
{
    c->references++;
    return c;
}

static void unref(struct rt_condition *c)
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
    atomic_store(word_of(c), initial);
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
            unref(c);
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

/* --- nodes ------------------------------------------------------------------------------------ */

static bool kind_ok(const CUDA_CONDITIONAL_NODE_PARAMS *from)
{
    switch (from->type) {
    case CU_GRAPH_COND_TYPE_IF:
        return from->size == 1 || from->size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return from->size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return from->size > 0 && from->size <= BODIES_MAX;
    default:
        return false;
    }
}

void rt_conditional_finish(struct rt_conditional *c)
{
    for (unsigned i = 0; c->bodies && i < c->count; i++)
        rt_graph_destroy(c->bodies[i]);
    free(c->bodies);
    free(c->handles);
    if (!c->copy)
        c->condition->nodes--;
    unref(c->condition);
}

int rt_params_conditional(struct rt_params *p, const CUDA_CONDITIONAL_NODE_PARAMS *from)
{
    struct rt_condition *condition = find(from->handle);
    if (!condition || condition->nodes || !kind_ok(from) ||
        (from->ctx && !rt_context_find(from->ctx, true)))
        return CUDA_ERROR_INVALID_VALUE;
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                              .conditional = { .condition = ref(condition),
                                               .kind = from->type,
                                               .count = from->size,
                                               .bodies =
                                                   calloc(from->size, sizeof(struct rt_graph *)),
                                               .handles = calloc(from->size, sizeof(CUgraph)),
                                               .ctx = from->ctx } };
    condition->nodes++;
    int r =
        p->conditional.bodies && p->conditional.handles ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < from->size && r == CUDA_SUCCESS; i++)
        r = rt_graph_create(&p->conditional.bodies[i]);
    for (unsigned i = 0; i < from->size && r == CUDA_SUCCESS; i++)
        p->conditional.handles[i] = rt_graph_handle(p->conditional.bodies[i]);
    if (r)
        rt_conditional_finish(&p->conditional);
    return r;
}

/* For graphs that are launched: others are not copied. */
int rt_conditional_clone(struct rt_conditional *to, const struct rt_conditional *from)
{
    *to = *from;
    to->copy = true;
    to->handles = NULL;
    to->bodies = calloc(from->count, sizeof(struct rt_graph *));
    ref(to->condition);
    int r = to->bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < from->count && r == CUDA_SUCCESS; i++)
        r = rt_graph_clone(from->bodies[i], &to->bodies[i]);
    if (r)
        rt_conditional_finish(to);
    return r;
}

/* --- launches --------------------------------------------------------------------------------- */

static void run_free(struct rt_conditional_run *run)
{
    for (unsigned i = 0; run->bodies && i < run->count; i++)
        rt_exec_body_free(run->bodies[i]);
    struct rt_stream *st = rt_object_find(&rt_streams, run->stream);
    if (st)
        rt_stream_destroy(st);
    free(run->bodies);
    unref(run->condition);
    free(run);
}

int rt_conditional_prepare(struct rt_exec_body *b, const struct rt_conditional *c,
                           struct rt_conditional_run **out)
{
    struct rt_conditional_run *run = calloc(1, sizeof(*run));
    if (!run)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *run =
        (struct rt_conditional_run) { .owner = b,
                                      .condition = ref(c->condition),
                                      .kind = c->kind,
                                      .count = c->count,
                                      .bodies = calloc(c->count, sizeof(struct rt_exec_body *)) };
    int r = run->bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < c->count && r == CUDA_SUCCESS; i++)
        r = rt_exec_body_create(c->bodies[i], &run->bodies[i]);
    if (r) {
        run_free(run);
        return r;
    }
    run->next = b->conditionals;
    b->conditionals = run;
    *out = run;
    return CUDA_SUCCESS;
}

void rt_conditional_free_all(struct rt_exec_body *b)
{
    while (b->conditionals) {
        struct rt_conditional_run *run = b->conditionals;
        b->conditionals = run->next;
        run_free(run);
    }
}

int rt_conditional_ready(struct rt_exec_body *b, struct rt_context *c)
{
    int r = CUDA_SUCCESS;
    for (struct rt_conditional_run *run = b->conditionals; run && r == CUDA_SUCCESS;
         run = run->next) {
        struct rt_stream *st = rt_object_find(&rt_streams, run->stream);
        if (st && st->context == c)
            continue;
        r = rt_stream_create(c, RT_ROLE_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 0, &st);
        if (r == CUDA_SUCCESS)
            run->stream = (CUstream)rt_object_handle(&rt_streams, &st->object);
    }
    return r;
}

int rt_conditional_begin(const struct rt_exec_body *b, struct rt_stream *st)
{
    int r = CUDA_SUCCESS;
    for (const struct rt_conditional_run *run = b->conditionals; run && r == CUDA_SUCCESS;
         run = run->next) {
        const struct wire_rec_fill fill = { .head.op = WIRE_OP_FILL,
                                            .dst = run->condition->address,
                                            .pitch = sizeof(uint32_t),
                                            .width = 1,
                                            .height = 1,
                                            .value = run->condition->initial,
                                            .element_size = sizeof(uint32_t) };
        if (run->condition->assign) {
            struct wire_rec_fill record = fill;
            r = rt_queue_put(st, &record.head, sizeof(record), NULL, 0, NULL);
        }
        for (unsigned i = 0; i < run->count && r == CUDA_SUCCESS; i++)
            r = rt_conditional_begin(run->bodies[i], st);
    }
    return r;
}

/* NULL: none. */
static struct rt_exec_body *body_for(const struct rt_conditional_run *run, uint32_t value)
{
    switch (run->kind) {
    case CU_GRAPH_COND_TYPE_SWITCH:
        return value < run->count ? run->bodies[value] : NULL;
    case CU_GRAPH_COND_TYPE_IF:
        return value ? run->bodies[0] : run->count > 1 ? run->bodies[1] : NULL;
    default:
        return value ? run->bodies[0] : NULL;
    }
}

static int run_body(const struct rt_conditional_run *run, struct rt_exec_body *body)
{
    rt_graph_lock();
    struct rt_stream *st = rt_object_find(&rt_streams, run->stream);
    int r = st ? rt_exec_body_launch(body, st) : CUDA_ERROR_INVALID_HANDLE;
    const uint32_t number = body->last_number;
    const uint64_t seq = body->last_seq;
    rt_graph_unlock();
    return r ? r : rt_session_wait(rt_session, number, seq, &rt_session->patient);
}

static void *work(void *arg)
{
    struct rt_conditional_run *run = arg;
    struct rt_exec_body *owner = run->owner, *body;
    int r = CUDA_SUCCESS;
    do {
        body = body_for(run, atomic_load(word_of(run->condition)));
        r = body ? run_body(run, body) : CUDA_SUCCESS;
    } while (body && r == CUDA_SUCCESS && run->kind == CU_GRAPH_COND_TYPE_WHILE);
    if (r)
        gm_warn(&topic, "the body of a conditional node ended with error %d", r);
    atomic_store(&run->done, true);
    atomic_fetch_sub(&owner->running, 1); /* the last that it touches */
    return NULL;
}

/* The library's thread: the stream has come here. The program's signals are not for our thread. */
static bool is_done(void *arg)
{
    struct rt_conditional_run *run = arg;
    pthread_t thread;
    sigset_t every, before;
    if (!run->started) {
        run->started = true;
        atomic_fetch_add(&run->owner->running, 1);
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &before);
        if (pthread_create(&thread, NULL, work, run) == 0) {
            (void)pthread_detach(thread);
        } else {
            gm_warn(&topic, "no thread for a conditional node: its bodies do not run");
            atomic_store(&run->done, true);
            atomic_fetch_sub(&run->owner->running, 1);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return atomic_load(&run->done);
}

/* Or the session has failed, and the thread ends by itself. */
static void end(void *arg)
{
    struct rt_conditional_run *run = arg;
    if (!atomic_load(&run->done))
        return;
    run->started = false;
    atomic_store(&run->done, false);
}

int rt_conditional_put(struct rt_conditional_run *run, struct rt_stream *st)
{
    return rt_gate_put(st, is_done, end, run);
}
