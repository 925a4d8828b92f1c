/*
 * The best the CPU does on the n-body step when the loop is written in C for it: the yardstick for
 * kernels on the software device. Built with all the compiler has (-O3 -march=native -ffast-math,
 * clang where there is one).
 */
#ifndef GMUX_BENCH_NBODY_LOOPS_H
#define GMUX_BENCH_NBODY_LOOPS_H

/* Numbers are floats, with NBODY_F64 doubles. A program may have both kinds of loops. */
#ifdef NBODY_F64
typedef double nbody_real;
#define NBODY_NAME(name) name##_f64
#else
typedef float nbody_real;
#define NBODY_NAME(name) name##_f32
#endif

struct nbody_loop_data {
    int n;                     /* a multiple of 64 */
    nbody_real *x, *y, *z, *m; /* structure of arrays, 64-byte aligned */
    nbody_real *ax, *ay, *az;  /* accelerations, written */
    nbody_real softening2;
};

typedef void nbody_loop(const struct nbody_loop_data *d, int begin, int end);

/* Vector over the bodies that attract; and 16, 32, 64 attracted bodies at a time. Bodies [begin,
 * end), multiples of 64. */
extern nbody_loop NBODY_NAME(nbody_loop_over_j), NBODY_NAME(nbody_loop_16),
    NBODY_NAME(nbody_loop_32), NBODY_NAME(nbody_loop_64);

#endif
