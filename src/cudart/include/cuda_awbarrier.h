/*
 * CUDA 11's barrier for parts of a block, in nvcuda::experimental. Its successor is <cuda/barrier>,
 * of NVIDIA's open libraries. From sm_80 on.
 */
#ifndef GMUX_CUDA_AWBARRIER_H
#define GMUX_CUDA_AWBARRIER_H
#define _CUDA_AWBARRIER_H_ /* programs look for the toolkit's */
#include "cuda_awbarrier_primitives.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
namespace nvcuda
{
namespace experimental
{
class awbarrier
{
    friend class pipeline;
    friend __device__ inline void init(awbarrier *barrier, int expected)
    {
        __mbarrier_init(&barrier->word_, (unsigned)expected);
    }

    __mbarrier_t word_;

  public:
    class arrival_token
    {
        friend class awbarrier;
        __mbarrier_token_t token_;
        __device__ arrival_token(__mbarrier_token_t token) : token_(token)
        {
        }

      public:
        arrival_token() = default;
        __device__ unsigned pending_count() const
        {
            return __mbarrier_token_pending_count(token_);
        }
    };

    awbarrier() = default;
    awbarrier(const awbarrier &) = delete;
    awbarrier &operator=(const awbarrier &) = delete;

    __device__ arrival_token arrive()
    {
        return __mbarrier_arrive(&word_);
    }

    __device__ bool timed_wait(arrival_token token, unsigned tries = 1)
    {
        bool over = false;
        while (!over && tries--)
            over = __mbarrier_test_wait(&word_, token.token_);
        return over;
    }

    __device__ bool timed_wait_parity(bool parity, unsigned tries = 1)
    {
        bool over = false;
        while (!over && tries--)
            over = __mbarrier_test_wait_parity(&word_, parity);
        return over;
    }

    __device__ void wait(arrival_token token)
    {
        while (!__mbarrier_test_wait(&word_, token.token_))
            ;
    }

    __device__ void arrive_and_wait()
    {
        wait(arrive());
    }

    __device__ arrival_token arrive_and_drop()
    {
        return __mbarrier_arrive_and_drop(&word_);
    }

    __device__ static constexpr unsigned max()
    {
        return (1u << 20) - 1;
    }
};
} // namespace experimental
} // namespace nvcuda
#endif

#endif
#endif
