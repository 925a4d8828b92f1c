/*
 * TIPSY, the star catalogue format of astronomers: a header, then gas, dark matter and star
 * particles. Only dark matter and stars have what an n-body program needs; gas is skipped.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbody.h"

struct tipsy_header {
    double time;
    int32_t bodies;
    int32_t dimensions;
    int32_t gas;
    int32_t dark;
    int32_t stars;
    int32_t pad;
};

#define TIPSY_GAS_BYTES  48
#define TIPSY_DARK_BYTES 36
#define TIPSY_STAR_BYTES 44
#define TIPSY_BODIES_MAX (1 << 22)

static bool read_particles(FILE *f, struct nbody_state *s, long at, long count, size_t bytes)
{
    for (long i = at; i < at + count; i++) {
        unsigned char raw[TIPSY_GAS_BYTES];
        float v[7]; /* mass, position, velocity: common to all kinds */
        if (fread(raw, bytes, 1, f) != 1)
            return false;
        memcpy(v, raw, sizeof(v));
        for (int c = 0; c < 3; c++) {
            s->pos[4 * i + c] = (double)v[1 + c];
            s->vel[4 * i + c] = (double)v[4 + c];
        }
        s->pos[4 * i + 3] = (double)v[0];
    }
    return true;
}

bool nbody_tipsy_read(const char *path, struct nbody_state *s)
{
    struct tipsy_header h;
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return false;
    }
    bool good = fread(&h, sizeof(h), 1, f) == 1 && h.dimensions == 3 && h.gas >= 0 && h.dark >= 0 &&
                h.stars >= 0 && (int64_t)h.gas + h.dark + h.stars == h.bodies &&
                h.bodies <= TIPSY_BODIES_MAX && (int64_t)h.dark + h.stars > 0;
    if (good) {
        long n = (long)h.dark + h.stars;
        nbody_state_init(s, (n + NBODY_TILE - 1) / NBODY_TILE * NBODY_TILE);
        good = fseek(f, (long)h.gas * TIPSY_GAS_BYTES, SEEK_CUR) == 0 &&
               read_particles(f, s, 0, h.dark, TIPSY_DARK_BYTES) &&
               read_particles(f, s, h.dark, h.stars, TIPSY_STAR_BYTES);
        if (!good)
            nbody_state_finish(s);
    }
    if (!good)
        fprintf(stderr, "%s: not a TIPSY file of three dimensions\n", path);
    fclose(f);
    return good;
}
