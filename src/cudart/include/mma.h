/*
 * Products of small matrices by the threads of a warp: half by half, with sums in half or float;
 * bfloat16 and tf32, with sums in float; double; bytes, numbers of four bits and single bits, with
 * sums in int. Programs must not depend on where a fragment's elements lie.
 */
#ifndef GMUX_CUDA_MMA_H
#define GMUX_CUDA_MMA_H

#include "cuda_bf16.h"
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

namespace precision
{
struct tf32; /* a float whose last 13 bits do not count */
}
namespace experimental
{
namespace precision
{
struct s4;
struct u4;
struct b1;
} // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
} // namespace experimental

template <class T> struct gmux_layout {
    static constexpr int value = 0;
};
template <> struct gmux_layout<col_major> {
    static constexpr int value = 1;
};

/* `Count` elements of one thread, each in a `Store`, or `Packed` of them in one. */
template <class T, class Store, int Count, int Packed = 1> struct gmux_fragment {
    typedef T element_type;
    typedef Store storage_element_type;
    enum { num_elements = Count * Packed, num_storage_elements = Count };
    Store x[Count];
};

template <class Use, int M, int N, int K, class T, class Layout = void> class fragment;

template <class Use, int M, int N, int K, class T, class Layout, class Value>
__device__ __inline__ void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, const Value &v)
{
    for (int i = 0; i < f.num_storage_elements; i++)
        f.x[i] = v;
}

#define GMUX_MMA_FRAGMENT(use, m, n, k, type, ...)                                                 \
    template <class Layout>                                                                        \
    class fragment<use, m, n, k, type, Layout> : public gmux_fragment<type, __VA_ARGS__>           \
    {                                                                                              \
    };
#define GMUX_MMA_LOAD(use, m, n, k, type, memory, word, builtin)                                   \
    template <class Layout>                                                                        \
    __device__ __inline__ void load_matrix_sync(fragment<use, m, n, k, type, Layout> &f,           \
                                                const memory *p, unsigned stride)                  \
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
#define GMUX_MMA_PRODUCT(m, n, k, type, d, c, word, dword, cword, builtin)                         \
    template <class LayoutA, class LayoutB>                                                        \
    __device__ __inline__ void mma_sync(fragment<accumulator, m, n, k, d> &out,                    \
                                        const fragment<matrix_a, m, n, k, type, LayoutA> &a,       \
                                        const fragment<matrix_b, m, n, k, type, LayoutB> &b,       \
                                        const fragment<accumulator, m, n, k, c> &sum)              \
    {                                                                                              \
        builtin((dword *)out.x, (const word *)a.x, (const word *)b.x, (const cword *)sum.x,        \
                gmux_layout<LayoutA>::value * 2 + gmux_layout<LayoutB>::value, 0);                 \
    }
/* Sums in int may stay at the largest and the least one. */
#define GMUX_MMA_PRODUCT_INT(m, n, k, type, builtin)                                               \
    template <class LayoutA, class LayoutB>                                                        \
    __device__ __inline__ void mma_sync(fragment<accumulator, m, n, k, int> &out,                  \
                                        const fragment<matrix_a, m, n, k, type, LayoutA> &a,       \
                                        const fragment<matrix_b, m, n, k, type, LayoutB> &b,       \
                                        const fragment<accumulator, m, n, k, int> &sum,            \
                                        bool saturate = false)                                     \
    {                                                                                              \
        constexpr int layout = gmux_layout<LayoutA>::value * 2 + gmux_layout<LayoutB>::value;      \
        if (saturate)                                                                              \
            builtin((int *)out.x, (const int *)a.x, (const int *)b.x, (const int *)sum.x, layout,  \
                    1);                                                                            \
        else                                                                                       \
            builtin((int *)out.x, (const int *)a.x, (const int *)b.x, (const int *)sum.x, layout,  \
                    0);                                                                            \
    }

#define GMUX_MMA_HALF(m, n, k, shape)                                                              \
    GMUX_MMA_FRAGMENT(matrix_a, m, n, k, __half, __half, 16)                                       \
    GMUX_MMA_FRAGMENT(matrix_b, m, n, k, __half, __half, 16)                                       \
    GMUX_MMA_FRAGMENT(accumulator, m, n, k, __half, __half, 8)                                     \
    GMUX_MMA_FRAGMENT(accumulator, m, n, k, float, float, 8)                                       \
    GMUX_MMA_LOAD(matrix_a, m, n, k, __half, __half, int, __hmma_##shape##_ld_a)                   \
    GMUX_MMA_LOAD(matrix_b, m, n, k, __half, __half, int, __hmma_##shape##_ld_b)                   \
    GMUX_MMA_SUMS(m, n, k, __half, int, __hmma_##shape##_ld_c_f16, __hmma_##shape##_st_c_f16)      \
    GMUX_MMA_SUMS(m, n, k, float, float, __hmma_##shape##_ld_c_f32, __hmma_##shape##_st_c_f32)     \
    GMUX_MMA_PRODUCT(m, n, k, __half, __half, __half, int, int, int, __hmma_##shape##_mma_f16f16)  \
    GMUX_MMA_PRODUCT(m, n, k, __half, float, float, int, float, float,                             \
                     __hmma_##shape##_mma_f32f32)                                                  \
    GMUX_MMA_PRODUCT(m, n, k, __half, float, __half, int, float, int, __hmma_##shape##_mma_f32f16) \
    GMUX_MMA_PRODUCT(m, n, k, __half, __half, float, int, int, float, __hmma_##shape##_mma_f16f32)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
GMUX_MMA_HALF(16, 16, 16, m16n16k16)
GMUX_MMA_HALF(32, 8, 16, m32n8k16)
GMUX_MMA_HALF(8, 32, 16, m8n32k16)
#endif

#define GMUX_MMA_BYTES(m, n, k, shape, type, name, acount, bcount)                                 \
    GMUX_MMA_FRAGMENT(matrix_a, m, n, k, type, type, acount)                                       \
    GMUX_MMA_FRAGMENT(matrix_b, m, n, k, type, type, bcount)                                       \
    GMUX_MMA_LOAD(matrix_a, m, n, k, type, type, int, __imma_##shape##_ld_a_##name)                \
    GMUX_MMA_LOAD(matrix_b, m, n, k, type, type, int, __imma_##shape##_ld_b_##name)                \
    GMUX_MMA_PRODUCT_INT(m, n, k, type, __imma_##shape##_mma_##name)
#define GMUX_MMA_INT(m, n, k, shape, acount, bcount)                                               \
    GMUX_MMA_FRAGMENT(accumulator, m, n, k, int, int, 8)                                           \
    GMUX_MMA_SUMS(m, n, k, int, int, __imma_##shape##_ld_c, __imma_##shape##_st_c_i32)             \
    GMUX_MMA_BYTES(m, n, k, shape, signed char, s8, acount, bcount)                                \
    GMUX_MMA_BYTES(m, n, k, shape, unsigned char, u8, acount, bcount)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 720
GMUX_MMA_INT(16, 16, 16, m16n16k16, 8, 8)
GMUX_MMA_INT(32, 8, 16, m32n8k16, 16, 4)
GMUX_MMA_INT(8, 32, 16, m8n32k16, 4, 16)
#endif

/* Numbers of four bits, eight in a word: a in rows, b in columns. */
#define GMUX_MMA_NIBBLES(type, word, name)                                                         \
    GMUX_MMA_FRAGMENT(matrix_a, 8, 8, 32, experimental::precision::type, word, 1, 8)               \
    GMUX_MMA_FRAGMENT(matrix_b, 8, 8, 32, experimental::precision::type, word, 1, 8)               \
    GMUX_MMA_LOAD(matrix_a, 8, 8, 32, experimental::precision::type, void, int,                    \
                  __imma_m8n8k32_ld_a_##name)                                                      \
    GMUX_MMA_LOAD(matrix_b, 8, 8, 32, experimental::precision::type, void, int,                    \
                  __imma_m8n8k32_ld_b_##name)                                                      \
    GMUX_MMA_PRODUCT_INT(8, 8, 32, experimental::precision::type, __imma_m8n8k32_mma_##name)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
GMUX_MMA_FRAGMENT(accumulator, 8, 8, 32, int, int, 2)
GMUX_MMA_SUMS(8, 8, 32, int, int, __imma_m8n8k32_ld_c, __imma_m8n8k32_st_c_i32)
GMUX_MMA_NIBBLES(s4, int, s4)
GMUX_MMA_NIBBLES(u4, unsigned int, u4)

GMUX_MMA_FRAGMENT(accumulator, 8, 8, 128, int, int, 2)
GMUX_MMA_FRAGMENT(matrix_a, 8, 8, 128, experimental::precision::b1, unsigned int, 1, 32)
GMUX_MMA_FRAGMENT(matrix_b, 8, 8, 128, experimental::precision::b1, unsigned int, 1, 32)
GMUX_MMA_SUMS(8, 8, 128, int, int, __bmma_m8n8k128_ld_c, __bmma_m8n8k128_st_c_i32)
GMUX_MMA_LOAD(matrix_a, 8, 8, 128, experimental::precision::b1, void, int, __bmma_m8n8k128_ld_a_b1)
GMUX_MMA_LOAD(matrix_b, 8, 8, 128, experimental::precision::b1, void, int, __bmma_m8n8k128_ld_b_b1)

/* How many bits are set in a row of a and a column of b (AND), or differ (XOR), and the sum. */
__device__ __inline__ void
bmma_sync(fragment<accumulator, 8, 8, 128, int> &out,
          const fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> &a,
          const fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> &b,
          const fragment<accumulator, 8, 8, 128, int> &sum,
          experimental::bmmaBitOp op = experimental::bmmaBitOpXOR,
          experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (op == experimental::bmmaBitOpAND) {
        __bmma_m8n8k128_mma_and_popc_b1(out.x, (const int *)a.x, (const int *)b.x, sum.x, 1);
        return;
    }
#endif
    (void)op;
    __bmma_m8n8k128_mma_xor_popc_b1(out.x, (const int *)a.x, (const int *)b.x, sum.x, 1);
}
#endif

#define GMUX_MMA_BF16(m, n, k, shape, acount, bcount)                                              \
    GMUX_MMA_FRAGMENT(matrix_a, m, n, k, __nv_bfloat16, __nv_bfloat16, acount)                     \
    GMUX_MMA_FRAGMENT(matrix_b, m, n, k, __nv_bfloat16, __nv_bfloat16, bcount)                     \
    GMUX_MMA_LOAD(matrix_a, m, n, k, __nv_bfloat16, __nv_bfloat16, int, __mma_bf16_##shape##_ld_a) \
    GMUX_MMA_LOAD(matrix_b, m, n, k, __nv_bfloat16, __nv_bfloat16, int, __mma_bf16_##shape##_ld_b) \
    GMUX_MMA_PRODUCT(m, n, k, __nv_bfloat16, float, float, int, float, float,                      \
                     __mma_bf16_##shape##_mma_f32)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GMUX_MMA_BF16(16, 16, 16, m16n16k16, 8, 8)
GMUX_MMA_BF16(32, 8, 16, m32n8k16, 16, 4)
GMUX_MMA_BF16(8, 32, 16, m8n32k16, 4, 16)

GMUX_MMA_FRAGMENT(matrix_a, 16, 16, 8, precision::tf32, float, 4)
GMUX_MMA_FRAGMENT(matrix_b, 16, 16, 8, precision::tf32, float, 4)
GMUX_MMA_FRAGMENT(accumulator, 16, 16, 8, float, float, 8)
GMUX_MMA_LOAD(matrix_a, 16, 16, 8, precision::tf32, float, int, __mma_tf32_m16n16k8_ld_a)
GMUX_MMA_LOAD(matrix_b, 16, 16, 8, precision::tf32, float, int, __mma_tf32_m16n16k8_ld_b)
GMUX_MMA_SUMS(16, 16, 8, float, float, __mma_tf32_m16n16k8_ld_c, __mma_m16n16k8_st_c_f32)
GMUX_MMA_PRODUCT(16, 16, 8, precision::tf32, float, float, int, float, float,
                 __mma_tf32_m16n16k8_mma_f32)

GMUX_MMA_FRAGMENT(matrix_a, 8, 8, 4, double, double, 1)
GMUX_MMA_FRAGMENT(matrix_b, 8, 8, 4, double, double, 1)
GMUX_MMA_FRAGMENT(accumulator, 8, 8, 4, double, double, 2)
GMUX_MMA_LOAD(matrix_a, 8, 8, 4, double, double, double, __dmma_m8n8k4_ld_a)
GMUX_MMA_LOAD(matrix_b, 8, 8, 4, double, double, double, __dmma_m8n8k4_ld_b)
GMUX_MMA_SUMS(8, 8, 4, double, double, __dmma_m8n8k4_ld_c, __dmma_m8n8k4_st_c_f64)
GMUX_MMA_PRODUCT(8, 8, 4, double, double, double, double, double, double, __dmma_m8n8k4_mma_f64)

/* The nearest number of 19 bits; of two equally near ones that away from zero. */
__device__ __inline__ float __float_to_tf32(float f)
{
#ifdef __CUDA_ARCH__
    unsigned int bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(f));
    f = __uint_as_float(bits);
#endif
    return f;
}
#endif

#undef GMUX_MMA_FRAGMENT
#undef GMUX_MMA_LOAD
#undef GMUX_MMA_SUMS
#undef GMUX_MMA_PRODUCT
#undef GMUX_MMA_PRODUCT_INT
#undef GMUX_MMA_HALF
#undef GMUX_MMA_BYTES
#undef GMUX_MMA_INT
#undef GMUX_MMA_NIBBLES
#undef GMUX_MMA_BF16
} // namespace wmma
} // namespace nvcuda

#endif
#endif
