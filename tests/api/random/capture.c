/*
 * Captures. Ordinary calls come between the beginning and the end of one; its graph is destroyed at
 * once, since nobody knows what it uses. A short capture has calls of its own, which use memory
 * that stays, and its graph is kept.
 */
#include "random.h"

static const char *stream(int slot)
{
    return random_name(STREAM, slot);
}

static int mode(void)
{
    return ONE_OF(int, 0, 0, 1, 2, 2, 3);
}

static void begin(void)
{
    int slot = random_pick_stream(), m = mode();
    random_settle();
    random_say("cuStreamBeginCapture(%s, %d)", stream(slot), m);
    random_done(cuStreamBeginCapture(random_stream(slot), (CUstreamCaptureMode)m));
}

/* Prints how many nodes a captured graph has, and edges. */
static void describe(CUgraph g)
{
    size_t nodes = 0, edges = 0;
    if (!g)
        return;
    cuGraphGetNodes(g, NULL, &nodes);
    cuGraphGetEdges(g, NULL, NULL, NULL, &edges);
    random_out("%zu nodes, %zu edges", nodes, edges);
}

static void end(void)
{
    int slot = random_pick_stream();
    CUgraph g = NULL;
    random_say("cuStreamEndCapture(%s)", stream(slot));
    random_done(cuStreamEndCapture(random_stream(slot), &g));
    describe(g);
    if (g) {
        random_say("cuGraphDestroy(captured)");
        random_done(cuGraphDestroy(g));
    }
}

static void status(void)
{
    int slot = random_pick_stream();
    CUstreamCaptureStatus st = (CUstreamCaptureStatus)9;
    CUgraph g = NULL;
    cuuint64_t id = 0;
    const CUgraphNode *list = NULL;
    size_t count = 0;
    random_say("cuStreamGetCaptureInfo(%s)", stream(slot));
    if (random_done(cuStreamGetCaptureInfo_v2(random_stream(slot), &st, &id, &g, &list, &count)) !=
        CUDA_SUCCESS)
        return;
    random_out("%d", (int)st);
    if (st == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        random_out("%s, %zu dependencies", g ? "a graph" : "no graph", count);
}

static void exchange(void)
{
    int m = mode();
    CUstreamCaptureMode old = (CUstreamCaptureMode)m;
    random_say("cuThreadExchangeStreamCaptureMode(%d)", m);
    if (random_done(cuThreadExchangeStreamCaptureMode(&old)) == CUDA_SUCCESS)
        random_out("%d", (int)old);
}

static void update_dependencies(void)
{
    int slot = random_pick_stream();
    unsigned flags = ONE_OF(unsigned, 0, 1, 2);
    random_say("cuStreamUpdateCaptureDependencies(%s, 0, %u)", stream(slot), flags);
    random_done(cuStreamUpdateCaptureDependencies(random_stream(slot), NULL, NULL, 0, flags));
}

/* A call of a short capture, in one of its streams. */
static void step(int slot, int other, int event)
{
    CUstream s = random_stream(slot), o = random_stream(other);
    CUevent e = HANDLE(CUevent, EVENT, event);
    CUDA_KERNEL_NODE_PARAMS p;
    unsigned number = 0, what = random_below(9);
    CUdeviceptr to = what < 3 ? random_region(&number) : 0;
    const char *name;
    if (what < 3 && !to)
        return;
    if (what == 0) {
        random_say("cuMemsetD8Async(region %u, %u, 100, %s)", number, number % 256, stream(slot));
        random_done(cuMemsetD8Async(to, (unsigned char)number, 100, s));
    } else if (what == 1) {
        random_say("cuMemcpyHtoDAsync(region %u, source, 128, %s)", number, stream(slot));
        random_done(cuMemcpyHtoDAsync(to, random_source + number, 128, s));
    } else if (what == 2) {
        name = random_node_kernel(&p, to);
        if (!name)
            return;
        random_say("cuLaunchKernel(%s, %u, %u, region %u, %s)", name, p.blockDimX, p.sharedMemBytes,
                   number, stream(slot));
        random_done(cuLaunchKernel(p.func, 1, 1, 1, p.blockDimX, 1, 1, p.sharedMemBytes, s,
                                   p.kernelParams, NULL));
    } else if (what == 3) {
        int *by = random_step();
        random_say("cuLaunchHostFunc(%s, count, %d)", stream(slot), *by);
        random_done(cuLaunchHostFunc(s, random_count, by));
    } else if (what == 4 && event >= 0) {
        random_say("cuEventRecord(event%d, %s)", event, stream(slot));
        random_done(cuEventRecord(e, s));
    } else if (what == 5 && event >= 0) {
        random_say("cuStreamWaitEvent(%s, event%d, 0)", stream(other), event);
        random_done(cuStreamWaitEvent(o, e, 0));
    } else if (what == 6 && event >= 0) {
        random_say("cuEventRecord(event%d, %s)", event, stream(other));
        random_done(cuEventRecord(e, o));
        random_say("cuStreamWaitEvent(%s, event%d, 0)", stream(slot), event);
        random_done(cuStreamWaitEvent(s, e, 0));
    } else if (what == 7) {
        status();
    }
}

/* Calls that a capture does not bear, now and then. */
static void wrong_step(int slot, int event)
{
    CUdeviceptr p = 0;
    unsigned what = random_below(5);
    if (!random_settle())
        return;
    if (what == 0) {
        random_say("cuStreamSynchronize(%s)", stream(slot));
        random_done(cuStreamSynchronize(random_stream(slot)));
    } else if (what == 1) {
        random_say("cuStreamQuery(%s)", stream(slot));
        random_done(cuStreamQuery(random_stream(slot)));
    } else if (what == 2 && event >= 0) {
        random_say("cuEventQuery(event%d)", event);
        random_done(cuEventQuery(HANDLE(CUevent, EVENT, event)));
    } else if (what == 3) {
        random_say("cuMemAlloc(&p, 100)");
        if (random_done(cuMemAlloc(&p, 100)) == CUDA_SUCCESS) {
            random_say("cuMemFree(p)");
            random_done(cuMemFree(p));
        }
    } else if (what == 4) {
        random_say("cuCtxSynchronize()");
        random_done(cuCtxSynchronize());
    }
}

static void whole(void)
{
    int slot = random_pick_owned(STREAM), other = random_pick_owned(STREAM),
        event = random_pick_owned(EVENT), to = random_free_slot(GRAPH), m = ONE_OF(int, 0, 1, 2, 2);
    unsigned number = 0, steps = random_below(10);
    CUgraph g = NULL;
    if (slot < 0 || !random_region(&number))
        return;
    random_settle();
    random_say("cuStreamBeginCapture(%s, %d)", stream(slot), m);
    random_done(cuStreamBeginCapture(random_stream(slot), (CUstreamCaptureMode)m));
    for (unsigned i = 0; i < steps; i++) {
        int a = random_chance(3) ? other : slot, b = random_chance(3) ? slot : other;
        if (random_chance(12))
            wrong_step(a, event);
        else
            step(a, b, event);
        random_used(a);
        random_used(b);
    }
    random_say("cuStreamEndCapture(%s)", stream(slot));
    random_done(cuStreamEndCapture(random_stream(slot), &g));
    describe(g);
    random_settle();
    if (g)
        random_keep_graph(to, g);
}

static void begin_captures(void)
{
    for (int slot = 0; slot < 3; slot++) {
        CUstream s = NULL;
        CUevent e = NULL;
        random_say("cuStreamCreate(%s, %d)", stream(slot), slot > 0);
        if (random_done(cuStreamCreate(&s, slot > 0)) == CUDA_SUCCESS)
            random_keep(STREAM, slot, (uintptr_t)s, 0);
        random_say("cuEventCreate(%s, 2)", random_name(EVENT, slot));
        if (random_done(cuEventCreate(&e, 2)) == CUDA_SUCCESS)
            random_keep(EVENT, slot, (uintptr_t)e, 0);
    }
}

static const struct random_generator captures[] = {
    GENERATOR(begin, 2),
    GENERATOR(end, 5),
    GENERATOR(status, 3),
    GENERATOR(exchange, 1),
    GENERATOR(update_dependencies, 1),
    GENERATOR(whole, 6),
};
const struct random_subject random_captures = SUBJECT(captures, begin_captures);
