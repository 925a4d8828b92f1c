/*
 * Launches, and attributes of kernels. The compiler turns `f<<<grid, block>>>(...)` into a call
 * that pushes the configuration and a call of a function of the program's, which pops it and
 * launches.
 */
#include "cudart/cudart.h"

#define CONFIGURATIONS_MAX 16 /* for launches in arguments of launches */

struct configurations {
    unsigned count;
    struct {
        dim3 grid, block;
        size_t shared;
        struct CUstream_st *stream;
    } at[CONFIGURATIONS_MAX];
};

/* The calling thread's; NULL: there is no memory for them. */
static struct configurations *configurations(void)
{
    static _Thread_local void *mine;
    return mine ? mine : crt_thread_memory(&mine, sizeof(struct configurations));
}

unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                         struct CUstream_st *stream)
{
    struct configurations *c = configurations();
    if (!c)
        return (unsigned)crt_done(cudaErrorMemoryAllocation);
    if (c->count == CONFIGURATIONS_MAX)
        return (unsigned)crt_done(cudaErrorMissingConfiguration);
    unsigned n = c->count++;
    c->at[n].grid = gridDim;
    c->at[n].block = blockDim;
    c->at[n].shared = sharedMem;
    c->at[n].stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                       void *stream)
{
    struct configurations *c = configurations();
    if (!c || c->count == 0)
        return crt_done(cudaErrorMissingConfiguration);
    unsigned n = --c->count;
    *gridDim = c->at[n].grid;
    *blockDim = c->at[n].block;
    *sharedMem = c->at[n].shared;
    *(struct CUstream_st **)stream = c->at[n].stream;
    return cudaSuccess;
}

/* For sizes that no device has, CUDA 12 has an error of its own. */
static cudaError_t explain(CUresult r, dim3 grid, dim3 block)
{
    if (r != CUDA_ERROR_INVALID_VALUE || CUDART_VERSION >= 13000)
        return crt_of(r);
    static const int limits[6] = {
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z
    };
    const unsigned sizes[6] = { grid.x, grid.y, grid.z, block.x, block.y, block.z };
    CUdevice device = crt_device();
    int most = 0;
    for (int i = 0; i < 6; i++)
        if (sizes[i] == 0 || (!cuDeviceGetAttribute(&most, (CUdevice_attribute)limits[i], device) &&
                              sizes[i] > (unsigned)most))
            return cudaErrorInvalidConfiguration;
    if (!cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) &&
        (unsigned long long)block.x * block.y * block.z > (unsigned)most)
        return cudaErrorInvalidConfiguration;
    return cudaErrorInvalidValue;
}

static cudaError_t launch(CUkernel k, dim3 g, dim3 b, void **args, size_t shared,
                          cudaStream_t stream)
{
    if (shared > UINT32_MAX)
        return cudaErrorInvalidValue;
    CUresult r = cuLaunchKernel((CUfunction)k, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared,
                                stream, args, NULL);
    return __builtin_expect(r != CUDA_SUCCESS, 0) ? explain(r, g, b) : cudaSuccess;
}

cudaError_t crt_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                 size_t sharedMem, cudaStream_t stream)
{
    CUkernel k;
    cudaError_t r = crt_kernel(func, &k);
    return r ? r : launch(k, gridDim, blockDim, args, sharedMem, stream);
}

/* nvcc 13 calls this before the first launch of each kernel, and the program keeps the answer for
 * good. Resetting the device makes the driver's handle invalid, so the answer is the kernel's
 * address in the program. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
    CUkernel k;
    cudaError_t r = crt_enter();
    if (!r)
        r = crt_kernel(entry, &k);
    /* The launch reports what is wrong with the image: nvcc's code does not look at this result. */
    if (!crt_is_no_kernel(r))
        *kernel = (cudaKernel_t)(uintptr_t)entry;
    return crt_done(r);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                               size_t sharedMem, cudaStream_t stream)
{
    CUkernel k = kernel;
    cudaError_t r = crt_enter();
    if (!r)
        r = crt_kernel(kernel, &k);
    /* Not registered: it is the driver's handle of a library's kernel. */
    if (crt_is_no_kernel(r))
        r = cudaSuccess;
    return crt_done(r ? r : launch(k, gridDim, blockDim, args, sharedMem, stream));
}

cudaError_t crt_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
                                            void **args, size_t sharedMem, cudaStream_t stream)
{
    CUkernel k;
    cudaError_t r = crt_kernel(func, &k);
    if (r)
        return r;
    if (sharedMem > UINT32_MAX)
        return cudaErrorInvalidValue;
    return explain(cuLaunchCooperativeKernel((CUfunction)k, gridDim.x, gridDim.y, gridDim.z,
                                             blockDim.x, blockDim.y, blockDim.z,
                                             (unsigned)sharedMem, stream, args),
                   gridDim, blockDim);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "one layout");

static cudaError_t convert(const cudaLaunchConfig_t *c, CUlaunchConfig *out)
{
    if (!c || c->dynamicSmemBytes > UINT32_MAX || (c->numAttrs && !c->attrs))
        return cudaErrorInvalidValue;
    *out = (CUlaunchConfig) { c->gridDim.x,
                              c->gridDim.y,
                              c->gridDim.z,
                              c->blockDim.x,
                              c->blockDim.y,
                              c->blockDim.z,
                              (unsigned)c->dynamicSmemBytes,
                              c->stream,
                              (CUlaunchAttribute *)c->attrs,
                              c->numAttrs };
    return cudaSuccess;
}

static cudaError_t launch_ex(const cudaLaunchConfig_t *config, const void *func, void **args,
                             cudaStream_t none)
{
    CUkernel k;
    CUlaunchConfig c;
    cudaError_t r = convert(config, &c);
    if (!r)
        r = crt_kernel(func, &k);
    if (r)
        return r;
    if (!c.hStream)
        c.hStream = none;
    return explain(cuLaunchKernelEx(&c, (CUfunction)k, args, NULL), config->gridDim,
                   config->blockDim);
}

cudaError_t crt_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    return launch_ex(config, func, args, NULL);
}

cudaError_t crt_cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
                                         void **args)
{
    return launch_ex(config, func, args, cudaStreamPerThread);
}

cudaError_t crt_cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    if (!attr)
        return cudaErrorInvalidValue;
    CUfunction f;
    cudaError_t r = crt_function(func, &f);
    if (r)
        return r;
    int v[CU_FUNC_ATTRIBUTE_MAX] = { 0 };
    for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++)
        (void)cuFuncGetAttribute(&v[i], (CUfunction_attribute)i, f);
    *attr = (struct cudaFuncAttributes) {
        .sharedSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
        .constSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
        .localSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
        .maxThreadsPerBlock = v[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .numRegs = v[CU_FUNC_ATTRIBUTE_NUM_REGS],
        .ptxVersion = v[CU_FUNC_ATTRIBUTE_PTX_VERSION],
        .binaryVersion = v[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
        .cacheModeCA = v[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA],
        .maxDynamicSharedSizeBytes = v[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
        .preferredShmemCarveout = v[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT],
        .clusterDimMustBeSet = v[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET],
        .requiredClusterWidth = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH],
        .requiredClusterHeight = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT],
        .requiredClusterDepth = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH],
        .clusterSchedulingPolicyPreference =
            v[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE],
        .nonPortableClusterSizeAllowed = v[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED],
    };
    return cudaSuccess;
}

cudaError_t crt_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    CUfunction f;
    if (attr < cudaFuncAttributeMaxDynamicSharedMemorySize || attr >= cudaFuncAttributeMax)
        return cudaErrorInvalidValue;
    cudaError_t r = crt_function(func, &f);
    r = r ? r : crt_of(cuFuncSetAttribute(f, (CUfunction_attribute)attr, value));
    if (!r)
        (void)cudaGetLastError(); /* NVIDIA's runtime forgets it then */
    return r;
}

cudaError_t crt_cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    CUfunction f;
    cudaError_t r = crt_function(func, &f);
    return r ? r : crt_of(cuFuncSetCacheConfig(f, (CUfunc_cache)cacheConfig));
}

/* On all devices that these versions support banks have one size. */
cudaError_t crt_cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
    CUfunction f;
    return (unsigned)config > cudaSharedMemBankSizeEightByte ? cudaErrorInvalidValue
                                                             : crt_function(func, &f);
}

cudaError_t crt_cudaFuncGetParamInfo(const void *func, size_t index, size_t *offset, size_t *size)
{
    CUkernel k;
    cudaError_t r = crt_kernel(func, &k);
    return r ? r : crt_of(cuKernelGetParamInfo(k, index, offset, size));
}

#if CUDART_VERSION < 13000
/* For devices of the past that had no double; these functions change nothing. */
cudaError_t crt_cudaSetDoubleForDevice(double *d)
{
    return d ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t crt_cudaSetDoubleForHost(double *d)
{
    return d ? cudaSuccess : cudaErrorInvalidValue;
}
#endif

cudaError_t crt_cudaFuncGetName(const char **name, const void *func)
{
    CUkernel k;
    cudaError_t r = name ? crt_kernel(func, &k) : cudaErrorInvalidValue;
    return r ? r : crt_of(cuKernelGetName(name, k));
}

cudaError_t crt_cudaGetFuncBySymbol(cudaFunction_t *out, const void *symbol)
{
    cudaError_t r = out ? crt_function(symbol, out) : cudaErrorInvalidValue;
    return crt_is_no_kernel(r) ? cudaErrorInvalidDeviceFunction : r;
}

cudaError_t crt_cudaGetKernel(cudaKernel_t *out, const void *entry)
{
    cudaError_t r = out ? crt_kernel(entry, out) : cudaErrorInvalidValue;
    return crt_is_no_kernel(r) ? cudaErrorInvalidDeviceFunction : r;
}

cudaError_t crt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func,
                                                              int blockSize, size_t dynamicSMemSize)
{
    return crt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                      dynamicSMemSize, 0);
}

cudaError_t crt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    CUfunction f;
    cudaError_t r = crt_function(func, &f);
    if ((flags & ~(unsigned)cudaOccupancyDisableCachingOverride) &&
        (!r || r == cudaErrorInvalidResourceHandle))
        return cudaErrorInvalidValue;
    return r ? r
             : crt_of(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize,
                                                                           dynamicSMemSize, flags));
}

cudaError_t crt_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *func,
                                                          int numBlocks, int blockSize)
{
    CUfunction f;
    cudaError_t r = crt_function(func, &f);
    if (numBlocks <= 0 && r != cudaErrorInvalidDeviceFunction)
        return cudaErrorInvalidValue;
    return r ? r : crt_of(cuOccupancyAvailableDynamicSMemPerBlock(size, f, numBlocks, blockSize));
}

/* What questions about clusters are asked of, in the driver's terms. */
static cudaError_t take_clusters(const void *func, const cudaLaunchConfig_t *config, CUfunction *f,
                                 CUlaunchConfig *c)
{
    cudaError_t r = convert(config, c);
    return r ? r : crt_function(func, f);
}

cudaError_t crt_cudaOccupancyMaxPotentialClusterSize(int *size, const void *func,
                                                     const cudaLaunchConfig_t *config)
{
    CUfunction f;
    CUlaunchConfig c;
    cudaError_t r = take_clusters(func, config, &f, &c);
    return r ? r : crt_of(cuOccupancyMaxPotentialClusterSize(size, f, &c));
}

cudaError_t crt_cudaOccupancyMaxActiveClusters(int *count, const void *func,
                                               const cudaLaunchConfig_t *config)
{
    CUfunction f;
    CUlaunchConfig c;
    cudaError_t r = take_clusters(func, config, &f, &c);
    return r ? r : crt_of(cuOccupancyMaxActiveClusters(count, f, &c));
}
