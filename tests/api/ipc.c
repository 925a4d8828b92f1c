/* Memory and events of one process in another. */
#include "peer.h"

#include <string.h>

/* Used up by the tests that kill them. */
static struct peer peers[9];

#define MIB (1u << 20)

/* What a peer is told; a name for each so that a test reads as what happens. */
static CUdeviceptr open_in(struct peer *p, CUipcMemHandle memory)
{
    struct peer_message m =
        peer_answer(p, (struct peer_message) { .op = PEER_OPEN, .memory = memory });
    tap_check_result(__FILE__, __LINE__, "cuIpcOpenMemHandle in the other process", m.result,
                     CUDA_SUCCESS);
    return m.pointer;
}

/* Both see what the other one writes; small and large, from the middle of an allocation as well. */
static void seen_by_both(void)
{
    static const size_t sizes[] = { 1000, 100000, 3 * MIB };
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr before, p, there;
        CUipcMemHandle handle;
        OK(cuMemAlloc(&before, 1000));
        OK(cuMemAlloc(&p, sizes[i]));
        OK(cuMemsetD8(p, 11, sizes[i]));
        OK(cuCtxSynchronize());
        OK(cuIpcGetMemHandle(&handle, p + sizes[i] / 2));
        there = open_in(&peers[0], handle);
        EQ(peer_byte(&peers[0], there), 11);
        EQ(peer_byte(&peers[0], there + sizes[i] - 1), 11);
        ASK_OK(peers[0], .op = PEER_SET, .pointer = there + 500, .size = 100, .value = 22);
        ASK_OK(peers[0], .op = PEER_SYNC);
        EQ(tap_byte(p + 499), 11);
        EQ(tap_byte(p + 500), 22);
        EQ(tap_byte(p + 599), 22);
        EQ(tap_byte(p + 600), 11);
        ASK_OK(peers[0], .op = PEER_CLOSE, .pointer = there);
        EQ(tap_byte(p + 500), 22);
        OK(cuMemFree(p));
        OK(cuMemFree(before));
    }
}

static void the_other_way(void)
{
    struct peer_message m = ASK(peers[0], .op = PEER_ALLOC, .size = 5 * MIB);
    CUdeviceptr p, base;
    size_t size;
    EQ(m.result, CUDA_SUCCESS);
    CUdeviceptr there = m.pointer;
    ASK_OK(peers[0], .op = PEER_SET, .pointer = there, .size = 5 * MIB, .value = 33);
    ASK_OK(peers[0], .op = PEER_SYNC);
    m = ASK(peers[0], .op = PEER_GET_HANDLE, .pointer = there);
    EQ(m.result, CUDA_SUCCESS);
    OK(cuIpcOpenMemHandle(&p, m.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuMemGetAddressRange(&base, &size, p + 1000));
    TRUE(base == p && size >= 5 * MIB);
    EQ(tap_byte(p + 5 * MIB - 1), 33);
    OK(cuMemsetD8(p, 44, 1));
    OK(cuCtxSynchronize());
    EQ(peer_byte(&peers[0], there), 44);
    OK(cuIpcCloseMemHandle(p));
    TRUE(cuMemsetD8(p, 0, 1) != CUDA_SUCCESS);
    ASK_OK(peers[0], .op = PEER_FREE, .pointer = there);
}

static void opened_twice(void)
{
    struct peer_message m = ASK(peers[0], .op = PEER_ALLOC, .size = 4096);
    CUdeviceptr there = m.pointer, p, q;
    m = ASK(peers[0], .op = PEER_GET_HANDLE, .pointer = there);
    OK(cuIpcOpenMemHandle(&p, m.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuIpcOpenMemHandle(&q, m.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    TRUE(p == q);
    IS(cuMemFree(p), CUDA_ERROR_INVALID_VALUE); /* not ours to free */
    OK(cuIpcCloseMemHandle(p));
    (void)tap_byte(p);
    OK(cuIpcCloseMemHandle(p));
    IS(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    ASK_OK(peers[0], .op = PEER_FREE, .pointer = there);
}

static void opened_at_home(void)
{
    CUdeviceptr p, q;
    CUipcMemHandle handle;
    OK(cuMemAlloc(&p, 4096));
    OK(cuIpcGetMemHandle(&handle, p));
    IS(cuIpcOpenMemHandle(&q, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemFree(p));
}

/* Invented handles, ones that were good once, wrong kinds of memory. */
static void wrong(void)
{
    CUdeviceptr p, q;
    CUipcMemHandle handle;
    void *host;
    memset(&handle, 0x5a, sizeof(handle));
    TRUE(cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS);
    IS(cuIpcGetMemHandle(&handle, 0x1000), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostAlloc(&host, 4096, 0));
    IS(cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(host));
    OK(cuMemAllocAsync(&p, 4096, NULL));
    IS(cuIpcGetMemHandle(&handle, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemAlloc(&p, 4096));
    IS(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcGetMemHandle(&handle, p));
    IS(cuIpcOpenMemHandle(&q, handle, 0x40), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
}

static void stale_and_forged(void)
{
    CUdeviceptr p;
    CUipcMemHandle handle;
    struct peer_message m;
    size_t left, total;
    if (tap_genuine())
        tap_skip("what a stale handle does is not defined");
    OK(cuMemAlloc(&p, 4096));
    OK(cuIpcGetMemHandle(&handle, p));
    for (unsigned i = 8; i < 40; i++) {
        CUipcMemHandle forged = handle;
        forged.reserved[i] = (char)(forged.reserved[i] ^ 1);
        m = ASK(peers[0], .op = PEER_OPEN, .memory = forged);
        EQ(m.result, CUDA_ERROR_INVALID_VALUE);
    }
    OK(cuMemFree(p));
    OK(cuMemGetInfo(&left, &total)); /* not before the free has been carried out */
    m = ASK(peers[0], .op = PEER_OPEN, .memory = handle);
    EQ(m.result, CUDA_ERROR_INVALID_VALUE);
}

/* What others have open stays as it is when the exporter frees it. */
/* They may lie in one slab. */
static void small_ones_together(void)
{
    enum { ALL = 3 };
    CUdeviceptr p[ALL], there[ALL];
    CUipcMemHandle handle[ALL];
    for (unsigned i = 0; i < ALL; i++) {
        OK(cuMemAlloc(&p[i], 1000));
        OK(cuMemsetD8(p[i], (unsigned char)(i + 1), 1000));
        OK(cuIpcGetMemHandle(&handle[i], p[i]));
    }
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < ALL; i++)
        there[i] = open_in(&peers[0], handle[i]);
    for (unsigned i = 0; i < ALL; i++)
        EQ(peer_byte(&peers[0], there[i]), i + 1);
    for (unsigned i = 0; i < ALL; i++) {
        ASK_OK(peers[0], .op = PEER_CLOSE, .pointer = there[i]);
        OK(cuMemFree(p[i]));
    }
}

static void freed_while_open(void)
{
    CUdeviceptr p, q, there;
    CUipcMemHandle handle;
    for (size_t size = 4096; size <= 4 * MIB; size *= 1024) {
        OK(cuMemAlloc(&p, size));
        OK(cuMemsetD8(p, 55, size));
        OK(cuCtxSynchronize());
        OK(cuIpcGetMemHandle(&handle, p));
        there = open_in(&peers[0], handle);
        OK(cuMemFree(p));
        OK(cuMemAlloc(&q, size));
        OK(cuMemsetD8(q, 66, size));
        OK(cuCtxSynchronize());
        EQ(peer_byte(&peers[0], there), 55);
        ASK_OK(peers[0], .op = PEER_CLOSE, .pointer = there);
        OK(cuMemFree(q));
    }
}

static void exporter_killed(void)
{
    CUdeviceptr p[2];
    for (unsigned i = 0; i < 2; i++) {
        struct peer_message m = ASK(peers[1], .op = PEER_ALLOC, .size = i ? 4 * MIB : 4096);
        ASK_OK(peers[1], .op = PEER_SET, .pointer = m.pointer, .size = 4096, .value = 77 + i);
        ASK_OK(peers[1], .op = PEER_SYNC);
        m = ASK(peers[1], .op = PEER_GET_HANDLE, .pointer = m.pointer);
        OK(cuIpcOpenMemHandle(&p[i], m.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    }
    peer_kill(&peers[1]);
    for (unsigned i = 0; i < 2; i++) {
        EQ(tap_byte(p[i] + 4095), 77 + i);
        OK(cuMemsetD8(p[i], 5, 4096));
        EQ(tap_byte(p[i]), 5);
        OK(cuIpcCloseMemHandle(p[i]));
    }
}

static void importer_killed(void)
{
    CUdeviceptr p, there;
    CUipcMemHandle handle;
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemsetD8(p, 8, 4096));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, p));
    there = open_in(&peers[2], handle);
    EQ(peer_byte(&peers[2], there), 8);
    peer_kill(&peers[2]);
    EQ(tap_byte(p), 8);
    OK(cuMemFree(p));
}

/* --- words ------------------------------------------------------------------------------------ */

/* As libraries of several processes do it: a stream of one waits for what another one stores in its
 * memory. */
static void waits_for_the_others_word(void)
{
    CUdeviceptr p, there;
    CUipcMemHandle handle;
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemsetD8(p, 0, 4096));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, p));
    there = open_in(&peers[0], handle);
    OK(cuStreamWaitValue32(stream, p, 0x05050505, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(stream, p + 64, 1, 0));
    ASK_OK(peers[0], .op = PEER_VALUE_WAIT, .pointer = there + 64,
           .value = 1); /* which then waits for us */
    ASK_OK(peers[0], .op = PEER_SET, .pointer = there + 128, .size = 1, .value = 9);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuMemsetD8(p, 5, 4));
    OK(cuStreamSynchronize(stream));
    ASK_OK(peers[0], .op = PEER_SYNC);
    EQ(tap_byte(p + 128), 9);
    ASK_OK(peers[0], .op = PEER_CLOSE, .pointer = there);
    OK(cuMemFree(p));
    OK(cuStreamDestroy(stream));
}

/* A wait ends with its program, and held up nobody. */
static void killed_waiting(void)
{
    CUdeviceptr p;
    CUipcMemHandle handle;
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemsetD8(p, 0, 4096));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, p));
    ASK_OK(peers[8], .op = PEER_VALUE_WAIT, .pointer = open_in(&peers[8], handle), .value = 1);
    OK(cuMemsetD8(p + 64, 7, 1));
    OK(cuCtxSynchronize());
    EQ(ASK(peers[8], .op = PEER_QUERY).result, CUDA_ERROR_NOT_READY);
    peer_kill(&peers[8]);
    EQ(tap_byte(p + 64), 7);
    OK(cuMemFree(p));
    OK(cuCtxSynchronize());
}

/* --- events ----------------------------------------------------------------------------------- */

static void waits_for_another(void)
{
    CUevent event;
    CUstream stream;
    CUdeviceptr flag;
    unsigned char byte = 0;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&flag, 1));
    OK(cuMemsetD8(flag, 0, 1));
    struct peer_message m = ASK(peers[0], .op = PEER_EVENT);
    EQ(m.result, CUDA_SUCCESS);
    OK(cuIpcOpenEventHandle(&event, m.event));
    OK(cuEventQuery(event)); /* never recorded */
    for (unsigned round = 1; round < 30; round++) {
        ASK_OK(peers[0], .op = PEER_HOLD);
        ASK_OK(peers[0], .op = PEER_RECORD);
        IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
        OK(cuStreamWaitEvent(stream, event, 0));
        OK(cuMemsetD8Async(flag, (unsigned char)round, 1, stream));
        IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        OK(cuMemcpyDtoH(&byte, flag, 1));
        EQ(byte, round - 1);
        ASK_OK(peers[0], .op = PEER_LET_GO);
        OK(cuStreamSynchronize(stream));
        OK(cuEventQuery(event));
        OK(cuEventSynchronize(event));
        EQ(tap_byte(flag), round);
    }
    OK(cuEventDestroy(event));
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(flag));
}

static void others_wait_for_us(void)
{
    CUevent event;
    CUstream stream;
    CUipcEventHandle handle;
    _Atomic int open = 0;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuIpcGetEventHandle(&handle, event));
    ASK_OK(peers[3], .op = PEER_EVENT_OPEN, .event = handle);
    ASK_OK(peers[3], .op = PEER_EVENT_QUERY);
    OK(cuLaunchHostFunc(stream, tap_hold, &open));
    OK(cuEventRecord(event, stream));
    EQ(ASK(peers[3], .op = PEER_EVENT_QUERY).result, CUDA_ERROR_NOT_READY);
    ASK_OK(peers[3], .op = PEER_STREAM_WAIT);
    EQ(ASK(peers[3], .op = PEER_QUERY).result, CUDA_ERROR_NOT_READY);
    hold_set(&open, 1);
    ASK_OK(peers[3], .op = PEER_EVENT_WAIT);
    ASK_OK(peers[3], .op = PEER_SYNC);
    /* And the importer may record it. */
    ASK_OK(peers[3], .op = PEER_HOLD);
    ASK_OK(peers[3], .op = PEER_RECORD);
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(stream, event, 0));
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    ASK_OK(peers[3], .op = PEER_LET_GO);
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(stream));
    /* The importer may also destroy it before what was recorded has happened. */
    ASK_OK(peers[3], .op = PEER_SET,
           .pointer = ASK(peers[3], .op = PEER_ALLOC, .size = 64 * MIB).pointer, .size = 64 * MIB);
    ASK_OK(peers[3], .op = PEER_RECORD);
    ASK_OK(peers[3], .op = PEER_EVENT_END);
    ASK_OK(peers[3], .op = PEER_SYNC);
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy(event));
    OK(cuStreamDestroy(stream));
}

static void not_of_the_dead_natively(void)
{
    if (tap_genuine())
        tap_skip("what an event of a dead process does is not defined");
}

/* Nobody waits for what will not happen any more. */
static void recorder_killed(void)
{
    CUevent event;
    CUstream stream;
    not_of_the_dead_natively();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    struct peer_message m = ASK(peers[4], .op = PEER_EVENT);
    EQ(m.result, CUDA_SUCCESS);
    OK(cuIpcOpenEventHandle(&event, m.event));
    ASK_OK(peers[4], .op = PEER_HOLD);
    ASK_OK(peers[4], .op = PEER_RECORD);
    OK(cuStreamWaitEvent(stream, event, 0));
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    peer_kill(&peers[4]);
    OK(cuStreamSynchronize(stream));
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy(event));
    OK(cuStreamDestroy(stream));
}

/* This time with an event of ours, and for a third process. Afterwards it is an event like any
 * other. */
static void importer_gone(struct peer *p, bool killed)
{
    CUevent event;
    CUstream stream;
    CUdeviceptr flag;
    CUipcEventHandle handle;
    unsigned char byte = 0;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&flag, 1));
    OK(cuMemsetD8(flag, 0, 1));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuIpcGetEventHandle(&handle, event));
    ASK_OK(peers[3], .op = PEER_EVENT_OPEN, .event = handle);
    ASK_OK(*p, .op = PEER_EVENT_OPEN, .event = handle);
    ASK_OK(*p, .op = PEER_RECORD);
    ASK_OK(*p, .op = PEER_HOLD);
    for (unsigned i = 0; i < 5; i++)
        ASK_OK(*p, .op = PEER_RECORD);
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuMemsetD8Async(flag, 7, 1, stream));
    ASK_OK(peers[3], .op = PEER_STREAM_WAIT);
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EQ(ASK(peers[3], .op = PEER_QUERY).result, CUDA_ERROR_NOT_READY);
    OK(cuMemcpyDtoH(&byte, flag, 1));
    EQ(byte, 0);
    if (killed)
        peer_kill(p);
    else
        peer_exit(p);
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
    OK(cuStreamSynchronize(stream));
    EQ(tap_byte(flag), 7);
    ASK_OK(peers[3], .op = PEER_EVENT_WAIT);
    ASK_OK(peers[3], .op = PEER_SYNC);
    for (unsigned i = 0; i < 20; i++) {
        OK(cuEventRecord(event, stream));
        ASK_OK(peers[3], .op = PEER_RECORD);
    }
    ASK_OK(peers[3], .op = PEER_HOLD);
    ASK_OK(peers[3], .op = PEER_RECORD);
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    ASK_OK(peers[3], .op = PEER_LET_GO);
    OK(cuEventSynchronize(event));
    ASK_OK(peers[3], .op = PEER_SYNC);
    ASK_OK(peers[3], .op = PEER_EVENT_END);
    OK(cuEventDestroy(event));
    OK(cuMemFree(flag));
    OK(cuStreamDestroy(stream));
}

static void importer_killed_recording(void)
{
    not_of_the_dead_natively();
    importer_gone(&peers[5], true);
}

static void importer_exits_recording(void)
{
    not_of_the_dead_natively();
    importer_gone(&peers[6], false);
}

/* Behind a kernel that would run for ever. A GPU cannot end it, so we do: not before that has it
 * been recorded. */
static void importer_killed_in_a_kernel(void)
{
    CUevent event;
    CUdeviceptr word;
    CUipcMemHandle memory;
    CUipcEventHandle handle;
    not_of_the_dead_natively();
    if (!tap_computes())
        tap_skip("the device runs no kernels");
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&memory, word));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuIpcGetEventHandle(&handle, event));
    ASK_OK(peers[7], .op = PEER_EVENT_OPEN, .event = handle);
    ASK_OK(peers[7], .op = PEER_AWAIT, .pointer = open_in(&peers[7], memory));
    ASK_OK(peers[7], .op = PEER_RECORD);
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    peer_kill(&peers[7]);
    if (tap_gpu()) {
        IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
        OK(cuMemsetD32(word, 1, 1));
    }
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy(event));
    OK(cuMemFree(word));
}

static void event_handles(void)
{
    CUevent event, plain, opened;
    CUipcEventHandle handle;
    int supported = 0;
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
    EQ(supported, 1);
    OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    TRUE(cuIpcGetEventHandle(&handle, plain) != CUDA_SUCCESS);
    IS(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuIpcGetEventHandle(&handle, event));
    IS(cuIpcOpenEventHandle(&opened, handle), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuEventDestroy(event));
    OK(cuEventDestroy(plain));
    memset(&handle, 0x5a, sizeof(handle));
    TRUE(cuIpcOpenEventHandle(&opened, handle) != CUDA_SUCCESS);
}

static void alone_like_any_event(void)
{
    CUevent event;
    CUstream a, b;
    _Atomic int open = 0;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < 100; i++)
        OK(cuEventRecord(event, i % 3 ? a : b));
    OK(cuLaunchHostFunc(a, tap_hold, &open));
    for (unsigned i = 0; i < 100; i++)
        OK(cuEventRecord(event, a));
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(b, event, 0));
    IS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    hold_set(&open, 1);
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(b));
    OK(cuEventDestroy(event));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(seen_by_both),
        TEST(the_other_way),
        TEST(opened_twice),
        TEST(opened_at_home),
        TEST(wrong),
        TEST(stale_and_forged),
        TEST(small_ones_together),
        TEST(freed_while_open),
        TEST(exporter_killed),
        TEST(importer_killed),
        TEST(waits_for_the_others_word),
        TEST(killed_waiting),
        TEST(waits_for_another),
        TEST(others_wait_for_us),
        TEST(recorder_killed),
        TEST(importer_killed_recording),
        TEST(importer_exits_recording),
        TEST(importer_killed_in_a_kernel),
        TEST(event_handles),
        TEST(alone_like_any_event),
    };
    for (unsigned i = 0; i < COUNT(peers); i++)
        peer_start(&peers[i]);
    return tap_main(tests, COUNT(tests));
}
