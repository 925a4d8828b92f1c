/* Several GPUs: each operation is in the context, and mostly in the stream, of the GPU whose memory
 * it is about. The fake driver checks that a stream's context is current whenever something is put
 * into it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <limits.h>
#include <sched.h>

#include "base/clock.h"
#include "fake.h"

#define MIB (1u << 20)

TestSuite(far, .timeout = 20);

static const CUdeviceptr here = FAKE_WINDOW, there = FAKE_WINDOW + 2 * MIB,
                         host = FAKE_WINDOW + (1u << 30);

/* Its memory `there` is the second GPU's, if there is one. */
static struct dev_client *client(struct dev *d)
{
    struct dev_client *c = fake_client(d, 132, 0);
    fake_map(c, there, 2 * MIB, fake_count(d) > 1);
    fake_map(c, here, 2 * MIB, 0);
    fake_map_host(c, host, 2 * MIB);
    return c;
}

static struct dev_queue *queue(struct dev_client *c, uint32_t device, uint32_t number)
{
    return fake_queue(c, device, number, 0);
}

static void copy(struct dev_queue *q, uint64_t seq, CUdeviceptr dst, CUdeviceptr src)
{
    const struct wire_rec_copy r = { .dst = dst, .src = src, .width = 64, .height = 1, .depth = 1 };
    cr_assert_eq(cuda.copy(q, seq, &r), 0);
}

Test(far, whose_memory_it_is)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    cr_assert_eq(fake_owner(c, here), 0);
    cr_assert_eq(fake_owner(c, here + 2 * MIB - 1), 0);
    cr_assert_eq(fake_owner(c, there), 1);
    cr_assert_eq(fake_owner(c, there + 2 * MIB), FAKE_NOBODYS);
    cr_assert_eq(fake_owner(c, host), FAKE_NOBODYS);
    cr_assert_eq(fake_owner(c, FAKE_WINDOW - 1), FAKE_NOBODYS);
    cuda.memory_unmap(c, here, 2 * MIB);
    cr_assert_eq(fake_owner(c, here), FAKE_NOBODYS);
    cr_assert_eq(fake_owner(c, there), 1);
    fake_client_end(c);
}

Test(far, what_is_memory)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    cr_assert(fake_holds(c, here, 2 * MIB));
    cr_assert(fake_holds(c, here + MIB, 3 * MIB), "one beside the other");
    cr_assert_not(fake_holds(c, here + MIB, 3 * MIB + 1));
    cr_assert(fake_holds(c, host + 2 * MIB - 1, 1));
    cr_assert_not(fake_holds(c, host + 2 * MIB - 1, 2));
    cr_assert_not(fake_holds(c, host - 1, 1));
    cr_assert_not(fake_holds(c, host - 1, 2));
    cuda.memory_unmap(c, here, 2 * MIB);
    cr_assert_not(fake_holds(c, here, 4 * MIB));
    cr_assert_not(fake_holds(c, here + 2 * MIB - 1, 2));
    fake_client_end(c);
}

/* The driver takes other addresses for this process's, which it would read there and then. */
Test(far, what_is_not_mapped_is_not_copied)
{
    struct dev *d = fake_device();
    struct dev_client *c = client(d);
    struct dev_queue *q = queue(c, 0, 1);
    const struct fake_copy *copies;
    copy(q, 1, here, host);
    cr_assert_eq(fake_copies(&copies), 1);
    fake_refuse_copies(UINT_MAX); /* but clients have errors */
    copy(q, 2, here, host + 2 * MIB - 63);
    cr_assert_eq(fake_faults(), 1);
    copy(q, 3, host + 4 * MIB, here);
    cr_assert_eq(fake_faults(), 2);
    cr_assert_eq(fake_copies(&copies), 1);
    fake_client_end(c);
}

Test(far, copies_go_where_the_memory_is)
{
    struct dev *d = fake_devices(3);
    struct dev_client *c = client(d);
    struct dev_queue *q[3];
    const struct fake_copy *copies;
    for (uint32_t i = 0; i < 3; i++)
        q[i] = queue(c, i, i);
    copy(q[0], 1, here, here + MIB);   /* 0: its own */
    copy(q[1], 1, here, host);         /* 1: a detour to 0 */
    copy(q[0], 2, here, there);        /* 2: between peers, by one of them */
    copy(q[1], 2, here, there);        /* 3 */
    copy(q[2], 1, here, there);        /* 4: by a third one, which leaves it to the source */
    copy(q[0], 3, there, there + MIB); /* 5: a detour to 1 */
    copy(q[0], 4, host, host + 4096);  /* 6: anybody's */
    cr_assert_eq(fake_copies(&copies), 7);
    const uint32_t gpu[] = { 0, 0, 0, 1, 1, 1, 0 };
    const bool peers[] = { false, false, true, true, true, false, false };
    for (unsigned i = 0; i < 7; i++) {
        cr_assert_eq(copies[i].device, gpu[i], "copy %u", i);
        cr_assert_eq(copies[i].peers, peers[i], "copy %u", i);
    }
    cr_assert_eq(copies[0].stream, fake_stream(q[0]));
    cr_assert_neq(copies[1].stream, fake_stream(q[1]));
    cuda.flush(c);
    const uint64_t last[] = { 4, 2, 1 };
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(fake_done(q[i]), last[i]);
    fake_client_end(c);
}

/* As imported memory that is mapped for the importer's GPU alone. */
Test(far, a_gpu_that_may_touch_it_does_it)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    struct dev_queue *q = queue(c, 0, 1);
    const struct wire_rec_fill r = {
        .dst = there, .width = 16, .height = 1, .value = 7, .element_size = 4
    };
    const struct fake_copy *copies;
    cr_assert_eq(cuda.memory_attach(c, there, 2 * MIB, -1, 0, 1, WIRE_MEMORY_ACCESS_WRITE), 0);
    copy(q, 1, host, there);
    copy(q, 2, here, there);
    cr_assert_eq(cuda.fill(q, 3, &r), 0);
    cr_assert_eq(fake_copies(&copies), 3);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(copies[i].stream, fake_stream(q), "copy %u", i);
        cr_assert_not(copies[i].peers, "copy %u", i);
    }
    cr_assert_eq(cuda.memory_attach(c, there, 2 * MIB, -1, 0, 1, WIRE_MEMORY_ACCESS_WRITE << 2), 0);
    copy(q, 4, here, there);
    cr_assert_eq(fake_copies(&copies), 4);
    cr_assert(copies[3].peers);
    fake_client_end(c);
}

Test(far, a_detour_is_in_the_order_of_its_queue)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    struct dev_queue *q = queue(c, 0, 1);
    const struct wire_rec_fill r = {
        .dst = there, .width = 16, .height = 1, .value = 7, .element_size = 4
    };
    const struct fake_copy *copies;
    cr_assert_eq(cuda.stamp(q, 1, 0), 0);
    fake_hold(fake_stream(q), true);
    cr_assert_eq(cuda.stamp(q, 2, 0), 0);
    cr_assert_eq(cuda.fill(q, 3, &r), 0);
    cr_assert_eq(fake_copies(&copies), 1);
    cr_assert_eq(copies[0].device, 1);
    cuda.flush(c);
    cr_assert_eq(fake_done(q), 1);
    fake_hold(copies[0].stream, true);
    fake_hold(fake_stream(q), false);
    cr_assert_eq(fake_done(q), 2, "the stream waits for the detour");
    fake_hold(copies[0].stream, false);
    cr_assert_eq(fake_done(q), 3);
    fake_client_end(c);
}

Test(far, queues_of_different_devices_wait_for_each_other)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    struct dev_queue *a = queue(c, 0, 1), *b = queue(c, 1, 2);
    cr_assert_eq(cuda.stamp(a, 1, 0), 0);
    cr_assert_eq(cuda.stamp(b, 1, 1), 0);
    fake_hold(fake_stream(a), true);
    cr_assert_eq(cuda.stamp(a, 2, 0), 0);
    cr_assert_eq(cuda.wait(b, 2, a, 2), 0);
    cuda.flush(c);
    cr_assert_eq(fake_done(b), 1);
    fake_hold(fake_stream(a), false);
    cr_assert_eq(fake_done(b), 2);
    fake_client_end(c);
}

/* What the other one has collected is handed over meanwhile, on its GPU. */
Test(far, the_first_operation_of_a_queue_may_be_a_wait)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    struct dev_queue *a = queue(c, 0, 1), *b = queue(c, 1, 2);
    fake_launch_one_of_many(b, 1, 1);
    cr_assert_eq(cuda.wait(a, 1, b, 1), 0);
    cr_assert_eq(cuda.stamp(a, 2, 0), 0);
    cuda.flush(c);
    cr_assert_eq(fake_done(a), 2);
    fake_client_end(c);
}

/* A client that has an error is gone when its queues are done: what a copy has begun elsewhere is
 * part of that. */
Test(far, a_detour_ends_where_it_fails)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    struct dev_queue *q = queue(c, 0, 1);
    const struct fake_copy *copies;
    copy(q, 1, there, there + MIB);
    cr_assert_eq(fake_copies(&copies), 1);
    fake_hold(copies[0].stream, true);
    fake_refuse_copies(0);
    copy(q, 2, there, there + MIB);
    cr_assert_eq(fake_copies(&copies), 1);
    cr_assert_eq(fake_faults(), 1);
    cr_assert_not(cuda.queue_is_done(q));
    fake_hold(copies[0].stream, false);
    cr_assert(cuda.queue_is_done(q));
    fake_client_end(c);
}

static unsigned volume(struct dev_queue *q, uint64_t seq, uint64_t height, uint64_t depth,
                       uint64_t pitch, uint64_t slice)
{
    const struct fake_copy *copies;
    unsigned before = fake_copies(&copies);
    const struct wire_rec_copy r = { .dst = here,
                                     .src = host,
                                     .width = 16,
                                     .height = height,
                                     .depth = depth,
                                     .dst_pitch = pitch,
                                     .dst_slice = slice,
                                     .src_pitch = 16,
                                     .src_slice = 16 * height };
    cr_assert_eq(cuda.copy(q, seq, &r), 0);
    return fake_copies(&copies) - before;
}

/* Planes are one call of the driver, or none. */
Test(far, copies_of_planes)
{
    struct dev *d = fake_device();
    struct dev_client *c = client(d);
    struct dev_queue *q = queue(c, 0, 1);
    const CUDA_MEMCPY3D *box = fake_box();
    cr_assert_eq(volume(q, 1, 4, 300, 32, 5 * 32), 1);
    cr_assert_eq(box->Depth, 300);
    cr_assert_eq(box->Height, 4);
    cr_assert_eq(box->dstHeight, 5);
    cr_assert_eq(box->dstPitch, 32);
    cr_assert_eq(box->srcHeight, 4);
    cr_assert_eq(volume(q, 2, 1, 300, 0, 100), 1);
    cr_assert_eq(box->Depth, 1);
    cr_assert_eq(box->Height, 300);
    cr_assert_eq(box->dstPitch, 100);
    cr_assert_eq(box->srcPitch, 16);
    cr_assert_eq(volume(q, 3, 4, 1, 32, 0), 1);
    fake_expect_faults();
    cr_assert_eq(volume(q, 4, 4, 3, 32, 5 * 32 + 1), 0, "not whole rows apart");
    cr_assert_eq(volume(q, 5, 1, 3, 16, 15), 0, "they overlap");
    cr_assert_eq(fake_faults(), 2);
    fake_client_end(c);
}

static _Atomic bool over;

static void *copy_there(void *arg)
{
    copy(arg, 1, there, there + MIB);
    atomic_store(&over, true);
    return NULL;
}

/* There is no room for another stream on the other GPU, and a kernel runs there: who unmaps memory
 * meanwhile is everybody's thread. */
Test(far, the_way_is_waited_for_without_the_memory)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d), *other = fake_client(d, FAKE_SMS, 0);
    struct dev_queue *q = queue(c, 0, 1), *runs_on = queue(other, 1, 1), *before = queue(c, 0, 2);
    const struct fake_copy *copies;
    pthread_t thread;
    fake_launch(runs_on, 1, 1);
    fake_hold(fake_stream(runs_on), true);
    fake_launch(runs_on, 2, 1);
    cuda.flush(other);
    fake_patience(d, 0, 0, 0);
    fake_set_capacity(d, 1, (struct fake_use) { .used = 32 }, 32);
    fake_wait_until_busy(d, FAKE_SECOND);
    fake_launch_one_of_many(before, 1, 3);
    cr_assert_eq(pthread_create(&thread, NULL, copy_there, q), 0);
    for (const uint64_t until = gm_now_ns() + 20 * GM_NS_PER_MS; gm_now_ns() < until; sched_yield())
        cr_assert_not(atomic_load(&over));
    fake_memory_goes(c);
    while (fake_done(before) != 1) /* what came before goes on */
        sched_yield();
    cr_assert_not(atomic_load(&over));
    fake_hold(fake_stream(runs_on), false);
    pthread_join(thread, NULL);
    cr_assert_eq(fake_copies(&copies), 1);
    cr_assert_eq(copies[0].device, 1);
    fake_client_end(c);
    fake_client_end(other);
}

/* Arrays may be in a GPU's fallback context, whose streams are its own. */
Test(far, each_context_has_its_own_way)
{
    struct dev *d = fake_devices(2);
    struct dev_client *c = client(d);
    struct dev_queue *q = fake_queue_with_stream(c, 0, 1, 0);
    const unsigned first = fake_use_of(d, 1, false).used, second = fake_use_of(d, 1, true).used;
    cr_assert_neq(fake_detour(q, 1, false), fake_detour(q, 1, true));
    cr_assert_eq(fake_use_of(d, 1, false).used, first + 1);
    cr_assert_eq(fake_use_of(d, 1, true).used, second + 1);
    fake_client_end(c);
    cr_assert_eq(fake_use_of(d, 1, false).used, first);
    cr_assert_eq(fake_use_of(d, 1, true).used, second);
}

static bool access_refused;

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc,
                           size_t count)
{
    (void)address;
    (void)size;
    (void)desc;
    (void)count;
    return access_refused ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* What the driver refuses leaves the range as it was, also for a call that sets its access for
 * another reason later. */
Test(far, access_that_is_refused_is_not_remembered)
{
    struct dev *d = fake_devices(1);
    struct dev_client *c = client(d);
    fake_driver(d)->cuMemSetAccess = set_access;
    cr_assert_eq(cuda.memory_attach(c, here, 2 * MIB, -1, 0, 0, WIRE_MEMORY_ACCESS_WRITE), 0);
    access_refused = true;
    cr_assert_eq(cuda.memory_attach(c, here, 2 * MIB, -1, 0, 0, WIRE_MEMORY_ACCESS_READ),
                 CUDA_ERROR_NOT_SUPPORTED);
    cr_assert(fake_may_write(c, here));
    access_refused = false;
    cr_assert_eq(cuda.memory_attach(c, here, 2 * MIB, -1, 0, 0, WIRE_MEMORY_ACCESS_READ), 0);
    cr_assert_not(fake_may_write(c, here));
    fake_client_end(c);
}
