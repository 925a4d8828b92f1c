/* A library whose functions and variables are found by name, across the end of a primary context.
 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"

#define SIZE 4096u

static struct fake fake;
static char said[1024]; /* what the device was asked */

/* Each module has its variable at another place. */
static int answer(const struct wire_rec_call *r, struct wire_dec *args, struct wire_enc *reply)
{
    static const uint32_t params[] = { 0, 8 };
    struct wire_call_function_find f;
    struct wire_call_variable_find v;
    size_t n = strlen(said);
    switch (r->function) {
    case WIRE_CALL_FUNCTION_FIND:
        wire_get_call_function_find(args, &f);
        snprintf(said + n, sizeof(said) - n, "%u: %u is %s\n", r->module, f.index, f.name);
        wire_put_function_info(reply,
                               &(struct wire_function_info) { .name = f.name,
                                                              .param_bytes = 8,
                                                              .params = { params, sizeof(params) },
                                                              .max_threads = 256 });
        return CUDA_SUCCESS;
    case WIRE_CALL_VARIABLE_FIND:
        wire_get_call_variable_find(args, &v);
        snprintf(said + n, sizeof(said) - n, "%u: where is %s\n", r->module, v.name);
        wire_put_call_variable_found(
            reply, &(struct wire_call_variable_found) { .address = FAKE_WINDOW + r->module * SIZE,
                                                        .size = 16 });
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static void expect(const char *text)
{
    cr_assert_str_eq(said, text);
    said[0] = '\0';
}

static CUlibrary begin(CUlibraryOption *option)
{
    CUlibrary l;
    CUcontext c;
    fake_start(&fake, fake_serve_well, NULL);
    fake.by_name = true;
    fake.call = answer;
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    fake_device_start(&fake);
    cr_assert_eq(cuDevicePrimaryCtxRetain(&c, 0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxSetCurrent(c), CUDA_SUCCESS);
    cr_assert_eq(cuLibraryLoadData(&l, ".version 8.0", NULL, NULL, 0, option, NULL, option ? 1 : 0),
                 CUDA_SUCCESS);
    return l;
}

static void reset(void)
{
    CUcontext c;
    cr_assert_eq(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    cr_assert_eq(cuDevicePrimaryCtxRetain(&c, 0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxSetCurrent(c), CUDA_SUCCESS);
}

/* Nobody waits for that; but the server answers in order. */
static void expect_unloaded(unsigned module)
{
    size_t left, total;
    cr_assert_eq(cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
    cr_assert_eq(fake.unloaded, module);
}

static void expect_variable(CUlibrary l, unsigned module)
{
    CUdeviceptr p;
    size_t size;
    cr_assert_eq(cuLibraryGetGlobal(&p, &size, l, "v"), CUDA_SUCCESS);
    cr_assert_eq(p, FAKE_WINDOW + module * SIZE);
    cr_assert_eq(size, 16);
}

Test(renew, what_was_found_is_found_in_the_new_one)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    CUkernel a, b, again;
    CUlibrary l = begin(&option);
    cr_assert_eq(cuLibraryGetKernel(&a, l, "a"), CUDA_SUCCESS);
    cr_assert_eq(cuLibraryGetKernel(&b, l, "b"), CUDA_SUCCESS);
    expect_variable(l, 7);
    expect("7: 0 is a\n7: 1 is b\n7: where is v\n");
    reset();
    expect("8: 0 is a\n8: 1 is b\n8: where is v\n");
    expect_unloaded(7);
    expect_variable(l, 8);
    cr_assert_eq(cuLibraryGetKernel(&again, l, "b"), CUDA_SUCCESS);
    cr_assert_eq(again, b);
    expect("");
    reset();
    expect_unloaded(8);
    cr_assert_eq(fake.modules, 3);
    expect_variable(l, 9);
    CUdeviceptr p;
    size_t size;
    cr_assert_eq(cuMemGetAddressRange_v2(&p, &size, FAKE_WINDOW + 9 * SIZE), CUDA_SUCCESS);
    cr_assert_eq(cuMemGetAddressRange_v2(&p, &size, FAKE_WINDOW + 8 * SIZE), CUDA_ERROR_NOT_FOUND);
}

/* The program may have the image no more. */
Test(renew, not_without_the_image)
{
    CUlibrary l = begin(NULL);
    expect_variable(l, 7);
    reset();
    cr_assert_eq(fake.modules, 1);
    expect_variable(l, 7);
}

/* Only what was there: not at the first context, nor for a context of the program's own. */
Test(renew, not_without_an_end)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    CUcontext c;
    CUlibrary l = begin(&option);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxDestroy_v2(c), CUDA_SUCCESS);
    cr_assert_eq(cuDevicePrimaryCtxRetain(&c, 0), CUDA_SUCCESS);
    cr_assert_eq(fake.modules, 1);
    expect_variable(l, 7);
}
