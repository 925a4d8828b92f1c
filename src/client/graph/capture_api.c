/*
 * cuStreamBeginCapture*, cuStreamEndCapture, questions, and modes. What becomes of the calls in
 * between is in capture.c.
 */
#include "client/gen/api.h"
#include "client/graph/capture.h"

static int begin(CUstream stream, CUgraph graph, bool to_graph, const CUgraphNode *dependencies,
                 const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_graph *g = NULL;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_enter_stream(stream, &c, &st);
    if (r)
        return r;
    if (count && !dependencies)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    if (to_graph) {
        g = rt_graph_find(graph);
        r = g && !g->capturing && !rt_graph_is_child(g) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        const struct rt_node *n = rt_node_find(dependencies[i]);
        if (!n || n->graph != g || (edges && !rt_edge_data_ok(&edges[i])))
            r = CUDA_ERROR_INVALID_VALUE;
    }
    r = r ? r : rt_capture_begin(st, g, dependencies, edges, count, mode);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(hStream, NULL, false, NULL, NULL, 0, mode);
}

CUresult rt_cuStreamBeginCapture(CUstream hStream)
{
    return begin(hStream, NULL, false, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult rt_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                        const CUgraphNode *dependencies,
                                        const CUgraphEdgeData *dependencyData,
                                        size_t numDependencies, CUstreamCaptureMode mode)
{
    return begin(hStream, hGraph, true, dependencies, dependencyData, numDependencies, mode);
}

CUresult rt_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_graph *graph;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    rt_graph_lock();
    r = rt_capture_end(st, &graph);
    if (phGraph)
        *phGraph = graph ? rt_graph_handle(graph) : NULL;
    rt_graph_unlock();
    return r;
}

struct info {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **nodes;
    const CUgraphEdgeData **edges;
    size_t *count;
    bool lossy; /* the data of edges matter, and the caller has no room for them */
};

static int get_info(CUstream stream, const struct info *out)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_stream_capture *sc;
    static const CUgraphEdgeData plain;
    int r = rt_enter_stream(stream, &c, &st);
    if (r)
        return r;
    if (!out->status)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    r = rt_capture_look(st, &sc);
    *out->status = !sc                        ? CU_STREAM_CAPTURE_STATUS_NONE
                   : sc->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (r == CUDA_SUCCESS && *out->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        for (size_t i = 0; i < sc->count && out->lossy && out->nodes && !out->edges; i++)
            r = rt_edge_data_equal(&sc->edges[i], &plain) ? r : CUDA_ERROR_LOSSY_QUERY;
        if (out->id)
            *out->id = sc->capture->id;
        if (out->graph)
            *out->graph = rt_graph_handle(sc->capture->graph);
        if (out->nodes)
            *out->nodes = sc->nodes;
        if (out->edges)
            *out->edges = sc->edges;
        if (out->count)
            *out->count = sc->count;
    }
    rt_graph_unlock();
    return r;
}

CUresult rt_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    return get_info(hStream, &(struct info) { .status = captureStatus });
}

CUresult rt_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out)
{
    return get_info(hStream, &(struct info) { .status = captureStatus_out, .id = id_out });
}

/* Outside of a capture the other outputs stay as they are. */
CUresult rt_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out, CUgraph *graph_out,
                                      const CUgraphNode **dependencies_out,
                                      size_t *numDependencies_out)
{
    return get_info(hStream, &(struct info) { .status = captureStatus_out,
                                              .id = id_out,
                                              .graph = graph_out,
                                              .nodes = dependencies_out,
                                              .count = numDependencies_out,
                                              .lossy = true });
}

CUresult rt_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out, CUgraph *graph_out,
                                      const CUgraphNode **dependencies_out,
                                      const CUgraphEdgeData **edgeData_out,
                                      size_t *numDependencies_out)
{
    return get_info(hStream, &(struct info) { .status = captureStatus_out,
                                              .id = id_out,
                                              .graph = graph_out,
                                              .nodes = dependencies_out,
                                              .edges = edgeData_out,
                                              .count = numDependencies_out,
                                              .lossy = true });
}

CUresult rt_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *dependencyData,
                                                 size_t numDependencies, unsigned int flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_stream_capture *sc;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    rt_graph_lock();
    r = rt_capture_usable_locked(st, &sc);
    if (r == CUDA_SUCCESS && !sc)
        r = CUDA_ERROR_ILLEGAL_STATE;
    if (r == CUDA_SUCCESS &&
        (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (numDependencies && !dependencies)))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r
          : rt_capture_depend(sc, dependencies, dependencyData, numDependencies,
                              flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                              size_t numDependencies, unsigned int flags)
{
    return rt_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies,
                                                   flags);
}

CUresult rt_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = rt_capture_mode;
    rt_capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
