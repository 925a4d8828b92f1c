/* Questions whose answer is the driver's word: when it says that all is lost, and when that is only about what it was given. */
#include <criterion/criterion.h>

#include "fake.h"

TestSuite(call, .timeout = 20);

static int answer;

/* --- what can be asked -------------------------------------------------------------------------------------------------- */

#define OF_A_MODULE(name)                                                                                            \
    int name(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)                                    \
    {                                                                                                                \
        return answer;                                                                                               \
    }
#define OF_A_CLIENT(name)                                                                                            \
    int name(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)                                    \
    {                                                                                                                \
        return answer;                                                                                               \
    }

OF_A_MODULE(cuda_function_find)
OF_A_MODULE(cuda_function_names)
OF_A_MODULE(cuda_variable_find)
OF_A_MODULE(cuda_attribute_get)
OF_A_MODULE(cuda_attribute_set)
OF_A_MODULE(cuda_clusters)
OF_A_MODULE(cuda_blocks)
OF_A_CLIENT(cuda_array_create)
OF_A_CLIENT(cuda_array_destroy)
OF_A_CLIENT(cuda_object_create)
OF_A_CLIENT(cuda_object_destroy)
OF_A_CLIENT(cuda_limit_raise)
OF_A_CLIENT(cuda_link_begin)
OF_A_CLIENT(cuda_link_input)
OF_A_CLIENT(cuda_link_data)
OF_A_CLIENT(cuda_link_complete)
OF_A_CLIENT(cuda_link_read)
OF_A_CLIENT(cuda_link_end)
OF_A_CLIENT(cuda_tensor_map)

/* --- asking --------------------------------------------------------------------------------------------------------------- */

static int ask(uint32_t function)
{
    struct dev_client *c = fake_client(fake_device(), 132, 0);
    return cuda_call(c, &(struct dev_call) { .function = function });
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
    ask(WIRE_CALL_LIMIT_RAISE);
    cr_assert_fail("nobody noticed");
}
