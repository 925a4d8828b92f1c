/* Graphs: nodes and edges, parameters, executable graphs that are changed, and what is refused. */
#include "nodes.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static void structure(void)
{
    CUgraph g, copy;
    CUgraphNode n[4], got[8], from[8], to[8], found;
    CUgraphNodeType type;
    size_t count;
    OK(cuGraphCreate(&g, 0));
    for (int i = 0; i < 4; i++)
        OK(cuGraphAddEmptyNode(&n[i], g, NULL, 0));
    OK(cuGraphAddDependencies(g, (CUgraphNode[]) { n[0], n[0], n[1] },
                              (CUgraphNode[]) { n[1], n[2], n[3] }, NULL, 3));
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
    CUresult r = cuGraphAddDependencies(g, &n[2], &n[0], NULL,
                                        1); /* found out here, or when it is made executable */
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
    k = add_to_params(params); /* what stands beside a function is ignored */
    k.kern = (CUkernel)(void *)&k;
    k.ctx = (CUcontext)(void *)&k;
    OK(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
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

/* What a node was given comes back, kernels' parameters included; SetParams changes graphs to come.
 */
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
    m.WidthInBytes = 0;
    IS(cuGraphExecMemcpyNodeSetParams(e, copy, &m, c), CUDA_ERROR_INVALID_VALUE);
    CUDA_KERNEL_NODE_PARAMS k = add_to_params(params);
    OK(cuGraphExecKernelNodeSetParams(e, n, &k));
    CUDA_MEMSET_NODE_PARAMS f = {
        .dst = p, .value = 20, .elementSize = 4, .width = 4, .height = 1
    };
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
    TRUE(info.errorNode != NULL && info.errorFromNode == NULL);
    OK(cuGraphDestroy(h));
    OK(cuGraphCreate(&h, 0)); /* an edge less, and other nodes, which do not matter then */
    (void)add_kernel(h, NULL, 0, p, 8);
    (void)add_fill(h, NULL, 0, p, 100, 4);
    IS(cuGraphExecUpdate(e, h, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    TRUE(info.errorNode != NULL && info.errorFromNode == NULL);
    CUgraphExec loose = make(h);
    IS(cuGraphExecUpdate(loose, g, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED); /* an edge more */
    TRUE(info.errorNode == NULL && info.errorFromNode == NULL);
    OK(cuGraphExecDestroy(loose));
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
    OK(cuGraphExecDestroy(e));
    how.flags = 0x20;
    IS(cuGraphInstantiateWithParams(&e, g, &how), CUDA_ERROR_INVALID_VALUE);
    EQ(how.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
    OK(cuGraphInstantiateWithFlags(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
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
    CUgraphNode a = add_kernel(g, NULL, 0, p, 7), b = add_kernel(g, NULL, 0, p, 7),
                c = add_fill(g, NULL, 0, p, 1, 1);
    OK(cuGraphKernelNodeSetAttribute(a, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
    OK(cuGraphKernelNodeCopyAttributes(b, a));
    OK(cuGraphKernelNodeGetAttribute(b, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &got));
    EQ(got.priority, -1);
    IS(cuGraphKernelNodeSetAttribute(c, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

static void CUDA_CB count_up(void *arg)
{
    _Atomic int *count = arg;
    hold_set(count, *count + 1);
}

static void wait_for(_Atomic int *value, int want)
{
    hold_wait(value, want);
    EQ(*value, want);
}

/* A user object lives as long as anybody refers to it: the program, a graph, copies of it,
 * executable graphs. */
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
    OK(cuUserObjectCreate(&o, &gone, count_up, 0x80000000u, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
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

static void CUDA_CB nothing(void *unused)
{
    (void)unused;
}

/* Nodes that have nothing of a context's are added without one. */
static void without_context(void)
{
    CUcontext current;
    CUgraph g, h;
    CUgraphNode n;
    CUgraphExec exec;
    CUevent e;
    CUDA_HOST_NODE_PARAMS p = { nothing, NULL };
    size_t count = 0;
    OK(cuCtxGetCurrent(&current));
    OK(cuEventCreate(&e, 0));
    OK(cuCtxSetCurrent(NULL));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphCreate(&h, 0));
    OK(cuGraphAddEmptyNode(&n, g, NULL, 0));
    OK(cuGraphAddHostNode(&n, g, &n, 1, &p));
    OK(cuGraphAddEventRecordNode(&n, g, &n, 1, e));
    OK(cuGraphAddChildGraphNode(&n, g, &n, 1, h));
    IS(cuGraphAddEmptyNode(&n, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddHostNode(&n, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddEventWaitNode(&n, g, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddChildGraphNode(&n, NULL, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphInstantiateWithFlags(&exec, NULL, 0x10), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphInstantiateWithFlags(&exec, NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuGraphGetNodes(g, NULL, &count));
    EQ(count, 4);
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(h));
    OK(cuCtxSetCurrent(current));
    OK(cuEventDestroy(e));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(structure),    TEST(bad_structure),   TEST(cycle),       TEST(stale),
        TEST(stale_module), TEST(bad_params),      TEST(get_and_set), TEST(exec_set),
        TEST(update),       TEST(generic_nodes),   TEST(attributes),  TEST(user_objects),
        TEST(drawing),      TEST(without_context),
    };
    return nodes_main(tests, COUNT(tests));
}
