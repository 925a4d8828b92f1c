/*
 * Products of small matrices, in all shapes, layouts and types, beside the host's. With NEWER also
 * those that sm_80 has.
 */
#include <mma.h>

#include <cmath>
#include <cstdio>
#include <type_traits>

namespace wmma = nvcuda::wmma;

template <int M, int N, int K, class T, class Memory, class Sum, class LayoutA, class LayoutB>
__global__ void multiply(const Memory *a, const Memory *b, Sum *c, bool columns)
{
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum, scaled;
    auto layout = columns ? wmma::mem_col_major : wmma::mem_row_major;
    bool row_a = std::is_same<LayoutA, wmma::row_major>::value;
    bool row_b = std::is_same<LayoutB, wmma::row_major>::value;
    wmma::load_matrix_sync(fa, a, row_a ? K : M);
    wmma::load_matrix_sync(fb, b, row_b ? N : K);
    wmma::load_matrix_sync(sum, c, columns ? M : N, layout);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::fill_fragment(scaled, Sum(1));
    for (int i = 0; i < sum.num_elements; i++)
        scaled.x[i] = scaled.x[i] + sum.x[i];
    wmma::store_matrix_sync(c, scaled, columns ? M : N, layout);
}

static int failures;

template <int M, int N, int K, class T, class Memory, class Sum, class LayoutA, class LayoutB>
static void one()
{
    bool row_a = std::is_same<LayoutA, wmma::row_major>::value;
    bool row_b = std::is_same<LayoutB, wmma::row_major>::value;
    Memory *a, *b;
    Sum *c;
    cudaMallocManaged(&a, M * K * sizeof(Memory));
    cudaMallocManaged(&b, K * N * sizeof(Memory));
    cudaMallocManaged(&c, M * N * sizeof(Sum));
    auto va = [](int i, int k) { return (i * 5 + k * 3) % 7; };
    auto vb = [](int k, int j) { return (k * 2 + j * 9) % 5; };
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            a[row_a ? i * K + k : k * M + i] = Memory((float)va(i, k));
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++)
            b[row_b ? k * N + j : j * K + k] = Memory((float)vb(k, j));
    for (int columns = 0; columns < 2; columns++) {
        for (int i = 0; i < M * N; i++)
            c[i] = Sum((float)(i % 11));
        multiply<M, N, K, T, Memory, Sum, LayoutA, LayoutB><<<1, 32>>>(a, b, c, columns);
        if (cudaError_t r = cudaDeviceSynchronize()) {
            printf("%d x %d x %d: %s\n", M, N, K, cudaGetErrorString(r));
            failures++;
            return;
        }
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                int at = columns ? j * M + i : i * N + j, e = at % 11 + 1;
                for (int k = 0; k < K; k++)
                    e += va(i, k) * vb(k, j);
                if ((float)c[at] != (float)e && failures++ < 20)
                    printf("%d x %d x %d, (%d, %d): %g, expected %d\n", M, N, K, i, j, (float)c[at],
                           e);
            }
    }
    cudaFree(a), cudaFree(b), cudaFree(c);
}

template <int M, int N, int K, class T, class Sum, class Memory = T> static void layouts()
{
    one<M, N, K, T, Memory, Sum, wmma::row_major, wmma::row_major>();
    one<M, N, K, T, Memory, Sum, wmma::row_major, wmma::col_major>();
    one<M, N, K, T, Memory, Sum, wmma::col_major, wmma::row_major>();
    one<M, N, K, T, Memory, Sum, wmma::col_major, wmma::col_major>();
}

template <int M, int N, int K> static void shape()
{
    layouts<M, N, K, half, float>();
    layouts<M, N, K, half, half>();
    layouts<M, N, K, signed char, int>();
    layouts<M, N, K, unsigned char, int>();
#ifdef NEWER
    layouts<M, N, K, __nv_bfloat16, float>();
#endif
}

#ifdef NEWER
/* --- elements of less than a byte ------------------------------------------------------------- */

static unsigned random_state = 1;

static unsigned random_word()
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 3 ^ random_state << 5;
}

static int element(const unsigned *words, int row, int k, int bits, bool is_signed)
{
    const int each = 32 / bits, per_row = (bits == 1 ? 128 : 32) / each;
    int v = words[row * per_row + k / each] >> k % each * bits & ((1 << bits) - 1);
    return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

/* op: 0 a product, otherwise how bits are put together. */
template <class T, int K>
__global__ void multiply_small(const unsigned *a, const unsigned *b, int *c, int op, bool saturate)
{
    wmma::fragment<wmma::matrix_a, 8, 8, K, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, K, T, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, K, int> sum;
    static_assert(fa.num_storage_elements == 1 && fa.num_elements == K / 4, "words");
    wmma::load_matrix_sync(fa, a, K);
    wmma::load_matrix_sync(fb, b, K);
    wmma::load_matrix_sync(sum, c, 8, wmma::mem_row_major);
    if constexpr (K == 32)
        saturate ? wmma::mma_sync(sum, fa, fb, sum, true) : wmma::mma_sync(sum, fa, fb, sum);
    else if (op == wmma::experimental::bmmaBitOpXOR)
        wmma::bmma_sync(sum, fa, fb, sum);
    else
        wmma::bmma_sync(sum, fa, fb, sum, wmma::experimental::bmmaBitOpAND);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

template <class T, int K> static void small(bool is_signed, int op, bool saturate)
{
    const int bits = K == 32 ? 4 : 1, words = 8 * K * bits / 32;
    unsigned *a, *b;
    int *c;
    cudaMallocManaged(&a, words * sizeof(*a));
    cudaMallocManaged(&b, words * sizeof(*b));
    cudaMallocManaged(&c, 64 * sizeof(*c));
    for (int i = 0; i < words; i++)
        a[i] = random_word(), b[i] = random_word();
    for (int i = 0; i < 64; i++)
        c[i] = saturate ? 0x7fffffff - i * 20 : i;
    multiply_small<T, K><<<1, 32>>>(a, b, c, op, saturate);
    if (cudaError_t r = cudaDeviceSynchronize()) {
        printf("8 x 8 x %d: %s\n", K, cudaGetErrorString(r));
        failures++;
        return;
    }
    for (int i = 0; i < 64; i++) {
        long long e = saturate ? 0x7fffffff - i * 20 : i;
        for (int k = 0; k < K; k++) {
            int x = element(a, i / 8, k, bits, is_signed), y = element(b, i % 8, k, bits, is_signed);
            e += op == wmma::experimental::bmmaBitOpXOR ? x ^ y : x * y;
        }
        e = saturate && e > 0x7fffffff ? 0x7fffffff : e;
        if (c[i] != e && failures++ < 20)
            printf("8 x 8 x %d, op %d, element %d: %d, expected %lld\n", K, op, i, c[i], e);
    }
    cudaFree(a), cudaFree(b), cudaFree(c);
}

__global__ void round_numbers(float *f)
{
    *f = wmma::__float_to_tf32(*f);
}

static void tf32_of(unsigned from, unsigned to)
{
    union {
        unsigned bits;
        float value;
    } *n;
    cudaMallocManaged(&n, sizeof(*n));
    n->bits = from;
    round_numbers<<<1, 1>>>(&n->value);
    cudaDeviceSynchronize();
    if (n->bits != to && failures++ < 20)
        printf("tf32 of %x: %x\n", from, n->bits);
    cudaFree(n);
}

#endif

int main()
{
    shape<16, 16, 16>();
    shape<32, 8, 16>();
    shape<8, 32, 16>();
#ifdef NEWER
    namespace precision = wmma::experimental::precision;
    layouts<16, 16, 8, wmma::precision::tf32, float, float>();
    layouts<8, 8, 4, double, double>();
    small<precision::s4, 32>(true, 0, false);
    small<precision::u4, 32>(false, 0, false);
    small<precision::s4, 32>(true, 0, true);
    small<precision::u4, 32>(false, 0, true);
    small<precision::b1, 128>(false, wmma::experimental::bmmaBitOpXOR, false);
    small<precision::b1, 128>(false, wmma::experimental::bmmaBitOpAND, false);
    tf32_of(0x3f800fff, 0x3f800000);
    tf32_of(0x3f801000, 0x3f802000);
    tf32_of(0xbf801000, 0xbf802000);
#endif
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
