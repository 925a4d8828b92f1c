/*
 * Products of small matrices by the threads of a warp: half by half, with sums in half or float;
 * and bytes, with sums in int. Programs must not depend on where a fragment's elements lie.
 */
#ifndef GMUX_CUDA_MMA_H
#define GMUX_CUDA_MMA_H

#include "cuda_fp16.h"
#include "cuda_runtime.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
namespace nvcuda
{
namespace wmma
{
enum layout_t { mem_row_major, mem_col_major };
struct row_major {
};
struct col_major {
};
struct matrix_a {
};
struct matrix_b {
};
struct accumulator {
};

template <class T> struct gmux_layout {
    static constexpr int value = 0;
};
template <> struct gmux_layout<col_major> {
    static constexpr int value = 1;
};

/* `Count` elements of one thread, in `Words` registers. */
template <class T, int Count> struct gmux_fragment {
    enum { num_elements = Count, num_storage_elements = Count };
    T x[Count];
};

template <class Use, int M, int N, int K, class T, class Layout = void> class fragment;

template <class T, int Count, class Value>
__device__ __inline__ void fill_fragment_all(gmux_fragment<T, Count> &f, const Value &v)
{
    for (int i = 0; i < Count; i++)
        f.x[i] = v;
}

template <class Use, int M, int N, int K, class T, class Layout, class Value>
__device__ __inline__ void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, const Value &v)
{
    fill_fragment_all(f, v);
}

#define GMUX_MMA_FRAGMENT(use, m, n, k, type, count)                                               \
    template <class Layout>                                                                        \
    class fragment<use, m, n, k, type, Layout> : public gmux_fragment<type, count>                 \
    {                                                                                              \
    };
#define GMUX_MMA_LOAD(use, m, n, k, type, word, builtin)                                           \
    template <class Layout>                                                                        \
    __device__ __inline__ void load_matrix_sync(fragment<use, m, n, k, type, Layout> &f,           \
                                                const type *p, unsigned stride)                    \
    {                                                                                              \
        builtin((word *)f.x, (const word *)p, stride, gmux_layout<Layout>::value);                 \
    }
/* For sums the layout in memory is a parameter of the call. */
#define GMUX_MMA_SUMS(m, n, k, type, word, load, store)                                            \
    __device__ __inline__ void load_matrix_sync(fragment<accumulator, m, n, k, type> &f,           \
                                                const type *p, unsigned stride, layout_t layout)   \
    {                                                                                              \
        if (layout == mem_row_major)                                                               \
            load((word *)f.x, (const word *)p, stride, 0);                                         \
        else                                                                                       \
            load((word *)f.x, (const word *)p, stride, 1);                                         \
    }                                                                                              \
    __device__ __inline__ void store_matrix_sync(                                                  \
        type *p, const fragment<accumulator, m, n, k, type> &f, unsigned stride, layout_t layout)  \
    {                                                                                              \
        if (layout == mem_row_major)                                                               \
            store((word *)p, (const word *)f.x, stride, 0);                                        \
        else                                                                                       \
            store((word *)p, (const word *)f.x, stride, 1);                                        \
    }
#define GMUX_MMA_PRODUCT(m, n, k, type, d, c, dword, cword, builtin)                               \
    template <class LayoutA, class LayoutB>                                                        \
    __device__ __inline__ void mma_sync(fragment<accumulator, m, n, k, d> &out,                    \
                                        const fragment<matrix_a, m, n, k, type, LayoutA> &a,       \
                                        const fragment<matrix_b, m, n, k, type, LayoutB> &b,       \
                                        const fragment<accumulator, m, n, k, c> &sum)              \
    {                                                                                              \
        builtin((dword *)out.x, (const int *)a.x, (const int *)b.x, (const cword *)sum.x,          \
                gmux_layout<LayoutA>::value * 2 + gmux_layout<LayoutB>::value, 0);                 \
    }

#define GMUX_MMA_HALF(m, n, k, shape)                                                              \
    GMUX_MMA_FRAGMENT(matrix_a, m, n, k, __half, 16)                                               \
    GMUX_MMA_FRAGMENT(matrix_b, m, n, k, __half, 16)                                               \
    GMUX_MMA_FRAGMENT(accumulator, m, n, k, __half, 8)                                             \
    GMUX_MMA_FRAGMENT(accumulator, m, n, k, float, 8)                                              \
    GMUX_MMA_LOAD(matrix_a, m, n, k, __half, int, __hmma_##shape##_ld_a)                           \
    GMUX_MMA_LOAD(matrix_b, m, n, k, __half, int, __hmma_##shape##_ld_b)                           \
    GMUX_MMA_SUMS(m, n, k, __half, int, __hmma_##shape##_ld_c_f16, __hmma_##shape##_st_c_f16)      \
    GMUX_MMA_SUMS(m, n, k, float, float, __hmma_##shape##_ld_c_f32, __hmma_##shape##_st_c_f32)     \
    GMUX_MMA_PRODUCT(m, n, k, __half, __half, __half, int, int, __hmma_##shape##_mma_f16f16)       \
    GMUX_MMA_PRODUCT(m, n, k, __half, float, float, float, float, __hmma_##shape##_mma_f32f32)     \
    GMUX_MMA_PRODUCT(m, n, k, __half, float, __half, float, int, __hmma_##shape##_mma_f32f16)      \
    GMUX_MMA_PRODUCT(m, n, k, __half, __half, float, int, float, __hmma_##shape##_mma_f16f32)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
GMUX_MMA_HALF(16, 16, 16, m16n16k16)
GMUX_MMA_HALF(32, 8, 16, m32n8k16)
GMUX_MMA_HALF(8, 32, 16, m8n32k16)
#endif

#define GMUX_MMA_BYTES(m, n, k, shape, type, name, acount, bcount)                                 \
    GMUX_MMA_FRAGMENT(matrix_a, m, n, k, type, acount)                                             \
    GMUX_MMA_FRAGMENT(matrix_b, m, n, k, type, bcount)                                             \
    GMUX_MMA_LOAD(matrix_a, m, n, k, type, int, __imma_##shape##_ld_a_##name)                      \
    GMUX_MMA_LOAD(matrix_b, m, n, k, type, int, __imma_##shape##_ld_b_##name)                      \
    GMUX_MMA_PRODUCT(m, n, k, type, int, int, int, int, __imma_##shape##_mma_##name)
#define GMUX_MMA_INT(m, n, k, shape, acount, bcount)                                               \
    GMUX_MMA_FRAGMENT(accumulator, m, n, k, int, 8)                                                \
    GMUX_MMA_SUMS(m, n, k, int, int, __imma_##shape##_ld_c, __imma_##shape##_st_c_i32)             \
    GMUX_MMA_BYTES(m, n, k, shape, signed char, s8, acount, bcount)                                \
    GMUX_MMA_BYTES(m, n, k, shape, unsigned char, u8, acount, bcount)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 720
GMUX_MMA_INT(16, 16, 16, m16n16k16, 8, 8)
GMUX_MMA_INT(32, 8, 16, m32n8k16, 16, 4)
GMUX_MMA_INT(8, 32, 16, m8n32k16, 4, 16)
#endif

#undef GMUX_MMA_FRAGMENT
#undef GMUX_MMA_LOAD
#undef GMUX_MMA_SUMS
#undef GMUX_MMA_PRODUCT
#undef GMUX_MMA_HALF
#undef GMUX_MMA_BYTES
#undef GMUX_MMA_INT
} // namespace wmma
} // namespace nvcuda

#endif
#endif
