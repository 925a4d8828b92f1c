/*
 * How much a queue of the GPU's driver holds: so many calls of each kind are taken behind a kernel
 * that does not end yet, before one waits for it. Prints for each: name and number of streams,
 * calls, nanoseconds for one of them; "+" where there are -most and none has waited. That is what
 * src/device/cuda/inflight.h has to stay below; under gmux it tells how long the ring is.
 */
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "example.h"
#include "kernel_graph.h"

#define STREAMS_MAX 256
#define WAITS_S     0.2 /* a call that takes as long waits for the kernel */
#define BYTES       (64u << 20)
#define PLANES      1000u
#define NODES_MAX   512u

static CUfunction spin;
static CUstream streams[STREAMS_MAX];
static CUdeviceptr memory;
static CUevent event;
static CUgraphExec graphs[2];
static char host[4096];

static void launch(CUstream s)
{
    unsigned long long ns = 0;
    void *params[] = { &ns };
    EX_CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

static void mark(CUstream s)
{
    EX_CHECK(cuStreamWriteValue64(s, memory, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
}

static void mark_and_proof(CUstream s)
{
    CUstreamBatchMemOpParams both[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        both[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
        both[i].writeValue.address = memory + 8 * (CUdeviceptr)i;
        both[i].writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    }
    EX_CHECK(cuStreamBatchMemOp(s, 2, both, 0));
}

static void launch_and_mark(CUstream s)
{
    launch(s);
    mark(s);
}

static void copy(CUstream s)
{
    EX_CHECK(cuMemcpyAsync(memory, memory + BYTES / 2, 4096, s));
}

static void write_pageable(CUstream s)
{
    EX_CHECK(cuMemcpyHtoDAsync(memory, host, sizeof(host), s));
}

static void fill(CUstream s)
{
    EX_CHECK(cuMemsetD32Async(memory, 0, 1024, s));
}

static void copy_planes(CUstream s)
{
    const CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = memory + BYTES / 2,
                                .srcPitch = 64,
                                .srcHeight = 5,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = memory,
                                .dstPitch = 64,
                                .dstHeight = 5,
                                .WidthInBytes = 48,
                                .Height = 4,
                                .Depth = PLANES };
    EX_CHECK(cuMemcpy3DAsync(&box, s));
}

static void record(CUstream s)
{
    EX_CHECK(cuEventRecord(event, s));
}

static void wait_for(CUstream s)
{
    EX_CHECK(cuStreamWaitEvent(s, event, 0));
}

static void CUDA_CB nothing(void *arg)
{
    (void)arg;
}

static void host_function(CUstream s)
{
    EX_CHECK(cuLaunchHostFunc(s, nothing, NULL));
}

static void row(CUstream s)
{
    EX_CHECK(cuGraphLaunch(graphs[0], s));
}

static void long_graph(CUstream s)
{
    EX_CHECK(cuGraphLaunch(graphs[1], s));
}

static void make_graph(long length, CUgraphExec *out)
{
    unsigned long long ns = 0;
    void *params[] = { &ns };
    const CUDA_KERNEL_NODE_PARAMS kernel = one_thread_node(spin, params);
    CUgraphNode nodes[NODES_MAX];
    EX_CHECK(cuGraphDestroy(kernel_graph_make(&kernel, nodes, length, out)));
}

/* In each of the streams a kernel that takes `ms`, then calls in turn. */
static void measure(const char *name, void (*call)(CUstream), long count, long ms, long most)
{
    unsigned long long ns = 1000000ull * (unsigned long long)ms;
    void *params[] = { &ns };
    long n = 0;
    bool waited = false;
    for (long i = 0; i < count; i++) {
        call(streams[i]); /* what is loaded or made when it is first used */
        EX_CHECK(cuStreamSynchronize(streams[i]));
    }
    for (long i = 0; i < count; i++)
        EX_CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[i], params, NULL));
    double start = ex_seconds(), before = start, now = start;
    for (; n < most && !waited && 1e3 * (now - start) < 0.8 * (double)ms; n++) {
        before = now;
        call(streams[n % count]);
        now = ex_seconds();
        waited = now - before > WAITS_S;
    }
    n -= waited;
    now = waited ? before : now;
    printf("%s_%ld %ld%s %.0f\n", name, count, n, waited ? "" : "+",
           n ? 1e9 * (now - start) / (double)n : 0);
    fflush(stdout);
    EX_CHECK(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*call)(CUstream);
    } kinds[] = { { "launch", launch },
                  { "mark", mark },
                  { "mark_and_proof", mark_and_proof },
                  { "launch_and_mark", launch_and_mark },
                  { "copy", copy },
                  { "write_pageable", write_pageable },
                  { "fill", fill },
                  { "copy_planes", copy_planes },
                  { "record", record },
                  { "wait", wait_for },
                  { "host_function", host_function },
                  { "row", row },
                  { "long_graph", long_graph } };
    long ms = 1000, most = 3000;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "ms", 1, 60000, &ms) &&
            !ex_option(argv[i], "most", 1, 10000000, &most))
            return 2;
    struct ex_device d = ex_open(0, ex_ptx);
    spin = ex_function(&d, "spin");
    EX_CHECK(cuMemAlloc(&memory, BYTES));
    EX_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    make_graph(16, &graphs[0]);
    make_graph(NODES_MAX, &graphs[1]);
    for (int i = 0; i < STREAMS_MAX; i++)
        EX_CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        measure(kinds[i].name, kinds[i].call, 1, ms, most);
    for (long count = 4; count <= STREAMS_MAX; count *= 4)
        measure("launch", launch, count, ms, most * count);
    ex_close(&d);
    return 0;
}
