/*
 * Variants of functions that newer ones have taken the names of: programs built long ago have them
 * as symbols, and NVIDIA's runtime asks for some by version. Names are symbols here.
 */
#define GMUX_CUDA_SYMBOLS
#include "tap.h"

#include <string.h>

static CUdeviceptr word(void)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuMemsetD32_v2(p, 0, 1));
    OK(cuCtxSynchronize());
    return p;
}

static uint32_t read_word(CUdeviceptr p)
{
    uint32_t v = 0xdead;
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(&v, p, 4));
    return v;
}

/* --- contexts --------------------------------------------------------------------------------- */

static void contexts_by_handle(void)
{
    CUcontext c, now;
    CUdevice d = 9;
    OK(cuCtxGetCurrent(&c));
    OK(cuCtxGetDevice_v2(&d, c));
    EQ(d, 0);
    OK(cuCtxSynchronize_v2(c));
    OK(cuCtxSetCurrent(NULL));
    OK(cuCtxGetDevice_v2(&d, c));
    OK(cuCtxSynchronize_v2(c));
    IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxGetCurrent(&now));
    TRUE(now == NULL);
    OK(cuCtxSetCurrent(c));
    IS(cuCtxGetDevice_v2(NULL, c), CUDA_ERROR_INVALID_VALUE);
}

static void contexts_by_null(void)
{
    CUdevice d = 9;
    OK(cuCtxGetDevice_v2(&d, NULL)); /* the current one */
    EQ(d, 0);
    OK(cuCtxSynchronize_v2(NULL));
}

static void primary_context(void)
{
    CUcontext c, again;
    unsigned flags = 9;
    int active = 9;
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    TRUE(c == again);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EQ(active, 1); /* ours, from the beginning */
    IS(cuDevicePrimaryCtxRelease(99), CUDA_ERROR_INVALID_DEVICE);
}

static void uuids(void)
{
    CUuuid a, b;
    OK(cuDeviceGetUuid(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 0));
    EQ(memcmp(&a, &b, sizeof(a)), 0); /* but for parts of a GPU */
}

static void shared_memory_banks(void)
{
    CUsharedconfig before = 9;
    OK(cuCtxGetSharedMemConfig(&before));
    OK(cuCtxSetSharedMemConfig(before));
    OK(cuFuncSetSharedMemConfig(tap_function("nothing"), CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    OK(cuLaunchKernel(tap_function("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}

static void found_by_name(void)
{
    CUresult (*init)(unsigned) = NULL;
    void *none = &none;
    OK(cuGetProcAddress("cuInit", (void **)&init, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
    OK(init(0));
    IS(cuGetProcAddress("cuNothing", &none, 11030, CU_GET_PROC_ADDRESS_DEFAULT),
       CUDA_ERROR_NOT_FOUND);
}

/* --- streams, captures ------------------------------------------------------------------------ */

static void captures(void)
{
    CUstream s;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    cuuint64_t id = 0, same = 0;
    CUgraph inside, g;
    CUgraphNode node, errors;
    CUgraphExec e;
    const CUgraphNode *nodes;
    size_t count = 9;
    CUdeviceptr p = word();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamGetCaptureInfo(s, &status, &id));
    EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuStreamBeginCapture(s));
    OK(cuStreamGetCaptureInfo(s, &status, &id));
    EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    TRUE(id != 0);
    OK(cuMemsetD32Async(p, 1, 1, s));
    OK(cuStreamGetCaptureInfo_v2(s, &status, &same, &inside, &nodes, &count));
    EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    TRUE(same == id && count == 1 && inside != NULL);
    OK(cuGraphAddEmptyNode(&node, inside, nodes, 1));
    OK(cuStreamUpdateCaptureDependencies(s, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuMemsetD32Async(p, 7, 1, s));
    IS(cuStreamGetCaptureInfo(s, NULL, &id), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetEdges(g, NULL, NULL, &count));
    EQ(count, 2);
    OK(cuGraphInstantiate(&e, g, &errors, NULL, 0));
    OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    EQ(read_word(p), 7);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree_v2(p));
    OK(cuStreamDestroy(s));
}

/* --- graphs ----------------------------------------------------------------------------------- */

static CUgraphNode add(CUgraph g, const CUgraphNode *after, size_t count, CUdeviceptr p,
                       uint32_t by)
{
    CUgraphNode n;
    void *params[] = { &p, &by };
    const CUDA_KERNEL_NODE_PARAMS_v1 k = {
        tap_function("add_to"), 1, 1, 1, 1, 1, 1, 0, params, NULL
    };
    OK(cuGraphAddKernelNode(&n, g, after, count, &k));
    return n;
}

static void run_to(CUgraphExec e, CUdeviceptr p, uint32_t want)
{
    OK(cuMemsetD32_v2(p, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(e, NULL));
    EQ(read_word(p), tap_computes() ? want : 0);
}

static void kernel_nodes(void)
{
    CUgraph g;
    CUgraphExec e;
    CUDA_KERNEL_NODE_PARAMS_v1 k;
    CUdeviceptr p = word();
    uint32_t by = 30;
    void *params[] = { &p, &by };
    OK(cuGraphCreate(&g, 0));
    CUgraphNode a = add(g, NULL, 0, p, 1), b = add(g, &a, 1, p, 2);
    OK(cuGraphKernelNodeGetParams(a, &k));
    EQ(*(uint32_t *)k.kernelParams[1], 1);
    EQ(k.gridDimX, 1);
    by = 10;
    k.kernelParams = params;
    OK(cuGraphKernelNodeSetParams(a, &k));
    OK(cuGraphInstantiate_v2(&e, g, NULL, NULL, 0));
    run_to(e, p, 12);
    by = 40;
    OK(cuGraphExecKernelNodeSetParams(e, b, &k));
    run_to(e, p, 50);
    OK(cuGraphKernelNodeGetParams(b, &k));
    EQ(*(uint32_t *)k.kernelParams[1], 2); /* the graph's own is what it was */
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree_v2(p));
}

static void dependencies(void)
{
    CUgraph g;
    CUgraphNode from[4], to[4];
    size_t count = 4;
    CUdeviceptr p = word();
    OK(cuGraphCreate(&g, 0));
    CUgraphNode a = add(g, NULL, 0, p, 1), b = add(g, NULL, 0, p, 2), c = add(g, NULL, 0, p, 3);
    OK(cuGraphAddDependencies(g, (CUgraphNode[]) { a, b }, (CUgraphNode[]) { b, c }, 2));
    OK(cuGraphGetEdges(g, from, to, &count));
    EQ(count, 2);
    count = 4;
    OK(cuGraphNodeGetDependencies(b, from, &count));
    TRUE(count == 1 && from[0] == a);
    count = 4;
    OK(cuGraphNodeGetDependentNodes(b, to, &count));
    TRUE(count == 1 && to[0] == c);
    OK(cuGraphRemoveDependencies(g, &a, &b, 1));
    OK(cuGraphNodeGetDependencies(b, NULL, &count));
    EQ(count, 0);
    IS(cuGraphRemoveDependencies(g, &a, &b, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    OK(cuMemFree_v2(p));
}

static void updates(void)
{
    CUgraph g, h;
    CUgraphExec e;
    CUgraphNode error = NULL, extra;
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUdeviceptr p = word();
    OK(cuGraphCreate(&g, 0));
    (void)add(g, NULL, 0, p, 3);
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphCreate(&h, 0));
    CUgraphNode n = add(h, NULL, 0, p, 4);
    OK(cuGraphExecUpdate(e, h, &error, &result));
    EQ(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run_to(e, p, 4);
    OK(cuGraphAddEmptyNode(&extra, h, &n, 1));
    IS(cuGraphExecUpdate(e, h, &error, &result), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    TRUE(result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED ||
         (tap_genuine() && result == CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED));
    run_to(e, p, 4);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(h));
    OK(cuMemFree_v2(p));
}

static void nodes_of_any_kind(void)
{
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUcontext c;
    CUdeviceptr p = word();
    OK(cuCtxGetCurrent(&c));
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .memset = { .dst = p, .value = 21, .elementSize = 4, .width = 1, .height = 1, .ctx = c },
    };
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddNode(&n, g, NULL, 0, &params));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, NULL));
    EQ(read_word(p), 21);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree_v2(p));
}

/* --- memory, images --------------------------------------------------------------------------- */

static void batches(void)
{
    static uint32_t from[2] = { 5, 6 };
    CUdeviceptr p = word();
    CUdeviceptr to[] = { p }, sources[] = { (CUdeviceptr)(uintptr_t)from };
    size_t sizes[] = { 4 }, index = 0, failed = 9;
    CUmemcpyAttributes a = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyBatchAsync(to, sources, sizes, 1, &a, &index, 1, &failed, s));
    OK(cuStreamSynchronize(s));
    EQ(read_word(p), 5);
    OK(cuStreamDestroy_v2(s));
    OK(cuMemFree_v2(p));
}

static void registered(void)
{
    static char pages[3 * 4096];
    char *page = (char *)(((uintptr_t)pages + 4095) & ~(uintptr_t)4095);
    CUdeviceptr p = word();
    OK(cuMemHostRegister(page, 4096, 0));
    IS(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    memset(page, 3, 4);
    OK(cuMemcpyHtoDAsync_v2(p, page, 4, NULL));
    EQ(read_word(p), 0x03030303);
    OK(cuMemHostUnregister(page));
    OK(cuMemFree_v2(p));
}

static void shared_with_others(void)
{
    CUipcMemHandle h;
    CUdeviceptr p = word(), q;
    OK(cuIpcGetMemHandle(&h, p));
    IS(cuIpcOpenMemHandle(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_INVALID_CONTEXT); /* at home */
    IS(cuIpcOpenMemHandle(&q, h, 0x40), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
}

static void links(void)
{
    CUlinkState link;
    CUmodule m;
    CUfunction f;
    void *image;
    size_t size;
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (char *)(uintptr_t)tap_ptx, strlen(tap_ptx) + 1,
                     "tap.ptx", 0, NULL, NULL)); /* NOLINT: the interface forgot const */
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&m, image));
    OK(cuModuleGetFunction(&f, m, "nothing"));
    OK(cuLinkDestroy(link));
    OK(cuModuleUnload(m));
}

static void events(void)
{
    CUevent e;
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuEventRecord(e, NULL));
    OK(cuEventSynchronize(e));
    OK(cuEventDestroy(e));
}

/* --- stacks: the last of all, should a context of then be none of now ------------------------- */

static void stacks(void)
{
    CUcontext c, popped, before;
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, makes no such contexts: it says that there is no "
                 "memory");
    OK(cuCtxGetCurrent(&before));
    OK(cuCtxCreate(&c, CU_CTX_SCHED_AUTO, 0));
    OK(cuCtxPopCurrent(&popped));
    TRUE(popped == c);
    OK(cuCtxPushCurrent(c));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy(c));
    OK(cuCtxGetCurrent(&popped));
    TRUE(popped == before);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(contexts_by_handle),
        TEST(contexts_by_null),
        TEST(primary_context),
        TEST(uuids),
        TEST(shared_memory_banks),
        TEST(found_by_name),
        TEST(captures),
        TEST(kernel_nodes),
        TEST(dependencies),
        TEST(updates),
        TEST(nodes_of_any_kind),
        TEST(batches),
        TEST(registered),
        TEST(shared_with_others),
        TEST(links),
        TEST(events),
        TEST(stacks),
    };
    return tap_main(tests, COUNT(tests));
}
