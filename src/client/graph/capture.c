/*
 * A stream's state in a capture has the nodes on which its next node will depend. A node that is
 * added takes their place.
 */
#include "client/graph/capture.h"

#include <stdlib.h>

#include "client/stream/event.h"

/* --- a stream's part -------------------------------------------------------------------------- */

static bool room(struct rt_stream_capture *sc, size_t count)
{
    if (count <= sc->capacity)
        return true;
    size_t capacity = GM_MAX(count, 2 * sc->capacity + 4);
    CUgraphNode *nodes = realloc(sc->nodes, capacity * sizeof(*nodes));
    if (nodes)
        sc->nodes = nodes;
    CUgraphEdgeData *edges = realloc(sc->edges, capacity * sizeof(*edges));
    if (edges)
        sc->edges = edges;
    if (!nodes || !edges)
        return false;
    sc->capacity = capacity;
    return true;
}

/* Drops nodes that were destroyed while the capture depended on them. */
static void prune(struct rt_stream_capture *sc)
{
    size_t kept = 0;
    for (size_t i = 0; i < sc->count; i++)
        if (rt_node_find(sc->nodes[i])) {
            sc->nodes[kept] = sc->nodes[i];
            sc->edges[kept++] = sc->edges[i];
        }
    sc->count = kept;
}

static bool depends_on(const struct rt_stream_capture *sc, CUgraphNode node)
{
    for (size_t i = 0; i < sc->count; i++)
        if (sc->nodes[i] == node)
            return true;
    return false;
}

static int depend(struct rt_stream_capture *sc, const CUgraphNode *nodes,
                  const CUgraphEdgeData *edges, size_t count)
{
    if (!room(sc, sc->count + count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (depends_on(sc, nodes[i]) || !rt_node_find(nodes[i]))
            continue;
        sc->nodes[sc->count] = nodes[i];
        sc->edges[sc->count++] = edges ? edges[i] : (CUgraphEdgeData) { 0 };
    }
    return CUDA_SUCCESS;
}

/* Adds the stream to the capture. The context's legacy stream must exist, so that it can be
 * told. */
static int take_part(struct rt_capture *c, struct rt_stream *st, struct rt_stream_capture **out)
{
    struct rt_stream *legacy;
    int r = st->role == RT_ROLE_BLOCKING
                ? rt_stream_resolve_slow(st->context, CU_STREAM_LEGACY, &legacy)
                : CUDA_SUCCESS;
    return r ? r : rt_capture_join(c, st, out);
}

/* --- captures --------------------------------------------------------------------------------- */

static void finish(struct rt_capture *c, bool keep_graph)
{
    struct rt_graph *graph = c->graph;
    bool own = c->own_graph;
    rt_capture_destroy(c);
    graph->capturing = false;
    if (!keep_graph && own)
        rt_graph_destroy(graph);
}

int rt_capture_begin(struct rt_stream *st, struct rt_graph *graph, const CUgraphNode *dependencies,
                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    struct rt_stream_capture *sc;
    bool own_graph = !graph;
    if (rt_capture_look(st, &sc))
        return rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (st->role == RT_ROLE_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (sc)
        return CUDA_ERROR_ILLEGAL_STATE;
    int r = own_graph ? rt_graph_create(&graph) : CUDA_SUCCESS;
    if (r)
        return r;
    struct rt_capture *c = rt_capture_create(st, graph, mode);
    if (!c) {
        rt_graph_destroy(own_graph ? graph : NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->own_graph = own_graph;
    graph->capturing = true;
    r = take_part(c, st, &sc);
    r = r ? r : depend(sc, dependencies, edges, count);
    if (r)
        finish(c, false);
    return r;
}

/* Whether all that was captured comes before the end of the capture's first stream. */
static bool joined(const struct rt_capture *c, const struct rt_stream_capture *origin)
{
    gm_list_for_each (n, &c->graph->nodes, struct rt_node, link)
        if (n->capture == c->id && !n->loose && n->out.count == 0 &&
            !depends_on(origin, rt_node_handle(n)))
            return false;
    return true;
}

int rt_capture_end(struct rt_stream *st, struct rt_graph **out)
{
    struct rt_stream_capture *sc;
    *out = NULL;
    if (rt_capture_look(st, &sc))
        return rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (!sc)
        return CUDA_ERROR_ILLEGAL_STATE;
    int r = CUDA_SUCCESS;
    struct rt_capture *c = sc->capture;
    bool stranger = c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !rt_capture_is_own(c);
    if (!stranger && c->origin != st) {
        c->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (stranger) /* it ends nevertheless */
        r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (c->invalidated)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(c, sc))
        r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    struct rt_graph *graph = c->graph;
    finish(c, r == CUDA_SUCCESS);
    if (r == CUDA_SUCCESS)
        *out = graph;
    return r;
}

static void mark_loose(const struct rt_stream_capture *sc, bool loose)
{
    for (size_t i = 0; i < sc->count; i++) {
        struct rt_node *n = rt_node_find(sc->nodes[i]);
        if (n)
            n->loose = loose;
    }
}

int rt_capture_depend(struct rt_stream_capture *sc, const CUgraphNode *nodes,
                      const CUgraphEdgeData *edges, size_t count, bool set)
{
    for (size_t i = 0; i < count; i++) {
        const struct rt_node *n = rt_node_find(nodes[i]);
        if (!n || n->graph != sc->capture->graph || (edges && !rt_edge_data_ok(&edges[i])))
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (set) {
        mark_loose(sc, true);
        sc->count = 0;
    }
    int r = depend(sc, nodes, edges, count);
    mark_loose(sc, false);
    return r;
}

void rt_capture_stream_ends(struct rt_stream *st)
{
    struct rt_stream_capture *sc;
    rt_graph_lock();
    int r = rt_capture_look(st, &sc);
    /* No stream could end the capture now. */
    if (r == CUDA_SUCCESS && sc && sc->capture->origin == st)
        finish(sc->capture, false);
    /* It may have been joined. The end of the capture shows that. */
    else if (r == CUDA_SUCCESS && sc)
        rt_capture_leave(sc);
    atomic_store_explicit(&st->capture, NULL, memory_order_relaxed);
    rt_graph_unlock();
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Returns the stream's state in a capture that was not spoilt. CUresult. */
static int good_part(struct rt_stream *st, struct rt_stream_capture **out)
{
    int r = rt_capture_usable_locked(st, out);
    /* If there is none, the capture has just ended. */
    return r || *out ? r : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

int rt_capture_add_locked(struct rt_stream *st, struct rt_params *params)
{
    struct rt_stream_capture *sc;
    struct rt_node *n;
    int r = good_part(st, &sc);
    if (r == CUDA_SUCCESS && !room(sc, 1))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        rt_params_finish(params);
        return r;
    }
    prune(sc);
    r = rt_node_create(sc->capture->graph, params, sc->nodes, sc->edges, sc->count, &n);
    if (r) {
        sc->capture->invalidated = true;
        return r;
    }
    n->capture = sc->capture->id;
    sc->nodes[0] = rt_node_handle(n);
    sc->edges[0] = (CUgraphEdgeData) { 0 };
    sc->count = 1;
    return CUDA_SUCCESS;
}

static int add(struct rt_stream *st, struct rt_params *params)
{
    rt_graph_lock();
    int r = rt_capture_add_locked(st, params);
    rt_graph_unlock();
    return r;
}

int rt_capture_launch(struct rt_stream *st, const void *function, const struct rt_launch *l,
                      const CUlaunchAttribute *attributes, unsigned count)
{
    struct rt_params p;
    int r = rt_params_launch(&p, function, l, attributes, count);
    if (r)
        return r;
    p.kernel.ctx = rt_context_handle(st->context);
    return add(st, &p);
}

int rt_capture_copy(struct rt_stream *st, const struct rt_box *b)
{
    struct rt_params p;
    CUDA_MEMCPY3D m;
    rt_copy_redescribe(b, &m);
    int r = rt_params_copy(&p, &m, rt_context_handle(st->context));
    return r ? r : add(st, &p);
}

int rt_capture_fill(struct rt_stream *st, const struct rt_fill *f)
{
    struct rt_params p;
    int r = rt_params_fill(&p,
                           &(CUDA_MEMSET_NODE_PARAMS) { .dst = f->dst,
                                                        .pitch = f->pitch,
                                                        .value = f->value,
                                                        .elementSize = f->element,
                                                        .width = f->width,
                                                        .height = f->height },
                           rt_context_handle(st->context));
    return r ? r : add(st, &p);
}

int rt_capture_host(struct rt_stream *st, CUhostFn fn, void *arg)
{
    struct rt_params p;
    int r = rt_params_host(&p, &(CUDA_HOST_NODE_PARAMS) { .fn = fn, .userData = arg });
    return r ? r : add(st, &p);
}

int rt_capture_memops(struct rt_stream *st, const CUstreamBatchMemOpParams *ops, unsigned count,
                      unsigned flags)
{
    struct rt_params p;
    CUDA_BATCH_MEM_OP_NODE_PARAMS from = { .ctx = rt_context_handle(st->context),
                                           .count = count,
                                           .flags = flags };
    from.paramArray = (CUstreamBatchMemOpParams *)(uintptr_t)ops;
    int r = rt_params_memops(&p, &from);
    return r ? r : add(st, &p); /* wrong parameters spoil nothing */
}

static int add_alloc(struct rt_stream *st, uint64_t size, CUdeviceptr *out)
{
    struct rt_params p;
    CUDA_MEM_ALLOC_NODE_PARAMS m = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                    .location = { .type =
                                                                      CU_MEM_LOCATION_TYPE_DEVICE,
                                                                  .id = st->context->device } },
                                     .bytesize = size };
    struct rt_stream_capture *sc;
    rt_graph_lock();
    int r = good_part(st, &sc);
    r = r ? r : rt_params_alloc(&p, &m, sc->capture->graph, sc->nodes, sc->count);
    if (r == CUDA_SUCCESS) {
        *out = p.memory.described.dptr;
        r = rt_capture_add_locked(st, &p);
    }
    rt_graph_unlock();
    return r;
}

int rt_capture_alloc(struct rt_stream *st, uint64_t size, CUdeviceptr *out)
{
    int r = add_alloc(st, size, out);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = add_alloc(st, size, out);
    return r;
}

int rt_capture_free(struct rt_stream *st, CUdeviceptr address)
{
    struct rt_params p;
    rt_graph_lock();
    int r = rt_params_free(&p, address);
    r = r ? r : rt_capture_add_locked(st, &p);
    rt_graph_unlock();
    return r;
}

/* --- events ----------------------------------------------------------------------------------- */

int rt_capture_record(struct rt_stream *st, CUevent event, bool external)
{
    struct rt_params p;
    if (external) {
        int r = rt_params_event(&p, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
        return r ? r : add(st, &p);
    }
    rt_graph_lock();
    struct rt_stream_capture *sc;
    int r = good_part(st, &sc);
    if (r == CUDA_SUCCESS) {
        prune(sc);
        r = rt_event_capture_set(event, sc->capture->id, sc->nodes, sc->count);
    }
    rt_graph_unlock();
    return r;
}

/* Joins a stream, which may capture already, with an event of a capture. */
static int join(struct rt_stream *st, struct rt_stream_capture *sc,
                const struct rt_event_capture *ec)
{
    struct rt_capture *c = rt_capture_find(ec->id);
    if (!c || c->invalidated) /* it has ended, or is spoilt */
        return rt_capture_spoil(st, CUDA_ERROR_INVALID_VALUE);
    if (sc && sc->capture != c) {
        c->invalidated = true;
        return rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (st->role == RT_ROLE_LEGACY) {
        c->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    int r = sc ? CUDA_SUCCESS : take_part(c, st, &sc);
    return r ? r : depend(sc, ec->nodes, NULL, ec->count);
}

/* Waits in a stream that does not refuse to. `p` becomes an external wait's node. */
static int wait_for(struct rt_stream *st, struct rt_stream_capture *sc, CUevent event,
                    bool external, struct rt_params *p)
{
    const struct rt_event_capture *ec = rt_event_capture(event);
    if (!rt_event_exists(event))
        return sc ? rt_capture_spoil(st, CUDA_ERROR_INVALID_HANDLE) : CUDA_ERROR_INVALID_HANDLE;
    if (external && (sc || !ec || rt_capture_find(ec->id)))
        return sc ? rt_params_event(p, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event)
                  : CUDA_ERROR_ILLEGAL_STATE;
    if (ec)
        return join(st, sc, ec);
    if (rt_event_shared(event))
        return rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (rt_event_recorded(event))
        return rt_capture_spoil(st, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    return CUDA_SUCCESS; /* there is nothing to wait for */
}

int rt_capture_wait(struct rt_stream *st, CUevent event, bool external)
{
    struct rt_params p;
    struct rt_stream_capture *sc;
    rt_graph_lock();
    int r = rt_capture_usable_locked(st, &sc);
    r = r ? r : wait_for(st, sc, event, external, &p);
    if (r == CUDA_SUCCESS && external)
        r = rt_capture_add_locked(st, &p);
    rt_graph_unlock();
    return r;
}
