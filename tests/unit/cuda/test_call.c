/* Questions whose answer is the driver's word: when it says that all is lost, and when that is only
 * about what it was given. */
#include <criterion/criterion.h>

#include "fake.h"

TestSuite(call, .timeout = 20);

static int answer;

/* --- what can be asked ------------------------------------------------------------------------ */

int cuda_link_complete(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply);
int cuda_tensor_map(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply);

int cuda_link_complete(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    return answer;
}

int cuda_tensor_map(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    return answer;
}

/* --- asking ----------------------------------------------------------------------------------- */

static int ask(uint32_t function)
{
    struct dev_client *c = fake_client(fake_device(), 132, 0);
    return cuda.call(c, &(struct dev_call) { .function = function });
}

Test(call, a_compiler_that_gives_up_ends_nobody)
{
    answer = CUDA_ERROR_UNKNOWN;
    cr_assert_eq(ask(WIRE_CALL_LINK_COMPLETE), CUDA_ERROR_UNKNOWN);
}

Test(call, a_context_that_has_ended_is_noticed, .exit_code = FAKE_DEATH)
{
    fake_lose();
    answer = CUDA_ERROR_LAUNCH_FAILED;
    ask(WIRE_CALL_TENSOR_MAP);
    cr_assert_fail("nobody noticed");
}

/* --- what is left of a GPU's memory ----------------------------------------------------------- */

static struct dev *two;

static CUresult left_of_the_current(size_t *left, size_t *total)
{
    bool away;
    *left = fake_entered(&away) == 1 ? 5 << 20 : 9 << 20;
    *total = 1 << 30;
    return (CUresult)answer;
}

static int ask_left(uint32_t device, size_t junk, uint64_t *left)
{
    static struct dev_client *c;
    uint8_t sent[16] = { 0 }, received[64];
    struct wire_dec args;
    struct wire_enc reply;
    struct wire_call_memory_left_is is = { 0 };
    two = two ? two : fake_devices(2);
    fake_driver(two)->cuMemGetInfo_v2 = left_of_the_current;
    c = c ? c : fake_client(two, 132, 0);
    wire_dec_init(&args, sent, junk);
    wire_enc_init(&reply, received, sizeof(received));
    int r = cuda.call(c, &(struct dev_call) { .function = WIRE_CALL_MEMORY_LEFT,
                                              .device = device,
                                              .args = &args,
                                              .reply = &reply });
    wire_dec_init(&args, received, reply.size);
    if (r == CUDA_SUCCESS)
        wire_get_call_memory_left_is(&args, &is);
    cr_assert(!args.fatal);
    *left = is.bytes;
    return r;
}

Test(call, what_is_left_is_the_driver_s_word_on_the_device_asked_about)
{
    uint64_t left;
    cr_assert_eq(ask_left(1, 0, &left), CUDA_SUCCESS);
    cr_assert_eq(left, 5 << 20);
    cr_assert_eq(ask_left(0, 0, &left), CUDA_SUCCESS);
    cr_assert_eq(left, 9 << 20);
    cr_assert_eq(ask_left(0, 8, &left), CUDA_ERROR_INVALID_VALUE, "there are no arguments");
    answer = CUDA_ERROR_OUT_OF_MEMORY;
    cr_assert_eq(ask_left(0, 0, &left), CUDA_ERROR_OUT_OF_MEMORY);
}
