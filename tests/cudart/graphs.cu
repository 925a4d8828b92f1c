/* Graphs by the runtime API: nodes of every kind made, read back and changed, before and after the
 * graph is made; memory of graphs; edges; captures asked about; user objects. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_));          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define TRUE(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #x);                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { N = 64 };
__device__ int variable[N];

__global__ void scale(int *p, int k)
{
    p[threadIdx.x] = p[threadIdx.x] * k + (int)threadIdx.x;
}

static int sum;

static void CUDART_CB add_up(void *p)
{
    sum += *(int *)p;
}

static void CUDART_CB gone(void *p)
{
    ++*(int *)p;
}

/* alloc -> fill -> kernel -> copy out -> free, in memory that the graph has. */
static void memory()
{
    cudaGraph_t g;
    cudaGraphExec_t exec;
    cudaGraphNode_t alloc, fill, kernel, copy, release;
    int out[N], three = 3;
    OK(cudaGraphCreate(&g, 0));
    cudaMemAllocNodeParams a = {}, b = {};
    a.bytesize = sizeof(out);
    a.poolProps.allocType = cudaMemAllocationTypePinned;
    a.poolProps.location.type = cudaMemLocationTypeDevice;
    OK(cudaGraphAddMemAllocNode(&alloc, g, NULL, 0, &a));
    TRUE(a.dptr);
    OK(cudaGraphMemAllocNodeGetParams(alloc, &b));
    TRUE(b.dptr == a.dptr && b.bytesize == sizeof(out));
    cudaMemsetParams m = {};
    m.dst = a.dptr;
    m.value = 5;
    m.elementSize = 4;
    m.width = N;
    m.height = 1;
    OK(cudaGraphAddMemsetNode(&fill, g, &alloc, 1, &m));
    void *args[] = { &a.dptr, &three };
    cudaKernelNodeParams k = {};
    k.func = (void *)scale;
    k.gridDim = dim3(1);
    k.blockDim = dim3(N);
    k.kernelParams = args;
    OK(cudaGraphAddKernelNode(&kernel, g, &fill, 1, &k));
    OK(cudaGraphAddMemcpyNode1D(&copy, g, &kernel, 1, out, a.dptr, sizeof(out),
                                cudaMemcpyDeviceToHost));
    OK(cudaGraphAddMemFreeNode(&release, g, &copy, 1, a.dptr));
    void *freed = NULL;
    OK(cudaGraphMemFreeNodeGetParams(release, &freed));
    TRUE(freed == a.dptr);
    cudaMemcpy3DParms c = {};
    OK(cudaGraphMemcpyNodeGetParams(copy, &c));
    TRUE(c.dstPtr.ptr == out && c.srcPtr.ptr == a.dptr && c.extent.width == sizeof(out) &&
         c.kind == cudaMemcpyDeviceToHost);
    OK(cudaGraphInstantiate(&exec, g, 0));
    for (int round = 0; round < 2; round++) {
        memset(out, 0, sizeof(out));
        OK(cudaGraphLaunch(exec, 0));
        OK(cudaStreamSynchronize(0));
        for (int i = 0; i < N; i++)
            TRUE(out[i] == 15 + i);
    }
    unsigned long long bytes = 0;
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &bytes));
    TRUE(bytes >= sizeof(out));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(g));
    OK(cudaDeviceGraphMemTrim(0));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes));
    TRUE(bytes == 0);
}

/* Everything is said anew in the made graph. */
static void changed()
{
    cudaGraph_t g, clone;
    cudaGraphExec_t exec;
    cudaGraphNode_t fill, host, to, from, found;
    int *p, in[N], out[N], one = 1, ten = 10;
    OK(cudaMalloc(&p, sizeof(out)));
    OK(cudaGraphCreate(&g, 0));
    cudaMemsetParams m = {}, m2 = {};
    m.dst = p;
    m.value = 1;
    m.elementSize = 4;
    m.width = N;
    m.height = 1;
    OK(cudaGraphAddMemsetNode(&fill, g, NULL, 0, &m));
    cudaHostNodeParams h = { add_up, &one }, h2 = {};
    OK(cudaGraphAddHostNode(&host, g, &fill, 1, &h));
    for (int i = 0; i < N; i++)
        in[i] = i * 7;
    OK(cudaGraphAddMemcpyNodeToSymbol(&to, g, &host, 1, variable, in, sizeof(in), 0,
                                      cudaMemcpyHostToDevice));
    OK(cudaGraphAddMemcpyNodeFromSymbol(&from, g, &to, 1, out, variable, sizeof(int) * 8,
                                        sizeof(int) * 2, cudaMemcpyDeviceToHost));
    TRUE(cudaGraphAddMemcpyNodeToSymbol(&found, g, NULL, 0, variable, in, sizeof(in), 4,
                                        cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    TRUE(cudaGetLastError() == cudaErrorInvalidValue);
    OK(cudaGraphMemsetNodeGetParams(fill, &m2));
    TRUE(m2.dst == p && m2.value == 1 && m2.width == N && m2.elementSize == 4);
    OK(cudaGraphHostNodeGetParams(host, &h2));
    TRUE(h2.fn == add_up && h2.userData == &one);
    OK(cudaGraphClone(&clone, g));
    OK(cudaGraphNodeFindInClone(&found, host, clone));
    TRUE(found && found != host);
    OK(cudaGraphDestroy(clone));
    OK(cudaGraphInstantiate(&exec, g, 0));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaStreamSynchronize(0));
    TRUE(sum == 1 && out[0] == 14 && out[7] == 63);

    m.value = 9;
    h.userData = &ten;
    OK(cudaGraphExecMemsetNodeSetParams(exec, fill, &m));
    OK(cudaGraphExecHostNodeSetParams(exec, host, &h));
    OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, from, out, variable, sizeof(int) * 8,
                                                  sizeof(int) * 4, cudaMemcpyDeviceToHost));
    OK(cudaGraphNodeSetEnabled(exec, fill, 0));
    unsigned enabled = 1;
    OK(cudaGraphNodeGetEnabled(exec, fill, &enabled));
    TRUE(!enabled);
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaStreamSynchronize(0));
    TRUE(sum == 11 && out[0] == 28 && out[7] == 77);
    OK(cudaMemcpy(out, p, sizeof(out), cudaMemcpyDeviceToHost));
    TRUE(out[3] == 1);
    OK(cudaGraphNodeSetEnabled(exec, fill, 1));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaMemcpy(out, p, sizeof(out), cudaMemcpyDeviceToHost));
    TRUE(out[3] == 9 && sum == 21);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(g));
    OK(cudaFree(p));
}

/* Edges of a diamond; with what they carry, which is nothing. */
static void edges()
{
    cudaGraph_t g;
    cudaGraphNode_t n[4], from[8], to[8];
    size_t count = 8;
    OK(cudaGraphCreate(&g, 0));
    for (int i = 0; i < 4; i++)
        OK(cudaGraphAddEmptyNode(&n[i], g, NULL, 0));
    cudaGraphNode_t a[] = { n[0], n[0], n[1], n[2] }, b[] = { n[1], n[2], n[3], n[3] };
#if CUDART_VERSION < 13000
    OK(cudaGraphAddDependencies(g, a, b, 4));
    OK(cudaGraphRemoveDependencies(g, a, b, 1));
    OK(cudaGraphGetEdges(g, from, to, &count));
    TRUE(count == 3);
    count = 8;
    OK(cudaGraphNodeGetDependencies(n[3], from, &count));
    TRUE(count == 2);
    count = 8;
    OK(cudaGraphNodeGetDependentNodes(n[0], to, &count));
#else
    cudaGraphEdgeData data[8];
    OK(cudaGraphAddDependencies(g, a, b, NULL, 4));
    OK(cudaGraphRemoveDependencies(g, a, b, NULL, 1));
    OK(cudaGraphGetEdges(g, from, to, data, &count));
    TRUE(count == 3 && data[0].type == 0 && data[2].from_port == 0);
    count = 8;
    OK(cudaGraphNodeGetDependencies(n[3], from, data, &count));
    TRUE(count == 2);
    count = 8;
    OK(cudaGraphNodeGetDependentNodes(n[0], to, NULL, &count));
#endif
    TRUE(count == 1 && to[0] == n[2]);
    OK(cudaGraphDestroy(g));
}

/* A capture that is asked what it has, and goes on in a graph that there was before. */
static void captured()
{
    cudaStream_t s;
    cudaGraph_t g, before, ended;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    const cudaGraphNode_t *nodes;
    size_t count = 9;
    int *p, out[N];
    OK(cudaMalloc(&p, sizeof(out)));
    OK(cudaStreamCreate(&s));
    OK(cudaGraphCreate(&before, 0));
    OK(cudaStreamBeginCaptureToGraph(s, before, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
    OK(cudaMemsetAsync(p, 0, sizeof(out), s));
#if CUDART_VERSION < 13000
    OK(cudaStreamGetCaptureInfo(s, &status, &id, &g, &nodes, &count));
#else
    const cudaGraphEdgeData *data;
    OK(cudaStreamGetCaptureInfo(s, &status, &id, &g, &nodes, &data, &count));
#endif
    TRUE(status == cudaStreamCaptureStatusActive && id && g == before && count == 1);
    scale<<<1, N, 0, s>>>(p, 2);
    OK(cudaStreamEndCapture(s, &ended));
    TRUE(ended == before);
    cudaGraphInstantiateParams how = {};
    OK(cudaGraphInstantiateWithParams(&exec, before, &how));
    TRUE(how.result_out == cudaGraphInstantiateSuccess);
    unsigned long long flags = 1;
    OK(cudaGraphExecGetFlags(exec, &flags));
    TRUE(flags == 0);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaMemcpy(out, p, sizeof(out), cudaMemcpyDeviceToHost));
    TRUE(out[40] == 40);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(before));
    OK(cudaFree(p));
}

/* Calls that are wrong in two ways, or have nothing to do, while there is a capture: which error an H200 names. */
static void two_mistakes()
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaMemcpy3DParms empty = {};
    cudaLaunchAttributeValue value = {};
    void *p;
    int blocks;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    empty.kind = cudaMemcpyDefault;
    TRUE(cudaMemcpy3D(&empty) == cudaErrorStreamCaptureImplicit);
    TRUE(cudaStreamSetAttribute(s, cudaLaunchAttributeClusterDimension, &value) == cudaErrorInvalidValue);
    TRUE(cudaMallocManaged(&p, 100, 4) == cudaErrorInvalidValue);
    TRUE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, (const void *)scale, 32, 0, 2) ==
         cudaErrorInvalidValue);
    TRUE(cudaStreamEndCapture(s, &g) == cudaErrorStreamCaptureInvalidated);
    OK(cudaMemset3D({ NULL, 0, 0, 0 }, 1, { 0, 2, 1 }));
    OK(cudaMemcpy3D(&empty));
    (void)cudaGetLastError();
    OK(cudaStreamDestroy(s));
}


static void objects()
{
    static int ends;
    cudaGraph_t g;
    cudaUserObject_t object;
    cudaEvent_t e, f, got;
    cudaGraphNode_t record, wait;
    OK(cudaGraphCreate(&g, 0));
    OK(cudaUserObjectCreate(&object, &ends, gone, 1, cudaUserObjectNoDestructorSync));
    OK(cudaUserObjectRetain(object));
    OK(cudaUserObjectRelease(object));
    OK(cudaGraphRetainUserObject(g, object, 1, cudaGraphUserObjectMove));
    OK(cudaEventCreate(&e));
    OK(cudaEventCreate(&f));
    OK(cudaGraphAddEventRecordNode(&record, g, NULL, 0, e));
    OK(cudaGraphAddEventWaitNode(&wait, g, &record, 1, e));
    OK(cudaGraphEventRecordNodeSetEvent(record, f));
    OK(cudaGraphEventRecordNodeGetEvent(record, &got));
    TRUE(got == f);
    OK(cudaGraphEventWaitNodeGetEvent(wait, &got));
    TRUE(got == e);
    TRUE(!__atomic_load_n(&ends, __ATOMIC_ACQUIRE));
    OK(cudaGraphDestroy(g));
    for (int i = 0; i < 20000000 && !__atomic_load_n(&ends, __ATOMIC_ACQUIRE); i++)
        OK(cudaGetLastError());
    TRUE(__atomic_load_n(&ends, __ATOMIC_ACQUIRE) == 1);
}

static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *after,
                       size_t count, cudaGraphNodeParams *p)
{
#if CUDART_VERSION < 13000
    return cudaGraphAddNode(node, g, after, count, p);
#else
    return cudaGraphAddNode(node, g, after, NULL, count, p);
#endif
}

/* Halves the first word, and goes on while it is more than 5. */
__global__ void halve(int *p, cudaGraphConditionalHandle h)
{
    *p /= 2;
    cudaGraphSetConditional(h, *p > 5);
}

/* Nodes whose kind is a word of their parameters: memory of a graph is filled, a body runs on it
 * until its condition no longer holds, the host is told. */
static void any_kind()
{
    cudaGraph_t g, body;
    cudaGraphExec_t exec;
    cudaGraphNode_t fill, loop, kernel, copy, tell;
    cudaGraphConditionalHandle h;
    int *p, out = 0;
    OK(cudaMalloc(&p, sizeof(*p)));
    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphConditionalHandleCreate(&h, g, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams m = { cudaGraphNodeTypeMemset };
    m.memset.dst = p;
    m.memset.value = 100;
    m.memset.elementSize = 4;
    m.memset.width = m.memset.height = 1;
    OK(add(&fill, g, NULL, 0, &m));
    cudaGraphNodeParams w = { cudaGraphNodeTypeConditional };
    w.conditional.handle = h;
    w.conditional.type = cudaGraphCondTypeWhile;
    w.conditional.size = 1;
    OK(add(&loop, g, &fill, 1, &w));
    body = w.conditional.phGraph_out[0];
    void *args[] = { &p, &h };
    cudaGraphNodeParams k = { cudaGraphNodeTypeKernel };
    k.kernel.func = (void *)halve;
    k.kernel.gridDim = k.kernel.blockDim = dim3(1);
    k.kernel.kernelParams = args;
    OK(add(&kernel, body, NULL, 0, &k));
    cudaGraphNodeParams c = { cudaGraphNodeTypeMemcpy };
    c.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(p, sizeof(int), sizeof(int), 1);
    c.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(&out, sizeof(int), sizeof(int), 1);
    c.memcpy.copyParams.extent = make_cudaExtent(sizeof(int), 1, 1);
    c.memcpy.copyParams.kind = cudaMemcpyDeviceToHost;
    OK(add(&copy, g, &loop, 1, &c));
    cudaGraphNodeParams t = { cudaGraphNodeTypeHost };
    t.host.fn = add_up;
    t.host.userData = &out;
    OK(add(&tell, g, &copy, 1, &t));
    OK(cudaGraphInstantiate(&exec, g, 0));
    sum = 0;
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    TRUE(out == 3 && sum == 3);
    m.memset.value = 11;
    OK(cudaGraphExecNodeSetParams(exec, fill, &m));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    TRUE(out == 5 && sum == 8);
    OK(cudaGraphNodeSetParams(fill, &m));
    cudaMemsetParams now;
    OK(cudaGraphMemsetNodeGetParams(fill, &now));
    TRUE(now.value == 11);
    m.type = (cudaGraphNodeType)99;
    TRUE(add(&kernel, g, NULL, 0, &m) == cudaErrorInvalidValue);
    TRUE(add(&kernel, g, NULL, 0, NULL) == cudaErrorInvalidValue);
    TRUE(cudaGraphConditionalHandleCreate(NULL, g, 0, 0) == cudaErrorInvalidValue);
    cudaGetLastError();
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(g));
    OK(cudaFree(p));
}

int main()
{
    memory();
    changed();
    edges();
    captured();
    two_mistakes();
    objects();
    any_kind();
    printf("passed\n");
    return 0;
}
