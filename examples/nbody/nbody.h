/*
 * The parts of the n-body example: options and report (nbody.c), the device (device.c), the same
 * step on the CPU (reference.c), star catalogues (tipsy.c).
 */
#ifndef GMUX_EXAMPLES_NBODY_H
#define GMUX_EXAMPLES_NBODY_H

#include <stdbool.h>

#define NBODY_TILE 256 /* bodies per block; the kernel's tile */

/* Bodies as the kernels want them: {x, y, z, mass} and {vx, vy, vz, unused}, always held in double
 * here. */
struct nbody_state {
    long n; /* a multiple of NBODY_TILE; the last ones may have no mass */
    double *pos;
    double *vel;
};

struct nbody_step {
    double dt;
    double damping;
    double softening;
};

struct nbody_options {
    long bodies;
    long iterations;
    long device;
    long devices;
    bool benchmark;
    bool fp64;
    bool hostmem;
    bool compare;
    bool cpu;
    const char *tipsy;
};

/* Room for `n` bodies, all zero; ends the program if there is no memory. */
void nbody_state_init(struct nbody_state *s, long n);
void nbody_state_finish(struct nbody_state *s);
/* A cloud of bodies, the same one every time. */
void nbody_state_fill(struct nbody_state *s);

/* Reads a TIPSY file (native byte order). False with a message on stderr if it is not one. */
bool nbody_tipsy_read(const char *path, struct nbody_state *s);

/* Moves each stride-th body of `in`, from `first` on, one step, into the same places of `out`. */
void nbody_reference_step(const struct nbody_state *in, struct nbody_state *out,
                          const struct nbody_step *step, long first, long stride);

/* Runs `iterations` steps on the device and returns the milliseconds they took. `before` and
 * `after` (may be NULL) get the states around one further step. */
double nbody_device_run(const struct nbody_options *o, const struct nbody_state *start,
                        const struct nbody_step *step, struct nbody_state *before,
                        struct nbody_state *after);

#endif
