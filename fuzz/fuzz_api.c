/*
 * Calls of the driver API in any order, with handles that are good, stale, of another kind or
 * nonsense. The library is in this process, with a private server on the null device, or
 * GMUX_DEVICE. No call may crash or hang, whatever came before. Addresses and sizes are good ones:
 * what a program reads and writes is its own affair, and would end its session.
 *
 * The input is a list of calls, a byte each, and then bytes for their arguments. A handle is one of
 * 16 that calls have made, wherever it came from, or nonsense.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HANDLES  16u
#define MEMORY   4096u
#define CONTEXTS 8u
#define CALLS    64u /* of one input: each may ask the server */

static const uint8_t *input;
static size_t left;
static void *handles[HANDLES];
static CUcontext own, contexts[CONTEXTS]; /* of this process, and of the input */
static unsigned contexts_count;
static CUdeviceptr memory, managed;
static uint8_t host[MEMORY];
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .global .align 4 .u32 word;\n"
                          ".visible .entry k(.param .u64 a, .param .u32 b)\n{\nret;\n}\n";

static uint8_t take(void)
{
    if (left == 0)
        return 0;
    left--;
    return *input++;
}

static void *any(void)
{
    unsigned n = take();
    return n < 0xe0 ? handles[n % HANDLES] : (void *)(uintptr_t)(n * 0x10000000000001ull);
}

static void **slot(void)
{
    return &handles[take() % HANDLES];
}

static CUdeviceptr address(void)
{
    return (take() & 1 ? managed : memory) + take();
}

static void CUDA_CB do_nothing(void *arg)
{
    (void)arg;
}

/* --- calls ------------------------------------------------------------------------------------ */

static CUgraphNode nodes[4];

static size_t any_nodes(void)
{
    size_t n = take() % 4;
    for (size_t i = 0; i < n; i++)
        nodes[i] = any();
    return n;
}

static void call_graph(unsigned what)
{
    CUDA_KERNEL_NODE_PARAMS k = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1
    };
    uint64_t a = 1;
    uint32_t b = 2;
    void *params[] = { &a, &b };
    CUDA_HOST_NODE_PARAMS h = { .fn = do_nothing };
    CUgraphNode node;
    CUgraphNodeType type;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    size_t n;
    switch (what) {
    case 0:
        cuGraphCreate((CUgraph *)slot(), take() & 1);
        break;
    case 1:
        cuGraphDestroy(any());
        break;
    case 2:
        n = any_nodes();
        cuGraphAddEmptyNode((CUgraphNode *)slot(), any(), nodes, n);
        break;
    case 3:
        k.func = any();
        k.kernelParams = params;
        n = any_nodes();
        cuGraphAddKernelNode((CUgraphNode *)slot(), any(), nodes, n, &k);
        break;
    case 4:
        n = any_nodes();
        cuGraphAddHostNode((CUgraphNode *)slot(), any(), nodes, n, &h);
        break;
    case 5:
        n = any_nodes();
        cuGraphAddChildGraphNode((CUgraphNode *)slot(), any(), nodes, n, any());
        break;
    case 6:
        cuGraphDestroyNode(any());
        break;
    case 7:
        cuGraphInstantiateWithFlags((CUgraphExec *)slot(), any(), take() & 8);
        break;
    case 8:
        cuGraphLaunch(any(), any());
        break;
    case 9:
        cuGraphExecDestroy(any());
        break;
    case 10:
        cuGraphExecUpdate(any(), any(), &info);
        break;
    case 11:
        cuGraphNodeGetType(any(), &type);
        break;
    case 12:
        n = 4;
        cuGraphGetNodes(any(), nodes, &n);
        break;
    case 13:
        cuGraphClone((CUgraph *)slot(), any());
        break;
    case 14:
        cuGraphNodeFindInClone(&node, any(), any());
        break;
    case 15:
        cuStreamBeginCapture(any(), (CUstreamCaptureMode)(take() % 3));
        break;
    case 16:
        cuStreamEndCapture(any(), (CUgraph *)slot());
        break;
    default:
        exec = any();
        cuGraphUpload(exec, any());
    }
}

static void call_stream(unsigned what)
{
    uint64_t a = 1;
    uint32_t b = 2;
    void *params[] = { &a, &b };
    float ms;
    switch (what) {
    case 0:
        cuStreamCreate((CUstream *)slot(), take() & 1);
        break;
    case 1:
        cuStreamDestroy(any());
        break;
    case 2:
        cuStreamSynchronize(any());
        break;
    case 3:
        cuStreamQuery(any());
        break;
    case 4:
        cuEventCreate((CUevent *)slot(), take() & 3);
        break;
    case 5:
        cuEventDestroy(any());
        break;
    case 6:
        cuEventRecord(any(), any());
        break;
    case 7:
        cuEventSynchronize(any());
        break;
    case 8:
        cuEventElapsedTime(&ms, any(), any());
        break;
    case 9:
        cuStreamWaitEvent(any(), any(), 0);
        break;
    case 10:
        cuLaunchHostFunc(any(), do_nothing, NULL);
        break;
    default:
        cuLaunchKernel(any(), 1 + take() % 4u, 1, 1, 1 + take() % 64u, 1, 1, take(), any(), params,
                       NULL);
    }
}

static void call_module(unsigned what)
{
    size_t bytes;
    int value;
    CUdeviceptr p;
    switch (what) {
    case 0:
        cuModuleLoadData((CUmodule *)slot(), ptx);
        break;
    case 1:
        cuModuleUnload(any());
        break;
    case 2:
        cuModuleGetFunction((CUfunction *)slot(), any(), take() & 1 ? "k" : "none");
        break;
    case 3:
        cuModuleGetGlobal(&p, &bytes, any(), "word");
        break;
    case 4:
        cuFuncGetAttribute(&value, (CUfunction_attribute)(take() % 16), any());
        break;
    case 5:
        cuFuncSetAttribute(any(), (CUfunction_attribute)(take() % 16), take());
        break;
    case 6:
        cuLibraryLoadData((CUlibrary *)slot(), ptx, NULL, NULL, 0, NULL, NULL, 0);
        break;
    case 7:
        cuLibraryGetKernel((CUkernel *)slot(), any(), "k");
        break;
    case 8:
        cuLibraryUnload(any());
        break;
    default:
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, any(), take(), take());
    }
}

static void call_memory(unsigned what)
{
    const size_t size = take();
    CUmemoryPool pool;
    cuuint64_t value;
    switch (what) {
    case 0:
        cuMemcpyHtoDAsync(address(), host, size, any());
        break;
    case 1:
        cuMemcpyDtoHAsync(host, address(), size, any());
        break;
    case 2:
        cuMemcpyDtoDAsync(address(), address(), size, any());
        break;
    case 3:
        cuMemsetD8Async(address(), take(), size, any());
        break;
    case 4:
        cuMemAllocAsync((CUdeviceptr *)slot(), size * 512, any());
        break;
    case 5:
        cuMemFreeAsync((CUdeviceptr)any(), any());
        break;
    case 6:
        cuMemFree((CUdeviceptr)any());
        break;
    case 7:
        cuDeviceGetDefaultMemPool((CUmemoryPool *)slot(), 0);
        break;
    case 8:
        cuMemPoolTrimTo(any(), size);
        break;
    case 9:
        cuMemPoolGetAttribute(any(), (CUmemPool_attribute)(take() % 10), &value);
        break;
    case 10:
        cuMemAllocFromPoolAsync((CUdeviceptr *)slot(), size, any(), any());
        break;
    default:
        pool = any();
        cuDeviceSetMemPool(0, pool);
    }
}

static void call_context(unsigned what)
{
    CUcontext c;
    CUdevice d;
    switch (what) {
    case 0:
        if (contexts_count < CONTEXTS && cuCtxCreate(&c, NULL, take() & 7, 0) == CUDA_SUCCESS)
            *slot() = contexts[contexts_count++] = c;
        break;
    case 1:
        cuCtxDestroy(any());
        break;
    case 2:
        cuCtxSetCurrent(any());
        break;
    case 3:
        cuCtxPushCurrent(any());
        break;
    case 4:
        cuCtxPopCurrent((CUcontext *)slot());
        break;
    case 5:
        cuCtxGetDevice(&d);
        break;
    default:
        cuCtxSynchronize();
    }
}

static void call(void)
{
    const unsigned what = take() % 64;
    if (what < 18)
        call_graph(what);
    else if (what < 32)
        call_stream(what - 18);
    else if (what < 43)
        call_module(what - 32);
    else if (what < 56)
        call_memory(what - 43);
    else
        call_context(what - 56);
}

/* --- one input -------------------------------------------------------------------------------- */

static void must(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, (int)r);
    abort();
}

static void prepare(void)
{
    setenv("GMUX_DEVICE", "null", 0);
    setenv("GMUX_GENUINE_LIBCUDA", "none", 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
    setenv("GMUX_LIBEXECDIR", GMUX_SERVER_FOLDER, 1);
    must(cuInit(0), "cuInit");
    must(cuCtxCreate(&own, NULL, 0, 0), "cuCtxCreate");
    must(cuMemAlloc(&memory, MEMORY), "cuMemAlloc");
    must(cuMemAllocManaged(&managed, MEMORY, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
    must(cuCtxPopCurrent(&own), "cuCtxPopCurrent"); /* where no call finds it */
}

/* Whatever each of them is: all but one of these calls refuses it. */
static void end(void *handle)
{
    CUgraph g;
    cuStreamEndCapture(handle, &g);
    cuGraphExecDestroy(handle);
    cuGraphDestroy(handle);
    cuEventDestroy(handle);
    cuStreamDestroy(handle);
    cuModuleUnload(handle);
    cuLibraryUnload(handle);
    cuMemFree((CUdeviceptr)handle);
    cuCtxDestroy(handle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!own)
        prepare();
    input = data;
    left = size;
    memset(handles, 0, sizeof(handles));
    contexts_count = 1;
    must(cuCtxCreate(&contexts[0], NULL, 0, 0), "cuCtxCreate");
    handles[0] = contexts[0];
    for (unsigned i = 0; left && i < CALLS; i++)
        call();
    CUcontext c;
    while (cuCtxPopCurrent(&c) == CUDA_SUCCESS && c)
        ;
    for (unsigned round = 0; round < 2; round++) /* some hold others */
        for (unsigned i = 0; i < HANDLES; i++)
            if (handles[i])
                end(handles[i]);
    for (unsigned i = 0; i < contexts_count; i++)
        cuCtxDestroy(contexts[i]);
    while (cuCtxPopCurrent(&c) == CUDA_SUCCESS && c)
        ;
    must(cuCtxPushCurrent(own), "cuCtxPushCurrent");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    must(cuCtxPopCurrent(&c), "cuCtxPopCurrent");
    return 0;
}
