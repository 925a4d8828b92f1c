/* Graphs as a whole: edges, instances, updates, clones. */
#include "answers.h"

#include <stdlib.h>
#include <unistd.h>

#include "../hold.h"

static CUgraphNode set(CUgraph g, CUgraphNode after, CUdeviceptr p, unsigned value, size_t words)
{
    CUDA_MEMSET_NODE_PARAMS m = {
        .dst = p, .value = value, .elementSize = 4, .width = words, .height = 1
    };
    CUgraphNode n = NULL;
    CUcontext c;
    cuCtxGetCurrent(&c);
    answers_call("add memset",
                 cuGraphAddMemsetNode(&n, g, after ? &after : NULL, after ? 1 : 0, &m, c));
    return n;
}

static CUgraphNode add(CUgraph g, CUgraphNode after, CUdeviceptr *p, unsigned *by)
{
    void *params[] = { p, by };
    CUDA_KERNEL_NODE_PARAMS k = { .func = answers_function_of("add_to"),
                                  .gridDimX = 1,
                                  .gridDimY = 1,
                                  .gridDimZ = 1,
                                  .blockDimX = 1,
                                  .blockDimY = 1,
                                  .blockDimZ = 1,
                                  .kernelParams = params };
    CUgraphNode n = NULL;
    answers_call("add kernel",
                 cuGraphAddKernelNode(&n, g, after ? &after : NULL, after ? 1 : 0, &k));
    return n;
}

static void building(void)
{
    CUgraph g;
    CUgraphNode a, b, c, from[8], to[8], nodes[8];
    size_t n = 9;
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphCreate(&g, 1));
    CALL(cuGraphCreate(NULL, 0));
    CALL(cuGraphGetNodes(g, NULL, &n));
    NUM(n);
    CALL(cuGraphAddEmptyNode(&a, g, NULL, 0));
    CALL(cuGraphAddEmptyNode(&b, g, &a, 1));
    CALL(cuGraphAddEmptyNode(&c, g, NULL, 0));
    CALL(cuGraphAddDependencies(g, &b, &c, NULL, 1));
    CALL(cuGraphAddDependencies(g, &b, &c, NULL, 1));
    CALL(cuGraphAddDependencies(g, &c, &a, NULL, 1));
    CALL(cuGraphAddDependencies(g, &c, &c, NULL, 1));
    CALL(cuGraphGetEdges(g, NULL, NULL, NULL, &n));
    NUM(n);
    n = 8;
    CALL(cuGraphGetEdges(g, from, to, NULL, &n));
    NUM(n);
    n = 8;
    CALL(cuGraphGetRootNodes(g, nodes, &n));
    NUM(n);
    NUM(nodes[0] == a);
    n = 8;
    CALL(cuGraphNodeGetDependencies(b, nodes, NULL, &n));
    NUM(n);
    CALL(cuGraphNodeGetDependentNodes(a, NULL, NULL, &n));
    NUM(n);
    n = 2;
    CALL(cuGraphGetNodes(g, nodes, &n));
    NUM(n);
    n = 8;
    CALL(cuGraphGetNodes(g, nodes, &n));
    NUM(n);
    NUM(nodes[3] == NULL);
    CALL(cuGraphRemoveDependencies(g, &b, &c, NULL, 1));
    CALL(cuGraphRemoveDependencies(g, &b, &c, NULL, 1));
    CALL(cuGraphDestroyNode(b));
    CALL(cuGraphGetNodes(g, NULL, &n));
    NUM(n);
    CALL(cuGraphGetEdges(g, NULL, NULL, NULL, &n));
    NUM(n);
    CALL(cuGraphAddEmptyNode(NULL, g, NULL, 0));
    CALL(cuGraphAddEmptyNode(&b, g, NULL, 1));
    CALL(cuGraphDestroy(g));
    CALL(cuGraphDestroy(NULL));
}

static void running(void)
{
    CUgraph g;
    CUgraphExec e;
    CUdeviceptr p;
    CUstream s;
    unsigned by = 4;
    cuuint64_t flags = 9;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuMemAlloc(&p, 64));
    CALL(cuGraphCreate(&g, 0));
    CUgraphNode a = set(g, NULL, p, 10, 4), b = add(g, a, &p, &by);
    add(g, b, &p, &by);
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphExecGetFlags(e, &flags));
    NUM(flags);
    CALL(cuGraphUpload(e, s));
    CALL(cuGraphLaunch(e, s));
    CALL(cuGraphLaunch(e, s));
    CALL(cuStreamSynchronize(s));
    NUM(answers_word(p));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuGraphLaunch(e, CU_STREAM_PER_THREAD));
    CALL(cuGraphLaunch(NULL, s));
    CALL(cuGraphDestroy(g));
    CALL(cuGraphLaunch(e, s));
    CALL(cuCtxSynchronize());
    CALL(cuGraphExecDestroy(e));
    CALL(cuGraphExecDestroy(NULL));
    CALL(cuGraphInstantiate(NULL, g, 0));
    CALL(cuGraphInstantiate(&e, NULL, 0));
}

static void instances(void)
{
    CUgraph g;
    CUgraphExec e = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS ip = { 0 };
    cuuint64_t flags = 9;
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuGraphInstantiate(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    CALL(cuGraphExecGetFlags(e, &flags));
    NUM(flags);
    CALL(cuGraphInstantiate(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    CALL(cuGraphInstantiate(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
    CALL(cuGraphInstantiate(&e, g, 0x100));
    CALL(cuGraphInstantiateWithParams(&e, g, &ip));
    NUM(ip.result_out);
    ip.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    CALL(cuGraphInstantiateWithParams(&e, g, &ip));
    ip.flags = 0x100;
    CALL(cuGraphInstantiateWithParams(&e, g, &ip));
    CALL(cuGraphInstantiateWithParams(&e, g, NULL));
    CALL(cuGraphExecGetFlags(e, NULL));
}

static void updates(void)
{
    CUgraph g, h;
    CUgraphExec e;
    CUdeviceptr p;
    CUgraphExecUpdateResultInfo info = { 0 };
    unsigned by = 1, two = 2;
    CALL(cuMemAlloc(&p, 64));
    CALL(cuMemsetD8(p, 0, 64));
    CALL(cuGraphCreate(&g, 0));
    CUgraphNode n = add(g, NULL, &p, &by);
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphCreate(&h, 0));
    add(h, NULL, &p, &two);
    CALL(cuGraphExecUpdate(e, h, &info));
    NUM(info.result);
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    add(h, NULL, &p, &two);
    CALL(cuGraphExecUpdate(e, h, &info));
    NUM(info.result);
    CALL(cuGraphDestroy(h));
    CALL(cuGraphCreate(&h, 0));
    set(h, NULL, p, 1, 1);
    CALL(cuGraphExecUpdate(e, h, &info));
    NUM(info.result);
    void *params[] = { &p, &two };
    CUDA_KERNEL_NODE_PARAMS k = { .func = answers_function_of("add_to"),
                                  .gridDimX = 1,
                                  .gridDimY = 1,
                                  .gridDimZ = 1,
                                  .blockDimX = 1,
                                  .blockDimY = 1,
                                  .blockDimZ = 1,
                                  .kernelParams = params };
    two = 50;
    CALL(cuGraphExecKernelNodeSetParams(e, n, &k));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    k.blockDimX = 5000;
    CALL(cuGraphExecKernelNodeSetParams(e, n, &k));
    k.blockDimX = 1;
    k.func = NULL;
    CALL(cuGraphExecKernelNodeSetParams(e, n, &k));
    CALL(cuGraphExecUpdate(e, NULL, &info));
    CALL(cuGraphExecUpdate(e, g, NULL));
}

static void enabling(void)
{
    CUgraph g;
    CUgraphExec e;
    CUdeviceptr p;
    unsigned by = 7, on = 9;
    CALL(cuMemAlloc(&p, 64));
    CALL(cuGraphCreate(&g, 0));
    CUgraphNode a = set(g, NULL, p, 10, 4), b = add(g, a, &p, &by), empty;
    CALL(cuGraphAddEmptyNode(&empty, g, NULL, 0));
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphNodeGetEnabled(e, b, &on));
    NUM(on);
    CALL(cuGraphNodeSetEnabled(e, b, 0));
    CALL(cuGraphNodeGetEnabled(e, b, &on));
    NUM(on);
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    CALL(cuGraphNodeSetEnabled(e, empty, 0));
    CALL(cuGraphNodeGetEnabled(e, b, NULL));
}

static void clones(void)
{
    CUgraph g, c, child;
    CUgraphNode n, found = NULL;
    CUdeviceptr p;
    CUgraphExec e;
    unsigned by = 7;
    CUgraphNodeType type = 99;
    CALL(cuMemAlloc(&p, 64));
    CALL(cuMemsetD8(p, 0, 64));
    CALL(cuGraphCreate(&g, 0));
    n = add(g, NULL, &p, &by);
    CALL(cuGraphClone(&c, g));
    CALL(cuGraphNodeFindInClone(&found, n, c));
    NUM(found != NULL && found != n);
    CALL(cuGraphNodeFindInClone(&found, found, c));
    CALL(cuGraphDestroyNode(n));
    CALL(cuGraphInstantiate(&e, c, 0));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddChildGraphNode(&n, g, NULL, 0, c));
    CALL(cuGraphNodeGetType(n, &type));
    NUM(type);
    CALL(cuGraphChildGraphNodeGetGraph(n, &child));
    NUM(child != c);
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    CALL(cuGraphExecChildGraphNodeSetParams(e, n, c));
    CALL(cuGraphClone(NULL, g));
    CALL(cuGraphClone(&c, NULL));
}

static _Atomic int destroyed;
static void CUDA_CB ended(void *data)
{
    hold_set(&destroyed, destroyed + *(int *)data);
}

static void user_objects(void)
{
    CUuserObject o;
    CUgraph g;
    int one = 1;
    CALL(cuGraphCreate(&g, 0));
    CALL(cuUserObjectCreate(&o, &one, ended, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CALL(cuUserObjectRetain(o, 1));
    CALL(cuUserObjectRelease(o, 2));
    NUM(destroyed);
    CALL(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CALL(cuGraphRetainUserObject(g, o, 1, 0));
    CALL(cuGraphReleaseUserObject(g, o, 1));
    NUM(destroyed);
    CALL(cuGraphDestroy(g));
    hold_wait(&destroyed, 1);
    NUM(destroyed);
    CALL(cuUserObjectCreate(&o, &one, ended, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CALL(cuUserObjectCreate(&o, &one, ended, 1, 0));
    CALL(cuUserObjectCreate(&o, &one, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CALL(cuUserObjectCreate(NULL, &one, ended, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CALL(cuUserObjectCreate(&o, &one, ended, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CALL(cuUserObjectRelease(o, 0));
    CALL(cuUserObjectRelease(NULL, 1));
    CALL(cuUserObjectRetain(o, 0));
}

static void drawings(void)
{
    CUgraph g;
    CUgraphNode a;
    char path[] = "/tmp/answers-XXXXXX", text[4096] = "";
    int fd = mkstemp(path);
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddEmptyNode(&a, g, NULL, 0));
    CALL(cuGraphDebugDotPrint(g, path, 0));
    NUM(read(fd, text, sizeof(text) - 1) > 0);
    NUM(strncmp(text, "digraph", 7));
    CALL(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    CALL(cuGraphDebugDotPrint(g, "/nonexistent/file", 0));
    CALL(cuGraphDebugDotPrint(g, NULL, 0));
    CALL(cuGraphDebugDotPrint(NULL, path, 0));
    remove(path);
}

static void graph_memory(void)
{
    CUgraph g, copy;
    CUgraphExec e;
    CUgraphNode a, s, f;
    CUcontext c;
    CUDA_MEM_ALLOC_NODE_PARAMS m = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } },
        .bytesize = 100000
    };
    cuuint64_t value = 9;
    CUdeviceptr back = 0;
    cuCtxGetCurrent(&c);
    CALL(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
    NUM(value);
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
    NUM(m.dptr != 0);
    CUDA_MEMSET_NODE_PARAMS set_params = {
        .dst = m.dptr, .value = 6, .elementSize = 4, .width = 10, .height = 1
    };
    CALL(cuGraphAddMemsetNode(&s, g, &a, 1, &set_params, c));
    CALL(cuGraphClone(&copy, g));
    CALL(cuGraphAddMemFreeNode(&f, g, &s, 1, m.dptr));
    CALL(cuGraphMemFreeNodeGetParams(f, &back));
    NUM(back == m.dptr);
    CALL(cuGraphAddMemFreeNode(&f, g, &s, 1, m.dptr));
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuCtxSynchronize());
    CALL(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
    NUM(value);
    CALL(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value));
    MACHINE(value);
    value = 0;
    CALL(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    CALL(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
    CALL(cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)99, &value));
    CALL(cuDeviceGetGraphMemAttribute(1000, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
    CALL(cuDeviceGraphMemTrim(0));
    CALL(cuDeviceGraphMemTrim(1000));
    m.bytesize = 0;
    CALL(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
}

/* Memory of a graph that frees it elsewhere. */
static void graph_memory_kept(void)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode a;
    CUDA_MEM_ALLOC_NODE_PARAMS m = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } },
        .bytesize = 100000
    };
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuMemsetD32(m.dptr, 9, 10));
    NUM(answers_word(m.dptr));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuMemFreeAsync(m.dptr, NULL));
    CALL(cuCtxSynchronize());
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuMemFree(m.dptr));
    CALL(cuGraphInstantiate(&e, g, 0));
}

const struct answers_case answers_graph[] = {
    CASE(building),
    CASE(running),
    CASE(instances),
    CASE(updates),
    CASE(enabling),
    CASE(clones),
    CASE(drawings),
    CASE(user_objects),
    CASE(graph_memory),
    CASE(graph_memory_kept),
    END,
};
