#include "kernel_set.h"

#include <string.h>

/* Sums of pieces of 4,096, as the kernel has sums of blocks. */
void set_reduction(struct set_data *d)
{
    for (int i = 0; i < d->n; i += 4096) {
        float sum = 0;
        for (int k = i; k < i + 4096 && k < d->n; k++)
            sum += d->a[k];
        d->c[i / 4096] = sum;
    }
}

typedef float lanes __attribute__((vector_size(64), aligned(4)));

/* In tiles of 8 rows by 32 columns, which stay in registers. */
void set_sgemm(struct set_data *d)
{
    int n = d->n;
    for (int i = 0; i < n; i += 8)
        for (int j = 0; j < n; j += 32) {
            lanes sum[8][2] = { 0 };
            for (int k = 0; k < n; k++) {
                const lanes *b = (const lanes *)&d->b[k * n + j];
                lanes b0 = b[0], b1 = b[1];
#pragma clang loop unroll(full)
                for (int r = 0; r < 8; r++) {
                    float a = d->a[(i + r) * n + k];
                    sum[r][0] += a * b0;
                    sum[r][1] += a * b1;
                }
            }
            for (int r = 0; r < 8; r++)
                memcpy(&d->c[(i + r) * n + j], sum[r], sizeof(sum[r]));
        }
}

/* In squares of 16, which stay in the first cache. */
void set_transpose(struct set_data *d)
{
    int n = d->n;
    const float *restrict a = d->a;
    float *restrict c = d->c;
    for (int i = 0; i < n; i += 16)
        for (int j = 0; j < n; j += 16)
            for (int y = 0; y < 16; y++)
                for (int x = 0; x < 16; x++)
                    c[(j + y) * n + i + x] = a[(i + x) * n + j + y];
}

/* Sorts each 512 by the kernel's network. */
void set_bitonic(struct set_data *d)
{
    for (int base = 0; base < d->n; base += 512) {
        float *restrict s = d->c + base;
        memcpy(s, d->a + base, 512 * sizeof(float));
        for (int size = 2; size <= 512; size *= 2)
            for (int stride = size / 2; stride > 0; stride /= 2)
                for (int k = 0; k < 512; k += 2 * stride) {
                    float *low = s + ((k & size) ? k + stride : k),
                          *high = s + ((k & size) ? k : k + stride);
#pragma clang loop vectorize(assume_safety)
                    for (int i = 0; i < stride; i++) {
                        float x = low[i], y = high[i];
                        low[i] = x < y ? x : y;
                        high[i] = x < y ? y : x;
                    }
                }
    }
}

void set_convolution(struct set_data *d)
{
    int n = d->n;
    const float *restrict a = d->a, *restrict w = d->b;
    float *restrict c = d->c;
    for (int y = 2; y < n - 2; y++)
        for (int x = 2; x < n - 2; x++) {
            float sum = 0;
            for (int j = -2; j <= 2; j++)
                for (int i = -2; i <= 2; i++)
                    sum += a[(y + j) * n + x + i] * w[(j + 2) * 5 + i + 2];
            c[y * n + x] = sum;
        }
}

/* Four histograms, so that equal neighbours do not wait for each other. */
void set_histogram(struct set_data *d)
{
    unsigned h[4][256] = { 0 };
    for (int i = 0; i + 3 < d->n; i += 4)
        for (int k = 0; k < 4; k++)
            h[k][d->bytes[i + k]]++;
    for (int b = 0; b < 256; b++)
        d->counts[b] += h[0][b] + h[1][b] + h[2][b] + h[3][b];
}

void set_spmv(struct set_data *d)
{
    for (int r = 0; r < d->n; r++) {
        float sum = 0;
        for (int k = d->row[r]; k < d->row[r + 1]; k++)
            sum += d->b[k] * d->a[d->column[k]];
        d->c[r] = sum;
    }
}

void set_triad(struct set_data *d)
{
    const float *restrict a = d->a, *restrict b = d->b;
    float *restrict c = d->c;
    for (int i = 0; i < d->n; i++)
        c[i] = a[i] + 1.5f * b[i];
}

void set_jacobi(struct set_data *d)
{
    int n = d->n;
    const float *restrict a = d->a;
    float *restrict c = d->c;
    for (int y = 1; y < n - 1; y++)
        for (int x = 1; x < n - 1; x++)
            c[y * n + x] = 0.25f * (a[y * n + x - 1] + a[y * n + x + 1] + a[(y - 1) * n + x] +
                                    a[(y + 1) * n + x]);
}

/* Sums up each 256. */
void set_scan(struct set_data *d)
{
    for (int i = 0; i < d->n; i += 256) {
        float sum = 0;
        for (int k = i; k < i + 256; k++)
            d->c[k] = sum += d->a[k];
    }
}
