/*
 * CUDA 11's pipeline of one thread, in nvcuda::experimental. Its successor is <cuda/pipeline>, of
 * NVIDIA's open libraries.
 */
#ifndef GMUX_CUDA_PIPELINE_H
#define GMUX_CUDA_PIPELINE_H
#define _CUDA_PIPELINE_H_ /* programs look for the toolkit's */
#include "cuda_awbarrier.h"
#include "cuda_pipeline_primitives.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
namespace nvcuda
{
namespace experimental
{
class pipeline
{
    size_t batches_ = 0;

  public:
    pipeline(const pipeline &) = delete;
    pipeline &operator=(const pipeline &) = delete;
    __device__ pipeline()
    {
    }

    __device__ size_t commit()
    {
        __pipeline_commit();
        return batches_++;
    }

    __device__ void wait()
    {
        __pipeline_wait_prior(0);
    }

    /* Waits for the batch that commit() returned, and for those before it. */
    __device__ void wait(size_t batch)
    {
        __pipeline_wait_prior(batches_ > batch ? batches_ - batch - 1 : 0);
    }

    template <unsigned Batches> __device__ void wait_prior()
    {
        __pipeline_wait_prior(Batches);
    }

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __device__ void arrive_on(awbarrier &barrier)
    {
        __pipeline_arrive_on(&barrier.word_);
    }
#endif
};

/* Copies one T, in the largest pieces that its size and alignment allow. */
template <class T> __device__ inline void memcpy_async(T &to, const T &from, pipeline &)
{
    constexpr size_t piece = sizeof(T) % 16 == 0 && alignof(T) >= 16 ? 16
                             : sizeof(T) % 8 == 0 && alignof(T) >= 8 ? 8
                             : sizeof(T) % 4 == 0 && alignof(T) >= 4 ? 4
                                                                     : 0;
    if constexpr (piece == 0)
        to = from;
    else
        for (size_t i = 0; i < sizeof(T); i += piece)
            __pipeline_memcpy_async((char *)&to + i, (const char *)&from + i, piece);
}

template <class T>
__device__ inline void memcpy_async(T *to, const T *from, size_t size, pipeline &p)
{
    for (size_t i = 0; i < size / sizeof(T); i++)
        memcpy_async(to[i], from[i], p);
}
} // namespace experimental
} // namespace nvcuda

#endif
#endif
