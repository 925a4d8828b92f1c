/* Graphs: what they compute, and in which order. */
#include "nodes.h"

#include <stdatomic.h>
#include <string.h>

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

/* Node i copies the word of a node before it and adds one, so that each word is its node's depth
 * if, and only if, all was done in order. Some of it is done by child graphs, and some nodes wait
 * for more than they need. */
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
    CUDA_HOST_NODE_PARAMS first = { .fn = note_call, .userData = &w },
                          second = { .fn = note_second, .userData = &w };
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
    hold_set(&go, 1);
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
    hold_set(&go, 1);
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
    };
    return nodes_main(tests, COUNT(tests));
}
