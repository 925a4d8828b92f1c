/* Graphs: nodes and edges, executable graphs and their changes, what they compute, what is refused. */
#include "tap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUstream stream;

static uint32_t read_word(CUdeviceptr p)
{
    uint32_t word = 0;
    OK(cuMemcpyDtoH(&word, p, 4));
    return word;
}

static CUDA_KERNEL_NODE_PARAMS add_to_params(void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS) { .func = tap_function("add_to"),
                                       .gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = params };
}

static CUgraphNode add_kernel(CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p, uint32_t by)
{
    CUgraphNode node;
    void *params[] = { &p, &by };
    CUDA_KERNEL_NODE_PARAMS k = add_to_params(params);
    OK(cuGraphAddKernelNode(&node, g, after, n, &k));
    return node;
}

static CUgraphNode add_fill(CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p, uint32_t value,
                            size_t width)
{
    CUgraphNode node;
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    CUDA_MEMSET_NODE_PARAMS f = { .dst = p, .value = value, .elementSize = 4, .width = width, .height = 1 };
    OK(cuGraphAddMemsetNode(&node, g, after, n, &f, c));
    return node;
}

static CUDA_MEMCPY3D copy_params(CUdeviceptr dst, void *dst_host, CUdeviceptr src, const void *src_host, size_t size)
{
    return (CUDA_MEMCPY3D) { .srcMemoryType = src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                             .srcHost = src_host,
                             .srcDevice = src,
                             .srcPitch = size,
                             .srcHeight = 1,
                             .dstMemoryType = dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                             .dstHost = dst_host,
                             .dstDevice = dst,
                             .dstPitch = size,
                             .dstHeight = 1,
                             .WidthInBytes = size,
                             .Height = 1,
                             .Depth = 1 };
}

static CUgraphNode add_copy(CUgraph g, const CUgraphNode *after, size_t n, const CUDA_MEMCPY3D *m)
{
    CUgraphNode node;
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    OK(cuGraphAddMemcpyNode(&node, g, after, n, m, c));
    return node;
}

static CUgraphExec make(CUgraph g)
{
    CUgraphExec e;
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    return e;
}

static void run(CUgraphExec e)
{
    OK(cuGraphLaunch(e, stream));
    OK(cuStreamSynchronize(stream));
}

/* fill with 5, add 2, add 30 */
static void chain(void)
{
    CUgraph g;
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 4));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode fill = add_fill(g, NULL, 0, p, 5, 1);
    CUgraphNode a = add_kernel(g, &fill, 1, p, 2);
    (void)add_kernel(g, &a, 1, p, 30);
    CUgraphExec e = make(g);
    OK(cuGraphDestroy(g)); /* the executable one has all it needs */
    for (int i = 0; i < 3; i++) {
        OK(cuMemsetD32(p, 77, 1));
        OK(cuCtxSynchronize()); /* the graph's stream does not wait for it */
        run(e);
        EQ(read_word(p), tap_computes() ? 37 : 5);
    }
    OK(cuGraphExecDestroy(e));
    OK(cuMemFree(p));
}

/* Launches of one graph follow each other, also in different streams. */
static void many_launches(void)
{
    enum { LAUNCHES = 200 };
    CUgraph g;
    CUdeviceptr p;
    CUstream other;
    if (!tap_computes())
        tap_skip("needs kernels");
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuGraphCreate(&g, 0));
    CUgraphNode last = NULL;
    for (int i = 0; i < 10; i++)
        last = add_kernel(g, &last, i != 0, p, 1);
    CUgraphExec e = make(g);
    OK(cuGraphUpload(e, stream));
    for (int i = 0; i < LAUNCHES; i++)
        OK(cuGraphLaunch(e, i & 1 ? other : stream));
    OK(cuCtxSynchronize());
    EQ(read_word(p), 10 * LAUNCHES);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy(other));
    OK(cuMemFree(p));
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Node i copies the word of a node before it and adds one, so that each word is its node's depth if, and only if, all
 * was done in order. Some of it is done by child graphs, and some nodes wait for more than they need. */
static void random_branches(void)
{
    enum { NODES = 150, GRAPHS = 8 };
    static CUgraphNode node[NODES];
    static uint32_t depth[NODES], words[NODES];
    uint32_t state = 1;
    CUdeviceptr p;
    if (!tap_computes())
        tap_skip("needs kernels");
    OK(cuMemAlloc(&p, sizeof(words)));
    for (int round = 0; round < GRAPHS; round++) {
        CUgraph g;
        OK(cuGraphCreate(&g, 0));
        for (uint32_t i = 0; i < NODES; i++) {
            CUgraph child;
            CUgraphNode after[3], n;
            size_t count = 0;
            uint32_t from = i ? next_random(&state) % i : 0;
            if (i < 3 || next_random(&state) % 8 == 0) { /* a root */
                n = add_fill(g, NULL, 0, p + 4ull * i, 0, 1);
                depth[i] = 1;
                node[i] = add_kernel(g, &n, 1, p + 4ull * i, 1);
                continue;
            }
            after[count++] = node[from];
            for (uint32_t k = next_random(&state) % 3; k-- > 0;) {
                uint32_t other = next_random(&state) % i;
                if (node[other] != after[0] && (count == 1 || node[other] != after[1]))
                    after[count++] = node[other];
            }
            depth[i] = depth[from] + 1;
            CUDA_MEMCPY3D m = copy_params(p + 4ull * i, NULL, p + 4ull * from, NULL, 4);
            if (next_random(&state) % 5 == 0) {
                OK(cuGraphCreate(&child, 0));
                n = add_copy(child, NULL, 0, &m);
                (void)add_kernel(child, &n, 1, p + 4ull * i, 1);
                OK(cuGraphAddChildGraphNode(&node[i], g, after, count, child));
                OK(cuGraphDestroy(child));
            } else {
                n = add_copy(g, after, count, &m);
                node[i] = add_kernel(g, &n, 1, p + 4ull * i, 1);
            }
        }
        CUgraphExec e = make(g);
        OK(cuGraphDestroy(g));
        for (int launch = 0; launch < 3; launch++) {
            OK(cuMemsetD8(p, 0xee, sizeof(words)));
            OK(cuCtxSynchronize());
            OK(cuGraphLaunch(e, stream));
            OK(cuGraphLaunch(e, stream));
            OK(cuMemcpyDtoHAsync(words, p, sizeof(words), stream)); /* after all of it */
            OK(cuStreamSynchronize(stream));
            for (uint32_t i = 0; i < NODES; i++)
                EQ(words[i], depth[i]);
        }
        OK(cuGraphExecDestroy(e));
    }
    OK(cuMemFree(p));
}

/* More records than the command ring has room for. */
static void large(void)
{
    enum { NODES = 12000 };
    CUgraph g;
    CUdeviceptr p;
    if (!tap_computes())
        tap_skip("needs kernels");
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuGraphCreate(&g, 0));
    CUgraphNode last = NULL;
    for (int i = 0; i < NODES; i++)
        last = add_kernel(g, &last, i != 0, p, 1);
    CUgraphExec e = make(g);
    run(e);
    EQ(read_word(p), NODES);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

/* Pageable memory is read and written when the graph runs; rows with pitches; host to host. */
static void copies(void)
{
    enum { N = 5000 };
    static uint32_t in[N], out[N], plain[4];
    CUgraph g;
    CUdeviceptr p, q;
    OK(cuMemAlloc(&p, sizeof(in)));
    OK(cuMemAlloc(&q, sizeof(in)));
    OK(cuGraphCreate(&g, 0));
    CUDA_MEMCPY3D m = copy_params(p, NULL, 0, in, sizeof(in));
    CUgraphNode n = add_copy(g, NULL, 0, &m);
    m = copy_params(q, NULL, p, NULL, sizeof(in));
    n = add_copy(g, &n, 1, &m);
    m = copy_params(0, out, q, NULL, sizeof(in));
    n = add_copy(g, &n, 1, &m);
    m = copy_params(0, plain, 0, in, sizeof(plain));
    (void)add_copy(g, &n, 1, &m);
    CUgraphExec e = make(g);
    for (uint32_t round = 1; round < 4; round++) {
        for (uint32_t i = 0; i < N; i++)
            in[i] = i * round;
        run(e);
        EQ(memcmp(in, out, sizeof(in)), 0);
        EQ(memcmp(in, plain, sizeof(plain)), 0);
    }
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));

    /* Two columns of a 4 x 4 matrix into packed rows and back out. */
    uint32_t matrix[16], columns[8] = { 0 };
    for (uint32_t i = 0; i < 16; i++)
        matrix[i] = i;
    OK(cuGraphCreate(&g, 0));
    m = copy_params(p, NULL, 0, matrix, 8);
    m.srcPitch = 16;
    m.srcHeight = m.dstHeight = m.Height = 4;
    m.srcXInBytes = 4;
    n = add_copy(g, NULL, 0, &m);
    m = copy_params(0, columns, p, NULL, 32);
    (void)add_copy(g, &n, 1, &m);
    e = make(g);
    run(e);
    for (uint32_t i = 0; i < 8; i++)
        EQ(columns[i], i / 2 * 4 + 1 + i % 2);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
    OK(cuMemFree(q));
}

struct watch {
    CUdeviceptr p;
    _Atomic int calls;
    int order[8];
};

static void CUDA_CB note_call(void *arg)
{
    struct watch *w = arg;
    w->order[w->calls & 7] = 1;
    w->calls++;
}

static void CUDA_CB note_second(void *arg)
{
    struct watch *w = arg;
    w->order[w->calls & 7] = 2;
    w->calls++;
}

static void host_nodes(void)
{
    struct watch w = { 0 };
    CUgraph g;
    CUgraphNode a, b;
    CUDA_HOST_NODE_PARAMS first = { .fn = note_call, .userData = &w }, second = { .fn = note_second, .userData = &w };
    CUDA_HOST_NODE_PARAMS got = { 0 };
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddHostNode(&a, g, NULL, 0, &first));
    OK(cuGraphAddHostNode(&b, g, &a, 1, &second));
    OK(cuGraphHostNodeGetParams(b, &got));
    TRUE(got.fn == note_second && got.userData == &w);
    CUgraphExec e = make(g);
    run(e);
    EQ(w.calls, 2);
    EQ(w.order[0], 1);
    EQ(w.order[1], 2);
    OK(cuGraphExecHostNodeSetParams(e, a, &second));
    run(e);
    EQ(w.order[2], 2);
    OK(cuGraphHostNodeSetParams(b, &first)); /* for graphs to come */
    CUgraphExec f = make(g);
    run(f);
    EQ(w.order[5], 1);
    first.fn = NULL;
    IS(cuGraphAddHostNode(&a, g, NULL, 0, &first), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphExecDestroy(f));
    OK(cuGraphDestroy(g));
}

/* Destroyed while it runs: it goes on to its end. */
static void destroyed_running(void)
{
    static uint32_t in[2048], out[2048];
    _Atomic int go = 0;
    CUgraph g;
    CUdeviceptr p;
    CUgraphNode n;
    CUDA_HOST_NODE_PARAMS hold = { .fn = tap_hold, .userData = &go };
    for (uint32_t i = 0; i < COUNT(in); i++)
        in[i] = i;
    OK(cuMemAlloc(&p, sizeof(in)));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddHostNode(&n, g, NULL, 0, &hold));
    CUDA_MEMCPY3D m = copy_params(p, NULL, 0, in, sizeof(in));
    n = add_copy(g, &n, 1, &m);
    m = copy_params(0, out, p, NULL, sizeof(in));
    (void)add_copy(g, &n, 1, &m);
    CUgraphExec e = make(g);
    OK(cuGraphLaunch(e, stream));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    if (!tap_genuine()) /* which may wait for what runs */
        IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    go = 1;
    OK(cuStreamSynchronize(stream));
    EQ(memcmp(in, out, sizeof(in)), 0);
    OK(cuMemFree(p));
}

static void events(void)
{
    CUgraph g;
    CUevent e, f, got;
    CUgraphNode a, b;
    CUdeviceptr p;
    CUstream other;
    _Atomic int go = 0;
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuEventCreate(&e, 0));
    OK(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEventWaitNode(&a, g, NULL, 0, f));
    CUgraphNode fill = add_fill(g, &a, 1, p, 9, 1);
    OK(cuGraphAddEventRecordNode(&b, g, &fill, 1, e));
    OK(cuGraphEventWaitNodeGetEvent(a, &got));
    TRUE(got == f);
    OK(cuGraphEventRecordNodeGetEvent(b, &got));
    TRUE(got == e);
    CUgraphExec x = make(g);
    OK(cuLaunchHostFunc(other, tap_hold, &go));
    OK(cuEventRecord(f, other));
    OK(cuGraphLaunch(x, stream));
    IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    go = 1;
    OK(cuEventSynchronize(e));
    EQ(read_word(p), 9);
    OK(cuGraphExecEventWaitNodeSetEvent(x, a, e));
    OK(cuGraphExecEventRecordNodeSetEvent(x, b, f));
    run(x);
    OK(cuEventQuery(f));
    IS(cuGraphEventRecordNodeGetEvent(a, &got), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(f));
    OK(cuStreamDestroy(other));
    OK(cuMemFree(p));
}

/* A child is a copy, made when it is added; its nodes stand in its own graph. */
static void child_graphs(void)
{
    CUgraph inner, outer, got;
    CUgraphNode child, n;
    CUdeviceptr p;
    size_t count = 9;
    OK(cuMemAlloc(&p, 4));
    OK(cuGraphCreate(&inner, 0));
    OK(cuGraphCreate(&outer, 0));
    CUgraphNode inner_fill = add_fill(inner, NULL, 0, p, 3, 1);
    (void)add_kernel(inner, &inner_fill, 1, p, 4);
    CUgraphNode fill = add_fill(outer, NULL, 0, p, 100, 1);
    OK(cuGraphAddChildGraphNode(&child, outer, &fill, 1, inner));
    (void)add_kernel(outer, &child, 1, p, 10);
    OK(cuGraphChildGraphNodeGetGraph(child, &got));
    TRUE(got != inner);
    OK(cuGraphGetNodes(got, NULL, &count));
    EQ(count, 2);
    IS(cuGraphDestroy(got), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphNodeFindInClone(&n, inner_fill, got));
    CUgraphExec e = make(outer);
    run(e);
    EQ(read_word(p), tap_computes() ? 17 : 3);
    /* Other parameters for the executable graph's child */
    CUgraph changed;
    OK(cuGraphCreate(&changed, 0));
    CUgraphNode changed_fill = add_fill(changed, NULL, 0, p, 1000, 1);
    (void)add_kernel(changed, &changed_fill, 1, p, 4);
    OK(cuGraphExecChildGraphNodeSetParams(e, child, changed));
    run(e);
    EQ(read_word(p), tap_computes() ? 1014 : 1000);
    OK(cuGraphDestroyNode(changed_fill));
    IS(cuGraphExecChildGraphNodeSetParams(e, child, changed), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(changed));
    OK(cuGraphDestroy(inner));
    OK(cuGraphDestroy(outer));
    OK(cuMemFree(p));
}

static void structure(void)
{
    CUgraph g, copy;
    CUgraphNode n[4], got[8], from[8], to[8], found;
    CUgraphNodeType type;
    size_t count;
    OK(cuGraphCreate(&g, 0));
    for (int i = 0; i < 4; i++)
        OK(cuGraphAddEmptyNode(&n[i], g, NULL, 0));
    OK(cuGraphAddDependencies(g, (CUgraphNode[]) { n[0], n[0], n[1] }, (CUgraphNode[]) { n[1], n[2], n[3] }, NULL,
                              3));
    OK(cuGraphAddDependencies(g, &n[2], &n[3], NULL, 1));
    OK(cuGraphNodeGetType(n[0], &type));
    EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
    count = 8;
    OK(cuGraphGetNodes(g, got, &count));
    EQ(count, 4);
    for (int i = 0; i < 4; i++)
        TRUE(got[i] == n[i]);
    count = 0;
    OK(cuGraphGetRootNodes(g, NULL, &count));
    EQ(count, 1);
    count = 8;
    OK(cuGraphGetRootNodes(g, got, &count));
    TRUE(got[0] == n[0]);
    count = 8;
    OK(cuGraphGetEdges(g, from, to, NULL, &count));
    EQ(count, 4);
    count = 2;
    OK(cuGraphNodeGetDependencies(n[3], got, NULL, &count));
    EQ(count, 2);
    TRUE((got[0] == n[1] && got[1] == n[2]) || (got[0] == n[2] && got[1] == n[1]));
    count = 8;
    OK(cuGraphNodeGetDependentNodes(n[0], got, NULL, &count));
    EQ(count, 2);
    TRUE(got[2] == NULL);
    OK(cuGraphClone(&copy, g));
    OK(cuGraphNodeFindInClone(&found, n[3], copy));
    count = 0;
    OK(cuGraphNodeGetDependencies(found, NULL, NULL, &count));
    EQ(count, 2);
    OK(cuGraphDestroyNode(n[1]));
    count = 0;
    OK(cuGraphGetEdges(g, NULL, NULL, NULL, &count));
    EQ(count, 2);
    OK(cuGraphRemoveDependencies(g, &n[2], &n[3], NULL, 1));
    count = 0;
    OK(cuGraphNodeGetDependencies(n[3], NULL, NULL, &count));
    EQ(count, 0);
    count = 0;
    OK(cuGraphGetEdges(copy, NULL, NULL, NULL, &count)); /* has its own */
    EQ(count, 4);
    OK(cuGraphDestroy(copy));
    OK(cuGraphDestroy(g));
}

static void bad_structure(void)
{
    CUgraph g, h;
    CUgraphNode a, b, foreign, n;
    CUgraphExec e;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphCreate(&h, 0));
    OK(cuGraphAddEmptyNode(&a, g, NULL, 0));
    OK(cuGraphAddEmptyNode(&b, g, &a, 1));
    OK(cuGraphAddEmptyNode(&foreign, h, NULL, 0));
    IS(cuGraphAddDependencies(g, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE); /* is there */
    IS(cuGraphAddDependencies(g, &a, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphRemoveDependencies(g, &b, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddDependencies(g, &a, &foreign, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddEmptyNode(&n, g, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddEmptyNode(&n, g, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphCreate(&h, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphInstantiateWithFlags(&e, g, 1u << 20), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(h));
}

static void cycle(void)
{
    CUgraph g;
    CUgraphNode n[3];
    CUgraphExec e;
    OK(cuGraphCreate(&g, 0));
    for (int i = 0; i < 3; i++)
        OK(cuGraphAddEmptyNode(&n[i], g, i ? &n[i - 1] : NULL, i != 0));
    CUresult r = cuGraphAddDependencies(g, &n[2], &n[0], NULL, 1); /* found out here, or when it is made executable */
    IS(r == CUDA_SUCCESS ? cuGraphInstantiateWithFlags(&e, g, 0) : r, CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
}

static void stale(void)
{
    CUgraph g;
    CUgraphNode n, m;
    size_t count = 0;
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEmptyNode(&n, g, NULL, 0));
    CUgraphExec e = make(g);
    OK(cuGraphDestroyNode(n));
    IS(cuGraphDestroyNode(n), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddEmptyNode(&m, g, &n, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphGetNodes(g, NULL, &count));
    EQ(count, 0);
    OK(cuGraphDestroy(g));
    IS(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddEmptyNode(&m, g, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(e));
    IS(cuGraphExecDestroy(e), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphLaunch(e, stream), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphLaunch((CUgraphExec)(void *)g, stream), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphDestroy((CUgraph)(uintptr_t)0x1234), CUDA_ERROR_INVALID_VALUE);
}

/* The module of a kernel is unloaded before the graph is launched. */
static void stale_module(void)
{
    CUgraph g;
    CUmodule m;
    CUgraphNode n;
    CUdeviceptr p;
    uint32_t by = 1;
    void *params[] = { &p, &by };
    if (tap_genuine())
        tap_skip("the genuine library follows stale handles");
    OK(cuMemAlloc(&p, 4));
    OK(cuMemsetD32(p, 5, 1));
    OK(cuModuleLoadData(&m, tap_ptx));
    CUDA_KERNEL_NODE_PARAMS k = add_to_params(params);
    OK(cuModuleGetFunction(&k.func, m, "add_to"));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
    CUgraphExec e = make(g);
    run(e);
    OK(cuModuleUnload(m));
    IS(cuGraphLaunch(e, stream), CUDA_ERROR_INVALID_HANDLE);
    k.func = tap_function("add_to");
    OK(cuGraphExecKernelNodeSetParams(e, n, &k));
    run(e);
    EQ(read_word(p), tap_computes() ? 7 : 5);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

/* What is wrong with a node's parameters is the call's error. */
static void bad_params(void)
{
    CUgraph g;
    CUgraphNode n;
    CUdeviceptr p;
    CUcontext c;
    uint32_t by = 1;
    void *params[] = { &p, &by };
    OK(cuCtxGetCurrent(&c));
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUDA_KERNEL_NODE_PARAMS k = add_to_params(params);
    k.blockDimX = 4096;
    IS(cuGraphAddKernelNode(&n, g, NULL, 0, &k), CUDA_ERROR_INVALID_VALUE);
    k = add_to_params(NULL);
    IS(cuGraphAddKernelNode(&n, g, NULL, 0, &k), CUDA_ERROR_INVALID_VALUE);
    k = add_to_params(params);
    k.func = NULL;
    IS(cuGraphAddKernelNode(&n, g, NULL, 0, &k), CUDA_ERROR_INVALID_HANDLE);
    CUDA_MEMSET_NODE_PARAMS f = { .dst = p, .elementSize = 3, .width = 1, .height = 1 };
    IS(cuGraphAddMemsetNode(&n, g, NULL, 0, &f, c), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddKernelNode(&n, g, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

/* What a node was given comes back, kernels' parameters included; SetParams changes graphs to come. */
static void get_and_set(void)
{
    CUgraph g;
    CUdeviceptr p;
    uint32_t by = 11;
    void *params[] = { &p, &by };
    CUDA_KERNEL_NODE_PARAMS k, got;
    CUDA_MEMSET_NODE_PARAMS f;
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode fill = add_fill(g, NULL, 0, p, 1, 4);
    CUgraphNode n = add_kernel(g, &fill, 1, p, 7);
    OK(cuGraphKernelNodeGetParams(n, &got));
    TRUE(got.func == tap_function("add_to"));
    EQ(got.blockDimX, 1);
    EQ(*(CUdeviceptr *)got.kernelParams[0], p);
    EQ(*(uint32_t *)got.kernelParams[1], 7);
    CUgraphExec before = make(g);
    k = add_to_params(params);
    OK(cuGraphKernelNodeSetParams(n, &k));
    OK(cuGraphMemsetNodeGetParams(fill, &f));
    EQ(f.width, 4);
    f.value = 1000;
    OK(cuGraphMemsetNodeSetParams(fill, &f));
    CUgraphExec after = make(g);
    run(before);
    EQ(read_word(p), tap_computes() ? 8 : 1);
    run(after);
    EQ(read_word(p), tap_computes() ? 1011 : 1000);
    IS(cuGraphKernelNodeSetParams(fill, &k), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphKernelNodeGetParams(fill, &k), CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY3D m = copy_params(p, NULL, p + 8, NULL, 4), m2;
    CUgraphNode copy = add_copy(g, NULL, 0, &m);
    OK(cuGraphMemcpyNodeGetParams(copy, &m2));
    EQ(m2.WidthInBytes, 4);
    TRUE(m2.srcDevice == p + 8);
    OK(cuGraphExecDestroy(before));
    OK(cuGraphExecDestroy(after));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

static void exec_set(void)
{
    static uint32_t words[2] = { 5, 50 };
    CUgraph g;
    CUcontext c;
    CUdeviceptr p;
    uint32_t by = 11;
    unsigned enabled = 7;
    void *params[] = { &p, &by };
    OK(cuCtxGetCurrent(&c));
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode fill = add_fill(g, NULL, 0, p, 1, 4);
    CUgraphNode n = add_kernel(g, &fill, 1, p, 7);
    CUDA_MEMCPY3D m = copy_params(p + 4, NULL, 0, &words[0], 4);
    CUgraphNode copy = add_copy(g, &fill, 1, &m);
    CUgraphExec e = make(g);
    run(e);
    EQ(read_word(p + 4), 5);
    m.srcHost = &words[1];
    OK(cuGraphExecMemcpyNodeSetParams(e, copy, &m, c));
    CUDA_KERNEL_NODE_PARAMS k = add_to_params(params);
    OK(cuGraphExecKernelNodeSetParams(e, n, &k));
    CUDA_MEMSET_NODE_PARAMS f = { .dst = p, .value = 20, .elementSize = 4, .width = 4, .height = 1 };
    OK(cuGraphExecMemsetNodeSetParams(e, fill, &f, c));
    run(e);
    EQ(read_word(p), tap_computes() ? 31 : 20);
    EQ(read_word(p + 4), 50);
    OK(cuGraphNodeGetEnabled(e, n, &enabled));
    EQ(enabled, 1);
    OK(cuGraphNodeSetEnabled(e, n, 0));
    OK(cuGraphNodeSetEnabled(e, copy, 0));
    OK(cuGraphNodeGetEnabled(e, n, &enabled));
    EQ(enabled, 0);
    run(e);
    EQ(read_word(p), 20);
    EQ(read_word(p + 4), 20);
    OK(cuGraphExecKernelNodeSetParams(e, n, &k)); /* stays off */
    run(e);
    EQ(read_word(p), 20);
    OK(cuGraphNodeSetEnabled(e, n, 1));
    run(e);
    EQ(read_word(p), tap_computes() ? 31 : 20);
    IS(cuGraphExecKernelNodeSetParams(e, fill, &k), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

static void update(void)
{
    CUgraph g, h;
    CUdeviceptr p;
    CUgraphExecUpdateResultInfo info;
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode fill = add_fill(g, NULL, 0, p, 1, 4);
    (void)add_kernel(g, &fill, 1, p, 7);
    CUgraphExec e = make(g);
    OK(cuGraphCreate(&h, 0));
    fill = add_fill(h, NULL, 0, p, 100, 4);
    CUgraphNode k = add_kernel(h, &fill, 1, p, 8);
    OK(cuGraphExecUpdate(e, h, &info));
    EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run(e);
    EQ(read_word(p), tap_computes() ? 108 : 100);
    (void)add_kernel(h, &k, 1, p, 1);
    IS(cuGraphExecUpdate(e, h, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphDestroy(h));
    OK(cuGraphCreate(&h, 0));
    k = add_kernel(h, NULL, 0, p, 8);
    (void)add_fill(h, &k, 1, p, 100, 4);
    IS(cuGraphExecUpdate(e, h, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    OK(cuGraphDestroy(h));
    run(e); /* unharmed */
    EQ(read_word(p), tap_computes() ? 108 : 100);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

static void generic_nodes(void)
{
    CUgraph g;
    CUgraphNode fill, n;
    CUcontext c;
    CUdeviceptr p;
    CUgraphExec e;
    cuuint64_t flags = 9;
    uint32_t by = 6;
    void *params[] = { &p, &by };
    OK(cuCtxGetCurrent(&c));
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUgraphNodeParams f = {
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .memset = { .dst = p, .value = 2, .elementSize = 4, .width = 1, .height = 1, .ctx = c },
    };
    OK(cuGraphAddNode(&fill, g, NULL, NULL, 0, &f));
    CUgraphNodeParams k = {
        .type = CU_GRAPH_NODE_TYPE_KERNEL,
        .kernel = { .func = tap_function("add_to"),
                    .gridDimX = 1,
                    .gridDimY = 1,
                    .gridDimZ = 1,
                    .blockDimX = 1,
                    .blockDimY = 1,
                    .blockDimZ = 1,
                    .kernelParams = params },
    };
    OK(cuGraphAddNode(&n, g, &fill, NULL, 1, &k));
    CUDA_GRAPH_INSTANTIATE_PARAMS how = { 0 };
    OK(cuGraphInstantiateWithParams(&e, g, &how));
    EQ(how.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    OK(cuGraphExecGetFlags(e, &flags));
    EQ(flags, 0);
    run(e);
    EQ(read_word(p), tap_computes() ? 8 : 2);
    by = 60;
    OK(cuGraphExecNodeSetParams(e, n, &k));
    f.memset.value = 30;
    OK(cuGraphExecNodeSetParams(e, fill, &f));
    run(e);
    EQ(read_word(p), tap_computes() ? 90 : 30);
    OK(cuGraphNodeSetParams(fill, &f));
    k.type = (CUgraphNodeType)99;
    IS(cuGraphAddNode(&n, g, NULL, NULL, 0, &k), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

static void attributes(void)
{
    CUgraph g;
    CUdeviceptr p;
    CUkernelNodeAttrValue v = { .priority = -1 }, got = { 0 };
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode a = add_kernel(g, NULL, 0, p, 7), b = add_kernel(g, NULL, 0, p, 7), c = add_fill(g, NULL, 0, p, 1, 1);
    OK(cuGraphKernelNodeSetAttribute(a, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
    OK(cuGraphKernelNodeCopyAttributes(b, a));
    OK(cuGraphKernelNodeGetAttribute(b, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &got));
    EQ(got.priority, -1);
    IS(cuGraphKernelNodeSetAttribute(c, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

static void CUDA_CB count_up(void *arg)
{
    ++*(_Atomic int *)arg;
}

static void wait_for(_Atomic int *value, int want)
{
    for (int i = 0; i < 10000 && *value != want; i++)
        usleep(1000);
    EQ(*value, want);
}

/* A user object lives as long as anybody refers to it: the program, a graph, copies of it, executable graphs. */
static void user_objects(void)
{
    static _Atomic int gone;
    CUuserObject o;
    CUgraph g, copy;
    gone = 0;
    IS(cuUserObjectCreate(&o, &gone, count_up, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuUserObjectCreate(&o, &gone, count_up, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectRetain(o, 2));
    OK(cuUserObjectRelease(o, 2));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphRetainUserObject(g, o, 1, 0));
    OK(cuGraphReleaseUserObject(g, o, 1));
    OK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE)); /* ours is the graph's now */
    OK(cuGraphClone(&copy, g));
    CUgraphExec e = make(g);
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(copy));
    run(e);
    EQ(gone, 0);
    OK(cuGraphExecDestroy(e));
    wait_for(&gone, 1);
}

static CUgraphNode add_alloc(CUgraph g, size_t size, CUdeviceptr *out)
{
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
        .bytesize = size,
    };
    OK(cuGraphAddMemAllocNode(&n, g, NULL, 0, &a));
    TRUE(a.dptr != 0);
    *out = a.dptr;
    return n;
}

/* Memory that a graph allocates and frees again, or leaves to the program. */
static void memory_nodes(void)
{
    CUgraph g;
    CUgraphNode n, freed;
    CUDA_MEM_ALLOC_NODE_PARAMS a;
    CUdeviceptr p, q, got;
    cuuint64_t used = 99;
    OK(cuMemAlloc(&q, 4));
    OK(cuGraphCreate(&g, 0));
    n = add_alloc(g, 1 << 20, &p);
    OK(cuGraphMemAllocNodeGetParams(n, &a));
    EQ(a.bytesize, 1 << 20);
    TRUE(a.dptr == p);
    n = add_fill(g, &n, 1, p, 21, 4);
    CUDA_MEMCPY3D m = copy_params(q, NULL, p, NULL, 4);
    n = add_copy(g, &n, 1, &m);
    OK(cuGraphAddMemFreeNode(&freed, g, &n, 1, p));
    OK(cuGraphMemFreeNodeGetParams(freed, &got));
    TRUE(got == p);
    IS(cuGraphAddMemFreeNode(&freed, g, &n, 1, q), CUDA_ERROR_INVALID_VALUE);
    CUgraphExec e = make(g);
    run(e);
    run(e);
    EQ(read_word(q), 21);
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    EQ(used, 32 << 20); /* still the graph's, though it is not allocated; counted in units of that size */
    OK(cuDeviceGraphMemTrim(0));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    EQ(used, 0);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));

    OK(cuGraphCreate(&g, 0));
    n = add_alloc(g, 4096, &p);
    (void)add_fill(g, &n, 1, p, 22, 4);
    e = make(g);
    run(e);
    EQ(read_word(p), 22);
    IS(cuGraphLaunch(e, stream), CUDA_ERROR_INVALID_VALUE); /* still allocated */
    OK(cuMemFreeAsync(p, stream));
    run(e);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    EQ(read_word(p), 22); /* outlives the graph */
    OK(cuMemFree(p));
    OK(cuDeviceGraphMemTrim(0));
    OK(cuMemFree(q));
}

/* What is allocated after something as large was freed is the same memory; beside it, or before it is freed, it is not. */
static void memory_again(void)
{
    CUgraph g;
    CUdeviceptr p, q, r, got[2];
    CUgraphNode n[3], freed;
    CUDA_MEM_ALLOC_NODE_PARAMS a = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } },
                                     .bytesize = 1 << 20 };
    OK(cuMemAlloc(&r, 4));
    OK(cuGraphCreate(&g, 0));
    n[0] = add_alloc(g, 1 << 20, &p);
    OK(cuGraphAddMemAllocNode(&n[1], g, &n[0], 1, &a));
    got[0] = a.dptr;
    TRUE(got[0] != p); /* not freed yet */
    n[1] = add_fill(g, &n[1], 1, p, 31, 4);
    OK(cuGraphAddMemFreeNode(&freed, g, &n[1], 1, p));
    OK(cuGraphAddMemAllocNode(&n[2], g, &n[1], 1, &a));
    got[1] = a.dptr;
    TRUE(got[1] != p); /* beside the node that frees */
    OK(cuGraphAddMemAllocNode(&n[2], g, &freed, 1, &a));
    q = a.dptr;
    TRUE(q == p);
    OK(cuGraphAddMemAllocNode(&n[1], g, &freed, 1, &a));
    TRUE(a.dptr != p && a.dptr != got[0] && a.dptr != got[1]); /* taken already */
    n[2] = add_fill(g, &n[2], 1, q, 32, 4);
    CUDA_MEMCPY3D m = copy_params(r, NULL, q, NULL, 4);
    n[2] = add_copy(g, &n[2], 1, &m);
    OK(cuGraphAddMemFreeNode(&freed, g, &n[2], 1, q));
    CUgraphExec e;
    OK(cuGraphInstantiateWithFlags(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int i = 0; i < 3; i++) {
        run(e);
        EQ(read_word(r), 32);
    }
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(got[0]));
    OK(cuMemFree(got[1]));
    OK(cuMemFree(a.dptr));
    OK(cuMemFree(r));
    OK(cuDeviceGraphMemTrim(0));
}

/* One graph allocates, another one frees, and what is between them sees the memory. */
static void freed_by_another_graph(void)
{
    CUgraph g, h;
    CUgraphNode n;
    CUdeviceptr p;
    uint32_t word;
    OK(cuGraphCreate(&g, 0));
    n = add_alloc(g, 4096, &p);
    (void)add_fill(g, &n, 1, p, 24, 4);
    OK(cuGraphCreate(&h, 0));
    OK(cuGraphAddMemFreeNode(&n, h, NULL, 0, p));
    CUgraphExec allocate = make(g), release = make(h);
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(h));
    for (int i = 0; i < 3; i++) {
        word = 0;
        OK(cuGraphLaunch(allocate, stream));
        OK(cuMemcpyDtoHAsync(&word, p, 4, stream));
        OK(cuGraphLaunch(release, stream));
        OK(cuStreamSynchronize(stream));
        EQ(word, 24);
    }
    OK(cuGraphExecDestroy(allocate));
    OK(cuGraphExecDestroy(release));
    OK(cuDeviceGraphMemTrim(0));
}

/* Allocates, waits for the flag, fills, copies to `to`, frees. */
static CUgraph memory_behind(_Atomic int *flag, CUdeviceptr to, unsigned value)
{
    CUgraph g;
    CUgraphNode n, held;
    CUdeviceptr p;
    OK(cuGraphCreate(&g, 0));
    n = add_alloc(g, 1 << 20, &p);
    OK(cuGraphAddHostNode(&held, g, &n, 1, &(CUDA_HOST_NODE_PARAMS) { .fn = tap_hold, .userData = flag }));
    n = add_fill(g, &held, 1, p, value, 4);
    CUDA_MEMCPY3D m = copy_params(to, NULL, p, NULL, 4);
    n = add_copy(g, &n, 1, &m);
    OK(cuGraphAddMemFreeNode(&n, g, &n, 1, p));
    return g;
}

/* An executable graph keeps the memory that it was made with, also while it runs: a graph with other memory is no update of it. */
static void other_memory(void)
{
    static _Atomic int go;
    CUdeviceptr q;
    CUgraphExecUpdateResultInfo info;
    OK(cuMemAlloc(&q, 8));
    OK(cuMemsetD32(q, 0, 2));
    CUgraph g = memory_behind(&go, q, 41), h = memory_behind(&go, q + 4, 42);
    CUgraphExec e = make(g);
    OK(cuGraphLaunch(e, stream));
    IS(cuGraphExecUpdate(e, h, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
    OK(cuGraphDestroy(h));
    OK(cuGraphExecUpdate(e, g, &info));
    EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuGraphDestroy(g));
    OK(cuGraphLaunch(e, stream));
    go = 1;
    OK(cuStreamSynchronize(stream));
    EQ(read_word(q), 41);
    EQ(read_word(q + 4), 0);
    OK(cuGraphExecDestroy(e));
    OK(cuMemFree(q));
}

/* Graphs belong to no context, but their memory does. What others get at its addresses is theirs. */
static void memory_of_ended_context(void)
{
    CUcontext c;
    CUgraph g;
    CUdeviceptr p, later[8];
    if (tap_genuine())
        tap_skip("what a graph is without its context is not defined");
    OK(cuCtxCreate(&c, NULL, 0, 0));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode n = add_alloc(g, 1 << 20, &p);
    (void)add_fill(g, &n, 1, p, 25, 4);
    CUgraphExec e = make(g);
    OK(cuCtxDestroy(c));
    for (unsigned i = 0; i < COUNT(later); i++)
        OK(cuMemAlloc(&later[i], 1 << 20));
    IS(cuGraphLaunch(e, stream), CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < COUNT(later); i++)
        OK(cuMemFreeAsync(later[i], stream));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamSynchronize(stream));
}

/* Made so that a launch frees what the last one left. */
static void auto_free(void)
{
    CUgraph g;
    CUgraphExec e;
    CUdeviceptr p;
    OK(cuGraphCreate(&g, 0));
    CUgraphNode n = add_alloc(g, 4096, &p);
    (void)add_fill(g, &n, 1, p, 23, 4);
    OK(cuGraphInstantiateWithFlags(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    run(e);
    run(e);
    EQ(read_word(p), 23);
    OK(cuMemFree(p));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

static void drawing(void)
{
    char path[64], text[4096] = "";
    CUgraph g;
    CUdeviceptr p;
    (void)snprintf(path, sizeof(path), "/tmp/gmux-graph-%d.dot", (int)getpid());
    OK(cuMemAlloc(&p, 16));
    OK(cuGraphCreate(&g, 0));
    CUgraphNode fill = add_fill(g, NULL, 0, p, 1, 4);
    (void)add_kernel(g, &fill, 1, p, 7);
    OK(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    FILE *f = fopen(path, "re");
    TRUE(f != NULL);
    size_t size = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    unlink(path);
    TRUE(size > 0 && strstr(text, "digraph") && strstr(text, "add_to") && strstr(text, "->"));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(chain),
        TEST(many_launches),
        TEST(large),
        TEST(random_branches),
        TEST(copies),
        TEST(host_nodes),
        TEST(destroyed_running),
        TEST(events),
        TEST(child_graphs),
        TEST(structure),
        TEST(bad_structure),
        TEST(cycle),
        TEST(stale),
        TEST(stale_module),
        TEST(bad_params),
        TEST(get_and_set),
        TEST(exec_set),
        TEST(update),
        TEST(generic_nodes),
        TEST(attributes),
        TEST(user_objects),
        TEST(drawing),
        TEST(memory_nodes),
        TEST(memory_again),
        TEST(freed_by_another_graph),
        TEST(other_memory),
        TEST(memory_of_ended_context),
        TEST(auto_free),
    };
    CUcontext c;
    if (cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS &&
        cuCtxSetCurrent(c) == CUDA_SUCCESS)
        (void)cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    return tap_main(tests, COUNT(tests));
}
