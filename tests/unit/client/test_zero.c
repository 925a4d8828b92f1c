/*
 * Memory that is allocated again is cleared before, as natively where the driver has given it back
 * to the system meanwhile. The device of these tests completes nothing by itself.
 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <string.h>

#include "fake.h"

#define SLAB (2u << 20)

static struct fake fake;

static void setup(void)
{
    CUcontext c;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
}

static CUdeviceptr get(size_t size)
{
    CUdeviceptr p;
    cr_assert_eq(cuMemAlloc_v2(&p, size), CUDA_SUCCESS);
    return p;
}

static void give(CUdeviceptr p)
{
    cr_assert_eq(cuMemFree_v2(p), CUDA_SUCCESS);
}

/* Takes a fill out of the ring, the only record in it, and completes it if `done`. */
static struct wire_rec_fill take_fill(bool done)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    struct wire_rec_fill f;
    cr_assert_eq(tp_ring_peek(&fake.ring, buffer, sizeof(buffer)), 1, "no record");
    memcpy(&f, buffer, sizeof(f));
    tp_ring_advance(&fake.ring);
    cr_assert_eq(f.head.op, WIRE_OP_FILL);
    cr_assert_eq(f.value, 0);
    cr_assert_eq(f.height, 1);
    cr_assert_neq(tp_ring_peek(&fake.ring, buffer, sizeof(buffer)), 1, "another record");
    if (done)
        tp_word_publish(&fake.session.streams[f.head.stream].completed, f.head.seq);
    return f;
}

static void no_record(void)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    cr_assert_neq(tp_ring_peek(&fake.ring, buffer, sizeof(buffer)), 1);
}

TestSuite(zero, .init = setup, .timeout = 20);

Test(zero, what_is_new_is_not_cleared)
{
    get(4096);
    get(1 << 20);
    get(4 << 20);
    no_record();
}

Test(zero, beside_another_one)
{
    CUdeviceptr a = get(4096);
    get(4096);
    give(a);
    cr_assert_eq(get(4096), a);
    no_record();
}

Test(zero, alone)
{
    CUdeviceptr a = get(4096), b = get(1 << 16);
    give(a);
    give(b);
    /* It does not wait for ever for the device: the memory is a slab of its own then. */
    CUdeviceptr c = get(4096);
    struct wire_rec_fill f = take_fill(false);
    cr_assert_eq(f.dst, a);
    cr_assert_eq(f.width * f.element_size, b + (1 << 16) - a);
    cr_assert_eq(c % SLAB, 0);
    cr_assert_neq(c, a);
    give(c);
    /* Nobody has what is not clear yet. */
    c = get(4096);
    cr_assert(c < a || c >= a + SLAB - a % SLAB);
    give(c);
}

Test(zero, with_its_rest)
{
    CUdeviceptr a = get(4096);
    give(a);
    (void)get(4096);
    struct wire_rec_fill f = take_fill(false);
    tp_word_publish(&fake.session.streams[f.head.stream].completed, f.head.seq);
    (void)get(4096);
    f = take_fill(false);
    cr_assert_eq(f.dst, a); /* it was given back, and is cleared again */
    tp_word_publish(&fake.session.streams[f.head.stream].completed, f.head.seq);
}

Test(zero, large_ones)
{
    CUdeviceptr a = get((2 << 20) + 4096), b = get(1 << 20); /* what is left of two slabs */
    cr_assert_eq(b, a + (2 << 20) + 4096);
    give(a);
    (void)get((1 << 20) + 4096);
    struct wire_rec_fill f = take_fill(false);
    cr_assert_eq(f.dst, a);
    cr_assert_eq(f.width * f.element_size, (1 << 20) + 4096);
}

Test(zero, in_the_order_of_a_stream)
{
    CUdeviceptr a, b;
    cr_assert_eq(cuMemAllocAsync(&a, 4096, CU_STREAM_LEGACY), CUDA_SUCCESS);
    cr_assert_eq(cuMemFreeAsync(a, CU_STREAM_LEGACY), CUDA_SUCCESS);
    cr_assert_eq(cuMemAllocAsync(&b, 4096, CU_STREAM_LEGACY), CUDA_SUCCESS);
    cr_assert_eq(a, b); /* nobody has waited */
    no_record();
    cr_assert_eq(cuMemFreeAsync(b, CU_STREAM_LEGACY), CUDA_SUCCESS);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    cr_assert_eq(cuMemAllocAsync(&b, 4096, CU_STREAM_LEGACY), CUDA_SUCCESS);
    cr_assert_eq(a, b);
    cr_assert_eq(take_fill(true).dst, a);
}
