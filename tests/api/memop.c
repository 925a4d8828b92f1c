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
    open = 1;
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
        TEST(stores), TEST(waits), TEST(among_host_functions), TEST(batch), TEST(wrong),
    };
    return tap_main(tests, COUNT(tests));
}
