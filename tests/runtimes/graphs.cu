/* Capture and graphs: a fork and a join, copies and host functions; nodes made by hand, read back and changed. */
#include <string.h>

#include "check.cuh"

#define N 4096

__global__ void scale(int *p, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = p[i] * k + i;
}

static int host_calls;

static void CUDART_CB count(void *data)
{
    host_calls += *(int *)data;
}

static int one = 1;
static block<int> host(N);

static int first(int *device)
{
    int x = -1;
    SAY(cudaMemcpy(&x, device + 1, sizeof(x), cudaMemcpyDeviceToHost));
    return x;
}

static void captured(int *a, int *b)
{
    cudaStream_t s, t;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    SAY(cudaStreamCreate(&s));
    SAY(cudaStreamCreate(&t));
    SAY(cudaEventCreate(&fork));
    SAY(cudaEventCreate(&join));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    SAY(cudaMemsetAsync(a, 0, N * sizeof(int), s));
    SAY(cudaEventRecord(fork, s));
    SAY(cudaStreamWaitEvent(t, fork, 0));
    scale<<<N / 128, 128, 0, s>>>(a, 3);
    SAY(cudaMemsetAsync(b, 0, N * sizeof(int), t));
    scale<<<N / 128, 128, 0, t>>>(b, 5);
    SAY(cudaEventRecord(join, t));
    SAY(cudaStreamWaitEvent(s, join, 0));
    scale<<<N / 128, 128, 0, s>>>(b, 7);
    SAY(cudaLaunchHostFunc(s, count, &one));
    SAY(cudaMemcpyAsync(host.data(), b, N * sizeof(int), cudaMemcpyDeviceToHost, s));
    SAY(cudaStreamIsCapturing(s, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    SAY(cudaMalloc(&a, 64)); /* not while a capture in global mode is under way */
    SAY(cudaGetLastError());
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaGetLastError());
    if (!graph) { /* that call ended it: once more, without it */
        printf("the capture was ended\n");
        SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
        SAY(cudaMemsetAsync(b, 0, N * sizeof(int), s));
        scale<<<N / 128, 128, 0, s>>>(b, 5);
        scale<<<N / 128, 128, 0, s>>>(b, 7);
        SAY(cudaLaunchHostFunc(s, count, &one));
        SAY(cudaMemcpyAsync(host.data(), b, N * sizeof(int), cudaMemcpyDeviceToHost, s));
        SAY(cudaStreamEndCapture(s, &graph));
    }
    size_t nodes = 0;
    SAY(cudaGraphGetNodes(graph, NULL, &nodes));
    printf("nodes: %zu\n", nodes);
    MUST(instantiate(&exec, graph));
    for (int i = 0; i < 3; i++)
        SAY(cudaGraphLaunch(exec, s));
    SAY(cudaStreamSynchronize(s));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += host[i] != i * 7 + i;
    CHECK(wrong == 0);
    CHECK(host_calls == 3);

    block<cudaGraphNode_t> all(nodes);
    SAY(cudaGraphGetNodes(graph, all.data(), &nodes));
    int kernels = 0;
    for (size_t i = 0; i < nodes; i++) {
        cudaGraphNodeType type;
        cudaKernelNodeParams p;
        if (cudaGraphNodeGetType(all[i], &type) != cudaSuccess || type != cudaGraphNodeTypeKernel)
            continue;
        kernels++;
        memset(&p, 0, sizeof(p));
        SAY(cudaGraphKernelNodeGetParams(all[i], &p));
        CHECK(p.func == (void *)scale);
        CHECK(p.gridDim.x == N / 128 && p.blockDim.x == 128);
    }
    CHECK(kernels >= 2);
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));
    SAY(cudaStreamDestroy(s));
    SAY(cudaStreamDestroy(t));
}

static void by_hand(int *a)
{
    cudaGraph_t graph;
    cudaGraphNode_t clear, kernel;
    cudaGraphExec_t exec;
    cudaMemsetParams m = {};
    cudaKernelNodeParams k = {}, back = {};
    int factor = 2;
    void *args[] = { &a, &factor };

    SAY(cudaGraphCreate(&graph, 0));
    m.dst = a;
    m.elementSize = 4;
    m.width = N;
    m.height = 1;
    m.value = 10;
    SAY(cudaGraphAddMemsetNode(&clear, graph, NULL, 0, &m));
    k.func = (void *)scale;
    k.gridDim = dim3(N / 256);
    k.blockDim = dim3(256);
    k.kernelParams = args;
    SAY(cudaGraphAddKernelNode(&kernel, graph, &clear, 1, &k));
    SAY(cudaGraphKernelNodeGetParams(kernel, &back));
    CHECK(back.func == k.func && back.gridDim.x == k.gridDim.x);
    MUST(instantiate(&exec, graph));
    SAY(cudaGraphLaunch(exec, 0));
    SAY(cudaDeviceSynchronize());
    CHECK(first(a) == 21);
    factor = 4;
    SAY(cudaGraphExecKernelNodeSetParams(exec, kernel, &k));
    SAY(cudaGraphLaunch(exec, 0));
    CHECK(first(a) == 41);
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));
}

int main()
{
    int *a, *b;
    MUST(cudaMalloc(&a, N * sizeof(int)));
    MUST(cudaMalloc(&b, N * sizeof(int)));
    captured(a, b);
    by_hand(a);
    SAY(cudaGetLastError());
    return verdict();
}
