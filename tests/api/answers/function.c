/* Functions: attributes, parameters, occupancy. */
#include "answers.h"

static int attribute(const char *name, CUfunction_attribute a)
{
    int value = -1;
    CUresult r = cuFuncGetAttribute(&value, a, answers_function_of(name));
    if (r)
        answers_call(name, r);
    return value;
}

static void names(void)
{
    const char *name = NULL;
    CUfunction f = answers_function_of("bounded");
    CUmodule m = NULL;
    CALL(cuFuncGetName(&name, f));
    TEXT(name);
    CALL(cuFuncGetName(NULL, f));
    CALL(cuFuncGetName(&name, NULL));
    CALL(cuFuncGetModule(&m, f));
    NUM(m == answers_image());
    CALL(cuFuncGetModule(NULL, f));
    CALL(cuFuncGetModule(&m, NULL));
}

static void function_attributes(void)
{
    static const char *const kernels[] = { "nothing",        "fill",        "shared_static",
                                           "shared_dynamic", "local_words", "bounded",
                                           "required",       "variables",   "heap",
                                           "parameters" };
    int value = 0;
    for (unsigned i = 0; i < COUNT(kernels); i++) {
        TEXT(kernels[i]);
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_NUM_REGS) > 0);
        MACHINE(attribute(kernels[i], CU_FUNC_ATTRIBUTE_NUM_REGS));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_PTX_VERSION));
        MACHINE(attribute(kernels[i], CU_FUNC_ATTRIBUTE_BINARY_VERSION));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_CACHE_MODE_CA));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
        NUM(attribute(kernels[i], CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE));
    }
    CALL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, answers_function_of("fill")));
    CALL(cuFuncGetAttribute(&value, (CUfunction_attribute)-1, answers_function_of("fill")));
    CALL(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, answers_function_of("fill")));
    CALL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
}

static void setting_attributes(void)
{
    CUfunction f = answers_function_of("shared_dynamic"), s = answers_function_of("shared_static");
    int most = 0, value = 0;
    cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
    NUM(most >= 48 << 10);
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    NUM(attribute("shared_dynamic", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == most);
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000));
    NUM(attribute("shared_dynamic", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
    CALL(cuFuncSetAttribute(s, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    CALL(cuFuncSetAttribute(s, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most - 4096));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    NUM(attribute("shared_dynamic", CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -2));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 10));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 10));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    CALL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, f));
    NUM(value);
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                            CU_CLUSTER_SCHEDULING_POLICY_SPREAD));
    CALL(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX, 1));
    CALL(cuFuncSetAttribute(NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
    CALL(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_SHARED));
    CALL(cuFuncSetCacheConfig(f, (CUfunc_cache)9));
    CALL(cuFuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    CALL(cuFuncSetSharedMemConfig(f, (CUsharedconfig)9));
}

static void kernel_attributes(void)
{
    CUlibrary lib;
    CUkernel k;
    int value = 0;
    size_t offset, size;
    CALL(cuLibraryLoadData(&lib, answers_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetKernel(&k, lib, "shared_static"));
    CALL(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 0));
    NUM(value);
    CALL(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 1000));
    CALL(cuKernelGetAttribute(NULL, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 0));
    CALL(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2000, k, 0));
    CALL(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
    NUM(value);
    CALL(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2000, k, 1000));
    CALL(cuKernelGetParamInfo(k, 0, &offset, &size));
    NUM(offset);
    NUM(size);
    CALL(cuKernelGetParamInfo(k, 1, &offset, &size));
    CALL(cuLibraryUnload(lib));
}

static void function_parameters(void)
{
    CUfunction f = answers_function_of("parameters");
    size_t offset = 99, size = 99;
    for (unsigned i = 0; i < 6; i++) {
        CALL(cuFuncGetParamInfo(f, i, &offset, &size));
        NUM(offset);
        NUM(size);
    }
    CALL(cuFuncGetParamInfo(f, 6, &offset, &size));
    CALL(cuFuncGetParamInfo(f, 0, NULL, &size));
    CALL(cuFuncGetParamInfo(f, 0, &offset, NULL));
    CALL(cuFuncGetParamInfo(answers_function_of("nothing"), 0, &offset, &size));
}

static size_t CUDA_CB bytes_of(int block)
{
    return (size_t)block * 16;
}

/* Blocks of kernels that are bound by threads or by shared memory, as parts of what a
 * multiprocessor has. */
static void occupancy(void)
{
    CUfunction f = answers_function_of("nothing"), s = answers_function_of("shared_static");
    int n = -1, grid = -1, block = -1, threads = 0, sms = 0, blocks = 0, shared = 0, reserved = 0;
    size_t bytes = 0;
    cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0);
    cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0);
    cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0);
    cuDeviceGetAttribute(&reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0);
    for (int size = 32; size <= 1024; size *= 2) {
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, size, 0));
        NUM(n == (threads / size < blocks ? threads / size : blocks));
    }
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, s, 32, 0));
    NUM(n == (shared / (4096 + reserved) < blocks ? shared / (4096 + reserved) : blocks));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, s, 32, 20000));
    NUM(n == shared / ((4096 + 20000 + reserved + 127) / 128 * 128));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 1025, 0));
    NUM(n);
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 33, 0));
    NUM(n == (threads / 64 < blocks ? threads / 64 : blocks));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 0, 0));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, -1, 0));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, f, 32, 0));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, 32, 0));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 48 << 10));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, (48 << 10) + 1));
    NUM(n);
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, answers_function_of("bounded"), 65, 0));
    NUM(n == threads / 96);
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &n, f, 32, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 8));
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
    NUM(block);
    NUM(grid == sms * (threads / 1024));
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 200));
    NUM(block);
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, answers_function_of("bounded"), NULL, 0,
                                          0));
    NUM(block);
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, bytes_of, 0, 0));
    NUM(block);
    CALL(cuOccupancyMaxPotentialBlockSize(NULL, &block, f, NULL, 0, 0));
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, NULL, f, NULL, 0, 0));
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, -1));
    CALL(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 0, 8));
    CALL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 64));
    MACHINE(bytes);
    CALL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 64));
    MACHINE(bytes);
    CALL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 0, 64));
    CALL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1000, 64));
    MACHINE(bytes);
    CALL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 0));
}

const struct answers_case answers_function[] = {
    CASE(names),
    CASE(function_attributes),
    CASE(setting_attributes),
    CASE(kernel_attributes),
    CASE(function_parameters),
    CASE(occupancy),
    END,
};
