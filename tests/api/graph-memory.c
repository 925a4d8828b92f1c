/* Graphs that allocate and free memory. */
#include "nodes.h"

#include <stdatomic.h>

static CUgraphNode add_alloc(CUgraph g, size_t size, CUdeviceptr *out)
{
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
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
    EQ(used,
       32 << 20); /* still the graph's, though it is not allocated; counted in units of that size */
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

/* What is allocated after something as large was freed is the same memory; beside it, or before it
 * is freed, it is not. */
static void memory_again(void)
{
    CUgraph g;
    CUdeviceptr p, q, r, got[2];
    CUgraphNode n[3], freed;
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } },
        .bytesize = 1 << 20
    };
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
    OK(cuGraphAddHostNode(&held, g, &n, 1,
                          &(CUDA_HOST_NODE_PARAMS) { .fn = tap_hold, .userData = flag }));
    n = add_fill(g, &held, 1, p, value, 4);
    CUDA_MEMCPY3D m = copy_params(to, NULL, p, NULL, 4);
    n = add_copy(g, &n, 1, &m);
    OK(cuGraphAddMemFreeNode(&n, g, &n, 1, p));
    return g;
}

/* An executable graph keeps the memory that it was made with, also while it runs: a graph with
 * other memory is no update of it. */
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
    hold_set(&go, 1);
    OK(cuStreamSynchronize(stream));
    EQ(read_word(q), 41);
    EQ(read_word(q + 4), 0);
    OK(cuGraphExecDestroy(e));
    OK(cuMemFree(q));
}

/* Graphs belong to no context, but their memory does. What others get at its addresses is theirs.
 */
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

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(memory_nodes),
        TEST(memory_again),
        TEST(freed_by_another_graph),
        TEST(other_memory),
        TEST(memory_of_ended_context),
        TEST(auto_free),
    };
    return nodes_main(tests, COUNT(tests));
}
