/*
 * The driver API beside the runtime: in the context that the runtime made; or, with the argument "first", before the
 * runtime is used at all, which then finds the driver API's context.
 */
#include <string.h>

#include <cuda.h>

#include "check.cuh"

static const char text[] = ".version 6.0\n"
                           ".target sm_50\n"
                           ".address_size 64\n"
                           ".visible .entry store(.param .u64 at, .param .u32 value)\n"
                           "{\n"
                           "    .reg .b32 %r<4>;\n"
                           "    .reg .b64 %rd<4>;\n"
                           "    ld.param.u64 %rd1, [at];\n"
                           "    ld.param.u32 %r1, [value];\n"
                           "    cvta.to.global.u64 %rd2, %rd1;\n"
                           "    mov.u32 %r2, %tid.x;\n"
                           "    mul.wide.u32 %rd3, %r2, 4;\n"
                           "    add.s64 %rd3, %rd2, %rd3;\n"
                           "    add.u32 %r3, %r1, %r2;\n"
                           "    st.global.u32 [%rd3], %r3;\n"
                           "    ret;\n"
                           "}\n";

__global__ void twice(unsigned *p)
{
    p[threadIdx.x] *= 2;
}

/* A module of the driver API's, on memory of the runtime's, and the other way round. */
static void together(void)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr there;
    unsigned *p, value = 5, host[64] = {}, wrong = 0;
    cudaStream_t stream;
    MUST(cudaMalloc(&p, sizeof(host)));
    SAY(cudaStreamCreate(&stream));
    MUST(cuModuleLoadData(&module, text));
    MUST(cuModuleGetFunction(&function, module, "store"));
    void *args[] = { &p, &value };
    SAY(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, (CUstream)stream, args, NULL));
    twice<<<1, 64, 0, stream>>>(p);
    SAY(cudaMemcpyAsync(host, p, sizeof(host), cudaMemcpyDeviceToHost, stream));
    SAY(cuStreamSynchronize((CUstream)stream));
    for (unsigned i = 0; i < 64; i++)
        wrong += host[i] != 2 * (5 + i);
    CHECK(wrong == 0);
    MUST(cuMemAlloc(&there, sizeof(host)));
    SAY(cuMemsetD32(there, 21, 64));
    twice<<<1, 64>>>((unsigned *)(size_t)there);
    SAY(cudaMemcpy(host, (void *)(size_t)there, sizeof(host), cudaMemcpyDeviceToHost));
    CHECK(host[0] == 42 && host[63] == 42);
    cudaPointerAttributes a;
    SAY(cudaPointerGetAttributes(&a, (void *)(size_t)there));
    CHECK(a.type == cudaMemoryTypeDevice);
    SAY(cuMemFree(there));
    SAY(cuModuleUnload(module));
    SAY(cudaStreamDestroy(stream));
    SAY(cudaFree(p));
}

/* A wait that the device itself has to see through: the word is the device's. */
static void words(void)
{
    unsigned *p, host[2] = {};
    cudaStream_t a, b;
    MUST(cudaMalloc(&p, 8));
    SAY(cudaMemset(p, 0, 8));
    SAY(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    SAY(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    int waits = SAY(cuStreamWaitValue32((CUstream)a, (CUdeviceptr)(size_t)p, 1, CU_STREAM_WAIT_VALUE_GEQ));
    SAY(cuStreamWriteValue32((CUstream)a, (CUdeviceptr)(size_t)(p + 1), 7, 0));
    SAY(cuStreamWriteValue32((CUstream)b, (CUdeviceptr)(size_t)p, 1, 0));
    SAY(cudaStreamSynchronize(a));
    SAY(cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost));
    printf("a stream waited: %d, %u %u\n", waits, host[0], host[1]);
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof(ops));
    ops[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[0].waitValue.address = (CUdeviceptr)(size_t)p;
    ops[0].waitValue.value = 1;
    ops[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[1].writeValue.address = (CUdeviceptr)(size_t)(p + 1);
    ops[1].writeValue.value = 9;
    SAY(cuStreamBatchMemOp((CUstream)a, 2, ops, 0));
    SAY(cudaStreamSynchronize(a));
    SAY(cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost));
    printf("after the batch: %u %u\n", host[0], host[1]);
    cudaGraph_t graph = NULL;
    SAY(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    SAY(cuStreamWaitValue32((CUstream)a, (CUdeviceptr)(size_t)p, 1, CU_STREAM_WAIT_VALUE_GEQ));
    SAY(cuStreamWriteValue32((CUstream)a, (CUdeviceptr)(size_t)(p + 1), 11, 0));
    SAY(cudaStreamEndCapture(a, &graph));
    if (graph) {
        cudaGraphExec_t exec;
        size_t nodes = 0;
        SAY(cudaGraphGetNodes(graph, NULL, &nodes));
        printf("nodes %zu\n", nodes);
        if (SAY(instantiate(&exec, graph)) == 0) {
            SAY(cudaGraphLaunch(exec, a));
            SAY(cudaStreamSynchronize(a));
        }
        SAY(cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost));
        printf("after the graph: %u %u\n", host[0], host[1]);
    }
    SAY(cudaGetLastError());
    size_t value = 0;
    SAY(cuCtxGetLimit(&value, (CUlimit)4711));
    SAY(cuCtxSetLimit((CUlimit)4711, 1));
}

int main(int argc, char **argv)
{
    CUcontext mine = NULL, now = NULL;
    CUdevice device = -1;
    bool first = argc > 1 && strcmp(argv[1], "first") == 0;
    if (first) {
        MUST(cuInit(0));
        MUST(cuDeviceGet(&device, 0));
        MUST(cuDevicePrimaryCtxRetain(&mine, device));
        MUST(cuCtxSetCurrent(mine));
        CUdeviceptr p;
        MUST(cuMemAlloc(&p, 4096));
        SAY(cudaMemset((void *)(size_t)p, 1, 4096));
        SAY(cuMemFree(p));
    } else {
        MUST(cudaFree(0));
        MUST(cuCtxGetDevice(&device));
        CHECK(device == 0);
    }
    SAY(cuCtxGetCurrent(&now));
    CHECK(now != NULL && (!first || now == mine));
    together();
    if (!first)
        words();
    if (first)
        SAY(cuDevicePrimaryCtxRelease(device));
    return verdict();
}
