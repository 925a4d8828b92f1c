/*
 * Launches by kernels that were not written by the device runtime of the software device, but by a
 * client that calls what is below it.
 */
#include "tap.h"

#include <string.h>

static CUmodule module;
static CUdeviceptr out;

/* Launches what is written down at `at`, as often as `times` says. The last answer goes to `out`.
 */
static const char raw_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 r) __gmux_child_launch(.param .b64 at, .param .b64 stream);\n"
    ".visible .entry raw(.param .u64 out, .param .u64 at, .param .u32 times)\n{\n"
    " .reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %p;\n"
    " ld.param.u64 %d1, [out]; ld.param.u64 %d2, [at]; ld.param.u32 %r1, [times];\n"
    "next: { .param .b64 a; .param .b64 s; .param .b32 r; st.param.b64 [a], %d2; st.param.b64 [s], "
    "0;\n"
    " call.uni (r), __gmux_child_launch, (a, s); ld.param.b32 %r2, [r]; }\n"
    " st.global.u32 [%d1], %r2; sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra next;\n"
    " ret;\n}\n"
    ".visible .entry none(.param .u64 out)\n{\n ret;\n}\n"
    ".visible .global .u64 kernel = none;\n";

static uint32_t raw(CUdeviceptr at, uint32_t times)
{
    CUfunction f;
    uint32_t got;
    void *params[] = { &out, &at, &times };
    OK(cuModuleGetFunction(&f, module, "raw"));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&got, out, sizeof(got)));
    return got;
}

static void begin_raw(void)
{
    if (!tap_computes() || tap_gpu())
        tap_skip("not the software device");
    OK(cuModuleLoadData(&module, raw_ptx));
    OK(cuMemAlloc(&out, 4096));
    OK(cuMemsetD32(out, 0, 1024));
}

/* No kernel, no blocks; then more launches than there is room for, and after them all is as before.
 */
static void bad_records(void)
{
    begin_raw();
    uint32_t record[32] = { 0 };
    uint64_t kernel;
    size_t size;
    CUdeviceptr at = out + 256, variable;
    OK(cuModuleGetGlobal(&variable, &size, module, "kernel"));
    OK(cuMemcpyDtoH(&kernel, variable, sizeof(kernel)));
    EQ(raw(at, 1), 98);
    memcpy(record, &kernel, sizeof(kernel));
    OK(cuMemcpyHtoD(at, record, sizeof(record)));
    EQ(raw(at, 1), 9);
    for (unsigned i = 2; i < 8; i++)
        record[i] = 1;
    OK(cuMemcpyHtoD(at, record, sizeof(record)));
    EQ(raw(at, 1), 0);
    EQ(raw(at, 1u << 20), 69);
    EQ(raw(at, 1), 0);
    /* An address of a function, but no kernel's. */
    kernel += 1u << 20;
    OK(cuMemcpyHtoD(at, &kernel, sizeof(kernel)));
    EQ(raw(at, 1), 98);
}

static void bad_place(void)
{
    begin_raw();
    CUfunction f;
    CUdeviceptr at = 8;
    uint32_t times = 1;
    void *params[] = { &out, &at, &times };
    OK(cuModuleGetFunction(&f, module, "raw"));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(bad_records), TEST(bad_place) };
    return tap_main(tests, COUNT(tests));
}
