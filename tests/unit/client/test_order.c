/* What lands in the ring: sequence numbers, and the waits that make the default streams' semantics.
 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static struct fake fake;
static CUdeviceptr memory;
static char story[2048];

static void setup(void)
{
    CUcontext c;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&memory, 4096), CUDA_SUCCESS);
}

static void set(CUstream s)
{
    cr_assert_eq(cuMemsetD8Async(memory, 0, 1, s), CUDA_SUCCESS);
}

/* The ring's records since the last call as text: "fill0.1 wait1.1(0.1)"; not completed. */
static const char *read_story(void)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    char *at = story;
    *at = '\0';
    while (tp_ring_peek(&fake.ring, buffer, sizeof(buffer)) == 1) {
        struct wire_record *r = (struct wire_record *)(void *)buffer;
        at += sprintf(at, "%s%s%u.%llu", at == story ? "" : " ", wire_record_name(r->op), r->stream,
                      (unsigned long long)r->seq);
        if (r->op == WIRE_OP_WAIT) {
            struct wire_rec_wait *w = (struct wire_rec_wait *)(void *)buffer;
            at += sprintf(at, "(%u.%llu)", w->other, (unsigned long long)w->other_seq);
        }
        tp_ring_advance(&fake.ring);
    }
    return story;
}

static void complete(uint32_t stream, uint64_t seq)
{
    tp_word_publish(&fake.session.streams[stream].completed, seq);
}

static CUstream make(unsigned flags)
{
    CUstream s;
    cr_assert_eq(cuStreamCreate(&s, flags), CUDA_SUCCESS);
    return s;
}

TestSuite(order, .init = setup, .timeout = 20);

Test(order, one_stream)
{
    set(NULL);
    set(CU_STREAM_LEGACY);
    set(NULL);
    cr_assert_str_eq(read_story(), "fill0.1 fill0.2 fill0.3");
}

Test(order, legacy_and_blocking)
{
    CUstream a = make(0), b = make(0); /* numbers 0, 1 */
    set(a);
    set(b);
    set(NULL); /* number 2 */
    cr_assert_str_eq(read_story(), "fill0.1 fill1.1 wait2.1(0.1) wait2.2(1.1) fill2.3");
    set(NULL);
    cr_assert_str_eq(read_story(), "fill2.4");
    set(a);
    set(a);
    cr_assert_str_eq(read_story(), "wait0.2(2.4) fill0.3 fill0.4");
    set(NULL);
    cr_assert_str_eq(read_story(), "wait2.5(0.4) fill2.6");
}

Test(order, non_blocking_goes_its_way)
{
    CUstream a = make(CU_STREAM_NON_BLOCKING);
    set(a);
    set(NULL);
    set(a);
    cr_assert_str_eq(read_story(), "fill0.1 fill1.1 fill0.2");
}

Test(order, what_is_done_is_not_waited_for)
{
    CUstream a = make(0);
    set(a);
    complete(0, 1);
    set(NULL);
    cr_assert_str_eq(read_story(), "fill0.1 fill1.1");
    complete(1, 1);
    set(a);
    cr_assert_str_eq(read_story(), "fill0.2");
}

Test(order, events_are_points)
{
    CUstream a = make(CU_STREAM_NON_BLOCKING), b = make(CU_STREAM_NON_BLOCKING);
    CUevent untimed, timed;
    cr_assert_eq(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    cr_assert_eq(cuEventCreate(&timed, 0), CUDA_SUCCESS);
    set(a);
    cr_assert_eq(cuEventRecord(untimed, a), CUDA_SUCCESS);
    cr_assert_eq(cuStreamWaitEvent(b, untimed, 0), CUDA_SUCCESS);
    cr_assert_str_eq(read_story(),
                     "fill0.1 mark0.2 wait1.1(0.2)"); /* the device tells when it comes to a mark */
    cr_assert_eq(cuEventRecord(timed, a), CUDA_SUCCESS);
    cr_assert_eq(cuStreamWaitEvent(a, timed, 0), CUDA_SUCCESS); /* itself */
    cr_assert_str_eq(read_story(), "stamp0.3");
    cr_assert_eq(cuEventQuery(untimed), CUDA_ERROR_NOT_READY);
    complete(0, 2);
    cr_assert_eq(cuEventQuery(untimed), CUDA_SUCCESS);
    cr_assert_eq(cuEventQuery(timed), CUDA_ERROR_NOT_READY);
    cr_assert_eq(cuStreamWaitEvent(b, untimed, 0), CUDA_SUCCESS); /* done */
    cr_assert_str_eq(read_story(), "");
}

/* An event in the legacy stream stands for what the blocking streams hold, too. */
Test(order, event_in_legacy)
{
    CUstream a = make(0);
    CUevent e;
    cr_assert_eq(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    set(a);
    cr_assert_eq(cuEventRecord(e, NULL), CUDA_SUCCESS);
    cr_assert_str_eq(read_story(), "fill0.1 wait1.1(0.1) mark1.2");
}

/* A number goes on counting in its next life, and is not used again before its last work is done.
 */
Test(order, numbers_come_back)
{
    CUstream a = make(CU_STREAM_NON_BLOCKING);
    set(a);
    cr_assert_eq(cuStreamDestroy_v2(a), CUDA_SUCCESS);
    set(make(CU_STREAM_NON_BLOCKING));
    cr_assert_str_eq(read_story(), "fill0.1 retire0.2 fill1.1");
    complete(0, 2);
    set(make(CU_STREAM_NON_BLOCKING));
    cr_assert_str_eq(read_story(), "fill0.3");
}

Test(order, unused_streams_retire_nothing)
{
    cr_assert_eq(cuStreamDestroy_v2(make(0)), CUDA_SUCCESS);
    cr_assert_str_eq(read_story(), "");
}

Test(order, per_thread_default_stream)
{
    set(NULL);
    set(CU_STREAM_PER_THREAD);
    cr_assert_eq(cuMemsetD8Async_ptsz(memory, 0, 1, NULL), CUDA_SUCCESS);
    set(NULL);
    cr_assert_str_eq(read_story(), "fill0.1 wait1.1(0.1) fill1.2 fill1.3 wait0.2(1.3) fill0.3");
}

Test(order, launch_record)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    CUmodule m;
    CUfunction f;
    uint64_t a = 0x1122334455667788;
    uint32_t b = 0x99aabbcc;
    void *params[] = { &a, &b };
    cr_assert_eq(cuModuleLoadData(&m, ".version 6.0\n"), CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetFunction(&f, m, "k"), CUDA_SUCCESS);
    cr_assert_eq(cuLaunchKernel(f, 2, 3, 4, 5, 6, 7, 89, NULL, params, NULL), CUDA_SUCCESS);
    cr_assert_eq(tp_ring_peek(&fake.ring, buffer, sizeof(buffer)), 1);
    const struct wire_rec_launch *l = (const struct wire_rec_launch *)(const void *)buffer;
    cr_assert_eq(l->head.op, WIRE_OP_LAUNCH);
    cr_assert_eq(l->head.size, sizeof(*l) + 12);
    cr_assert_eq(l->module, 7);
    cr_assert_eq(l->grid_z, 4);
    cr_assert_eq(l->block_y, 6);
    cr_assert_eq(l->shared_bytes, 89);
    cr_assert_eq(memcmp(l->params, &a, 8), 0);
    cr_assert_eq(memcmp(l->params + 8, &b, 4), 0);
}

/* The error word ends waits and is what every call says from then on. */
Test(order, sticky_error)
{
    set(NULL);
    tp_session_fail(&fake.session, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert_eq(cuMemsetD8Async(memory, 0, 1, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr p;
    cr_assert_eq(cuMemAlloc_v2(&p, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    int n;
    cr_assert_eq(cuDeviceGetCount(&n), CUDA_SUCCESS);
}

/* A consumer's index that cannot be ends the session, not the program. */
Test(order, broken_ring)
{
    set(NULL);
    atomic_store(&fake.session.control->ring.head, 0x77777777);
    CUresult r = CUDA_SUCCESS;
    for (int i = 0; i < 100000 && r == CUDA_SUCCESS; i++)
        r = cuMemsetD8Async(memory, 0, 1, NULL);
    cr_assert_eq(r, CUDA_ERROR_MPS_RPC_FAILURE);
}
