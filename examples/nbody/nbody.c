/*
 * n-body simulation, with the command line and the closing lines of the CUDA sample of that name.
 *
 * Expect, with -benchmark -numbodies=16384 -iterations=10 -compare:
 *   16384 bodies, total time for 10 iterations: T ms
 *   = X billion interactions per second
 *   = Y single-precision GFLOP/s at 20 flops per interaction
 *   compare: device and CPU agree, largest relative error E (M bodies)
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "example.h"
#include "nbody.h"

static void usage(const char *program)
{
    printf("usage: %s [options]\n"
           "  -benchmark        measure: one step to warm up, then -iterations, timed\n"
           "  -numbodies=N      bodies (rounded up to a multiple of %d); default 16384\n"
           "  -iterations=N     steps; default 10\n"
           "  -fp64             double precision\n"
           "  -hostmem          bodies in pinned host memory\n"
           "  -device=D         device number; default 0\n"
           "  -numdevices=N     only 1 is supported\n"
           "  -compare          check the device's last step against the CPU's\n"
           "  -cpu              run on the CPU instead\n"
           "  -tipsy=FILE       read the bodies from a TIPSY file\n",
           program, NBODY_TILE);
}

/* 1: go on; otherwise the program ends with the negated value. */
static int parse(int argc, char **argv, struct nbody_options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        const char *bare = a + strspn(a, "-");
        if (ex_option(a, "numbodies", 1, 1 << 22, &o->bodies) ||
            ex_option(a, "iterations", 1, 1 << 30, &o->iterations) ||
            ex_option(a, "device", 0, 1023, &o->device) ||
            ex_option(a, "numdevices", 1, 1024, &o->devices))
            continue;
        if (ex_flag(a, "benchmark"))
            o->benchmark = true;
        else if (ex_flag(a, "fp64"))
            o->fp64 = true;
        else if (ex_flag(a, "hostmem"))
            o->hostmem = true;
        else if (ex_flag(a, "compare"))
            o->compare = true;
        else if (ex_flag(a, "cpu"))
            o->cpu = true;
        else if (strncmp(bare, "tipsy=", 6) == 0)
            o->tipsy = bare + 6;
        else {
            usage(argv[0]);
            return ex_flag(a, "help") ? 0 : -2;
        }
    }
    if (o->devices > 1) {
        fprintf(stderr, "%s: -numdevices: one device at a time\n", argv[0]);
        return -2;
    }
    return 1;
}

static double run_on_cpu(const struct nbody_options *o, struct nbody_state *s,
                         const struct nbody_step *step)
{
    struct nbody_state next;
    nbody_state_init(&next, s->n);
    double t0 = ex_seconds();
    for (long i = 0; i < o->iterations; i++) {
        nbody_reference_step(s, &next, step, 0, 1);
        struct nbody_state t = *s;
        *s = next;
        next = t;
    }
    double ms = 1e3 * (ex_seconds() - t0);
    nbody_state_finish(&next);
    return ms;
}

/* The device's step from `before` to `after` against the CPU's, for a sample of the bodies. */
static bool compare(const struct nbody_options *o, const struct nbody_state *before,
                    const struct nbody_state *after, const struct nbody_step *step)
{
    struct nbody_state expected;
    long stride = before->n > 1024 ? before->n / 512 | 1 : 1; /* odd: meets every lane */
    double worst = 0, scale = 0;
    long checked = 0;

    nbody_state_init(&expected, before->n);
    nbody_reference_step(before, &expected, step, 0, stride);
    for (long i = 0; i < before->n; i += stride, checked++)
        for (int c = 0; c < 3; c++) {
            scale = fmax(scale, fabs(expected.vel[4 * i + c]));
            double error = fmax(fabs(expected.vel[4 * i + c] - after->vel[4 * i + c]),
                                fabs(expected.pos[4 * i + c] - after->pos[4 * i + c]));
            worst = isnan(error) ? INFINITY : fmax(worst, error);
        }
    nbody_state_finish(&expected);
    double error = worst / scale;
    bool good = error < (o->fp64 ? 1e-12 : 5e-4);
    printf("compare: device and CPU %s, largest relative error %.1e (%ld bodies)\n",
           good ? "agree" : "DIFFER", error, checked);
    return good;
}

int main(int argc, char **argv)
{
    struct nbody_options o = { .bodies = 16384, .iterations = 10, .devices = 1 };
    const struct nbody_step step = { .dt = 0.016, .damping = 1.0, .softening = 0.1 };
    struct nbody_state start, before, after;
    bool good = true;
    double ms;

    int r = parse(argc, argv, &o);
    if (r <= 0)
        return -r;
    if (o.tipsy) {
        if (!nbody_tipsy_read(o.tipsy, &start))
            return 1;
    } else {
        nbody_state_init(&start, (o.bodies + NBODY_TILE - 1) / NBODY_TILE * NBODY_TILE);
        nbody_state_fill(&start);
    }
    long n = start.n;
    if (o.cpu) {
        ms = run_on_cpu(&o, &start, &step);
    } else {
        nbody_state_init(&before, n);
        nbody_state_init(&after, n);
        ms = nbody_device_run(&o, &start, &step, o.compare ? &before : NULL,
                              o.compare ? &after : NULL);
    }

    double interactions = 1e-9 * (double)n * (double)n * (double)o.iterations / (ms * 1e-3);
    int flops = o.fp64 ? 30 : 20;
    printf("%ld bodies, total time for %ld iterations: %.3f ms\n", n, o.iterations, ms);
    printf("= %.3f billion interactions per second\n", interactions);
    printf("= %.3f %s-precision GFLOP/s at %d flops per interaction\n", interactions * flops,
           o.fp64 ? "double" : "single", flops);
    if (o.compare && !o.cpu)
        good = compare(&o, &before, &after, &step);
    if (!o.cpu) {
        nbody_state_finish(&before);
        nbody_state_finish(&after);
    }
    nbody_state_finish(&start);
    return good ? 0 : 1;
}
