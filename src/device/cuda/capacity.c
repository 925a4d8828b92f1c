/*
 * Counts how much of its room each context uses, for streams and for graphs.
 */
#include "device/cuda/capacity.h"

#include <stdlib.h>

#include "device/cuda/admit.h"
#include "device/cuda/inflight.h"

/* Streams that the driver makes without waiting in a new context; measured: 33 to 40. */
#define AT_FIRST 32u
/* Nodes of all graphs that a new context has room for; measured: 3,600. */
#define NODES_AT_FIRST 3000u
/* Streams that are made in advance with a context, 0.6 MiB each. */
#define AHEAD 64u
/* Streams that are made in advance whenever later one more is needed. */
#define SPARE 32u

/* --- streams and graphs ----------------------------------------------------------------------- */

static struct cuda_capacity *capacity_of(struct cuda_gpu *g, struct cuda_place *p)
{
    return p && p->green ? &p->capacity : &g->capacity;
}

/* dev->lock held. */
static uint32_t room(const struct cuda_capacity *r)
{
    return GM_MAX(r->made, AT_FIRST);
}

/* Takes room for a stream, or for a graph of so many nodes. True if there was room; with `always`
 * it is taken in any case. */
static bool try_take(struct dev *d, struct cuda_capacity *r, uint32_t nodes, bool always)
{
    pthread_mutex_lock(&d->lock);
    const bool has =
        r->used < room(r) && (!nodes || r->nodes + nodes <= GM_MAX(r->nodes_made, NODES_AT_FIRST));
    if (has || always) {
        r->used++;
        r->nodes += nodes;
    }
    pthread_mutex_unlock(&d->lock);
    return has;
}

static void give(struct dev *d, struct cuda_capacity *r, uint32_t nodes)
{
    pthread_mutex_lock(&d->lock);
    r->used--;
    r->nodes -= nodes;
    pthread_mutex_unlock(&d->lock);
}

/* The graph may still run in one of its client's queues. Its launches run one after the other, in
 * whatever streams, so it is enough to ask about the last one. A queue that is gone or has no
 * stream was done.
 */
static bool runs(const struct dev_client *c, const struct cuda_exec *e)
{
    if (e->launched)
        gm_list_for_each (q, &c->queues, struct dev_queue, link)
            if (q->number == e->queue && q->gpu == e->gpu && q->stream)
                return !cuda_calls_are_done(q, e->calls);
    return false;
}

/* A graph that was destroyed while it ran: the driver keeps it, and its room, until it is done. */
struct passing {
    struct gm_list link; /* client->passing */
    struct cuda_exec graph;
};

void cuda_capacity_collect(struct dev_client *c, bool all)
{
    gm_list_for_each_safe (l, &c->passing, struct passing, link) {
        if (!all && runs(c, &l->graph))
            continue;
        give(c->dev, &l->graph.gpu->capacity, l->graph.nodes);
        gm_list_remove(&l->link);
        free(l);
    }
}

static bool take(struct dev_client *c, struct cuda_capacity *r, uint32_t nodes)
{
    if (try_take(c->dev, r, nodes, false))
        return true;
    cuda_capacity_collect(c, false);
    return try_take(c->dev, r, nodes, false);
}

/* There have been `more` streams besides those in use: the context has room for that many. */
static void note_made(struct dev *d, struct cuda_capacity *r, uint32_t more)
{
    pthread_mutex_lock(&d->lock);
    r->made = GM_MAX(r->made, r->used + more);
    r->nodes_made = GM_MAX(r->nodes_made, r->nodes);
    pthread_mutex_unlock(&d->lock);
}

static CUresult create(struct cuda_gpu *g, const struct cuda_place *p, int priority, CUstream *out)
{
    const uint32_t gpus = CUDA_GPU_BIT(g);
    return p && p->green ? CUDA_CALL(g->dev, gpus, cuGreenCtxStreamCreate, out, p->green,
                                     CU_STREAM_NON_BLOCKING, priority)
                         : CUDA_CALL(g->dev, gpus, cuStreamCreateWithPriority, out,
                                     CU_STREAM_NON_BLOCKING, priority);
}

/* Makes room for streams that will be wanted: makes them and destroys them again. */
static void widen(struct cuda_gpu *g, struct cuda_capacity *r, const struct cuda_place *p,
                  uint32_t count)
{
    struct dev *d = g->dev;
    CUstream spare[AHEAD];
    uint32_t n = 0;
    while (n < count && create(g, p, 0, &spare[n]) == CUDA_SUCCESS)
        n++;
    for (uint32_t i = 0; i < n; i++)
        (void)d->api.cuStreamDestroy_v2(spare[i]);
    note_made(d, r, n);
}

void cuda_capacity_open(struct cuda_gpu *g)
{
    widen(g, &g->capacity, NULL, AHEAD);
}

CUresult cuda_capacity_stream(struct dev_client *c, struct cuda_gpu *g, struct cuda_place *p,
                              int priority, bool waited, CUstream *out)
{
    struct dev *d = c->dev;
    struct cuda_capacity *of = capacity_of(g, p);
    bool has = take(c, of, 0);
    if (!has && !waited)
        return CUDA_ERROR_NOT_READY;
    cuda_enter(g);
    CUresult r = create(g, p, priority, out);
    if (!has && r == CUDA_SUCCESS) {
        (void)try_take(d, of, 0, true);
        widen(g, of, p, SPARE);
    }
    if (has && r != CUDA_SUCCESS)
        give(d, of, 0);
    return r;
}

void cuda_capacity_stream_destroy(struct cuda_gpu *g, struct cuda_place *p, CUstream s)
{
    (void)g->dev->api.cuStreamDestroy_v2(s);
    give(g->dev, capacity_of(g, p), 0);
}

bool cuda_capacity_may_grow(struct dev_queue *q, uint64_t deadline)
{
    return cuda_own_wait(q->client, CUDA_GPU_BIT(q->gpu), deadline) &&
           cuda_is_quiet(q->client->dev, CUDA_GPU_BIT(q->gpu));
}

bool cuda_capacity_take_graph(struct dev_queue *q, uint32_t nodes, uint64_t deadline,
                              struct cuda_exec *out)
{
    struct cuda_capacity *r = &q->gpu->capacity;
    if (!take(q->client, r, nodes)) {
        if (!cuda_capacity_may_grow(q, deadline))
            return false;
        (void)try_take(q->client->dev, r, nodes, true);
    }
    *out = (struct cuda_exec) { .gpu = q->gpu, .nodes = nodes };
    return true;
}

CUresult cuda_capacity_graph(struct cuda_exec *e, CUgraph graph)
{
    struct dev *d = e->gpu->dev;
    e->resized = atomic_load_explicit(&e->gpu->resized, memory_order_relaxed);
    CUresult r =
        CUDA_CALL(d, CUDA_GPU_BIT(e->gpu), cuGraphInstantiateWithFlags, &e->handle, graph, 0);
    if (r == CUDA_SUCCESS)
        note_made(d, &e->gpu->capacity, 0);
    else
        e->handle = NULL;
    return r;
}

bool cuda_capacity_graph_is_stale(const struct cuda_exec *e)
{
    return e->handle && e->resized != atomic_load_explicit(&e->gpu->resized, memory_order_relaxed);
}

CUresult cuda_capacity_graph_launch(struct dev_queue *q, struct cuda_exec *e)
{
    e->launched = true;
    e->queue = q->number;
    e->calls = q->calls + 1; /* of a run they are counted after this */
    return q->client->dev->api.cuGraphLaunch(e->handle, q->stream);
}

void cuda_capacity_graph_destroy(struct dev_client *c, struct cuda_exec *e)
{
    struct cuda_gpu *here = cuda_entered();
    if (!e->gpu)
        return;
    cuda_enter(e->gpu);
    struct passing *l = runs(c, e) ? malloc(sizeof(*l)) : NULL;
    if (e->handle)
        (void)c->dev->api.cuGraphExecDestroy(e->handle); /* if it runs, after that */
    if (l) {
        l->graph = *e;
        gm_list_init(&l->link);
        gm_list_append(&c->passing, &l->link);
    } else {
        give(c->dev, &e->gpu->capacity, e->nodes);
    }
    *e = (struct cuda_exec) { 0 };
    if (here)
        cuda_enter(here);
}
