/* Nodes of graphs: all kinds, and their parameters. */
#include "answers.h"

static void kernel_nodes(void)
{
    CUgraph g;
    CUgraphNode n, m;
    CUdeviceptr p;
    CUcontext c;
    unsigned by = 2;
    void *params[] = { &p, &by };
    CUgraphNodeType type = 99;
    CUDA_KERNEL_NODE_PARAMS k = { .func = answers_function_of("add_to"),
                                  .gridDimX = 3,
                                  .gridDimY = 1,
                                  .gridDimZ = 1,
                                  .blockDimX = 5,
                                  .blockDimY = 1,
                                  .blockDimZ = 1,
                                  .kernelParams = params },
                            got = { 0 };
    CUkernelNodeAttrValue v = { 0 };
    cuCtxGetCurrent(&c);
    CALL(cuMemAlloc(&p, 64));
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
    CALL(cuGraphNodeGetType(n, &type));
    NUM(type);
    CALL(cuGraphKernelNodeGetParams(n, &got));
    NUM(got.func == k.func);
    NUM(got.gridDimX);
    NUM(got.blockDimX);
    NUM(*(unsigned *)got.kernelParams[1]);
    NUM(got.extra == NULL);
    NUM(got.kern == NULL);
    NUM(got.ctx == c);
    k.gridDimX = 0;
    CALL(cuGraphKernelNodeSetParams(n, &k));
    k.gridDimX = 1;
    k.sharedMemBytes = 1 << 20;
    CALL(cuGraphKernelNodeSetParams(n, &k));
    k.sharedMemBytes = 0;
    k.kernelParams = NULL;
    CALL(cuGraphKernelNodeSetParams(n, &k));
    k.kernelParams = params;
    CALL(cuGraphKernelNodeSetParams(n, &k));
    k.func = NULL;
    CALL(cuGraphAddKernelNode(&m, g, NULL, 0, &k));
    CALL(cuGraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
    NUM(v.priority);
    v.priority = -2;
    CALL(cuGraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
    v.priority = 0;
    CALL(cuGraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
    NUM(v.priority);
    CALL(cuGraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &v));
    NUM(v.cooperative);
    CALL(cuGraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
    CALL(cuGraphKernelNodeGetAttribute(n, (CUkernelNodeAttrID)99, &v));
    k.func = answers_function_of("add_to");
    CALL(cuGraphAddKernelNode(&m, g, NULL, 0, &k));
    CALL(cuGraphKernelNodeCopyAttributes(m, n));
    CALL(cuGraphKernelNodeGetAttribute(m, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
    NUM(v.priority);
    CALL(cuGraphMemsetNodeGetParams(n, &(CUDA_MEMSET_NODE_PARAMS) { 0 }));
    CALL(cuGraphKernelNodeGetParams(n, NULL));
}

static void memset_nodes(void)
{
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUdeviceptr p;
    CUcontext c;
    CUgraphNodeType type = 99;
    CUDA_MEMSET_NODE_PARAMS m = { .value = 3, .elementSize = 4, .width = 8, .height = 1 },
                            got = { 0 };
    cuCtxGetCurrent(&c);
    CALL(cuMemAlloc(&p, 4096));
    m.dst = p;
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddMemsetNode(&n, g, NULL, 0, &m, c));
    CALL(cuGraphNodeGetType(n, &type));
    NUM(type);
    CALL(cuGraphMemsetNodeGetParams(n, &got));
    NUM(got.width);
    NUM(got.value);
    NUM(got.pitch);
    m.elementSize = 3;
    CALL(cuGraphMemsetNodeSetParams(n, &m));
    m.elementSize = 1;
    m.value = 0x1ff;
    CALL(cuGraphMemsetNodeSetParams(n, &m));
    m.value = 1;
    m.width = 0;
    CALL(cuGraphMemsetNodeSetParams(n, &m));
    m.width = 10;
    m.height = 3;
    m.pitch = 64;
    CALL(cuGraphMemsetNodeSetParams(n, &m));
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p + 64));
    m.value = 9;
    CALL(cuGraphExecMemsetNodeSetParams(e, n, &m, c));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p + 128));
    m.width = 11;
    CALL(cuGraphExecMemsetNodeSetParams(e, n, &m, c));
    CALL(cuGraphAddMemsetNode(&n, g, NULL, 0, NULL, c));
    m.dst = 16;
    CALL(cuGraphAddMemsetNode(&n, g, NULL, 0, &m, c));
}

static void copy_nodes(void)
{
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUdeviceptr p, q;
    CUcontext c;
    static uint32_t in[64] = { 44 };
    CUgraphNodeType type = 99;
    CUDA_MEMCPY3D got;
    cuCtxGetCurrent(&c);
    CALL(cuMemAlloc(&p, 256));
    CALL(cuMemAlloc(&q, 256));
    CUDA_MEMCPY3D m = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = p,
                        .WidthInBytes = 256,
                        .Height = 1,
                        .Depth = 1 };
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddMemcpyNode(&n, g, NULL, 0, &m, c));
    CALL(cuGraphNodeGetType(n, &type));
    NUM(type);
    CALL(cuGraphMemcpyNodeGetParams(n, &got));
    NUM(got.WidthInBytes);
    NUM(got.dstDevice == p);
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    m.dstDevice = q;
    CALL(cuGraphExecMemcpyNodeSetParams(e, n, &m, c));
    in[0] = 45;
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(q));
    m.WidthInBytes = 0;
    CALL(cuGraphMemcpyNodeSetParams(n, &m));
    m.WidthInBytes = 256;
    m.srcMemoryType = (CUmemorytype)9;
    CALL(cuGraphMemcpyNodeSetParams(n, &m));
    CALL(cuGraphAddMemcpyNode(&n, g, NULL, 0, NULL, c));
}

static void CUDA_CB count(void *data)
{
    *(int *)data += 1;
}

static void host_and_event_nodes(void)
{
    CUgraph g;
    CUgraphNode n, r, w;
    CUgraphExec e;
    CUevent event, got = NULL;
    int calls = 0;
    CUgraphNodeType type = 99;
    CUDA_HOST_NODE_PARAMS h = { .fn = count, .userData = &calls }, back = { 0 };
    CALL(cuEventCreate(&event, 0));
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddHostNode(&n, g, NULL, 0, &h));
    CALL(cuGraphNodeGetType(n, &type));
    NUM(type);
    CALL(cuGraphHostNodeGetParams(n, &back));
    NUM(back.userData == &calls);
    CALL(cuGraphAddEventRecordNode(&r, g, &n, 1, event));
    CALL(cuGraphNodeGetType(r, &type));
    NUM(type);
    CALL(cuGraphEventRecordNodeGetEvent(r, &got));
    NUM(got == event);
    CALL(cuGraphAddEventWaitNode(&w, g, NULL, 0, event));
    CALL(cuGraphNodeGetType(w, &type));
    NUM(type);
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    CALL(cuCtxSynchronize());
    NUM(calls);
    CALL(cuEventQuery(event));
    CALL(cuGraphExecEventRecordNodeSetEvent(e, r, event));
    CALL(cuGraphEventWaitNodeSetEvent(w, NULL));
    h.fn = NULL;
    CALL(cuGraphHostNodeSetParams(n, &h));
    CALL(cuGraphAddHostNode(&n, g, NULL, 0, &h));
    CALL(cuGraphAddEventRecordNode(&r, g, NULL, 0, NULL));
}

static void general_nodes(void)
{
    CUgraph g;
    CUgraphNode n;
    CUcontext c;
    CUdeviceptr p;
    CUgraphExec e;
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    cuCtxGetCurrent(&c);
    CALL(cuMemAlloc(&p, 64));
    CALL(cuGraphCreate(&g, 0));
    CALL(cuGraphAddNode(&n, g, NULL, NULL, 0, &params));
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2) {
        .dst = p, .value = 5, .elementSize = 4, .width = 4, .height = 1, .ctx = c
    };
    CALL(cuGraphAddNode(&n, g, NULL, NULL, 0, &params));
    params.memset.value = 6;
    CALL(cuGraphNodeSetParams(n, &params));
    CALL(cuGraphInstantiate(&e, g, 0));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    params.memset.value = 7;
    CALL(cuGraphExecNodeSetParams(e, n, &params));
    CALL(cuGraphLaunch(e, NULL));
    NUM(answers_word(p));
    params.type = (CUgraphNodeType)99;
    CALL(cuGraphAddNode(&n, g, NULL, NULL, 0, &params));
    CALL(cuGraphAddNode(&n, g, NULL, NULL, 0, NULL));
    params = (CUgraphNodeParams) { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    params.reserved0[0] = 1;
    CALL(cuGraphAddNode(&n, g, NULL, NULL, 0, &params));
}

const struct answers_case answers_node[] = {
    CASE(kernel_nodes),         CASE(memset_nodes),  CASE(copy_nodes),
    CASE(host_and_event_nodes), CASE(general_nodes), END,
};
