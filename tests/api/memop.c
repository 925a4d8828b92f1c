/* Words that streams store and wait for. */
#include "tap.h"

#include <stdatomic.h>
#include <string.h>

static CUstream a, b;
static _Atomic uint32_t *word; /* pinned: host and device see it */
static CUdeviceptr there;

static void begin(void)
{
    void *memory;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(memory, 0, 4096);
    word = memory;
    OK(cuMemHostGetDevicePointer(&there, memory, 0));
}

static void end(void)
{
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFreeHost((void *)(uintptr_t)word));
}

static uint64_t wide(unsigned index)
{
    uint64_t value;
    memcpy(&value, (const void *)(uintptr_t)(word + index), sizeof(value));
    return value;
}

static void stores(void)
{
    CUdeviceptr p;
    uint32_t words[4] = { 0 };
    begin();
    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD8(p, 0, 64));
    OK(cuCtxSynchronize());
    OK(cuStreamWriteValue32(a, p, 0x12345678, 0));
    OK(cuStreamWriteValue64(a, p + 8, 0x1122334455667788, 0));
    OK(cuStreamWriteValue32(a, there, 77, CU_STREAM_WRITE_VALUE_DEFAULT));
    OK(cuStreamWriteValue64(a, there + 16, 0xaabbccdd00112233, 0));
    OK(cuMemcpyDtoHAsync(words, p, sizeof(words), a));
    OK(cuStreamSynchronize(a));
    EQ(words[0], 0x12345678);
    EQ(words[1], 0);
    EQ(words[2], 0x55667788);
    EQ(words[3], 0x11223344);
    EQ(atomic_load(&word[0]), 77);
    EQ(wide(4), 0xaabbccdd00112233);
    OK(cuMemFree(p));
    end();
}

/* Words in memory of pools or in managed memory. */
static void other_memory(void)
{
    CUdeviceptr p;
    begin();
    OK(cuMemAllocAsync(&p, 64, a));
    IS(cuStreamWriteValue32(a, p, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(p, a));
    OK(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    IS(cuStreamWriteValue32(a, p, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitValue32(a, p, 0, CU_STREAM_WAIT_VALUE_GEQ), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    end();
}

/* Each comparison: not yet, not yet, now. */
static void waits(void)
{
    static const struct {
        unsigned flags;
        uint32_t value, not_yet, now;
    } cases[] = {
        { CU_STREAM_WAIT_VALUE_GEQ, 10, 9, 11 },
        { CU_STREAM_WAIT_VALUE_GEQ, 5, 0xfffffff0, 5 }, /* signed difference */
        { CU_STREAM_WAIT_VALUE_EQ, 10, 11, 10 },
        { CU_STREAM_WAIT_VALUE_AND, 6, 9, 4 },
        { CU_STREAM_WAIT_VALUE_NOR, 0xffff0000, 0x0000ffff, 0x0000fffe },
    };
    begin();
    for (unsigned i = 0; i < COUNT(cases); i++) {
        atomic_store(&word[0], cases[i].not_yet);
        atomic_store(&word[1], 0);
        OK(cuStreamWaitValue32(a, there, cases[i].value, cases[i].flags));
        OK(cuStreamWriteValue32(a, there + 4, 1, 0));
        IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
        EQ(atomic_load(&word[1]), 0);
        atomic_store(&word[0], cases[i].now);
        OK(cuStreamSynchronize(a));
        EQ(atomic_load(&word[1]), 1);
    }
    atomic_store(&word[0], 0);
    OK(cuStreamWaitValue64(a, there + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuStreamWriteValue64(b, there + 8, 1ull << 41, 0)); /* one stream lets the other go on */
    OK(cuStreamSynchronize(a));
    OK(cuStreamSynchronize(b));
    end();
}

/* Words that only the device can touch: another stream stores them, or a copy. */
static void waits_for_device_memory(void)
{
    CUdeviceptr p;
    uint32_t seen[2] = { 0 };
    const uint32_t zero = 0, five = 5;
    begin();
    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD8(p, 0, 64));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(a, p, 5, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(a, p + 4, 1, 0));
    OK(cuMemcpyHtoDAsync(p + 32, &zero, 4, b)); /* others are not held up */
    OK(cuStreamSynchronize(b));
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuMemcpyHtoDAsync(p, &five, 4, b));
    OK(cuStreamSynchronize(b));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(seen, p, sizeof(seen)));
    EQ(seen[0], 5);
    EQ(seen[1], 1);

    /* What the stream itself did before counts. */
    OK(cuStreamWriteValue64(a, p + 8, 7, 0));
    OK(cuStreamWriteValue64(a, p + 8, 1, 0));
    OK(cuStreamWaitValue64(a, p + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_AND));
    OK(cuStreamWaitValue32(a, p + 16, ~1u, CU_STREAM_WAIT_VALUE_NOR)); /* is so already */
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuStreamWriteValue64(b, p + 8, 3ull << 40, 0));
    OK(cuStreamSynchronize(a));
    OK(cuStreamSynchronize(b));
    OK(cuMemFree(p));
    end();
}

enum { PING_PONG = 200 };

/* Two streams that wait for each other, both queued from the start. */
static void ping_pong(void)
{
    CUdeviceptr p;
    uint32_t last[2];
    begin();
    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD8(p, 0, 64));
    OK(cuCtxSynchronize());
    for (uint32_t i = 1; i <= PING_PONG; i++) {
        OK(cuStreamWaitValue32(a, p, i, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuStreamWriteValue32(a, p + 4, i, 0));
        OK(cuStreamWriteValue32(b, p, i, 0));
        OK(cuStreamWaitValue32(b, p + 4, i, CU_STREAM_WAIT_VALUE_GEQ));
    }
    OK(cuStreamSynchronize(a));
    OK(cuStreamSynchronize(b));
    OK(cuMemcpyDtoH(last, p, sizeof(last)));
    EQ(last[0], PING_PONG);
    EQ(last[1], PING_PONG);
    OK(cuMemFree(p));
    end();
}

/* More than a ring holds behind a wait, and what ends it comes from another thread's stream: here
 * the host. */
static void much_behind_a_wait(void)
{
    CUdeviceptr p;
    uint32_t last = 0;
    begin();
    OK(cuMemAlloc(&p, 64));
    OK(cuStreamWaitValue32(a, there, 1, CU_STREAM_WAIT_VALUE_EQ));
    for (uint32_t i = 1; i <= 500; i++)
        OK(cuStreamWriteValue32(a, p, i, 0));
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    atomic_store(&word[0], 1);
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(&last, p, sizeof(last)));
    EQ(last, 500);
    OK(cuMemFree(p));
    end();
}

static CUstreamBatchMemOpParams wait_for(CUdeviceptr at, uint32_t value)
{
    CUstreamBatchMemOpParams p;
    memset(&p, 0, sizeof(p));
    p.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    p.waitValue.address = at;
    p.waitValue.value = value;
    p.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    return p;
}

static CUstreamBatchMemOpParams store_to(CUdeviceptr at, uint32_t value)
{
    CUstreamBatchMemOpParams p;
    memset(&p, 0, sizeof(p));
    p.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    p.writeValue.address = at;
    p.writeValue.value = value;
    return p;
}

/* Launched twice: it waits until the word is `value`, then the second one is `stored`. */
static void run_twice(CUgraphExec e, CUdeviceptr p, uint32_t value, uint32_t stored)
{
    for (unsigned i = 0; i < 2; i++) {
        uint32_t seen = 0;
        OK(cuMemsetD8(p, 0, 64));
        OK(cuCtxSynchronize());
        OK(cuGraphLaunch(e, a));
        IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
        OK(cuStreamWriteValue32(b, p, value, 0));
        OK(cuStreamSynchronize(a));
        OK(cuMemcpyDtoH(&seen, p + 4, sizeof(seen)));
        EQ(seen, stored);
    }
}

static void captured(void)
{
    CUdeviceptr p;
    CUgraph g;
    CUgraphNode nodes[4];
    CUgraphExec e;
    CUgraphNodeType type;
    size_t count = COUNT(nodes);
    begin();
    OK(cuMemAlloc(&p, 64));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuStreamWaitValue32(a, p, 3, CU_STREAM_WAIT_VALUE_EQ));
    IS(cuStreamWriteValue32(a, p + 5, 9, 0), CUDA_ERROR_INVALID_VALUE); /* which spoils nothing */
    IS(cuStreamWriteValue32(a, p + 4, 9, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER),
       CUDA_ERROR_INVALID_VALUE); /* of the first version */
    OK(cuStreamWriteValue32(a, p + 4, 9, 0));
    OK(cuStreamEndCapture(a, &g));
    OK(cuGraphGetNodes(g, nodes, &count));
    EQ(count, 2);
    for (size_t i = 0; i < count; i++) {
        OK(cuGraphNodeGetType(nodes[i], &type));
        EQ(type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    }
    OK(cuGraphInstantiate(&e, g, 0));
    run_twice(e, p, 3, 9);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
    end();
}

static void graph_nodes(void)
{
    CUdeviceptr p;
    CUgraph g, copy;
    CUgraphNode n, same;
    CUgraphExec e;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params, got;
    CUcontext ctx;
    begin();
    OK(cuCtxGetCurrent(&ctx));
    OK(cuMemAlloc(&p, 64));
    CUstreamBatchMemOpParams ops[2] = { wait_for(p, 3), store_to(p + 4, 9) };
    memset(&params, 0, sizeof(params));
    params.ctx = ctx;
    params.count = 2;
    params.paramArray = ops;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &params));
    memset(&got, 0, sizeof(got));
    OK(cuGraphBatchMemOpNodeGetParams(n, &got));
    EQ(got.count, 2);
    TRUE(got.paramArray && got.paramArray != ops);
    EQ(got.paramArray[1].writeValue.value, 9);
    OK(cuGraphInstantiate(&e, g, 0));
    run_twice(e, p, 3, 9);

    ops[1] = store_to(p + 4, 11); /* the node has a copy; only this one hears of it */
    OK(cuGraphExecBatchMemOpNodeSetParams(e, n, &params));
    run_twice(e, p, 3, 11);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphInstantiate(&e, g, 0));
    run_twice(e, p, 3, 9);
    OK(cuGraphExecDestroy(e));

    ops[0] = wait_for(p, 4);
    OK(cuGraphBatchMemOpNodeSetParams(n, &params));
    OK(cuGraphClone(&copy, g));
    OK(cuGraphNodeFindInClone(&same, n, copy));
    OK(cuGraphDestroy(g));
    OK(cuGraphInstantiate(&e, copy, 0));
    run_twice(e, p, 4, 11);
    params.count = 256;
    IS(cuGraphBatchMemOpNodeSetParams(same, &params), CUDA_ERROR_INVALID_VALUE);
    params.count = 2;
    params.ctx = NULL;
    IS(cuGraphBatchMemOpNodeSetParams(same, &params), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(copy));
    OK(cuMemFree(p));
    end();
}

/* Host functions and waits in one stream and in others keep their order. */
static void among_host_functions(void)
{
    _Atomic int open = 0;
    begin();
    OK(cuStreamWaitValue32(a, there, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuLaunchHostFunc(b, tap_hold, &open));
    OK(cuStreamWriteValue32(b, there, 1, 0));
    OK(cuLaunchHostFunc(a, tap_hold, &open));
    OK(cuStreamWriteValue32(a, there + 4, 2, 0));
    IS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    hold_set(&open, 1);
    OK(cuStreamSynchronize(a));
    OK(cuStreamSynchronize(b));
    EQ(atomic_load(&word[1]), 2);
    end();
}

static void batch(void)
{
    CUstreamBatchMemOpParams ops[3];
    begin();
    memset(ops, 0, sizeof(ops));
    ops[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[0].waitValue.address = there;
    ops[0].waitValue.value = 3;
    ops[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    ops[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[1].writeValue.address = there + 4;
    ops[1].writeValue.value = 4;
    ops[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    ops[2].writeValue.address = there + 8;
    ops[2].writeValue.value64 = 5ull << 32;
    OK(cuStreamBatchMemOp(a, COUNT(ops), ops, 0));
    IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    atomic_store(&word[0], 3);
    OK(cuStreamSynchronize(a));
    EQ(atomic_load(&word[1]), 4);
    EQ(wide(2), 5ull << 32);
    ops[2].writeValue.address = there + 4; /* not aligned: then none is done */
    atomic_store(&word[1], 0);
    TRUE(cuStreamBatchMemOp(a, COUNT(ops), ops, 0) != CUDA_SUCCESS);
    OK(cuStreamSynchronize(a));
    EQ(atomic_load(&word[1]), 0);
    end();
}

static void wrong(void)
{
    begin();
    TRUE(cuStreamWriteValue32(a, 0x1000, 1, 0) != CUDA_SUCCESS);
    TRUE(cuStreamWaitValue32(a, 0x1000, 1, 0) != CUDA_SUCCESS);
    IS(cuStreamWriteValue32(a, there + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitValue64(a, there + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamSynchronize(a));
    end();
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(stores),
        TEST(other_memory),
        TEST(waits),
        TEST(waits_for_device_memory),
        TEST(ping_pong),
        TEST(much_behind_a_wait),
        TEST(captured),
        TEST(graph_nodes),
        TEST(among_host_functions),
        TEST(batch),
        TEST(wrong),
    };
    return tap_main(tests, COUNT(tests));
}
