/*
 * Part of cuda_runtime.h: templates that let C++ programs use their own types in place of void *.
 */
#ifndef GMUX_TEMPLATES_H
#define GMUX_TEMPLATES_H

#include <utility>

template <class T> static inline __host__ cudaError_t cudaMalloc(T **p, size_t size)
{
    return ::cudaMalloc((void **)(void *)p, size);
}

template <class T>
static inline __host__ cudaError_t cudaMallocHost(T **p, size_t size, unsigned int flags = 0)
{
    return ::cudaHostAlloc((void **)(void *)p, size, flags);
}

static inline __host__ cudaError_t cudaMallocHost(void **p, size_t size, unsigned int flags)
{
    return ::cudaHostAlloc(p, size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaHostAlloc(T **p, size_t size, unsigned int flags)
{
    return ::cudaHostAlloc((void **)(void *)p, size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaHostGetDevicePointer(T **p, void *host, unsigned int flags)
{
    return ::cudaHostGetDevicePointer((void **)(void *)p, host, flags);
}

template <class T>
static inline __host__ cudaError_t cudaMallocManaged(T **p, size_t size,
                                                     unsigned int flags = cudaMemAttachGlobal)
{
    return ::cudaMallocManaged((void **)(void *)p, size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaMallocPitch(T **p, size_t *pitch, size_t width,
                                                   size_t height)
{
    return ::cudaMallocPitch((void **)(void *)p, pitch, width, height);
}

template <class T>
static inline __host__ cudaError_t cudaMallocAsync(T **p, size_t size, cudaStream_t stream)
{
    return ::cudaMallocAsync((void **)(void *)p, size, stream);
}

template <class T>
static inline __host__ cudaError_t cudaMallocFromPoolAsync(T **p, size_t size, cudaMemPool_t pool,
                                                           cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync((void **)(void *)p, size, pool, stream);
}

static inline __host__ cudaError_t cudaMallocAsync(void **p, size_t size, cudaMemPool_t pool,
                                                   cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync(p, size, pool, stream);
}

template <class T>
static inline __host__ cudaError_t cudaStreamAttachMemAsync(
    cudaStream_t stream, T *p, size_t length = 0, unsigned int flags = cudaMemAttachSingle)
{
    return ::cudaStreamAttachMemAsync(stream, (void *)p, length, flags);
}

static inline __host__ cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return ::cudaEventCreateWithFlags(event, flags);
}

/* --- variables: by reference ------------------------------------------------------------------ */

template <class T>
static inline __host__ cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *src,
                                                      size_t count, size_t offset = 0,
                                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return ::cudaMemcpyToSymbol((const void *)&symbol, src, count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t
cudaMemcpyFromSymbol(void *dst, const T &symbol, size_t count, size_t offset = 0,
                     cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return ::cudaMemcpyFromSymbol(dst, (const void *)&symbol, count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t
cudaMemcpyToSymbolAsync(const T &symbol, const void *src, size_t count, size_t offset = 0,
                        cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = 0)
{
    return ::cudaMemcpyToSymbolAsync((const void *)&symbol, src, count, offset, kind, stream);
}

template <class T>
static inline __host__ cudaError_t
cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t count, size_t offset = 0,
                          cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = 0)
{
    return ::cudaMemcpyFromSymbolAsync(dst, (const void *)&symbol, count, offset, kind, stream);
}

template <class T>
static inline __host__ cudaError_t cudaGetSymbolAddress(void **p, const T &symbol)
{
    return ::cudaGetSymbolAddress(p, (const void *)&symbol);
}

template <class T, class U>
static inline __host__ cudaError_t cudaGetSymbolAddress(U **p, const T &symbol)
{
    return ::cudaGetSymbolAddress((void **)(void *)p, (const void *)&symbol);
}

template <class T>
static inline __host__ cudaError_t cudaGetSymbolSize(size_t *size, const T &symbol)
{
    return ::cudaGetSymbolSize(size, (const void *)&symbol);
}

/* --- kernels: as functions -------------------------------------------------------------------- */

template <class T>
static inline __host__ cudaError_t cudaLaunchKernel(T *func, dim3 grid, dim3 block, void **args,
                                                    size_t shared = 0, cudaStream_t stream = 0)
{
    return ::cudaLaunchKernel((const void *)func, grid, block, args, shared, stream);
}

template <class T>
static inline __host__ cudaError_t cudaLaunchCooperativeKernel(T *func, dim3 grid, dim3 block,
                                                               void **args, size_t shared = 0,
                                                               cudaStream_t stream = 0)
{
    return ::cudaLaunchCooperativeKernel((const void *)func, grid, block, args, shared, stream);
}

template <typename... Expected, typename... Actual>
static inline __host__ cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config,
                                                      void (*kernel)(Expected...), Actual &&...args)
{
    return [&](Expected... coerced) {
        void *pointers[sizeof...(coerced) + 1] = { (void *)&coerced... };
        return ::cudaLaunchKernelExC(config, (const void *)kernel, pointers);
    }(std::forward<Actual>(args)...);
}

template <class T>
static inline __host__ cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attr, T *func)
{
    return ::cudaFuncGetAttributes(attr, (const void *)func);
}

template <class T>
static inline __host__ cudaError_t cudaFuncSetAttribute(T *func, cudaFuncAttribute attr, int value)
{
    return ::cudaFuncSetAttribute((const void *)func, attr, value);
}

template <class T>
static inline __host__ cudaError_t cudaFuncSetCacheConfig(T *func, cudaFuncCache config)
{
    return ::cudaFuncSetCacheConfig((const void *)func, config);
}

template <class T>
static inline __host__ cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T func, int block_size, size_t shared)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)func, block_size,
                                                           shared);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, T func, int block_size, size_t shared, unsigned int flags)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, (const void *)func,
                                                                    block_size, shared, flags);
}

/* The block size with which the most threads fit on a multiprocessor; tried from the largest down,
 * in steps of a warp. */
template <class SharedOf, class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(
    int *grid, int *block, T func, SharedOf shared_of, int limit = 0)
{
    int device = 0, threads_max = 0, processors = 0, warp = 0;
    cudaFuncAttributes attr;
    if (!grid || !block || !func)
        return cudaErrorInvalidValue;
    cudaError_t r = cudaGetDevice(&device);
    if (!r)
        r = cudaDeviceGetAttribute(&threads_max, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (!r)
        r = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!r)
        r = cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
    if (!r)
        r = ::cudaFuncGetAttributes(&attr, (const void *)func);
    if (r)
        return r;
    int most = attr.maxThreadsPerBlock, best = 0;
    if (limit > 0 && limit < most)
        most = limit;
    for (int size = (most + warp - 1) / warp * warp; size > 0; size -= warp) {
        int here = size < most ? size : most, blocks = 0;
        r = ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)func, here,
                                                            shared_of(here));
        if (r)
            return r;
        if (blocks * here > best) {
            best = blocks * here;
            *block = here;
            *grid = blocks * processors;
        }
        if (best == threads_max)
            break;
    }
    return cudaSuccess;
}

template <class SharedOf, class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
    int *grid, int *block, T func, SharedOf shared_of, int limit = 0, unsigned int = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, func, shared_of, limit);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T func,
                                                                      size_t shared = 0,
                                                                      int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, func, [shared](int) { return shared; }, limit);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(
    int *grid, int *block, T func, size_t shared = 0, int limit = 0, unsigned int = 0)
{
    return cudaOccupancyMaxPotentialBlockSize(grid, block, func, shared, limit);
}

#if CUDART_VERSION >= 13000
/* Pointers of any type, and one place or set of attributes for all of them. */
template <class T, class U>
static inline __host__ cudaError_t cudaMemcpyBatchAsync(T *const *dsts, U *const *srcs,
                                                        const size_t *sizes, size_t count,
                                                        struct cudaMemcpyAttributes *attributes,
                                                        size_t *indices, size_t attribute_count,
                                                        cudaStream_t stream)
{
    return ::cudaMemcpyBatchAsync((void *const *)dsts, (const void *const *)srcs, sizes, count,
                                  attributes, indices, attribute_count, stream);
}
template <class T, class U>
static inline __host__ cudaError_t cudaMemcpyBatchAsync(T *const *dsts, U *const *srcs,
                                                        const size_t *sizes, size_t count,
                                                        struct cudaMemcpyAttributes attributes,
                                                        cudaStream_t stream)
{
    size_t index = 0;
    return ::cudaMemcpyBatchAsync((void *const *)dsts, (const void *const *)srcs, sizes, count,
                                  &attributes, &index, 1, stream);
}
#define GMUX_AT_PLACES(name)                                                                       \
    template <class T>                                                                             \
    static inline __host__ cudaError_t name(                                                       \
        T **list, size_t *sizes, size_t count, struct cudaMemLocation *places, size_t *indices,    \
        size_t place_count, unsigned long long flags, cudaStream_t stream)                         \
    {                                                                                              \
        return ::name((void **)list, sizes, count, places, indices, place_count, flags, stream);   \
    }                                                                                              \
    template <class T>                                                                             \
    static inline __host__ cudaError_t name(T **list, size_t *sizes, size_t count,                 \
                                            struct cudaMemLocation place,                          \
                                            unsigned long long flags, cudaStream_t stream)         \
    {                                                                                              \
        size_t index = 0;                                                                          \
        return ::name((void **)list, sizes, count, &place, &index, 1, flags, stream);              \
    }
GMUX_AT_PLACES(cudaMemPrefetchBatchAsync)
GMUX_AT_PLACES(cudaMemDiscardAndPrefetchBatchAsync)
#undef GMUX_AT_PLACES
#endif

/* The signature of CUDA 11. */
static inline __host__ cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                        cudaGraphNode_t *, char *, size_t)
{
    return ::cudaGraphInstantiate(exec, graph, 0);
}

#endif
