/* The loops in C that the kernels of kernel_set.cu are compared with; built with what a user would
 * give for speed. */
#ifndef GMUX_BENCH_KERNEL_SET_H
#define GMUX_BENCH_KERNEL_SET_H

struct set_data {
    float *a, *b, *c;     /* n elements, or n x n */
    unsigned char *bytes; /* n */
    int *row, *column;    /* spmv: n + 1 and 16 n */
    unsigned counts[256]; /* histogram */
    int n;
};

void set_reduction(struct set_data *d);
void set_sgemm(struct set_data *d);
void set_transpose(struct set_data *d);
void set_bitonic(struct set_data *d);
void set_convolution(struct set_data *d);
void set_histogram(struct set_data *d);
void set_spmv(struct set_data *d);
void set_triad(struct set_data *d);
void set_jacobi(struct set_data *d);
void set_scan(struct set_data *d);

#endif
