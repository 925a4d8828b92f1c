/*
 * A capture spoilt by a call that has no place in it stays until it is ended, and refuses everything meanwhile. The
 * legacy stream, which would wait for every blocking stream that captures, has a part of its own that refuses.
 */
#include "client/graph/capture.h"

#include <stdlib.h>
#include <string.h>

#include "client/stream/event.h"

_Atomic unsigned rt_captures;
__thread CUstreamCaptureMode rt_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct gm_list captures = { &captures, &captures };
static struct rt_stream_capture implicit; /* the legacy stream's, while a blocking stream of its context captures */

/* Addresses of threads are used again, these numbers are not. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t threads;
    static __thread uint64_t number;
    if (!number)
        number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    return number;
}

static struct rt_capture *find_capture(uint64_t id)
{
    gm_list_for_each (c, &captures, struct rt_capture, link)
        if (c->id == id)
            return c;
    return NULL;
}

static struct rt_stream_capture *part_of(const struct rt_stream *st)
{
    return atomic_load_explicit(&st->capture, memory_order_relaxed);
}

/* --- a stream's part ---------------------------------------------------------------------------------------------- */

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

/* Nodes may be destroyed while a capture depends on them. */
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

static int depend(struct rt_stream_capture *sc, const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count)
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

/* Whether the legacy stream of a context may be used depends on whether a blocking stream of it captures. */
static void mark_legacy(struct rt_context *context)
{
    struct rt_stream *legacy = atomic_load_explicit(&context->legacy, memory_order_acquire);
    bool any = false;
    gm_list_for_each (c, &captures, struct rt_capture, link)
        gm_list_for_each (sc, &c->streams, struct rt_stream_capture, link)
            any = any || (sc->stream->context == context && sc->stream->role == RT_ROLE_BLOCKING);
    if (legacy)
        atomic_store_explicit(&legacy->capture, any ? &implicit : NULL, memory_order_relaxed);
}

static int attach(struct rt_capture *c, struct rt_stream *st, struct rt_stream_capture **out)
{
    struct rt_stream *legacy;
    int r =
        st->role == RT_ROLE_BLOCKING ? rt_stream_resolve_slow(st->context, CU_STREAM_LEGACY, &legacy) : CUDA_SUCCESS;
    if (r)
        return r;
    struct rt_stream_capture *sc = calloc(1, sizeof(*sc));
    if (!sc)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc->capture = c;
    sc->stream = st;
    gm_list_append(&c->streams, &sc->link);
    atomic_store_explicit(&st->capture, sc, memory_order_relaxed);
    if (st->role == RT_ROLE_BLOCKING)
        mark_legacy(st->context);
    *out = sc;
    return CUDA_SUCCESS;
}

static void detach(struct rt_stream_capture *sc)
{
    struct rt_stream *st = sc->stream;
    gm_list_remove(&sc->link);
    atomic_store_explicit(&st->capture, NULL, memory_order_relaxed);
    if (st->role == RT_ROLE_BLOCKING)
        mark_legacy(st->context);
    free(sc->nodes);
    free(sc->edges);
    free(sc);
}

/* --- captures ----------------------------------------------------------------------------------------------------- */

static void capture_free(struct rt_capture *c, bool keep_graph)
{
    while (!gm_list_empty(&c->streams))
        detach(gm_list_entry(c->streams.next, struct rt_stream_capture, link));
    gm_list_remove(&c->link);
    c->graph->capturing = false;
    if (!keep_graph && c->own_graph)
        rt_graph_destroy(c->graph);
    free(c);
    atomic_fetch_sub_explicit(&rt_captures, 1, memory_order_relaxed);
}

int rt_capture_begin(struct rt_stream *st, struct rt_graph *graph, const CUgraphNode *dependencies,
                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    static uint64_t ids;
    struct rt_stream_capture *sc;
    if (st->role == RT_ROLE_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (part_of(st))
        return CUDA_ERROR_ILLEGAL_STATE;
    struct rt_capture *c = calloc(1, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (struct rt_capture) {
        .id = ++ids, .graph = graph, .own_graph = !graph, .origin = st, .mode = mode, .thread = this_thread()
    };
    int r = graph ? CUDA_SUCCESS : rt_graph_create(&c->graph);
    if (r) {
        free(c);
        return r;
    }
    gm_list_init(&c->streams);
    gm_list_append(&captures, &c->link);
    atomic_fetch_add_explicit(&rt_captures, 1, memory_order_relaxed);
    c->graph->capturing = true;
    r = attach(c, st, &sc);
    r = r ? r : depend(sc, dependencies, edges, count);
    if (r)
        capture_free(c, false);
    return r;
}

/* All that was captured must be behind the stream that ends it. */
static bool joined(const struct rt_capture *c, const struct rt_stream_capture *origin)
{
    gm_list_for_each (n, &c->graph->nodes, struct rt_node, link)
        if (n->capture == c->id && !n->loose && n->out.count == 0 && !depends_on(origin, rt_node_handle(n)))
            return false;
    return true;
}

int rt_capture_end(struct rt_stream *st, struct rt_graph **out)
{
    struct rt_stream_capture *sc;
    int r = rt_capture_look(st, &sc);
    *out = NULL;
    if (r)
        return r;
    if (!sc)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct rt_capture *c = sc->capture;
    bool stranger = c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread();
    if (!stranger && c->origin != st) {
        c->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (stranger) /* ends it all the same */
        r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (c->invalidated)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(c, sc))
        r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    struct rt_graph *graph = c->graph;
    capture_free(c, r == CUDA_SUCCESS);
    if (r == CUDA_SUCCESS)
        *out = graph;
    return r;
}

int rt_capture_look(struct rt_stream *st, struct rt_stream_capture **out)
{
    *out = part_of(st);
    if (*out != &implicit)
        return CUDA_SUCCESS;
    *out = NULL;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static void mark_loose(const struct rt_stream_capture *sc, bool loose)
{
    for (size_t i = 0; i < sc->count; i++) {
        struct rt_node *n = rt_node_find(sc->nodes[i]);
        if (n)
            n->loose = loose;
    }
}

int rt_capture_depend(struct rt_stream_capture *sc, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                      size_t count, bool set)
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

/* --- what spoils captures ----------------------------------------------------------------------------------------- */

int rt_capture_unsafe_slow(void)
{
    uint64_t me = this_thread();
    int r = CUDA_SUCCESS;
    if (rt_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    rt_graph_lock();
    gm_list_for_each (c, &captures, struct rt_capture, link) {
        bool mine = c->thread == me && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool everybodys =
            c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && rt_capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (mine || everybodys) {
            c->invalidated = true;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    rt_graph_unlock();
    return r;
}

/* Spoils what has a stream of this context, or only what has a blocking one. */
static bool spoil_context(struct rt_context *context, bool blocking_only)
{
    bool any = false;
    gm_list_for_each (c, &captures, struct rt_capture, link)
        gm_list_for_each (sc, &c->streams, struct rt_stream_capture, link)
            if (sc->stream->context == context && (!blocking_only || sc->stream->role == RT_ROLE_BLOCKING))
                any = c->invalidated = true;
    return any;
}

int rt_capture_context_used(struct rt_context *context)
{
    if (GM_LIKELY(atomic_load_explicit(&rt_captures, memory_order_relaxed) == 0))
        return CUDA_SUCCESS;
    rt_graph_lock();
    bool any = spoil_context(context, false);
    rt_graph_unlock();
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* Graph lock: the error of a call that cannot be captured. */
static int spoil(struct rt_stream *st, int result)
{
    struct rt_stream_capture *sc;
    if (rt_capture_look(st, &sc)) {
        (void)spoil_context(st->context, true);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!sc) /* ended by another thread just now */
        return result;
    if (sc->capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    sc->capture->invalidated = true;
    return result;
}

int rt_capture_failed(struct rt_stream *st, int result)
{
    if (!rt_stream_captures(st))
        return result;
    rt_graph_lock();
    int r = spoil(st, result);
    rt_graph_unlock();
    return r;
}

int rt_capture_refuse_locked(struct rt_stream *st)
{
    int r = spoil(st, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                      : r; /* if spoilt, too */
}

int rt_capture_refuse(struct rt_stream *st)
{
    rt_graph_lock();
    int r = rt_capture_refuse_locked(st);
    rt_graph_unlock();
    return r;
}

int rt_capture_event_used(CUevent event)
{
    int r = CUDA_SUCCESS;
    if (GM_LIKELY(!rt_event_captured(event)))
        return r;
    rt_graph_lock();
    const struct rt_event_capture *ec = rt_event_capture(event);
    if (ec) {
        struct rt_capture *c = find_capture(ec->id);
        if (c)
            c->invalidated = true;
        r = CUDA_ERROR_CAPTURED_EVENT;
    }
    rt_graph_unlock();
    return r;
}

void rt_capture_stream_ends(struct rt_stream *st)
{
    rt_graph_lock();
    struct rt_stream_capture *sc = part_of(st);
    if (sc && sc != &implicit) {
        if (sc->capture->origin == st) /* nobody can end it any more */
            capture_free(sc->capture, false);
        else /* it may have been joined: the end will tell */
            detach(sc);
    }
    atomic_store_explicit(&st->capture, NULL, memory_order_relaxed);
    rt_graph_unlock();
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* The stream's part in a capture that is not spoilt. CUresult. */
static int good_part(struct rt_stream *st, struct rt_stream_capture **out)
{
    struct rt_stream_capture *sc = part_of(st);
    *out = sc;
    if (!sc || sc == &implicit) /* none: it has just ended */
        return spoil(st, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return sc->capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
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

static int add_alloc(struct rt_stream *st, uint64_t size, CUdeviceptr *out)
{
    struct rt_params p;
    CUDA_MEM_ALLOC_NODE_PARAMS m = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
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

/* --- events ------------------------------------------------------------------------------------------------------- */

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

/* Between a stream that captures, or does not yet, and a capture's event. */
static int join(struct rt_stream *st, struct rt_stream_capture *sc, const struct rt_event_capture *ec)
{
    struct rt_capture *c = find_capture(ec->id);
    if (!c)
        return sc ? spoil(st, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_ERROR_CAPTURED_EVENT;
    if (c->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (sc && sc->capture != c) {
        c->invalidated = true;
        return spoil(st, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (st->role == RT_ROLE_LEGACY) {
        c->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    int r = sc ? CUDA_SUCCESS : attach(c, st, &sc);
    return r ? r : depend(sc, ec->nodes, NULL, ec->count);
}

int rt_capture_wait(struct rt_stream *st, CUevent event, bool external)
{
    struct rt_params p;
    struct rt_stream_capture *sc;
    int r = rt_event_exists(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (r)
        return r;
    rt_graph_lock();
    const struct rt_event_capture *ec = rt_event_capture(event);
    if (rt_capture_look(st, &sc))
        r = spoil(st, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    else if (sc && sc->capture->invalidated)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (external)
        r = sc ? rt_params_event(&p, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event) : CUDA_ERROR_ILLEGAL_STATE;
    else if (ec)
        r = join(st, sc, ec);
    else
        r = spoil(st, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (r == CUDA_SUCCESS && external)
        r = rt_capture_add_locked(st, &p);
    rt_graph_unlock();
    return r;
}
