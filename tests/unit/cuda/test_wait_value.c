/* Streams that wait for a value: the word is read in the stream itself, behind all that came
 * before, until it is right; nothing that comes behind is with the driver before that. */
#include <criterion/criterion.h>

#include "fake.h"

TestSuite(value, .timeout = 20);

#define MIB (1u << 20)

static const CUdeviceptr here = FAKE_WINDOW, there = FAKE_WINDOW + 2 * MIB;

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;

static void begin_with(uint32_t gpus)
{
    d = gpus == 1 ? fake_device() : fake_devices(gpus);
    c = fake_client(d, 132, 0);
    fake_map(c, here, 2 * MIB, 0);
    fake_map(c, there, 2 * MIB, gpus - 1);
    q = fake_queue(c, 0, 1, 0);
}

static void begin(void)
{
    begin_with(1);
}

static void wait_for(uint64_t seq, CUdeviceptr address, uint32_t value)
{
    const struct wire_rec_wait_value r = {
        .address = address, .value = value, .width = 4, .compare = 1
    };
    cr_assert_eq(cuda.wait_value(q, seq, &r), 0);
}

/* What the driver would have copied. */
static void word_is(uint32_t value)
{
    atomic_store(&fake_slot(q)->looked, value);
}

static unsigned looks(void)
{
    const struct fake_copy *copies;
    return fake_copies(&copies);
}

static void look(void)
{
    cuda.gate_moved(q);
    cuda.flush(c);
}

static bool is_done(uint64_t seq)
{
    cuda.flush(c);
    return fake_done(q) >= seq;
}

Test(value, is_looked_for_until_it_is_there, .init = begin)
{
    const struct fake_copy *copies;
    const uint32_t *numbers;
    cuda.queue_destroy(q);
    q = fake_queue_with_stream(c, 0, 1, 0);
    fake_hold(fake_stream(q), true);
    fake_launch(q, 1, 11);
    word_is(5); /* an older one's */
    wait_for(2, here + 64, 5);
    fake_launch(q, 3, 13);
    look();
    cr_assert_eq(looks(), 0, "what came before is not done");
    fake_hold(fake_stream(q), false);
    look();
    cr_assert_eq(looks(), 1);
    (void)fake_copies(&copies);
    cr_assert_eq(copies[0].src, here + 64);
    cr_assert_eq(copies[0].size, 4);
    cr_assert_eq(copies[0].stream, fake_stream(q));
    cr_assert_eq(copies[0].dst, (CUdeviceptr)(uintptr_t)&fake_slot(q)->looked);
    word_is(4);
    look();
    cr_assert_eq(looks(), 1, "what was read last is looked at first");
    look();
    cr_assert_eq(looks(), 2);
    cr_assert_not(is_done(2));
    word_is(5);
    look();
    cr_assert_eq(looks(), 2, "it was there");
    cr_assert(is_done(3));
    cr_assert_geq(atomic_load(&fake_slot(q)->gate), 2);
    unsigned n = fake_happened(&numbers);
    cr_assert_eq(numbers[n - 1], 13);
    fake_client_end(c);
}

/* However long it takes, a look leaves nothing behind that counts as the client's. */
Test(value, may_be_looked_for_a_long_time, .init = begin)
{
    wait_for(1, here, 1);
    for (unsigned i = 0; i < 1000; i++) {
        word_is(0);
        look();
    }
    cr_assert_eq(cuda.backlog(c), 1);
    word_is(1);
    look();
    look();
    cr_assert(is_done(1));
    fake_client_end(c);
}

Test(value, is_not_looked_for_outside_the_memory, .init = begin)
{
    fake_expect_faults();
    wait_for(1, here + 8 * MIB, 0);
    look();
    cr_assert_geq(fake_faults(), 1);
    cr_assert_eq(looks(), 0);
    fake_client_end(c);
}

Test(value, in_another_gpus_memory_is_read_there)
{
    const struct fake_copy *copies;
    begin_with(2);
    wait_for(1, there, 7);
    word_is(0);
    look();
    cr_assert_geq(fake_copies(&copies), 1);
    cr_assert_eq(copies[0].src, there);
    cr_assert_eq(copies[0].device, 1);
    word_is(7);
    look();
    look();
    cr_assert(is_done(1));
    fake_client_end(c);
}
