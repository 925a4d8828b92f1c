/*
 * cuGetProcAddress with the real table: what programs built with real toolkits ask for. Facts seen
 * at the interface of the genuine library, plus properties that hold for every name.
 */
#include <criterion/criterion.h>

#include <string.h>

#include "client/entry/procaddr.h"
#include "client/gen/api.h"

/* Exported functions are linked, not called: no table stands behind them here. */
_Atomic(const struct rt_api *) rt_active;

static void *find(const char *name, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult *status)
{
    void *p = &p;
    *status = CU_GET_PROC_ADDRESS_SUCCESS;
    cr_assert_eq(rt_cuGetProcAddress_v2(name, &p, version, flags, status), CUDA_SUCCESS, "%s",
                 name);
    return p;
}

#define EXPECT(name, version, flags, symbol)                                                       \
    do {                                                                                           \
        CUdriverProcAddressQueryResult status_;                                                    \
        cr_expect_eq(find(name, version, flags, &status_), (void *)symbol, "%s %d %d", name,       \
                     version, flags);                                                              \
        cr_expect_eq(status_, CU_GET_PROC_ADDRESS_SUCCESS, "%s %d %d", name, version, flags);      \
    } while (0)
#define EXPECT_NONE(name, version, flags, why)                                                     \
    do {                                                                                           \
        CUdriverProcAddressQueryResult status_;                                                    \
        cr_expect_null(find(name, version, flags, &status_), "%s %d %d", name, version, flags);    \
        cr_expect_eq(status_, CU_GET_PROC_ADDRESS_##why, "%s %d %d", name, version, flags);        \
    } while (0)

TestSuite(procaddr, .timeout = 30);

Test(procaddr, the_newest_variant_that_the_version_knows)
{
    EXPECT("cuMemAlloc", 13000, 0, cuMemAlloc_v2);
    EXPECT("cuMemAlloc", 3020, 0, cuMemAlloc_v2);
    EXPECT("cuMemAlloc", 3010, 0, cuMemAlloc);
    EXPECT("cuCtxCreate", 13000, 0, cuCtxCreate_v4);
    EXPECT("cuCtxCreate", 11040, 0, cuCtxCreate_v3);
    EXPECT("cuCtxCreate", 3020, 0, cuCtxCreate_v2);
    EXPECT("cuCtxGetDevice", 2000, 0, cuCtxGetDevice);
    EXPECT("cuCtxGetDevice", 13000, 0, cuCtxGetDevice_v2);
    EXPECT("cuEventElapsedTime", 12070, 0, cuEventElapsedTime);
    EXPECT("cuEventElapsedTime", 12080, 0, cuEventElapsedTime_v2);
    EXPECT("cuGetProcAddress", 11030, 0, cuGetProcAddress);
    EXPECT("cuGetProcAddress", 12000, 0, cuGetProcAddress_v2);
    EXPECT("cuStreamGetCaptureInfo", 12030, 0, cuStreamGetCaptureInfo_v3);
    EXPECT("cuStreamGetCaptureInfo", 11030, 0, cuStreamGetCaptureInfo_v2);
    EXPECT("cuStreamGetCaptureInfo", 10010, 0, cuStreamGetCaptureInfo);
    EXPECT("cuGraphInstantiate", 11000, 0, cuGraphInstantiate_v2);
    EXPECT("cuInit", 20000, 0, cuInit);
}

/* The C runtime of 13.0 asks for these with versions of its own choosing, to get the old ones. */
Test(procaddr, old_variants_stay_reachable)
{
    EXPECT("cuDevicePrimaryCtxRelease", 7000, 0, cuDevicePrimaryCtxRelease);
    EXPECT("cuDevicePrimaryCtxReset", 7000, 0, cuDevicePrimaryCtxReset);
    EXPECT("cuDeviceGetUuid", 9020, 0, cuDeviceGetUuid);
    EXPECT("cuLinkCreate", 5050, 0, cuLinkCreate);
    EXPECT("cuStreamGetCtx", 9020, 0, cuStreamGetCtx);
    EXPECT("cuStreamBatchMemOp", 8000, 0, cuStreamBatchMemOp);
}

Test(procaddr, per_thread_variants)
{
    EXPECT("cuMemcpyHtoD", 13000, 2, cuMemcpyHtoD_v2_ptds);
    EXPECT("cuMemcpyHtoD", 13000, 1, cuMemcpyHtoD_v2);
    EXPECT("cuMemcpyHtoD", 13000, 0, cuMemcpyHtoD_v2);
    EXPECT("cuLaunchKernel", 7000, 2, cuLaunchKernel_ptsz);
    EXPECT("cuMemAlloc", 13000, 2, cuMemAlloc_v2);
    EXPECT("cuStreamBeginCapture", 10000, 2, cuStreamBeginCapture_ptsz);
    EXPECT("cuStreamBeginCapture", 10010, 2, cuStreamBeginCapture_v2_ptsz);
    /* No falling back to the plain one. */
    EXPECT("cuLaunchKernel", 4000, 0, cuLaunchKernel);
    EXPECT_NONE("cuLaunchKernel", 4000, 2, VERSION_NOT_SUFFICIENT);
    EXPECT_NONE("cuMemcpyHtoD", 6050, 2, VERSION_NOT_SUFFICIENT);
}

/* What FFmpeg's loader of the driver will not go on without; it takes symbols, NVIDIA's runtime
 * names. */
Test(procaddr, graphics)
{
    EXPECT("cuGraphicsGLRegisterImage", 13000, 0, cuGraphicsGLRegisterImage);
    EXPECT("cuGLGetDevices", 13000, 0, cuGLGetDevices_v2);
    EXPECT("cuGLGetDevices", 6000, 0, cuGLGetDevices);
    EXPECT("cuGLMapBufferObject", 13000, 2, cuGLMapBufferObject_v2_ptds);
    EXPECT("cuGLMapBufferObjectAsync", 13000, 2, cuGLMapBufferObjectAsync_v2_ptsz);
    EXPECT("cuEGLStreamProducerPresentFrame", 13000, 2, cuEGLStreamProducerPresentFrame);
    EXPECT("cuVDPAUCtxCreate", 3010, 0, cuVDPAUCtxCreate);
}

Test(procaddr, what_is_not_there)
{
    EXPECT_NONE("", 13000, 0, SYMBOL_NOT_FOUND);
    EXPECT_NONE("", -1, 0, SYMBOL_NOT_FOUND);
    EXPECT_NONE("cuMemAlloc_v2", 13000, 0, SYMBOL_NOT_FOUND);
    EXPECT_NONE("cuLaunchKernel_ptsz", 13000, 2, SYMBOL_NOT_FOUND);
    EXPECT_NONE("cuWGLGetDevice", 13000, 0, SYMBOL_NOT_FOUND);
    EXPECT_NONE("zzz", 13000, 0, SYMBOL_NOT_FOUND);
    EXPECT_NONE("cuInit", 1000, 0, VERSION_NOT_SUFFICIENT);
    EXPECT_NONE("cuLibraryLoadData", 11080, 0, VERSION_NOT_SUFFICIENT);
    EXPECT_NONE("cuInit", 0, 0, VERSION_NOT_SUFFICIENT);
}

Test(procaddr, wrong_questions)
{
    void *p;
    CUdriverProcAddressQueryResult status;
    cr_assert_eq(rt_cuGetProcAddress_v2(NULL, &p, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(rt_cuGetProcAddress_v2("cuInit", NULL, 13000, 0, &status),
                 CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(rt_cuGetProcAddress_v2("cuInit", &p, 13000, 4, &status), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(rt_cuGetProcAddress_v2("cuInit", &p, 13000, 3, &status), CUDA_SUCCESS,
                 "both kinds of stream 0, as NVIDIA's driver has it");
    cr_assert_eq(rt_cuGetProcAddress_v2("cuNothing", &p, 13000, 0, NULL), CUDA_SUCCESS,
                 "the status may be left out");
    cr_assert_null(p);
    cr_assert_eq(rt_cuGetProcAddress("cuNothing", &p, 13000, 0), CUDA_ERROR_NOT_FOUND);
    cr_assert_eq(rt_cuGetProcAddress("cuInit", &p, 13000, 0), CUDA_SUCCESS);
    cr_assert_eq(p, (void *)cuInit);
}

Test(procaddr, the_table_is_sorted_and_every_row_is_found)
{
    for (size_t i = 0; i < rt_procs_count; i++) {
        const struct rt_proc *p = &rt_procs[i];
        if (i > 0) {
            int order = strcmp(rt_procs[i - 1].base, p->base);
            cr_assert(order < 0 || (order == 0 && rt_procs[i - 1].since <= p->since), "%s",
                      p->base);
        }
        CUdriverProcAddressQueryResult status;
        const struct rt_proc *found =
            rt_proc_find(rt_procs, rt_procs_count, p->base, p->since, p->per_thread, &status);
        cr_assert_not_null(found, "%s", p->base);
        cr_assert_eq(found->since, p->since);
        cr_assert_eq(found->per_thread, p->per_thread);
        cr_assert_eq(found->function, p->function, "%s %d", p->base, p->since);
    }
}
