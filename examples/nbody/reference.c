#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"
#include "nbody.h"

void nbody_state_init(struct nbody_state *s, long n)
{
    s->n = n;
    s->pos = calloc((size_t)n * 4, sizeof(double));
    s->vel = calloc((size_t)n * 4, sizeof(double));
    if (!s->pos || !s->vel) {
        fprintf(stderr, "no memory for %ld bodies\n", n);
        exit(1);
    }
}

void nbody_state_finish(struct nbody_state *s)
{
    free(s->pos);
    free(s->vel);
}

void nbody_state_fill(struct nbody_state *s)
{
    uint32_t seed = 42;
    for (long i = 0; i < s->n; i++) {
        double r2;
        do {
            r2 = 0;
            for (int c = 0; c < 3; c++) {
                s->pos[4 * i + c] = 2.0 * (double)ex_random(&seed) - 1.0;
                r2 += s->pos[4 * i + c] * s->pos[4 * i + c];
            }
        } while (r2 > 1.0);
        for (int c = 0; c < 3; c++) {
            s->pos[4 * i + c] *= 1.54;
            s->vel[4 * i + c] = 0.5 * ((double)ex_random(&seed) - 0.5);
        }
        s->pos[4 * i + 3] = 1.0 / (double)s->n;
    }
}

void nbody_reference_step(const struct nbody_state *in, struct nbody_state *out,
                          const struct nbody_step *step, long first, long stride)
{
    double softening2 = step->softening * step->softening;
    for (long i = first; i < in->n; i += stride) {
        const double *p = &in->pos[4 * i];
        double a[3] = { 0, 0, 0 };
        for (long k = 0; k < in->n; k++) {
            const double *q = &in->pos[4 * k];
            double d[3] = { q[0] - p[0], q[1] - p[1], q[2] - p[2] };
            double inv = 1.0 / sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + softening2);
            double s = q[3] * inv * inv * inv;
            for (int c = 0; c < 3; c++)
                a[c] += d[c] * s;
        }
        for (int c = 0; c < 3; c++) {
            double v = (in->vel[4 * i + c] + a[c] * step->dt) * step->damping;
            out->vel[4 * i + c] = v;
            out->pos[4 * i + c] = p[c] + v * step->dt;
        }
        out->pos[4 * i + 3] = p[3];
    }
}
