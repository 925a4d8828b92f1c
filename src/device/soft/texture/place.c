/*
 * Finds the elements that coordinates stand for. Where elements are filtered a coordinate becomes a
 * fixed-point number with 8 bits of fraction. The address mode then chooses an element for a
 * coordinate beyond the edge.
 */
#include "device/soft/texture/texture.h"

#include <math.h>
#include <string.h>

#define FAR 0x40000000 /* beyond every element, with room to add offsets without overflow */

static float as_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static int64_t modulo(int64_t a, int64_t n)
{
    int64_t r = a % n;
    return r < 0 ? r + n : r;
}

/* The element that index `i` of `n` stands for; -1: the border colour. */
static int64_t resolve(uint32_t mode, int64_t i, int64_t n)
{
    switch (mode) {
    case DEV_ADDRESS_WRAP:
        return modulo(i, n);
    case DEV_ADDRESS_MIRROR: {
        int64_t m = modulo(i, 2 * n);
        return m < n ? m : 2 * n - 1 - m;
    }
    case DEV_ADDRESS_BORDER:
        return i < 0 || i >= n ? -1 : i;
    default:
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    }
}

/* v in units of 2^-bits, rounded down. A value far outside is clamped to FAR. */
static int64_t down(double v, unsigned bits)
{
    const double unit = (double)(UINT64_C(1) << bits), limit = FAR * (unit / 256);
    v *= unit;
    v = v < -limit ? -limit : v > limit ? limit : v;
    const int64_t whole = (int64_t)v;
    return whole - ((double)whole > v);
}

/* A normalized coordinate in elements, with 8 bits of fraction if `rounded`, else whole. Hardware
 * keeps that many bits of it. For modes that repeat whole repetitions are removed first. */
static int64_t scaled(uint32_t mode, double v, uint32_t n, bool rounded)
{
    unsigned bits = n <= 8192 ? 21 : n <= 16384 ? 22 : 23;
    if (mode == DEV_ADDRESS_WRAP || mode == DEV_ADDRESS_MIRROR)
        v = isinf(v) ? 0 : mode == DEV_ADDRESS_WRAP ? v - floor(v) : v - 2 * floor(v / 2);
    __extension__ typedef __int128 wide;
    wide elements = (wide)down(v, bits) * n;
    return (int64_t)(rounded ? (elements + ((wide)1 << (bits - 9))) >> (bits - 8)
                             : elements >> bits);
}

/* Places a float coordinate in one dimension. */
static void place_real(const struct soft_sampler *s, uint32_t mode, float coordinate, uint32_t n,
                       int offset, struct soft_pair *out)
{
    double v = isnan(coordinate) ? 0 : (double)coordinate;
    bool normalized = s->flags & DEV_SAMPLER_NORMALIZED;
    if (!s->linear) {
        int64_t i = normalized ? scaled(mode, v, n, false) : down(v, 0);
        out->at[0] = out->at[1] = resolve(mode, i + offset, n);
        out->share = 0;
        return;
    }
    int64_t fixed =
        (normalized ? scaled(mode, v, n, true) : down(v + 0x1p-9, 8)) - 128 + 256 * offset;
    bool beyond = mode == DEV_ADDRESS_CLAMP && (fixed < 0 || fixed > 256 * ((int64_t)n - 1));
    out->at[0] = resolve(mode, fixed >> 8, n);
    out->at[1] = resolve(mode, (fixed >> 8) + 1, n);
    out->share = beyond ? 0 : (uint32_t)fixed & 255;
}

void soft_texture_place_one(const struct soft_sampler *s, unsigned dimension, uint32_t bits,
                            uint32_t n, uint32_t offsets, struct soft_pair *out)
{
    int offset = (int8_t)(offsets >> 8 * dimension);
    if (s->coordinate == IR_F32) {
        place_real(s, s->address[dimension], as_float(bits), n, offset, out);
        return;
    }
    /* Beyond the edges an integer coordinate reads zeroes, whatever the address mode is. */
    int64_t i = (int64_t)(int32_t)bits + offset;
    out->at[0] = out->at[1] = i < 0 || i >= n ? SOFT_TEXTURE_NOTHING : i;
    out->share = 0;
}

unsigned soft_texture_face(const float d[3], float at[2])
{
    float x = fabsf(d[0]), y = fabsf(d[1]), z = fabsf(d[2]), major, u, v;
    unsigned face;
    if (z >= x && z >= y) {
        face = 4 + (signbit(d[2]) ? 1u : 0u);
        major = z;
        u = signbit(d[2]) ? -d[0] : d[0];
        v = -d[1];
    } else if (y >= x) {
        face = 2 + (signbit(d[1]) ? 1u : 0u);
        major = y;
        u = d[0];
        v = signbit(d[1]) ? -d[2] : d[2];
    } else {
        face = (signbit(d[0]) ? 1u : 0u);
        major = x;
        u = signbit(d[0]) ? d[2] : -d[2];
        v = -d[1];
    }
    at[0] = (u / major + 1) / 2;
    at[1] = (v / major + 1) / 2;
    return face;
}

static const struct soft_pair only_one = { { 0, 0 }, 0 };

static void place_cube(const struct soft_sampler *s, const struct soft_level *level,
                       const uint32_t in[6], struct soft_place *out)
{
    float direction[3] = { as_float(in[0]), as_float(in[1]), as_float(in[2]) }, at[2];
    uint32_t face = soft_texture_face(direction, at);
    bool seamless = s->flags & DEV_SAMPLER_SEAMLESS;
    struct soft_sampler of_face = *s;
    of_face.flags |= DEV_SAMPLER_NORMALIZED;
    place_real(&of_face, seamless ? DEV_ADDRESS_CLAMP : s->address[0], at[0], level->width, 0,
               &out->x);
    place_real(&of_face, seamless ? DEV_ADDRESS_CLAMP : s->address[1], at[1], level->height, 0,
               &out->y);
    out->z = only_one;
    uint32_t cubes = GM_MAX(s->t.layers / 6, 1u),
             cube = s->geometry == IR_GEO_ACUBE ? GM_MIN(in[3], cubes - 1) : 0;
    out->layer = s->t.first_layer + 6 * cube + face;
}

void soft_texture_place(const struct soft_sampler *s, const struct soft_level *level,
                        const uint32_t in[6], struct soft_place *out)
{
    bool layered = s->geometry == IR_GEO_A1D || s->geometry == IR_GEO_A2D;
    if (s->geometry == IR_GEO_CUBE || s->geometry == IR_GEO_ACUBE) {
        place_cube(s, level, in, out);
        return;
    }
    soft_texture_place_one(s, 0, in[0], level->width, in[5], &out->x);
    out->y = out->z = only_one;
    /* A row seen from its edge reaches only the border. */
    if (s->geometry == IR_GEO_1D && s->linear && s->address[1] == DEV_ADDRESS_BORDER)
        out->y = (struct soft_pair) { { -1, 0 }, 128 };
    if (s->geometry == IR_GEO_2D || s->geometry == IR_GEO_3D || s->geometry == IR_GEO_A2D)
        soft_texture_place_one(s, 1, in[1], level->height, in[5], &out->y);
    if (s->geometry == IR_GEO_3D)
        soft_texture_place_one(s, 2, in[2], level->depth, in[5], &out->z);
    out->layer = s->t.first_layer + (layered ? GM_MIN(in[3], s->t.layers - 1) : 0);
}
