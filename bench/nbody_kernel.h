/*
 * The n-body step of examples/nbody, compiled, against the loops of nbody_loops.h, in turns: prints
 * both rates, their ratio and the largest difference of the results. Part of soft_kernels.
 */
#ifndef GMUX_BENCH_NBODY_KERNEL_H
#define GMUX_BENCH_NBODY_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct soft_compiler;

/* `n` bodies, a multiple of 256, on one thread. `ftz`: all its instructions on f32 flush subnormal
 * numbers, as with -use_fast_math. Ends the program if the kernel does not compile. */
void bench_nbody_f32(struct soft_compiler *c, uint32_t isa, int n, int rounds, bool ftz);
void bench_nbody_f64(struct soft_compiler *c, uint32_t isa, int n, int rounds, bool ftz);

#endif
