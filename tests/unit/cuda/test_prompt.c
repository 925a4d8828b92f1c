/* What may be handed over without waiting for anything: by whoever stands in for several clients'
 * threads. */
#include <criterion/criterion.h>
#include <sched.h>

#include "device/cuda/complaint.h"
#include "device/cuda/library.h"
#include "device/cuda/admit.h"
#include "fake.h"

TestSuite(prompt, .timeout = 60);

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;
static uint64_t seq;

static struct cuda_library library, printing = { .traits.prints = true },
                                    asserting = { .traits.asserts = true };
static struct cuda_function functions[] = {
    { .loaded = (CUfunction)(void *)&library, .dynamic_max = 48 }, { .loaded = NULL }
};
static struct dev_module module = { .library = &library,
                                    .functions = functions,
                                    .functions_count = 2 };

static void begin_with(uint32_t gpus)
{
    d = fake_devices(gpus);
    c = fake_client(d, 132, 0);
    module.client = c;
    module.library = &library;
    seq = 0;
    cr_assert_eq(cuda_queue_create(c, 0, 1, 0, 0, &q), 0);
}

static void begin(void)
{
    begin_with(1);
}

static void launch(void)
{
    fake_launch(q, ++seq, 1);
}

static bool function_is_prompt(uint32_t function, uint32_t shared_bytes)
{
    const struct wire_rec_launch r = { .head = { .op = WIRE_OP_LAUNCH, .size = sizeof(r) },
                                       .function = function,
                                       .shared_bytes = shared_bytes };
    return cuda_is_prompt(q, &r.head, &module);
}

static bool launch_is_prompt(void)
{
    return function_is_prompt(0, 48);
}

static bool is_prompt(uint16_t op)
{
    const struct wire_record r = { .op = op, .size = sizeof(r) };
    return cuda_is_prompt(q, &r, NULL);
}

static bool volume_is_prompt(uint64_t dst, uint64_t src, uint64_t height, uint64_t depth)
{
    const struct wire_rec_copy r = { .head = { .op = WIRE_OP_COPY, .size = sizeof(r) },
                                     .dst = dst,
                                     .src = src,
                                     .width = 1,
                                     .height = height,
                                     .depth = depth };
    return cuda_is_prompt(q, &r.head, NULL);
}

static bool write_is_prompt(uint64_t dst)
{
    const struct wire_rec_write r = { .head = { .op = WIRE_OP_WRITE, .size = sizeof(r) },
                                      .dst = dst };
    return cuda_is_prompt(q, &r.head, NULL);
}

static bool fill_is_prompt(uint64_t dst)
{
    const struct wire_rec_fill r = { .head = { .op = WIRE_OP_FILL, .size = sizeof(r) },
                                     .dst = dst };
    return cuda_is_prompt(q, &r.head, NULL);
}

static bool copy_is_prompt(void)
{
    return volume_is_prompt(c->base + c->half, c->base, 1, 1);
}

/* With one thing done, so that the stream is there. */
static void open_stream(void)
{
    launch();
    cuda_flush(c);
}

Test(prompt, once_there_is_a_stream, .init = begin)
{
    cr_assert_not(launch_is_prompt());
    cr_assert_not(copy_is_prompt());
    open_stream();
    cr_assert(launch_is_prompt());
    cr_assert(copy_is_prompt());
    cr_assert(is_prompt(WIRE_OP_MARK));
    cr_assert(is_prompt(WIRE_OP_WAIT));
    cr_assert(is_prompt(WIRE_OP_STAMP));
    cr_assert_not(is_prompt(WIRE_OP_GATE));
    cr_assert_not(is_prompt(WIRE_OP_CALL));
    cr_assert_not(is_prompt(WIRE_OP_RETIRE));
    cr_assert_not(is_prompt(WIRE_OP_COPY_ARRAY));
}

Test(prompt, kernels_that_are_loaded, .init = begin)
{
    open_stream();
    cr_assert_not(function_is_prompt(1, 0), "it has to be loaded");
    cr_assert_not(function_is_prompt(2, 0), "there is none");
    cr_assert_not(function_is_prompt(0, 49),
                  "the driver has to be asked for so much shared memory");
    module.library = &printing;
    cr_assert_not(launch_is_prompt(), "it has to wait for its turn to print");
    module.library = &asserting;
    cr_assert_not(launch_is_prompt());
    cuda_complaint_asserts(c);
    cr_assert(launch_is_prompt(), "that is known by now");
}

Test(prompt, not_behind_a_gate, .init = begin)
{
    open_stream();
    uint64_t gate = ++seq;
    cr_assert_eq(cuda_gate(q, gate), 0);
    cr_assert_not(launch_is_prompt());
    launch(); /* held back */
    atomic_store(&q->slot->gate, gate);
    cr_assert_not(launch_is_prompt());
    cuda_gate_moved(q);
    cuda_flush(c);
    cr_assert(launch_is_prompt());
}

Test(prompt, not_where_the_stream_is_to_be_another_one, .init = begin)
{
    const uint32_t half[DEV_DEVICES] = { 64 };
    open_stream();
    cuda_client_set_share(c, 50, half, 0);
    cr_assert_not(launch_is_prompt());
    open_stream();
    cr_assert(launch_is_prompt());
}

Test(prompt, not_while_others_wait_until_nobody_hands_over, .init = begin)
{
    open_stream();
    atomic_fetch_add(&d->frozen, 1);
    cr_assert_not(launch_is_prompt());
    atomic_fetch_sub(&d->frozen, 1);
    cr_assert(launch_is_prompt());
}

/* The driver makes whoever asks wait for the stream. */
Test(prompt, nothing_from_host_to_host, .init = begin)
{
    const uint64_t host = c->base + c->half;
    open_stream();
    cr_assert(volume_is_prompt(c->base, host, 1, 1));
    cr_assert(volume_is_prompt(c->base, c->base, 1, 1));
    cr_assert_not(volume_is_prompt(host, host, 1, 1));
    cr_assert_not(volume_is_prompt(host, c->base - 1, 1, 1));
    cr_assert(write_is_prompt(c->base));
    cr_assert_not(write_is_prompt(host));
    cr_assert(fill_is_prompt(host - 1));
    cr_assert_not(fill_is_prompt(host));
}

Test(prompt, not_what_has_many_rows, .init = begin)
{
    open_stream();
    cr_assert_not(volume_is_prompt(c->base, c->base, 2, 1));
    cr_assert_not(volume_is_prompt(c->base, c->base, 1, 2));
}

Test(prompt, not_while_somebody_has_the_driver, .init = begin)
{
    open_stream();
    cuda_call_begin(d, CUDA_GPU_BIT(q->gpu), CUDA_GROWS);
    cr_assert_not(launch_is_prompt());
    (void)cuda_call_end(d, CUDA_GPU_BIT(q->gpu), CUDA_SUCCESS);
    cr_assert(launch_is_prompt());
}

Test(prompt, copies_not_while_memory_goes, .init = begin)
{
    open_stream();
    pthread_mutex_lock(&c->memory_lock);
    cr_assert_not(copy_is_prompt());
    cr_assert(launch_is_prompt());
    pthread_mutex_unlock(&c->memory_lock);
    cr_assert(copy_is_prompt());
}

Test(prompt, copies_not_where_they_may_go_elsewhere)
{
    begin_with(2);
    open_stream();
    cr_assert_not(copy_is_prompt());
    cr_assert_not(is_prompt(WIRE_OP_WAIT));
    cr_assert(is_prompt(WIRE_OP_MARK));
    cr_assert(launch_is_prompt());
}

/* Long before whoever hands over would have to wait. */
Test(prompt, not_with_much_in_flight, .init = begin)
{
    open_stream();
    fake_hold(q->stream, true);
    for (uint32_t i = 0; i < CUDA_DEPTH / 2; i++)
        launch();
    cr_assert_not(launch_is_prompt());
    fake_let_go();
    cuda_flush(c);
    while (!launch_is_prompt())
        sched_yield();
}

/* The private words are made, and registered, with the first mark that proves something: that is
 * the client's thread's. */
Test(prompt, not_when_words_have_to_be_made, .init = begin)
{
    open_stream();
    uint32_t launches = 0;
    for (; launch_is_prompt(); launches++)
        open_stream();
    cr_assert_not(c->words_wanted);
    cr_assert_gt(launches, 4);
    open_stream(); /* whoever takes what was not prompt makes them */
    cr_assert(c->words_wanted);
    while (!launch_is_prompt()) /* what is in flight is seen to be done */
        sched_yield();
}
