/*
 * Several pieces of memory by one call: copied, fetched, given up. And what arrived in the same
 * versions of CUDA: pools by places, the memory of arrays, atomic operations between processors.
 */
#include "cudart/cudart.h"

static CUdeviceptr *pointers(const void *list)
{
    return (CUdeviceptr *)(uintptr_t)list;
}

_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes), "one layout");
_Static_assert(sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP), "one layout");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "one layout");
_Static_assert(sizeof(struct cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
               "one layout");

#if CUDART_VERSION < 13000
/* The driver's functions of that version, which also tell which copy is at fault. */
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

cudaError_t crt_cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                                     struct cudaMemcpyAttributes *attributes, size_t *indices,
                                     size_t attribute_count, size_t *failed, cudaStream_t stream)
{
    return crt_of(cuMemcpyBatchAsync(pointers(dsts), pointers(srcs), sizes, count,
                                     (CUmemcpyAttributes *)attributes, indices, attribute_count,
                                     failed, stream));
}

cudaError_t crt_cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *list,
                                       size_t *failed, unsigned long long flags,
                                       cudaStream_t stream)
{
    return crt_of(
        cuMemcpy3DBatchAsync(count, (CUDA_MEMCPY3D_BATCH_OP *)list, failed, flags, stream));
}
#else
cudaError_t crt_cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
                                     const size_t *sizes, size_t count,
                                     struct cudaMemcpyAttributes *attributes, size_t *indices,
                                     size_t attribute_count, cudaStream_t stream)
{
    return crt_of(cuMemcpyBatchAsync(pointers(dsts), pointers(srcs), (size_t *)(uintptr_t)sizes,
                                     count, (CUmemcpyAttributes *)attributes, indices,
                                     attribute_count, stream));
}

cudaError_t crt_cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *list,
                                       unsigned long long flags, cudaStream_t stream)
{
    return crt_of(cuMemcpy3DBatchAsync(count, (CUDA_MEMCPY3D_BATCH_OP *)list, flags, stream));
}

cudaError_t crt_cudaMemPrefetchBatchAsync(void **list, size_t *sizes, size_t count,
                                          struct cudaMemLocation *places, size_t *indices,
                                          size_t place_count, unsigned long long flags,
                                          cudaStream_t stream)
{
    return crt_of(cuMemPrefetchBatchAsync(pointers(list), sizes, count, (CUmemLocation *)places,
                                          indices, place_count, flags, stream));
}

cudaError_t crt_cudaMemDiscardBatchAsync(void **list, size_t *sizes, size_t count,
                                         unsigned long long flags, cudaStream_t stream)
{
    return crt_of(cuMemDiscardBatchAsync(pointers(list), sizes, count, flags, stream));
}

cudaError_t crt_cudaMemDiscardAndPrefetchBatchAsync(void **list, size_t *sizes, size_t count,
                                                    struct cudaMemLocation *places, size_t *indices,
                                                    size_t place_count, unsigned long long flags,
                                                    cudaStream_t stream)
{
    return crt_of(cuMemDiscardAndPrefetchBatchAsync(pointers(list), sizes, count,
                                                    (CUmemLocation *)places, indices, place_count,
                                                    flags, stream));
}

cudaError_t crt_cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *place,
                                         enum cudaMemAllocationType type)
{
    return crt_of(cuMemGetDefaultMemPool(pool, (CUmemLocation *)place, (CUmemAllocationType)type));
}

cudaError_t crt_cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *place,
                                  enum cudaMemAllocationType type)
{
    return crt_of(cuMemGetMemPool(pool, (CUmemLocation *)place, (CUmemAllocationType)type));
}

cudaError_t crt_cudaMemSetMemPool(struct cudaMemLocation *place, enum cudaMemAllocationType type,
                                  cudaMemPool_t pool)
{
    return crt_of(cuMemSetMemPool((CUmemLocation *)place, (CUmemAllocationType)type, pool));
}

cudaError_t crt_cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                                    const enum cudaAtomicOperation *operations,
                                                    unsigned int count, int device)
{
    return crt_of(cuDeviceGetHostAtomicCapabilities(
        capabilities, (const CUatomicOperation *)operations, count, device));
}

cudaError_t crt_cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                                   const enum cudaAtomicOperation *operations,
                                                   unsigned int count, int from, int to)
{
    return crt_of(cuDeviceGetP2PAtomicCapabilities(
        capabilities, (const CUatomicOperation *)operations, count, from, to));
}
#endif

cudaError_t crt_cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *needs,
                                               cudaArray_t array, int device)
{
    return crt_of(cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)needs,
                                               (CUarray)array, device));
}

cudaError_t crt_cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *needs,
                                                        cudaMipmappedArray_t array, int device)
{
    return crt_of(cuMipmappedArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)needs,
                                                        (CUmipmappedArray)array, device));
}
