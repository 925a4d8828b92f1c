/* Launches that a GPU would not take: what is refused at the call, what its driver is asked, and
 * how often. No device here has clusters, so that the test says what this one has. */
#include <assert.h>
#include <criterion/criterion.h>
#include <cuda.h>
#include <string.h>

#include "client/module/module.h"
#include "client/session/attach.h"
#include "client/stream/context.h"
#include "fake.h"

static struct fake fake;
static CUdeviceptr memory;
static CUfunction function;
static struct rt_entry entry;
static CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                       .value.clusterDim = { 1, 1, 1 } };

/* The driver: takes clusters of eight blocks at most, and has room for none that wants much memory.
 */
static unsigned asked;
static int answer(const struct wire_rec_call *r, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_clusters w;
    if (r->function == WIRE_CALL_BLOCKS) { /* two on a multiprocessor */
        wire_put_call_value(reply, &(struct wire_call_value) { .value = 2 });
        return CUDA_SUCCESS;
    }
    CUlaunchAttribute a = { .value.clusterDim = { entry.cluster[0], entry.cluster[1],
                                                  entry.cluster[2] } };
    if (r->function != WIRE_CALL_CLUSTERS)
        return CUDA_ERROR_NOT_SUPPORTED;
    asked++;
    wire_get_call_clusters(args, &w);
    if (args->fatal || w.largest || w.attributes.size > sizeof(a))
        return CUDA_ERROR_UNKNOWN;
    if (w.attributes.size)
        memcpy(&a, w.attributes.data, w.attributes.size);
    if (a.value.clusterDim.x * a.value.clusterDim.y * a.value.clusterDim.z > 8)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    wire_put_call_value(reply,
                        &(struct wire_call_value) { .value = w.shared_bytes > 30000 ? 0 : 4 });
    return CUDA_SUCCESS;
}

static void setup(void)
{
    CUcontext c;
    CUmodule m;
    fake_start(&fake, fake_serve_well, NULL);
    fake.call = answer;
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&memory, 4096), CUDA_SUCCESS);
    cr_assert_eq(cuModuleLoadData(&m, ".version 8.0"), CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetFunction(&function, m, "k"), CUDA_SUCCESS);
    struct rt_function *f = rt_function_find(function);
    assert(f && rt_session);
    entry = *f->entry;
    f->entry = &entry;
    f->module->by_name = true;
    rt_session->memory_apart = true;
    int32_t *a = rt_session->devices[0].attributes;
    a[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
    a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536;
    a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024;
    a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64;
    a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535;
    a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535;
    atomic_store(&f->dynamic_limit, 48 << 10);
    fake_device_start(&fake);
}

static CUresult launch(unsigned grid, unsigned block, unsigned shared, unsigned attributes)
{
    const CUlaunchConfig config = { grid, 2, 1, block, 1, 1, shared, NULL, &attribute, attributes };
    unsigned n = 1;
    void *params[] = { &memory, &n };
    return cuLaunchKernelEx(&config, function, params, NULL);
}

static CUresult in_clusters(unsigned x, unsigned y, unsigned z, unsigned grid)
{
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = y;
    attribute.value.clusterDim.z = z;
    return launch(grid, 32, 0, 1);
}

TestSuite(launch, .init = setup, .timeout = 30);

Test(launch, the_driver_is_asked_once_for_a_shape)
{
    cr_assert_eq(in_clusters(2, 1, 1, 4), CUDA_SUCCESS);
    cr_assert_eq(in_clusters(2, 1, 1, 4), CUDA_SUCCESS);
    cr_assert_eq(in_clusters(2, 1, 1, 6), CUDA_SUCCESS, "another grid of the same clusters");
    cr_assert_eq(asked, 1);
    cr_assert_eq(in_clusters(4, 2, 1, 4), CUDA_SUCCESS);
    cr_assert_eq(in_clusters(2, 1, 1, 4), CUDA_SUCCESS);
    cr_assert_eq(asked, 2);
    cr_assert_eq(launch(4, 64, 0, 1), CUDA_SUCCESS);
    cr_assert_eq(launch(4, 64, 1024, 1), CUDA_SUCCESS);
    cr_assert_eq(asked, 4, "larger blocks, and more memory, may not fit");
    cr_assert_eq(launch(5, 64, 0, 0), CUDA_SUCCESS, "without clusters");
    cr_assert_eq(asked, 4);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
}

Test(launch, what_the_driver_refuses_is_refused_at_the_call)
{
    for (unsigned i = 1; i <= 2; i++) {
        cr_assert_eq(in_clusters(16, 1, 1, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
        cr_assert_eq(asked, i, "it may take them next time");
    }
    cr_assert_eq(in_clusters(2, 1, 1, 4), CUDA_SUCCESS);
    cr_assert_eq(launch(4, 32, 40000, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE, "no room for one");
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
}

Test(launch, grids_that_clusters_do_not_divide)
{
    cr_assert_eq(in_clusters(2, 1, 1, 3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(in_clusters(1, 4, 1, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(in_clusters(1, 1, 2, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(in_clusters(2, 0, 1, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(asked, 0);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
}

Test(launch, clusters_that_a_kernel_was_compiled_for)
{
    memcpy(entry.cluster, (uint32_t[]) { 2, 1, 1 }, sizeof(entry.cluster));
    cr_assert_eq(launch(3, 32, 0, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(launch(4, 32, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(in_clusters(2, 1, 1, 4), CUDA_SUCCESS);
    cr_assert_eq(in_clusters(4, 1, 1, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(asked, 1);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* The device that is made up grants three multiprocessors. */
Test(launch, cooperative_in_what_the_context_has)
{
    unsigned n = 1;
    void *params[] = { &memory, &n };
    int32_t *a = rt_session->devices[0].attributes;
    a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048;
    a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = 100 << 10;
    a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 65536;
    cr_assert_eq(cuLaunchCooperativeKernel(function, 6, 1, 1, 32, 1, 1, 0, NULL, params),
                 CUDA_SUCCESS);
    cr_assert_eq(cuLaunchCooperativeKernel(function, 7, 1, 1, 32, 1, 1, 0, NULL, params),
                 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    rt_current.context->multiprocessors = 1;
    cr_assert_eq(cuLaunchCooperativeKernel(function, 2, 1, 1, 32, 1, 1, 0, NULL, params),
                 CUDA_SUCCESS);
    cr_assert_eq(cuLaunchCooperativeKernel(function, 3, 1, 1, 32, 1, 1, 0, NULL, params),
                 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
}

Test(launch, more_threads_than_bounds_or_registers)
{
    cr_assert_eq(launch(1, 256, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(launch(1, 257, 0, 0), CUDA_ERROR_INVALID_VALUE,
                 "16 registers: the kernel's bounds");
    entry.registers = 255;
    cr_assert_eq(launch(1, 257, 0, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    entry.registers = 96;
    entry.max_threads = 640;
    cr_assert_eq(launch(1, 640, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(launch(1, 641, 0, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                 "five warps in each quarter");
    entry.max_threads = 512;
    cr_assert_eq(launch(1, 513, 0, 0), CUDA_ERROR_INVALID_VALUE);
}
