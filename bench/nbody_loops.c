#include "nbody_loops.h"

#include <tgmath.h>

void NBODY_NAME(nbody_loop_over_j)(const struct nbody_loop_data *d, int begin, int end)
{
    const nbody_real *restrict x = d->x, *restrict y = d->y, *restrict z = d->z, *restrict m = d->m;
    for (int i = begin; i < end; i++) {
        nbody_real px = x[i], py = y[i], pz = z[i], ax = 0, ay = 0, az = 0;
        for (int j = 0; j < d->n; j++) {
            nbody_real dx = x[j] - px, dy = y[j] - py, dz = z[j] - pz;
            nbody_real inv = 1 / sqrt(dx * dx + dy * dy + dz * dz + d->softening2);
            nbody_real s = m[j] * inv * inv * inv;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        d->ax[i] = ax;
        d->ay[i] = ay;
        d->az[i] = az;
    }
}

#define LOOP_OVER_I(name, WIDTH)                                                                   \
    void name(const struct nbody_loop_data *d, int begin, int end)                                 \
    {                                                                                              \
        const nbody_real *restrict x = d->x, *restrict y = d->y, *restrict z = d->z,               \
                                   *restrict m = d->m;                                             \
        for (int i = begin; i < end; i += WIDTH) {                                                 \
            nbody_real px[WIDTH], py[WIDTH], pz[WIDTH], ax[WIDTH], ay[WIDTH], az[WIDTH];           \
            for (int l = 0; l < WIDTH; l++) {                                                      \
                px[l] = x[i + l];                                                                  \
                py[l] = y[i + l];                                                                  \
                pz[l] = z[i + l];                                                                  \
                ax[l] = ay[l] = az[l] = 0;                                                         \
            }                                                                                      \
            for (int j = 0; j < d->n; j++)                                                         \
                for (int l = 0; l < WIDTH; l++) {                                                  \
                    nbody_real dx = x[j] - px[l], dy = y[j] - py[l], dz = z[j] - pz[l];            \
                    nbody_real inv = 1 / sqrt(dx * dx + dy * dy + dz * dz + d->softening2);        \
                    nbody_real s = m[j] * inv * inv * inv;                                         \
                    ax[l] += dx * s;                                                               \
                    ay[l] += dy * s;                                                               \
                    az[l] += dz * s;                                                               \
                }                                                                                  \
            for (int l = 0; l < WIDTH; l++) {                                                      \
                d->ax[i + l] = ax[l];                                                              \
                d->ay[i + l] = ay[l];                                                              \
                d->az[i + l] = az[l];                                                              \
            }                                                                                      \
        }                                                                                          \
    }

LOOP_OVER_I(NBODY_NAME(nbody_loop_16), 16)
LOOP_OVER_I(NBODY_NAME(nbody_loop_32), 32)
LOOP_OVER_I(NBODY_NAME(nbody_loop_64), 64)
