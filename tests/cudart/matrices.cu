/*
 * Products of small matrices, in all shapes, layouts and types of sums, beside the host's.
 */
#include <mma.h>

#include <cmath>
#include <cstdio>

namespace wmma = nvcuda::wmma;

template <int M, int N, int K, class T, class Sum, class LayoutA, class LayoutB>
__global__ void multiply(const T *a, const T *b, Sum *c, bool columns)
{
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum, scaled;
    auto layout = columns ? wmma::mem_col_major : wmma::mem_row_major;
    bool row_a = sizeof(LayoutA) && wmma::gmux_layout<LayoutA>::value == 0;
    bool row_b = sizeof(LayoutB) && wmma::gmux_layout<LayoutB>::value == 0;
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

template <int M, int N, int K, class T, class Sum, class LayoutA, class LayoutB> static void one()
{
    bool row_a = wmma::gmux_layout<LayoutA>::value == 0;
    bool row_b = wmma::gmux_layout<LayoutB>::value == 0;
    T *a, *b;
    Sum *c;
    cudaMallocManaged(&a, M * K * sizeof(T));
    cudaMallocManaged(&b, K * N * sizeof(T));
    cudaMallocManaged(&c, M * N * sizeof(Sum));
    auto va = [](int i, int k) { return (i * 5 + k * 3) % 7; };
    auto vb = [](int k, int j) { return (k * 2 + j * 9) % 5; };
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            a[row_a ? i * K + k : k * M + i] = T((float)va(i, k));
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++)
            b[row_b ? k * N + j : j * K + k] = T((float)vb(k, j));
    for (int columns = 0; columns < 2; columns++) {
        for (int i = 0; i < M * N; i++)
            c[i] = Sum((float)(i % 11));
        multiply<M, N, K, T, Sum, LayoutA, LayoutB><<<1, 32>>>(a, b, c, columns);
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

template <int M, int N, int K, class T, class Sum> static void layouts()
{
    one<M, N, K, T, Sum, wmma::row_major, wmma::row_major>();
    one<M, N, K, T, Sum, wmma::row_major, wmma::col_major>();
    one<M, N, K, T, Sum, wmma::col_major, wmma::row_major>();
    one<M, N, K, T, Sum, wmma::col_major, wmma::col_major>();
}

template <int M, int N, int K> static void shape()
{
    layouts<M, N, K, half, float>();
    layouts<M, N, K, half, half>();
    layouts<M, N, K, signed char, int>();
    layouts<M, N, K, unsigned char, int>();
}

int main()
{
    shape<16, 16, 16>();
    shape<32, 8, 16>();
    shape<8, 32, 16>();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
